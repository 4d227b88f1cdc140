"""The command line: find the command, parse its arguments, run it, say what went wrong in one line."""

from __future__ import annotations

import argparse
import difflib
import pkgutil
import shlex
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NoReturn

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import listed, nearest

from .arguments import add_traceback
from .command import Command
from .failures import exit_status, named_output
from .settings import HELP, ListedError

PROGRAM = "audio-compositionality"

_DESCRIPTION = """\
Does a model that hears hear the parts, and how they are put together?

`tasks` lists what is measured, `models` the models that have a name. A command's own --help has its options and
examples.
"""

_EXAMPLES = f"""\
examples:
  {PROGRAM} run
      the main job: the baselines on the preset mini, rendered on the fly; nothing is downloaded
  {PROGRAM} run whisper-base
      the same beside a pretrained model and its untrained twin
  {PROGRAM} check-model my_encoder.py:MyEncoder
      a class of your own with sample_rate and embed(waveforms, sample_rate): does it do what it should?
  {PROGRAM} evaluate my_encoder.py:MyEncoder --preset full --out results-full
      one model at the paper's size
  {PROGRAM} compare results
      all results of a folder beside each other
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: as typed behind the program's name; by default those of this process.

    Returns:
        the exit status: 0; 1 where a model fails its check, a result is not verified or a score is not valid; 2 for a
        mistake in the input; 130 when interrupted.
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    warnings.showwarning = show_warning
    command: Command | None = None
    options: argparse.Namespace | None = None
    try:
        name = next((argument for argument in typed if not argument.startswith("-")), None)
        command = None if name is None else load_command(name)
        options = parsed(argument_parser({name: command} if name and command else load_commands()), typed, name)
        options.typed = shlex.join([PROGRAM, *typed])
        _register_metrics()
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
    """What was typed, as options.

    Raises:
        InputError: an option that there is not, one that is missing or has no value, or a second one of those of which
            there is one: names the nearest, or what to do.
    """
    if _lists_settings(typed):
        _need_nothing(parser, command)
    options, extra = parser.parse_known_args(typed)
    strange = next((text for text in extra if text.startswith("-")), None)
    if strange is not None:
        option = strange.partition("=")[0]
        raise InputError(f"there is no option {option}; {_instead(option, _options_of(parser, command))}")
    if extra:
        raise InputError(f"{extra[0]!r} is one argument too many; --help shows what `{command}` takes")
    for option in _ONCE:
        _check_once(option, typed)
    return options


def _lists_settings(typed: Sequence[str]) -> bool:
    """Whether the settings are to be listed, for which nothing else is needed."""
    return f"--set={HELP}" in typed or ("--set", HELP) in pairwise(typed)


def _need_nothing(parser: argparse.ArgumentParser, command: str | None) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and command in action.choices:
            for one in action.choices[command]._actions:
                one.required = False
                one.nargs = {"+": "*", None: None if one.option_strings else "?"}.get(one.nargs, one.nargs)


_ONCE = ("--data", "--preset")
"""Options that decide what results are of: of a second one the first would be forgotten silently."""


def _check_once(option: str, typed: Sequence[str]) -> None:
    after = [typed[place + 1] for place, text in enumerate(typed[:-1]) if text == option]
    values = after + [text.partition("=")[2] for text in typed if text.startswith(f"{option}=")]
    if len(values) > 1:
        raise InputError(f"{option} is given {len(values)} times, {listed(values)}; a command takes one")


def _instead(option: str, options_of_command: Sequence[str]) -> str:
    """What to type instead of an option that there is not: a setting of that name, or the nearest option."""
    if "--set" in options_of_command:
        from .scoring import setting_names

        setting = option.lstrip("-").replace("-", "_")
        if setting in setting_names():
            return f"as a setting it is --set {setting}=VALUE, and --set help lists all"
    close = difflib.get_close_matches(option, options_of_command, n=1, cutoff=0.7)
    return f"{f'did you mean {close[0]}? ' if close else ''}--help lists all"


def _options_of(parser: argparse.ArgumentParser, command: str | None) -> list[str]:
    """The options of a command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and command in action.choices:
            return [option for one in action.choices[command]._actions for option in one.option_strings]
    return [option for action in parser._actions for option in action.option_strings]


class Parser(argparse.ArgumentParser):
    """A parser whose errors are the command line's own: one line, and what to do."""

    def error(self, message: str) -> NoReturn:
        """Raise an `InputError` in place of printing the usage."""
        command = self.prog.removeprefix(PROGRAM).strip()
        if message.startswith("the following arguments are required: "):
            missing = message.partition(": ")[2]
            if missing.startswith("MODEL"):
                raise InputError(
                    f"name a model, such as {self.prog} whisper-base, or a class of your own, my_encoder.py:MyEncoder\n"
                    f"`{PROGRAM} models` lists those that have a name; docs/models.md has all forms of a name"
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
        raise InputError(f"{message}; {self.prog if command else PROGRAM} --help shows what there is")


def command_names() -> dict[str, str]:
    """The names of all modules that may have a command, by the name that the command would have."""
    package = import_module(__package__)
    return {module.name.replace("_", "-"): module.name for module in pkgutil.iter_modules(package.__path__)}


def load_command(name: str) -> Command:
    """The command of a name; no other one is imported.

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
    modules = {name: import_module(f"{__package__}.{module}") for name, module in command_names().items()}
    commands = {name: getattr(module, "COMMAND", None) for name, module in modules.items()}
    pairs = [(name, command) for name, command in commands.items() if isinstance(command, Command)]
    return dict(sorted(pairs, key=lambda pair: (pair[1].place, pair[0])))


def argument_parser(commands: dict[str, Command]) -> argparse.ArgumentParser:
    """The parser of some commands; what it parses has the command's function as ``run``."""
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
            # The beginning of an option is no option: a new one could begin so.
            allow_abbrev=False,
        )
        command.add_arguments(subparser)
        add_traceback(subparser)
        subparser.set_defaults(run=command.run)
    return parser


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        from importlib.metadata import version

        print(f"{PROGRAM} {version(PROGRAM)}")
        parser.exit()


def _register_metrics() -> None:
    """Make `evaluate.load` find the metrics by their bare names. Without it nothing of ours fails."""
    from audio_compositionality.metrics import register

    try:
        register()
    except OSError as error:
        print(f"note: evaluate.load will not find the metrics by their names: {error}", file=sys.stderr)


def show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Print a warning as a line of its own: what `warnings.showwarning` does in a command."""
    print(f"{'note' if category is UserWarning else category.__name__}: {message}", file=sys.stderr)
