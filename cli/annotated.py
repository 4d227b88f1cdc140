"""Arguments that name recordings with strong labels, and the data that they become."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.table import print_table

from . import arguments

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.opening import RenderedData
    from audio_compositionality.dataset_builder.recipes.base import ReportedRendering
    from audio_compositionality.dataset_builder.sounds.annotated import AnnotatedRecordings
    from audio_compositionality.dataset_builder.sounds.formats.base import ReadOptions

_DESCRIPTION = """\
Questions about recordings of your own, from labels that say what is heard from when to when. The sound of a
recording is the file of its name in --audio, at any depth. No recording is both learnt from and tested, every
answer is checked by a second program, and the questions are refused where their text gives answers away.

  --labels validation.tsv --audio desed/audio
      as DESED has it; durations are those of validation_durations.tsv beside it, else those of the sound
  --labels development.csv --audio maestro/audio --format maestro
      a row for each class and second; recordings of minutes are cut into clips of 25 s
  --labels soft/ --audio maestro/audio --format maestro-soft
      soft labels: asked is what is right however doubtful seconds are taken
  --labels train.tsv eval.tsv --audio audioset --format audioset-strong --names ontology.json
      with the ontology no label stands beside one that includes it
  --labels datased.csv --audio wav --columns recording=file,onset=start,offset=end,label=class
      any table
  --labels audacity/ --audio wav --format text --ask counting,concurrency,concurrency/clip
      a file a recording, and some kinds of questions
"""

DETAILS = (
    *("audio", "format", "durations", "columns", "resolution", "names", "window", "ask"),
    *("negatives_labels", "negatives_audio"),
)
"""Arguments that say something of recordings with strong labels."""

_OF_LABELS = ("format", "durations", "columns", "resolution", "names")
"""Those of them that ``--strong-labels`` takes as well."""

_OF_RECORDINGS = (
    *("label", "group", "condition", "captions", "separator", "words", "strong_labels", "split", "config"),
    *("prompts", "transforms", "size"),
)
"""Arguments about recordings without times, which say nothing of those with them."""


def add_annotated(parser: argparse.ArgumentParser, data: argparse._ActionsContainer) -> None:
    """Add recordings with strong labels: `annotated_data_of` reads them.

    Args:
        parser: to add to.
        data: group of other arguments that name data, of all of which one can be given.
    """
    data.add_argument(
        "--labels",
        nargs="+",
        metavar="PATH",
        help="strong labels of recordings of your own, files or folders; their sound is in --audio",
    )
    details = parser.add_argument_group("recordings with labels that have times (--labels)", _DESCRIPTION)
    details.add_argument("--audio", metavar="DIR", help="folder with the sound; needed")
    details.add_argument(
        "--format",
        metavar="NAME",
        help="desed, maestro, maestro-soft, audiotime, audioset-strong, jams, text or table; default what the "
        "files say, where they leave no doubt",
    )
    details.add_argument(
        "--durations", metavar="FILE", help="table of recordings and their seconds; default the one beside the labels"
    )
    details.add_argument(
        "--columns",
        metavar="FIELD=HEADING,...",
        help="of a table, the columns of recording, onset, offset (or length), label, and if there are any duration, "
        "source, confidence",
    )
    details.add_argument(
        "--resolution", type=float, metavar="SECONDS", help="what times are exact to; default the format's"
    )
    details.add_argument(
        "--names", metavar="FILE", help="of AudioSet, a table of ids and names of labels, or its ontology (.json)"
    )
    details.add_argument(
        "--window", type=float, metavar="SECONDS", help="longer recordings are cut into clips of so many; default 25"
    )
    details.add_argument(
        "--negatives-labels",
        nargs="+",
        metavar="FILE",
        help="labels of AudioTime (JSON): questions of concurrency ask about its clips where nothing overlaps, as in "
        "arXiv 2603.05128. Who recognises the data set is right: this reproduces the paper, and ranks nothing",
    )
    details.add_argument("--negatives-audio", metavar="DIR", help="folder with the sound of --negatives-labels")
    details.add_argument(
        "--ask",
        metavar="KIND,KIND",
        help="kinds of questions: counting, duration, concurrency, classification, detection (all by default), or a "
        "variant, such as detection/regions; a wrong name lists them. --set least_clips=5 and train=0.5 change more",
    )


def are_given(options: argparse.Namespace) -> bool:
    """Whether the data are recordings with strong labels.

    Raises:
        InputError: something is said of them, and they are not named; or what says nothing of them.
    """
    if getattr(options, "labels", None) is None:
        has_labels = getattr(options, "strong_labels", None) is not None
        names = [name for name in DETAILS if not (has_labels and name in _OF_LABELS)]
        stated = next((name for name in names if getattr(options, name, None) is not None), None)
        if stated is not None:
            option = f"--{stated.replace('_', '-')}"
            raise InputError(f"{option} is about recordings with labels that have times: name them with --labels")
        return False
    stated = next((name for name in _OF_RECORDINGS if getattr(options, name) is not None), None)
    if stated is not None:
        raise InputError(f"--{stated.replace('_', '-')} is about --recordings or --dataset, not about --labels")
    if options.audio is None:
        raise InputError("--labels says what is heard; give the folder with the sound too: --audio DIR")
    if options.protocol is not None:
        raise InputError("--protocol is of presets and of --recordings, not of --labels")
    return True


def recipes() -> Collection[str]:
    """Names of the recipes that can be made of recordings with strong labels."""
    from audio_compositionality.dataset_builder.sounds.opening import annotated_recipes

    return annotated_recipes()


def annotated_data_of(
    options: argparse.Namespace, recipes: Sequence[str] | None
) -> tuple[RenderedData, AnnotatedRecordings]:
    """What recipes make of the recordings with strong labels that are named, and these.

    Args:
        options: with the arguments of `add_annotated`.
        recipes: names; None for all that can be made of them.

    Raises:
        InputError: an argument is wrong, which is told before any sound is read.
        DatasetError: labels or sound cannot be used.
    """
    from audio_compositionality.dataset_builder.sounds.annotated import SECONDS, open_annotated
    from audio_compositionality.dataset_builder.sounds.opening import annotated_data, check_recipes

    check_recipes(recipes)
    changes = _changes(options)
    format, read = labels_format(options)
    if options.negatives_labels:
        from audio_compositionality.dataset_builder.sounds.annotated import WARNING

        print(f"note: {WARNING}", file=sys.stderr)
    recordings = open_annotated(
        options.labels,
        options.audio,
        format,
        options=read,
        window=SECONDS if options.window is None else options.window,
        skip_invalid=options.skip_invalid,
        negatives=options.negatives_labels or (),
        negatives_audio=options.negatives_audio,
        progress=sys.stderr.isatty(),
    )
    return annotated_data(recordings, recipes=recipes, changes=changes), recordings


def labels_format(options: argparse.Namespace) -> tuple[str | None, ReadOptions]:
    """The format of strong labels, and what their files do not say.

    Raises:
        InputError: an argument about them is wrong.
    """
    from audio_compositionality.dataset_builder.sounds.formats.base import ReadOptions

    for name in ("durations", "names"):
        path = getattr(options, name)
        if path is not None and not Path(path).is_file():
            raise InputError(f"--{name} is {path!r}, and there is no such file")
    if options.resolution is not None and not 0 <= options.resolution < 60:
        raise InputError(f"--resolution is {options.resolution:g} s; it must be from 0 to less than 60")
    columns = _columns(options)
    read = ReadOptions(durations=options.durations, resolution=options.resolution, columns=columns, names=options.names)
    return options.format or ("table" if columns else None), read


def print_reports(data: RenderedData) -> None:
    """Print what data say of their rows, such as how questions are balanced."""
    for rendering in _reported(data):
        for table in rendering.reports():
            print_table(table)
            print()


def notes_of(data: RenderedData) -> list[str]:
    """What could not be made of the recordings, such as a kind of questions, and why; sentences without an end.

    Raises:
        DatasetError: nothing could be made.
    """
    return list(dict.fromkeys(note for rendering in _reported(data) for note in rendering.notes()))


def _reported(data: RenderedData) -> Iterator[ReportedRendering]:
    from audio_compositionality.dataset_builder.recipes.base import is_reported

    for recipe in data.recipes:
        rendering = data.configuration(recipe).rendering
        if is_reported(rendering):
            yield rendering


def _columns(options: argparse.Namespace) -> dict[str, str]:
    """The heading of each field of a table."""
    columns: dict[str, str] = {}
    for pair in arguments.names_of(options, "columns") or []:
        field, equals, heading = (part.strip() for part in pair.partition("="))
        if not (field and equals and heading):
            raise InputError(f"--columns has {pair!r}; it takes FIELD=HEADING, such as onset=start")
        if field in columns:
            raise InputError(f"--columns has {field!r} twice; a field stands in one column")
        columns[field] = heading
    if columns and options.format not in (None, "table"):
        raise InputError(f"--columns is of the format table; the columns of {options.format} are known")
    return columns


def _changes(options: argparse.Namespace) -> dict[str, Any]:
    """What is asked for of settings of recipes."""
    from audio_compositionality.dataset_builder.texts.questions.annotated import AskedSpec

    changes = AskedSpec.read(options.set or ())
    # Only `build` has another seed.
    of_options: Mapping[str, Any] = {
        "ask": tuple(arguments.names_of(options, "ask") or ()) or None,
        "seed": getattr(options, "seed", 0) or None,
    }
    for name, value in of_options.items():
        if value is not None and name in changes:
            raise InputError(f"--{name} and --set {name}=... are both given; give one")
        if value is not None:
            changes[name] = value
    # Refused before any sound is read.
    AskedSpec(**changes)
    return changes
