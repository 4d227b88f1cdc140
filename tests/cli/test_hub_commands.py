"""`push` and `submit`: what is typed reaches the functions that do it, and what these say is printed."""

from pathlib import Path

import pytest


@pytest.fixture
def calls(monkeypatch):
    """What is called, with which arguments; nothing is sent."""
    made = []

    def recorded(name):
        def call(*arguments, **options):
            made.append((name, arguments, options))
            return [name]

        return call

    scripts = "audio_compositionality.push_scripts"
    for module, name in (
        ("dataset", "push_dataset"),
        ("spaces", "push_metrics"),
        ("spaces", "push_leaderboard"),
        ("submit", "submit_results"),
    ):
        monkeypatch.setattr(f"{scripts}.{module}.{name}", recorded(name))
    for name in ("dataset_lines", "metric_lines", "leaderboard_lines", "submission_lines"):
        monkeypatch.setattr(f"{scripts}.reports.{name}", lambda pushed: [f"done: {pushed[0]}"])
    monkeypatch.setattr(f"{scripts}.submit.chosen_results", lambda paths, models: (paths, []))
    return made


def test_push_dataset_and_metrics(calls, run, capsys):
    assert run("push", "dataset", "folder", "--org", "lab", "--dry-run") == 0
    options = {"private": False, "pull_request": False, "dry_run": True}
    assert calls == [("push_dataset", (Path("folder"), "lab"), options)]
    assert capsys.readouterr().out == "done: push_dataset\n"
    assert run("push", "metrics", "--org", "lab", "--private", "--create-pr") == 0
    assert calls[1] == ("push_metrics", ("lab",), {"private": True, "pull_request": True, "dry_run": False})


def test_push_leaderboard_adds_results_that_are_given(calls, run, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("one").mkdir()
    Path("two").mkdir()
    assert run("push", "leaderboard", "--org", "lab", "--results", "one", "two", "--create-pr", "--cache", "kept") == 0
    assert [name for name, *_ in calls] == ["push_leaderboard", "submit_results"]
    assert calls[1][1] == ([Path("one"), Path("two")], "lab")
    options = {"pull_request": True, "dry_run": False, "cache": Path("kept"), "device": None, "progress": True}
    assert calls[1][2] == options
    assert capsys.readouterr().out == "done: push_leaderboard\ndone: submit_results\n"


@pytest.mark.slow
def test_what_can_be_submitted_is_told_without_a_network(run, refused, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = ("random", "tiny-clap", "reversed-audio:random", "shuffled-audio:random")
    assert run("evaluate", *names, "--tasks", "a_coat", "--out", "results", "--cache", "kept") == 0
    monkeypatch.setattr("audio_compositionality.hub.client.Hub.__init__", lambda self: pytest.fail("the Hub is used"))
    capsys.readouterr()
    assert run("submit", "results", "--check", "--cache", "kept") == 0
    both = "A-COAT of reversed-audio:random and shuffled-audio:random: "
    baselines, *lines = capsys.readouterr().out.splitlines()
    again = "--model NAME submits one all the same."
    assert baselines == f"Models of the package need no submission: random and tiny-clap. {again}"
    assert lines == [f"{both}can be submitted", "2 of 2 results can be submitted."]
    assert run("submit", "results", "--check", "--cache", "elsewhere", "--model", "random") == 1
    line, last = capsys.readouterr().out.splitlines()
    assert line.startswith("A-COAT of random: ")
    assert "from the cache elsewhere" in line
    assert line.endswith(": `audio-compositionality evaluate random --tasks a_coat --force`")
    assert last == "0 of 1 results can be submitted."
    Path("results").rename("moved")
    assert run("submit", "moved", "--check", "--cache", "elsewhere") == 1
    _, line, _, last = capsys.readouterr().out.splitlines()
    assert " evaluate reversed-audio:random shuffled-audio:random --tasks a_coat --force`" in line
    assert last == "Add --out moved to `evaluate`."
    Path("moved").rename("results")
    assert "no results of 'rms'; there are results of random, " in refused(
        "submit", "results", "--check", "--model", "rms"
    )
    assert "name one with --model" in refused("submit", "results/random", "--check")
    assert "needs --org ORG" in refused("submit", "results")


def test_submit(calls, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()
    arguments = ["--org", "lab", "--data", "built", "--cache", "kept", "--paradigm", "other", "--licence", "MIT"]
    assert run("submit", "results", *arguments, "--scores-only", "--model-card", "--device", "cpu") == 0
    ((name, positional, options),) = calls
    assert (name, positional) == ("submit_results", ([Path("results")], "lab"))
    assert options.pop("progress") is True
    assert options == {
        "data": "built",
        "cache": Path("kept"),
        "with_outputs": False,
        "paradigm": "other",
        "licence": "MIT",
        "model_card": True,
        "device": "cpu",
        "dry_run": False,
    }
