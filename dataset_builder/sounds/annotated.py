"""Recordings with strong labels as they are, or windows of them: what questions are asked about."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import sha256_of
from audio_compositionality.support.text import shown

from .checks import copies_of, is_silent
from .formats import check_format, read_annotations
from .formats.audioset_strong import AUDIOSET, ONTOLOGY
from .formats.base import ROUNDING, Annotation, AnnotationError, Problems, ReadOptions, told
from .intervals import polyphony, relations
from .reading import each_read
from .sound_files import SoundError, decoded, read_header
from .strong_labels import read_labels, sound_paths

SECONDS = 25.0
"""Of a window (arXiv 2603.05128)."""


def windows(annotations: Iterable[Annotation], seconds: float = SECONDS) -> tuple[Annotation, ...]:
    """Long recordings cut into parts of one length that do not overlap; what is no longer than a part stays whole.

    A rest that is shorter than a part is left out. The name of the recording and its group stay, so that parts of one
    recording stay on one side of a split.

    Args:
        annotations: of recordings.
        seconds: of a part.

    Raises:
        InputError: `seconds` is not more than 0.
    """
    if not seconds > 0:
        raise InputError(f"windows last {seconds} s; expected is more than 0")
    return tuple(part for annotation in annotations for part in _parts(annotation, seconds))


def _parts(annotation: Annotation, seconds: float) -> tuple[Annotation, ...]:
    if annotation.duration <= seconds + ROUNDING:
        return (annotation,)
    count = int((annotation.duration + 1e-6) // seconds)
    return tuple(_part(annotation, number * seconds, seconds) for number in range(count))


def _part(annotation: Annotation, start: float, seconds: float) -> Annotation:
    spans = [(max(e.onset - start, 0.0), min(e.offset - start, seconds), e) for e in annotation.events]
    events = tuple(replace(event, onset=on, offset=off) for on, off, event in spans if on < off)
    return replace(annotation, duration=seconds, events=events, start=annotation.start + start)


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
    spelling = {label.casefold(): label for annotation in heard for label in annotation.labels}
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
    events = tuple(replace(event, label=spelling.get(event.label.casefold(), event.label)) for event in clip.events)
    return replace(clip, events=events)


def has_negatives(annotations: Iterable[Annotation]) -> bool:
    """Whether some stand for what does not overlap alone."""
    return any(annotation.negative for annotation in annotations)


LONGEST_WINDOW = 600.0
"""Seconds; a stored clip that lasts longer is not read."""


@dataclass(frozen=True)
class Stretch:
    """The sound of an annotation, once it was read.

    Attributes:
        path: of the file.
        rate: Hz.
        start, frames: the samples of the file that it is.
        sha256: hexadecimal, of what decides the samples.
        samples_sha256: hexadecimal, of the samples as they were decoded.
    """

    path: Path
    rate: int
    start: int
    frames: int
    sha256: str
    samples_sha256: str


class AnnotatedRecordings:
    """Recordings, or windows of them, in which something is heard, with their labels and their sound.

    Attributes:
        source: what they were opened from, for messages.
        format: of the labels.
        annotations: what is heard in each, in the order of their names.
        sounds: of each annotation.
        related: for each label those that say more or less of the same sound; see `QuestionSettings`.
        fingerprint: names labels, names of recordings, and samples, wherever the files lie.
        left_out: recordings that cannot be used, by name with the reason; empty where they are refused.
    """

    def __init__(
        self,
        source: str,
        format: str,
        annotations: Iterable[Annotation],
        paths: Mapping[str, Path],
        *,
        related: Mapping[str, frozenset[str]] | None = None,
        left_out: dict[str, str] | None = None,
        progress: bool = False,
    ) -> None:
        """Read all sound once; samples are not kept.

        Args:
            source: see above.
            format: see above.
            annotations: of which those without events are left out: nothing can be asked of them.
            paths: the file of each recording.
            related: see above.
            left_out: recordings that are left out already, to which those are added that cannot be used; None: these
                are an error.
            progress: show a progress bar.

        Raises:
            AnnotationError: of all files that are damaged, silent, or the same as another; or nothing is heard in any.
        """
        self.source, self.format = source, format
        self.annotations = tuple(sorted((a for a in annotations if a.events), key=lambda a: a.key))
        if not self.annotations:
            raise AnnotationError(f"{source}: nothing is heard in any recording")
        results = each_read(
            lambda annotation: _examine(annotation, paths[annotation.recording]),
            self.annotations,
            progress=progress,
            unit="clip",
        )
        self.left_out: Mapping[str, str] = {} if left_out is None else left_out
        problems = Problems(left_out)
        for annotation, result in zip(self.annotations, results, strict=True):
            if isinstance(result, str):
                problems.add(_place(annotation, paths[annotation.recording]), result, annotation.recording)
        self._keep([result if isinstance(result, Stretch) else None for result in results])
        if len(self.sounds) == len(results) or left_out is not None:
            self._check_copies(problems)
            self._keep(self.sounds)
        problems.tell(Path(source))
        if not self.annotations:
            raise AnnotationError(f"{source}: no recording can be used: {told(self.left_out)}")
        labels = {label for annotation in self.annotations for label in annotation.labels}
        self.related = {label: (related or {}).get(label, frozenset()) & labels for label in sorted(labels)}
        self.fingerprint = self._fingerprint()

    def _keep(self, sounds: Sequence[Stretch | None]) -> None:
        """Keep the annotations with their sounds [annotations] of recordings that are not left out."""
        kept = [
            (annotation, sound)
            for annotation, sound in zip(self.annotations, sounds, strict=True)
            if sound is not None and annotation.recording not in self.left_out
        ]
        self.annotations = tuple(annotation for annotation, _ in kept)
        self.sounds = tuple(sound for _, sound in kept)

    @property
    def sample_rate(self) -> int | None:
        """Hz, where all have one; None where they differ."""
        rates = {sound.rate for sound in self.sounds}
        return rates.pop() if len(rates) == 1 else None

    def waveform(self, index: int) -> tuple[NDArray[np.float64], int]:
        """Samples [samples] of an annotation in [-1, 1], the mean of the channels, and their rate in Hz.

        Raises:
            SoundError: the file is another than it was.
        """
        sound = self.sounds[index]
        try:
            read = decoded(sound.path, read_header(sound.path), sound.start, sound.frames, whole=False)
        except SoundError as error:
            raise SoundError(f"{sound.path}: {error}") from error
        if read.sound != sound.samples_sha256 or read.rate != sound.rate:
            raise SoundError(f"{sound.path} has changed since it was opened; start again")
        return read.samples.astype(np.float64), sound.rate

    def _check_copies(self, problems: Problems) -> None:
        """Refuse one sound under two names: it could stand on both sides of a split."""
        pairs = zip(self.annotations, self.sounds, strict=True)
        for (first, _), *copies in copies_of(pairs, lambda pair: pair[1].sha256):
            for copy, _ in copies:
                if copy.split_group != first.split_group:
                    why = f"has the same sound as {first.recording!r}; leave one out"
                    problems.add(copy.recording, why, copy.recording)

    def _fingerprint(self) -> str:
        content = [
            [
                a.recording,
                a.start,
                a.duration,
                a.resolution,
                a.source_name,
                a.split_group,
                [astuple(e) for e in a.events],
                *(["negative"] if a.negative else []),
            ]
            for a in self.annotations
        ]
        related = {label: sorted(labels) for label, labels in self.related.items() if labels}
        return sha256_of(json.dumps([content, related, [sound.sha256 for sound in self.sounds]]).encode())


def open_annotated(
    labels: str | Path | Sequence[str | Path],
    audio: str | Path,
    format: str | None = None,
    *,
    options: ReadOptions | None = None,
    window: float = SECONDS,
    skip_invalid: bool = False,
    negatives: Sequence[str | Path] = (),
    negatives_audio: str | Path | None = None,
    progress: bool = False,
) -> AnnotatedRecordings:
    """Open recordings with strong labels.

    Args:
        labels: files or folders of labels, all in one format.
        audio: folder with the sound files, at any depth; one belongs to a recording by its name without ending.
        format: of which `annotations.list_formats` has the list; by default what the files say, see `format_of`.
        options: what the files do not say. Of recordings whose durations nothing states, the sound does. ``names`` may
            be AudioSet's ontology, of any format: it then tells which labels say more or less of the same sound.
        window: seconds of a clip: longer recordings are cut into clips of this length that do not overlap.
        skip_invalid: leave out recordings whose labels or sound cannot be used, into `AnnotatedRecordings.left_out`.
            Where a single row is wrong, all of its recording is left out: what is heard in it is not known.
        negatives: labels of AudioTime, whose monophonic clips are then what questions of concurrency ask where nothing
            overlaps, as in arXiv 2603.05128; see `audiotime_negatives`. Never the default.
        negatives_audio: folder with their sound.
        progress: show a progress bar.

    Raises:
        InputError: no path, no such folder or format, or a window out of its range.
        AnnotationError: labels or sound cannot be used; all places are listed.
    """
    folder = Path(audio)
    if format is not None:
        check_format(format)
    if not folder.is_dir():
        raise InputError(f"the folder with the sound is {str(folder)!r}, and there is no such folder")
    if not 0 < window <= LONGEST_WINDOW:
        raise InputError(f"windows last {window:g} s; they must last more than 0 and at most {LONGEST_WINDOW:g} s")
    read = read_labels(labels, folder, format, options, leave_out=skip_invalid)
    left_out = read.left_out if skip_invalid else None
    files = sound_paths(read.heard, folder, left_out)
    heard = [annotation for annotation in read.heard if annotation.recording in files]
    if not heard and left_out:
        raise AnnotationError(f"{folder}: no recording can be used: {told(left_out)}")
    if read.format == AUDIOSET and not read.related:
        warnings.warn(
            f"there is no {ONTOLOGY}, so a label may stand in a question beside one that includes it (--names)",
            stacklevel=2,
        )
    more, more_files = _negatives(negatives, negatives_audio, heard)
    return AnnotatedRecordings(
        f"{folder} with {read.format} labels",
        read.format,
        [*windows(heard, window), *more],
        {**files, **more_files},
        related=read.related,
        left_out=left_out,
        progress=progress,
    )


def _negatives(
    labels: Sequence[str | Path], audio: str | Path | None, heard: Sequence[Annotation]
) -> tuple[list[Annotation], dict[str, Path]]:
    """The clips in which nothing overlaps, where labels of some are given, and their files."""
    if bool(labels) != (audio is not None):
        raise InputError("negatives are labels of AudioTime and a folder with their sound; give both or none")
    if audio is None or not heard:
        return [], {}
    return audiotime_negatives(labels, audio, heard)


def _examine(annotation: Annotation, path: Path) -> Stretch | str:
    """The sound of an annotation; or why it cannot be used."""
    try:
        header = read_header(path)
        start = round(annotation.start * header.rate)
        frames = min(round(annotation.duration * header.rate), header.frames - start)
        if frames < (annotation.duration - ROUNDING) * header.rate - 1:
            return f"ends before the {annotation.duration:g} s of its labels"
        read = decoded(path, header, start, frames, whole=False)
    except SoundError as error:
        return str(error)
    if is_silent(read.samples):
        return "is silent, and its labels say that something is heard"
    return Stretch(path, header.rate, start, frames, read.sha256, read.sound)


def _place(annotation: Annotation, path: Path) -> str:
    return path.name if not annotation.start else f"{path.name} at {annotation.start:g} s"
