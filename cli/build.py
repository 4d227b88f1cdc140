"""`build`: write the data set to a folder that `load_dataset` reads."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.table import Column, Table, print_table, rows_of

from . import arguments, data_options
from .arguments import GO_ON, Command, Group, data_groups, divided

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.build import BuiltSize
    from audio_compositionality.dataset_builder.rendered import RenderedData


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    data_options.add_data(parser)
    parser.add_argument(
        "--recipes",
        "--recipe",
        metavar="NAME,NAME",
        help="only these recipes; default: all that a task scores and the data allow",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="the folder; without it the sizes are printed, and nothing is written"
    )
    parser.add_argument(
        "--workers",
        type=arguments.whole("--workers"),
        metavar="N",
        help="threads; default: one per core. The output does not depend on it",
    )
    parser.add_argument("--audio-format", default="flac", metavar="FORMAT", help="flac (default) or wav, both 16-bit")
    parser.add_argument(
        "--writer",
        metavar="MODEL",
        help="a language model of transformers that rewrites captions and hard negatives of rows to train with; texts "
        "that fail the truth check are dropped",
    )
    data_options.add_skip_invalid(parser)
    parser.add_argument("--force", action="store_true", help="replace another data set in the folder")


def run(options: argparse.Namespace) -> None:
    """Build the data set, and print how to read it."""
    arguments.check_output(options.out, "--out")
    from audio_compositionality.dataset_builder.build import build_dataset, build_sizes
    from audio_compositionality.tasks.registry import scored_recipes

    data = _rendered(options)
    if options.out is None:
        sizes = build_sizes(data, options.audio_format)
        _print_sizes(sizes)
        raise InputError(
            f"build needs a folder for {_size_text(sizes)}, and none is given. For one here: {options.typed} --out "
            "audio-compositionality"
        )
    # Reports on the rows of data, such as the balance of questions.
    for table in (table for rendering in data.renderings for table in rendering.reports()):
        print_table(table)
        print()
    folder = build_dataset(
        data,
        options.out,
        audio_format=options.audio_format,
        workers=options.workers,
        force=options.force,
        progress=True,
        on_sizes=_print_sizes,
    )
    print(f"{folder} is built. To load it from its parent folder:")
    for recipe in data.recipes:
        print(f'  load_dataset("{folder.name}", "{recipe}")')
    is_scored = any(recipe in scored_recipes() for recipe in data.recipes)
    words = ("run", "--data", str(folder)) if is_scored else ("train", "--data", str(folder), "--out", "model")
    print(arguments.next_line(options, *words, kept=()))


def _print_sizes(sizes: Sequence[BuiltSize]) -> None:
    """Print what each recipe takes, and all together."""
    columns = (
        Column("recipe", numeric=False),
        Column("clips", digits=None),
        Column("minutes", "of sound", digits=0),
        Column("MB", "of audio", digits=0),
    )
    rows = rows_of((one.recipe, one.clips, one.seconds / 60, one.megabytes) for one in sizes)
    legend = (f"In all {_size_text(sizes)}.",)
    print_table(Table("Sizes, estimated from a few rows of each recipe", columns, rows, legend))
    sys.stdout.flush()


def _size_text(sizes: Sequence[BuiltSize]) -> str:
    clips, minutes = sum(one.clips for one in sizes), sum(one.seconds for one in sizes) / 60
    megabytes = sum(one.megabytes for one in sizes)
    audio = f"{megabytes:,.0f} MB" if megabytes < 1000 else f"{megabytes / 1000:,.1f} GB"
    return f"{clips:,} clips, {minutes:,.0f} min of sound, about {audio} of audio"


def _rendered(options: argparse.Namespace) -> RenderedData:
    """The data, with the texts of a language model where one is named; prints how many of these were accepted."""
    from audio_compositionality.dataset_builder.data_spec import BuildSpec
    from audio_compositionality.dataset_builder.rendered import RenderedData
    from audio_compositionality.tasks.registry import scored_recipes

    spec = data_options.data_spec(options)
    reading = spec.reading
    named = arguments.names_of(options, "recipes")
    recipes = named
    if named is None and reading.kind != "labels":
        possible = data_options.possible_recipes(spec)
        if possible is not None:
            recipes = [recipe for recipe in possible if options.writer is not None or recipe in scored_recipes()]
    groups = [*data_groups(spec, recipes), Group("the build", BuildSpec.settable)]
    _, changes, of_build = divided(options.set, groups)
    build = BuildSpec(**of_build)
    for name in of_build:
        other = "bank" if name == "voices" else "--writer MODEL" if name.startswith("writer") else ""
        if (name == "voices" and build.bank is None) or (name.startswith("writer") and options.writer is None):
            raise InputError(f"{name} has no effect without {other}; give it too")
    if build.bank is not None:
        if reading.kind != "preset":
            raise InputError(f"bank is about the timbres of presets; {reading.source} is {reading.what}")
        changes = {**changes, "voices": _voices(build.bank, build.voices)}
    opened = data_options.open_with_notes(options, spec, changes, recipes, required=named or ())
    data_options.note_left_out(opened.left_out)
    if not isinstance(opened.data, RenderedData):
        raise InputError(
            f"{opened.reading.source} is {opened.reading.what}: it is built already, so there is nothing to render"
        )
    if options.writer is None:
        return opened.data
    from audio_compositionality.dataset_builder.texts.rewriting import LanguageModel, LanguageModelWriter, written_data

    model = LanguageModel(options.writer, revision=build.writer_revision, device=build.writer_device)
    writer = LanguageModelWriter(model, in_test=build.writer_in_test)
    written = written_data(opened.data, writer, progress=sys.stderr.isatty())
    for recipe, report in written.reports.items():
        print("\n  ".join([f"{recipe}:", *report.sentences()]))
    return written


def _voices(path: str, numbers: Sequence[int]) -> tuple[Any, ...]:
    """Voices of a bank, by their numbers from 1.

    Raises:
        InputError: there is no such voice.
    """
    from audio_compositionality.dataset_builder.sounds.dx7_voice import load_bank

    bank = load_bank(Path(path))
    wrong = [number for number in numbers if not 1 <= number <= len(bank)]
    if wrong:
        raise InputError(f"voices has {wrong[0]}; the voices of a bank are numbered 1 to {len(bank)}")
    return tuple(bank[number - 1] for number in numbers)


COMMAND = Command(
    summary="write the data set to a folder that load_dataset reads",
    description="Write the data set: Parquet shards with embedded audio, a card, a manifest. The same command "
    "resumes an interrupted build.",
    add_arguments=add_arguments,
    run=run,
    examples="""\
  audio-compositionality build --data full --audio-format wav --out full
      the paper's size, as WAV
  audio-compositionality build --data animals --out animals-built
      everything that your own recordings allow; --data takes the built folder
""",
    resume=GO_ON,
    place=50,
)
