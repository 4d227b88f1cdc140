"""A-TRE against PyTorch's own layer, scikit-learn, planted structure and the properties of its definition."""

import copy
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from torch import nn

from audio_compositionality.metrics import a_tre as module
from audio_compositionality.metrics import composition
from audio_compositionality.metrics.a_tre import a_tre
from audio_compositionality.metrics.composition import CompositionModel, dropout_of, post_norm_rows

from .contract import MetricContract
from .scenes import additive, make_scenes

QUICK = {"progress": False, "device": "cpu", "max_steps": 3}


def example() -> dict[str, Any]:
    """Return arguments of `a_tre`: a partly additive encoder of 200 scenes of one to three sources in 8 dimensions."""
    rng = np.random.default_rng(0)
    labels = {"timbre_label": ("bell", "brass", "reed"), "pitch_label": ("low", "high"), "rate_label": ("slow", "fast")}
    labels["amplitude_label"] = ("soft", "loud")
    vectors = {(name, label): rng.normal(size=8) for name, choices in labels.items() for label in choices}
    mean = rng.normal(size=8)
    embeddings, scenes = [], []
    splits = ["train"] * 140 + ["validation"] * 30 + ["test"] * 30
    for _ in splits:
        sources = [{name: str(rng.choice(labels[name])) for name in labels} for _ in range(rng.integers(1, 4))]
        total = sum(vectors[pair] for source in sources for pair in source.items())
        embeddings.append((mean + total + rng.normal(0, 0.5, 8)).round(3))
        scenes.append(sources)
    return {"embeddings": np.array(embeddings), "scenes": scenes, "splits": splits}


class TestContract(MetricContract):
    name = "a_tre"
    options = QUICK
    embeddings = ("embeddings",)
    drawn = ("ridge_r2_null", "ridge_centred_null")
    turns = False
    at_constant: ClassVar = {"a_tre": 1, "constant": 1, "collapsed": True} | dict.fromkeys(
        ("gain", "a_tre_centred", "ridge_r2", "ridge_centred", "ridge_r2_null", "ridge_centred_null"), 0
    )

    def movable(self, example):
        # The order of what is learnt from is that of the batches.
        return np.array([row for row, split in enumerate(example["splits"]) if split == "test"])


def make_splits(n):
    held_out = n // 6
    return ["train"] * (n - 2 * held_out) + ["validation"] * held_out + ["test"] * held_out


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def test_post_norm_drops_out_where_the_layer_does():
    """PyTorch's own dropout, given the same random state, gives the output of the layer in training.

    Of one scene: the layer draws for its rows in an order that depends on how a batch lies in memory.
    """
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 1, 32, 0.1, batch_first=True).double().train()
    tokens = torch.randn(1, 20, 8, dtype=torch.float64)
    padding = torch.zeros(1, 20, dtype=torch.bool)
    torch.manual_seed(1)
    expected = layer(tokens)
    torch.manual_seed(1)
    result = post_norm_rows(layer, tokens, tokens, padding, lambda x: nn.functional.dropout(x, 0.1, training=True))
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-10)
    assert (result - post_norm_rows(layer, tokens, tokens, padding)).abs().max() > 0.1


def test_dropout_has_its_rate_and_draws_from_its_own_generator():
    state = torch.get_rng_state()
    drop = dropout_of(0.1, 3, torch.device("cpu"))
    dropped = drop(torch.ones(100_000))
    assert (dropped == 0).double().mean() == pytest.approx(0.1, abs=0.005)
    assert dropped[dropped > 0].unique().tolist() == pytest.approx([1 / 0.9])
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(dropout_of(0.1, 3, torch.device("cpu"))(torch.ones(100_000)), dropped)
    assert dropout_of(0.0, 3, torch.device("cpu")) is None


@pytest.mark.parametrize("kind", ["pre-norm", "post-norm"])
@pytest.mark.parametrize("layers", [1, 2])
def test_model_equals_an_encoder_over_summed_label_embeddings_in_value_and_gradient(layers, kind):
    """Of one and of two layers, so that a layer gives its [CLS] row alone and all of its rows."""
    torch.manual_seed(0)
    model = CompositionModel(6, 8, layer=kind, layers=layers, width=20).double()
    for parameter in model.parameters():  # biases are 0 and norms 1 at first, which would hide errors
        nn.init.normal_(parameter, std=0.5)
    reference = copy.deepcopy(model)
    labels, weights = torch.randint(6, (5, 3, 2)), torch.randn(5, 8, dtype=torch.float64)
    padding = torch.arange(3) >= torch.tensor([1, 2, 3, 1, 3])[:, None]
    counts = nn.functional.one_hot(labels, 6).sum(dim=2).double() * ~padding[..., None]
    x = [reference.cls.expand(5, 8)[:, None], nn.functional.embedding(labels, reference.labels).sum(2)]
    x = torch.cat(x, dim=1)
    for layer in reference.layers:
        assert layer.linear1.out_features == 20
        x = layer(x, src_key_padding_mask=nn.functional.pad(padding, (1, 0)))
    output = model(counts, padding)
    torch.testing.assert_close(output, x[:, 0], rtol=0, atol=1e-10)
    for result in (output, x[:, 0]):
        (result * weights).sum().backward()
    for (name, one), other in zip(model.named_parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-9, atol=1e-9, msg=name)


def training_data(n=150, dim=8):
    scenes = make_scenes(n)
    rows = {"train": np.arange(n), "validation": np.array([], int), "test": np.array([], int)}
    inputs = composition.SceneTensors.of(module._encode(scenes, rows, n), torch.device("cpu"))
    targets = torch.tensor(unit(additive(scenes, dim)), dtype=torch.float32)
    torch.manual_seed(0)
    return CompositionModel(inputs.counts.shape[2], dim), inputs, targets


class Silent:
    def update(self):
        pass

    def set_postfix(self, **_):
        pass


def test_fit_equals_a_plain_loop_over_the_full_layer():
    steps = 30
    model, inputs, targets = training_data()
    reference = copy.deepcopy(model)
    optimizer = torch.optim.Adam(reference.parameters(), lr=1e-4, weight_decay=1e-4, foreach=False)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps, eta_min=1e-5)
    for _, index in zip(range(steps), composition._batches(targets, 7), strict=False):
        x = (inputs.counts[index][..., None] * reference.labels).sum(dim=2)
        x = torch.cat([reference.cls.expand(len(index), 1, -1), x], dim=1)
        padding = nn.functional.pad(inputs.padding[index], (1, 0))
        prediction = reference.layers[0](x, src_key_padding_mask=padding)[:, 0]
        loss = (1 - torch.cosine_similarity(prediction, targets[index])).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    start = model(inputs.counts, inputs.padding).detach()
    fitted = composition.fit(model, (inputs, targets), (inputs, targets), max_steps=steps, seed=7, bar=Silent())
    assert fitted.step == steps
    found, expected = (m(inputs.counts, inputs.padding).detach() for m in (model, reference))
    assert (found - start).abs().max() > 1e-3
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


SCRIPTED = {"seed": 0, "bar": Silent(), "validate_every": 2}


def script_validation(monkeypatch, scores):
    """Make validation return these scores; the list returned collects the parameters it saw."""
    seen = []

    def scripted(model, *_):
        seen.append({name: value.clone() for name, value in model.state_dict().items()})
        return scores[len(seen) - 1]

    monkeypatch.setattr(composition, "_validation_score", scripted)
    return seen


def test_best_checkpoint_is_a_copy(monkeypatch):
    seen = script_validation(monkeypatch, [0.1, 0.9, 0.3, 0.9, 0.2])
    model, inputs, targets = training_data()
    fitted = composition.fit(model, (inputs, targets), (inputs, targets), **SCRIPTED, max_steps=9)
    assert (fitted.step, len(seen)) == (4, 5)
    assert fitted.curve.steps == [2, 4, 6, 8, 9]  # the last is always validated
    assert fitted.curve.validation == [0.1, 0.9, 0.3, 0.9, 0.2]
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, seen[1][name], rtol=0, atol=0)
    assert any(not torch.equal(seen[1][name], seen[4][name]) for name in seen[1])


def test_stops_after_four_validations_without_gain(monkeypatch):
    seen = script_validation(monkeypatch, [0.5, 0.4, 0.6, 0.6, 0.5, 0.5, 0.5, 0.9])
    model, inputs, targets = training_data()
    fitted = composition.fit(model, (inputs, targets), (inputs, targets), **SCRIPTED, max_steps=100)
    assert (fitted.step, len(seen), len(fitted.curve.steps)) == (6, 7, 7)


def test_divergence_is_an_error(monkeypatch):
    script_validation(monkeypatch, [float("nan")])
    model, inputs, targets = training_data()
    with pytest.raises(FloatingPointError, match="nan at step 2"):
        composition.fit(model, (inputs, targets), (inputs, targets), **SCRIPTED, max_steps=9)


@pytest.mark.parametrize(("variation", "collapsed"), [(0.02, True), (0.5, False)])
def test_collapsed_compares_the_spread_of_predictions_with_that_of_embeddings(variation, collapsed):
    # The spread of unit vectors around a mean grows with the square of their variation, here 0.02² < 0.01 < 0.5².
    mean, noise = np.eye(8)[0], 0.1 * np.random.default_rng(0).normal(size=(200, 8))
    assert module._collapsed((mean + variation * noise)[None], unit(mean + noise)) is collapsed


POST_NORM = {"layer": "post-norm", "width": 32, "dropout": 0.1, "validate_every": 2}


@pytest.mark.parametrize("options", [QUICK, QUICK | POST_NORM], ids=["ours", "the paper's"])
def test_same_seed_same_result_and_global_random_states_untouched(options):
    scenes, splits = make_scenes(90), make_splits(90)
    z = additive(scenes, 8)
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002 the legacy state is what must not change
    states = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first = a_tre(z, scenes, splits, **options)
    assert torch.equal(torch.get_rng_state(), states[0])
    np.testing.assert_array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002
    torch.manual_seed(2)
    assert a_tre(z, scenes, splits, **options) == first
    other = a_tre(z, scenes, splits, seeds=[5], **options)
    assert other["a_tre"] != first["a_tre"]
    assert other["ridge_r2_null"] == first["ridge_r2_null"]
    changes = ({"layer": "pre-norm", "dropout": 0.0}, {"dropout": 0.0}, {"width": 16}) if options != QUICK else ()
    for change in changes:
        assert a_tre(z, scenes, splits, **options | change)["a_tre"] != first["a_tre"], change


@pytest.fixture
def four_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


def test_fits_side_by_side_are_those_one_after_the_other(request):
    scenes, splits = make_scenes(90), make_splits(90)
    z = additive(scenes, 8)
    options = QUICK | {"seeds": (0, 1, 2), "max_steps": 40, "return_scores": True}
    one_by_one = a_tre(z, scenes, splits, **options)
    request.getfixturevalue("four_threads")
    state = torch.get_rng_state()
    assert a_tre(z, scenes, splits, **options) == one_by_one
    assert torch.get_num_threads() == 4
    assert torch.equal(torch.get_rng_state(), state)
    # A thread that begins now has the caller's number, too.
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(torch.get_num_threads).result() == 4


@pytest.mark.usefixtures("four_threads")
def test_when_one_fit_fails_the_others_end(monkeypatch):
    steps = []
    fit = composition.fit

    def watched(*arguments, seed, stop, **options):
        if seed == 7:
            raise FloatingPointError("The fit diverged")
        try:
            return fit(*arguments, seed=seed, stop=stop, **options)
        finally:
            steps.append(stop.is_set())

    monkeypatch.setattr(composition, "fit", watched)
    scenes, splits = make_scenes(90), make_splits(90)
    with pytest.raises(FloatingPointError, match="diverged"):
        a_tre(additive(scenes, 8), scenes, splits, **QUICK | {"seeds": (0, 7), "max_steps": 1_000_000})
    assert steps == [True] * len(steps)
    assert torch.get_num_threads() == 4


def test_seeds_are_averaged():
    scenes, splits = make_scenes(90), make_splits(90)
    z = additive(scenes, 8)
    options = QUICK | {"return_scores": True}
    single = [a_tre(z, scenes, splits, seeds=[seed], **options) for seed in (3, 4)]
    both = a_tre(z, scenes, splits, seeds=[3, 4], **options)
    means = [r["a_tre"] for r in single]
    assert both["a_tre"] == pytest.approx(np.mean(means))
    assert both["seed_std"] == pytest.approx(np.std(means, ddof=1))
    centred = [result["a_tre_centred"] for result in single]
    assert both["a_tre_centred_seed_std"] == pytest.approx(np.std(centred, ddof=1))
    assert single[0]["seed_std"] is single[0]["a_tre_centred_seed_std"] is None
    for name in ("a_tre_centred", "top1", "mrr"):
        assert both[name] == pytest.approx(np.mean([r[name] for r in single]))
    for name, std in (("scores", "std"), ("scores_centred", "a_tre_centred_std")):
        np.testing.assert_allclose(both[name], np.mean([r[name] for r in single], axis=0))
        assert both[std] == pytest.approx(np.std(both[name], ddof=1))


def test_constant_and_gain_equal_their_definition():
    scenes, splits = make_scenes(90), np.array(make_splits(90))
    z = additive(scenes, 8) + 1
    result = a_tre(z, scenes, splits, **QUICK)
    mean = unit(z[splits == "train"]).mean(axis=0)
    constant = np.mean([row @ mean / np.linalg.norm(row) / np.linalg.norm(mean) for row in z[splits == "test"]])
    assert result["constant"] == pytest.approx(constant, abs=1e-12)
    assert result["gain"] == pytest.approx((result["a_tre"] - constant) / (1 - constant), abs=1e-9)


@pytest.mark.parametrize("with_gains", [False, True])
def test_ridge_equals_scikit_learn(with_gains):
    n, dim = 240, 6
    scenes, splits = make_scenes(n), np.array(make_splits(n))
    rng = np.random.default_rng(0)
    gains = [rng.random(len(scene)).tolist() for scene in scenes] if with_gains else None
    z = additive(scenes, dim) + rng.normal(size=(n, dim))
    pairs = sorted({pair for scene in scenes for source in scene for pair in source.items()})
    x = np.zeros((n, 2 * len(pairs)))
    for i, scene in enumerate(scenes):
        for k, source in enumerate(scene):
            for pair, count in Counter(source.items()).items():
                x[i, pairs.index(pair)] += count
                x[i, len(pairs) + pairs.index(pair)] += gains[i][k] if with_gains else 0
    train, validation, test = (splits == name for name in ("train", "validation", "test"))
    y = unit(z) - unit(z)[train].mean(axis=0)
    models = [Ridge(alpha=penalty, solver="svd").fit(x[train], y[train]) for penalty in np.logspace(-4, 4, 17)]
    best = min(models, key=lambda m: ((m.predict(x[validation]) - y[validation]) ** 2).sum())
    assert models[0] is not best is not models[-1]
    prediction = best.predict(x[test])
    r2 = 1 - ((prediction - y[test]) ** 2).sum() / (y[test] ** 2).sum()
    result = a_tre(z, scenes, splits, gains=gains, **QUICK)
    assert result["ridge_r2"] == pytest.approx(r2, abs=1e-8)
    assert result["ridge_centred"] == pytest.approx((unit(prediction) * unit(y[test])).sum(axis=1).mean(), abs=1e-8)
    assert result["ridge_r2"] > result["ridge_r2_null"] + 0.2


def test_ridge_null_refits_on_permuted_metadata(monkeypatch):
    """With the identity as its permutation, the null is the score itself."""
    scenes, splits = make_scenes(120), make_splits(120)
    monkeypatch.setattr(module, "_permutation", lambda rows, sizes, rng: np.arange(len(sizes)))
    result = a_tre(additive(scenes, 6), scenes, splits, **QUICK)
    assert result["ridge_r2_null"] == pytest.approx(result["ridge_r2"], abs=1e-12)
    assert result["ridge_centred_null"] == pytest.approx(result["ridge_centred"], abs=1e-12)


def test_progress_bar_goes_to_a_terminal_alone(capsys, monkeypatch):
    given = (additive(SCENES, 4), SCENES, SPLITS)
    a_tre(*given, **QUICK | {"progress": True})
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    a_tre(*given, **QUICK | {"progress": True})
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "A-TRE, seed 0" in printed.err


def change(scenes, row, source):
    return [*scenes[:row], [source], *scenes[row + 1 :]]


SCENES, SPLITS = make_scenes(60), make_splits(60)
SOURCE = SCENES[0][0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"splits": ["trian", *SPLITS[1:]]}, r"splits\[0\] is 'trian'; it must be one of .*mean 'train'"),
        ({"splits": ["train"] * 40 + ["val"] * 20}, "test split has 0 scenes"),
        ({"scenes": change(SCENES, 5, "bell")}, r"scenes\[5\]\[0\] must map attributes to labels; got 'bell'"),
        (
            {"scenes": change(SCENES, 5, {"pitch_label": "p0"})},
            r"scenes\[5\]\[0\] has the attributes \['pitch_label'\]",
        ),
        ({"scenes": change(SCENES, 5, SOURCE | {"pitch_label": 3})}, r"pitch_label 3; a label must be a string"),
        (
            {"scenes": change(SCENES, 55, SOURCE | {"timbre_label": "t11"})},
            r"scenes\[55\] \(test\) has timbre_label 't11', which is in no training scene; .* 't1'",
        ),
        ({"gains": [[1.0] * (len(s) + 1) for s in SCENES]}, r"gains\[0\] has . values; the scene has . sources"),
        ({"gains": [[-1.0] * len(s) for s in SCENES]}, r"gains must be finite and linear .* gains\[0\] is \[-1.0"),
        ({"max_steps": 0}, "max_steps must be at least 1; got 0"),
        ({"layer": "postnorm"}, "layer must be one of .*; got 'postnorm'. Did you mean 'post-norm'"),
        ({"layer": "post-norm", "dropout": 1.0}, "dropout must be at least 0 and less than 1; got 1.0"),
        ({"dropout": 0.1}, "a pre-norm layer has none"),
    ],
)
def test_refuses_bad_input(arguments, message):
    valid = {"embeddings": additive(SCENES, 4), "scenes": SCENES, "splits": SPLITS}
    with pytest.raises(ValueError, match=message):
        a_tre(**QUICK | valid | arguments)
