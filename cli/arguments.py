"""The arguments of the command line, and what ``--help`` teaches."""

from __future__ import annotations

import argparse
import importlib.metadata
from pathlib import Path

# The command line is the one place that knows the packages above the evaluator.
from audio_compositionality.push_scripts.arguments import add_commands

_DESCRIPTION = """\
Measure compositional structure in audio embeddings (arXiv 2603.13685).

  A-COAT  is adding the same sources to two scenes the same step in embedding space?
  A-TRE   can a small model rebuild the embedding of a scene from its attributes?
"""

_EXAMPLES = """\
examples:
  audio-compositionality run
      the baselines on the preset mini, rendered on the fly: nothing is downloaded, no data are written
  audio-compositionality run --encoder whisper-base
      the same beside a pretrained encoder and its untrained twin
  audio-compositionality check-encoder my_encoder.py:MyEncoder
      a class of your own with sample_rate and embed(waveforms, sample_rate): does it do what it should?
  audio-compositionality evaluate --encoder my_encoder.py:MyEncoder --preset full --out results-full
      one encoder at the paper's size
  audio-compositionality build --preset full --out audio-compositionality
      write the data set, for load_dataset("audio-compositionality", "a_coat")
"""

_EMBEDDING_EXAMPLES = """\
embeddings:
  Every 64 clips are one file below --embeddings, under a key made of the data, the encoder's revision and weights,
  layer, pooling and precision. What is there is not computed again: a run that was stopped, however it was stopped,
  is continued by the same command, and another layer or precision gets a folder of its own.

examples:
  audio-compositionality {command} --encoder whisper-base --layer 3 --pooling max{out}
      the output of the third block, its maximum over time
  audio-compositionality {command} --encoder whisper-large-v3 --precision bfloat16{out}
      faster on a GPU; results state how far the embeddings are from float32
  torchrun --nproc_per_node 4 -m audio_compositionality.evaluator {command} --encoder ID{out}
      four processes on one machine, each with a GPU of its own where there are so many; also
      accelerate launch --num_processes 4 -m audio_compositionality.evaluator {command} ...
      (on a CPU take torchrun: accelerate launch --cpu runs a single process unless it is configured otherwise)
  srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 4 --rdzv_backend c10d --rdzv_endpoint $HEAD_NODE:29500 \\
      -m audio_compositionality.evaluator {command} --encoder ID --preset full{shared}
      several machines in a SLURM job with one task a node; {folder} must be on a file system that all of them see
"""


_CHECK_DESCRIPTION = """\
Check an encoder on a few synthetic sounds: shape, type, finite, deterministic, the same alone and in a batch, sensitive
to its input, right sample rate; and tell its speed and memory. A failure says what it usually means; the exit status is
1 then.
"""

_COMPARE_DESCRIPTION = """\
Compare results on the same data, sample by sample. For each task, of the score and of the centred score:

  intervals   95 %, BCa bootstrap; of A-COAT by the sets of added sources T, of A-TRE by scenes
  groups      encoders that share a letter are not distinguishable
  tests       paired t-tests of every two encoders, corrected by Benjamini and Hochberg, with effect sizes d_z
  slopes      of the score against diversity (H^quad of a quadruple, H of a scene), also with numbers of sources fixed
"""

_COMPARE_EXAMPLES = """\
examples:
  audio-compositionality compare results
      all results of a folder
  audio-compositionality compare results others/whisper-large-v3 --format latex --out table.tex
      with results from elsewhere, as LaTeX tables (booktabs)
  audio-compositionality compare results --format csv
      one tidy table with every mean, control, difference, slope and group mean, for pandas or R
"""

_REPORT_DESCRIPTION = """\
Write one HTML file of everything that is known of results: sortable tables, figures, slopes against diversity, the
highest- and lowest-scoring quadruples and scenes to listen to, how it was computed. It needs no network, opens from
disk and is kept below 5 MB, if need be by shorter clips.
"""

_REPORT_EXAMPLES = """\
examples:
  audio-compositionality report results
      report.html, of all results of a folder
  audio-compositionality report results --encoder whisper-base --figures figures
      with the samples that this encoder scores highest and lowest on, and every figure as SVG and PNG
  audio-compositionality report results --format latex --out tables.tex
      the tables alone, as `compare` writes them
"""

_CORAL_DESCRIPTION = """\
Are the scores an artefact of synthetic sound? The benchmark's embeddings are adapted to those of natural recordings by
correlation alignment (CORAL: Sun, Feng and Saenko 2016), and both tasks are scored before and after. A score that
changes little when the synthetic embeddings get the mean and covariance of natural sound's speaks against an artefact
of the synthetic clips' mean and covariance, and of nothing else. Any invertible linear map leaves perfect additivity at
1: that an A-COAT near 1 does not change is weak evidence.

Recordings are cut into clips of 10 s, a shorter file of 1 s or more is one clip; channels are averaged. Ten clips are
the fewest that are taken; to know a covariance well takes more than an embedding has dimensions. For A-TRE the
adaptation is learnt from the training scenes only.
"""

_CORAL_EXAMPLES = """\
examples:
  audio-compositionality coral --encoder whisper-base --recordings ESC-50/audio
      on the preset mini
  audio-compositionality coral --encoder whisper-base --recordings FSD50K.eval_audio --preset full --max-clips 5000
      at the paper's size, adapted to more clips than are taken by default
"""

_VERIFY_DESCRIPTION = """\
Recompute results from their embeddings, and compare: what a leaderboard does with a submission before it calls a result
verified. RESULT is the folder of a submission, its result.json, a folder that holds some, or a local result file, whose
embeddings are taken from the store.

  verified       the scores are those of these embeddings on these data. A-COAT and whatever else needs no fit agrees to
                 1e-6, the scores of A-TRE within the spread of its fits. Nothing is left out; settings are the default
  not verified   a number differs, or the embeddings are absent, of other clips, or not of the data that are named

What it cannot tell: that the embeddings come from the encoder that is named, and that they were not made up from the
labels. That is the word of whoever submits. The exit status is 0 if all are verified, 1 if one is not, 2 if one cannot
be read.
"""

_VERIFY_EXAMPLES = """\
examples:
  audio-compositionality verify results
      all results of `evaluate` in a folder, from the embeddings in the cache
  audio-compositionality verify results/openai__whisper-base/REVISION/a_coat-0123456789abcdef
      a submission, as it lies in the results repository
  audio-compositionality verify submission --data ORG/audio-compositionality
      of data that are no preset
"""

_VALIDATE_DESCRIPTION = """\
Score encoders that are constructed from metadata, so that the truth about them is known: does each score rise with
compositionality, stay put under what it should not see, and agree with theory; do intervals cover and tests stay
silent? Takes a few minutes. The exit status is 1 where something that must hold does not.
"""

_ENCODER_HELP = (
    "ID is a name of `encoders` (NAME=PATH takes its weights from a local file or folder), the Hub id or folder of a "
    "transformers audio model, path/to/file.py:ClassName, the name of an installed entry point, hear:MODULE, "
    "xares:FILE.py:CLASS, mteb:NAME, or untrained:ID for that architecture with fresh weights"
)


def argument_parser() -> argparse.ArgumentParser:
    """The parser of all commands; it sets `command`, which was chosen, and `resume`, what to do when it was stopped."""
    parser = argparse.ArgumentParser(
        prog="audio-compositionality",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = f"audio-compositionality {importlib.metadata.version('audio-compositionality')}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    again = "What is finished is kept: the same command goes on from there (without --force)."

    run = commands.add_parser(
        "run",
        help="the main job: baselines, and encoders beside their untrained twins, on the preset mini",
        description="Evaluate the baselines, and each --encoder beside its untrained twin, on the preset mini.",
    )
    run.add_argument(
        "--encoder",
        action="append",
        default=[],
        metavar="ID",
        help=f"also this encoder; may be given several times. {_ENCODER_HELP}",
    )
    _add_evaluation_options(run, "of --encoder; the baselines have no model")
    run.set_defaults(command="run", resume=again)

    build = commands.add_parser(
        "build",
        help="write the data set to a folder that load_dataset reads",
        description="Write the data set: Parquet shards with embedded audio, a card, a manifest. A build that was "
        "stopped is finished by the same command.",
    )
    build.add_argument("--preset", default="mini", metavar="NAME", help="mini or full (the paper's size); default mini")
    build.add_argument("--out", type=Path, default=Path("audio-compositionality"), metavar="DIR", help="the folder")
    build.add_argument("--seed", type=int, default=0, metavar="N", help="seed of every random choice; default 0")
    build.add_argument(
        "--workers", type=int, metavar="N", help="threads; default one a core. Bytes do not depend on it"
    )
    build.add_argument("--audio-format", default="flac", metavar="FORMAT", help="flac (default) or wav, both 16-bit")
    build.add_argument("--bank", type=Path, metavar="FILE", help="take the timbres from this 32-voice DX7 bank (.syx)")
    build.add_argument(
        "--voices", metavar="N,N,...", help="which eight voices of --bank, counted from 1; default 1,2,3,4,5,6,7,8"
    )
    build.add_argument("--force", action="store_true", help="replace another data set in the folder")
    build.set_defaults(command="build", resume=again)

    evaluate = commands.add_parser(
        "evaluate",
        help="score encoders on a preset, a built folder or a Hub data set",
        description="Embed every clip with an encoder, score both tasks, and write result files.",
        epilog=_EMBEDDING_EXAMPLES.format(
            command="evaluate", out="", shared=" --embeddings DIR", folder="--embeddings"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_encoder_option(evaluate)
    _add_layer_options(evaluate)
    _add_data_options(evaluate)
    _add_evaluation_options(evaluate)
    evaluate.set_defaults(command="evaluate", resume=again)

    embed = commands.add_parser(
        "embed",
        help="write the embeddings of every clip to Parquet",
        description="Embed every clip with an encoder. Each task gets a folder of Parquet files of 64 clips each, "
        "columns id,\nembedding and error; `evaluate --embeddings DIR` takes them from there.",
        epilog=_EMBEDDING_EXAMPLES.format(command="embed", out=" --out DIR", shared=" --out DIR", folder="--out"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_encoder_option(embed)
    _add_layer_options(embed)
    _add_data_options(embed)
    embed.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the embeddings")
    _add_computing_options(embed)
    embed.set_defaults(command="embed", resume=again)

    compare = commands.add_parser(
        "compare",
        help="results beside each other: intervals, paired tests, slopes against diversity",
        description=_COMPARE_DESCRIPTION,
        epilog=_COMPARE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_result_options(compare)
    compare.add_argument(
        "--format", default="text", metavar="NAME", help="text (default), or for papers markdown, latex, csv or json"
    )
    compare.add_argument("--out", type=Path, metavar="FILE", help="write there instead of to the terminal")
    compare.set_defaults(command="compare", resume="")

    report = commands.add_parser(
        "report",
        help="one HTML page of results: tables, figures, samples to listen to",
        description=_REPORT_DESCRIPTION,
        epilog=_REPORT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_result_options(report)
    report.add_argument(
        "--out", type=Path, metavar="FILE", help="the file; default report.html, of other formats the terminal"
    )
    report.add_argument(
        "--encoder",
        metavar="ID",
        help="samples to listen to are those that this encoder scores highest and lowest on; default, all that are "
        "neither baselines nor untrained",
    )
    report.add_argument(
        "--format",
        default="html",
        metavar="NAME",
        help="html (default), or the tables alone: text, markdown, latex, csv, json",
    )
    report.add_argument("--figures", type=Path, metavar="DIR", help="also write every figure there, as SVG and PNG")
    report.set_defaults(command="report", resume="")

    coral = commands.add_parser(
        "coral",
        help="are the scores an artefact of synthetic sound? The paper's check against natural recordings",
        description=_CORAL_DESCRIPTION,
        epilog=_CORAL_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_encoder_option(coral)
    coral.add_argument(
        "--recordings",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder with natural recordings, at any depth: wav, flac, ogg, mp3 and others",
    )
    coral.add_argument(
        "--max-clips",
        type=int,
        metavar="N",
        help="most clips of the recordings; where there are more, so many are drawn, always the same; default 2000",
    )
    _add_layer_options(coral)
    _add_data_options(coral)
    _add_scoring_options(coral)
    coral.set_defaults(command="coral", resume=again)

    check = commands.add_parser(
        "check-encoder",
        help="what to run first on a new encoder: does it do what it should, and how fast?",
        description=_CHECK_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    check.add_argument("encoder", metavar="ID", help=_ENCODER_HELP)
    _add_layer_options(check)
    _add_model_options(check)
    check.set_defaults(command="check_encoder", resume="")

    verify = commands.add_parser(
        "verify",
        help="recompute results from their embeddings: do they hold what they claim?",
        description=_VERIFY_DESCRIPTION,
        epilog=_VERIFY_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verify.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar="RESULT",
        help="folder of a submission, or one that holds some; its result.json; or the JSON file of a local result",
    )
    verify.add_argument("--data", metavar="DIR|HUB_ID", help="the data of the results, where they are no preset's")
    verify.add_argument(
        "--embeddings",
        type=Path,
        metavar="DIR",
        help="folder of the embeddings of local results; default that of `evaluate`",
    )
    verify.add_argument(
        "--device", metavar="DEVICE", help="where A-TRE is fitted: cpu or cuda; default CUDA where there is one"
    )
    verify.set_defaults(command="verify", resume="")

    validate = commands.add_parser(
        "validate",
        help="do the scores measure what they claim? constructed encoders, whose truth is known",
        description=_VALIDATE_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    validate.add_argument("--out", type=Path, metavar="FILE", help="also write the page as Markdown")
    validate.add_argument(
        "--simulations",
        type=int,
        metavar="N",
        help="simulated data sets of each setting; default 1000, with --quick 100",
    )
    validate.add_argument("--quick", action="store_true", help="less of everything, with wider bands: under a minute")
    validate.add_argument("--seed", type=int, default=0, metavar="N", help="seed of every random choice; default 0")
    validate.set_defaults(command="validate", resume="")

    add_commands(commands, again)

    encoders = commands.add_parser("encoders", help="list the encoders that have a name")
    encoders.set_defaults(command="encoders", resume="")
    return parser


def _add_result_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar="RESULTS",
        help="folders of result files, such as results, or JSON files",
    )
    parser.add_argument(
        "--data",
        metavar="DIR|HUB_ID",
        help="the data of the results, where they are neither a preset nor in the folder that the results state",
    )


def _add_encoder_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--encoder", required=True, metavar="ID", help=_ENCODER_HELP)


def _add_data_options(parser: argparse.ArgumentParser) -> None:
    data = parser.add_mutually_exclusive_group()
    data.add_argument("--preset", default="mini", metavar="NAME", help="mini (default) or full, rendered on the fly")
    data.add_argument("--data", metavar="DIR|HUB_ID", help="a built folder, or the Hub id of a data set")


def _add_layer_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--layer",
        type=int,
        metavar="N",
        help="take this hidden layer: 0 is the input of the first block, N the output of block N; default the model's "
        "output",
    )
    parser.add_argument(
        "--pooling",
        metavar="NAME",
        help="mean or max over time, or cls, the class token; default the model's own embedding of a clip where it "
        "has one, else mean",
    )


def _add_evaluation_options(parser: argparse.ArgumentParser, of: str = "") -> None:
    parser.add_argument(
        "--out", type=Path, default=Path("results"), metavar="DIR", help="result files of one data set; default results"
    )
    _add_scoring_options(parser, of)


def _add_scoring_options(parser: argparse.ArgumentParser, of: str = "") -> None:
    parser.add_argument(
        "--embeddings",
        type=Path,
        metavar="DIR",
        help="folder for embeddings; default `embeddings` in $AUDIO_COMPOSITIONALITY_CACHE or the user's cache",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=3,
        metavar="N",
        help="number of fits of A-TRE, whose spread is told apart from that of the scenes; default 3",
    )
    _add_computing_options(parser, of)


def _add_model_options(parser: argparse.ArgumentParser, of: str = "") -> None:
    of = of and f" ({of})"
    parser.add_argument(
        "--precision",
        default="float32",
        metavar="NAME",
        help=f"float32 (default), or bfloat16 or float16 by autocast{of}. Results state how far that is from float32",
    )
    parser.add_argument("--compile", action="store_true", help=f"run the model through torch.compile{of}")
    parser.add_argument(
        "--device",
        metavar="DEVICE",
        help="cpu, cuda or cuda:1; default CUDA where there is one. Of several processes each takes its own GPU",
    )


def _add_computing_options(parser: argparse.ArgumentParser, of: str = "") -> None:
    _add_model_options(parser, of)
    parser.add_argument(
        "--batch-size",
        type=int,
        metavar="N",
        help="clips embedded at a time, at most 64; default 4, on a GPU 32. Halved where memory does not suffice",
    )
    parser.add_argument(
        "--skip-invalid",
        action="store_true",
        help="leave out clips that cannot be embedded (damaged, NaN), say which, and go on; default: stop",
    )
    parser.add_argument("--force", action="store_true", help="compute again and replace what is there")
