"""Two clips, and two captions that differ in one word: a negation, or a number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pydantic import Field

from ..data import AUDIO, TEXT, WHOLE, DataColumn, DatasetError, Row
from ..scenes.pool import Use
from ..scenes.slots import EVENTS_COLUMN, SUITING, SlotPool, SlotSpec, in_slots
from ..sounds.entries import Sounds
from .base import Drawn, Recipe
from .captioned_items import ORIGINS, check_events

SLOTS = 5
"""Slots of a clip."""

NEITHER = -1
"""Index of the negating caption if there is none."""


@dataclass(frozen=True)
class OneWord:
    """Two captions that differ in one word.

    Attributes:
        name: name of the template.
        denying: true of the first clip and false of the second; for numbers, the smaller one.
        affirming: true of the second and false of the first.
    """

    name: str
    denying: str
    affirming: str


_NO = OneWord("no", "{x} and no {z}", "{x} and some {z}")
_WITHOUT = OneWord("without", "{x} without {z}", "{x} with {z}")
_NOTHING_ELSE = OneWord("nothing else", "{x} and nothing else", "{x} and something else")
_NOTHING_BESIDES = OneWord("nothing besides", "nothing besides {x}", "something besides {x}")
_NOT_ONLY = OneWord("not only", "not only {x}", "only {x}")
_NOT_JUST = OneWord("not just", "not just {x}", "just {x}")
_TIMES = OneWord("times", "{x} heard two times", "{x} heard three times")
_THAN = OneWord("than", "fewer {x} than {z}", "more {x} than {z}")
_NOT_BEFORE = OneWord("not before", "{x} not before {z}", "{x} before {z}")
_NOT_AFTER = OneWord("not after", "{z} not after {x}", "{z} after {x}")

WORDINGS: Mapping[str, Sequence[tuple[OneWord, OneWord]]] = {
    "absence": ((_NO, _NO), (_WITHOUT, _WITHOUT)),
    "only": ((_NOTHING_ELSE, _NOT_ONLY), (_NOTHING_BESIDES, _NOT_JUST)),
    "number": ((_TIMES, _TIMES), (_THAN, _THAN)),
    "order": ((_NOT_BEFORE, _NOT_BEFORE), (_NOT_AFTER, _NOT_AFTER)),
}
"""The templates of each kind, each with the template of its mirror item: captions about the same two clips that deny
what the other item affirms."""


class NegationSpec(SlotSpec):
    """Everything that determines the items and their samples. Defaults are the sizes of the preset ``full``."""

    items: int = Field(
        800, ge=1, le=20_000, description="Number of items; two successive items are about the same two clips."
    )

    @property
    def num_samples(self) -> int:
        """Return the number of samples of a clip."""
        return self.samples_of(SLOTS)


class Negations(Recipe[NegationSpec]):
    """Two clips and two captions that differ in one word; each caption is true of one clip and false of the other.

    Items come in mirrored pairs about the same two clips: in one item, the caption with the negation (or the smaller
    number) is true of the first clip; in the other item, of the second clip. A model that prefers a word for a clip is
    therefore right in one of the items and wrong in the other.
    """

    name = "negation"
    suiting = SUITING

    @cached_property
    def presets(self) -> Mapping[str, NegationSpec]:
        """Return the settings of each preset, by name."""
        return {"mini": NegationSpec(items=160), "full": NegationSpec()}

    def columns(self, spec: NegationSpec) -> Sequence[DataColumn]:
        """Return the columns of an item."""
        return (
            DataColumn("id", TEXT, "name of the row"),
            DataColumn("audio", [AUDIO], "the clips", per="captions"),
            DataColumn("captions", [TEXT], "caption n is true of clip n, and false of the other", count=2),
            EVENTS_COLUMN,
            DataColumn("kind", TEXT, "kind of the item", choices=tuple(WORDINGS)),
            DataColumn("template", TEXT, "name of the template of the captions"),
            DataColumn("negated", WHOLE, "index of the negated caption; −1 for numbers", choices=(NEITHER, 0, 1)),
            DataColumn(
                "pair", TEXT, "the labels of both clips; items with the same labels are not independent samples"
            ),
            DataColumn("domain", TEXT, "domain of the sounds"),
            DataColumn("origin", TEXT, "`synthetic` (tones) or `recordings`", choices=ORIGINS[:2]),
        )

    def draw(self, spec: NegationSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Yield the items; kinds, templates, labels and sounds are used equally often, in turn.

        Raises:
            DatasetError: there are too few labels.
        """
        pool = SlotPool(sounds)
        uses: dict[str, Use] = defaultdict(Use)
        for number in range(0, spec.items, 2):
            rng = self.random(spec, number)
            turn, place = divmod(number // 2, len(WORDINGS))
            kind = list(WORDINGS)[place]
            use = uses[kind]
            # Shuffle: otherwise the first of the least-used labels would have one role too often.
            labels = rng.permutation(pool.draw_names(3 if kind == "absence" else 2, use, rng)).tolist()
            x, *rest = pool.draw_recordings([labels[0], *labels] if kind == "only" else labels, use, rng)
            start = int(rng.integers(SLOTS - 1))
            # The captions deny something about the first clip.
            if kind == "number":
                # The clips differ in one sound between the first and the last, so that these two do not reveal the
                # number.
                changed, (y,), start = int(rng.integers(1, SLOTS - 1)), rest, 0
                kept = [(x, y)[n % 2] for n in rng.permutation(SLOTS - 1)]
                numbers = [[*kept[:changed], one, *kept[changed:]] for one in (y, x)]
            elif kind == "order":
                numbers = [[rest[0], x], [x, rest[0]]]
            else:
                # What both clips have in common is in the same slot of each.
                way = 1 if rng.integers(2) else -1
                numbers = [[x, one][::way] for one in rest]
            spoken = {pool.entries[one].label: pool.said(one) for one in (x, *rest)}
            names = [spoken[label] for label in labels]
            wordings = WORDINGS[kind][turn % len(WORDINGS[kind])]
            turned = int(rng.integers(2))
            clips = [in_slots(of_clip, spec, start) for of_clip in (numbers[::-1] if turned else numbers)]
            for mirror, wording in enumerate(wordings[: spec.items - number]):
                # The mirrored item is about the other clip; if both have the same sound, with other words.
                said = names if not mirror or kind == "only" else [*names[:-2], names[-1], names[-2]]
                words = {"x": said[0], "z": said[-1]}
                captions = [wording.denying.format(**words), wording.affirming.format(**words)]
                first = turned ^ mirror
                row = {
                    "id": f"{self.name}-{number + mirror:05d}",
                    "captions": captions[::-1] if first else captions,
                    "events": [pool.heard(clip, spec.sample_rate) for clip in clips],
                    "kind": kind,
                    "template": wording.name,
                    "negated": NEITHER if kind == "number" else first,
                    "pair": " | ".join(sorted(names)),
                    "domain": spec.domain_name,
                    "origin": ORIGINS[not spec.is_of_tones],
                }
                yield Drawn(row, clips)

    def check_row(self, row: Row) -> None:
        """Raise an error if the two captions are equal, or events are impossible; see `Recipe.check_row`."""
        super().check_row(row)
        if row["captions"][0] == row["captions"][1]:
            raise DatasetError(
                f"row {row['id']}: both captions are {row['captions'][0]!r}; they must differ in one word"
            )
        for of_clip in row["events"]:
            check_events(row["id"], of_clip)


RECIPE = Negations()
