"""The command line: parse the arguments, call the library, say what went wrong in one line."""

from __future__ import annotations

import argparse
import errno
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder import Benchmark, BenchmarkConfig
    from audio_compositionality.encoders import Encoder

BASELINES = ("downsample", "random", "log-mel-statistics")

_DESCRIPTION = """\
Measure compositional structure in audio embeddings (arXiv 2603.13685).

  A-COAT  is adding the same sources to two scenes the same step in embedding space?
  A-TRE   can a small model rebuild the embedding of a scene from its attributes?
"""

_EXAMPLES = """\
examples:
  audio-compositionality run
      the baselines on the preset mini, rendered on the fly: nothing is downloaded, no data are written
  audio-compositionality run --encoder openai/whisper-base
      the same beside a pretrained encoder and its untrained twin
  audio-compositionality evaluate --encoder ./my-checkpoint --preset full --out results-full
      one encoder at the paper's size
  audio-compositionality build --preset full --out audio-compositionality
      write the data set, for load_dataset("audio-compositionality", "a_coat")
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit status: 0, 2 for a mistake in the input, 130 when interrupted."""
    options = _parser().parse_args(arguments)
    warnings.showwarning = _show_warning
    try:
        options.run(options)
    except KeyboardInterrupt:
        print(f"\nstopped. What is finished is kept: {options.resume}", file=sys.stderr)
        return 130
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        print(f"error: {error}{'; make room: what is finished is kept' if full else ''}", file=sys.stderr)
        return 2
    except (ValueError, FloatingPointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        print(f"error: {error} Give a smaller --batch-size; what is finished is kept.", file=sys.stderr)
        return 2
    return 0


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    print(f"{'note' if category is UserWarning else category.__name__}: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="audio-compositionality",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    again = "the same command goes on from there."

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
        help="also this encoder: a name of `encoders`, a Hub id, or a local folder; may be given several times",
    )
    _add_evaluation_options(run)
    run.set_defaults(run=_run, resume=again)

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
    build.set_defaults(run=_build, resume=again)

    evaluate = commands.add_parser(
        "evaluate",
        help="score encoders on a preset, a built folder or a Hub data set",
        description="Embed every clip with an encoder, score both tasks, and write result files.",
    )
    _add_encoder_option(evaluate)
    _add_data_options(evaluate)
    _add_evaluation_options(evaluate)
    evaluate.set_defaults(run=_evaluate, resume=again)

    embed = commands.add_parser(
        "embed",
        help="write the embeddings of every clip to Parquet",
        description="Embed every clip with an encoder; write one Parquet file a task, columns id and embedding.",
    )
    _add_encoder_option(embed)
    _add_data_options(embed)
    embed.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the embeddings")
    _add_computing_options(embed)
    embed.set_defaults(run=_embed, resume=again)

    encoders = commands.add_parser("encoders", help="list the encoders that have a name")
    encoders.set_defaults(run=_encoders, resume="")
    return parser


def _add_encoder_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--encoder",
        required=True,
        metavar="ID",
        help="a name of `encoders`, a Hub id, a local folder, or untrained:ID for that architecture with fresh weights",
    )


def _add_data_options(parser: argparse.ArgumentParser) -> None:
    data = parser.add_mutually_exclusive_group()
    data.add_argument("--preset", default="mini", metavar="NAME", help="mini (default) or full, rendered on the fly")
    data.add_argument("--data", metavar="DIR|HUB_ID", help="a built folder, or the Hub id of a data set")


def _add_evaluation_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, default=Path("results"), metavar="DIR", help="result files of one data set; default results"
    )
    _add_computing_options(parser)


def _add_computing_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--batch-size", type=int, metavar="N", help="clips embedded at a time; default 4, on a GPU 32")
    parser.add_argument("--device", metavar="DEVICE", help="cpu, cuda or cuda:1; default CUDA where there is one")
    parser.add_argument("--force", action="store_true", help="compute again and replace what is there")


def _run(options: argparse.Namespace) -> None:
    from audio_compositionality.dataset_builder import open_benchmark
    from audio_compositionality.encoders import load_encoder

    # All encoders are loaded before the first is evaluated: a wrong name should not cost a minute.
    encoders: list[Encoder] = [load_encoder(name, device=options.device) for name in BASELINES]
    for name in options.encoder:
        encoders.append(load_encoder(name, device=options.device))
        if name not in BASELINES and not name.startswith("untrained:"):
            encoders.append(load_encoder(f"untrained:{name}", device=options.device))
    _evaluate_all(encoders, open_benchmark("mini"), options)


def _evaluate(options: argparse.Namespace) -> None:
    from audio_compositionality.encoders import load_encoder

    _evaluate_all([load_encoder(options.encoder, device=options.device)], _benchmark(options), options)


def _evaluate_all(encoders: Sequence[Encoder], benchmark: Benchmark, options: argparse.Namespace) -> None:
    from .evaluation import evaluate_encoder, find_results
    from .table import print_results

    if not options.force:
        for encoder in encoders:
            find_results(encoder, benchmark, benchmark.tasks, options.out)
    results = []
    for encoder in encoders:
        results += evaluate_encoder(
            encoder,
            benchmark,
            batch_size=options.batch_size,
            device=options.device,
            out=options.out,
            force=options.force,
        )
    print_results(results)
    print(f"Result files are in {options.out}.")


def _embed(options: argparse.Namespace) -> None:
    from audio_compositionality.encoders import load_encoder

    from .embeddings import write_embeddings

    encoder = load_encoder(options.encoder, device=options.device)
    paths = write_embeddings(
        encoder, _benchmark(options), options.out, batch_size=options.batch_size, force=options.force
    )
    print(*paths, sep="\n")


def _benchmark(options: argparse.Namespace) -> Benchmark:
    from audio_compositionality.dataset_builder import open_benchmark, preset_config

    if options.data is not None:
        return open_benchmark(options.data)
    preset_config(options.preset)
    return open_benchmark(options.preset)


def _build(options: argparse.Namespace) -> None:
    from audio_compositionality.dataset_builder import build_dataset

    folder = build_dataset(
        _build_config(options),
        options.out,
        audio_format=options.audio_format,
        workers=options.workers,
        force=options.force,
    )
    print(f'{folder} is built. In the folder beside it: load_dataset("{folder.name}", "a_coat"), or "a_tre".')


def _build_config(options: argparse.Namespace) -> BenchmarkConfig:
    from audio_compositionality.dataset_builder import preset_config
    from audio_compositionality.dataset_builder.dx7 import load_bank

    if options.bank is None:
        if options.voices is not None:
            raise ValueError("--voices chooses from a bank: give --bank FILE too")
        return preset_config(options.preset, seed=options.seed)
    bank = load_bank(options.bank)
    text = options.voices or "1,2,3,4,5,6,7,8"
    try:
        numbers = [int(number) for number in text.split(",")]
    except ValueError:
        raise ValueError(f"--voices is {text!r}; give numbers with commas between them, such as 1,5,9") from None
    wrong = [number for number in numbers if not 1 <= number <= len(bank)]
    if wrong:
        raise ValueError(f"--voices has {wrong[0]}; the voices of a bank are numbered 1 to {len(bank)}")
    return preset_config(options.preset, seed=options.seed, voices=tuple(bank[number - 1] for number in numbers))


def _encoders(options: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.table import Table

    from audio_compositionality.encoders import list_encoders

    table = Table("name", "family", "dim", "rate (Hz)", "what it is")
    for info in list_encoders():
        table.add_row(info.name, info.family, str(info.output_dim), f"{info.sample_rate:,}", info.description)
    Console().print(table)
    print("Any transformers audio model works by its Hub id or local folder; untrained:ID gives it fresh weights.")
