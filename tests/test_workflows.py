"""The workflows run what was looked at, and nothing that somebody else can move."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def steps_of(path: Path) -> list[dict[str, object]]:
    jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_there_are_some():
    assert {path.name for path in WORKFLOWS} >= {"test.yml", "release.yml", "versions.yml"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_named_by_their_commit_and_its_version_stands_beside(path: Path):
    used = re.findall(r"uses: *(.*)", path.read_text("utf-8"))
    assert len(used) == sum("uses" in step for step in steps_of(path))
    for action in used:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_an_action_has_one_commit():
    used = {action for path in WORKFLOWS for action in re.findall(r"uses: *(\S+)", path.read_text("utf-8"))}
    names = [action.partition("@")[0] for action in used]
    assert len(names) == len(set(names)), sorted(used)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_is_installed_is_pinned_but_where_ranges_are_tested(path: Path):
    commands = [str(step.get("run", "")) for step in steps_of(path)]
    for command in (one for one in commands if "pip install" in one):
        pinned = "-c constraints.txt" in command or "--require-hashes" in command or re.search(r"==\d", command)
        assert pinned or '".[test]"' in command, command


def test_the_files_of_a_release_are_built_by_tools_with_digests():
    commands = [str(step.get("run", "")) for step in steps_of(ROOT / ".github" / "workflows" / "release.yml")]
    installs = [command for command in commands if "pip install" in command]
    assert installs == ["pip install --require-hashes -r .github/release.txt"]
    assert "python -m build --no-isolation" in commands
    lines = (ROOT / ".github" / "release.txt").read_text("utf-8").replace("\\\n", " ").splitlines()
    required = [line for line in lines if line.strip() and not line.startswith("#")]
    assert all(re.match(r"[\w.-]+==\S+ +--hash=sha256:[0-9a-f]{64}", line) for line in required)
    constraints = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
        if "==" in line and not line.startswith("#")
    )
    versions = dict(re.match(r"([\w.-]+)==(\S+)", line).groups() for line in required)
    for name in {"build", "twine"}:
        assert versions[name] == constraints[name]
