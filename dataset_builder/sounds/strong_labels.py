"""Recordings with strong labels in any format: their isolated sounds, and the recordings as they are.

Every stretch with exactly one label is a separate sound (`strong_recordings`). Questions are about recordings as they
are, or windows of them (`open_annotated`).
"""

from __future__ import annotations

import json
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import sha256_of
from audio_compositionality.support.text import shown

from ..account import Account, counts_of
from .annotations import ROUNDING, SURE, Annotation, AnnotationError, LabelledEvent, joined_events, polyphony, relations
from .files import FoundFiles, check_sounds
from .formats import SUFFIXES, check_format, format_of, read_annotations
from .formats.audioset_strong import AUDIOSET, ONTOLOGY, related_labels, video_of
from .formats.parsing import Problems, ReadOptions, files_in, left_out_text
from .recordings import (
    Candidate,
    ReadRecordings,
    SoundError,
    decoded,
    each_read,
    printable,
    read_header,
)
from .splits import SHORTEST_RECORDING, copies_of, is_silent

_APART = 0.1
"""Seconds for which another label may overlap an isolated sound."""

_ABSENT = "is in the labels, but has no file in the folder"


def strong_recordings(
    folder: str | Path,
    labels: str | Path | Sequence[str | Path],
    format: str | None = None,
    *,
    options: ReadOptions | None = None,
    follow_links: bool = False,
    skip_invalid: bool = False,
    progress: bool = True,
) -> ReadRecordings:
    """Return the stretches of recordings with exactly one label, as sounds of that label.

    Stretches of one recording, or of one AudioSet video, form a group. A labelled recording without a file in the
    folder, e.g. of a deleted video, is left out; `ReadRecordings.skipped` lists it.

    Args:
        folder: folder with sound files, at any depth, named as in the labels, with or without suffix.
        labels: files or folders of labels, all in one format.
        format: format of the labels, see `open_annotated`.
        options: facts that the files do not determine.
        follow_links: see `FoundFiles`.
        skip_invalid: leave out recordings with unusable labels or sound.
        progress: show progress bars.

    Raises:
        InputError: the format does not exist.
        DatasetError: the labels are unusable, or no file in the folder has a stretch with exactly one label.
    """
    folder = Path(folder)
    found = FoundFiles(folder, follow_links=follow_links)
    read = read_labels(labels, found, format, options, leave_out=True)
    files = files_by_name(found)
    absent = {name: _ABSENT for name in read.names if not files_of(name, read.format, files)}
    # The given length of a recording does not matter here, but all its events must be within the file.
    ends = [replace(one, duration=max(event.offset for event in one.events)) for one in read.heard]
    left_out = {name: why for name, why in read.left_out.items() if name not in absent}
    paths = sound_paths([one for one in ends if one.recording not in absent], found, left_out)
    if left_out and not skip_invalid:
        raise SoundError(f"{printable(str(folder))}: {left_out_text(left_out)}; --skip-invalid leaves them out")
    candidates = []
    for annotation in read.heard:
        if annotation.recording not in paths:
            continue
        path = paths[annotation.recording]
        for event in isolated(annotation):
            start, stop = annotation.start + event.onset, annotation.start + event.offset
            name = f"{printable(path.relative_to(folder).as_posix())}@{start:.3f}-{stop:.3f}"
            label, group = printable(event.label), printable(annotation.split_group)
            candidates.append(Candidate(name, label, None, group, "", partial(Path, path), part=(start, stop)))
    source = printable(f"{folder} with {read.format} labels")
    if not candidates:
        missing = f"; not in the folder are {shown(sorted(map(printable, absent)))}" if absent else ""
        raise SoundError(
            f"{source}: no stretch with exactly one label in any of {len(read.names):,} recordings{missing}"
        )
    recordings = ReadRecordings(
        source,
        candidates,
        left_out={printable(name): why for name, why in {**absent, **left_out}.items()},
        skip_invalid=skip_invalid,
        progress=progress,
    )
    stretches = recordings.account
    names = {name.rpartition("@")[0] for name in stretches.read}
    used = {path for path in paths.values() if found.name(path) in names}
    why = {**dict.fromkeys(paths, "has no usable stretch with exactly one label"), **left_out}
    files_told = account_of(source, found, read, labels, used, why)
    recordings.account = replace(files_told, labels=stretches.labels, one_group=stretches.one_group)
    return recordings


def account_of(
    source: str,
    found: FoundFiles,
    read: ReadLabels,
    labels: str | Path | Sequence[str | Path],
    used: Collection[Path],
    why: Mapping[str, str],
) -> Account:
    """Return what was done with the files in a folder with strong labels, and with recordings without a file.

    Args:
        source: the data.
        found: the files.
        read: the labels.
        labels: the label files.
        used: the sound files that are used.
        why: why each other recording is left out, by name.
    """
    files = files_by_name(found)
    left_out, named = dict(found.left_out), dict[Path, str]()
    missing = 0
    for name in read.names:
        of_name = files_of(name, read.format, files)
        if not of_name:
            left_out[f"recording {printable(name)}"] = _ABSENT
            missing += 1
        for path in of_name:
            named.setdefault(path, name)
    for path in found.sounds:
        if path not in used:
            left_out[found.name(path)] = why.get(named[path], "has no event") if path in named else "has no labels"
    for path in map(Path, [labels] if isinstance(labels, str | Path) else labels):
        for file in files_in(path, SUFFIXES, follow_links=found.follow_links):
            if file.is_relative_to(found.folder) and found.name(file) in left_out:
                left_out[found.name(file)] = "contains the labels"
    kept = tuple(found.name(path) for path in found.sounds if path in used)
    counts = counts_of(label for one in read.heard for label in one.labels)
    return Account(source, len(found.sounds) + len(found.left_out) + missing, kept, left_out, counts)


def isolated(annotation: Annotation) -> list[LabelledEvent]:
    """Return the stretches in which one label is certain, and no other is possible for longer than 0.1 s.

    Adjacent events of a label are one stretch. If times have a coarser resolution, another label may begin that much
    earlier and end that much later than stated.
    """
    plain = [replace(event, source=None, confidence=None) for event in annotation.events]
    sure = [
        one
        for one, event in zip(plain, annotation.events, strict=True)
        if event.confidence is None or event.confidence > SURE
    ]
    every, reach = joined_events(plain), max(0.0, annotation.resolution - _APART)
    return [
        event
        for event in joined_events(sure)
        if event.offset - event.onset >= SHORTEST_RECORDING
        and not any(
            min(event.offset, other.offset + reach) - max(event.onset, other.onset - reach) > _APART
            for other in every
            if other.label != event.label
        )
    ]


@dataclass(frozen=True)
class ReadLabels:
    """Labels that were read.

    Attributes:
        format: format of the labels.
        heard: the recordings with events.
        names: names of all recordings.
        left_out: recordings with unusable labels, by name with the reason; empty if they are refused.
        related: for each label, its more general and more specific ones.
    """

    format: str
    heard: tuple[Annotation, ...]
    names: tuple[str, ...]
    left_out: dict[str, str]
    related: Mapping[str, frozenset[str]]


def read_labels(
    labels: str | Path | Sequence[str | Path],
    found: FoundFiles,
    format: str | None,
    options: ReadOptions | None,
    *,
    leave_out: bool,
) -> ReadLabels:
    """Read strong labels of the sound files in a folder.

    Args:
        labels: files or folders, all in one format.
        found: the files of the folder with the sound.
        format: format of the labels; by default detected from the files, see `format_of`.
        options: facts that the files do not determine. If nothing gives the duration of a recording, its sound does.
            ``names`` may be AudioSet's ontology, for any format: it then gives more general and more specific labels.
        leave_out: leave out recordings with wrong labels.

    Raises:
        InputError: there is no path, or the format does not exist.
        AnnotationError: labels are unusable; all problems are listed.
    """
    paths = [Path(labels)] if isinstance(labels, str | Path) else [Path(path) for path in labels]
    if not paths:
        raise InputError("there are no label files")
    if format is not None:
        check_format(format)
    options = replace(options or ReadOptions(), follow_links=found.follow_links)
    formats = dict.fromkeys(
        [format]
        if format is not None
        else [format_of(path, options.encoding, follow_links=found.follow_links) for path in paths]
    )
    if len(formats) > 1:
        raise AnnotationError(f"the label files are in several formats: {', '.join(map(str, formats))}; give one")
    name = str(next(iter(formats)))
    lengths = durations_in(found)
    # AudioSet's files may have a Y before their name.
    sounds = {**{stem[1:]: s for stem, s in lengths.items() if stem.startswith("Y")}, **lengths}
    left_out: dict[str, str] = {}
    options = replace(options, sounds=sounds, left_out=left_out if leave_out else None)
    annotations: list[Annotation] = []
    origin: dict[tuple[str, float], Path] = {}
    for path in paths:
        of_path = read_annotations(path, name, options)
        twice = [annotation for annotation in of_path if annotation.key in origin]
        if twice:
            again = shown([annotation.recording for annotation in twice])
            raise AnnotationError(f"{path.name}: labels of {again} are in {origin[twice[0].key].name} as well")
        origin |= {annotation.key: path for annotation in of_path}
        annotations += of_path
    heard = tuple(annotation for annotation in annotations if annotation.events)
    # The ontology is given, or is next to AudioSet's labels.
    if options.names is None:
        ontologies = [path.with_name(ONTOLOGY) for path in paths if name == AUDIOSET]
        ontologies = [path for path in ontologies if path.is_file()]
    else:
        ontologies = [path for path in [Path(options.names)] if path.suffix == ".json"]
    related = related_labels(ontologies[0]) if ontologies else {}
    own = sorted({label for annotation in heard for label in annotation.labels})
    if related and own and not any(label in related for label in own):
        raise AnnotationError(f"{ontologies[0].name} has none of the labels, which are {shown(own)}")
    names = tuple(dict.fromkeys([*(annotation.recording for annotation in annotations), *left_out]))
    return ReadLabels(name, heard, names, left_out, related)


def durations_in(found: FoundFiles) -> dict[str, float]:
    """Return the seconds of each sound file in a folder, by name without suffix; unreadable files are left out.

    Raises:
        SoundError: the folder does not exist, or has no sound.
    """
    durations = {}
    check_sounds(found)
    for path in found.sounds:
        try:
            header = read_header(path)
        except SoundError:
            continue
        if header.frames:
            durations[path.stem] = header.frames / header.rate
    return durations


def files_by_name(found: FoundFiles) -> Mapping[str, list[Path]]:
    """Return the sound files in a folder and below it, by name without suffix."""
    by_stem: dict[str, list[Path]] = defaultdict(list)
    check_sounds(found)
    for path in found.sounds:
        by_stem[path.stem].append(path)
    return by_stem


def files_of(recording: str, format: str, files: Mapping[str, list[Path]]) -> list[Path]:
    """Return the files of a recording.

    Args:
        recording: its name; its file may have a ``Y`` before it, as AudioSet's files do.
        format: format of the labels; for an AudioSet segment, the file may be named after the video.
        files: result of `files_by_name`.
    """
    names = [recording, f"Y{recording}"]
    if format == AUDIOSET:
        names += [video_of(recording), f"Y{video_of(recording)}"]
    return next((files[name] for name in names if name in files), [])


def sound_paths(
    annotations: Iterable[Annotation], found: FoundFiles, left_out: dict[str, str] | None = None
) -> dict[str, Path]:
    """Return the sound file of each recording, found by its name without suffix.

    Args:
        annotations: annotations of recordings; AudioSet's files may have a ``Y`` before their name, or the video's
            name.
        found: the files of the folder with the sound.
        left_out: receives the recordings with unusable sound, with the reason; None: they are an error.

    Raises:
        SoundError: the folder does not exist, or has no sound.
        AnnotationError: files are missing, empty, shorter than their labels by more than 0.1 s, or two have the same
            name; all are listed.
    """
    folder = found.folder
    by_name = files_by_name(found)
    lengths: dict[str, float] = {}
    formats: dict[str, str] = {}
    for annotation in annotations:
        formats[annotation.recording] = annotation.source_name
        end = annotation.start + annotation.duration
        lengths[annotation.recording] = max(lengths.get(annotation.recording, 0.0), end)
    problems, missing, paths = Problems(left_out), [], {}
    for recording, seconds in sorted(lengths.items()):
        files = files_of(recording, formats[recording], by_name)
        if len(files) == 1:
            path = paths[recording] = files[0]
            try:
                header = read_header(path)
                length = header.frames / header.rate
                if not header.frames:
                    problems.add(path.name, "is empty", recording)
                elif length < seconds - ROUNDING:
                    what = f"lasts {length:.2f} s, the labels of {recording!r} {seconds:.2f} s"
                    problems.add(path.name, what, recording)
            except SoundError as error:
                problems.add(path.name, str(error), recording)
        elif files:
            names = [path.relative_to(folder).as_posix() for path in files]
            problems.add(
                names[0], f"is one of {len(names)} files of {recording!r}: {shown(names)}; keep one", recording
            )
        elif left_out is not None:
            problems.add(str(folder), "has no sound of this recording", recording)
        else:
            missing.append(recording)
    if missing:
        number = f"{len(missing):,} of {len(lengths):,}"
        problems.add(str(folder), f"has no sound of {number} recordings: {shown(missing)}", missing[0])
    problems.tell(folder)
    return {recording: path for recording, path in paths.items() if recording not in (left_out or ())}


SECONDS = 25.0
"""Length of a window in seconds (arXiv 2603.05128)."""


def windows(annotations: Iterable[Annotation], seconds: float = SECONDS) -> tuple[Annotation, ...]:
    """Return long recordings cut into parts of one length that do not overlap; shorter recordings stay whole.

    A remainder shorter than a part is left out. The parts keep the recording's name and group, so that they stay on one
    side of a split.

    Args:
        annotations: annotations of recordings.
        seconds: length of a part.

    Raises:
        InputError: `seconds` is not positive.
    """
    if not seconds > 0:
        raise InputError(f"windows last {seconds} s; they must last more than 0")
    parts: list[Annotation] = []
    for annotation in annotations:
        if annotation.duration <= seconds + ROUNDING:
            parts.append(annotation)
            continue
        for number in range(int((annotation.duration + 1e-6) // seconds)):
            start = number * seconds
            spans = [(max(e.onset - start, 0.0), min(e.offset - start, seconds), e) for e in annotation.events]
            events = tuple(replace(event, onset=on, offset=off) for on, off, event in spans if on < off)
            parts.append(replace(annotation, duration=seconds, events=events, start=annotation.start + start))
    return tuple(parts)


AUDIOTIME = "audiotime"

WARNING = (
    "questions without overlap are about AudioTime clips only, as in the mixed set of arXiv 2603.05128: "
    "recognising the data set solves them, and always answering “nothing overlaps” is right in 73.0 % of the paper's "
    "(here in half of them). They reproduce the paper; do not rank models on them"
)


def audiotime_negatives(
    labels: Sequence[str | Path], audio: str | Path, heard: Sequence[Annotation]
) -> tuple[list[Annotation], dict[str, Path]]:
    """Return AudioTime clips without overlap for questions about overlaps in other recordings, and the file of each.

    Labels get the spelling in the other recordings if they read alike. Clips without a label of those recordings are
    left out, and so are clips in which sounds overlap or nearly do.

    Args:
        labels: JSON files of AudioTime, parts ``ordering`` and ``timestamp``.
        audio: folder with their sound files.
        heard: the recordings of the questions.

    Raises:
        InputError: the folder does not exist.
        AnnotationError: labels or sound are unusable, or no clip has a label of the other recordings.
    """
    if not Path(audio).is_dir():
        raise InputError(f"the folder with the sound of negatives is {str(audio)!r}, which does not exist")
    spelling = {label.casefold(): label for annotation in heard for label in annotation.labels}
    read = [clip for path in labels for clip in read_annotations(Path(path), AUDIOTIME, ReadOptions())]
    clips = []
    for clip in read:
        respelled = [replace(e, label=spelling.get(e.label.casefold(), e.label)) for e in clip.events]
        clips.append(replace(clip, events=tuple(respelled)))
    shared = [clip for clip in clips if set(clip.labels) & set(spelling.values())]
    if not shared:
        theirs = sorted({label for clip in clips for label in clip.labels})
        raise AnnotationError(
            f"no AudioTime clip has a label of the recordings; the recordings have "
            f"{shown(sorted(spelling.values()))}, the clips have {shown(theirs)}"
        )
    alone = [clip for clip in shared if polyphony(clip) == 1 and set(relations(clip).values()) <= {"apart"}]
    paths = sound_paths(alone, FoundFiles(audio))
    source = heard[0].source_name
    named = [
        replace(clip, recording=f"{AUDIOTIME}/{clip.recording}", source_name=source, negative=True) for clip in alone
    ]
    return named, {f"{AUDIOTIME}/{name}": path for name, path in paths.items()}


def has_negatives(annotations: Iterable[Annotation]) -> bool:
    """Return whether some annotations are negatives, which are only used for the absence of overlap."""
    return any(annotation.negative for annotation in annotations)


LONGEST_WINDOW = 600.0
"""Seconds; a longer stored clip is not read."""


@dataclass(frozen=True)
class Stretch:
    """The sound of an annotation that was read.

    Attributes:
        path: path of the file.
        rate: Hz.
        start, frames: its samples in the file.
        sha256: hexadecimal digest of everything that determines the samples.
        samples_sha256: hexadecimal digest of the samples as decoded.
    """

    path: Path
    rate: int
    start: int
    frames: int
    sha256: str
    samples_sha256: str


class AnnotatedRecordings:
    """Recordings, or windows of them, with events, labels and sound.

    Attributes:
        source: what the data were opened from, for messages.
        format: format of the labels.
        annotations: the events of each recording, in the order of their names.
        sounds: sound of each annotation.
        related: for each label, its more general and more specific ones; see `QuestionSettings`.
        fingerprint: digest of labels, names of recordings, and samples, independent of file paths.
        left_out: unusable recordings, by name with the reason; empty if they are refused.
        account: what was done with every file; None unless opened by `open_annotated`.
    """

    account: Account | None = None

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
            annotations: those without events are left out, since no question can be about them.
            paths: the file of each recording.
            related: see above.
            left_out: recordings that are already left out; unusable ones are added. None: these are an error.
            progress: show a progress bar.

        Raises:
            AnnotationError: lists all files that are damaged, silent, or identical to another; or there are no events.
        """
        self.source, self.format = source, format
        heard = sorted((a for a in annotations if a.events), key=lambda a: a.key)
        if not heard:
            raise AnnotationError(f"{source}: no recording has an event")
        found = each_read(
            lambda annotation: _stretch(annotation, paths[annotation.recording]), heard, progress=progress, unit="clip"
        )
        self.left_out: Mapping[str, str] = {} if left_out is None else left_out
        problems = Problems(left_out)
        for annotation, stretch in zip(heard, found, strict=True):
            if isinstance(stretch, str):
                at = f" at {annotation.start:g} s" if annotation.start else ""
                problems.add(f"{paths[annotation.recording].name}{at}", stretch, annotation.recording)
        pairs = [(a, s) for a, s in zip(heard, found, strict=True) if not isinstance(s, str)]
        pairs = [(annotation, stretch) for annotation, stretch in pairs if annotation.recording not in self.left_out]
        if len(pairs) == len(found) or left_out is not None:
            # The same sound under two names could end up on both sides of a split.
            for (first, _), *copies in copies_of(pairs, lambda pair: pair[1].sha256):
                for copy, _ in copies:
                    if copy.split_group != first.split_group:
                        why = f"has the same sound as {first.recording!r}; leave one out"
                        problems.add(copy.recording, why, copy.recording)
        problems.tell(Path(source))
        pairs = [(annotation, stretch) for annotation, stretch in pairs if annotation.recording not in self.left_out]
        if not pairs:
            raise AnnotationError(f"{source}: no usable recording: {left_out_text(self.left_out)}")
        self.annotations = tuple(annotation for annotation, _ in pairs)
        self.sounds = tuple(stretch for _, stretch in pairs)
        labels = {label for annotation in self.annotations for label in annotation.labels}
        self.related = {label: (related or {}).get(label, frozenset()) & labels for label in sorted(labels)}
        content = [
            [
                a.recording,
                a.start,
                a.duration,
                a.resolution,
                a.source_name,
                a.split_group,
                [astuple(event) for event in a.events],
                *(["negative"] if a.negative else []),
            ]
            for a in self.annotations
        ]
        not_alone = {label: sorted(others) for label, others in self.related.items() if others}
        digests = [stretch.sha256 for stretch in self.sounds]
        self.fingerprint = sha256_of(json.dumps([content, not_alone, digests]).encode())

    @property
    def sample_rate(self) -> int | None:
        """Return the sample rate in Hz if all have the same; None if they differ."""
        rates = {sound.rate for sound in self.sounds}
        return rates.pop() if len(rates) == 1 else None

    def waveform(self, index: int) -> tuple[NDArray[np.float64], int]:
        """Return samples [samples] of an annotation in [-1, 1], the mean of the channels, and their rate in Hz.

        Raises:
            SoundError: the file has changed.
        """
        sound = self.sounds[index]
        try:
            read = decoded(sound.path, read_header(sound.path), sound.start, sound.frames, whole=False)
        except SoundError as error:
            raise SoundError(f"{sound.path}: {error}") from error
        if read.sound != sound.samples_sha256 or read.rate != sound.rate:
            raise SoundError(f"{sound.path} has changed since it was opened; start again")
        return read.samples.astype(np.float64), sound.rate


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
    follow_links: bool = False,
    progress: bool = False,
) -> AnnotatedRecordings:
    """Open recordings with strong labels.

    Args:
        labels: files or folders of labels, all in one format.
        audio: folder with the sound files, at any depth; a recording's file has its name, with any suffix.
        format: one of `formats.FORMATS`; by default detected from the files, see `format_of`.
        options: facts that the files do not determine. If nothing gives the duration of a recording, its sound does.
            ``names`` may be AudioSet's ontology, for any format: it then gives more general and more specific labels.
        window: seconds of a clip; longer recordings are cut into clips of this length that do not overlap.
        skip_invalid: leave out recordings with unusable labels or sound, see `AnnotatedRecordings.left_out`. A single
            wrong row excludes its whole recording, since its events are then uncertain.
        negatives: AudioTime labels; its clips without overlap are then used for concurrency questions without overlap,
            as in arXiv 2603.05128; see `audiotime_negatives`. Never the default.
        negatives_audio: folder with their sound files.
        follow_links: see `FoundFiles`.
        progress: show a progress bar.

    Raises:
        InputError: a path, folder or format does not exist, or a window is out of range.
        AnnotationError: labels or sound are unusable; all problems are listed.
    """
    folder = Path(audio)
    if format is not None:
        check_format(format)
    if not folder.is_dir():
        raise InputError(f"the folder with the sound is {str(folder)!r}, which does not exist")
    if not 0 < window <= LONGEST_WINDOW:
        raise InputError(f"windows last {window:g} s; they must last more than 0 and at most {LONGEST_WINDOW:g} s")
    found = FoundFiles(folder, follow_links=follow_links)
    read = read_labels(labels, found, format, options, leave_out=skip_invalid)
    left_out = read.left_out if skip_invalid else None
    files = sound_paths(read.heard, found, left_out)
    of_labels = set(files.values())
    heard = [annotation for annotation in read.heard if annotation.recording in files]
    if not heard and left_out:
        raise AnnotationError(f"{folder}: no usable recording: {left_out_text(left_out)}")
    if read.format == AUDIOSET and not read.related:
        warnings.warn(
            f"there is no {ONTOLOGY}, so a question may contain both a label and one that includes it (--set "
            "names=FILE)",
            stacklevel=2,
        )
    if bool(negatives) != (negatives_audio is not None):
        raise InputError("negatives need AudioTime labels and a folder with their sound; give both or neither")
    more: list[Annotation] = []
    if negatives_audio is not None and heard:
        more, more_files = audiotime_negatives(negatives, negatives_audio, heard)
        files |= more_files
    recordings = AnnotatedRecordings(
        f"{folder} with {read.format} labels",
        read.format,
        [*windows(heard, window), *more],
        files,
        related=read.related,
        left_out=left_out,
        progress=progress,
    )
    used = of_labels & {stretch.path for stretch in recordings.sounds}
    recordings.account = account_of(recordings.source, found, read, labels, used, recordings.left_out)
    return recordings


def _stretch(annotation: Annotation, path: Path) -> Stretch | str:
    """Return the sound of an annotation, or the reason why it is unusable."""
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
        return "is silent, but its labels contain events"
    return Stretch(path, header.rate, start, frames, read.sha256, read.sound)
