"""The second algorithm: verifies the answer of a question, from frames of 10 ms and without intervals.

It is independent of the first: it uses no intervals of `annotations`, and the thresholds of an overlap are written down
a second time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.sounds.annotations import Annotation
from audio_compositionality.dataset_builder.texts.questions import Question, in_sentence, template_of

_SECOND = 1_000_000
_FRAME = 10_000

Mask = NDArray[np.bool_]
"""For each frame, whether something is active in it."""


class DisputedError(Exception):
    """Why a question about a clip has no answer that nobody disputes."""


def demand(is_so: bool, reason: str) -> None:
    """Nothing where it is so; else the question is `DisputedError`."""
    if not is_so:
        raise DisputedError(reason)


@dataclass(frozen=True)
class Heard:
    """A clip, frame by frame.

    Attributes:
        masks: of each label, with short silences filled.
        wide: the same, each sound extended on both sides by an inaudible margin.
        least_overlap, least_total, least_margin, least_onset: in frames.
        guard: the margin of `wide`, in frames.
        seconds: of the clip.
        resolution: seconds.
        sources: frames in which each source is active; None where labels do not distinguish sources.
    """

    masks: Mapping[str, Mask]
    wide: Mapping[str, Mask]
    least_overlap: int
    least_total: int
    least_margin: int
    least_onset: int
    guard: int
    seconds: float
    resolution: float
    sources: tuple[int, ...] | None

    def overlap(self, one: str, other: str) -> bool:
        """Whether two labels overlap for long enough."""
        return longest_run(self.masks[one] & self.masks[other]) >= self.least_overlap

    def apart(self, one: str, other: str) -> bool:
        """Whether two labels are apart beyond doubt."""
        return not np.any(self.wide[one] & self.wide[other])


def _distances(mask: Mask) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each frame, the distances in frames to the last and to the next active one."""
    frames, far = np.arange(len(mask)), 2 * len(mask) + 1_000_000
    before = frames - np.maximum.accumulate(np.where(mask, frames, -far))
    after = np.minimum.accumulate(np.where(mask, frames, far)[::-1])[::-1] - frames
    return before, after


def longest_run(mask: Mask) -> int:
    """Most consecutive active frames."""
    before, _ = _distances(~mask)
    frames = np.arange(len(mask))
    return int(np.where(mask, np.minimum(before, frames + 1), 0).max(initial=0))


def _filled(mask: Mask, most: int) -> Mask:
    """A mask without the gaps of at most so many frames."""
    before, after = _distances(mask)
    filled: Mask = before + after - 1 <= most
    return mask | filled


@lru_cache(maxsize=256)
def ways(annotation: Annotation) -> tuple[Heard, ...]:
    """The clip, once for each reading of uncertain events: 0.3 to 0.7; the first one has 0.5 and more."""
    certain = {event: 1.0 if event.confidence is None else event.confidence for event in annotation.events}
    doubtful = sorted({event.label for event, sure in certain.items() if 0.3 <= sure <= 0.7})
    ways = [{label: 0.5 for label in annotation.labels}]
    for several in ([], doubtful, *([label] for label in doubtful)):
        ways.append({label: 0.3 if label in several else 0.7 for label in annotation.labels})
        ways.append({label: 0.7 if label in several else 0.3 for label in annotation.labels})
    distinct = [way for number, way in enumerate(ways) if way not in ways[:number]] if doubtful else ways[:1]
    return tuple(_heard(annotation, way) for way in distinct)


def _heard(annotation: Annotation, thresholds: Mapping[str, float]) -> Heard:
    """The clip, with the events of each label that reach its threshold; a threshold of 0.7 has to be exceeded."""
    resolution = annotation.resolution
    frames = math.ceil(annotation.duration * 100) + 1
    middles = np.arange(frames) * _FRAME + _FRAME // 2
    most_silent, guard = frames_in(max(0.2, resolution)), frames_in(max(0.1, resolution))
    masks: dict[str, Mask] = {}
    sources: dict[tuple[str, str], Mask] = {}
    for event in annotation.events:
        sure, least = 1.0 if event.confidence is None else event.confidence, thresholds[event.label]
        if sure < least or (least == 0.7 and sure == 0.7):
            continue
        mask = (middles >= round(event.onset * _SECOND)) & (middles < round(event.offset * _SECOND))
        masks[event.label] = masks.get(event.label, np.zeros(frames, bool)) | mask
        by = (event.label, event.source or "")
        sources[by] = sources.get(by, np.zeros(frames, bool)) | mask
    masks = {label: _filled(mask, most_silent) for label, mask in masks.items()}
    wide = {label: _wide(mask, guard) for label, mask in masks.items()}
    tell = all(event.source is not None for event in annotation.events)
    return Heard(
        masks,
        wide,
        frames_in(max(0.5, resolution)),
        frames_in(max(0.25, resolution)),
        frames_in(max(0.5, 2 * resolution)),
        frames_in(max(0.5, resolution)),
        guard,
        annotation.duration,
        resolution,
        tuple(int(_filled(mask, most_silent).sum()) for mask in sources.values()) if tell else None,
    )


def frames_in(seconds: float) -> int:
    """Frames whose middle lies in the first so many seconds."""
    middles = np.arange(math.ceil(seconds * 100) + 1) * _FRAME + _FRAME // 2
    return int(np.count_nonzero(middles < round(seconds * _SECOND)))


def _wide(mask: Mask, guard: int) -> Mask:
    """A mask extended on both sides by `guard` frames; it begins so many frames before the clip."""
    room = np.zeros(guard, bool)
    before, after = _distances(np.concatenate((room, mask, room)))
    wide: Mask = np.minimum(before, after) <= guard
    return wide


def check_questions(questions: Iterable[Question], annotations: Iterable[Annotation]) -> int:
    """The number of questions about recordings, which are right, each with an id of its own; or AssertionError."""
    by_clip = {(annotation.source_name, *annotation.key): annotation for annotation in annotations}
    asked = list(questions)
    faults = [(one.id, answer_fault(one, by_clip[one.source, one.recording, one.start])) for one in asked]
    assert [fault for fault in faults if fault[1]] == []
    assert len({(one.source, one.id) for one in asked}) == len(asked)
    return len(asked)


def answer_fault(question: Question, annotation: Annotation) -> str | None:
    """The problem of a question about a clip; None where there is none.

    Its answer has to be the only right option, in all readings of uncertain events, and its words those of its wording.
    """
    template = template_of(question.template)
    if template.question(question.anchor) != question.question or template.polarity != question.polarity:
        return f"its words are not those of {question.template}"
    if not question.template.startswith(f"{question.task}-{question.variant}-"):
        return f"its wording {question.template} is not of {question.kind}"
    for heard in ways(annotation):
        try:
            right = KINDS[question.kind](question, heard)
        except DisputedError as error:
            return str(error)
        if right != [question.answer]:
            return f"the answer is {question.answer!r}, right is {' or '.join(right) or 'none'}"
    return None


def _count_kinds(question: Question, heard: Heard) -> list[str]:
    totals = [int(mask.sum()) for mask in heard.masks.values()]
    demand(min(totals, default=0) >= heard.least_total, "a label is heard too short")
    return _count(question, len(totals))


def _count_sources(question: Question, heard: Heard) -> list[str]:
    demand(min(heard.sources or (0,)) >= heard.least_total, "sources are not told apart, or one is heard too short")
    return _count(question, len(heard.sources or ()))


def _count_at_once(question: Question, heard: Heard) -> list[str]:
    shortest = min((int(mask.sum()) for mask in heard.masks.values()), default=0)
    demand(shortest >= heard.least_total, "a label is heard too short")
    at_once = np.sum(list(heard.masks.values()), axis=0)
    lasting = [n for n in range(1, int(at_once.max()) + 1) if longest_run(at_once >= n) >= heard.least_overlap]
    nearly = int(np.sum(list(heard.wide.values()), axis=0).max())
    demand(nearly <= max(lasting, default=0), "more labels are heard together for a moment, or nearly")
    return _count(question, lasting[-1])


def _count(question: Question, number: int) -> list[str]:
    return [option for option in question.options if int(option) == number]


def _winner(question: Question, heard: Heard) -> list[str]:
    best = _far_longest(_frames_of_options(question, heard, lambda mask: int(mask.sum())), heard)
    runs = _frames_of_options(question, heard, longest_run)
    is_longest = all(runs[option] < runs[best] for option in runs if option != best)
    demand(is_longest, "the longest in total has not the longest event")
    return [best]


def _longest_event(question: Question, heard: Heard) -> list[str]:
    return [_far_longest(_frames_of_options(question, heard, longest_run), heard)]


def _frames_of_options(question: Question, heard: Heard, measured: Callable[[Mask], int]) -> dict[str, int]:
    """Frames of each option, all of which are heard."""
    masks = {in_sentence(label): mask for label, mask in heard.masks.items()}
    for option in question.options:
        is_heard = option in masks and int(masks[option].sum()) >= heard.least_total
        demand(is_heard, f"{option!r} is not heard, or too short")
    return {option: measured(masks[option]) for option in question.options}


def _far_longest(frames: Mapping[str, int], heard: Heard) -> str:
    """The option with most frames."""
    best = max(frames, key=lambda option: frames[option])
    second = max(count for option, count in frames.items() if option != best)
    is_far = frames[best] * 100 >= second * 125 and frames[best] - second >= heard.least_margin
    demand(is_far, "no option is heard much longer than the rest")
    return best


def _state_of_anchor(question: Question, heard: Heard) -> list[str]:
    anchor = question.anchor
    is_heard = anchor in heard.masks and heard.masks[anchor].sum() >= heard.least_total
    demand(bool(is_heard), "the anchor is not heard, or too short")
    return _yes_or_no(question, heard, [(anchor, label) for label in heard.masks if label != anchor])


def _state_of_clip(question: Question, heard: Heard) -> list[str]:
    pairs = list(combinations(heard.masks, 2))
    demand(bool(pairs), "there are no two labels")
    return _yes_or_no(question, heard, pairs)


def _yes_or_no(question: Question, heard: Heard, pairs: list[tuple[str, str]]) -> list[str]:
    is_asked = set(question.options) == {"Yes", "No"} and question.polarity in {"overlap", "alone"}
    demand(is_asked, "it is not a question of Yes and No")
    overlaps = any(heard.overlap(*pair) for pair in pairs)
    demand(overlaps or all(heard.apart(*pair) for pair in pairs), "it is ambiguous whether anything overlaps")
    return ["Yes" if overlaps == (question.polarity == "overlap") else "No"]


def _partner(question: Question, heard: Heard) -> list[str]:
    demand(question.anchor in heard.masks, "the anchor is not heard")
    labels = {in_sentence(label): label for label in heard.masks}
    right = []
    for option in question.options:
        label = labels.get(option)
        demand(label != question.anchor, "the anchor is an option")
        if label is not None and not heard.apart(question.anchor, label):
            demand(heard.overlap(question.anchor, label), f"it is ambiguous whether {option!r} overlaps")
            right.append(option)
    return right


def _first_window(question: Question, heard: Heard) -> list[str]:
    times = [re.fullmatch(r"([0-9]+\.[0-9]) to ([0-9]+\.[0-9]) s", option) for option in question.options]
    frames = [(round(float(match[1]) * 100), round(float(match[2]) * 100)) for match in times if match]
    demand(len(frames) == len(times), "an option is not an interval")
    widths = {stop - start for start, stop in frames}
    # A tenth of the clip to half a second, half up to even, but at least twice the resolution of the labels.
    tenth, twice = frames_in(heard.seconds) / 1000, frames_in(heard.resolution) / 50
    fitting = max(0.5, round(2 * tenth) / 2, math.ceil(2 * twice) / 2)
    is_fitting = len(widths) == 1 and abs(min(widths) / 100 - fitting) <= 1e-9
    demand(is_fitting, f"its intervals do not last {fitting:g} s")
    starts = sorted(start for start, _ in frames)
    demand(all(later - start >= fitting * 100 for start, later in pairwise(starts)), "its intervals overlap")
    demand(max(stop for _, stop in frames) <= heard.seconds * 100 + 0.5, "an interval lies after the end")
    onset = _first_overlap(heard)
    for option, (start, stop) in zip(question.options, frames, strict=True):
        # The onset lies in the middle fifth; where the clip begins, it may lie earlier.
        earliest, latest = start + (stop - start) * 2 / 5 if start else 0, start + (stop - start) * 3 / 5
        is_inside = not start <= onset < stop or earliest <= onset < latest
        demand(is_inside, f"the overlap begins near the edge of {option!r}")
    return [option for option, (start, stop) in zip(question.options, frames, strict=True) if start <= onset < stop]


def _first_overlap(heard: Heard) -> int:
    """The frame in which two labels first overlap."""
    both = _several(heard.masks)
    demand(bool(both.any()), "nothing overlaps")
    onset = int(np.argmax(both))
    demand(onset >= heard.least_onset, "the first overlap begins too early")
    demand(_lasts_from(onset, heard), "the first overlap is too short")
    # `wide` has room for the guard before the clip.
    demand(int(np.argmax(_several(heard.wide))) >= onset, "two sounds nearly meet before the first overlap")
    return onset


def _count_regions(question: Question, heard: Heard) -> list[str]:
    begins = _beginnings(_several(heard.masks))
    demand(len(begins) > 0, "nothing overlaps")
    demand(all(_lasts_from(int(onset), heard) for onset in begins), "an overlap is too short")
    demand(len(_beginnings(_several(heard.wide))) == len(begins), "two sounds nearly meet")
    return _count(question, len(begins))


def _lasts_from(onset: int, heard: Heard) -> bool:
    """Whether two labels begin to overlap in a frame and go on for long enough."""
    last = onset + heard.least_overlap
    for one, other in combinations(heard.masks, 2):
        both = heard.masks[one] & heard.masks[other]
        if len(both) >= last and both[onset:last].all() and not (onset and both[onset - 1]):
            return True
    return False


def _several(masks: Mapping[str, Mask]) -> Mask:
    """Frames with two active labels or more."""
    several: Mask = np.sum(list(masks.values()), axis=0) >= 2 if masks else np.zeros(1, bool)
    return several


def _beginnings(mask: Mask) -> NDArray[np.intp]:
    """Active frames after an inactive one."""
    return np.flatnonzero(mask & ~np.concatenate(([False], mask[:-1])))


KINDS: Mapping[str, Callable[[Question, Heard], list[str]]] = {
    "counting/kinds": _count_kinds,
    "counting/sources": _count_sources,
    "counting/together": _count_at_once,
    "duration/total": _winner,
    "duration/longest": _longest_event,
    "concurrency/anchor": _state_of_anchor,
    "concurrency/clip": _state_of_clip,
    "classification/overlap": _partner,
    "detection/first": _first_window,
    "detection/regions": _count_regions,
}
