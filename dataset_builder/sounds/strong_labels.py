"""Strong labels of files in a folder, from any format: what is heard in each from when to when.

Every stretch in which one label is heard alone is a sound of its own (`strong_recordings`); `annotated` asks about the
recordings as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import shown

from .checks import SHORTEST_RECORDING
from .formats import check_format, format_of, read_annotations
from .formats.audioset_strong import AUDIOSET, ONTOLOGY, related_labels, video_of
from .formats.base import (
    ROUNDING,
    SURE,
    Annotation,
    AnnotationError,
    LabelledEvent,
    Problems,
    ReadOptions,
    joined_events,
    told,
)
from .reading import Candidate, ReadRecordings
from .sound_files import SoundError, check_folder, printable, read_header, sound_files

_APART = 0.1
"""Seconds in which another label may be heard beside a sound that is heard alone."""


def strong_recordings(
    folder: str | Path,
    labels: str | Path | Sequence[str | Path],
    format: str | None = None,
    *,
    options: ReadOptions | None = None,
    skip_invalid: bool = False,
    progress: bool = True,
) -> ReadRecordings:
    """The stretches of recordings in which one label is heard alone, as sounds of that label.

    Stretches of one recording, or of one video of AudioSet, are of one group. A recording of the labels that is not in
    the folder is left out, as those of videos that are no longer there always are; `ReadRecordings.skipped` lists it.

    Args:
        folder: with sound files, at any depth, called as in the labels, with or without ending.
        labels: files or folders of labels, all in one format.
        format: of the labels, see `open_annotated`.
        options: what the files do not say.
        skip_invalid: leave out recordings whose labels or sound cannot be used.
        progress: show progress bars.

    Raises:
        InputError: there is no such format.
        DatasetError: the labels cannot be used, or no label is heard alone in a file of the folder.
    """
    folder = Path(folder)
    check_folder(folder)
    read = read_labels(labels, folder, format, options, leave_out=True)
    files = files_by_name(folder)
    absent = {name: "is not in the folder" for name in read.names if not files_of(name, read.format, files)}
    # How long a recording is said to be does not matter here: what is heard in it has to be there.
    ends = [replace(one, duration=max(event.offset for event in one.events)) for one in read.heard]
    left_out = {name: why for name, why in read.left_out.items() if name not in absent}
    paths = sound_paths([one for one in ends if one.recording not in absent], folder, left_out)
    if left_out and not skip_invalid:
        raise SoundError(f"{printable(str(folder))}: {told(left_out)}; --skip-invalid leaves them out")
    candidates = [
        _candidate(folder, paths[annotation.recording], annotation, event)
        for annotation in read.heard
        if annotation.recording in paths
        for event in isolated(annotation)
    ]
    source = printable(f"{folder} with {read.format} labels")
    if not candidates:
        missing = f"; not in the folder are {shown(sorted(map(printable, absent)))}" if absent else ""
        raise SoundError(f"{source}: in none of {len(read.names):,} recordings a label is heard alone{missing}")
    return ReadRecordings(
        source,
        candidates,
        left_out={printable(name): why for name, why in {**absent, **left_out}.items()},
        skip_invalid=skip_invalid,
        progress=progress,
    )


def isolated(annotation: Annotation) -> list[LabelledEvent]:
    """The stretches in which one label is heard beyond doubt, and no other may be heard for longer than 0.1 s.

    Events of a label that meet are one stretch. Where times are exact to less than that, another label may begin and
    end so much sooner or later than it says.
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


def _candidate(folder: Path, path: Path, annotation: Annotation, event: LabelledEvent) -> Candidate:
    start, stop = annotation.start + event.onset, annotation.start + event.offset
    id = f"{printable(path.relative_to(folder).as_posix())}@{start:.3f}-{stop:.3f}"
    group = printable(annotation.split_group)
    return Candidate(id, printable(event.label), None, group, "", partial(Path, path), part=(start, stop))


@dataclass(frozen=True)
class ReadLabels:
    """Labels that were read.

    Attributes:
        format: of the labels.
        heard: the recordings in which something is heard.
        names: of all recordings.
        left_out: recordings whose labels cannot be used, by name with the reason; empty where they are refused.
        related: for each label those that say more or less of the same sound.
    """

    format: str
    heard: tuple[Annotation, ...]
    names: tuple[str, ...]
    left_out: dict[str, str]
    related: Mapping[str, frozenset[str]]


def read_labels(
    labels: str | Path | Sequence[str | Path],
    folder: Path,
    format: str | None,
    options: ReadOptions | None,
    *,
    leave_out: bool,
) -> ReadLabels:
    """Read strong labels of the sound files in a folder.

    Args:
        labels: files or folders, all in one format.
        folder: with the sound files.
        format: of the labels; by default what the files say, see `format_of`.
        options: what the files do not say. Of recordings whose durations nothing states, the sound does. ``names`` may
            be AudioSet's ontology, of any format: it then tells which labels say more or less of the same sound.
        leave_out: leave out recordings whose labels are wrong.

    Raises:
        InputError: no path, or no such format.
        AnnotationError: labels cannot be used; all places are listed.
    """
    paths = [Path(labels)] if isinstance(labels, str | Path) else [Path(path) for path in labels]
    if not paths:
        raise InputError("there are no files of labels")
    if format is not None:
        check_format(format)
    formats = dict.fromkeys([format] if format is not None else [format_of(path) for path in paths])
    if len(formats) > 1:
        raise AnnotationError(f"the files of labels are in several formats: {', '.join(map(str, formats))}; give one")
    name = str(next(iter(formats)))
    lengths = durations_in(folder)
    # Files of AudioSet may be called with a Y before their name.
    sounds = {**{stem[1:]: s for stem, s in lengths.items() if stem.startswith("Y")}, **lengths}
    left_out: dict[str, str] = {}
    options = replace(options or ReadOptions(), sounds=sounds, left_out=left_out if leave_out else None)
    annotations = _read(paths, name, options)
    heard = tuple(annotation for annotation in annotations if annotation.events)
    names = tuple(dict.fromkeys([*(annotation.recording for annotation in annotations), *left_out]))
    return ReadLabels(name, heard, names, left_out, _related(paths, name, options, heard))


def _read(paths: Sequence[Path], format: str, options: ReadOptions) -> list[Annotation]:
    annotations: list[Annotation] = []
    origin: dict[tuple[str, float], Path] = {}
    for path in paths:
        of_path = read_annotations(path, format, options)
        twice = [annotation for annotation in of_path if annotation.key in origin]
        if twice:
            names = shown([annotation.recording for annotation in twice])
            raise AnnotationError(f"{path.name}: labels of {names} are in {origin[twice[0].key].name} as well")
        origin |= {annotation.key: path for annotation in of_path}
        annotations += of_path
    return annotations


def _related(
    paths: Sequence[Path], format: str, options: ReadOptions, annotations: Sequence[Annotation]
) -> Mapping[str, frozenset[str]]:
    """What an ontology says of the labels, where one is given or lies beside AudioSet's."""
    if options.names is None:
        beside = [path.with_name(ONTOLOGY) for path in paths if format == AUDIOSET]
        ontology = next((path for path in beside if path.is_file()), None)
    else:
        ontology = Path(options.names) if Path(options.names).suffix == ".json" else None
    if ontology is None:
        return {}
    related = related_labels(ontology)
    labels = sorted({label for annotation in annotations for label in annotation.labels})
    if labels and not any(label in related for label in labels):
        raise AnnotationError(f"{ontology.name} has none of the labels, which are {shown(labels)}")
    return related


def durations_in(folder: str | Path) -> dict[str, float]:
    """Seconds of each sound file in a folder and below it, by its name without ending; what cannot be read is left out.

    Raises:
        SoundError: there is no such folder, or no sound in it.
    """
    durations = {}
    for path in sound_files(Path(folder)):
        try:
            header = read_header(path)
        except SoundError:
            continue
        if header.frames:
            durations[path.stem] = header.frames / header.rate
    return durations


def files_by_name(folder: Path) -> Mapping[str, list[Path]]:
    """The sound files in a folder and below it, by their names without ending."""
    by_stem: dict[str, list[Path]] = defaultdict(list)
    for path in sound_files(folder):
        by_stem[path.stem].append(path)
    return by_stem


def files_of(recording: str, format: str, files: Mapping[str, list[Path]]) -> list[Path]:
    """The files of a recording.

    Args:
        recording: its name; its file may have a ``Y`` before it, as those of AudioSet have.
        format: of the labels; of a segment of AudioSet the file may have the name of the video.
        files: as `files_by_name` has them.
    """
    names = [recording, f"Y{recording}"]
    if format == AUDIOSET:
        names += [video_of(recording), f"Y{video_of(recording)}"]
    return next((files[name] for name in names if name in files), [])


def sound_paths(
    annotations: Iterable[Annotation], folder: str | Path, left_out: dict[str, str] | None = None
) -> dict[str, Path]:
    """The sound file of each recording, found by its name without ending.

    Args:
        annotations: of recordings; those of AudioSet may be called with a ``Y`` before their name, or by their video.
        folder: with sound files, at any depth.
        left_out: to which recordings are added whose sound cannot be used, with the reason; None: that is an error.

    Raises:
        SoundError: there is no such folder, or no sound in it.
        AnnotationError: files are missing, empty, shorter than their labels by more than 0.1 s, or there are two of one
            name; all are listed.
    """
    folder = Path(folder)
    by_name = files_by_name(folder)
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
            paths[recording] = files[0]
            _check_file(files[0], recording, seconds, problems)
        elif files:
            names = [path.relative_to(folder).as_posix() for path in files]
            problems.add(
                names[0], f"is one of {len(names)} files of {recording!r}: {shown(names)}; keep one", recording
            )
        elif left_out is not None:
            problems.add(str(folder), "has no sound of it", recording)
        else:
            missing.append(recording)
    if missing:
        number = f"{len(missing):,} of {len(lengths):,}"
        problems.add(str(folder), f"has no sound of {number} recordings: {shown(missing)}", missing[0])
    problems.tell(folder)
    return {recording: path for recording, path in paths.items() if recording not in (left_out or ())}


def _check_file(path: Path, recording: str, seconds: float, problems: Problems) -> None:
    try:
        header = read_header(path)
    except SoundError as error:
        problems.add(path.name, str(error), recording)
        return
    length = header.frames / header.rate
    if not header.frames:
        problems.add(path.name, "is empty", recording)
    elif length < seconds - ROUNDING:
        problems.add(path.name, f"lasts {length:.2f} s, the labels of {recording!r} {seconds:.2f} s", recording)
