"""The Spaces of the metrics: complete, described as they are, and used in a real browser."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import evaluate
import gradio as gr
import numpy as np
import pytest
import yaml
from huggingface_hub import SpaceCard
from packaging.requirements import Requirement

from audio_compositionality import metrics
from audio_compositionality.metrics import app, list_metrics, metric_file, module_files
from audio_compositionality.metrics.app import Box, Form
from audio_compositionality.push_scripts.spaces import metric_card, metric_files

from ..hub.clients import process_environment

FOLDER = Path(metrics.__file__).parent
ROOT = Path(__file__).parents[2]
HOSTILE = "<img src=x onerror=document.title='broken'>"
QUICK = {"max_steps": 2, "progress": False, "probes": ("ridge",)}

PRINTED = {
    "audio_questions": (1 / 3, 13 / 36, 1, 1),
    "a_coat": (1, 0, 1),
    "a_coat_instances": (1, 0.125, 1),
    "a_tre": (0.95, 0.75, 0.9),
    "a_tre_held_out": (1, 0, 1, 0.95),
    "audio_text_retrieval": (1, 1, 0.01, 50.5),
    "binding": (1, 0.5),
    "comp_a": (1, 1 / 6, 1, 0, 0.5, 0.5),
    "composed_retrieval": (1, 0.5, 0.5, 0.25),
    "count_instances": (1, 1, 1, 0.5),
    "disentanglement": (1, 0.5, 0.9),
    "equivariance": (1, 1, 0.66, 0, 1),
    "informativeness": (0.9, 0, 0.8),
    "invariance": (0.5, 0.8, 1, 1),
    "negation": (1, 1, 1, 0.5, 0, 1),
    "polybench": (1, 1 / 3, 1, 1 / 3, 0, 1, 1),
    "when": (0.75, 0.5, 0),
    "zero_shot_audio": (1, 1 / 3, 1, 0.99),
}
"""What the example of each card prints."""

ANYTHING = {
    "when": {"predictions"},
    "polybench": {"predictions", "groups"},
    "audio_questions": {"predictions", "groups", "kinds"},
}
"""Boxes that take any words: what a model said, and names."""

NUMBERS = {"polybench": "overlap"}
"""A box where each line is numbers, where that is not the first."""

# https://huggingface.co/docs/hub/spaces-config-reference
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def requirements(name: str) -> dict[str, Requirement]:
    lines = metric_files(name)["requirements.txt"].decode().splitlines()
    return {requirement.name: requirement for requirement in map(Requirement, lines)}


def card(name: str) -> tuple[dict[str, Any], str]:
    """The YAML of a card, and its text."""
    _, settings, text = metric_card(name).split("---\n", 2)
    return yaml.safe_load(settings), text


def module_of(name: str) -> Any:
    return importlib.import_module(f"audio_compositionality.metrics.{name}")


packages_distributions = cache(importlib.metadata.packages_distributions)


def imported(path: Path) -> set[str]:
    """Packages that a file imports, wherever in it, as they are called when installed; without Python's own."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        names |= {module.partition(".")[0] for module in modules}
    packages = packages_distributions()
    return {packages.get(name, [name])[0] for name in names - set(sys.stdlib_module_names)}


def score_of(name: str) -> dict[str, Any]:
    """What a metric's module says of its score, which a measure of another name than the metric's may be."""
    measures: dict[str, dict[str, Any]] = module_of(name).MEASURES
    return next(iter(measures.values()))


def make_space(name: str, folder: Path) -> Path:
    """The files of a Space, as they are pushed."""
    folder.mkdir(parents=True)
    for file, content in metric_files(name).items():
        (folder / file).write_bytes(content)
    return folder


@pytest.mark.parametrize("name", list_metrics())
class TestFolder:
    def test_card_has_what_a_space_needs(self, name: str) -> None:
        settings, _ = card(name)
        assert settings["sdk"] == "gradio"
        assert settings["sdk_version"] == constraints()["gradio"] == gr.__version__
        assert settings["app_file"] == "app.py"
        assert settings["pinned"] is False
        assert settings["license"] == "apache-2.0"
        assert {"evaluate", "metric"} <= set(settings["tags"])
        assert {settings["colorFrom"], settings["colorTo"]} <= COLOURS
        assert settings["title"] == score_of(name)["heading"]
        assert settings["description"]
        assert len(settings["emoji"]) == 1
        SpaceCard(metric_card(name))
        assert "$" not in card(name)[1].replace("$\\", "")

    def test_card_describes_every_key_and_argument(self, name: str) -> None:
        _, text = card(name)
        inputs = text.split("### Inputs")[1].split("### Outputs")[0]
        outputs = text.split("### Outputs")[1].split("## Limitations")[0]

        def named(table: str) -> set[str]:
            rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
            return {key for row in rows for key in re.findall("`([a-z_0-9]+)`", row)}

        module = module_of(name)
        function = getattr(module, name)
        arguments = inspect.signature(function).parameters
        few = {key: value for key, value in QUICK.items() if key in arguments}
        result = function(**module.example(), **few, return_scores=True)
        assert named(inputs) == set(arguments)
        assert named(outputs) == set(result)

    @pytest.mark.slow
    def test_card_s_example_runs(self, name: str, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
        _, text = card(name)
        *usage, cure = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        asked: list[tuple[str, dict[str, Any]]] = []
        metric = evaluate.load(str(metric_file(name)))

        def load(path: str, **options: Any) -> Any:
            asked.append((path, options))
            return metric

        monkeypatch.setattr("evaluate.load", load)
        exec(compile("".join(usage) + "import evaluate\n" + cure, "README.md", "exec"), {})
        assert [path for path, _ in asked] == [f"ORG/{name}"] * 2
        assert asked[1][1]["download_config"].force_download
        printed = tuple(map(float, capsys.readouterr().out.split()))
        assert printed == pytest.approx(PRINTED[name], abs=0.1)

    @pytest.mark.slow
    def test_requirements_are_what_is_imported(self, name: str) -> None:
        found = set().union(*(imported(FOLDER / file) for file in metric_files(name) if file.endswith(".py")))
        # Gradio comes with the version of the SDK.
        assert found == set(requirements(name)) | {"gradio"}
        versions = constraints()
        for package, requirement in requirements(name).items():
            assert requirement.specifier.contains(versions[package])


# ----- the form


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Form]:
    """The form of each metric, from its Space."""
    root = tmp_path_factory.mktemp("spaces")
    return {name: Form(app.metric_beside(make_space(name, root / name))) for name in list_metrics()}


def values(table: str) -> dict[str, str]:
    """The second column of a table in Markdown, by the first."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    return {name.strip("`"): value for name, value, _ in rows}


def least(form: Form) -> list[int]:
    """The lowest value of each option."""
    return [option["least"] for option in form.options.values()]


def refusal(form: Form, *given: Any) -> str:
    """The message with which a form refuses."""
    with pytest.raises(gr.Error) as caught:
        form.compute(*given)
    message = str(caught.value.message)
    assert "<" not in message
    assert len(message) < 600
    assert message.encode()
    return message


@pytest.mark.parametrize("name", list_metrics())
class TestForm:
    def test_example_s_numbers_are_the_function_s_with_their_meanings(self, name: str, forms: dict[str, Form]) -> None:
        form, module = forms[name], module_of(name)
        table = form.compute(*form.example(), *least(form))
        options = dict(zip(form.options, least(form), strict=True))
        expected = getattr(module, name)(**module.example(), **options)
        assert values(table) == {key: app.value_text(expected[key]) for key in module.MEASURES}
        for measure in module.MEASURES.values():
            assert measure["meaning"] in table
        assert form.title == score_of(name)["heading"]

    def test_every_feature_and_argument_of_the_example_has_a_box(self, name: str, forms: dict[str, Form]) -> None:
        form, module = forms[name], module_of(name)
        assert {box.name for box in form.boxes} == set(module.example())
        # A metric whose inputs are of several lengths has features of one, and needs the others beside them.
        needed = set(form.features) | set(module.PAGE.get("needed", ()))
        assert {box.name for box in form.boxes if not box.optional} == needed
        assert {box.name for box in form.boxes} | set(form.options) <= set(
            inspect.signature(getattr(module, name)).parameters
        )

    def test_page_s_interface_names_the_arguments(self, name: str, forms: dict[str, Form]) -> None:
        interface = app.build_page(forms[name]).get_api_info()["named_endpoints"]
        assert list(interface) == ["/compute"]
        arguments = [argument["parameter_name"] for argument in interface["/compute"]["parameters"]]
        assert arguments == [*(box.name for box in forms[name].boxes), *forms[name].options]

    def test_every_box_is_checked(self, name: str, forms: dict[str, Form]) -> None:
        form = forms[name]
        example = form.example()
        rows = len(example[0].splitlines())
        for place, box in enumerate(form.boxes):
            cases = [
                ("", f"{box.name} is empty. Paste it, or fill in the example."),
                ("1\n" * 2_001, f"{box.name} has 2,001 rows, more than 2,000: run evaluate.load on your own machine"),
                ("1" * 5_000_001, "characters, but this form takes 5,000,000 at most"),
                (f"{HOSTILE}\n" * rows, "&lt;img|not JSON"),
                ("\ud800\n" * rows, r"\\ud800|not JSON"),
                (f"{'x' * 10_000}\n" * rows, "…$|not JSON"),
            ]
            for text, message in cases[:3] if box.name in ANYTHING.get(name, ()) else cases:
                if text or not box.optional:
                    given = [*example[:place], text, *example[place + 1 :], *least(form)]
                    assert re.search(message, refusal(form, *given)), (box.name, text[:10])

    def test_optional_boxes_may_be_empty(self, name: str, forms: dict[str, Form]) -> None:
        form = forms[name]
        texts = ["" if box.optional else text for box, text in zip(form.boxes, form.example(), strict=True)]
        assert list(values(form.compute(*texts, *least(form)))) == list(form.measures)

    def test_options_out_of_range_are_refused(self, name: str, forms: dict[str, Form]) -> None:
        form = forms[name]
        for place, (option, limits) in enumerate(form.options.items()):
            for value in (limits["least"] - 1, limits["most"] + 1):
                given = [*least(form)[:place], value, *least(form)[place + 1 :]]
                assert refusal(form, *form.example(), *given).startswith(f"{option} must be {limits['least']:,} to")


@pytest.mark.slow
def test_the_pages_of_spaces_write_only_the_metrics_copies(tmp_path: Path) -> None:
    """Of all metrics in one process: gradio and evaluate take seconds to import."""
    spaces, log = [make_space(name, tmp_path / "spaces" / name) for name in list_metrics()], tmp_path / "attempts.txt"
    (tmp_path / "tmp").mkdir()
    code = (
        "import app, pathlib, sys\n"
        "for folder in sys.argv[1:]:\n"
        "    app.build_page(app.Form(app.metric_beside(pathlib.Path(folder)))).get_config_file()\n"
    )
    environment = process_environment("http://127.0.0.1:1", tmp_path / "home", log)
    environment |= {"TMPDIR": str(tmp_path / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", code, *spaces], cwd=spaces[0], env=environment, check=True, timeout=300)
    written = [path for path in tmp_path.rglob("*") if path.is_file() and spaces[0].parent not in path.parents]
    # `evaluate` copies the module, and gradio makes a folder for temporary files, which stays empty.
    copies = {f"{name}.json" for name in list_metrics()}
    copies |= {file for name in list_metrics() for file in module_files(metric_file(name))}
    assert {path.name for path in written if path.suffix != ".lock"} == {"__init__.py", *copies}


def test_a_coat_by_hand(forms: dict[str, Form]) -> None:
    # Steps (1, 0) and (1, 1), then (0, 2) and (0, 1): cosines √½ and 1.
    numbers = values(forms["a_coat"].compute("0 0\n0,0", "1, 0\n0, 2", "5 5\n\n6\t6", "6 6\n6 7", "", ""))
    assert numbers["a_coat"] == f"{(0.5**0.5 + 1) / 2:.6f}"
    assert (numbers["n"], numbers["matched_null"]) == ("2", "–")


SCENE = json.dumps([{"pitch": "low"}])
MANY = "\n".join(json.dumps([{"pitch": str(label)}]) for label in range(257))
STRANGE = "\n".join([SCENE] * 4 + [json.dumps([{"pitch": HOSTILE}])])
FIVE = ("1 0\n0 1\n1 0\n0 1\n1 1", "train\ntrain\nval\nval\ntest")


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (
            "a_coat",
            ("1\nx", "1", "1", "1", "", ""),
            "a, line 2: &#x27;x&#x27; is not a number. Give numbers separated by",
        ),
        ("a_coat", ("1 2\n1", "1", "1", "1", "", ""), "a, line 2 has 1 numbers, but the first row 2."),
        ("a_coat", ("1", "1", "1", "1", "2 3", "0"), "t_size, line 1: there are 2 numbers, but 1 is needed"),
        ("a_coat", ("1", "1", "1", "1", "2", ""), "t_size is given without t_level"),
        ("a_tre", ("1 0 " * 130, SCENE, "train", 100), "embeddings has 260 columns, more than 256"),
        ("a_tre", ("1", "{", "train", 100), "scenes, line 1: this is not JSON: Expecting property name"),
        ("a_tre", ("1", "[" * 100_000, "train", 100), "scenes, line 1: this is not JSON: maximum recursion depth"),
        ("a_tre", ("1", "7", "train", 100), r"scenes, line 1: the JSON must be a list \[...\]"),
        ("a_tre", ("1", json.dumps([{}] * 9), "train", 100), "scenes has 9 items in line 1, more than 8"),
        ("a_tre", ("1", MANY, "train", 100), "scenes has 257 different texts, more than 256"),
        ("a_tre", (FIVE[0], STRANGE, FIVE[1], 100), r"\(test\) has pitch &quot;&lt;img src=x onerror=document.title="),
    ],
)
def test_what_a_form_refuses(name: str, given: tuple[Any, ...], message: str, forms: dict[str, Form]) -> None:
    assert re.search(message, refusal(forms[name], *given))


def test_boxes_of_other_features() -> None:
    import datasets

    whole = Box.of("labels", "", datasets.Value("int32"))
    assert whole.values("3\n4", {}) == [3, 4]
    words = Box.of("answers", "", datasets.Value("string"))
    assert words.values(" a dog \n\ntwo cats", {}) == ["a dog", "two cats"]
    assert words.text(["a dog", "two cats"]) == "a dog\ntwo cats"
    either = Box.of("labels", "", datasets.Value("string"), datasets.Value("float64"))
    assert either.values("3\n 4.5 ", {}) == [3.0, 4.5]
    assert either.values("3\n low ", {}) == ["3", "low"]
    assert either.text([0.5, "low"]) == "0.5\nlow"
    lists = Box.of("choices", "", datasets.List(datasets.Value("string")))
    assert lists.values('["a", "b"]', {}) == [["a", "b"]]
    matrices = Box.of("b", "", datasets.List(datasets.List(datasets.Value("float64"))))
    assert matrices.text(np.array([[[0.5, 1.0]], [[2.0, 3.0]]])) == "[[0.5, 1.0]]\n[[2.0, 3.0]]"
    assert matrices.values("[[0.5, 1]]", {}) == [[[0.5, 1]]]


def test_boxes_of_what_is_optional_are_of_the_kind_that_the_page_says() -> None:
    assert Box.of("level", "").values("3\n-4", {}) == [3.0, -4.0]
    assert Box.of("x", "", kind="vectors").values("3 4\n5, 6", {}) == [[3.0, 4.0], [5.0, 6.0]]
    assert Box.of("labels", "", kind="lists").values('["a", "b"]', {}) == [["a", "b"]]
    assert all(Box.of("x", "", kind=kind).values("", {}) == [] for kind in app.KINDS)


def test_page_says_which_module_it_needs(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("ONE = 1\n")
    with pytest.raises(SystemExit, match="must hold one module with MEASURES; it has 0"):
        app.metric_beside(tmp_path)


SMALL = """
import datasets
import evaluate

class Accuracy(evaluate.Metric):
    def _info(self):
        features = datasets.Features({name: datasets.Value("string") for name in ("answers", "truth")})
        return evaluate.MetricInfo(
            description="How many answers are right.", citation="", inputs_description="", features=features
        )

    def _compute(self, answers, truth):
        return {"right": sum(a == t for a, t in zip(answers, truth)) / len(truth), "answers": list(answers)}

MEASURES = {"right": {"heading": "Right", "meaning": "rate of right answers"}}
"""


def test_metric_that_says_nothing_of_its_page_has_one(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(SMALL)
    (tmp_path / "helper.py").write_text("ONE = 1\n")
    form = Form(app.metric_beside(tmp_path))
    assert form.title == "Right"
    assert form.introduction == "# Right\n\nHow many answers are right."
    assert values(form.compute("a dog\na cat", "a dog\ntwo cats")) == {"right": "0.500000"}
    assert form.example() == ["", ""]
    assert list(app.build_page(form).get_api_info()["named_endpoints"]) == ["/compute"]


# ----- the Spaces as they run


STANDING_FOR_ALL = ("a_coat", "a_coat_instances", "a_tre", "binding", "informativeness", "polybench")
"""Metrics whose pages have every kind of box that any has; `TestForm` has the form of each."""

SERVE = """
import sys, time
import app, gradio

gradio.Blocks.block_thread = lambda page: None
for number, path in enumerate(sys.argv[1:]):
    # The first finds its metric beside it, as a Space does; each of the others has a port of its own.
    sys.argv = ["app.py", *[path][:number]]
    app.main()
time.sleep(600)
"""


@pytest.fixture(scope="module")
def spaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Addresses of Spaces that run in one process from copies of their folders, with caches of its own and no network.

    To import gradio and evaluate takes longer than a page.
    """
    root = tmp_path_factory.mktemp("space")
    folders = {name: make_space(name, root / name) for name in STANDING_FOR_ALL}
    log, output = root / "attempts.txt", root / "output.txt"
    (root / "tmp").mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = process_environment("http://127.0.0.1:1", root / "home", log)
    environment = {key: value for key, value in environment.items() if not key.startswith("GRADIO_")}
    environment |= {"GRADIO_SERVER_PORT": str(port), "TMPDIR": str(root / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["PYTHONUNBUFFERED"] = "1"
    paths = [folder / f"{name}.py" for name, folder in folders.items()]
    with output.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE, *map(str, paths)],
            cwd=folders[STANDING_FOR_ALL[0]],
            env=environment,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    try:
        started, addresses = time.monotonic(), []
        while len(addresses) < len(folders):
            assert process.poll() is None, output.read_text()
            assert time.monotonic() < started + 180, output.read_text()
            time.sleep(0.1)
            addresses = re.findall(r"http://127.0.0.1:\d+", output.read_text())
        yield {name: f"{address}/" for name, address in zip(folders, addresses, strict=True)}
        assert process.poll() is None, output.read_text()
    finally:
        process.terminate()
        process.wait(30)
    assert not log.exists(), log.read_text()
    assert "Traceback" not in output.read_text()
    for name, folder in folders.items():
        assert {path.name for path in folder.iterdir()} == set(metric_files(name))


def test_pages_in_the_browser_have_every_kind_of_box(forms: dict[str, Form]) -> None:
    def kinds(names: Iterable[str]) -> set[tuple[Any, ...]]:
        boxes = [box for name in names for box in forms[name].boxes]
        return {(box.write, box.read, box.optional) for box in boxes}

    assert kinds(STANDING_FOR_ALL) == kinds(list_metrics())


@pytest.fixture
def page(chromium: Any, spaces: dict[str, str]) -> Iterator[Any]:
    """A page; when the test is over, nothing may have gone wrong nor been asked of another host."""
    context, troubles = chromium.new_context(viewport={"width": 1280, "height": 900}), []
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
    page.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}"))
    own = (*spaces.values(), "data:", "blob:")
    page.on("request", lambda request: None if request.url.startswith(own) else troubles.append(request.url))
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
    page.locator("tbody tr").last.wait_for()
    rows = [row.locator("td").all_inner_texts() for row in page.locator("tbody tr").all()]
    return {name.strip(): value.strip() for name, value, _ in rows}


@pytest.mark.browser
class TestInABrowser:
    @pytest.mark.parametrize("name", STANDING_FOR_ALL)
    def test_the_example_s_scores_are_the_module_s(self, page: Any, name: str, spaces: dict[str, str]) -> None:
        page.goto(spaces[name])
        fill_example(page)
        options, module = {}, module_of(name)
        if page.get_by_role("spinbutton").count():
            page.get_by_role("spinbutton").fill("100")
            page.keyboard.press("Tab")
            options = {"max_steps": 100, "progress": False}
            page.get_by_role("button", name="Compute").click()
            page.get_by_text("A-TRE, seed 0").first.wait_for()
        numbers = compute(page)
        expected = getattr(module, name)(**module.example(), **options)
        assert list(numbers) == list(module.MEASURES)
        for key, measure in module.MEASURES.items():
            # Another number of threads may round otherwise.
            if isinstance(expected[key], float):
                assert float(numbers[key]) == pytest.approx(expected[key], abs=1e-3 if "fitted" in measure else 5.1e-7)

    @pytest.mark.parametrize("name", ["a_coat", "polybench"])
    def test_what_holds_of_every_page(self, page: Any, name: str, spaces: dict[str, str]) -> None:
        """Of one with numbers and one with words, which stand for all."""
        page.goto(spaces[name])
        texts = fill_example(page)
        found = compute(page)
        for width in (400, 1280):
            self.check_width(page, width, len(found))
        # Nothing is kept in the browser.
        stored = page.evaluate("() => JSON.stringify([{...localStorage}, {...sessionStorage}])")
        assert texts[0][:20] not in stored
        assert page.get_by_text("Runs", exact=True).count() == 0
        # A refusal says why, and no old score stays.
        place = list(module_of(name).PAGE["inputs"]).index(NUMBERS[name]) if name in NUMBERS else 0
        box = page.locator("textarea").nth(place)
        box.fill("1\nfour")
        page.get_by_role("button", name="Compute").click()
        page.get_by_text("line 2: 'four' is not a number. Give numbers separated by commas or spaces.").wait_for()
        assert page.locator("tbody tr").count() == 0
        # What is typed becomes no element.
        hostile = HOSTILE.replace(" ", "/")
        box.fill(hostile)
        page.get_by_role("button", name="Compute").click()
        page.get_by_text(f'line 1: "{hostile}" is not a number.').wait_for()
        assert page.locator("img[src=x], [onerror]").count() == 0
        assert page.title() == score_of(name)["heading"]

    def check_width(self, page: Any, width: int, rows: int) -> None:
        """Nothing is wider than the screen, and no number is broken over lines."""
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function(f"document.documentElement.scrollWidth == {width}")
        table = page.locator("table").bounding_box()
        assert table["x"] >= 0
        assert table["x"] + table["width"] <= width
        heights = page.locator("tbody td:nth-child(2)").evaluate_all(
            "cells => cells.map((cell) => { const range = document.createRange(); range.selectNodeContents(cell);"
            " return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size; })"
        )
        assert heights == [1] * rows
