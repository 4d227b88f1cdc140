"""The metrics' folders as Spaces: complete, described as they are, and used in a real browser."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
import pytest
import yaml
from huggingface_hub import SpaceCard
from packaging.requirements import Requirement

from audio_compositionality import metrics
from audio_compositionality.metrics import METRICS
from audio_compositionality.metrics.a_coat import app as a_coat_app
from audio_compositionality.metrics.a_coat.a_coat import a_coat
from audio_compositionality.metrics.a_tre import app as a_tre_app
from audio_compositionality.metrics.a_tre.a_tre import a_tre

from ..hub.clients import process_environment

FOLDER = Path(metrics.__file__).parent
ROOT = Path(__file__).parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HOSTILE = "<img src=x onerror=document.title='broken'>"

# https://huggingface.co/docs/hub/spaces-config-reference
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def requirements(name: str) -> dict[str, Requirement]:
    lines = (FOLDER / name / "requirements.txt").read_text().splitlines()
    return {requirement.name: requirement for requirement in map(Requirement, lines)}


def card(name: str) -> tuple[dict[str, Any], str]:
    """The YAML of a card, and its text."""
    _, settings, text = (FOLDER / name / "README.md").read_text("utf-8").split("---\n", 2)
    return yaml.safe_load(settings), text


def result_with_everything(name: str) -> dict[str, Any]:
    """A result of every key that the metric can return."""
    rng = np.random.default_rng(0)
    if name == "a_coat":
        return a_coat(*rng.normal(size=(4, 6, 3)), t_size=[1] * 6, t_level=np.arange(6), return_scores=True)
    scenes = [[{"pitch": str(label)}] for label in rng.integers(2, size=20)]
    splits = ["train"] * 10 + ["validation"] * 5 + ["test"] * 5
    return a_tre(
        rng.normal(size=(20, 3)), scenes, splits, seeds=(0, 1), max_steps=2, progress=False, return_scores=True
    )


def test_what_the_forms_share_is_the_same() -> None:
    # Each folder is pushed alone, so that it has to hold all that it needs.
    def parts(name: str) -> dict[str, str]:
        found = {}
        for node in ast.parse((FOLDER / name / "app.py").read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                found[node.name] = ast.dump(node)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found[node.targets[0].id] = ast.dump(node.value)
        return found

    one, other = parts("a_coat"), parts("a_tre")
    for name in ("CSS", "ELSE", "MAX_CHARACTERS", "MAX_MESSAGE", "MAX_ROWS", "as_text", "check_size", "clear"):
        assert one[name] == other[name], name


@pytest.mark.parametrize("name", METRICS)
class TestFolder:
    def test_is_exactly_what_a_space_holds(self, name: str) -> None:
        found = {path.name for path in (FOLDER / name).iterdir()} - {"__pycache__"}
        assert found == {"README.md", "app.py", "requirements.txt", f"{name}.py"}

    def test_card_has_what_a_space_needs(self, name: str) -> None:
        settings, _ = card(name)
        assert settings["sdk"] == "gradio"
        assert settings["sdk_version"] == constraints()["gradio"] == gr.__version__
        assert settings["app_file"] == "app.py"
        assert settings["pinned"] is False
        assert settings["license"] == "apache-2.0"
        assert {"evaluate", "metric"} <= set(settings["tags"])
        assert {settings["colorFrom"], settings["colorTo"]} <= COLOURS
        assert settings["title"] == {"a_coat": "A-COAT", "a_tre": "A-TRE"}[name]
        assert settings["description"]
        assert len(settings["emoji"]) == 1
        SpaceCard.load(FOLDER / name / "README.md")

    def test_card_describes_every_key_and_argument(self, name: str) -> None:
        _, text = card(name)
        inputs = text.split("### Inputs")[1].split("### Outputs")[0]
        outputs = text.split("### Outputs")[1].split("## Limitations")[0]

        def named(table: str) -> set[str]:
            rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
            return {key for row in rows for key in re.findall("`([a-z_0-9]+)`", row)}

        function = {"a_coat": a_coat, "a_tre": a_tre}[name]
        arguments = set(
            function.__code__.co_varnames[: function.__code__.co_argcount + function.__code__.co_kwonlyargcount]
        )
        assert named(inputs) == arguments
        assert named(outputs) == set(result_with_everything(name))

    def test_card_s_example_runs(self, name: str, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
        _, text = card(name)
        usage, cure = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        module = importlib.import_module(f"audio_compositionality.metrics.{name}.{name}")
        metric = {"a_coat": "ACoat", "a_tre": "ATre"}[name]
        asked = []

        def load(path: str, **options: Any) -> Any:
            asked.append((path, options))
            return getattr(module, metric)()

        monkeypatch.setattr("evaluate.load", load)
        exec(compile(usage + "import evaluate\n" + cure, "README.md", "exec"), {})
        assert [path for path, _ in asked] == [f"ORG/{name}"] * 2
        assert asked[1][1]["download_config"].force_download
        score, constant_or_null, control = map(float, capsys.readouterr().out.split())
        expected = {"a_coat": (1, 0, 1), "a_tre": (0.95, 0.75, 0.9)}[name]
        assert (score, constant_or_null, control) == pytest.approx(expected, abs=0.1)

    def test_requirements_are_what_is_imported(self, name: str) -> None:
        found = set()
        for file in (f"{name}.py", "app.py"):
            for node in ast.walk(ast.parse((FOLDER / name / file).read_text("utf-8"))):
                modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                found |= {module.partition(".")[0] for module in modules}
        # Gradio comes with the version of the SDK.
        assert found - set(sys.stdlib_module_names) == set(requirements(name)) | {"gradio"}
        versions = constraints()
        for package, requirement in requirements(name).items():
            assert requirement.specifier.contains(versions[package])

    def test_form_s_importing_asks_and_writes_nothing(self, name: str, tmp_path: Path) -> None:
        log = tmp_path / "attempts.txt"
        code = f"from audio_compositionality.metrics.{name} import app; app.demo.get_config_file()"
        environment = process_environment("http://127.0.0.1:1", tmp_path / "home", log) | {"TMPDIR": str(tmp_path)}
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True, timeout=120)
        # Gradio makes a folder for temporary files, which stays empty.
        assert not [path for path in tmp_path.rglob("*") if path.is_file()]


class Metric:
    """The module's function, as `evaluate.load` would give it, without a copy in the user's cache."""

    def __init__(self, function: Any) -> None:
        self.compute = function


@pytest.fixture
def forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(a_coat_app, "load_metric", lambda: Metric(a_coat))
    monkeypatch.setattr(a_tre_app, "load_metric", lambda: Metric(a_tre))


def values(table: str) -> dict[str, str]:
    """The second column of a table in Markdown, by the first."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    return {name.strip("`"): value for name, value, _ in rows}


def scene(label: Any = "low", split: Any = "train", **more: Any) -> str:
    return json.dumps({"split": split, "sources": [{"pitch": label}], **more})


@pytest.mark.usefixtures("forms")
class TestACoatForm:
    def test_by_hand(self) -> None:
        # Steps (1, 0) and (1, 1), then (0, 2) and (0, 1): cosines √½ and 1.
        table = a_coat_app.compute("0 0\n0,0", "1, 0\n0, 2", "5 5\n\n6\t6", "6 6\n6 7")
        found = values(table)
        assert found["a_coat"] == f"{(0.5**0.5 + 1) / 2:.6f}"
        assert found["n"] == "2"
        assert "matched_null" not in found
        assert values(a_coat_app.compute("0 0", "1 0", "5 5", "6 6"))["null"] == "–"

    def test_every_key_has_a_meaning(self) -> None:
        assert set(values(a_coat_app.compute(*a_coat_app.example()))) == set(a_coat_app.MEANINGS)
        assert set(a_coat_app.MEANINGS) == set(result_with_everything("a_coat")) - {"scores", "scores_centred"}

    @pytest.mark.parametrize(
        ("texts", "message"),
        [
            (("", "1", "1", "1"), "A is empty. Paste the embeddings"),
            (("1", "1", " \n ", "1"), "C is empty"),
            (("1\nx", "1", "1", "1"), "A, line 2: &#x27;x&#x27; is no number. Give numbers separated by"),
            (("1", f"\n{HOSTILE}", "1", "1"), "B, line 2: &#x27;&lt;img&#x27; is no number"),
            (("1 2\n1", "1", "1", "1"), "A, line 2 has 1 numbers, but the first row 2."),
            (("1", "1", "1", "1 2"), r"a, b, c and d must have one shape \[n, dim\]; got a \(1, 1\)"),
            (("nan", "1", "1", "1"), "a must be finite .* the first is row 0 with nan"),
            (("1\n" * 2_001, "1", "1", "1"), "A has more than 2,000 rows: run evaluate.load on your own machine"),
            (("1" * 5_000_001, "", "", ""), "There are 5,000,001 characters, but this form takes 5,000,000 at most"),
            (("1", "1", "1", "1", "2"), "T has 1 numbers a line, but needs 2"),
            (("1", "1", "1", "1", "0 -3"), "t_size counts sources, an integer ≥ 1; row 0 is 0"),
            (("\ud800", "1", "1", "1"), r"A, line 1: &#x27;\\ud800&#x27; is no number"),
            (("x" * 10_000, "1", "1", "1"), "^A, line 1: &#x27;x+…$"),
        ],
    )
    def test_what_it_refuses(self, texts: tuple[str, ...], message: str) -> None:
        with pytest.raises(gr.Error) as caught:
            a_coat_app.compute(*texts)
        assert re.search(message, caught.value.message)
        assert len(caught.value.message) < 600
        assert caught.value.message.encode()


@pytest.mark.usefixtures("forms")
class TestATreForm:
    def test_every_key_has_a_meaning(self) -> None:
        found = values(a_tre_app.compute(*a_tre_app.example(), 2))
        assert set(found) == set(a_tre_app.MEANINGS)
        spread = {"seed_std", "a_tre_centred_seed_std"}
        assert set(a_tre_app.MEANINGS) == set(result_with_everything("a_tre")) - {"scores", "scores_centred"} - spread
        assert (found["n"], found["steps"], found["collapsed"]) == ("30", "2", "no")

    @pytest.mark.parametrize(
        ("scenes", "message"),
        [
            ("", "There are no scenes. Paste them, or fill in the example."),
            ("{", "Scenes, line 1 is no JSON: Expecting property name"),
            ("[" * 100_000, "Scenes, line 1 is no JSON: maximum recursion depth"),
            (f"\n{HOSTILE}", "Scenes, line 2 is no JSON"),
            ("7", r"Scenes, line 1: a scene is \{&quot;split&quot;: &quot;train&quot;"),
            (scene(more=1), "Scenes, line 1: a scene is"),
            (scene(split=["train"]), "Scenes, line 1: a scene is"),
            ('{"split": "train", "sources": "all"}', "Scenes, line 1: a scene is"),
            (json.dumps({"split": "train", "sources": [{}] * 9}), "Scenes, line 1 has 9 sources, more than 8"),
            (
                "\n".join(scene(str(label)) for label in range(257)),
                "The scenes have 257 different labels, more than 256",
            ),
            ("\n".join([scene()] * 2_001), "There are 2,001 scenes, more than 2,000"),
            ("\n".join([scene(split="dev")] * 5), r"splits\[0\] is &#x27;dev&#x27;, not one of"),
            ("\n".join([scene()] * 5), "The validation split has 0 scenes; it needs at least 1"),
            (scene(), "splits must have one entry for each of the 5 embeddings; got 1"),
            (
                "\n".join([*[scene(split=s) for s in ("train", "train", "val", "val")], scene(HOSTILE, "test")]),
                r"scenes\[4\] \(test\) has pitch &quot;&lt;img src=x onerror=document.title=&#x27;broken&#x27;&gt;",
            ),
            (
                "\n".join([*[scene(split=s) for s in ("train", "train", "val", "val")], scene(7, "test")]),
                "has pitch 7; a label must be a string",
            ),
            (
                "\n".join(
                    [scene(split=s) for s in ("train", "train", "val")] + ['{"split": "test", "sources": []}'] * 2
                ),
                r"scenes\[3\] must be a list of one or more sources",
            ),
            (
                "\n".join(
                    [scene(split=s) for s in ("train", "train", "val")] + ['{"split": "test", "sources": [3]}'] * 2
                ),
                r"scenes\[3\]\[0\] must map attributes to labels; got 3",
            ),
        ],
    )
    def test_what_it_refuses(self, scenes: str, message: str) -> None:
        with pytest.raises(gr.Error) as caught:
            a_tre_app.compute("1 0\n0 1\n1 0\n0 1\n1 1", scenes, 2)
        assert re.search(message, caught.value.message), caught.value.message
        assert "<" not in caught.value.message

    @pytest.mark.parametrize(
        ("embeddings", "steps", "message"),
        [
            (" ", 2, "There are no embeddings"),
            ("1 2\n1 b", 2, "Embeddings, line 2: &#x27;b&#x27; is no number"),
            ("1 2\n1", 2, "Embeddings, line 2 has 1 numbers, but the first row 2."),
            ("1 " * 257, 2, "The embeddings have 257 dimensions, more than 256"),
            ("1\n" * 2_001, 2, "There are 2,001 embeddings, more than 2,000"),
            ("1\n" * 2_500_001, 2, "There are 5,000,002 characters"),
            ("1", 0, "There must be 1 to 1,000 training steps; got 0"),
            ("1", 1_001, "There must be 1 to 1,000 training steps; got 1001"),
            ("inf", 2, "embeddings must be finite"),
        ],
    )
    def test_embeddings_and_steps_that_it_refuses(self, embeddings: str, steps: int, message: str) -> None:
        with pytest.raises(gr.Error) as caught:
            a_tre_app.compute(embeddings, scene() if len(embeddings) < 5_000_000 else "", steps)
        assert re.search(message, caught.value.message), caught.value.message


# ----- the Spaces as they run


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on the path (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Containers leave Chromium no sandbox; the page is our own.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module", params=METRICS)
def space(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Name and address of a Space that runs from a copy of its folder, with caches of its own and no network."""
    name, root = request.param, tmp_path_factory.mktemp("space")
    folder, log, output = root / "space", root / "attempts.txt", root / "output.txt"
    shutil.copytree(FOLDER / name, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "tmp").mkdir()
    port = free_port()
    environment = process_environment("http://127.0.0.1:1", root / "home", log)
    environment = {key: value for key, value in environment.items() if not key.startswith("GRADIO_")}
    environment |= {"GRADIO_SERVER_PORT": str(port), "TMPDIR": str(root / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    with output.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "app.py"], cwd=folder, env=environment, stdout=stream, stderr=subprocess.STDOUT
        )
    try:
        started = time.monotonic()
        while not answers(port):
            assert process.poll() is None, output.read_text()
            assert time.monotonic() < started + 180, output.read_text()
            time.sleep(0.1)
        yield name, f"http://127.0.0.1:{port}/"
        assert process.poll() is None, output.read_text()
    finally:
        process.terminate()
        process.wait(30)
    assert not log.exists(), log.read_text()
    assert "Traceback" not in output.read_text()
    assert {path.name for path in folder.iterdir()} == {path.name for path in (FOLDER / name).iterdir()} - {
        "__pycache__"
    }


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.fixture
def page(chromium: Any, space: tuple[str, str]) -> Iterator[Any]:
    """The Space's page; when the test is over, nothing may have gone wrong nor been asked of another host."""
    context, troubles = chromium.new_context(viewport={"width": 1280, "height": 900}), []
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
    page.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}"))
    own = (space[1], "data:", "blob:")
    page.on("request", lambda request: None if request.url.startswith(own) else troubles.append(request.url))
    page.goto(space[1])
    yield page
    context.close()
    assert troubles == []


def fill_example(page: Any) -> list[str]:
    """Have the example filled in; the boxes' texts."""
    page.get_by_role("button", name="Fill in an example").click()
    page.wait_for_function("() => [...document.querySelectorAll('textarea')].every((box) => box.value)")
    return [box.input_value() for box in page.locator("textarea").all()]


def compute(page: Any) -> dict[str, str]:
    """Press Compute, and read the table."""
    page.get_by_role("button", name="Compute").click()
    page.get_by_role("cell", name="mrr_chance").wait_for()
    rows = [row.locator("td").all_inner_texts() for row in page.locator("tbody tr").all()]
    return {name.strip(): value.strip() for name, value, _ in rows}


@pytest.mark.browser
class TestInABrowser:
    def test_the_example_s_scores_are_the_module_s(self, page: Any, space: tuple[str, str]) -> None:
        texts = fill_example(page)
        matrix = np.loadtxt(texts[0].splitlines(), delimiter=",")
        if space[0] == "a_coat":
            found = compute(page)
            others = [np.loadtxt(text.splitlines(), delimiter=",") for text in texts[1:4]]
            size, level = np.loadtxt(texts[4].splitlines(), delimiter=",").T
            expected = a_coat(matrix, *others, t_size=size, t_level=level)
            assert list(found) == list(expected)
            for key, value in expected.items():
                assert float(found[key]) == pytest.approx(value, abs=5.1e-7)
        else:
            page.get_by_role("spinbutton").fill("200")
            page.keyboard.press("Tab")
            found = compute(page)
            lines = [json.loads(line) for line in texts[1].splitlines()]
            scenes, splits = [line["sources"] for line in lines], [line["split"] for line in lines]
            expected = a_tre(matrix, scenes, splits, max_steps=200, progress=False)
            assert list(found) == list(expected)
            for key in ("constant", "ridge_r2", "ridge_r2_null", "top1_chance", "n"):
                assert float(found[key]) == pytest.approx(expected[key], abs=5.1e-7)
            # Another number of threads may round otherwise.
            for key in ("a_tre", "std", "a_tre_centred"):
                assert float(found[key]) == pytest.approx(expected[key], abs=1e-3)

    def test_a_refusal_says_why_and_no_old_score_stays(self, page: Any) -> None:
        fill_example(page)
        if page.get_by_role("spinbutton").count():
            page.get_by_role("spinbutton").fill("100")
            page.keyboard.press("Tab")
        compute(page)
        page.locator("textarea").first.fill("1, 2\n3, four")
        page.get_by_role("button", name="Compute").click()
        message = page.get_by_text("line 2: 'four' is no number. Give numbers separated by commas or spaces.")
        message.wait_for()
        assert page.locator("tbody tr").count() == 0

    def test_what_is_typed_becomes_no_element(self, page: Any, space: tuple[str, str]) -> None:
        fill_example(page)
        hostile = HOSTILE.replace(" ", "/")
        page.locator("textarea").first.fill(hostile)
        page.get_by_role("button", name="Compute").click()
        page.get_by_text(f'line 1: "{hostile}" is no number.').wait_for()
        assert page.locator("img[src=x], [onerror]").count() == 0
        assert page.title() == {"a_coat": "A-COAT", "a_tre": "A-TRE"}[space[0]]

    @pytest.mark.parametrize("space", ["a_tre"], indirect=True)
    def test_the_fit_s_progress_is_shown(self, page: Any) -> None:
        fill_example(page)
        page.get_by_role("button", name="Compute").click()
        page.get_by_text("A-TRE, seed 0").first.wait_for()
        page.get_by_role("cell", name="mrr_chance").wait_for()

    def test_nothing_is_kept_in_the_browser(self, page: Any) -> None:
        texts = fill_example(page)
        stored = page.evaluate("() => JSON.stringify([{...localStorage}, {...sessionStorage}])")
        assert texts[0][:20] not in stored
        assert page.get_by_text("Runs", exact=True).count() == 0

    @pytest.mark.parametrize("width", [400, 1280])
    def test_nothing_is_wider_than_the_screen(self, page: Any, width: int) -> None:
        page.set_viewport_size({"width": width, "height": 800})
        fill_example(page)
        if page.get_by_role("spinbutton").count():
            page.get_by_role("spinbutton").fill("100")
            page.keyboard.press("Tab")
        found = compute(page)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        table = page.locator("table").bounding_box()
        assert table["x"] >= 0
        assert table["x"] + table["width"] <= width
        # No number is broken over lines.
        heights = page.locator("tbody td:nth-child(2)").evaluate_all(
            "cells => cells.map((cell) => { const range = document.createRange(); range.selectNodeContents(cell);"
            " return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size; })"
        )
        assert heights == [1] * len(found)
