"""A-TRE's composition model, a Transformer that rebuilds embeddings from labels, and its fits to any split."""

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from tqdm.auto import tqdm

from .arrays import ROWS_COMPARED, Floats, Ints, check_length, row_norms, unit_rows

Scenes = Sequence[Sequence[Mapping[str, str]]]

# Training, as in arXiv 2603.13685, section 4.4: 2,500 steps are 20 epochs of 8,000 scenes, 125 steps one.
BATCH = 64
FIRST_RATE, LAST_RATE = 1e-4, 1e-5
BETAS = (0.9, 0.999)
WEIGHT_DECAY = 1e-4
VALIDATE_EVERY = 125
PATIENCE = 4  # validations; equal to epochs if each epoch has one validation
INIT_STD = 0.02  # of the token vectors, the usual choice for Transformer embeddings
DEGENERATE = 1e-6
"""A unit embedding nearer than this to the training mean has no direction of its own: centred score 0."""


class CompositionModel(nn.Module):
    """The composition function g of arXiv 2603.13685, section 3.3: from attribute labels to an embedding."""

    def __init__(
        self, vocabulary: int, dim: int, *, layer: str = "pre-norm", layers: int = 1, width: int | None = None
    ) -> None:
        super().__init__()
        self.pre_norm = layer == "pre-norm"
        self.labels = nn.Parameter(INIT_STD * torch.randn(vocabulary, dim, dtype=torch.float32))
        self.cls = nn.Parameter(INIT_STD * torch.randn(1, dim, dtype=torch.float32))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                dim,
                nhead=1,
                dim_feedforward=width or 4 * dim,
                dropout=0.0,
                norm_first=self.pre_norm,
                batch_first=True,
                dtype=torch.float32,
            )
            for _ in range(layers)
        )

    def forward(self, counts: Tensor, padding: Tensor, drop: "Drop | None" = None) -> Tensor:
        """Return the predictions [batch, dim].

        `counts` [batch, sources, vocabulary] is 1 if a source has a label, else 0; `padding` [batch, sources] is True
        if a scene has no such source. `drop` is the dropout of post-norm layers in training.
        """
        # A product with the 0/1 matrix, unlike a gather, has a deterministic gradient on CUDA too.
        sources = counts @ self.labels
        cls = self.cls
        if not self.pre_norm:
            tokens = torch.cat([cls.expand(len(sources), -1)[:, None], sources], dim=1)
            padding = functional.pad(padding, (1, 0))
            for layer in self.layers[:-1]:
                tokens = post_norm_rows(layer, tokens, tokens, padding, drop)
            return post_norm_rows(self.layers[-1], tokens[:, :1], tokens, padding, drop)[:, 0]
        *earlier, last = self.layers
        for layer in earlier:
            tokens = torch.cat([cls.expand(len(sources), -1)[:, None], sources], dim=1)
            tokens = layer(tokens, src_key_padding_mask=functional.pad(padding, (1, 0)))
            cls, sources = tokens[:, 0], tokens[:, 1:]
        assert isinstance(last, nn.TransformerEncoderLayer)
        return cls_row(last, cls, sources, padding)


def cls_row(layer: nn.TransformerEncoderLayer, cls: Tensor, sources: Tensor, padding: Tensor) -> Tensor:
    """Return only the [CLS] row [batch, dim] of a one-head, pre-norm `nn.TransformerEncoderLayer` with ReLU.

    `cls` [batch, dim], or [1, dim] for all scenes; `sources` [batch, sources, dim]; `padding` [batch,
    sources]. Equal to the layer's own first output row, gradients included, up to rounding. With one query a
    scene, keys and values are not needed: q·(W_k x + b_k) is (W_kᵀ q)·x plus a constant that the softmax
    cancels, and the value and output maps commute with the weighted sum. So no dim × dim product is made
    for a source token.
    """
    attention, dim = layer.self_attn, cls.shape[-1]
    w_query, w_key, w_value = attention.in_proj_weight.view(3, dim, dim).unbind(0)
    b_query, _, b_value = attention.in_proj_bias.view(3, dim).unbind(0)
    cls_token, tokens = layer.norm1(cls), layer.norm1(sources)
    query = functional.linear(cls_token, w_query, b_query) @ w_key / math.sqrt(dim)
    cls_score = (cls_token * query).sum(dim=-1, keepdim=True).expand(len(sources), 1)
    token_scores = (tokens @ query[..., None])[..., 0].masked_fill(padding, -math.inf)
    weights = torch.cat([cls_score, token_scores], dim=1).softmax(dim=1)
    mixed = weights[:, :1] * cls_token + (weights[:, None, 1:] @ tokens)[:, 0]
    x = cls + attention.out_proj(functional.linear(mixed, w_value, b_value))
    output: Tensor = x + layer.linear2(layer.linear1(layer.norm2(x)).relu())
    return output


Drop = Callable[[Tensor], Tensor]


def post_norm_rows(
    layer: nn.Module, queries: Tensor, tokens: Tensor, padding: Tensor, drop: Drop | None = None
) -> Tensor:
    """Return rows [batch, queries, dim] of a one-head, post-norm `nn.TransformerEncoderLayer` with ReLU.

    `queries` [batch, queries, dim] are the input rows whose output is wanted, of `tokens` [batch, tokens, dim];
    `padding` [batch, tokens]. Equal to the layer's own rows up to rounding. The layer's own dropout is not used, since
    it would draw from the global random state: `drop`, if given, is called in the same four places, in its order.
    """
    assert isinstance(layer, nn.TransformerEncoderLayer)
    drop = drop or (lambda x: x)
    attention, dim = layer.self_attn, tokens.shape[-1]
    w_query, w_key, w_value = attention.in_proj_weight.view(3, dim, dim).unbind(0)
    b_query, b_key, b_value = attention.in_proj_bias.view(3, dim).unbind(0)
    query, key = functional.linear(queries, w_query, b_query), functional.linear(tokens, w_key, b_key)
    scores = (query @ key.transpose(1, 2) / math.sqrt(dim)).masked_fill(padding[:, None], -math.inf)
    mixed = drop(scores.softmax(dim=2)) @ functional.linear(tokens, w_value, b_value)
    x = layer.norm1(queries + drop(attention.out_proj(mixed)))
    output: Tensor = layer.norm2(x + drop(layer.linear2(drop(layer.linear1(x).relu()))))
    return output


def dropout_of(rate: float, seed: int, device: torch.device) -> Drop | None:
    """Return a dropout function with its own random generator; None for a rate of 0."""
    if rate == 0:
        return None
    generator = torch.Generator(device).manual_seed(seed)

    def drop(x: Tensor) -> Tensor:
        return x * (torch.rand(x.shape, generator=generator, device=device) >= rate) / (1 - rate)

    return drop


@dataclass(frozen=True)
class SceneTensors:
    """Metadata of scenes as tensors, the input of `CompositionModel`."""

    counts: Tensor
    padding: Tensor

    @classmethod
    def of(cls, counts: NDArray[np.float32], device: torch.device) -> "SceneTensors":
        """Move `counts` [n, sources, vocabulary] to `device`; a source without any label is padding."""
        tensor = torch.from_numpy(counts).to(device)
        return cls(tensor, ~tensor.any(dim=2))

    def __getitem__(self, index: Tensor) -> "SceneTensors":
        return SceneTensors(self.counts[index], self.padding[index])


@dataclass(frozen=True)
class FitOptions:
    """Options of a model and its fit; see `a_tre`."""

    max_steps: int
    width: int
    layer: str = "pre-norm"
    layers: int = 1
    dropout: float = 0.0
    validate_every: int = VALIDATE_EVERY


@dataclass(frozen=True)
class Curve:
    """Learning curve of a fit.

    Attributes:
        steps: steps of the validations.
        training: mean cosine of the training batches since the validation before.
        validation: mean cosine of the validation scenes.
    """

    steps: list[int] = field(default_factory=list)
    training: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Fit:
    """The step with the best validation score, and the curve of the fit."""

    step: int
    curve: Curve


@dataclass(frozen=True)
class Goal:
    """Targets and splits of one model.

    Attributes:
        title: of the progress bar.
        targets: returns the unit embeddings to rebuild, [n, dim] in float32; zeros have no influence.
        train, validation, test: numbers of the scenes for training, for the choice of the step, and for the test.
        seed: of the weights and batches.
    """

    title: str
    targets: Callable[[], NDArray[np.float32]]
    train: Ints
    validation: Ints
    test: Ints
    seed: int


def fit_goals(
    inputs: SceneTensors, goals: Sequence[Goal], options: FitOptions, progress: bool
) -> list[tuple[Fit, Floats]]:
    """Fit a model to each goal; return each fit and its predictions for the test scenes, [test, dim].

    If no training or validation target has a direction, nothing is fitted and the predictions are zeros.
    """
    device = inputs.counts.device
    stop = threading.Event()

    def fit_one(goal: Goal) -> tuple[Fit, Floats]:
        targets = torch.from_numpy(goal.targets()).to(device)
        train, validation, test = (
            torch.from_numpy(rows).to(device) for rows in (goal.train, goal.validation, goal.test)
        )
        if not targets[train].any() and not targets[validation].any():
            return Fit(0, Curve()), np.zeros((len(test), targets.shape[1]))
        model = new_model(inputs.counts.shape[2], targets.shape[1], goal.seed, options).to(device)
        hidden = None if progress else True
        with tqdm(total=options.max_steps, desc=goal.title, disable=hidden, leave=None) as bar:
            fitted = fit(
                model,
                (inputs[train], targets[train]),
                (inputs[validation], targets[validation]),
                max_steps=options.max_steps,
                seed=goal.seed,
                bar=bar,
                stop=stop,
                dropout=options.dropout,
                validate_every=options.validate_every,
            )
        return fitted, predict_rows(model, inputs[test]).double().cpu().numpy()

    jobs = [(goal,) for goal in goals]
    return side_by_side(fit_one, jobs, stop) if device.type == "cpu" else [fit_one(*job) for job in jobs]


def centred_directions(unit: Floats, mean: Floats) -> Floats:
    """Return the differences from the mean at length 1, or 0 if a difference is too short to have a direction."""
    offsets = unit - mean
    return unit_rows(np.where(row_norms(offsets)[:, None] < DEGENERATE, 0.0, offsets))


def learning_rate(step: int, max_steps: int) -> float:
    """Return the rate of a step, counted from 0: half a cosine from 1e-4 at 0 to 1e-5 at max_steps."""
    return LAST_RATE + (FIRST_RATE - LAST_RATE) * (1 + math.cos(math.pi * step / max_steps)) / 2


def side_by_side(
    function: Callable[..., tuple[Fit, Floats]], jobs: Sequence[tuple[Any, ...]], stop: threading.Event
) -> list[tuple[Fit, Floats]]:
    """Call a function with the arguments of each job, each on one thread, running as many at once as torch has threads.

    Threads within a fit help little, since its products are small, and cost much on shared processors, since the
    threads of one product wait for each other. The result would also depend on their number. If a job fails or the user
    interrupts, `stop` is set, so that the others end.
    """
    threads = torch.get_num_threads()
    if threads == 1:
        return [function(*job) for job in jobs]

    def call(job: tuple[Any, ...]) -> tuple[Fit, Floats]:
        try:
            return function(*job)
        except BaseException:
            stop.set()
            raise

        # The caller's number of threads stays unchanged: the setting belongs to the thread. Only the initial number for
        # new threads is global, and is restored.

    pool = ThreadPoolExecutor(min(len(jobs), threads), initializer=torch.set_num_threads, initargs=(1,))
    try:
        futures = [pool.submit(call, job) for job in jobs]
        errors = [error for future in futures if (error := future.exception()) is not None]
        for error in sorted(errors, key=lambda error: isinstance(error, _Stopped)):
            raise error
        return [future.result() for future in futures]
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


class _Stopped(Exception):  # noqa: N818 it is no error
    """A fit has ended because another one failed or the user interrupted."""


_DRAWING = threading.Lock()
"""Held while the global random state is borrowed."""


def new_model(vocabulary: int, dim: int, seed: int, options: FitOptions) -> CompositionModel:
    """Return a model with weights drawn from a seed; the global random state does not change."""
    # Drawn on the CPU, so that weights are equal on every device; torch.manual_seed would also reseed CUDA.
    with _DRAWING, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return CompositionModel(vocabulary, dim, layer=options.layer, layers=options.layers, width=options.width)


def fit(
    model: CompositionModel,
    train: tuple[SceneTensors, Tensor],
    validation: tuple[SceneTensors, Tensor],
    *,
    max_steps: int,
    seed: int,
    bar: Any,
    stop: threading.Event | None = None,
    dropout: float = 0.0,
    validate_every: int = VALIDATE_EVERY,
) -> Fit:
    """Train `model` in place on 1 − cos and leave it at its best validation score; return that step and the curve.

    `train` and `validation` are inputs and unit targets [n, dim] on the model's device (a target of zeros has no
    influence). `bar` is a tqdm bar. `stop`, once set, ends the fit with an exception. `dropout` is the rate of
    post-norm layers. Raises FloatingPointError if the validation score is not finite.
    """
    inputs, targets = train
    # The fused step is the same arithmetic up to rounding, and about 6 times as fast as the plain loop.
    optimizer = torch.optim.Adam(model.parameters(), lr=FIRST_RATE, betas=BETAS, weight_decay=WEIGHT_DECAY, fused=True)
    best, best_step, best_state = -math.inf, 0, _copy_of_state(model)
    waited, curve, losses = 0, Curve(), []
    drop = dropout_of(dropout, seed, targets.device)
    for step, index in zip(range(1, max_steps + 1), _batches(targets, seed), strict=False):
        optimizer.param_groups[0]["lr"] = learning_rate(step - 1, max_steps)
        batch = inputs[index]
        loss = 1 - _cosines(model(batch.counts, batch.padding, drop), targets[index]).mean()
        losses.append(loss.detach())
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        bar.update()
        if stop is not None and stop.is_set():
            raise _Stopped
        if step % validate_every and step != max_steps:
            continue
        score = _validation_score(model, *validation)
        curve.steps.append(step)
        curve.training.append(1 - float(torch.stack(losses).double().mean()))
        curve.validation.append(score)
        losses.clear()
        if not math.isfinite(score):
            raise FloatingPointError(f"The fit diverged: validation score {score} at step {step}.")
        if score > best:
            best, best_step, best_state, waited = score, step, _copy_of_state(model), 0
        else:
            waited += 1
        bar.set_postfix(validation=f"{score:.4f}", best=f"{best:.4f}")
        if waited == PATIENCE:
            break
    model.load_state_dict(best_state)
    return Fit(best_step, curve)


def _batches(targets: Tensor, seed: int) -> Iterator[Tensor]:
    """Yield the indices of batches without end, every scene once per epoch."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(targets), generator=generator).to(targets.device)
        yield from torch.split(order, BATCH)


def _copy_of_state(model: nn.Module) -> dict[str, Tensor]:
    # state_dict() alone holds the live parameters, which the next step would overwrite.
    return {name: value.clone() for name, value in model.state_dict().items()}


def _validation_score(model: CompositionModel, inputs: SceneTensors, targets: Tensor) -> float:
    return float(_cosines(predict_rows(model, inputs), targets).double().mean())


def _cosines(predictions: Tensor, unit_targets: Tensor) -> Tensor:
    return (functional.normalize(predictions, dim=-1) * unit_targets).sum(dim=-1)


@torch.no_grad()
def predict_rows(model: CompositionModel, inputs: SceneTensors) -> Tensor:
    """Return a model's predictions [n, dim], computed for ROWS_AT_ONCE rows at a time."""
    parts = zip(torch.split(inputs.counts, ROWS_COMPARED), torch.split(inputs.padding, ROWS_COMPARED), strict=True)
    return torch.cat([model(counts, padding) for counts, padding in parts])


def check_scenes(scenes: Any, n: int) -> None:
    """Raise ValueError unless there are n scenes, none of them empty, of sources with the same attributes."""
    check_length("scenes", scenes, n)
    expected: set[str] | None = None
    for row, scene in enumerate(scenes):
        if isinstance(scene, str | Mapping) or not len(scene):
            raise ValueError(f"scenes[{row}] must be a list of one or more sources; got {scene!r}.")
        for k, source in enumerate(scene):
            if not isinstance(source, Mapping) or not source:
                raise ValueError(f"scenes[{row}][{k}] must map attributes to labels; got {source!r}.")
            if expected is None:
                expected = set(source)
            if set(source) != expected:
                raise ValueError(
                    f"scenes[{row}][{k}] has the attributes {sorted(source)}; all sources must have the attributes of "
                    f"the first, {sorted(expected)}."
                )
            for name, label in source.items():
                if not isinstance(label, str):
                    raise ValueError(f"scenes[{row}][{k}] has {name} {label!r}; a label must be a string.")
