"""README and documentation: commands and code as they stand there, links, length; the site is built by .ci/run."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from audio_compositionality.cli.arguments import ListedError
from audio_compositionality.cli.main import argument_parser, load_commands, parsed
from audio_compositionality.dataset_builder.recipes import list_recipes, load_recipe
from audio_compositionality.support.errors import AudioCompositionalityError
from studies import reference

from .dataset_builder.recipes import louder
from .dataset_builder.recipes.toy import registered

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.rendered import RenderedData

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")])
PROGRAM = "audio-compositionality"
FOLDERS = (
    *("api", "support", "dataset_builder", "metrics", "encoders", "tasks", "evaluator", "training", "hub"),
    *("leaderboard", "push_scripts", "cli", "studies", "docs", "tests", "benchmarks", "examples"),
)
PATH = re.compile(rf"(?<![\w/.-])((?:{'|'.join(FOLDERS)})/[\w./-]+\.(?:py|yaml|md)\b)")
"""Files of this repository as a text names them."""


def blocks(page: Path, language: str) -> Iterator[str]:
    """The blocks of code of a language."""
    yield from re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def commands(page: Path) -> Iterator[list[str]]:
    """The command lines of ours in blocks of shell, as words, without the program."""
    for block in blocks(page, "(?:sh|bash)"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            for place, word in enumerate(words):
                if word == PROGRAM or (word == "-m" and words[place + 1] == "audio_compositionality"):
                    yield words[place + (1 if word == PROGRAM else 2) :]
                    break


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


class EnoughError(Exception):
    """All that was typed is understood: from here on data are opened and models loaded."""


BUILT = ("audio-compositionality", "built", "questions", "other", "ours", "$ORG/audio-compositionality")
FOLDERS_OF_SOUNDS = ("animals", "sounds", "words", "street", "FOLDER")
STRONG = ("validation.tsv", "street.csv")
TEXTS = ("table.csv", "more.csv")
QUESTIONS = ("questions.csv",)


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What the pages call a user's own: as much of each as it takes to tell what it is. Nothing of it is opened."""
    for name in BUILT:
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "manifest.json").write_text("{}")
    for name in FOLDERS_OF_SOUNDS:
        (tmp_path / name / "dog").mkdir(parents=True)
        (tmp_path / name / "dog" / "0.wav").write_text("")
    for name in STRONG:
        (tmp_path / name).write_text("filename\tonset\toffset\tevent_label\n0.wav\t0.5\t1\tdog\n")
    for name in TEXTS:
        (tmp_path / name).write_text("path,caption,dataset,split_name\n")
    for name in QUESTIONS:
        (tmp_path / name).write_text("audio,question,options,answer\n")
    monkeypatch.chdir(tmp_path)

    def enough(*_: Any, **__: Any) -> None:
        raise EnoughError

    cli = "audio_compositionality.cli"
    for place in (
        f"{cli}.data_options.open_with_notes",
        f"{cli}.data_options.opened_request_data",
        f"{cli}.train._train",
        f"{cli}.build._voices",
        f"{cli}.train._check_encoder",
        "audio_compositionality.encoders.check.check_model",
        "audio_compositionality.training.ablations.run_ablations",
    ):
        monkeypatch.setattr(place, enough)
    monkeypatch.setattr(f"{cli}.arguments.check_models", lambda names: None)
    monkeypatch.setattr("audio_compositionality.training.run_folder.check_out", lambda *_, **__: None)
    monkeypatch.setattr("audio_compositionality.dataset_builder.texts.caption_reading.open_tagger", lambda: None)
    with registered(louder.RECIPE):
        yield


SETTING = ("run", "evaluate", "embed", "coral", "build", "data", "train", "check-model", "captions")
"""Commands that take settings and data; the others are parsed alone."""


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_are_understood_with_their_data_and_settings(page: Path, brought: None):
    """As written, through the real parser, the reading of data and the division of settings."""
    every = load_commands()
    for words in commands(page):
        if words[0] in ("--help", "--version"):
            continue
        name = next(word for word in words if not word.startswith("-"))
        try:
            options = parsed(argument_parser({name: every[name]}), words, name)
            if name in SETTING and getattr(options, "settings", None) is None and not getattr(options, "files", None):
                options.typed = shlex.join(words)
                with pytest.raises((EnoughError, ListedError)):
                    options.run(options)
        except (AudioCompositionalityError, SystemExit) as error:
            pytest.fail(f"{shlex.join(words)}: {error}")


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


def missing(page: Path) -> list[str]:
    """Files of ours that a text names by their paths from the root, or from `tests`, and that are not there."""
    # NAME stands for the name of any.
    paths = {path: path.replace("NAME", "*") for path in PATH.findall(page.read_text("utf-8"))}
    return [p for p, glob in paths.items() if not any(any(folder.glob(glob)) for folder in (ROOT, ROOT / "tests"))]


def test_files_that_pages_and_comments_name_are_there():
    modules = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    assert not {named(page): paths for page in (*PAGES, *modules) if (paths := missing(page))}


def without_code(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings on GitHub; those of the site are checked by its strict build."""
    headings = re.findall(r"^#+ (.*)$", without_code(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path):
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        if not re.match(r"https?:", link):
            target, _, anchor = link.partition("#")
            path = page.parent / target if target else page
            assert path.exists(), link
            assert not anchor or anchor in anchors(path), link


def test_reference_pages_are_what_the_code_says():
    for name, write in reference.PAGES.items():
        path = reference.FOLDER / f"{name}.md"
        assert write() == path.read_text("utf-8"), f"{path} is old: run python -m studies.reference"
    # Numbers of rows are kept from the page, of each recipe at its version.
    kept = reference.kept_rows()
    assert set(kept) == {(name, str(load_recipe(name).version)) for name in list_recipes()}
    assert kept["when", "1"][0] == reference.count_rows(load_recipe("when"), "mini")


def test_every_page_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    named_pages = re.findall(r"^ +- .*: (\S+\.md)$", text, re.MULTILINE)
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert set(named_pages) == set(pages) - {"images/README.md"}


def test_the_readme_is_one_page():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120


def test_the_model_of_the_readme_is_the_one_that_is_tested():
    (model, *_) = blocks(ROOT / "README.md", "python")
    assert model == (ROOT / "tests" / "examples" / "my_encoder.py").read_text("utf-8")


def test_the_recipe_of_a_third_party_is_the_one_that_is_tested():
    (recipe, *_) = [block for block in blocks(ROOT / "docs" / "how-to/add-a-task.md", "python") if "Recipe[" in block]
    path = ROOT / "tests" / "dataset_builder" / "recipes" / "louder.py"
    assert recipe == path.read_text("utf-8")


@pytest.fixture
def built(
    tiny_data: RenderedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_torchcodec: None
) -> RenderedData:
    """Data that lie in the working directory, built under the name that the pages use."""
    from audio_compositionality.dataset_builder.build import build_dataset

    build_dataset(tiny_data, tmp_path / PROGRAM, progress=False)
    monkeypatch.chdir(tmp_path)
    return tiny_data


@pytest.mark.slow
def test_the_page_of_data_runs_from_a_data_set_to_an_embedding(built: RenderedData):
    names: dict[str, Any] = {}
    first, *others = blocks(ROOT / "docs" / "how-to/data.md", "python")
    exec(first, names)
    clip = next(iter(built.configuration("a_coat").clips()))
    assert names["sample_rate"] == clip.sample_rate
    np.testing.assert_array_equal(names["waveform"], clip.waveform)
    np.testing.assert_array_equal(names["embedding"], names["model"].embed(clip.waveform[None], clip.sample_rate)[0])
    for block in others:
        exec(block, names)
    assert names["waveform"].shape == clip.waveform.shape
    assert names["embedding"].shape == (256,)
    # What the page says of a row whose columns are not all cast.
    with pytest.raises(ImportError, match="torchcodec"):
        names["quadruples"].cast_column("B", names["Audio"]())[0]["A"]


def test_the_quick_start_has_a_row_a_scene(built: RenderedData):
    (block,) = [block for block in blocks(ROOT / "docs" / "start/install.md", "python") if "load_dataset" in block]
    names: dict[str, Any] = {}
    # Without the last line, the metric.
    exec(block[: block.index("evaluate.load")], names)
    rows = list(built.configuration("a_tre").rows)
    assert names["splits"] == [row["split"] for row in rows]
    assert len(names["metadata"]) == len(rows)


def test_pages_name_no_place_of_one_machine():
    wrong = re.compile(r"(?<![\w.-])/(work|opt|root)/|file://|pypi\.org/simple")
    assert not [named(page) for page in PAGES if wrong.search(page.read_text("utf-8"))]


def test_versions_are_the_same_everywhere():
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    assert version is not None
    assert cited is not None
    assert version[1] == cited[1]
