"""`train`: an audio–text model that hears how the parts of a sound are put together."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.errors import InputError

from . import arguments, recordings
from .command import Command

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.data import Data
    from audio_compositionality.training.data import TrainingSplits
    from audio_compositionality.training.loop import TrainingRun
    from audio_compositionality.training.settings import TrainingSettings

DATA = "comp_a_train"
"""The recipe that is learnt from where nothing is said."""

BENCHMARK = "comp_a"
"""What a model is scored by that was trained on such rows."""

_DESCRIPTION = """\
Train an audio-text model in stages: contrastive, then with texts that have the same
words and are false of their clip (hard); where --stages asks for it, then with texts that are true of parts of it as
well (modular).

OUT becomes a folder that `evaluate` opens, and of a CLAP ClapModel.from_pretrained too: the model of the last step,
best/ with that of the highest score on items of validation, settings.yaml, training.json, log.csv, evaluations.csv
and a card.
"""

_EXAMPLES = """\
  audio-compositionality train --out my-clap
      a small model from fresh weights on scenes that are rendered on the fly; nothing is downloaded. A first try takes
      a minute: --stages contrastive:50,hard:50 --rows 500
  audio-compositionality train --init laion-clap --train last --batch-size 64 --chunk 16 --out my-clap
      go on from a pretrained model, the last layers of both towers alone; of each batch of 64 no more than 16 clips
      at a time are in the memory, and the gradient is that of all 64
  audio-compositionality train --data built --stages contrastive:500,hard:1000 --learning-rate 1e-3,5e-4 --out my-clap
      a folder that `build` has written, such as one with texts of a language model, and a learning rate for each stage
  audio-compositionality train --align whisper-tiny.en --stages contrastive:300,hard:900 --out whisper-aligned
      how much order and binding can be read from the embeddings of an encoder that knows no text
  audio-compositionality train --ablations --seeds 0,1,2 --stages contrastive:300,hard:900,modular:200 --out ablations
      the same without each stage, in other orders and with fewer true parts, in one table with intervals
  audio-compositionality train --recordings animals --out my-clap
      scenes that are mixed of your own recordings, ANIMALS/LABEL/file.wav
  audio-compositionality train --settings my-clap/settings.yaml --seed 1 --out my-clap-1
      the settings of a file; what is typed comes before it
  audio-compositionality train --evaluate-every 100 --patience 5 --log-to tensorboard --out my-clap
      scores on items of validation every 100 steps; a stage ends after five without a better one
  audio-compositionality train --push my-lab/my-clap --out my-clap
      publish it when it is trained; of a folder that is finished nothing else is done (--dry-run: what would be sent)
  torchrun --nproc_per_node 4 -m audio_compositionality train --batch-size 256 --out my-clap
      four processes, a GPU each where there are so many, which share each batch; also accelerate launch. Any number of
      them that divides the batch gives the same model, up to rounding

what is kept:
  A run that was stopped, however it was stopped, goes on from its last state by the same command, and on a CPU comes
  to the same weights bit for bit. Other settings need another OUT, but for --checkpoint-every, --chunk and --log-to.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments; those that are settings have no defaults of their own."""
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of the run and of its model")
    parser.add_argument("--settings", type=Path, metavar="FILE", help="take settings from this YAML file")
    _add_model(parser.add_argument_group("the model"))
    data = parser.add_mutually_exclusive_group()
    data.add_argument(
        "--data",
        metavar="NAME|DIR|HUB_ID",
        help=f"rows to learn from: a recipe, rendered on the fly (default {DATA}), a folder that `build` has written, "
        "or the Hub id of such data",
    )
    sizes = parser.add_argument_group("the data")
    sizes.add_argument("--preset", metavar="NAME", help="size of a recipe: mini (default) or full")
    sizes.add_argument("--recipe", metavar="NAME", help="the one to learn from, of data with several")
    sizes.add_argument(
        "--sounds",
        type=Path,
        metavar="DIR",
        help="--data is published tables of texts (path,caption,dataset,split_name; several with commas), and their "
        "files are below DIR",
    )
    sizes.add_argument("--rows", type=int, metavar="N", help="learn from so many rows; default all")
    _add_steps(parser.add_argument_group("the steps"))
    _add_validation(parser.add_argument_group("validation and log"))
    ablations = parser.add_argument_group("what each stage is for")
    ablations.add_argument(
        "--ablations",
        action="store_true",
        help="train again without each stage, with neighbouring stages exchanged and with fewer true parts, score all "
        "on the test items, and write one table, DIR/ablations.csv and .md; what is finished is not done again",
    )
    ablations.add_argument("--seeds", metavar="N[,N...]", help="of these trainings; default --seed alone")
    arguments.add_device(parser)
    parser.add_argument("--workers", type=int, metavar="N", help="threads that prepare log-mels; default one a core")
    publishing = parser.add_argument_group("publishing")
    publishing.add_argument("--push", metavar="ORG/NAME", help="bring this model repository on the Hub to the result")
    publishing.add_argument("--private", action="store_true", help="make a repository that is new a private one")
    arguments.add_dry_run(publishing)  # type: ignore[arg-type]
    recordings.add_recordings(parser, data)
    # Recordings are learnt from by the project's own protocol.
    parser.set_defaults(protocol=None)
    recordings.add_skip_invalid(parser)


def _add_model(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--init",
        metavar="NAME|DIR|HUB_ID",
        help="what is begun with: tiny, small towers with fresh weights (default); tiny-clap, a small CLAP "
        "in transformers' format; a folder, Hub id or listed name of a CLAP; untrained:MODEL gives its architecture "
        "with fresh weights",
    )
    group.add_argument(
        "--align",
        metavar="ENCODER",
        help="instead: any encoder of sound, whose embeddings stay as they are; a linear map of them and a small text "
        "tower are trained. untrained:ENCODER gives the control",
    )
    group.add_argument(
        "--train",
        metavar="WHICH",
        help="weights that are trained: all (default); last, the last stage of the audio tower, the last layer of the "
        "text tower and the projections; or projection",
    )
    group.add_argument(
        "--precision", metavar="NAME", help="auto (default: bf16 on a GPU, else float32), no, bf16, fp16"
    )


def _add_steps(group: argparse._ActionsContainer) -> None:
    from audio_compositionality.training.settings import STAGES

    group.add_argument(
        "--stages",
        metavar="KIND:STEPS,...",
        help=f"stages and their steps, one after the other; kinds are contrastive, hard and modular. Default {STAGES}",
    )
    group.add_argument(
        "--learning-rate",
        metavar="RATE[,RATE...]",
        help="the highest one: of all stages, or one a stage. It rises over --warm-up steps and falls as a cosine",
    )
    group.add_argument("--warm-up", metavar="N[,N...]", help="steps in which the learning rate rises, likewise")
    group.add_argument(
        "--batch-size", type=int, metavar="N", help="rows of a batch, over all processes; default 48. More are harder"
    )
    group.add_argument(
        "--chunk", type=int, metavar="N", help="rows that are in the memory at a time; one more forward pass, same step"
    )
    group.add_argument(
        "--accumulate",
        type=int,
        metavar="N",
        help="batches of a step. It adds no rows that a clip is told from, as a larger batch with --chunk does",
    )
    group.add_argument("--weight-decay", type=float, metavar="X", help="of weights, not of biases and norms; 0.01")
    group.add_argument("--negatives", type=int, metavar="N", help="most false texts of a row in the stage hard; 3")
    group.add_argument("--modular-negatives", type=int, metavar="N", help="the same in the stage modular; 7")
    group.add_argument("--positives", type=int, metavar="N", help="most true parts of a row in the stage modular; 7")
    group.add_argument("--form", metavar="NAME", help="of the modular loss: own (default), paper or release")
    group.add_argument(
        "--text-to-audio", type=float, metavar="X", help="weight of the half of a loss that looks for clips; 1"
    )
    group.add_argument("--audio-to-text", type=float, metavar="X", help="weight of the half that looks for texts; 1")
    group.add_argument(
        "--modular-weight",
        type=float,
        metavar="X",
        help="weight of the modular loss (own) beside that of hard; 0.5",
    )
    group.add_argument(
        "--neighbours", type=int, metavar="N", help="put one of its N nearest clips with each clip of a batch; 0"
    )
    group.add_argument("--seed", type=int, metavar="N", help="of fresh weights and of every draw; default 0")


def _add_validation(group: argparse._ActionsContainer) -> None:
    from audio_compositionality.training.settings import VALIDATION_ITEMS

    group.add_argument(
        "--evaluate-every", type=int, metavar="N", help="steps between evaluations; default at the end of each stage"
    )
    group.add_argument(
        "--validation-items",
        type=int,
        metavar="N",
        help=f"of each task; default {VALIDATION_ITEMS}, 0 for none",
    )
    group.add_argument("--patience", type=int, metavar="N", help="end a stage after N evaluations without a better one")
    group.add_argument("--checkpoint-every", type=int, metavar="N", help="steps that a killed run loses; default 100")
    group.add_argument(
        "--log-to", metavar="NAME,NAME", help="beside log.csv: tensorboard, trackio (extras of the same names)"
    )


def run(options: argparse.Namespace) -> None:
    """Train, say where the model is, and publish it where that is asked for."""
    from audio_compositionality.training.record import check_out

    if options.workers is not None and options.workers < 1:
        raise InputError(f"--workers is {options.workers}; it must be 1 or more")
    if options.push is None:
        for name in ("private", "dry_run"):
            if getattr(options, name):
                raise InputError(f"--{name.replace('_', '-')} is about publishing: give --push ORG/NAME too")
    else:
        from audio_compositionality.training.pushing import model_repository

        model_repository(options.push)
    settings = _settings(options)
    if options.push is not None:
        _check_encoder(settings.init)
    if options.ablations:
        _compare(options, settings)
        return
    if options.seeds is not None:
        raise InputError("--seeds are of --ablations; a training has one --seed")
    # Before what opens data and models is imported, which takes seconds.
    check_out(options.out, settings)
    trained = _train(options, settings, options.out)
    from audio_compositionality.training.computing import join_training

    if join_training(options.device).is_main:
        print("\n".join(_lines(trained, options)), flush=True)
        if options.push is not None:
            _push(options)


def _check_encoder(init: str) -> None:
    """Refuse, before anything is trained, what could not be published afterwards."""
    from audio_compositionality.encoders.loading.public_names import absolute_name
    from audio_compositionality.training.pushing import check_encoder
    from audio_compositionality.training.settings import ALIGN

    if init.startswith(ALIGN):
        check_encoder(absolute_name(init.removeprefix(ALIGN)))


def _compare(options: argparse.Namespace, settings: TrainingSettings) -> None:
    """Train and score the variants, and print their table."""
    from audio_compositionality.support.table import print_table
    from audio_compositionality.training.ablations import run_ablations

    if options.push is not None or options.sounds is not None or recordings.are_given(options):
        raise InputError(
            "--ablations compares trainings on rows that are rendered or built, and publishes none of them"
        )
    given = str(settings.seed) if options.seeds is None else options.seeds
    try:
        seeds = [int(part) for part in given.split(",")]
    except ValueError:
        raise InputError(f"--seeds is {given!r}; give whole numbers with commas between them, such as 0,1,2") from None
    table = run_ablations(settings, options.out, seeds, device=options.device, progress=True)
    from audio_compositionality.training.computing import join_training

    if join_training(options.device).is_main:
        print_table(table)


def _settings(options: argparse.Namespace) -> TrainingSettings:
    """The settings of the file and, before them, those that are typed."""
    from audio_compositionality.support.spec import read_yaml
    from audio_compositionality.training.settings import ALIGN, STAGE_OPTIONS, TrainingSettings

    values: dict[str, Any] = {} if options.settings is None else read_yaml(options.settings)
    typed = {name: getattr(options, name, None) for name in TrainingSettings.model_fields if name != "data"}
    given: dict[str, Any] = {name: value for name, value in typed.items() if value is not None}
    if "log_to" in given:
        given["log_to"] = given["log_to"].split(",")
    for name in given.keys() & set(STAGE_OPTIONS):
        given[name] = _numbers(name, given[name])
    if options.sounds is not None and options.data is None and "data" not in values:
        raise InputError("--sounds has the files of tables: give --data TABLE.csv too")
    if options.align is not None:
        if options.init is not None:
            raise InputError(f"--align {options.align} begins with fresh weights, so --init {options.init} cannot be")
        given["init"] = f"{ALIGN}{options.align}"
    if recordings.are_given(options):
        for name in ("preset", "rows", "recipe"):
            if name in given:
                raise InputError(f"--{name} is about data that are rendered or built; recordings have --size and --set")
        given["data"] = _described(options)
    else:
        if options.set is not None:
            raise InputError("--set is about recordings: name them with --recordings DIR or --dataset ID")
        given["data"] = options.data or values.get("data") or DATA
    return TrainingSettings(**{**values, **given})


def _described(options: argparse.Namespace) -> str:
    """What names the recordings, on one line; what they are is told by the data's fingerprint."""
    names = ("recordings", "dataset", "labels")
    return next(f"--{name} {getattr(options, name)}" for name in names if getattr(options, name, None) is not None)


def _numbers(name: str, text: str) -> float | int | list[float | int]:
    """A number for all stages, or several with commas between them."""
    kind = int if name == "warm_up" else float
    try:
        numbers = [kind(part) for part in text.split(",")]
    except ValueError:
        example = "100" if kind is int else "1e-3"
        raise InputError(
            f"--{name.replace('_', '-')} is {text!r}; give a number such as {example}, or one a stage with commas"
        ) from None
    return numbers[0] if len(numbers) == 1 else list(numbers)


def _train(options: argparse.Namespace, settings: TrainingSettings, out: Path) -> TrainingRun:
    from audio_compositionality.training.running import train_model

    data: Data | TrainingSplits | None = None
    typed: list[str] = []
    if options.sounds is not None:
        from audio_compositionality.training.published import published_training

        data = published_training(settings.data.split(","), options.sounds, skip_missing=options.skip_invalid)
        typed = ["--sounds", str(options.sounds), *(["--skip-invalid"] if options.skip_invalid else [])]
    if recordings.are_given(options):
        from audio_compositionality.training.data import training_recipes

        data = recordings.recordings_data(options, list(training_recipes()))
        typed = recordings.as_typed(options)
    return train_model(
        settings,
        out,
        data=data,
        data_arguments=shlex.join(typed),
        device=options.device,
        workers=options.workers,
        progress=True,
    )


def _lines(trained: TrainingRun, options: argparse.Namespace) -> list[str]:
    """What to say at the end; what is to be scored next is the model that was the best on items of validation."""
    position, out = trained.position, options.out
    lines, model = [f"{out} holds the model of step {position.total:,}."], out
    if position.best is not None:
        lines.append(
            f"{out / 'best'} holds that of the highest score, {position.best:.3f}, of step {position.best_step:,}."
        )
        model = out if position.best_step == position.total else out / "best"
    # What is learnt from the rows may be changed by --set; of the test items there are other settings.
    typed = recordings.as_typed(options, changes=False) if recordings.are_given(options) else []
    command = ["audio-compositionality", "evaluate", str(model), "--benchmark", BENCHMARK, *typed]
    return [*lines, f"Next: {shlex.join(command)}"]


def _push(options: argparse.Namespace) -> None:
    from audio_compositionality.training.pushing import push_model

    push = push_model(options.out, options.push, private=options.private, dry_run=options.dry_run)
    size = sum(push.changes.send.values())
    if push.commit is None:
        print(f"would send {len(push.changes.send)} files, {size:,} bytes, to {push.repository.url}")
        for name, of_file in push.changes.send.items():
            print(f"  {name}, {of_file:,} bytes")
    else:
        print(f"sent {len(push.changes.send)} files, {size:,} bytes: {push.commit.url}")


COMMAND = Command(
    summary="train an audio-text model that hears how parts are put together",
    description=_DESCRIPTION,
    add_arguments=add_arguments,
    run=run,
    examples=_EXAMPLES,
    resume="The same command goes on from the last state in --out.",
    place=55,
)
