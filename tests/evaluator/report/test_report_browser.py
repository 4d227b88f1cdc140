"""The report in a real browser: Debian's Chromium, driven by Playwright."""

import shutil
from dataclasses import replace

import pytest

from audio_compositionality.dataset_builder import build_dataset, open_benchmark
from audio_compositionality.evaluator import write_report

pytestmark = pytest.mark.browser

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

HOSTILE = (
    "<img src=x onerror=document.title='broken'>",
    "</script><script>document.title='broken'</script>",
    "\"' autofocus onfocus=document.title='broken' x='\"",
    "long-" + "x" * 190,
)
ENCODERS = ("random", "log-mel-statistics", "org/one", "untrained:org/one", *HOSTILE)


@pytest.fixture(scope="module")
def chromium():
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on the path (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Containers leave Chromium no sandbox; the page is our own.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(small_config, tmp_path_factory, write_results):
    folder = tmp_path_factory.mktemp("report")
    config = replace(small_config, rate_range=(1, 3), duration=2)
    data = build_dataset(config, folder / "<b onclick=alert(1)>", progress=False)
    reason = {"id": "q/A", "reason": "<script>document.title='broken'</script>"}
    results = write_results(folder / "results", ENCODERS, open_benchmark(data), skipped=[reason])
    return write_report([results], folder / "report.html", progress=False)


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
    return page.locator("table.sortable").first


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


class TestSorting:
    def test_by_click(self, open_page):
        table = first_table(open_page())
        before = column(table, "A-COAT")
        assert before == sorted(before, reverse=True)
        assert order_of(table, "A-COAT") == "descending"
        button = table.get_by_role("button", name="A-COAT")
        button.click()
        assert column(table, "A-COAT") == sorted(before)
        assert order_of(table, "A-COAT") == "ascending"
        button.click()
        assert column(table, "A-COAT") == before
        table.get_by_role("button", name="encoder").click()
        assert order_of(table, "A-COAT") is None
        assert order_of(table, "encoder") == "ascending"
        found = names(table)
        assert found.index("log-mel-statistics") < found.index("org/one") < found.index("random")

    def test_by_keyboard(self, open_page):
        page = open_page()
        table = first_table(page)
        before = column(table, "sd")
        table.get_by_role("button", name="sd").focus()
        page.keyboard.press("Enter")
        assert column(table, "sd") == sorted(before, reverse=True)
        page.keyboard.press("Space")
        assert column(table, "sd") == sorted(before)
        assert (
            page.locator("#sorted").inner_text() == "A-COAT of 8 encoders on 12 quadruples, the highest mean first: "
            "sorted by sd, ascending"
        )

    def test_keeps_the_order_of_equal_rows_and_puts_missing_numbers_last(self, open_page):
        page = open_page()
        table = first_table(page)
        before = names(table)
        for _ in range(2):
            table.get_by_role("button", name="n", exact=True).click()  # the same for all
            assert names(table) == before
        table.locator("tbody tr:first-child td[data-value]").first.evaluate("cell => { cell.dataset.value = ''; }")
        for _ in range(2):
            table.get_by_role("button", name="A-COAT").click()
            assert names(table)[-1] == before[0]
        assert order_of(table, "A-COAT") == "ascending"

    def test_numbers_are_sorted_as_numbers(self, open_page):
        table = first_table(open_page())
        table.get_by_role("button", name="dim").click()
        assert column(table, "dim") == [64, 56, 48, 40, 32, 24, 16, 8]

    def test_is_not_needed(self, open_page):
        page = open_page(java_script_enabled=False)
        assert page.locator("th button").count() == 0
        assert first_table(page).locator("tbody tr").count() == len(ENCODERS)
        assert not page.locator("#sortable").is_visible()


class TestPlaying:
    def test_one_plays_at_a_time(self, open_page):
        page = open_page()
        players = page.locator("audio")
        assert players.count() == 30
        first, second = players.nth(0), players.nth(1)
        for player in (first, second):
            player.focus()
            page.keyboard.press("Space")
            page.wait_for_function("player => player.currentTime > 0.2", arg=player.element_handle())
        assert first.evaluate("player => player.paused")
        assert not second.evaluate("player => player.paused")

    def test_every_clip_can_be_decoded(self, open_page):
        page = open_page()
        page.wait_for_function(
            "() => [...document.querySelectorAll('audio')].every((player) => player.readyState >= 1)"
        )
        durations = page.locator("audio").evaluate_all("players => players.map((player) => player.duration)")
        assert durations == pytest.approx([2] * 30, abs=0.1)
        assert page.locator("audio").evaluate_all("players => players.every((player) => player.error === null)")

    def test_pictures_are_seen(self, open_page):
        page = open_page()
        widths = page.locator("img").evaluate_all("pictures => pictures.map((picture) => picture.naturalWidth)")
        assert len(widths) > 30
        assert min(widths) > 0


def test_hostile_names_are_text(open_page):
    page = open_page()
    assert page.title().startswith("Compositional structure in audio embeddings: 8 encoders")
    for name in HOSTILE[:3]:
        assert name in page.locator("main").inner_text()
    assert page.locator("img:not([alt]), [onerror], [onfocus], [autofocus]").count() == 0


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_only_tables_and_wide_figures_scroll_sideways(open_page, width):
    page = open_page(width, 740)
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    # What is wider than its box can be reached by keyboard and has a name.
    assert (
        page.locator(".scroll").evaluate_all(
            "all => all.filter((one) => one.scrollWidth > one.clientWidth"
            " && !(one.tabIndex === 0 && (one.ariaLabel || one.getAttribute('aria-labelledby')))).length"
        )
        == 0
    )


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(open_page, scheme):
    page = open_page(color_scheme=scheme)
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    found = page.evaluate(CONTRAST)
    assert len(found) > 500
    assert min(found)[0] >= 4.5, min(found)


def test_print_leaves_out_what_paper_cannot_do(open_page):
    page = open_page(794)
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator("nav").is_visible()
    assert not page.locator("audio").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator(".spectrogram").first.is_visible()
    assert min(page.evaluate(CONTRAST))[0] >= 4.5
