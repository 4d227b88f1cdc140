"""Clips in which nothing overlaps, from another data set: the mixed set of concurrency of arXiv 2603.05128.

Where something overlaps, the clip is of one data set; where nothing does, of the other. Who hears which data set a clip
is of, by its length, its rooms or its noise, is right without hearing any overlap: this reproduces the paper's
questions, and ranks nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import shown

from ..annotations import read_annotations
from ..annotations.base import Annotation, AnnotationError, ReadOptions
from ..annotations.intervals import polyphony, relations
from ..annotations.sounds import sound_paths
from ..questions.templates import spoken

AUDIOTIME = "audiotime"

WARNING = (
    "what does not overlap is asked about clips of AudioTime alone, after the mixed set of arXiv 2603.05128: "
    "recognising the data set solves these questions, and always “nothing overlaps” is right in 73.0 % of the paper's "
    "(here in half of them); they reproduce the paper, and rank nothing"
)


def audiotime_negatives(
    labels: Sequence[str | Path], audio: str | Path, heard: Sequence[Annotation]
) -> tuple[list[Annotation], dict[str, Path]]:
    """Monophonic clips of AudioTime for questions about overlaps in other recordings, and the file of each.

    Their labels are written as those of the other recordings are, where they read alike. Clips in which nothing has
    such a label are left out, and those in which sounds overlap or nearly do.

    Args:
        labels: JSON files of AudioTime, parts ``ordering`` and ``timestamp``.
        audio: folder with their sound.
        heard: what the questions are about.

    Raises:
        InputError: there is no such folder.
        AnnotationError: labels or sound cannot be used, or no clip has a label of the other recordings.
    """
    if not Path(audio).is_dir():
        raise InputError(f"the folder with the sound of negatives is {str(audio)!r}, and there is no such folder")
    spelling = {spoken(label): label for annotation in heard for label in annotation.labels}
    read = [clip for path in labels for clip in read_annotations(Path(path), AUDIOTIME, ReadOptions())]
    clips = [_respelled(clip, spelling) for clip in read]
    shared = [clip for clip in clips if set(clip.labels) & set(spelling.values())]
    if not shared:
        theirs = sorted({label for clip in clips for label in clip.labels})
        raise AnnotationError(
            f"no clip of AudioTime has a label of the recordings, which are {shown(sorted(spelling.values()))}; its "
            f"own are {shown(theirs)}"
        )
    alone = [clip for clip in shared if polyphony(clip) == 1 and set(relations(clip).values()) <= {"apart"}]
    paths = sound_paths(alone, audio)
    source = heard[0].source_name
    named = [
        replace(clip, recording=f"{AUDIOTIME}/{clip.recording}", source_name=source, negative=True) for clip in alone
    ]
    return named, {f"{AUDIOTIME}/{name}": path for name, path in paths.items()}


def _respelled(clip: Annotation, spelling: dict[str, str]) -> Annotation:
    events = tuple(replace(event, label=spelling.get(spoken(event.label), event.label)) for event in clip.events)
    return replace(clip, events=events)


def has_negatives(annotations: Iterable[Annotation]) -> bool:
    """Whether some stand for what does not overlap alone."""
    return any(annotation.negative for annotation in annotations)
