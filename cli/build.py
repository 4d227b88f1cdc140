"""`build`: write the data set to a folder that `load_dataset` reads."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from audio_compositionality.support.errors import InputError

from . import annotated, recordings
from .arguments import add_protocol, names_of, preset_of
from .command import GO_ON, Command

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.opening import RenderedData


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    data = parser.add_mutually_exclusive_group()
    data.add_argument("--preset", default="mini", metavar="NAME", help="mini or full (the paper's size); default mini")
    add_protocol(parser)
    parser.add_argument(
        "--recipes",
        "--recipe",
        metavar="NAME,NAME",
        help="only these recipes; default all that a task scores and that have the preset, or that recordings can "
        "serve; what is only learnt from is built where it is named here",
    )
    parser.add_argument("--out", type=Path, default=Path("audio-compositionality"), metavar="DIR", help="the folder")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of every random choice; default 0")
    parser.add_argument(
        "--workers", type=int, metavar="N", help="threads; default one a core. Bytes do not depend on it"
    )
    parser.add_argument("--audio-format", default="flac", metavar="FORMAT", help="flac (default) or wav, both 16-bit")
    parser.add_argument("--bank", type=Path, metavar="FILE", help="take the timbres from this 32-voice DX7 bank (.syx)")
    parser.add_argument(
        "--voices", metavar="N,N,...", help="which eight voices of --bank, counted from 1; default 1,2,3,4,5,6,7,8"
    )
    parser.add_argument("--force", action="store_true", help="replace another data set in the folder")
    recordings.add_recordings(parser, data)
    recordings.add_skip_invalid(parser)
    writer = parser.add_argument_group("texts by a language model")
    writer.add_argument(
        "--writer",
        metavar="MODEL",
        help="a language model of transformers, by Hub id or folder, rewrites captions and hard negatives of rows to "
        "train with. Texts that the program cannot read, or that fail its test of truth, are not taken",
    )
    writer.add_argument("--writer-revision", metavar="REV", help="branch, tag or commit of a Hub id")
    writer.add_argument(
        "--writer-device", metavar="DEVICE", help="cpu, cuda or cuda:1; default CUDA where there is one"
    )
    writer.add_argument("--writer-in-test", action="store_true", help="rewrite captions of test items too")


def run(options: argparse.Namespace) -> None:
    """Build the data set, and say how it is read."""
    from audio_compositionality.dataset_builder.build import build_dataset

    data = _written(_rendered(options), options)
    annotated.print_reports(data)
    folder = build_dataset(
        data,
        options.out,
        audio_format=options.audio_format,
        workers=options.workers,
        force=options.force,
        progress=sys.stderr.isatty(),
    )
    print(f"{folder} is built. In the folder beside it:")
    for recipe in data.recipes:
        print(f'  load_dataset("{folder.name}", "{recipe}")')


def _written(data: RenderedData, options: argparse.Namespace) -> RenderedData:
    """The data with the texts of a language model, where one is named."""
    if options.writer is None:
        for name in ("writer_revision", "writer_device", "writer_in_test"):
            if getattr(options, name):
                raise InputError(f"--{name.replace('_', '-')} is about a language model: give --writer MODEL too")
        return data
    from audio_compositionality.dataset_builder.texts.rewriting import LanguageModel, LanguageModelWriter, written_data

    model = LanguageModel(options.writer, revision=options.writer_revision, device=options.writer_device)
    writer = LanguageModelWriter(model, in_test=options.writer_in_test)
    written = written_data(data, writer, progress=sys.stderr.isatty())
    for recipe, report in written.reports.items():
        print("\n  ".join([f"{recipe}:", *report.sentences()]))
    return written


def _rendered(options: argparse.Namespace) -> RenderedData:
    from audio_compositionality.dataset_builder.opening import changes_of_preset, rendered_preset
    from audio_compositionality.dataset_builder.sounds.dx7.voice import load_bank
    from audio_compositionality.tasks.registry import scored_recipes

    if recordings.are_given(options):
        return _rendered_recordings(options)
    preset = preset_of(options.preset, options)
    recipes = names_of(options, "recipes") or [
        recipe for recipe in rendered_preset(preset).recipes if options.writer is not None or recipe in scored_recipes()
    ]
    changes = changes_of_preset(options.set or (), preset, recipes)
    if options.seed and "seed" in changes:
        raise InputError("--seed and --set seed=... are both given; give one")
    changes = {"seed": options.seed, **changes}
    if options.bank is None:
        if options.voices is not None:
            raise InputError("--voices chooses from a bank: give --bank FILE too")
        return rendered_preset(preset, recipes=recipes, **changes)
    bank = load_bank(options.bank)
    try:
        numbers = [int(number) for number in names_of(options, "voices") or range(1, 9)]
    except ValueError:
        raise InputError(
            f"--voices is {options.voices!r}; give numbers with commas between them, such as 1,5,9"
        ) from None
    wrong = [number for number in numbers if not 1 <= number <= len(bank)]
    if wrong:
        raise InputError(f"--voices has {wrong[0]}; the voices of a bank are numbered 1 to {len(bank)}")
    voices = tuple(bank[number - 1] for number in numbers)
    return rendered_preset(preset, recipes=recipes, **changes, voices=voices)


def _rendered_recordings(options: argparse.Namespace) -> RenderedData:
    for name in ("bank", "voices"):
        if getattr(options, name) is not None:
            raise InputError(f"--{name} is about the voices of scenes that are made up, not about recordings")
    return recordings.recordings_data(options, names_of(options, "recipes"))


COMMAND = Command(
    summary="write the data set to a folder that load_dataset reads",
    description="Write the data set: Parquet shards with embedded audio, a card, a manifest. A build that was "
    "stopped is finished by the same command.",
    add_arguments=add_arguments,
    run=run,
    examples="""\
  audio-compositionality build
      the preset mini, in the folder audio-compositionality
  audio-compositionality build --preset full --audio-format wav --out full
      at the paper's size, as WAV
  audio-compositionality build --recordings animals --out animals-built
      what can be made of your own recordings, as `evaluate --recordings` renders it: --data takes the folder
  audio-compositionality build --labels validation.tsv --audio desed/audio --out questions
      questions about recordings of your own, from labels that say what is heard from when to when
  audio-compositionality build --writer MODEL --out written
      with captions and hard negatives that a language model wrote, tested like the others
""",
    resume=GO_ON,
    place=50,
)
