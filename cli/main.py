"""The command line: find the command, parse its arguments, run it, report errors in one line."""

from __future__ import annotations

import argparse
import errno
import os
import pkgutil
import shlex
import sys
import traceback as tracebacks
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NoReturn

from audio_compositionality.support.errors import AudioCompositionalityError, InputError
from audio_compositionality.support.text import closest, listed, nearest, printed

from .arguments import HELP, Command, ListedError, add_traceback

PROGRAM = "audio-compositionality"

_DESCRIPTION = """\
Do audio models represent the parts of a sound and how those parts are combined?

`tasks` lists the tasks, `models` the named models. Each command has its own --help, with options and examples.
"""

_EXAMPLES = f"""\
examples:
  {PROGRAM} run
      start here: the bundled model and the baselines on the preset mini; nothing is downloaded
  {PROGRAM} run whisper-base
      a pretrained model, its untrained twin and the baselines
  {PROGRAM} check-model my_encoder.py:MyEncoder
      check a class of your own with sample_rate and embed(waveforms, sample_rate)
  {PROGRAM} evaluate my_encoder.py:MyEncoder --preset full --out results-full
      one model at the paper's size
  {PROGRAM} compare results
      all results of a folder with their differences
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: as typed after the program's name; default: the arguments of this process.

    Returns:
        the exit status: 0; 1 where a model fails its check, a result is not verified, a score is not valid or a
        rehearsed step would not go; 2 for a mistake in the input; 130 when interrupted.
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    warnings.showwarning = show_warning
    with suppress(AttributeError):
        # Texts of others may have what no output can: half of a surrogate pair.
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    command: Command | None = None
    options: argparse.Namespace | None = None
    try:
        name = next((argument for argument in typed if not argument.startswith("-")), None)
        command = None if name is None else load_command(name)
        options = parsed(argument_parser({name: command} if name and command else load_commands()), typed, name)
        options.typed = shlex.join([PROGRAM, *typed])
        from audio_compositionality.metrics import register

        try:
            # `evaluate.load` finds the metrics by their bare names; a failure here affects nothing else of ours.
            register()
        except OSError as error:
            print(f"note: evaluate.load will not find the metrics by their names: {error}", file=sys.stderr)
        with named_output():
            status: int | None = options.run(options)
    except ListedError:
        return 0
    except (KeyboardInterrupt, Exception) as error:
        return exit_status(
            error,
            resume=command.resume if command else "",
            traceback="--traceback" in typed,
            can_skip=options is not None and getattr(options, "skip_invalid", None) is False,
        )
    return status or 0


def parsed(parser: argparse.ArgumentParser, typed: Sequence[str], command: str | None) -> argparse.Namespace:
    """The typed words as options.

    Raises:
        InputError: an unknown option, a missing option or value, or a repeated option that may occur
            once: names the nearest, or the remedy.
    """
    # A list of the settings needs no other arguments.
    if f"--set={HELP}" in typed or ("--set", HELP) in pairwise(typed):
        for action in _actions(parser, command):
            action.required = False
            if action.nargs == "+":
                action.nargs = "*"
            elif action.nargs is None and not action.option_strings:
                action.nargs = "?"
    options, extra = parser.parse_known_args(typed)
    strange = next((text for text in extra if text.startswith("-")), None)
    if strange is not None:
        option = strange.partition("=")[0]
        options_of_command = [option for action in _actions(parser, command) for option in action.option_strings]
        # The setting of that name, or the nearest option.
        setting = option.lstrip("-").replace("-", "_")
        close = closest(option, options_of_command, cutoff=0.7)
        remedy = f"{'' if close is None else f'did you mean {close}? '}--help lists all"
        if "--set" in options_of_command and setting in all_setting_names():
            remedy = f"as a setting it is --set {setting}=VALUE, and --set help lists all"
        raise InputError(f"there is no option {option}; {remedy}")
    if extra and getattr(options, "tasks", None):
        from audio_compositionality.tasks.registry import task_names

        if extra[0] in task_names():
            raise InputError(f"separate tasks by commas: --tasks {','.join([options.tasks, *extra])}")
    if extra:
        raise InputError(f"{extra[0]!r} is one argument too many; --help shows what `{command}` takes")
    for option, reason in _ONCE.items():
        after = [typed[place + 1] for place, text in enumerate(typed[:-1]) if text == option]
        values = after + [text.partition("=")[2] for text in typed if text.startswith(f"{option}=")]
        if len(values) > 1:
            raise InputError(f"{option} is given {len(values)} times, {listed(values)}; a command takes one{reason}")
    return options


def _actions(parser: argparse.ArgumentParser, command: str | None) -> list[argparse.Action]:
    """The arguments of a command and of its parts; empty where the parser has no such command."""
    parsers = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    of_command = [one.choices[command] for one in parsers if command in one.choices]
    inner = [action for one in of_command for action in one._actions]
    groups = [action for action in inner if isinstance(action, argparse._SubParsersAction)]
    parts = [part for group in groups for part in group.choices.values()]
    return [*inner, *(action for part in parts for action in part._actions)]


_ONCE = {"--data": ", and each data set has a folder of results of its own", "--preset": ""}
"""Options that define the results' data, each with the rule: a second value would be ignored silently."""


def all_setting_names() -> set[str]:
    """The names of all settings of commands, for any data."""
    from audio_compositionality.dataset_builder.data_spec import BuildSpec, DataSpec
    from audio_compositionality.dataset_builder.open_data import settable

    from .arguments import data_fields, model_fields, run_fields, task_fields
    from .train import training_fields

    made = (settable(DataSpec(data=data)) for data in ("preset:mini", "recordings:.", "labels:."))
    shared = (data_fields(), model_fields(), run_fields(), task_fields())
    return {name for group in (*shared, *made, BuildSpec.settable(), training_fields()) for name in group}


class Parser(argparse.ArgumentParser):
    """A parser whose errors have the command line's form: one line, with the remedy."""

    def error(self, message: str) -> NoReturn:
        """Raise an `InputError` in place of printing the usage."""
        command = self.prog.removeprefix(PROGRAM).strip()
        if message.startswith("the following arguments are required: "):
            missing = message.partition(": ")[2]
            if missing.startswith("MODEL"):
                raise InputError(
                    f"name a model, such as {self.prog} whisper-base, or a class of your own, my_encoder.py:MyEncoder\n"
                    f"`{PROGRAM} models` lists the named ones; docs/how-to/models.md has all forms of a name"
                )
            raise InputError(f"{self.prog} needs {missing}; --help shows an example")
        option, _, said = message.removeprefix("argument ").partition(": ")
        if said.startswith("not allowed with argument "):
            other = said.removeprefix("not allowed with argument ")
            raise InputError(f"{option} and {other} are both given; give one")
        if said.startswith(f"{option} is "):
            raise InputError(said)
        if said.startswith("expected "):
            message = f"{option} needs a value"
        raise InputError(f"{message}; {self.prog if command else PROGRAM} --help lists the options")


def load_command(name: str) -> Command:
    """The command of a name; no others are imported.

    Raises:
        InputError: there is none.
    """
    module = name.replace("-", "_")
    if "_" not in name and module.isidentifier() and find_spec(f"{__package__}.{module}") is not None:
        command = getattr(import_module(f"{__package__}.{module}"), "COMMAND", None)
        if isinstance(command, Command):
            return command
    raise InputError(f"unknown command {name!r}; {nearest(name, load_commands())}")


def load_commands() -> dict[str, Command]:
    """All commands by their names, in the order of the list that ``--help`` prints."""
    commands = {}
    for module in pkgutil.iter_modules(import_module(__package__).__path__):
        command = getattr(import_module(f"{__package__}.{module.name}"), "COMMAND", None)
        if isinstance(command, Command):
            commands[module.name.replace("_", "-")] = command
    return dict(sorted(commands.items(), key=lambda pair: (pair[1].place, pair[0])))


def argument_parser(commands: dict[str, Command]) -> argparse.ArgumentParser:
    """The parser of some commands; its result holds the command's function as ``run``."""
    parser = Parser(
        prog=PROGRAM,
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    add_traceback(parser)
    parsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, command in commands.items():
        subparser = parsers.add_parser(
            name,
            help=command.summary,
            description=command.description,
            epilog=f"examples:\n{command.examples}" if command.examples else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            # No abbreviations of options: a later option could begin alike.
            allow_abbrev=False,
        )
        command.add_arguments(subparser)
        add_traceback(subparser)
        subparser.set_defaults(run=command.run)
    return parser


class _Version(argparse.Action):
    """Looks the version up only on request."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        from importlib.metadata import version

        print(f"{PROGRAM} {version(PROGRAM)}")
        parser.exit()


def show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Print a warning as a line of its own; replaces `warnings.showwarning` in a command."""
    print(f"{'note' if category is UserWarning else category.__name__}: {printed(message)}", file=sys.stderr)


_KEPT = "what is finished is kept"


@contextmanager
def named_output() -> Iterator[None]:
    """Name the standard output in an error of writing to it: the system's error of a full disk has no name."""
    with redirect_stdout(_NamedOutput(sys.stdout)):
        yield
        # The rest is written here, so that it fails like any other write and not when Python ends.
        sys.stdout.flush()


class _NamedOutput:
    """The standard output with its name in errors; otherwise unchanged."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write as `io.TextIOBase.write` does."""
        with self._naming():
            return int(self._stream.write(text))

    def flush(self) -> None:
        """Write the rest."""
        with self._naming():
            self._stream.flush()

    @contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            error.filename = error.filename or "standard output"
            # The rest is not tried again when Python ends.
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            raise


def exit_status(error: BaseException, *, resume: str = "", traceback: bool = False, can_skip: bool = False) -> int:
    """Print an error in one line, and return the exit status: 130 for an interrupt, else 2.

    An unexpected error is a bug of the project: it is raised again, with its traceback.

    Args:
        error: raised by the command.
        resume: advice after an interruption.
        traceback: print the traceback of any error.
        can_skip: whether the command could leave out clips that cannot be embedded, and was not asked to.
    """
    hint = ""
    if isinstance(error, KeyboardInterrupt):
        message = f"\nstopped. {resume}".rstrip()
    elif isinstance(error, AudioCompositionalityError):
        from audio_compositionality.encoders.base import ClipError

        message = f"error: {error}"
        if can_skip and isinstance(error, ClipError) and "--skip-invalid" not in str(error):
            hint = "; --skip-invalid leaves such clips out"
    elif isinstance(error, OSError):
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        message = f"error: {error}{f'; make room: {_KEPT}' if full else ''}"
    # By its name, to avoid an import of torch.
    elif isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        message = f"error: {error or 'out of memory'}; {_KEPT}"
    else:
        print("This is a bug in audio-compositionality, please report it:", file=sys.stderr)
        raise error
    if traceback:
        tracebacks.print_exception(error, file=sys.stderr)
    count, rank = os.environ.get("WORLD_SIZE", ""), os.environ.get("RANK", "")
    is_one_of_several = count.isdigit() and int(count) > 1
    # Another process reports why the work ended.
    if not (is_one_of_several and type(error).__name__ == "ProcessError" and rank != "0"):
        process = f"process {int(rank) + 1} of {count}: " if is_one_of_several and rank.isdigit() else ""
        print(f"{process}{printed(message)}{hint}", file=sys.stderr)
    return 130 if isinstance(error, KeyboardInterrupt) else 2
