"""The leaderboard's Space, started for real against a loopback Hub, in a real browser."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

import pytest
from board_entries import SECRET, below, entry, folder, made_up, verification
from submissions import ShortEncoder

from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.submissions.making import make_submission
from audio_compositionality.tasks.registry import load_task

from .clients import process_environment
from .discussions import open_pull_request
from .server import LoopbackHub
from .walkthrough import running_space

pytestmark = pytest.mark.browser

RESULTS = "lab/audio-compositionality-results"
TITLE = "audio-compositionality leaderboard"

IMAGE = "<img src=x onerror=document.title='broken'>"
FORMULA = '=HYPERLINK("http://example.org")'
LINK = "a[x](javascript:alert(1))"
BREAK = "document.title='broken'"


def contents() -> dict[str, bytes]:
    """A repository of results as the world may make it."""
    mini = open_data("mini")
    files: dict[str, bytes] = {}
    for task in ("a_coat", "a_tre"):
        configuration = mini.configuration(task)
        of_mini: dict[str, Any] = {
            "task": task,
            "ids": list(load_task(task).samples(tuple(configuration.rows)).ids),
            "fingerprint": configuration.fingerprint,
            "rows_digest": configuration.rows_digest,
        }
        supervised = {"paradigm": "supervised", "parameters": 74_000_000}
        good = made_up("org/good", 4, embeddings=b"1", model=supervised, **of_mini)
        files |= below(folder(good), good) | verification(good)
        older = {"date": "2025-01-01T00:00:00+00:00"}
        files |= entry("org/reported", 2, model={"licence": "MIT"}, **of_mini)
        files |= entry("org/reported", 1, model={"licence": "MIT"}, **older, **of_mini)
        hostile = {"paradigm": IMAGE, "licence": FORMULA}
        twin = made_up("untrained:org/good", 3, embeddings=b"2", model=hostile, **of_mini)
        files |= below(folder(twin), twin) | verification(twin)
        script = {"paradigm": f"</script><script>{BREAK}</script>"}
        files |= entry(LINK, 0, model=script, dataset=IMAGE, **of_mini)
    files |= entry("org/elsewhere", 6, dataset=IMAGE)
    broken = made_up("org/broken")
    files |= below(folder(broken), {**broken, "result.json": b'{"score": 1'})
    files |= {f"results/{IMAGE}/1/a_coat-0123456789abcdef/result.json": b"{}", "notes/\u202ehidden\n.txt": b"x"}
    return files


@dataclass
class App:
    """A running Space."""

    url: str
    hub: LoopbackHub
    pull_request: int


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """The Space as it is pushed, with a token that may write; a good pull request is open when it starts."""
    root = tmp_path_factory.mktemp("space")
    hub = LoopbackHub()
    hub.accounts.join("ada", "lab")
    token = hub.token("ada")
    results = hub.repositories.create("dataset", RESULTS)
    results.commit(contents())
    opened = open_pull_request(results, "A result", "", "eve")
    mini, options = open_data("mini"), RunOptions(out=root / "results", cache=root / "store", progress=False)
    evaluate_models([ShortEncoder()], mini, [load_task("a_coat")], options)
    path = root / "results" / "org__short" / "1" / "a_coat.json"
    made = make_submission(path, mini, cache=root / "store", device="cpu", progress=False)
    results.commit(below(folder(made.files), made.files), revision=opened.ref, author="eve")
    log = root / "attempts.txt"
    shutil.copy(str(package_files("audio_compositionality.leaderboard") / "app.py"), root / "app.py")
    environment = {
        **process_environment(hub.url, root / "home", log, token),
        "SPACE_ID": "lab/audio-compositionality-leaderboard",
        "AUDIO_COMPOSITIONALITY_SECRET": SECRET,
        "GRADIO_TEMP_DIR": str(root / "gradio"),
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }
    with running_space(root, environment, root / "output.txt") as url:
        yield App(f"{url}/", hub, opened.number)
        # Read before the end: a check that is cut off by it says so.
        text = (root / "output.txt").read_text()
    hub.close()
    assert "Traceback" not in text, text[text.index("Traceback") :][:3_000]
    assert not log.exists(), log.read_text()
    assert not hub.unknown
    assert not hub.errors, hub.errors[0]


LEAVING = ("AbortError: signal is aborted", "Unexpected error Connection errored out", "Connection errored out")
"""The beginnings of what Gradio says of its own requests when the page is left for another address."""


@pytest.fixture
def page(chromium, app):
    """The page; when the test is over, nothing of a stranger's may have run, nor anything left this machine."""
    troubles: list[str] = []
    context = chromium.new_context(viewport={"width": 1300, "height": 1000}, accept_downloads=True)
    page = context.new_page()

    def told(message: Any) -> None:
        if message.type == "error" and not message.text.startswith(LEAVING):
            troubles.append(f"console: {message.text}")

    page.on("console", told)
    page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
    page.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}"))
    known = ("data:", "blob:", app.url)
    page.on("request", lambda sent: None if sent.url.startswith(known) else troubles.append(sent.url))
    yield page
    is_ours(page)
    context.close()
    assert troubles == []


def is_ours(page: Any) -> None:
    """Nothing of a stranger's is in the page."""
    assert page.title() == TITLE
    assert page.locator("img[src='x'], a[href^='javascript']").count() == 0


def show(page: Any, app: App, query: str = "", tab: str = "By task") -> None:
    """Open an address and, where it names no model, a tab, once the page that is left was looked at."""
    if page.url.startswith(app.url):
        is_ours(page)
    page.goto(app.url + query)
    page.wait_for_function("document.querySelector('#state textarea')?.value.includes('entries')", timeout=60_000)
    page.wait_for_selector("#overview table", timeout=60_000, state="attached")
    if not query:
        page.get_by_role("tab", name=tab).click()
        page.wait_for_selector("#table .virtual-row" if tab == "By task" else "#overview table")


def column(page: Any, heading: str, table: str = "#table") -> list[str]:
    """What a column of a table shows, from top to bottom."""
    headings = page.locator(f"{table} thead th").evaluate_all("cells => cells.map((cell) => cell.title)")
    place = headings.index(heading)
    cells = page.locator(f"{table} .virtual-row [data-col='{place}']")
    texts: list[str] = cells.evaluate_all("cells => cells.map((cell) => cell.innerText.trim())")
    return [text.replace("−", "-") for text in texts]


def models(page: Any) -> list[str]:
    return column(page, "model")


def unfold(page: Any) -> None:
    """Show what sorts and filters."""
    page.locator("#narrow button").first.click()
    page.locator("#search textarea, #search input").first.wait_for()


def choose(page: Any, where: str, option: str) -> None:
    page.locator(f"{where} input").first.click()
    page.get_by_role("option", name=option, exact=True).click()


def soon(page: Any, condition: Callable[[], object], seconds: int = 30) -> None:
    for _ in range(10 * seconds):
        if condition():
            return
        page.wait_for_timeout(100)
    raise AssertionError("it did not happen")


def source(page: Any, image: str) -> str:
    """Where an image is from; empty where there is none."""
    images = page.locator(f"{image} img")
    return str(images.get_attribute("src")) if images.count() else ""


def test_the_overview(page, app):
    show(page, app, tab="Overview")
    rows = page.locator("#overview tbody tr:has(a)")
    names = rows.locator("a").all_inner_texts()
    assert {"org/good", "org/reported", "untrained:org/good", LINK} <= set(names)
    assert "org/elsewhere" not in names, "it has other data"
    # Made-up intervals are wide enough apart: the model is above its twin, and stands first.
    assert names[0] == "org/good"
    assert rows.first.locator("td.score").first.inner_text().startswith(("▲", "○", "?", "▼"))
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        cell = page.locator("#overview td.score").first.bounding_box()
        assert cell["x"] + cell["width"] <= width
        assert cell["y"] + cell["height"] <= 844
    page.get_by_label("Show twins, controls and baselines").first.uncheck()
    soon(page, lambda: "untrained:org/good" not in rows.locator("a").all_inner_texts())
    choose(page, "#overview-data", f"{IMAGE}, 12 samples")
    soon(page, lambda: rows.locator("a").all_inner_texts() == ["org/elsewhere"])
    rows.locator("a").first.click()
    soon(
        page,
        lambda: page.locator("#conclusion textarea").count() and "org/elsewhere (reported): " in conclusion(page),
    )
    assert page.get_by_role("tab", name="Model").get_attribute("aria-selected") == "true"


def conclusion(page: Any) -> str:
    return str(page.locator("#conclusion textarea").input_value())


def test_the_table(page, app):
    show(page, app)
    shown = models(page)
    assert {"org/good", "org/reported", "untrained:org/good", LINK} <= set(shown)
    assert shown.count("org/reported") == 1
    by_model = dict(zip(shown, column(page, "status"), strict=True))
    assert (by_model["org/good"], by_model["org/reported"]) == ("verified", "reported")
    assert dict(zip(shown, column(page, "entries"), strict=True))["org/reported"] == "2"
    assert IMAGE in column(page, "paradigm")
    assert "org/elsewhere" not in shown
    assert "rejected" in page.locator("#state textarea").input_value()
    assert shown[0] == "org/good", "it alone is above its twin"
    unfold(page)
    is_sorted(page)
    is_filtered(page)
    is_downloaded(page)
    # Another task, and other data.
    choose(page, "#task", "A-TRE")
    soon(page, lambda: page.locator("#table thead th[title='ridge R²']").count())
    assert {"org/good", "org/reported", "untrained:org/good", LINK} <= set(models(page))
    choose(page, "#task", "A-COAT")
    soon(page, lambda: page.locator("#table thead th[title='matched null']").count())
    choose(page, "#data", f"{IMAGE}, 12 quadruples")
    soon(page, lambda: models(page) == ["org/elsewhere"])
    page.get_by_role("tab", name="Rejected").click()
    soon(page, lambda: len(column(page, "path", "#rejected")) == 3)
    listed = dict(zip(column(page, "path", "#rejected"), column(page, "reason", "#rejected"), strict=True))
    broken = next(path for path in listed if "org__broken" in path)
    assert "not JSON" in listed[broken]
    assert any(path.startswith("results/<img src=x") for path in listed)
    assert any("hidden" in path and "\u202e" not in path for path in listed)


def is_sorted(page: Any) -> None:
    def rest(heading: str) -> list[float]:
        """Below the model that is above its twin, which stays first."""
        return [float(text) for text in column(page, heading)][1:] if models(page)[:1] == ["org/good"] else []

    choose(page, "#sort", "dim")
    soon(page, lambda: len(rest("dim")) > 2 and rest("dim") == sorted(rest("dim"), reverse=True))
    page.get_by_label("smallest first").check()
    soon(page, lambda: len(rest("dim")) > 2 and rest("dim") == sorted(rest("dim")))
    # The menu of a heading would sort by the heading alone: it is not there.
    heading = page.locator("#table th[title='A-COAT']").first
    heading.hover()
    assert not heading.locator("button").is_visible()


def is_filtered(page: Any) -> None:
    search = page.locator("#search textarea, #search input").first
    search.fill("ORG/good")
    soon(page, lambda: set(models(page)) == {"org/good", "untrained:org/good"})
    search.fill("")
    page.get_by_label("verified", exact=True).check()
    soon(page, lambda: models(page) and set(column(page, "status")) == {"verified"})
    page.get_by_label("verified", exact=True).uncheck()
    soon(page, lambda: len(models(page)) >= 4)


def is_downloaded(page: Any) -> None:
    search = page.locator("#search textarea, #search input").first
    search.fill("untrained")
    soon(page, lambda: len(models(page)) == 1)
    page.wait_for_timeout(500)
    with page.expect_download() as download:
        page.locator("#csv").click()
    assert download.value.suggested_filename == "a_coat-mini.csv"
    (line,) = csv.DictReader(io.StringIO(Path(download.value.path()).read_text("utf-8")))
    assert line["model"] == "untrained:org/good"
    assert line["licence"] == f"'{FORMULA}"
    assert line["paradigm"] == IMAGE
    search.fill("")
    soon(page, lambda: len(models(page)) >= 4)


def test_plots_and_models_and_screens(page, app):
    show(page, app)
    rows_are_picked_by_click_and_from_the_list(page)
    for width, height in ((1280, 800), (768, 1024), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        scores_are_on_the_first_screen(page, width, height)
    # On a phone.
    show(page, app)
    scores_are_on_the_first_screen(page, width, height)
    soon(page, lambda: source(page, "#diversity"))
    unfold(page)
    page.get_by_label("reported", exact=True).check()
    soon(page, lambda: "verified" not in column(page, "status"))
    page.get_by_role("tab", name="Model").click()
    choose(page, "#model", "org/good")
    soon(page, lambda: "verified" in column(page, "status", "#entries"))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.set_viewport_size({"width": 1300, "height": 1000})
    show(page, app, "?model=org%2Freported")
    all_entries_and_their_details_are_shown(page)
    choose(page, "#model", "org/good")
    soon(page, lambda: "A-COAT" in column(page, "number", "#numbers") and page.locator("#hub").is_visible())
    assert page.locator("#hub").get_attribute("href").endswith("/org/good")
    # An address that names no model.
    show(page, app, f"?model={IMAGE}")
    assert page.get_by_role("tab", name="Overview").get_attribute("aria-selected") == "true"
    page.get_by_role("tab", name="By task").click()
    page.wait_for_selector("#table .virtual-row")
    a_good_pull_request_becomes_a_verified_row(page, app)


def rows_are_picked_by_click_and_from_the_list(page: Any) -> None:
    soon(page, lambda: source(page, "#boxes") and source(page, "#diversity"))
    assert page.locator("#picked .token").count() == min(5, len(models(page)))
    first = source(page, "#boxes")
    row = models(page).index("org/good")
    page.locator("#table .virtual-row").nth(row).locator("[data-col='2']").click()
    soon(page, lambda: source(page, "#boxes") not in ("", first))
    second, other = source(page, "#boxes"), source(page, "#diversity")
    page.locator("#table .virtual-row").nth(row).locator("[data-col='3']").click()
    soon(page, lambda: source(page, "#boxes") == first)
    page.get_by_label("centred", exact=True).check()
    soon(page, lambda: source(page, "#boxes") not in ("", first, second) and source(page, "#diversity") != other)
    for image in ("#boxes img", "#diversity img"):
        page.locator(image).scroll_into_view_if_needed()
        page.wait_for_function(f"document.querySelector('{image}').naturalWidth > 600")


def scores_are_on_the_first_screen(page: Any, width: int, height: int) -> None:
    soon(page, lambda: models(page))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # Behind the verdict.
    place = "#table .virtual-row [data-col='2']"
    box = page.locator(place).first.bounding_box()
    assert box["y"] + box["height"] <= height
    assert box["x"] + box["width"] <= width
    # A number is not cut off.
    cells = "cells => cells.every((cell) => cell.scrollWidth <= cell.clientWidth + 1)"
    assert page.locator(place).evaluate_all(cells)


def all_entries_and_their_details_are_shown(page: Any) -> None:
    soon(page, lambda: len(column(page, "status", "#entries")) == 4)
    assert page.locator("#model input").input_value() == "org/reported"
    assert "org/reported (reported): " in conclusion(page)
    choose(page, "#model", LINK)
    soon(page, lambda: IMAGE in column(page, "value", "#origin"))
    query = "?model=a%5Bx%5D%28javascript%3Aalert%281%29%29"
    assert page.locator("#link textarea, #link input").first.input_value().endswith(query)
    assert page.locator("#open").get_attribute("href") == query
    assert not page.locator("#hub").is_visible()
    href = page.locator("#files").get_attribute("href")
    assert "/datasets/lab/audio-compositionality-results/tree/" in href


def a_good_pull_request_becomes_a_verified_row(page: Any, app: App) -> None:
    results = app.hub.repositories["dataset", RESULTS]
    soon(page, lambda: any(path.startswith("verified/org__short") for path in results.at().files), 120)
    if "org/short" not in models(page):
        page.get_by_role("button", name="Read again").click()
        assert "read again" in page.locator("#state textarea").input_value() or "org/short" in models(page)
        # Without another click, as soon as the Hub may be asked again.
        soon(page, lambda: "org/short" in models(page))
    soon(page, lambda: "read again" not in page.locator("#state textarea").input_value())
    assert dict(zip(models(page), column(page, "status"), strict=True))["org/short"] == "verified"
    events = results.discussions[app.pull_request - 1].events
    soon(page, lambda: any("Added to main" in json.dumps(event) for event in list(events)))
