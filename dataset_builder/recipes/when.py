"""When is one of three sounds heard? Groups of clips with the same three time spans, in which three labels rotate."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError

from ..data import AUDIO, NUMBER, TEXT, WHOLE, DataColumn, DatasetError, Row
from ..scenes.mixing import Event, EventSounds
from ..scenes.pool import Use, evenly, least_drawn
from ..scenes.slots import SlotPool, SlotSpec
from ..sounds.annotations import STEPS
from ..sounds.entries import Sounds
from .base import Drawn, Recipe

SOUNDS = 3

FOLDS = 5
"""Parts into which each label's sounds are divided; a clip uses one part, so that a probe is tested on sounds that it
has not learnt. A label with fewer sounds has all of them in every part."""

TEMPLATES = {
    "when": "When is {label} heard? Answer with its onset and offset in seconds.",
    "until": "From when until when is {label} heard? Answer with its onset and offset in seconds.",
    "state": "State the onset and the offset of {label} in seconds.",
}

_ATTEMPTS = 100
"""Draws of spans for a group's sounds; a group is left out if its sounds are always split into several events."""


class WhenSpec(SlotSpec):
    """Everything that determines the rows and their samples.

    Raises:
        InputError: see `SlotSpec`; or the spans do not fit into a clip.
    """

    groups: int = Field(200, ge=FOLDS, le=10_000, description="Groups of three clips.")
    duration: float = Field(8.0, ge=2, le=60, description="Seconds of a clip.")
    shortest: float = Field(0.6, ge=0.1, le=20, description="Seconds of the shortest sound.")
    longest: float = Field(2.4, ge=0.1, le=20, description="Seconds of the longest sound.")
    event: float = Field(
        0.36, ge=0.1, le=10, description="Least time in seconds during which each sound is the only one."
    )
    gap: float = Field(
        0.12, ge=0, le=10, description="Least time in seconds between two onsets and between two offsets."
    )

    @model_validator(mode="after")
    def _check_spans(self) -> "WhenSpec":
        if not self.event <= self.shortest <= self.longest:
            raise InputError(
                f"event {self.event:g}, shortest {self.shortest:g} and longest {self.longest:g} must not decrease"
            )
        if SOUNDS * self.longest > self.duration:
            raise InputError(
                f"longest is {self.longest:g}; three sounds of this length need {SOUNDS * self.longest:g} s, but "
                "duration is "
                f"{self.duration:g}"
            )
        return self

    @property
    def num_samples(self) -> int:
        """Return the number of samples of a clip."""
        return round(self.duration * self.sample_rate)


class WhenHeard(Recipe[WhenSpec]):
    """Groups of three clips in which three labels rotate over the same spans, and a question about one label."""

    name = "when"

    @cached_property
    def presets(self) -> Mapping[str, WhenSpec]:
        """Return the settings of each preset, by name."""
        return {"mini": WhenSpec(groups=40), "full": WhenSpec()}

    def columns(self, spec: WhenSpec) -> Sequence[DataColumn]:
        """Return the columns: the clip, the question about one of its sounds, and the times of all sounds."""
        return (
            DataColumn("id", TEXT, "name of the row"),
            DataColumn("audio", AUDIO, "the clip"),
            DataColumn("question", TEXT, "the question, on one line; to be answered in free text"),
            DataColumn("label", TEXT, "label of the sound in question"),
            DataColumn("onset", NUMBER, "time in seconds at which it is first audible, measured"),
            DataColumn("offset", NUMBER, "time in seconds at which it is last audible, measured"),
            DataColumn(
                "events",
                [{"onset": NUMBER, "offset": NUMBER, "label": TEXT}],
                "onset and offset in seconds, measured, and label of each sound, by onset",
                count=SOUNDS,
            ),
            DataColumn("duration", NUMBER, "length of the clip in seconds"),
            DataColumn("group", TEXT, "name of the group: three clips with the same spans and labels"),
            DataColumn("fold", WHOLE, "part of each label's sounds that the clip uses"),
            DataColumn("template", TEXT, "wording of the question", choices=tuple(TEMPLATES)),
            DataColumn("domain", TEXT, "domain of the sounds"),
        )

    def draw(self, spec: WhenSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Yield the groups, three rows each: in row n, the first label is in span n."""
        # Few labels, so that a probe on frames sees each often enough to learn it.
        pool = SlotPool(sounds).some(SOUNDS, Use(), self.random(spec))
        use, measured = Use(), EventSounds(sounds, spec.sample_rate)
        asked, drawn = Counter[str](), 0
        for number in range(spec.groups):
            rng, fold = self.random(spec, number), number % FOLDS
            labels = evenly(pool.draw_names(SOUNDS, use, rng), asked, rng)
            asked[labels[0]] += 1
            entries = []
            for label in labels:
                # Whole groups of the label's sounds; all sounds if there are fewer groups than folds.
                every = pool.by_label[label]
                groups = sorted({pool.group(entry) for entry in every})
                part = [entry for entry in every if groups.index(pool.group(entry)) % FOLDS == fold]
                entries.append(least_drawn(part or list(every), use.recordings, rng))
            use.recordings.update(entries)
            template = list(TEMPLATES)[int(rng.integers(len(TEMPLATES)))]
            clips = next(filter(None, (_clips(spec, measured, entries, rng) for _ in range(_ATTEMPTS))), ())
            drawn += len(clips)
            said = [pool.said(entry) for entry in entries]
            for turn, (clip, times) in enumerate(clips):
                heard = sorted(zip(times, said, strict=True))
                row = {
                    "id": f"{self.name}-{number:05d}-{turn}",
                    "question": TEMPLATES[template].format(label=said[0]),
                    "label": said[0],
                    **dict(zip(("onset", "offset"), times[0], strict=True)),
                    "events": [{"onset": a, "offset": b, "label": one} for (a, b), one in heard],
                    "duration": spec.duration,
                    "group": f"{self.name}-{number:05d}",
                    "fold": fold,
                    "template": template,
                    "domain": spec.domain_name,
                }
                yield Drawn(row, [clip])
        if not drawn:
            raise DatasetError(
                f"{pool.source}: in every group, a sound is split into several events by silence; longer or "
                "steadier sounds are needed"
            )

    def check_row(self, row: Row) -> None:
        """Raise an error if times are outside of the clip, or the sound in question is not among the events."""
        super().check_row(row)
        asked = {name: row[name] for name in ("onset", "offset", "label")}
        times = [0.0, row["onset"], row["offset"], row["duration"]]
        if asked not in row["events"] or times != sorted(times) or row["onset"] == row["offset"]:
            raise DatasetError(f"row {row['id']}: {asked} is not one of its events, or not within its {times[-1]:g} s")


def _clips(
    spec: WhenSpec, measured: EventSounds, entries: Sequence[int], rng: np.random.Generator
) -> list[tuple[list[Event], list[tuple[float, float]]]]:
    """Return the three clips with the measured times of each entry.

    Empty if a sound is the only one for too short a time, two begin or end together, or one is split into several
    events.
    """
    length = round(STEPS * spec.duration)
    lengths = rng.integers(round(STEPS * spec.shortest), round(STEPS * spec.longest) + 1, SOUNDS)
    onsets = [int(rng.integers(length - of_sound + 1)) for of_sound in lengths]
    spans = [(onset, onset + int(of_sound)) for onset, of_sound in zip(onsets, lengths, strict=True)]
    times = np.zeros((SOUNDS, length), bool)
    for row, (first, last) in zip(times, spans, strict=True):
        row[first:last] = True
    alone = (times & (times.sum(axis=0) == 1)).sum(axis=1) / STEPS
    apart = min(int(np.diff(np.sort(ends)).min()) for ends in zip(*spans, strict=True)) / STEPS
    if alone.min() < spec.event or apart < spec.gap:
        return []
    clips = []
    for turn in range(SOUNDS):
        step = spec.sample_rate // STEPS
        turned = [*spans[turn:], *spans[:turn]]
        clip = [Event(entry, step * a, step * b) for entry, (a, b) in zip(entries, turned, strict=True)]
        activities: list[Any] = [measured.activity([event]) for event in clip]
        if any(len(activity) != 1 for activity in activities):
            return []
        clips.append((clip, [(a / STEPS, b / STEPS) for ((a, b),) in activities]))
    return clips


RECIPE = WhenHeard()
