"""`train`: an audio–text model trained on the composition of sounds."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.table import print_table

from . import arguments, data_options
from .arguments import Command, Group, add_settings, data_fields, data_groups, divided, typed_pairs

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from audio_compositionality.dataset_builder.data import Data
    from audio_compositionality.dataset_builder.data_spec import DataSpec
    from audio_compositionality.training.data import TrainingSplits
    from audio_compositionality.training.loop import TrainingRun
    from audio_compositionality.training.settings import MachineSpec, TrainingSettings

DATA = "comp_a_train"
"""The default recipe for training."""

BENCHMARK = "comp_a"
"""The benchmark for models trained on such rows."""

OPTIONS = ("stages", "preset", "rows", "init", "batch_size", "seed")
"""Settings of a training that have a command-line option of their own."""


_DESCRIPTION = """\
Train an audio-text model in stages: contrastive; then with hard negatives, false captions of the same words (hard);
and, if --stages has it, with texts of parts of the clip as positives (modular).

OUT becomes a folder for `evaluate`: the model of the last step, best/ with the model of the highest validation score,
settings.yaml, training.json, log.csv, evaluations.csv and a card. The same command resumes an interrupted run.
See docs/how-to/training.md.
"""

_EXAMPLES = """\
  audio-compositionality train --out my-clap
      a small model from random weights on scenes that are rendered on the fly; nothing is downloaded. For a first try
      of a minute, add --stages contrastive:50,hard:50 --rows 500
  audio-compositionality train --init laion-clap --batch-size 64 --set train=last --set chunk=16 --out tuned
      continue from a pretrained model, training only the last layers of both towers; 16 clips in memory at a time
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments; arguments that are settings have no defaults of their own."""
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of the run and of its model")
    parser.add_argument(
        "--data",
        metavar="SPEC",
        help=f"training rows: a recipe, rendered on the fly (default {DATA}), a folder written by `build`, "
        "recordings as for other commands, or published tables of texts (with --set audio=FOLDER)",
    )
    parser.add_argument(
        "--preset", metavar="NAME", help="size of a recipe, or of the data made from recordings: mini, full"
    )
    parser.add_argument("--settings", type=Path, metavar="FILE", help="take settings from this YAML file")
    add_settings(parser)
    parser.add_argument(
        "--init",
        metavar="NAME|DIR|HUB_ID",
        help="initial weights: tiny, small towers with random weights (default), tiny-clap, or a CLAP",
    )
    parser.add_argument(
        "--align",
        metavar="ENCODER",
        help="instead of --init: an encoder of sound, frozen; a linear map and a text tower are trained",
    )
    parser.add_argument("--stages", metavar="KIND:STEPS,...", help="kinds are contrastive, hard and modular")
    parser.add_argument("--rows", metavar="N", help="number of training rows; default: all")
    parser.add_argument("--batch-size", metavar="N", help="rows per batch, over all processes; default 48")
    parser.add_argument("--seed", metavar="N", help="seed of random weights and of every random draw; default 0")
    arguments.add_device(parser)
    parser.add_argument(
        "--ablations",
        action="store_true",
        help="also train without each stage, in other orders and with fewer positives; writes DIR/ablations.md",
    )
    parser.add_argument(
        "--seeds", metavar="N[,N...]", help="seeds of the trainings of --ablations; default: --seed alone"
    )
    data_options.add_skip_invalid(parser)
    parser.add_argument("--push", metavar="ORG/NAME", help="publish the model as this repository on the Hub")
    parser.add_argument("--private", action="store_true", help="create a new repository as private")
    arguments.add_dry_run(parser)


@dataclass(frozen=True)
class LearntFrom:
    """The typed data of a training.

    Attributes:
        options: of the command.
        spec: of a user's recordings or tables; None for rendered or built data.
    """

    options: argparse.Namespace
    spec: DataSpec | None

    @cached_property
    def kind(self) -> str:
        """Their format; empty for rendered or built data."""

        return "" if self.spec is None else self.spec.reading.kind

    @property
    def are_made(self) -> bool:
        """Whether rows are made from a user's own data."""
        return self.kind not in ("", "texts")

    @property
    def tables(self) -> list[str]:
        """Paths of the tables of texts; for a ``data.yaml``, the table that it names."""

        if self.spec is None:
            return []
        return [self.spec.reading.source, *self.options.data.split(",")[1:]]

    def groups(self) -> list[Group]:
        """The settings: of the data, of the recipes made from them, of the training."""
        from audio_compositionality.training.data import training_recipes
        from audio_compositionality.training.settings import MachineSpec

        training = [Group("the machine", MachineSpec.settable), Group("the training", training_fields)]
        if self.spec is None:
            return training
        of_data, made = data_groups(self.spec, training_recipes() if self.are_made else ())
        return [of_data, made if self.are_made else Group("", dict), *training]

    def typed(self, *, made: bool = True) -> list[str]:
        """The arguments that name them, as they can be typed again; `made`: with the settings of the recipes."""
        options = self.options
        groups = self.groups()[: 2 if made else 1]
        named = typed_pairs(options)
        texts = [text for name, text in named.items() if any(name in group.fields() for group in groups)]
        preset = ["--preset", options.preset] if options.preset is not None else []
        skip = ["--skip-invalid"] if options.skip_invalid else []
        return ["--data", options.data, *preset, *(word for text in texts for word in ("--set", text)), *skip]


def training_fields() -> Mapping[str, FieldInfo]:
    """The settings of a training without a command-line option of their own, by name."""
    from audio_compositionality.training.settings import TrainingSettings

    fields = TrainingSettings.settable()
    return {name: field for name, field in fields.items() if name not in (*OPTIONS, "data")}


def run(options: argparse.Namespace) -> None:
    """Train, print the model's path, and publish it on request."""
    from audio_compositionality.training.run_folder import check_out

    if options.push is None:
        for name in ("private", "dry_run"):
            if getattr(options, name):
                raise InputError(f"--{name.replace('_', '-')} only affects publishing: give --push ORG/NAME too")
    else:
        from audio_compositionality.training.run_folder import model_repository

        model_repository(options.push)
    learnt = _learnt_from(options)
    changes, machine, settings = _settings(options, learnt)
    if options.push is not None:
        _check_encoder(settings.init)
    if options.ablations:
        _compare(options, settings, learnt)
        return
    if options.seeds is not None:
        raise InputError("--seeds only affects --ablations; a training has one --seed")
    # Before the import of the code that opens data and models, which takes seconds.
    check_out(options.out, settings)
    trained = _train(options, settings, learnt, changes, machine)
    from audio_compositionality.training.loop import join_training

    if join_training(options.device).is_main:
        print("\n".join(_lines(trained, options, learnt)), flush=True)
        if options.push is None:
            return
        from audio_compositionality.training.run_folder import push_model

        push = push_model(options.out, options.push, private=options.private, dry_run=options.dry_run)
        size = sum(push.changes.send.values())
        if push.commit is None:
            print(f"would send {len(push.changes.send)} files, {size:,} bytes, to {push.repository.url}")
            for name, of_file in push.changes.send.items():
                print(f"  {name}, {of_file:,} bytes")
        else:
            print(f"sent {len(push.changes.send)} files, {size:,} bytes: {push.commit.url}")


def _check_encoder(init: str) -> None:
    """Refuse, before training, an encoder that could not be published afterwards."""
    from audio_compositionality.encoders.loading.names import absolute_name
    from audio_compositionality.training.run_folder import check_encoder
    from audio_compositionality.training.settings import ALIGN

    if init.startswith(ALIGN):
        check_encoder(absolute_name(init.removeprefix(ALIGN)))


def _compare(options: argparse.Namespace, settings: TrainingSettings, learnt: LearntFrom) -> None:
    """Train and score the variants, and print their table."""
    from audio_compositionality.training.ablations import RESULTS, run_ablations

    if options.push is not None or learnt.spec is not None:
        raise InputError(
            "--ablations compares trainings on rows that are rendered or built, and publishes none of them"
        )
    given = str(settings.seed) if options.seeds is None else options.seeds
    try:
        seeds = [int(part) for part in given.split(",")]
    except ValueError:
        raise InputError(f"--seeds is {given!r}; give whole numbers with commas between them, such as 0,1,2") from None
    table = run_ablations(settings, options.out, seeds, device=options.device, progress=True)
    from audio_compositionality.training.loop import join_training

    if join_training(options.device).is_main:
        print_table(table)
        results = options.out / RESULTS
        print(arguments.next_line(options, "report", str(results), kept=()))


def _learnt_from(options: argparse.Namespace) -> LearntFrom:
    """The data named on the command line, else in the file of settings.

    Raises:
        DatasetError: there are no such data.
        InputError: the data of the file are not there.
    """
    from audio_compositionality.dataset_builder.data import DatasetError
    from audio_compositionality.dataset_builder.data_spec import described
    from audio_compositionality.dataset_builder.recipes import list_recipes
    from audio_compositionality.support.spec import read_yaml

    file = options.settings
    if options.data is None and file is not None:
        data = read_yaml(file).get("data")
        # A value that is no text is refused with the other settings.
        if isinstance(data, str) and data not in list_recipes():
            try:
                _ = described(data.partition(",")[0]).reading
            except DatasetError as error:
                raise InputError(f"{file} has the data {data!r}: {error}; --data SPEC says where they are") from error
            options.data = data
    if options.data is None or options.data in list_recipes():
        return LearntFrom(options, None)
    # Several tables of texts are separated by commas, and are of one kind.
    spec = described(options.data.partition(",")[0])
    kind = spec.reading.kind
    fields = data_fields()
    stated = any(name in fields for name in typed_pairs(options))
    if kind in ("preset", "built", "benchmark") or (kind == "hub" and not stated):
        return LearntFrom(options, None)
    if kind == "texts":
        (values,) = divided([text for text in options.set if text.startswith("audio=")], [Group("", lambda: fields)])
        return LearntFrom(options, spec.changed(**values))
    return LearntFrom(options, data_options.data_spec(options))


def _settings(options: argparse.Namespace, learnt: LearntFrom) -> tuple[dict[str, Any], MachineSpec, TrainingSettings]:
    """Changes to the recipes' settings, and the settings of the file, overridden by the typed ones."""
    from audio_compositionality.support.spec import read_values, read_yaml
    from audio_compositionality.training.settings import ALIGN, MachineSpec, TrainingSettings

    *of_data, of_machine, values = divided(options.set, learnt.groups())
    changes = of_data[1] if of_data else {}
    typed = [f"{name}={getattr(options, name)}" for name in OPTIONS if getattr(options, name) is not None]
    values |= read_values(typed, TrainingSettings.settable(), "train")
    if learnt.are_made:
        for name in ("rows", "recipe"):
            if name in values:
                raise InputError(
                    f"{name} only affects rendered or built data; for recordings, --set train_rows=N sets the number"
                )
        values.pop("preset", None)
    if options.align is not None:
        if options.init is not None:
            raise InputError(f"--align {options.align} starts from random weights and excludes --init {options.init}")
        values["init"] = f"{ALIGN}{options.align}"
    file: dict[str, Any] = {} if options.settings is None else read_yaml(options.settings)
    data = options.data or file.get("data") or DATA
    # The fingerprint of recordings identifies them.
    values["data"] = data
    return changes, MachineSpec(**of_machine), TrainingSettings(**{**file, **values})


def _train(
    options: argparse.Namespace,
    settings: TrainingSettings,
    learnt: LearntFrom,
    changes: Mapping[str, Any],
    machine: MachineSpec,
) -> TrainingRun:
    from audio_compositionality.training.running import train_model

    data: Data | TrainingSplits | None = None
    if learnt.kind == "texts":
        from audio_compositionality.training.data import published_training

        if learnt.spec is None or learnt.spec.audio is None:
            raise InputError(f"the tables {settings.data} have no sound files: give --set audio=FOLDER")
        data = published_training(learnt.tables, Path(learnt.spec.audio), skip_missing=options.skip_invalid)
    elif learnt.spec is not None:
        from audio_compositionality.training.data import training_recipes

        recipes = training_recipes()
        data = data_options.open_with_notes(options, learnt.spec, changes, recipes, required=recipes).data
    return train_model(
        settings,
        options.out,
        data=data,
        data_arguments="" if learnt.spec is None else shlex.join(learnt.typed()),
        device=options.device,
        workers=machine.workers,
        progress=True,
    )


def _lines(trained: TrainingRun, options: argparse.Namespace, learnt: LearntFrom) -> list[str]:
    """The lines at the end; the next step judges the model that was best on validation items."""
    position, out = trained.position, options.out
    lines, model = [f"{out} holds the model of step {position.total:,}."], out
    if position.best is not None:
        lines.append(
            f"{out / 'best'} holds the model with the best score, {position.best:.3f}, at step {position.best_step:,}."
        )
        model = out if position.best_step == position.total else out / "best"
    # --set may change the training rows; the test items have other settings.
    typed = learnt.typed(made=False) if learnt.are_made else []
    words = (str(model), "--benchmark", BENCHMARK, *typed)
    return [*lines, arguments.next_line(options, "run", *words, kept=("device",))]


COMMAND = Command(
    summary="train an audio-text model on the composition of sounds",
    description=_DESCRIPTION,
    add_arguments=add_arguments,
    run=run,
    examples=_EXAMPLES,
    resume="The same command resumes from the last state in --out.",
    place=55,
)
