"""README and documentation: commands and code as they stand there, links, length; the site is built by .ci/run."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from audio_compositionality.cli.main import argument_parser, load_commands

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")])
PROGRAM = "audio-compositionality"


def blocks(page: Path, language: str) -> Iterator[str]:
    """The blocks of code of a language."""
    yield from re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def commands(page: Path) -> Iterator[list[str]]:
    """The command lines of ours in blocks of shell, as words, without the program."""
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            for place, word in enumerate(words):
                if word == PROGRAM or (word == "-m" and words[place + 1] == "audio_compositionality"):
                    yield words[place + (1 if word == PROGRAM else 2) :]
                    break


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_are_understood(page: Path, capsys: pytest.CaptureFixture[str]):
    parser = argument_parser(load_commands())
    for words in commands(page):
        try:
            parser.parse_args(words)
        except SystemExit as stop:
            if stop.code:
                pytest.fail(f"{shlex.join(words)}: {capsys.readouterr().err}")


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_python_is_python_whose_imports_are_there(page: Path):
    for block in blocks(page, "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Import | ast.ImportFrom) and "audio_compositionality" in ast.unparse(node):
                exec(compile(ast.Module([node], []), named(page), "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_public_names_exist(page: Path):
    import audio_compositionality as ac

    for block in blocks(page, "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ac":
                assert hasattr(ac, node.attr), node.attr


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path):
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"https?:|#", target):
            assert (page.parent / target.partition("#")[0]).exists(), target


def test_the_readme_is_one_page():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150


def test_the_model_of_the_readme_is_the_one_that_is_tested():
    (model, *_) = blocks(ROOT / "README.md", "python")
    assert model == (ROOT / "tests" / "examples" / "band_energies.py").read_text("utf-8")


def test_pages_name_no_place_of_one_machine():
    wrong = re.compile(r"(?<![\w.-])/(work|opt|root)/|file://|pypi\.org/simple")
    assert not [named(page) for page in PAGES if wrong.search(page.read_text("utf-8"))]


def test_versions_are_the_same_everywhere():
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    assert version is not None
    assert cited is not None
    assert version[1] == cited[1]
