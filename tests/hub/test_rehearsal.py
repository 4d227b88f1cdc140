"""`push --rehearse`: what it says of each step from an empty organisation to a verified board, and of what is wrong."""

from __future__ import annotations

import re
import socket
from collections import UserDict
from pathlib import Path

import pytest
from huggingface_hub import HfApi

from audio_compositionality.cli.main import main
from audio_compositionality.hub.errors import HubError
from audio_compositionality.hub.names import leaderboard_of
from audio_compositionality.push_scripts import rehearsal
from audio_compositionality.push_scripts.dataset import push_dataset
from audio_compositionality.push_scripts.rehearsal import Step, goes, rehearsal_lines, rehearse
from audio_compositionality.push_scripts.spaces import push_leaderboard, push_metrics

from .clients import connect, forget
from .conftest import DATASET, RESULTS, RIGHTS, use_rights
from .faults import Status

SPACE = leaderboard_of("lab").id
ENTRY = "compa-clap-tiny/1/a_coat-0123456789abcdef"

pytestmark = pytest.mark.usefixtures("wheel", "two_metrics")


@pytest.fixture(autouse=True)
def lacking(monkeypatch) -> dict[str, int]:
    """The baselines' results that the board lacks, by name; tests/hub/test_baselines.py has how they are found."""
    missing = {"random/a_coat": 10}
    monkeypatch.setattr(rehearsal, "missing_baselines", lambda *_, **__: Missing(missing))
    return missing


class Missing(UserDict[str, int]):
    """Missing baselines: false where there are none."""

    @property
    def sizes(self) -> dict[str, int]:
        return self.data


def steps_of(folder: Path, org: str = "lab") -> dict[str, Step]:
    """The steps by their subjects, in their order."""
    return {step.subject: step for step in rehearse(folder, org)}


def test_an_empty_organisation_is_told_every_step_and_its_command(hub, built, capsys):
    assert main(["push", "--rehearse", str(built), "--org", "lab"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("done   token: of ada, role write (HF_TOKEN); it may write to lab")
    assert lines[1] == "done   organisation lab: ada has the role write; it has none of the repositories"
    files = len([path for path in built.rglob("*") if path.is_file()]) + 1  # eval.yaml
    assert lines[2].startswith(f"to do  dataset {DATASET}: new, {files} files, ")
    assert f"{built} is whole: a_coat " in lines[2]
    metrics = "         audio-compositionality push metrics --org lab"
    board = "         audio-compositionality push leaderboard --org lab"
    commands = [line for line in lines if line.startswith("         ")]
    data = f"audio-compositionality push dataset {built} --org lab"
    assert commands[:3] == [f"         {data}", metrics, board]
    assert commands[3:] == [
        f"         hf spaces secrets add {SPACE} --secrets-file space.env",
        f"         wait for the Space; hf spaces logs {SPACE} prints what it does",
    ]
    assert [line.split(":")[0] for line in lines if line.startswith("to do")] == [
        *(f"to do  dataset {DATASET}", "to do  space lab/a_coat", "to do  space lab/a_tre"),
        *(f"to do  dataset {RESULTS}", f"to do  space {SPACE}"),
        *("to do  baselines", "to do  secrets of the Space", "to do  verified"),
    ]
    assert lines[-2:] == ["Nothing was sent.", f"Next: {data}"]
    assert not hub.repositories
    assert not [made for method in ("POST", "PUT", "DELETE") for made in hub.made(method)]


def test_each_step_that_is_done_is_told_until_everything_is(hub, built, lacking):
    push_dataset(built, "lab")
    steps = steps_of(built)
    assert steps["organisation lab"].text.endswith("it has 1 of the 5 repositories")
    assert steps[f"dataset {DATASET}"].state == "done"
    assert rehearsal_lines(list(steps.values()))[-1] == "Next: audio-compositionality push metrics --org lab"
    push_metrics("lab")
    push_leaderboard("lab")
    lacking.clear()
    assert steps_of(built)["secrets of the Space"].text == "not set: HF_TOKEN and AUDIO_COMPOSITIONALITY_SECRET"
    for name in rehearsal.SECRETS:
        HfApi().add_space_secret(SPACE, name, "x" * 32)
    results = hub.repositories["dataset", RESULTS]
    results.commit({f"results/{ENTRY}/result.json": b"{}"})
    assert steps_of(built)["verified"].text == "0 of the 1 entries on the board"
    results.commit({f"verified/{ENTRY}/verification.json": b"{}"})
    steps = steps_of(built)
    assert {step.state for step in steps.values()} == {"done"}
    assert not any(step.remedy for step in steps.values())
    assert rehearsal_lines(list(steps.values()))[-1] == "Everything is published."


def test_what_differs_and_what_is_private_is_told(hub, built):
    push_dataset(built, "lab")
    hub.repositories["dataset", DATASET].commit({"README.md": b"other", "a_coat/test-00007-of-00008.parquet": b"old"})
    step = steps_of(built)[f"dataset {DATASET}"]
    assert (step.state, step.text.split(";")[0].split(",")[0]) == ("to do", "it differs: 1 file")
    assert ", 1 to delete, " in step.text
    hub.repositories["dataset", DATASET].private = True
    steps = steps_of(built)
    assert steps[f"dataset {DATASET}"].state == "wrong"
    assert rehearsal_lines(list(steps.values()))[-1] == f"Next: hf repos settings {DATASET} --type dataset --public"


def test_a_missing_folder_is_wrong_and_the_rest_is_told(hub, built, tmp_path):
    steps = steps_of(tmp_path / "missing")
    step = steps[f"dataset {DATASET}"]
    assert (step.state, "is not a folder" in step.text) == ("wrong", True)
    assert step.remedy == f"audio-compositionality build --preset mini --out {tmp_path / 'missing'}"
    assert [one.subject for one in steps.values() if one.state == "wrong"] == [step.subject]
    assert not goes(list(steps.values()))
    assert steps["verified"].state == "to do"


@pytest.mark.parametrize("kind", RIGHTS)
def test_a_missing_right_is_wrong(hub, built, kind, monkeypatch, capsys):
    use_rights(hub, kind, monkeypatch)
    subject, remedy = (
        ("organisation lab", "the members") if kind in ("stranger", "guest") else ("token", "hf auth login")
    )
    assert main(["push", "--rehearse", str(built), "--org", "lab"]) == 1
    lines = capsys.readouterr().out.splitlines()
    (wrong,) = [line for line in lines if line.startswith("wrong")]
    assert wrong.split(":")[0] == f"wrong  {subject}"
    assert re.search(RIGHTS[kind], wrong)
    assert lines[-1].startswith(f"Next: {remedy}")
    assert not hub.repositories


def test_an_organisation_that_is_not_there(hub, built):
    step = steps_of(built, "nobody")["organisation nobody"]
    assert (step.state, step.text) == ("wrong", "there is no organisation nobody")
    assert f"{hub.url}/organizations/new" in step.remedy
    assert steps_of(built, "ada")["user ada"].state == "done"


def test_a_token_that_may_not_ask_for_secrets_leaves_them_open(hub, built, monkeypatch):
    push_leaderboard("lab")
    monkeypatch.setenv("HF_TOKEN", hub.token("ada", "read"))
    step = steps_of(built)["secrets of the Space"]
    assert (step.state, step.text.split(":")[0]) == ("to do", "this token may not ask for their names")


@pytest.mark.usefixtures("waits")
@pytest.mark.parametrize("token", ["hf_unchecked", ""])
def test_without_a_network_each_step_is_told_with_its_size(built, tmp_path, monkeypatch, capsys, token):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        # Nobody listens there.
        connect(monkeypatch, f"http://127.0.0.1:{closed.getsockname()[1]}", tmp_path / "home", token)
        assert main(["push", "--rehearse", str(built), "--org", "lab"]) == (0 if token else 1)
    forget()
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("    ")]
    assert re.match(r"to do  network: .* cannot be reached .* the steps below are for a first", lines[0])
    assert lines[1].startswith("to do  token: one is there (HF_TOKEN)" if token else "wrong  token: no token is set")
    assert lines[2] == "to do  organisation lab: not checked"
    files = [path for path in built.rglob("*") if path.is_file()]
    assert re.match(rf"to do  dataset {DATASET}: new, {len(files) + 1} files, [\d.]+ [kM]B; ", lines[3])
    assert [line.split(",")[0] for line in lines[4:9]] == [
        *("to do  space lab/a_coat: new", "to do  space lab/a_tre: new"),
        *(f"to do  dataset {RESULTS}: new", f"to do  space {SPACE}: new"),
        "to do  baselines: to score and send: 1 result on mini",
    ]
    assert lines[8].endswith(", 10 B")


@pytest.mark.usefixtures("waits")
def test_a_hub_that_answers_nothing_is_no_step(hub, built):
    hub.faults.order("GET", "/api/whoami-v2", Status(503), times=None)
    with pytest.raises(HubError, match="503"):
        rehearse(built, "lab")
