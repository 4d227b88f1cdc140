"""The command line itself: finding commands, help, exit statuses, what is printed of errors, what is imported when."""

import errno
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from audio_compositionality.cli import main as command_line
from audio_compositionality.cli.main import load_command, load_commands
from audio_compositionality.evaluator.run.processes import ProcessError
from audio_compositionality.support.errors import AudioCompositionalityError, InputError
from audio_compositionality.support.files import write_whole

COMMANDS = (
    *("run", "build", "evaluate", "embed", "compare", "report", "coral"),
    *("models", "tasks", "check-model", "push", "submit", "verify"),
)

HEAVY = {"torch", "transformers", "datasets", "evaluate", "matplotlib", "librosa", "gradio"}


@pytest.fixture
def command_does(monkeypatch):
    """Gives the command `tasks` something else to do."""

    def change(function):
        command = replace(load_command("tasks"), run=function)
        monkeypatch.setattr("audio_compositionality.cli.tasks.COMMAND", command)

    return change


@pytest.fixture
def fails(command_does):
    """Makes the command `tasks` raise an error."""

    def make(error):
        def fail(options):
            raise error

        command_does(fail)

    return make


def test_every_command_is_found():
    assert set(COMMANDS) <= set(load_commands())
    assert not {"main", "arguments", "settings", "scoring"} & set(load_commands())


@pytest.mark.parametrize("name", sorted(load_commands()))
def test_help_fits_on_a_screen(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    (parsers,) = command_line.argument_parser({name: load_command(name)})._subparsers._group_actions
    parser = parsers.choices[name]
    assert len([action for action in parser._actions if action.option_strings]) <= 20
    text = parser.format_help()
    assert len(text.splitlines()) <= 60
    if name not in ("models", "tasks"):
        assert (
            len(re.findall(rf"^  (?:audio-compositionality|torchrun .* audio_compositionality) {name} ?", text, re.M))
            >= 2
        )


def test_examples_are_commands_that_can_be_parsed():
    for name, command in load_commands().items():
        for line in command.examples.splitlines():
            match = re.fullmatch(r"  audio-compositionality (\S.*)", line)
            if match is None:
                continue
            typed = match[1].split()
            assert typed[0] in load_commands(), line
            command_line.argument_parser({typed[0]: load_command(typed[0])}).parse_args(typed)
        assert not command.examples or f"audio-compositionality {name}" in command.examples


def test_the_version_is_that_of_the_distribution(run, capsys):
    with pytest.raises(SystemExit) as stop:
        run("--version")
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"audio-compositionality {version('audio-compositionality')}\n"


ANSWERED = (
    *("--help", "--version", "models", "tasks", "evaluate --help", "evaluat", "evaluate random --data nowhere"),
    *("evaluate random --batch-size 0", "evaluate random --tasks no-such-task", "evaluate nowhere/encoder.py:X"),
    *("evaluate untrained:no-such-model", "run nowhere/encoder.py:X", "check-model nowhere/encoder.py:X"),
    *("embed no/such/folder --out embeddings", "compare nowhere", "report nowhere", "verify nowhere"),
    "submit nowhere --org lab",
)


@pytest.mark.slow
def test_what_needs_no_model_imports_nothing_heavy(tmp_path):
    """One after the other in one process: the first that imports it made such answers slow."""
    code = f"""if True:
        import contextlib, io, sys
        from audio_compositionality.cli.main import main
        for typed in {ANSWERED!r}:
            with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
                main(typed.split())
            print(typed, *sorted({HEAVY!r} & set(sys.modules)))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == list(ANSWERED)


@pytest.mark.parametrize("name", ["arguments", "..", "check_model"])
def test_no_other_module_is_taken_for_a_command(name):
    with pytest.raises(InputError, match="unknown command"):
        load_command(name)


# ----- errors


def test_an_error_that_can_be_expected_is_one_line(run, fails, capsys):
    from torch import OutOfMemoryError

    full = OSError(errno.ENOSPC, "No space left on device", "/data/results")
    for error, words in (
        (AudioCompositionalityError("the value, the rule"), "the value, the rule"),
        (full, "[Errno 28] No space left on device: '/data/results'; make room: what is finished is kept"),
        (OutOfMemoryError("CUDA out of memory."), "CUDA out of memory.; what is finished is kept"),
    ):
        fails(error)
        assert run("tasks") == 2
        assert capsys.readouterr().err == f"error: {words}\n"


def test_its_traceback_is_shown_on_demand(run, fails, capsys):
    fails(InputError("the value, the rule"))
    assert run("tasks", "--traceback") == 2
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert told.endswith("error: the value, the rule\n")
    assert run("--traceback", "tasks") == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("error", [ValueError("plain")])
def test_any_other_error_is_a_mistake_of_ours_and_shows_its_traceback(error, run, fails, capsys):
    fails(error)
    with pytest.raises(type(error)):
        run("tasks")
    assert "please report it" in capsys.readouterr().err


def test_whatever_is_written_whole_is_named_where_the_disk_is_full(run, command_does, monkeypatch, tmp_path, capsys):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    command_does(lambda options: write_whole(tmp_path / "result.json", "{}"))
    assert run("tasks") == 2
    assert str(tmp_path / "result.json") in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full")
@pytest.mark.parametrize("lines", [1])
def test_an_output_that_cannot_be_written_is_named(lines):
    """Whether it fails when it is printed or only when the command ends."""
    code = (
        "from dataclasses import replace\n"
        "from audio_compositionality.cli import tasks\n"
        "from audio_compositionality.cli.main import main\n"
        f"tasks.COMMAND = replace(tasks.COMMAND, run=lambda options: print('a line\\n' * {lines}))\n"
        "raise SystemExit(main(['tasks']))\n"
    )
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert "'standard output'" in line


def test_an_interrupt_says_how_to_go_on(run, monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("audio_compositionality.dataset_builder.build.build_dataset", interrupt)
    assert run("build", "--out", "data") == 130
    assert "What is finished is kept: the same command goes on" in capsys.readouterr().err


def test_of_several_processes_the_one_that_failed_speaks(run, fails, monkeypatch, capsys):
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "2")
    fails(InputError("a reason"))
    assert run("tasks") == 2
    assert capsys.readouterr().err == "process 3 of 4: error: a reason\n"
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert run("tasks") == 2
    assert capsys.readouterr().err == "error: a reason\n"
    monkeypatch.setenv("WORLD_SIZE", "4")
    fails(ProcessError("another process has ended"))
    assert run("tasks") == 2
    assert capsys.readouterr().err == ""


def test_warnings_are_notes(run, command_does, capsys):
    def warn(options):
        warnings.warn("look", stacklevel=1)

    command_does(warn)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert run("tasks") == 0
    assert capsys.readouterr().err == "note: look\n"


# ----- registration of the metrics


@pytest.mark.slow
def test_the_first_use_registers_the_metrics(tmp_path):
    """`evaluate` finds them by their bare names afterwards; a cache that cannot be written is noted, no more."""
    environment = {"HF_HOME": str(tmp_path / "home"), "PATH": ""}
    command = [sys.executable, "-m", "audio_compositionality", "tasks"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert list((tmp_path / "home" / "modules").rglob("a_coat.py"))
    (tmp_path / "file").write_text("")
    environment["HF_HOME"] = str(tmp_path / "file")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr.startswith("note: evaluate.load will not find the metrics")
    assert "A-COAT" in done.stdout
