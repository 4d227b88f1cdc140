"""Which embeddings are recognised as copies, and which are not."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.encoders.base import ModelCard
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.results.result import ScoredModel
from audio_compositionality.evaluator.run.embeddings import embed_configuration
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.submissions.copies import (
    Earlier,
    Sketch,
    duplicates_of,
    may_be_copied,
    relation_of,
    sketch_of,
)
from audio_compositionality.evaluator.submissions.outputs import RoundedEmbeddings
from audio_compositionality.tasks.base import Outputs
from audio_compositionality.tasks.registry import load_task
from studies.copies import MANIPULATIONS, manipulated

CLIPS, DIM = 200, 48


def rounded(embeddings: np.ndarray) -> RoundedEmbeddings:
    return RoundedEmbeddings.of([str(clip) for clip in range(len(embeddings))], embeddings)


def made_up(seed: int, clips: int = CLIPS) -> np.ndarray:
    """Embeddings of clips that all models hear something of: shared factors, seen by each model in its own way."""
    factors = np.random.default_rng(99).gamma(1.0, size=(clips, 6))
    rng = np.random.default_rng(seed)
    return 5 + np.tanh(factors @ rng.normal(size=(6, DIM))) @ rng.normal(size=(DIM, DIM))


def stated(id: str, revision: str = "1", weights: str | None = None) -> ScoredModel:
    return ScoredModel.of(
        ModelCard(id=id, revision=revision, sample_rate=16_000, output_dim=DIM, weights_sha256=weights)
    )


def earlier_of(name: str, model: ScoredModel, day: str, embeddings: np.ndarray) -> Earlier:
    return Earlier(name, "a_coat", model, f"{day}T00:00:00+00:00", sketch_of(rounded(embeddings)))


@pytest.fixture(scope="module")
def first() -> np.ndarray:
    return made_up(0)


def kind_of(embeddings: np.ndarray, *others: np.ndarray) -> list[str]:
    earlier = [
        earlier_of(f"entry {k}", stated(f"org/model-{k}"), f"2026-01-{k + 1:02}", other)
        for k, other in enumerate(others)
    ]
    return [duplicate.kind for duplicate in duplicates_of(sketch_of(rounded(embeddings)), stated("org/new"), earlier)]


def rotation() -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(5).normal(size=(DIM, DIM)))[0]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda z: z, "exact"),
        (lambda z: 2.0**-7 * z, "exact"),
        (lambda z: np.concatenate([z, np.ones((len(z), 3))], axis=1), "near"),
        (lambda z: -3 * z @ rotation() + 10, "near"),
        (lambda z: z / z.std(axis=0), "near"),
        (lambda z: z * np.random.default_rng(7).uniform(0.1, 10, size=(len(z), 1)), "near"),
        (lambda z: rounded(z).restored(), "near"),
        (lambda z: np.random.default_rng(3).permutation(-2 * z @ rotation()), "permuted"),
    ],
    ids=["same", "power of 2", "padding", "several", "standardised", "rows scaled", "rounding", "rows"],
)
def test_a_copy_is_recognised(first, change, kind):
    assert kind_of(change(first), first) in ([kind], ["exact"])


@pytest.mark.parametrize(("name", "strength"), MANIPULATIONS, ids=lambda value: f"{value}")
def test_a_changed_copy_is_recognised(first, name, strength):
    assert kind_of(manipulated(first, name, strength, 0), first) in (["near"], ["exact"])


@pytest.fixture(scope="module")
def heard():
    """Embeddings of clips of quadruples by a baseline, and what scores such embeddings."""
    configuration = rendered_preset("mini", recipes=["a_coat"], quadruples=32).configuration("a_coat")
    task, rows = load_task("a_coat"), list(configuration.rows)

    def scores(embeddings: np.ndarray) -> dict[str, float]:
        measures = task.score(rows, Outputs(clips=embeddings), {}, "cpu", False).measures
        return {measure.name: measures[measure.name] for measure in task.info.recommended}

    names = ("mfcc-statistics", "level-statistics")
    options = RunOptions(store=None, progress=False, device="cpu")
    return {
        name: embed_configuration(load_model(name), configuration, options).load().embeddings for name in names
    }, scores


@pytest.mark.slow
@pytest.mark.parametrize("model", ["mfcc-statistics", "level-statistics"])
def test_copies_that_are_not_recognised_rank_below_their_source(heard, model):
    """Of the hardest, embeddings with few dimensions: what escapes has lost in every number that ranks."""
    embeddings, scores = heard
    source, missed = scores(embeddings[model]), []
    for name, strength in MANIPULATIONS:
        copy = rounded(manipulated(embeddings[model], name, strength, 0)).restored()
        if not kind_of(copy, embeddings[model]):
            assert all(value < source[measure] for measure, value in scores(copy).items()), (name, strength)
            missed.append(name)
    assert set(missed) <= {"noise", "even noise"}
    assert len(missed) <= 10


@pytest.mark.slow
def test_another_model_of_the_same_clips_is_no_copy():
    sketches = [sketch_of(rounded(made_up(seed))) for seed in range(8)]
    models = [Earlier(str(k), "a_coat", stated(f"org/{k}"), "2026", sketch) for k, sketch in enumerate(sketches)]
    called = [(a.name, b.name) for a, b in combinations(models, 2) if duplicates_of(a.sketch, a.model, [b])]
    assert called == []
    rng = np.random.default_rng(1)
    assert kind_of(rng.normal(size=(CLIPS, 768)), *(rng.normal(size=(CLIPS, 768)) for _ in range(8))) == []


def test_clips_that_are_all_alike_tell_nothing():
    ones = np.ones((CLIPS, DIM))
    far = np.eye(CLIPS)
    assert kind_of(far, far[::-1] * 3) == []
    assert kind_of(ones, 2 * ones) == ["exact"]
    assert kind_of(np.ones((1, 3)), np.array([[1.0, 2.0, 4.0]])) == ["exact"]


def test_other_clips_are_not_compared(first):
    assert kind_of(first, first[:-1] * 3) == []
    other = RoundedEmbeddings.of([f"other {clip}" for clip in range(CLIPS)], 3 * first)
    earlier = [earlier_of("there", stated("org/there"), "2026-01-01", first)]
    assert duplicates_of(sketch_of(other), stated("org/new"), earlier) == []


def test_texts_are_not_compared(first):
    ids = [str(place) for place in range(CLIPS + 50)]
    with_texts = [
        sketch_of(RoundedEmbeddings.of(ids, np.concatenate([scale * first, made_up(seed, 50)]), texts=50))
        for scale, seed in ((1, 1), (3, 2))
    ]
    earlier = [Earlier("there", "comp_a_order", stated("org/there"), "2026", with_texts[0])]
    (duplicate,) = duplicates_of(with_texts[1], stated("org/new"), earlier)
    assert duplicate.kind == "near"


def test_the_first_owner_is_named_first(first):
    copies = [
        earlier_of("later", stated("org/a"), "2026-03-01", first),
        earlier_of("near", stated("org/b"), "2026-01-01", first * 3),
        earlier_of("owner", stated("org/c"), "2026-02-01", first),
    ]
    duplicates = duplicates_of(sketch_of(rounded(first)), stated("org/new"), copies)
    assert [(duplicate.earlier.name, duplicate.kind) for duplicate in duplicates] == [
        ("owner", "exact"),
        ("later", "exact"),
        ("near", "near"),
    ]
    assert str(duplicates[0]) == "its embeddings are those of org/c, owner of 2026-02-01T00:00:00+00:00"
    assert may_be_copied(duplicates)


def test_the_same_weights_are_a_reproduction(first):
    weights = "a" * 64
    assert relation_of(stated("org/a"), stated("org/a")) == "weights"
    assert relation_of(stated("org/a", "1", weights), stated("org/b", "2", weights)) == "weights"
    assert relation_of(stated("org/a"), stated("org/a", "2")) == "model"
    assert relation_of(stated("org/a"), stated("org/b")) == "other"
    owner = earlier_of("owner", stated("org/a", "1", weights), "2026-01-01", first)
    thief = earlier_of("thief", stated("org/thief"), "2026-02-01", 3 * first)
    sketch = sketch_of(rounded(first + 1))
    (again,) = duplicates_of(sketch, stated("org/again", "9", weights), [owner])
    assert again.relation == "weights"
    assert str(again).endswith("of org/a, owner of 2026-01-01T00:00:00+00:00, which states the same weights")
    # Who came first decides: a later copy does not keep its source's weights from being reproduced, nor cover others.
    assert not may_be_copied(duplicates_of(sketch, stated("org/again", "9", weights), [thief, owner]))
    assert may_be_copied(duplicates_of(sketch, stated("org/thief"), [thief, owner]))
    assert not may_be_copied([])


def test_a_sketch_is_small_and_says_nothing_of_the_form_of_the_file(first):
    sketch = sketch_of(rounded(first))
    assert len(sketch.model_dump_json()) < 35_000
    assert Sketch.model_validate_json(sketch.model_dump_json()) == sketch
    other = rounded(first)
    zero = replace(other, values=np.where(other.values == 0, np.float16(-0.0), other.values))
    assert sketch_of(zero) == sketch
    assert sketch_of(RoundedEmbeddings.loads(other.dumps())) == sketch
