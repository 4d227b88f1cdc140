"""Every option of every command, from the parsers themselves: a wrong value ends in exit status 2 and one line."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from audio_compositionality.cli.arguments import model_fields, run_fields, task_fields
from audio_compositionality.cli.main import argument_parser, load_commands, main
from audio_compositionality.cli.train import training_fields
from audio_compositionality.dataset_builder.data_spec import BuildSpec
from audio_compositionality.support.spec import as_typed, rule_of

from ..dataset_builder.sounds.sounds import write_labelled
from ..test_specs import kind_of, wrong_values

NEEDED = {
    **{command: ["random"] for command in ("evaluate", "check-model")},
    **{command: ["results"] for command in ("board", "compare", "report", "verify")},
    "embed": ["random", "--out", "x"],
    "rescore": ["answers.csv"],
    "coral": ["random", "--recordings", "animals"],
    "data": ["mini"],
    "train": ["--out", "x"],
    "submit": ["results", "--model", "random", "--org", "lab"],
    "push": ["--rehearse", "--org", "lab"],
    "push dataset": ["empty", "--org", "lab"],
    "push metrics": ["--org", "lab"],
    "push leaderboard": ["--org", "lab"],
}
"""What a command needs beside the option that is wrong."""

NUMBER = "; it is a whole number from 1 on"

WRONG = {
    "--tasks": ("a_coad", "unknown task 'a_coad'; did you mean 'a_coat'"),
    "--benchmark": ("goat", "unknown benchmark 'goat'; did you mean 'coat'"),
    "--data": ("./nowhere", "nowhere"),
    "--preset": ("ful", "unknown preset 'ful'; did you mean 'full'"),
    "data --preset": ("full", "and --preset full are different presets; give one"),
    "--presets": ("ful", "unknown preset 'ful'; did you mean 'full'"),
    "--set": ("sed=7", "there is no setting 'sed'; did you mean 'seed'"),
    "check-model --set": ("poling=max", "there is no setting 'poling'; did you mean 'pooling'"),
    "train --set": ("workrs=1", "there is no setting 'workrs'; did you mean 'workers'"),
    "rescore --out": ("x.txt", "--out is 'x.txt'; it ends in .csv or .json"),
    "rescore --set": ("sed=7", "--set changes --data, which is missing"),
    "rescore --answers": ("answr", "answers.csv has no column 'answr'; did you mean 'answer'"),
    "rescore --numbers": ("2", "invalid choice: '2' (choose from 'from-0', 'from-1', 'text')"),
    "--rule": ("mmauu", "there is no published rule of 'mmauu'; did you mean 'mmau'"),
    "--layer": ("1,b", "--layer is '1,b'; it is a number from 0 on, several with commas"),
    "--device": ("gpu", "--device is 'gpu'; it is cpu, cuda, or"),
    "--batch-size": ("many", f"--batch-size is 'many'{NUMBER}"),
    "train --batch-size": ("1", "batch_size is '1'; it is a whole number from 2 on"),
    "--seeds": ("0", f"--seeds is '0'{NUMBER}"),
    "train --seeds": ("two", "--seeds only affects --ablations"),
    "--workers": ("1.5", f"--workers is '1.5'{NUMBER}"),
    "--max-clips": ("-", f"--max-clips is '-'{NUMBER}"),
    "--nouns": ("²", f"--nouns is '²'{NUMBER}"),
    "--rows": ("0", "rows is '0'; it is a whole number from 1 on"),
    "--seed": ("x", "seed is 'x'; it is a whole number from 0"),
    "--cache": ("notes.txt", "--cache is 'notes.txt', and notes.txt is a file; give a folder"),
    "--out": ("notes.txt/x", "--out is 'notes.txt/x', and"),
    "cache --clear": ("weigths", "--clear weigths: the cache has no folder of this name; did you mean 'weights'"),
    "compare --out": ("empty", "empty is a folder; give the name of a file"),
    "compare --figure": ("x.gif", "x.gif must end in .pdf, .svg or .png"),
    "board --port": ("70000", "--port is 70000; it must be from 1 to 65535"),
    "report --out": ("empty", "empty is a folder; give the report the name of a file"),
    "train --out": ("notes.txt", "notes.txt is a file; --out must be a folder"),
    "--format": ("latx", "unknown format 'latx'; did you mean 'latex'"),
    "--table": ("sumary", "there is no table 'sumary'; did you mean 'summary'"),
    "--training-captions": ("nowhere.csv", "nowhere.csv"),
    "--model": ("nobody", "nobody"),
    "--figures": ("notes.txt", "notes.txt"),
    "--write": ("x.txt", "the name of a description ends with .yaml"),
    "--recipes": ("a_trex", "did you mean 'a_tre'"),
    "--audio-format": ("mp3", "unknown audio format 'mp3'"),
    "--writer": ("nowhere", "'nowhere'"),
    "--settings": ("nowhere.yaml", "cannot read the settings in nowhere.yaml"),
    "--init": ("tyni", "did you mean 'tiny'"),
    "--align": ("no-such-encoder", "unknown model 'no-such-encoder'"),
    "--stages": ("contrast:3", "did you mean 'contrastive'"),
    "--push": ("clap", "--push is 'clap'; it must be ORG/NAME"),
    "--recordings": ("nowhere", "'nowhere' is not a folder"),
    "--org": ("la/b/c", "--org is 'la/b/c'; give the name of an organisation"),
    "--results": ("nowhere", "no results at nowhere"),
}
"""By the option, or command and option: a wrong value, and what is said of it."""

TEXTS = {"submit --paradigm", "submit --licence", "submit --data", "submit --model"}
"""Options that take any text, or whose value is read once the Hub has answered."""


def of_commands() -> dict[str, argparse.ArgumentParser]:
    """The parsers of all commands, those below `push` by their two words."""
    (commands,) = argument_parser(load_commands())._subparsers._group_actions
    parsers = {}
    for name, parser in commands.choices.items():
        inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        below = {f"{name} {word}": one for action in inner for word, one in action.choices.items()}
        parsers |= {name: parser, **below}
    return parsers


PARSERS = of_commands()
OPTIONS = [
    (command, action.option_strings[0], action.nargs in (0, "?"))
    for command, parser in PARSERS.items()
    for action in parser._actions
    if action.option_strings and action.dest != "help"
]
VALUED = [
    (command, option) for command, option, is_switch in OPTIONS if not is_switch and f"{command} {option}" not in TEXTS
]


@pytest.fixture(scope="module")
def prepared(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with recordings, a file, an empty folder and results."""
    place = tmp_path_factory.mktemp("options")
    write_labelled(place / "animals", 10)
    (place / "notes.txt").write_text("milk, bread\n")
    (place / "answers.csv").write_text("id,answer\nq1,A\n")
    (place / "empty").mkdir()
    kept = ["--out", str(place / "results"), "--cache", str(place / "store")]
    assert main(["evaluate", "random", "--tasks", "a_coat", "--data", str(folder), *kept]) == 0
    return place


@pytest.fixture(autouse=True)
def _place(prepared, monkeypatch):
    monkeypatch.chdir(prepared)


def words_of(command: str, option: str, *value: str) -> list[str]:
    """A command with an option, and with what it needs beside it."""
    needed = [*NEEDED.get(command, ())]
    if option in needed:
        del needed[needed.index(option) :][:2], needed[needed.index(option) :]
    return [*command.split(), *needed, option, *value]


@pytest.mark.parametrize(("command", "option"), VALUED, ids=map(" ".join, VALUED))
def test_a_wrong_value_is_refused_with_value_and_rule(command, option, refused):
    value, said = WRONG.get(f"{command} {option}", WRONG.get(option, (None, None)))
    assert said in refused(*words_of(command, option, value))


@pytest.mark.parametrize("command", PARSERS)
def test_a_value_that_is_missing_and_a_name_that_is_none_are_told(command, refused):
    of_command = [(option, is_switch) for of, option, is_switch in OPTIONS if of == command]
    valued = next((option for option, is_switch in of_command if not is_switch), None)
    if valued is not None:
        assert " needs a value; " in refused(*words_of(command, valued))
    option = of_command[-1][0]
    line = refused(*words_of(command, f"{option}x"))
    assert line.startswith(f"error: there is no option {option}x; ")
    assert f"did you mean {option}?" in line or "--set" in line


def groups() -> dict[str, dict]:
    """The fields of all settings, by a command that has them."""
    return {
        "evaluate": {**model_fields(), **run_fields(), **task_fields()},
        "build": BuildSpec.settable(),
        "train": dict(training_fields()),
    }


@pytest.mark.parametrize(("command", "fields"), groups().items(), ids=groups())
def test_a_wrong_value_of_a_setting_is_refused_with_value_and_rule(command, fields, refused):
    for name, field in fields.items():
        for value in wrong_values(field) if kind_of(field) in (int, float) else ():
            if not isinstance(value, str | bool):
                line = refused(*words_of(command, "--set", f"{name}={as_typed(value)}"))
                assert line.startswith(f"error: {name} is ")
                assert rule_of(field) in line
