"""The command line: parse the arguments, call the library, say what went wrong in one line."""

from __future__ import annotations

import argparse
import errno
import shlex
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .arguments import argument_parser
from audio_compositionality.evaluator.run.processes import ProcessError, claim_failure

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder import Benchmark, BenchmarkConfig
    from audio_compositionality.encoders import Encoder, EncoderOptions, StagedEncoder

    from audio_compositionality.evaluator.compare.comparison import Comparison
    from audio_compositionality.evaluator.run.processes import Processes

BASELINES = ("downsample", "random", "log-mel-statistics")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns the exit status: 0, 1 where an encoder fails its check or a result is not verified, 2 for a mistake in the
    input, 130 when interrupted.
    """
    options = argument_parser().parse_args(arguments)
    options.typed = shlex.join(["audio-compositionality", *(sys.argv[1:] if arguments is None else arguments)])
    warnings.showwarning = _show_warning
    try:
        status = _COMMANDS[options.command](options)
    except (KeyboardInterrupt, Exception) as error:
        message = _explain(error, options)
        # Of several processes the first that fails speaks for all.
        first = claim_failure(message or repr(error))
        if message is None:
            raise
        if first:
            print(message, file=sys.stderr)
        return 130 if isinstance(error, KeyboardInterrupt) else 2
    return status or 0


def _explain(error: BaseException, options: argparse.Namespace) -> str | None:
    """What to say of an error; None of one that nobody expects, whose traceback is wanted."""
    if isinstance(error, KeyboardInterrupt):
        return f"\nstopped. {options.resume}".rstrip()
    if isinstance(error, OSError):
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return f"error: {error}{'; make room: what is finished is kept' if full else ''}"
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return f"error: {error or 'out of memory'}; what is finished is kept"
    if isinstance(error, (ValueError, FloatingPointError, ProcessError)):
        hint = "; --skip-invalid leaves such clips out" if _can_be_skipped(error, options) else ""
        return f"error: {error}{hint}"
    return None


def _can_be_skipped(error: Exception, options: argparse.Namespace) -> bool:
    if getattr(options, "skip_invalid", True) or "--skip-invalid" in str(error):
        return False
    from audio_compositionality.encoders import ClipError

    return isinstance(error, ClipError)


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    print(f"{'note' if category is UserWarning else category.__name__}: {message}", file=sys.stderr)


def _run(options: argparse.Namespace) -> None:
    from audio_compositionality.dataset_builder import open_benchmark
    from audio_compositionality.encoders import has_untrained_twin, load_encoder

    processes = _join()
    chosen = _encoder_options(options)
    device = processes.device(options.device)
    # All encoders are loaded before the first is evaluated: a wrong name should not cost a minute.
    with processes.one_first():
        names = [*BASELINES]
        for name in options.encoder:
            names.append(name)
            if not name.startswith("untrained:") and has_untrained_twin(name):
                names.append(f"untrained:{name}")
        encoders: list[Encoder] = [
            load_encoder(name, device=device) if name in BASELINES else _load(name, device, chosen)
            for name in dict.fromkeys(names)
        ]
    _evaluate_all(encoders, open_benchmark("mini"), options)
    if processes.is_main:
        _report_of_run(options)


def _report_of_run(options: argparse.Namespace) -> None:
    """Write the report of all results in the folder, earlier ones too; where that fails, say why and go on."""
    from audio_compositionality.evaluator.report.report.report import write_report

    try:
        path = write_report([options.out], options.out / "report.html", command=options.typed)
    except (OSError, ValueError) as error:
        print(f"note: there is no report: {error}", file=sys.stderr)
    else:
        print(f"The report is {path}: open it in a browser.")


def _evaluate(options: argparse.Namespace) -> None:
    processes = _join()
    with processes.one_first():
        encoder = _load(options.encoder, processes.device(options.device), _encoder_options(options))
    _evaluate_all([encoder], _benchmark(options), options)


def _evaluate_all(encoders: Sequence[Encoder], benchmark: Benchmark, options: argparse.Namespace) -> None:
    from audio_compositionality.evaluator.run.embedding import embedding_root
    from audio_compositionality.evaluator.run.evaluation import evaluate_encoders
    from audio_compositionality.evaluator.compare.table import print_results

    embeddings = options.embeddings or embedding_root()
    results = evaluate_encoders(
        encoders,
        benchmark,
        seeds=options.seeds,
        batch_size=options.batch_size,
        device=options.device,
        out=options.out,
        embeddings=embeddings,
        skip_invalid=options.skip_invalid,
        force=options.force,
    )
    if _join().is_main:
        print_results(results)
        print(f"Result files are in {options.out}, embeddings in {embeddings}.")


def _embed(options: argparse.Namespace) -> None:
    from audio_compositionality.evaluator.run.embedding import embed_benchmark

    processes = _join()
    with processes.one_first():
        encoder = _load(options.encoder, processes.device(options.device), _encoder_options(options))
    stores = embed_benchmark(
        encoder,
        _benchmark(options),
        options.out,
        batch_size=options.batch_size,
        skip_invalid=options.skip_invalid,
        force=options.force,
    )
    if processes.is_main:
        for store in stores:
            print(store.folder)
            skipped = len(store.load().errors)
            if skipped:
                print(
                    f"note: {skipped} of {len(store.ids)} clips of {store.key.task} could not be embedded; the column "
                    "error says which and why",
                    file=sys.stderr,
                )


def _compare(options: argparse.Namespace) -> None:
    from audio_compositionality.evaluator.compare.comparison import compare_results
    from audio_compositionality.evaluator.compare.table_formats import check_format

    check_format(options.format)
    _check_file(options.out)
    _tell(compare_results(options.results, data=options.data), options)


def _check_file(path: Path | None) -> None:
    """Refuse a folder where a file is to be written, before anything is computed."""
    if path is not None and path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file")


def _tell(comparisons: Sequence[Comparison], options: argparse.Namespace) -> None:
    """Print comparisons, or write them where the options say."""
    from audio_compositionality.evaluator.compare.comparison_tables import print_comparisons
    from audio_compositionality.evaluator.results.result import write_text
    from audio_compositionality.evaluator.compare.table_formats import write_comparisons

    if options.format == "text" and options.out is None:
        print_comparisons(comparisons)
        return
    text = write_comparisons(comparisons, options.format)
    if options.out is None:
        print(text, end="")
    else:
        write_text(options.out, text)
        print(f"{options.out} is written.")


def _report(options: argparse.Namespace) -> None:
    from audio_compositionality.dataset_builder.messages import nearest

    from audio_compositionality.evaluator.compare.comparison import compare_results
    from audio_compositionality.evaluator.report.report.report import write_report
    from audio_compositionality.evaluator.report.report.report_sections import write_figures
    from audio_compositionality.evaluator.compare.table_formats import FORMATS

    formats = ("html", *FORMATS)
    if options.format not in formats:
        raise ValueError(f"unknown format {options.format!r}; {nearest(options.format, formats)}")
    if options.format == "html":
        path = write_report(
            options.results,
            options.out or "report.html",
            data=options.data,
            encoder=options.encoder,
            figures=options.figures,
            command=options.typed,
        )
        print(f"{path} is written: open it in a browser.")
        return
    if options.encoder is not None:
        raise ValueError("--encoder chooses samples to listen to, which only the format html has")
    _check_file(options.out)
    comparisons = compare_results(options.results, data=options.data)
    if options.figures is not None:
        write_figures(comparisons, options.figures)
    _tell(comparisons, options)


def _coral(options: argparse.Namespace) -> None:
    from audio_compositionality.studies.coral import coral_check
    from audio_compositionality.evaluator.run.embedding import embedding_root
    from audio_compositionality.studies.recordings import MAX_CLIPS
    from audio_compositionality.evaluator.compare.table import print_coral

    check = coral_check(
        _load(options.encoder, options.device, _encoder_options(options)),
        options.recordings,
        _benchmark(options),
        seeds=options.seeds,
        max_clips=MAX_CLIPS if options.max_clips is None else options.max_clips,
        batch_size=options.batch_size,
        device=options.device,
        embeddings=options.embeddings or embedding_root(),
        skip_invalid=options.skip_invalid,
        force=options.force,
    )
    print_coral(check)


def _join() -> Processes:
    """The processes of this evaluation; all but the main one fall silent."""
    from audio_compositionality.evaluator.run.processes import join_processes

    processes = join_processes()
    if not processes.is_main:
        warnings.simplefilter("ignore")
    return processes


def _load(name: str, device: str | None, chosen: EncoderOptions) -> StagedEncoder[Any]:
    from audio_compositionality.encoders import load_encoder

    return load_encoder(name, device=device, options=chosen)


def _encoder_options(options: argparse.Namespace) -> EncoderOptions:
    from audio_compositionality.encoders import EncoderOptions

    return EncoderOptions(
        layer=getattr(options, "layer", None),
        pooling=getattr(options, "pooling", None),
        precision=options.precision,
        compile=options.compile,
    )


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
    from audio_compositionality.dataset_builder.synthesis.dx7 import load_bank

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


def _check_encoder(options: argparse.Namespace) -> int:
    from audio_compositionality.encoders.check import check_encoder, print_checks

    passed = print_checks(check_encoder(options.encoder, device=options.device, options=_encoder_options(options)))
    return 0 if passed else 1


def _verify(options: argparse.Namespace) -> int:
    from audio_compositionality.evaluator.submissions.verification_table import verify_paths

    return verify_paths(options.results, data=options.data, embeddings=options.embeddings, device=options.device)


def _validate(options: argparse.Namespace) -> int:
    if options.out is not None and options.out.is_dir():
        raise ValueError(f"--out is {options.out}, a folder; give a file, such as {options.out / 'validity.md'}")
    from audio_compositionality.studies.validity import validate
    from audio_compositionality.studies.validity.page import print_page, write_page

    validity = validate(simulations=options.simulations, quick=options.quick, seed=options.seed)
    if options.out is not None:
        given = {"--out": options.out, "--simulations": options.simulations, "--seed": options.seed or None}
        parts = [str(part) for pair in given.items() if pair[1] is not None for part in pair]
        quick = ["--quick"] if options.quick else []
        write_page(validity, options.out, shlex.join(["audio-compositionality", "validate", *parts, *quick]))
    print_page(validity)
    return 0 if validity.holds else 1


def _encoders(options: argparse.Namespace) -> None:
    from audio_compositionality.encoders import list_encoders

    from audio_compositionality.evaluator.compare.table import print_encoders

    print_encoders(list_encoders())


def _on_hub(options: argparse.Namespace) -> None:
    from audio_compositionality.push_scripts import commands

    getattr(commands, f"run_{options.command}")(options)


_COMMANDS: Mapping[str, Callable[[argparse.Namespace], int | None]] = {
    "run": _run,
    "build": _build,
    "evaluate": _evaluate,
    "embed": _embed,
    "compare": _compare,
    "report": _report,
    "coral": _coral,
    "check_encoder": _check_encoder,
    "verify": _verify,
    "validate": _validate,
    "encoders": _encoders,
    "push_dataset": _on_hub,
    "push_metrics": _on_hub,
    "push_leaderboard": _on_hub,
    "submit": _on_hub,
}
