"""Pairs of scenes of the same parts, bound differently: who says what is exchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.text import listed

from ..data import DatasetError, Pcm16, Row
from ..scenes.mixing import exact_clips
from ..scenes.pool import RecordingPool, Use, evenly, least_drawn
from ..scenes.recorded import (
    RecordedRendering,
    RecordedSettings,
    check_lists,
    check_texts,
    describe_placing,
    describe_recordings,
)
from ..scenes.sources import random_generator
from ..sounds.entries import related

if TYPE_CHECKING:
    import numpy as np
    from datasets import Features

    from ..sounds.entries import Sounds

_TRIALS, _PLACES = 22, 23
"""The random streams."""

CLIPS = ("X1", "Y1", "X2", "Y2")

ACROSS = ("X3", "Y3")
"""Columns with a list of one clip, or of none."""

_SCENES = ((0, 1), (2, 3))
"""Which of the four recordings X and Y have."""

Four = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class BindingSettings(RecordedSettings):
    """Everything that decides the trials and their samples.

    Attributes:
        trials: how many rows.

    Raises:
        InputError: see `RecordedSettings`.
    """

    trials: int = 360

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("trials", self.trials, 1, 100_000)


@dataclass(frozen=True)
class Binding:
    """A row: two labels w and w′, and two conditions u and v.

    Attributes:
        number: of the row.
        labels: w and w′.
        conditions: u and v.
        instances: numbers of the recordings (u, w), (v, w′), (u, w′), (v, w): X has the first two, Y the others.
        conditions_across: another condition related to u, and one related to v; none where there are no such.
        instances_across: the same four of these.
    """

    number: int
    labels: tuple[str, ...]
    conditions: tuple[str, str]
    instances: Four
    conditions_across: tuple[str, ...] = ()
    instances_across: Four = ()


class RenderedBindings(RecordedRendering[BindingSettings]):
    """The trials of some settings and their sound; see `Rendering`."""

    @cached_property
    def bindings(self) -> tuple[Binding, ...]:
        """The trials, in the order of `rows`."""
        return tuple(draw_bindings(self.pool, self.settings))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Rows without their audio."""
        return tuple(
            {
                "id": f"{RECIPE.name}-{binding.number:05d}",
                "split": "test",
                "labels": list(binding.labels),
                "conditions": list(binding.conditions),
                "conditions_across": list(binding.conditions_across),
                "instances": self.ids(binding.instances),
                "instances_across": self.ids(binding.instances_across),
                "eq_db": self.settings.eq_db,
                "domain": self.settings.domain_name,
            }
            for binding in self.bindings
        )

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The clips X1, Y1, X2, Y2, and X3, Y3 where there are other conditions."""
        binding = self.bindings[index]
        layers = [
            self.placed(number, _PLACES, binding.number, scene, place)
            for scene, numbers in enumerate((binding.instances, binding.instances, binding.instances_across))
            for place, number in enumerate(numbers)
        ]
        clips = [[first + n for n in scene] for first in range(0, len(layers), 4) for scene in _SCENES]
        return exact_clips(layers, clips)


def draw_bindings(pool: RecordingPool, settings: BindingSettings) -> Iterator[Binding]:
    """The trials of some settings, one after the other; further ones change none of those before.

    Conditions, labels and recordings are used as evenly as they can be. The random numbers of a row depend on the seed
    and its number alone.

    Raises:
        DatasetError: no two conditions share two labels: says what there is.
    """
    use = Use()
    for number in range(settings.trials):
        rng = random_generator(settings.seed, _TRIALS, number)
        # Those that are related serve where there are no others, as two voices of the only synthesiser do.
        pairs = chain.from_iterable(pool.pairs(2, use, rng, unrelated=unrelated) for unrelated in (True, False))
        pair = next(pairs, None) if pool.has_conditions else None
        if pair is None:
            raise DatasetError(_why_none(pool))
        first, second = (pool.by_condition[condition] for condition in pair)
        labels = tuple(evenly([label for label in first if label in second], use.labels, rng)[:2])
        instances = _draw_four(pool, pair, labels, use, rng)
        across = _draw_across(pool, pair, labels, use.conditions, rng)
        use.labels.update(labels)
        use.conditions.update((*pair, *across))
        use.pairs[frozenset(pair)] += 1
        of_others = _draw_four(pool, across, labels, use, rng) if across else ()
        yield Binding(number, labels, pair, instances, across, of_others)


def _draw_four(
    pool: RecordingPool, pair: Sequence[str], labels: Sequence[str], use: Use, rng: np.random.Generator
) -> Four:
    """The recordings (u, w), (v, w′), (u, w′), (v, w)."""
    (u, v), (one, other) = pair, labels
    cells = ((u, one), (v, other), (u, other), (v, one))
    drawn = tuple(least_drawn(pool.by_condition[condition][label], use.recordings, rng) for condition, label in cells)
    use.recordings.update(drawn)
    return drawn


def _draw_across(
    pool: RecordingPool, pair: tuple[str, str], labels: Sequence[str], use: Counter[str], rng: np.random.Generator
) -> tuple[str, ...]:
    """Another condition with both labels that is related to the first of a pair, and one to the second.

    By their being related it is said which is to stand for which: without that the sign of X3 − Y3 would mean nothing.
    """
    if related(*pair):
        return ()
    across = []
    cells = [pool.by_condition[condition][label] for condition in pair for label in labels]
    groups = {pool.group(number) for cell in cells for number in cell}
    for condition in pair:
        candidates = [
            name
            for name, cell in pool.by_condition.items()
            if name != condition
            and related(name, condition)
            and all(label in cell for label in labels)
            and not any(pool.group(number) in groups for label in labels for number in cell[label])
        ]
        across += evenly(candidates, use, rng)[:1]
    return tuple(across) if len(across) == 2 else ()


def _why_none(pool: RecordingPool) -> str:
    needed = "trials need two conditions with recordings of the same two labels"
    if not pool.has_conditions:
        return f"{pool.source} has no conditions, and {needed}: LABEL/CONDITION/file, or a column of conditions"
    best, pair = pool.best_pair(unrelated=False)
    if pair is None:
        return f"{pool.source} has one condition ({listed([repr(name) for name in pool.by_condition])}); {needed}"
    return f"{pool.source}: {needed}; {' and '.join(map(repr, pair))} share most, {best}"


class _Bindings:
    """The recipe; see `Recipe`."""

    name = "binding"
    version = 1
    splits = ("test",)
    one_length = True

    @cached_property
    def presets(self) -> Mapping[str, BindingSettings]:
        """Settings by the name of a preset, of the timbres of the project's own voices."""
        return {"mini": BindingSettings(trials=90), "full": BindingSettings()}

    def of_recordings(
        self, settings: BindingSettings, recordings: Sounds, requested: Mapping[str, Any]
    ) -> BindingSettings:
        """Recordings in place of timbres; see `RecordedRecipe`."""
        return replace(settings, **{**requested, "recordings": recordings})

    def features(self, settings: BindingSettings) -> Features:
        """X3 and Y3 are lists, empty where there are no other conditions."""
        from datasets import Audio, Features, List, Value

        audio, text = Audio(sampling_rate=settings.sample_rate), Value("string")
        return Features(
            {
                "id": text,
                **dict.fromkeys(CLIPS, audio),
                **{name: List(audio) for name in ACROSS},
                **{name: List(text) for name in ("labels", "conditions", "conditions_across")},
                **{name: List(text) for name in ("instances", "instances_across")},
                "eq_db": Value("float64"),
                "domain": text,
            }
        )

    def clip_names(self, row: Row) -> Sequence[str]:
        """X1, Y1, X2, Y2, and X3/0, Y3/0 where there are other conditions."""
        return (*CLIPS, *(f"{name}/0" for name in ACROSS if row["conditions_across"]))

    def render(self, settings: BindingSettings) -> RenderedBindings:
        """Draw the rows; nothing is written."""
        return RenderedBindings.of(settings)

    def check_row(self, row: Row) -> None:
        """Refuse a row that does not say which labels and conditions it has."""
        check_lists(row, ("labels", "conditions"), count=2)
        check_lists(row, ("instances",), count=4)
        check_lists(row, ("conditions_across",))
        across = bool(row["conditions_across"])
        check_lists(row, ("conditions_across",), count=2 * across)
        check_lists(row, ("instances_across",), count=4 * across)
        check_texts(row, ("domain",))

    def describe(self, settings: BindingSettings) -> str:
        """Markdown of the card."""
        return f"""\
{settings.trials:,} trials of scenes of two sources: X = {{(u, w), (v, w′)}} and Y = {{(u, w′), (v, w)}}, where u says
w and v says w′, and the other way round: the same labels under the same conditions, bound differently. Does an
embedding know which goes with which? One that is a sum of a part for labels and a part for conditions does not: its X
and Y are the same.

{describe_recordings(settings)} X1 and Y1, X2 and Y2 are the same four recordings, placed and filtered anew. X3 and Y3
have other conditions, the first related to u, the second to v, as two voices of one synthesiser are; they are missing
where there are no such. Conditions, labels and recordings are used as evenly as they can be (seed {settings.seed}).

| column | content |
|---|---|
| `id` | name of the row |
| `X1`, `Y1`, `X2`, `Y2` | clips: {settings.duration:g} s, mono, {settings.sample_rate} Hz, 16-bit |
| `X3`, `Y3` | lists of one such clip, or of none |
| `labels` | w and w′ |
| `conditions` | u and v; `conditions_across`: those of X3 and Y3, or none |
| `instances` | names of the recordings (u, w), (v, w′), (u, w′), (v, w); `instances_across`: those of X3 and Y3 |
| `eq_db` | standard deviation of the filters at their knots |
| `domain` | what the recordings are |

{describe_placing(settings)} The clips of a row share one gain.
"""


RECIPE = _Bindings()
