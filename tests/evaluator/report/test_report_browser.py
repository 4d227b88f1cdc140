"""The report in a real browser: Debian's Chromium, driven by Playwright."""

import os
import re
from itertools import pairwise

import pytest

from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.evaluator.compare.summary import SIGNS
from audio_compositionality.evaluator.compare.task_verdicts import Standing
from audio_compositionality.evaluator.report import page as page_module
from audio_compositionality.evaluator.report import sections
from audio_compositionality.evaluator.report.matrix import Matrix, MatrixCell, MatrixRow
from audio_compositionality.evaluator.report.page import Report, write_report

pytestmark = pytest.mark.browser

HOSTILE = (
    "<img src=x onerror=document.title='broken'>",
    "</script><script>document.title='broken'</script>",
    "\"' autofocus onfocus=document.title='broken' x='\"",
    "long-" + "x" * 190,
)
MODELS = ("random", "log-mel-statistics", "org/one", "untrained:org/one", *HOSTILE)

OPEN = "all => all.forEach((one) => { one.open = true; })"


@pytest.fixture(scope="module")
def report(small_data, tmp_path_factory, write_results):
    folder = tmp_path_factory.mktemp("report")
    settings = {
        recipe: values.changed(rate_range=(1.0, 3.0), duration=2.0) for recipe, values in small_data.settings.items()
    }
    data = RenderedData("<b onclick=alert(1)>", settings)
    reason = {"id": "q/A", "reason": "<script>document.title='broken'</script>"}
    results = write_results(folder / "results", MODELS, data, tasks=["a_coat"], skipped=[reason])
    return write_report([results], folder / "report.html", data=data, progress=False)


@pytest.fixture(scope="module")
def named_report(small_data, tmp_path_factory, write_results):
    """Of models with names as they are."""
    folder = tmp_path_factory.mktemp("named")
    models = ("random", "downsample", "log-mel-statistics", "whisper-tiny.en", "untrained:whisper-tiny.en")
    results = write_results(folder / "results", models, small_data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "described_figures", lambda _: ())
        patch.setattr(page_module, "hear_samples", lambda *_: iter(()))
        return write_report([results], folder / "report.html", data=small_data, progress=False)


@pytest.fixture
def open_page(chromium, report):
    """Opens the report; when the test is over, nothing may have gone wrong nor been asked of the network."""
    contexts, troubles = [], []

    def open(width=1280, height=900, **options):
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}"))
        page.on(
            "request",
            lambda request: None if request.url.startswith(("file:", "data:")) else troubles.append(request.url),
        )
        page.add_init_script("addEventListener('securitypolicyviolation', (e) => console.error(e.violatedDirective))")
        page.goto(report.as_uri())
        return page

    yield open
    for context in contexts:
        context.close()
    assert troubles == []


def first_table(page):
    """That of all controls."""
    page.locator("details").evaluate_all(OPEN)
    return page.locator("table.sortable", has=page.locator("#a_coat-1-scores"))


def names(table):
    return table.locator("tbody th").evaluate_all("cells => cells.map((cell) => cell.firstChild.textContent)")


def column(table, heading):
    headings = table.locator("thead th").all_inner_texts()
    place = next(number for number, text in enumerate(headings) if text == heading)
    return table.locator(f"tbody tr > :nth-child({place + 1})").evaluate_all(
        "cells => cells.map((cell) => Number.parseFloat(cell.dataset.value))"
    )


def order_of(table, heading):
    return table.locator("thead th", has_text=heading).first.get_attribute("aria-sort")


def test_tables_are_sorted_by_click_and_by_keyboard(open_page):
    page = open_page()
    table = first_table(page)
    before, null = column(table, "A-COAT"), column(table, "matched null")
    ordered = column(table, "adjusted")
    assert ordered == sorted(ordered, reverse=True)
    assert order_of(table, "adjusted") == "descending"
    button = table.get_by_role("button", name="A-COAT", exact=True)
    for direction in ("descending", "ascending"):
        button.click()
        assert column(table, "A-COAT") == sorted(before, reverse=direction == "descending")
        assert order_of(table, "A-COAT") == direction
    table.get_by_role("button", name="model", exact=True).click()
    assert order_of(table, "A-COAT") is None
    assert order_of(table, "model") == "ascending"
    found = names(table)
    assert found.index("log-mel-statistics") < found.index("org/one") < found.index("random")
    table.get_by_role("button", name="matched null").focus()
    for key, is_down in (("Enter", True), ("Space", False)):
        page.keyboard.press(key)
        assert column(table, "matched null") == sorted(null, reverse=is_down)
    expected = "A-COAT on <b onclick=alert(1)>, n = 12: sorted by matched null, ascending"
    assert page.locator("#sorted").inner_text() == expected
    # Whole numbers are sorted as numbers.
    models = page.locator("table.sortable", has=page.get_by_text("The models", exact=True))
    models.get_by_role("button", name="dim").click()
    assert column(models, "dim") == [64, 56, 48, 40, 32, 24, 16, 8]


def test_sorting_keeps_the_order_of_equal_rows_puts_missing_numbers_last_and_is_not_needed(open_page):
    table = first_table(open_page())
    before = names(table)
    table.locator("tbody tr > :nth-child(4)").evaluate_all("all => all.forEach((c) => { c.dataset.value = '1'; })")
    for _ in range(2):
        table.locator("thead th:nth-child(4) button").click()
        assert names(table) == before
    table.locator("tbody tr:first-child td[data-value]").first.evaluate("cell => { cell.dataset.value = ''; }")
    for _ in range(2):
        table.get_by_role("button", name="A-COAT", exact=True).click()
        assert names(table)[-1] == before[0]
    assert order_of(table, "A-COAT") == "ascending"
    page = open_page(java_script_enabled=False)
    assert page.locator("th button").count() == 0
    assert first_table(page).locator("tbody tr").count() == len(MODELS)
    assert not page.locator("#sortable").is_visible()


def test_clips_play_one_at_a_time_and_pictures_are_seen(open_page):
    page = open_page()
    players = page.locator("audio")
    page.wait_for_function("() => [...document.querySelectorAll('audio')].every((player) => player.readyState >= 1)")
    durations = players.evaluate_all("players => players.map((player) => player.duration)")
    assert durations == pytest.approx([2] * 20, abs=0.1)
    assert players.evaluate_all("players => players.every((player) => player.error === null)")
    first, second = players.nth(0), players.nth(1)
    for player in (first, second):
        player.focus()
        page.keyboard.press("Space")
        page.wait_for_function("player => player.currentTime > 0.2", arg=player.element_handle())
    assert first.evaluate("player => player.paused")
    assert not second.evaluate("player => player.paused")
    widths = page.locator("img").evaluate_all("pictures => pictures.map((picture) => picture.naturalWidth)")
    assert len(widths) > 20
    assert min(widths) > 0


def test_hostile_names_are_text_and_the_answer_is_on_the_first_screen(open_page):
    page = open_page(1280, 800)
    assert page.title().startswith("Evaluation of audio models: 5 models, 1 untrained")
    for name in HOSTILE[:3]:
        assert name in page.locator("main").inner_text()
    assert page.locator("img:not([alt]), [onerror], [onfocus], [autofocus]").count() == 0
    bottom = page.locator(".lead").bounding_box()
    assert bottom["y"] + bottom["height"] < 400
    assert page.locator(".overview svg").first.bounding_box()["y"] < 700
    assert page.locator("nav").bounding_box()["x"] < page.locator("main").bounding_box()["x"]


UNREACHED = """
all => all.filter(
  (one) => one.scrollWidth > one.clientWidth
    && !(one.tabIndex === 0 && (one.ariaLabel || one.getAttribute('aria-labelledby')))
).length
"""

WORDS_BROKEN = """
() => {
  const broken = [];
  for (const cell of document.querySelectorAll("table.sortable th, table.sortable td")) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (const match of node.data.matchAll(/[\\w.]+/g)) {
        const range = document.createRange();
        range.setStart(node, match.index);
        range.setEnd(node, match.index + match[0].length);
        const tops = new Set([...range.getClientRects()].filter((box) => box.width > 0).map((box) => box.top));
        if (tops.size > 1) broken.push(match[0]);
      }
    }
  }
  return broken;
}
"""


def test_at_any_width_tables_alone_scroll_and_nothing_breaks_or_overlaps(open_page):
    page = open_page()
    page.locator("details").evaluate_all(OPEN)
    for width in (390, 768, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        # What is wider than its box can be reached by keyboard and has a name.
        assert page.locator(".scroll").evaluate_all(UNREACHED) == 0
        assert page.evaluate(WORDS_BROKEN) == []
        # The facts of a sample keep off its players.
        sample = page.locator(".sample").first
        players = max(box["y"] + box["height"] for box in (one.bounding_box() for one in sample.locator("audio").all()))
        assert all(one.bounding_box()["y"] >= players + 16 for one in sample.locator(".known > *").all())


def hidden_by(page, name, count=None):
    """By how many pixels the first columns of a table, or all, are wider than the box that it scrolls in."""
    table = page.locator("table", has=page.locator(f"#{name}"))
    table.evaluate(
        "table => { for (let at = table; at; at = at.parentElement) if (at.open === false) at.open = true; }"
    )
    return table.evaluate(
        "(table, count) => [...table.rows[0].cells].at(count === null ? -1 : count - 1).getBoundingClientRect().right"
        " - table.parentElement.getBoundingClientRect().right",
        count,
    )


def test_verdicts_fit_their_column_and_a_phone_shows_the_scores_to_trust(chromium, named_report):
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.goto(named_report.as_uri())
    assert hidden_by(page, "verdict-table") <= 0.5
    page.set_viewport_size({"width": 390, "height": 844})
    for task in ("a_coat-1", "a_tre-2"):
        headings = page.locator("table", has=page.locator(f"#{task}-short")).locator("thead th").all_inner_texts()
        assert hidden_by(page, f"{task}-short", headings.index("top-1") + 1) <= 0
    page.close()


@pytest.fixture(scope="module")
def large_report(small_data, tmp_path_factory, write_results):
    """A first screen of 12 models, their twins and baselines by 20 tasks."""
    folder = tmp_path_factory.mktemp("large")
    results = write_results(folder / "results", ["org/one", "untrained:org/one", "log-mel-statistics"], small_data)
    standings = (*Standing, Standing.ABOVE)
    titles = ("A-COAT", "Audio–text retrieval", "A-TRE, held-out combinations", "Invariance to onsets", "PolyBench")
    rows = [
        MatrixRow(
            f"organisation/audio-model-{k}" if is_judged else f"untrained:organisation/audio-model-{k}",
            "model" if is_judged else "untrained network",
            standings[k % 4] if is_judged else None,
            tuple(MatrixCell("−0.25", standings[(k + task) % 5] if is_judged else None, "−0.25") for task in range(20)),
        )
        for is_judged in (True, False)
        for k in range(12)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "described_figures", lambda _: ())
        patch.setattr(page_module, "hear_samples", lambda *_: iter(()))
        patch.setattr(page_module, "matrix_of", lambda _: Matrix((*((t, "score") for t in titles * 4),), tuple(rows)))
        return write_report([results], folder / "report.html", data=small_data, progress=False)


def test_many_models_by_many_tasks_are_one_screen_and_scroll_in_their_own_box_on_a_phone(chromium, large_report):
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.goto(large_report.as_uri())
    matrix = page.locator("table.matrix").first
    assert matrix.locator("tbody tr").count() == 12
    assert matrix.evaluate("table => table.getBoundingClientRect().bottom") < 900
    assert matrix.evaluate("table => table.parentElement.scrollWidth <= table.parentElement.clientWidth")
    assert page.get_by_text("Scores of 12 twins, controls and baselines").is_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    box = matrix.locator("xpath=..")
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    box.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    # The names stay where they are.
    name = matrix.locator("tbody th").first
    assert name.bounding_box()["x"] == pytest.approx(box.bounding_box()["x"], abs=1)
    page.close()


def test_in_a_notebook_the_page_is_shown_in_a_frame_with_its_script_and_its_links(chromium, report):
    page = chromium.new_page(viewport={"width": 1000, "height": 950})
    page.set_content(f"<p>before</p>{Report(report)._repr_html_()}")
    frame = page.frame_locator("iframe")
    frame.locator("th button").first.wait_for(state="attached")
    place = frame.get_by_role("heading", name="Figures").evaluate("one => one.getBoundingClientRect().top")
    frame.get_by_role("link", name="Figures").click()
    frame.locator(".pictures img").first.wait_for()
    assert 0 <= frame.get_by_role("heading", name="Figures").evaluate("one => one.getBoundingClientRect().top") < place
    assert str(Report(report)) == os.fspath(Report(report)) == str(report)
    page.close()


GREYS = """
all => all.map((one) => {
  const [r, g, b] = getComputedStyle(one).backgroundColor.match(/[\\d.]+/g).map(Number);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
})
"""


def test_verdicts_differ_in_grey_and_have_a_sign(chromium, large_report):
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.goto(large_report.as_uri())
    keys = page.locator(".key li")
    assert keys.all_inner_texts() == [f"{sign} {standing.value}" for standing, sign in SIGNS.items()]
    for media in ("screen", "print"):
        page.emulate_media(media=media)
        greys = sorted(keys.evaluate_all(GREYS))
        assert all(after - before > 15 for before, after in pairwise(greys)), greys
    page.close()


def test_the_letters_are_drawn_before_they_are_used_and_differences_have_p_values(chromium, named_report):
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.goto(named_report.as_uri())
    answer = page.locator(".answer")
    assert answer.locator(".letters svg").bounding_box()["y"] < answer.locator(".overview").first.bounding_box()["y"]
    assert "adding the same sources T to each makes B and D" in answer.locator(".letters figcaption").inner_text()
    assert re.search(r"\bp\s[<=]", answer.inner_text())
    page.close()


def test_headings_say_what_they_mean(open_page):
    page = open_page()
    button = page.get_by_role("button", name="adjusted", exact=True).first
    tip = page.locator("#tip")
    for begin, end in ((button.hover, page.locator("h1").hover), (button.focus, button.blur)):
        begin()
        assert "(score − null) / (1 − null)" in tip.inner_text()
        box = tip.bounding_box()
        assert 0 <= box["x"] <= 1280 - box["width"]
        end()
        assert not tip.is_visible()
    button.focus()
    page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_tables_can_be_copied_and_the_contents_open_what_is_folded(open_page):
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    assert not page.locator(".pictures img").first.is_visible()
    page.get_by_role("link", name="Figures").click()
    page.locator(".pictures img").first.wait_for()
    for form, begin in (("LaTeX", "% needs"), ("Markdown", "**A-COAT")):
        page.get_by_role("button", name=f"Copy as {form}").first.click()
        page.get_by_role("button", name="Copied").wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith(begin)
        assert "adjusted" in copied
        page.get_by_role("button", name="Copied").wait_for(state="detached")


def test_the_keyboard_reaches_everything(open_page):
    page = open_page()
    reached, first = set(), None
    for _ in range(400):
        page.keyboard.press("Tab")
        found = page.evaluate(
            "() => { const at = document.activeElement;"
            " return [at.tagName, at.className, at.closest('table') !== null, at.textContent.slice(0, 30)]; }"
        )
        first = first or found
        reached.add((found[0], found[2]))
        if {("BUTTON", True), ("AUDIO", False), ("SUMMARY", False), ("DIV", False), ("A", False)} <= reached:
            break
    else:
        pytest.fail(f"reached only {reached}")
    assert first == ["A", "skip", False, "Skip to the content"]


CONTRAST = """
() => {
  const channel = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, alpha = 1] = parse(getComputedStyle(at).backgroundColor);
      if (alpha === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.body.querySelectorAll("*")) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!hasText || !element.checkVisibility()) continue;
    const [one, two] = [parse(getComputedStyle(element).color), ground(element)].map(luminance);
    found.push([(Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05), element.textContent.slice(0, 40)]);
  }
  return found;
}
"""


def test_text_stands_out_on_screen_and_paper_leaves_out_what_it_cannot_do(open_page):
    page = open_page(794)
    assert page.locator("nav").is_visible()
    page.locator("details").evaluate_all(OPEN)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
        found = page.evaluate(CONTRAST)
        assert len(found) > 500
        assert min(found)[0] >= 4.5, min(found)
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert not page.locator("audio").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator(".spectrogram").first.is_visible()
    assert min(page.evaluate(CONTRAST))[0] >= 4.5
