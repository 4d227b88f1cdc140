"""Captioned scenes for training, with true captions of their parts and false captions that differ slightly
(arXiv 2310.08753)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, get_args

from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError

from ..data import AUDIO, TEXT, DataColumn, DatasetError, Row
from ..scenes import captioned
from ..scenes.sources import random_generator
from ..texts.captions import draw_tree
from ..texts.truth import MOST_POSITIVES, HeardEvent, NegativeKind, true_parts, wholes
from ..texts.truth import negatives as false_texts
from .captioned_items import (
    CaptionedRecipe,
    CaptionedRendering,
    CaptionedScene,
    SequenceSpec,
    check_events,
    draw_named,
    none_left,
)

if TYPE_CHECKING:
    import numpy as np

_SCENES, _TEXTS = 39, 40
"""Random streams."""

_SPLITS = ("train", "validation")

_CAPTIONS, _NEGATIVES, _ABSENT = 4, 8, 2
"""Most equivalent captions and negatives of a row, and most labels that are drawn as absent."""

_COLUMNS = (
    DataColumn("id", TEXT, "name of the row"),
    DataColumn("audio", AUDIO, "the clip"),
    DataColumn(
        "captions",
        [TEXT],
        f"up to {_CAPTIONS} equivalent captions; for sequences, half mention the first sound last",
        least=1,
        filled=True,
    ),
    DataColumn("parts", [TEXT], f"captions of parts, up to {MOST_POSITIVES}", filled=True),
    DataColumn(
        "negatives",
        [{"text": TEXT, "kind": TEXT}],
        f"up to {_NEGATIVES} false captions close to the first caption, each with its `kind`",
    ),
    DataColumn("events", [captioned.EVENT], captioned.EVENTS_MEANING),
    DataColumn("expression", TEXT, "meaning of the captions, equal for rows of the same meaning"),
)


class TrainingSpec(SequenceSpec):
    """Everything that determines the rows and their samples. Defaults are the sizes of the preset ``full``."""

    train_rows: int = Field(20_000, ge=1, le=1_000_000, description="Rows of the split `train`.")
    validation_rows: int = Field(
        1_000, ge=0, le=100_000, description="Rows of the split `validation`; none if its labels cannot occur together."
    )
    single: float = Field(0.1, ge=0, le=1, description="Share of rows with one event.")
    three: float = Field(0.2, ge=0, le=1, description="Share of rows with three events.")
    four: float = Field(0.0, ge=0, le=1, description="Share of rows with four events; the rest have two.")

    @model_validator(mode="after")
    def _check_shares(self) -> Self:
        if self.single + self.three + self.four > 1:
            total = self.single + self.three + self.four
            raise InputError(f"single + three + four is {total:g}; the shares must add up to 1 at most")
        return self

    @property
    def most_parts(self) -> int:
        """Return the largest number of parts of a sequence."""
        return 4 if self.four else 3

    def draw_size(self, rng: np.random.Generator) -> int:
        """Draw the number of events of a row."""
        place = rng.random()
        for size, share in ((1, self.single), (3, self.three), (4, self.four)):
            if place < share:
                return size
            place -= share
        return 2


class _Training(CaptionedRecipe[TrainingSpec]):
    """The recipe; see `Recipe`."""

    name = "comp_a_train"
    version = 3
    splits = _SPLITS
    # The share of clips with each number of events, as in the authors' release.
    suiting = MappingProxyType({"different_kinds": True, "repeats": True, "single": 0.0, "three": 0.6, "four": 0.1})

    @cached_property
    def presets(self) -> Mapping[str, TrainingSpec]:
        """Return the settings of each preset, by name; the paper has no such clips, so ``paper-`` presets are equal."""
        mini, full = TrainingSpec(train_rows=4_000, validation_rows=200), TrainingSpec()
        return {"mini": mini, "full": full, "paper-mini": mini, "paper-full": full}

    def columns(self, spec: TrainingSpec) -> Sequence[DataColumn]:
        """Return the columns of a row: its clip, its true texts and its false ones."""
        return _COLUMNS

    def scenes(self, spec: TrainingSpec, palette: captioned.Palette, split: str) -> Iterator[CaptionedScene]:
        """Yield scenes; no two say the same about the same sounds, and none has labels of a novel pair.

        Raises:
            InputError: there are not enough different scenes.
            DatasetError: no two labels can occur together.
        """
        setting, count = f"{split}_rows", getattr(spec, f"{split}_rows")
        labels = list(palette.by_split[split])
        if not any(map(palette.can_train, combinations(labels, 2))):
            if split == _SPLITS[0]:
                raise DatasetError(f"{palette.source} has no two training labels that can occur together in a clip")
            return
        drawn: set[Any] = set()
        for number in range(count):
            rng = random_generator(spec.seed, _SCENES, _SPLITS.index(split), number)
            size = spec.draw_size(rng)
            # Fewer events if not enough labels can occur together.
            while size > 2 and palette.draw_meeting(size, labels, rng) is None:
                size -= 1
            tree = draw_tree(size, rng)
            gap = spec.draw_gap(rng)
            spans = captioned.draw_spans(tree, spec.num_samples, gap, rng)
            late = spec.draw_late(size, rng) if captioned.is_overlay(tree) else ()
            # A simultaneous sound begins shortly after the common start.
            latest = captioned.LATEST_START if captioned.is_overlay(tree) else 0.0
            seconds = [(stop - start) / spec.sample_rate - latest for start, stop in spans]
            for attempt in range(captioned.MOST_DRAWS):
                picked = draw_named(palette, split, labels, seconds, rng)
                may_repeat = spec.repeats and attempt >= captioned.FEW_DRAWS
                if picked is not None and ((tree, *picked) not in drawn or may_repeat):
                    drawn.add((tree, *picked))
                    break
            else:
                raise none_left(setting, count, number, spec)
            sounds, mentioned = picked
            said = captioned.replaced(tree, [palette.leaf(sound, mentioned) for sound in sounds])
            clip = captioned.TimedClip(tree, sounds, spans)
            yield CaptionedScene(split, number, (clip,), (said,), gap=gap, late=late)

    def row(self, scene: CaptionedScene, events: Sequence[Sequence[Row]], rendering: CaptionedRendering) -> Row:
        """Return the columns of a row, after testing its texts against its events."""
        (rows,), (expression,) = events, scene.said
        palette = rendering.palette
        rng = random_generator(rendering.spec.seed, _TEXTS, _SPLITS.index(scene.split), scene.number)
        of_clip = [HeardEvent.of(event) for event in rows]
        captions = wholes(expression, rng, most=_CAPTIONS, held_out=False)
        heard = tuple(dict.fromkeys(leaf.label for leaf in captioned.leaves(expression)))
        unheard = [name for name in palette.by_split[scene.split] if palette.can_meet((*heard, name))]
        absent = rng.permutation(unheard)[:_ABSENT].tolist() if unheard else []
        said, wording, _ = captions[0]
        false = false_texts(said, wording, of_clip, rng, most=_NEGATIVES, absent=absent, held_out=False)
        true = true_parts(expression, of_clip, rng, most=MOST_POSITIVES, held_out=False)
        return {
            "captions": [text for *_, text in captions],
            "parts": [text for _, text in true],
            "negatives": [{"text": negative.text, "kind": negative.kind} for negative in false],
            "events": list(rows),
            "expression": captioned.formula(expression),
        }

    def check_row(self, row: Row) -> None:
        """Raise an error if a row lacks captions, negatives with their kind, or events.

        Raises:
            DatasetError: names the row and what is wrong.
        """
        super().check_row(row)
        for negative in row["negatives"]:
            if negative["kind"] not in get_args(NegativeKind):
                kinds = ", ".join(map(repr, get_args(NegativeKind)))
                raise DatasetError(
                    f"row {row['id']}: a negative is {negative!r}; it must have a text and a kind: {kinds}"
                )
        check_events(row["id"], row["events"])


RECIPE = _Training()
