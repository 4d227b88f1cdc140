"""The sound files that labels are of: found by name, and whether they are whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from audio_compositionality.support.text import shown

from ..recordings.sound_files import RecordingError, read_header, sound_files
from .base import ROUNDING, Annotation, Problems


def durations_in(folder: str | Path) -> dict[str, float]:
    """Seconds of each sound file in a folder and below it, by its name without ending; what cannot be read is left out.

    Raises:
        RecordingError: there is no such folder, or no sound in it.
    """
    durations = {}
    for path in sound_files(Path(folder)):
        try:
            header = read_header(path)
        except RecordingError:
            continue
        if header.frames:
            durations[path.stem] = header.frames / header.rate
    return durations


def sound_paths(
    annotations: Iterable[Annotation], folder: str | Path, left_out: dict[str, str] | None = None
) -> dict[str, Path]:
    """The sound file of each recording, found by its name without ending.

    Args:
        annotations: of recordings; those of AudioSet may be called with a ``Y`` before their name.
        folder: with sound files, at any depth.
        left_out: to which recordings are added whose sound cannot be used, with the reason; None: that is an error.

    Raises:
        RecordingError: there is no such folder, or no sound in it.
        AnnotationError: files are missing, empty, shorter than their labels by more than 0.1 s, or there are two of one
            name; all are listed.
    """
    folder = Path(folder)
    by_stem: dict[str, list[Path]] = defaultdict(list)
    for path in sound_files(folder):
        by_stem[path.stem].append(path)
    lengths: dict[str, float] = {}
    for annotation in annotations:
        end = annotation.start + annotation.duration
        lengths[annotation.recording] = max(lengths.get(annotation.recording, 0.0), end)
    problems, missing, paths = Problems(left_out), [], {}
    for recording, seconds in sorted(lengths.items()):
        files = by_stem.get(recording) or by_stem.get(f"Y{recording}") or []
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
    except RecordingError as error:
        problems.add(path.name, str(error), recording)
        return
    length = header.frames / header.rate
    if not header.frames:
        problems.add(path.name, "is empty", recording)
    elif length < seconds - ROUNDING:
        problems.add(path.name, f"lasts {length:.2f} s, the labels of {recording!r} {seconds:.2f} s", recording)
