"""``--set``: one name means one thing, ``--set help`` lists all, and a wrong name has a nearest one."""

from __future__ import annotations

import argparse
import itertools

import pytest

from audio_compositionality.cli.arguments import (
    Group,
    ListedError,
    data_fields,
    divided,
    model_fields,
    run_fields,
    task_fields,
)
from audio_compositionality.cli.main import argument_parser, load_commands
from audio_compositionality.dataset_builder.data_spec import BuildSpec, DataSpec
from audio_compositionality.dataset_builder.open_data import settable
from audio_compositionality.support.spec import rule_of
from audio_compositionality.tasks.registry import list_tasks

SAME = {
    "seed": "of every random choice, of data as of trainings",
}
"""Names that may stand in several groups, and what they mean in each."""


def groups():
    """The fields of all groups that one command can have, by what they are settings of."""
    made = {}
    for data in ("preset:mini", "recordings:x", "labels:x"):
        made |= settable(DataSpec(data=data))
    return {
        "the data": data_fields(),
        "the recipes": made,
        "models": model_fields(),
        "the run": run_fields(),
        "the build": BuildSpec.settable(),
        "tasks": task_fields(),
    }


def test_no_name_stands_in_two_groups():
    every = groups()
    assert all(every.values())
    for (first, one), (second, other) in itertools.combinations(every.items(), 2):
        shared = set(one) & set(other) - set(SAME)
        assert not shared, f"{first} and {second}: {shared}"


def test_no_setting_is_called_as_an_option():
    """But for those that are short forms of a setting, of which one alone may be given."""
    short = {"preset", "seeds", "seed"}
    names = {name for fields in groups().values() for name in fields}
    for command, parser in parsers().items():
        options = {action.dest for action in parser._actions if action.option_strings}
        if "set" in options:
            assert not (options & names) - short, command


def test_a_name_of_several_tasks_has_one_rule():
    rules = {}
    for task in list_tasks():
        for name, field in task.spec.settable().items():
            if name != "seeds":
                assert rules.setdefault(name, rule_of(field)) == rule_of(field), (task.info.name, name)


def parsers():
    commands = argument_parser(load_commands())._subparsers._group_actions[0].choices
    return {name: parser for name, parser in commands.items() if isinstance(parser, argparse.ArgumentParser)}


GROUPS = [
    Group("fruit", lambda: {name: DataSpec.model_fields[name] for name in ("label", "resolution", "captions")}),
    Group("trees", lambda: {name: DataSpec.model_fields[name] for name in ("group", "window")}, shown=("group",)),
]


def test_each_group_has_its_own():
    texts = ["window=5", "label=a=b", "captions=x, y"]
    assert divided(texts, GROUPS) == [{"label": "a=b", "captions": ("x", "y")}, {"window": 5.0}]
    assert divided([], GROUPS) == [{}, {}]


def test_groups_behind_the_last_that_is_needed_are_not_asked():
    def never():
        raise AssertionError

    assert divided(["label=x"], [GROUPS[0], Group("far", never)]) == [{"label": "x"}, {}]


def test_help_lists_what_can_be_said_with_bounds_and_defaults(capsys):
    with pytest.raises(ListedError):
        divided(["help"], GROUPS)
    printed = capsys.readouterr().out
    assert "Settings of fruit (--set NAME=VALUE)" in printed
    assert "a number from 0" in printed
    assert "group" in printed
    assert "window" not in printed


@pytest.mark.parametrize(
    ("typed", "titles"),
    [
        ("evaluate", ("the recipes", "models", "the run", "tasks")),
        ("coral", ("the recipes", "models", "the run", "tasks")),
        ("build", ("the recipes", "the build")),
        ("data", ("the recipes",)),
        ("check-model", ("models",)),
        ("train", ()),
    ],
)
def test_every_command_lists_its_settings(typed, titles, run, capsys):
    assert run(typed, "--set", "help") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    for title in titles:
        assert f"Settings of {title} (--set NAME=VALUE)" in captured.out


def test_settings_of_recordings_are_listed_of_recordings_alone(run, capsys, tmp_path):
    (tmp_path / "animals").mkdir()
    (tmp_path / "animals" / "x.wav").write_bytes(b"")
    assert run("evaluate", "random", "--data", tmp_path / "animals", "--set", "help") == 0
    printed = capsys.readouterr().out
    assert "Settings of the data (--set NAME=VALUE)" in printed
    assert "\n condition " in printed
    assert "\n split " not in printed
