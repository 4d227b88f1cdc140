"""Encoders with a known truth for the tasks across instances: embeddings are made from the rows of the recipes.

The oracle gives each label and each condition its own coordinate, and each context a vector in further coordinates: a
clip is the sum of its sources, plus its context. Every other encoder is a function of this one. They are scored on rows
of the recipes that are made of imagined recordings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import DatasetError, Row, to_waveform
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.sounds.entries import Sound, fingerprint_of_entries
from audio_compositionality.encoders.base import ModelCard
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.run.cache import CacheKey, EmbeddingCache
from audio_compositionality.support.files import sha256_of
from audio_compositionality.tasks.base import Outputs, Scores
from audio_compositionality.tasks.registry import load_task

from .checks import numbers, scored

Floats = NDArray[np.float64]

BLOCKS, BINDING, HELD_OUT = "a_coat_instances", "binding", "a_tre_held_out"
"""The tasks."""

LABELS = 24

ENGINES, VOICES = 12, 2
"""Conditions are voices of engines; voices of one engine are related."""

CONDITIONS = ENGINES * VOICES

CLASSES = 8
"""Number of classes K in a block of imagined recordings."""

NOWHERE = -1
"""The context of a source alone, and the added class of a context alone."""


class ImaginedRecordings:
    """A recording of every label under every condition, with metadata and without sound."""

    source = "imagined recordings"
    sample_rate = None
    suggested: Mapping[str, Any] = MappingProxyType({})

    def __init__(self) -> None:
        self.entries: Sequence[Sound] = tuple(
            _imagine(label, condition) for label in range(LABELS) for condition in range(CONDITIONS)
        )
        self.fingerprint = fingerprint_of_entries(self.entries)
        self.places = {entry.id: divmod(number, CONDITIONS) for number, entry in enumerate(self.entries)}
        """Numbers of the label and of the condition of each recording, by its id."""

    def waveform(self, index: int) -> tuple[Floats, int]:
        """Raise: imagined recordings have no sound.

        Raises:
            DatasetError: always.
        """
        raise DatasetError(f"{self.source}: {self.entries[index].id!r} has no sound")


def _imagine(label: int, condition: int) -> Sound:
    engine, voice = divmod(condition, VOICES)
    name, spoken = f"label {label:02d}", f"engine {engine:02d}/voice {voice}"
    digest = sha256_of(f"{name}, {spoken}".encode())
    return Sound(f"{name}/{spoken}", name, group=spoken, sha256=digest, condition=spoken)


@dataclass(frozen=True)
class Clips:
    """Clips of the rows of a task, in the order in which the task requests them.

    Attributes:
        rows: of the recipe.
        recordings: number of times each recording is in each clip, [n, LABELS, CONDITIONS].
        added: label of the source that was added to a context or is alone; `NOWHERE` if there is none. [n]
        contexts: number of the context of each clip; `NOWHERE` if there is none. [n]
    """

    rows: Sequence[Row]
    recordings: Floats
    added: NDArray[np.int64]
    contexts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.recordings)

    @cached_property
    def labels(self) -> Floats:
        """Return the number of sources with each label, [n, LABELS]."""
        return np.asarray(self.recordings.sum(axis=2))

    @cached_property
    def conditions(self) -> Floats:
        """Return the number of sources with each condition, [n, CONDITIONS]."""
        return np.asarray(self.recordings.sum(axis=1))

    @property
    def is_scene(self) -> NDArray[np.bool_]:
        """Whether a clip is a context with something added, [n]."""
        return np.asarray((self.contexts != NOWHERE) & (self.added != NOWHERE))


Encoder = Callable[[Clips], Floats]


def read_clips(task: str, rows: Sequence[Row], places: Mapping[str, tuple[int, int]]) -> Clips:
    """Return the clips of rows.

    Args:
        task: `BLOCKS` or `BINDING`.
        rows: rows of its recipe, made of imagined recordings.
        places: label and condition of each recording, see `ImaginedRecordings`.
    """
    parts = _parts_of_block if task == BLOCKS else _parts_of_trial
    clips = [
        (number, *parts(row, clip)) for number, row in enumerate(rows) for clip in load_task(task).inputs(row, {}).clips
    ]
    recordings = np.zeros((len(clips), LABELS, CONDITIONS))
    added, contexts = (np.full(len(clips), NOWHERE) for _ in range(2))
    for place, (number, side, context, alone) in enumerate(clips):
        for name in (*context, *alone):
            recordings[(place, *places[name])] += 1
        if alone:
            added[place] = places[alone[0]][0]
        if context:
            contexts[place] = 2 * number + side
    return Clips(rows, recordings, added, contexts)


Parts = tuple[int, Sequence[str], Sequence[str]]
"""The side (of two), the recordings of the context, and the added ones."""


def _parts_of_block(row: Row, clip: str) -> Parts:
    name, _, place = clip.partition("/")
    side = "bd".index(name[-1].lower()) if place else "AC".index(name)
    context = [] if name.startswith("alone") else row[f"context_{'ac'[side]}_instances"]
    return side, context, [row[f"instances_{'bd'[side]}"][int(place)]] if place else []


def _parts_of_trial(row: Row, clip: str) -> Parts:
    instances = row["instances_across" if clip[1] == "3" else "instances"]
    return 0, instances[:2] if clip[0] == "X" else instances[2:], []


@dataclass(frozen=True)
class InstancesPlan:
    """The amount of measurement.

    Attributes:
        blocks: number of blocks of imagined recordings.
        sounding: number of blocks of our timbres, which are rendered.
        linear: largest distance from chance of top-1 and pairwise of a linear encoder on rendered blocks.
        trials: number of trials of binding.
        scenes: settings that differ from the preset mini of the recipe of scenes.
        every: step between the measured levels of a dial, whose ends are always measured.
        randoms: number of random encoders.
    """

    blocks: int = 96
    sounding: int = 96
    linear: tuple[float, float] = (0.05, 0.06)
    trials: int = 360
    scenes: Mapping[str, Any] = field(default_factory=dict)
    every: int = 1
    randoms: int = 25


FULL = InstancesPlan()

SMALL = InstancesPlan(
    blocks=24,
    sounding=24,
    linear=(0.1, 0.12),
    trials=90,
    scenes={"scene_candidates": 20_000, "train_scenes": 256, "test_scenes": 128},
    every=2,
    randoms=10,
)
"""A quick plan, in seconds: fewer rows vary more, so the bands are wider."""


class InstancesMaterial:
    """Rows of the recipes and the scores of encoders on them."""

    def __init__(self, plan: InstancesPlan, seed: int) -> None:
        self.plan, self.seed = plan, seed
        self.recordings = ImaginedRecordings()

    @cached_property
    def clips(self) -> Mapping[str, Clips]:
        """Return the clips of blocks and trials of imagined recordings, by task."""
        of_blocks = {"blocks": self.plan.blocks, "classes": CLASSES, "context_sources": 2}
        changes: dict[str, dict[str, Any]] = {BLOCKS: of_blocks, BINDING: {"trials": self.plan.trials}}
        return {
            task: read_clips(
                task, self._rendering(task, sounds=self.recordings, **settings).rows, self.recordings.places
            )
            for task, settings in changes.items()
        }

    @cached_property
    def scenes(self) -> Sequence[Row]:
        """Return the rows of the recipe of scenes, of all splits."""
        rows: Sequence[Row] = self._rendering(load_task(HELD_OUT).info.recipe, **self.plan.scenes).rows
        return rows

    def _rendering(self, recipe: str, **changes: Any) -> Any:
        made = load_recipe(recipe)
        return made.render(made.presets["mini"].changed(seed=self.seed, **changes))

    def scores(self, task: str, encoder: Encoder) -> Scores:
        """Return the result of a task for an encoder."""
        clips = self.clips[task]
        return scored(task, clips.rows, Outputs(clips=encoder(clips)))

    def measures(self, task: str, encoder: Encoder) -> dict[str, float]:
        """Return the numbers of a task for an encoder, without missing ones."""
        return numbers(self.scores(task, encoder))

    def downsampled(self) -> tuple[Sequence[Row], Floats]:
        """Return rows of blocks of our timbres, and the embeddings of their sound by `downsample`."""
        rendering = self._rendering(BLOCKS, blocks=self.plan.sounding)
        model: Any = load_model("downsample")
        embeddings = [
            model.embed(to_waveform(np.stack(rendering.clips(place))), rendering.sample_rate)
            for place in range(len(rendering.rows))
        ]
        return rendering.rows, np.concatenate(embeddings, dtype=np.float64)


PLACES = 16
"""Number of coordinates of contexts."""

DIM = LABELS + CONDITIONS + PLACES

STRONG = 10.0
"""Length of the vectors of contexts and conditions, where a label has length 1."""

NUISANCE = 2.0
"""Length of a recording's own nuisance, where a label has length 1."""

COMMON = 4
"""Dimensions of the nuisance that is common to all conditions."""

_CONTEXTS, _NOISE, _BASIS, _RECORDINGS, _PAIRS = range(11, 16)  # independent random streams of one seed


def oracle(clips: Clips, seed: int, *, strength: float = STRONG, labels: Floats | None = None) -> Floats:
    """Return embeddings with separate coordinates for label, condition and context, [n, DIM].

    Args:
        clips: n clips.
        seed: of the vectors of contexts.
        strength: length of the vectors of contexts and conditions.
        labels: numbers that replace the number of sources with each label, [n, LABELS].
    """
    vectors = np.random.default_rng([seed, _CONTEXTS]).standard_normal((2 * len(clips.rows), PLACES)) / np.sqrt(PLACES)
    contexts = np.where((clips.contexts != NOWHERE)[:, None], vectors[clips.contexts], 0.0)
    embeddings: Floats = np.hstack(
        [clips.labels if labels is None else labels, strength * clips.conditions, strength * contexts]
    )
    return embeddings


def without_labels(clips: Clips, seed: int) -> Floats:
    """Return the oracle without labels."""
    return oracle(clips, seed, labels=np.zeros((len(clips), LABELS)))


def noise_of(clips: Clips, sd: float, seed: int, number: int = 0) -> Floats:
    """Return noise for each clip, with standard deviation `sd` in each of DIM coordinates."""
    noise: Floats = sd * np.random.default_rng([seed, _NOISE, number]).standard_normal((len(clips), DIM))
    return noise


def noisy(clips: Clips, sd: float, seed: int) -> Floats:
    """Return the oracle plus noise."""
    return oracle(clips, seed) + noise_of(clips, sd, seed)


def masked(clips: Clips, lost: float, sd: float, seed: int) -> Floats:
    """Return the noisy oracle; in a scene, the context masks the share `lost` of the added source's label."""
    labels = clips.labels.copy()
    scenes = np.flatnonzero(clips.is_scene)
    labels[scenes, clips.added[scenes]] -= lost
    return oracle(clips, seed, labels=labels) + noise_of(clips, sd, seed)


def counting(clips: Clips) -> Floats:
    """Return the number of sources along one direction, and nothing else."""
    embeddings = np.zeros((len(clips), DIM))
    embeddings[:, 0] = clips.labels.sum(axis=1)
    return embeddings


def calls(ids: Sequence[str], shuffled: bool, seed: int) -> Floats:
    """Return the number of earlier clips, modulo 8, as a one-hot vector, and nothing else.

    Args:
        ids: of the clips, row by row.
        shuffled: whether clips come in the order of an `EmbeddingCache`, else in the order of the rows.
        seed: of the data; the order depends on it.
    """
    order = np.arange(len(ids))
    if shuffled:
        key = CacheKey.of(ModelCard("calls", "1", 32_000, DIM), "blocks", str(seed))
        cache = EmbeddingCache(None, key, ids)
        order = np.array([number for shard in range(cache.num_shards) for number in cache.numbers(shard)])
    embeddings = np.zeros((len(ids), DIM))
    embeddings[order, np.arange(len(ids)) % 8] = 1
    return embeddings


def with_common_nuisance(clips: Clips, share: float, seed: int) -> Floats:
    """Return sums of random vectors of labels, of conditions and of recordings, [n, DIM]: a linear encoder.

    The vector of a recording is its nuisance, of length `NUISANCE`. A `share` of its squared length lies in `COMMON`
    dimensions that are the same under all conditions; the rest has no common direction.
    """
    rng = np.random.default_rng([seed, _RECORDINGS])
    basis = np.linalg.qr(np.random.default_rng([seed, _BASIS]).standard_normal((DIM, COMMON)))[0]
    labels, conditions = (rng.standard_normal((count, DIM)) / np.sqrt(DIM) for count in (LABELS, CONDITIONS))
    common = rng.standard_normal((LABELS, CONDITIONS, COMMON)) / np.sqrt(COMMON) @ basis.T
    rest = rng.standard_normal((LABELS, CONDITIONS, DIM)) / np.sqrt(DIM)
    nuisance = NUISANCE * (np.sqrt(share) * common + np.sqrt(1 - share) * rest)
    vectors = labels[:, None] + STRONG * conditions + nuisance
    embeddings: Floats = np.einsum("nlc,lcd->nd", clips.recordings, vectors)
    return embeddings


def bound(clips: Clips, share: float, sd: float, seed: int) -> Floats:
    """Return a part for labels plus a part for conditions, with `share` for each pair of both, plus noise.

    The squared length of each part is 1 on average: (1 − share)(label + condition) + share · (label and condition).
    """
    rng = np.random.default_rng([seed, _PAIRS])
    labels, conditions = (rng.standard_normal((count, DIM)) / np.sqrt(DIM) for count in (LABELS, CONDITIONS))
    together = rng.standard_normal((LABELS, CONDITIONS, DIM)) / np.sqrt(DIM)
    vectors = np.sqrt(1 - share) * (labels[:, None] + conditions) + np.sqrt(share) * together
    embeddings: Floats = np.einsum("nlc,lcd->nd", clips.recordings, vectors) + noise_of(clips, sd, seed)
    return embeddings


def products(clips: Clips, *, of_engines: bool = False) -> Floats:
    """Return a coordinate for each pair of label and condition, or of label and engine if `of_engines`."""
    counts = clips.recordings
    if of_engines:
        counts = counts.reshape(len(clips), LABELS, ENGINES, VOICES).sum(axis=3)
    return np.asarray(counts.reshape(len(clips), -1))


def turned(embeddings: Floats, seed: int, *, shift: float = 5_000.0) -> Floats:
    """Return embeddings in a random orthonormal basis, × 1,000, and shifted."""
    rng = np.random.default_rng([seed, _BASIS])
    dim = embeddings.shape[1]
    basis = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    moved: Floats = 1_000 * embeddings @ basis + shift * rng.standard_normal(dim)
    return moved
