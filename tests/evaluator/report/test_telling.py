"""Questions that tell something: which are shown, with what words, and what the page says of listening."""

from __future__ import annotations

import re
import zlib
from types import SimpleNamespace

import numpy as np
import pytest

from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.encoders.controls import CONTROLS, Controlled
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.gain import answerable_table, paper_table
from audio_compositionality.evaluator.report import telling
from audio_compositionality.evaluator.report.listening import MOST_CLIPS, choose_samples
from audio_compositionality.evaluator.report.page import write_report
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.tasks.registry import load_task

from ...tasks.listeners import WORDS, Listener, write_questions

TASK = load_task("audio_questions")
CANNOT_SAY = "It may be <b>either</b>."


def compared(columns, **settings):
    """Results of an id, its scores and its choices each; four questions of two options, of which the first is right."""
    results = tuple(
        SimpleNamespace(
            result=SimpleNamespace(model=SimpleNamespace(id=id), settings=settings),
            samples=SimpleNamespace(columns={"choice": np.array(choices, float)}),
        )
        for id, _, choices in columns
    )
    asked = (SimpleNamespace(options=("yes", "no"), answer="yes"),) * 4
    comparison = SimpleNamespace(
        info=TASK.info,
        results=results,
        labels=tuple(id for id, _, _ in columns),
        ids=tuple("abcd"),
        samples=SimpleNamespace(asked=asked, groups={"kind": ("one", "one", "two", "two")}),
    )
    return comparison, SimpleNamespace(values=np.array([scores for _, scores, _ in columns], float).T)


def test_what_is_told_about_a_model_and_its_controls():
    comparison, view = compared(
        [
            ("org/m", [1, 0, 0, 0], [0, 1, 1, -1]),
            ("without-audio:org/m", [1, 1, 1, 0], [0, 0, 0, 1]),
            ("noise-audio:org/m", [1, 0, 1, 0], [0, 1, 0, 1]),
        ]
    )
    assert list(telling.telling_questions(comparison, view, [0])) == [
        (telling.WRONG_WITH, 1, 2, "org/m (right on silence and noise)"),
        (telling.WRONG_WITH, 2, 1, "org/m (right on silence)"),
        (telling.UNPARSED, 1, 3, "org/m"),
    ]


def test_right_in_one_order_alone_where_several_were_asked_and_each_kind_before_a_second_of_any():
    columns = [("one", [0.5, 0.5, 0.5, 1], [0, 0, 0, 0]), ("other", [1, 0, 1, 0.5], [0, 1, 0, 0])]
    assert list(telling.telling_questions(*compared(columns), [0, 1])) == []
    assert list(telling.telling_questions(*compared(columns, orders="cyclic"), [0, 1])) == [
        (telling.ONE_ORDER, 1, 0, "one"),
        (telling.ONE_ORDER, 2, 2, "one"),
        (telling.ONE_ORDER, 3, 1, "one"),
    ]


class Mumbler(Listener):
    """Answers every third prompt with nothing that names an option."""

    def _letter(self, clip, prompt):
        return super()._letter(clip, prompt) if zlib.crc32(prompt.encode()) % 3 else CANNOT_SAY


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The results and the table of 40 questions; its folder is the cache with the answers."""
    folder = tmp_path_factory.mktemp("telling")
    table, model = write_questions(folder, 40), Mumbler("org/mumbler", (WORDS,))
    models = [model, *(Controlled(model, CONTROLS[name]) for name in ("without-audio", "noise-audio"))]
    options = RunOptions(out=folder / "results", cache=folder / "outputs", progress=False)
    evaluate_models([*models, load_model("blind")], open_data(table), [TASK], options)
    return folder / "results", table


@pytest.mark.slow
def test_the_page(results, tmp_path, monkeypatch):
    out, table = results
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(out.parent))
    page = write_report([out], tmp_path / "page.html", data=table, progress=False).read_text()
    verdict, _, rest = page.partition('<h2 id="scores">')
    assert "Audio questions: audio gain" in verdict
    assert "questions are answerable without audio</summary>" in verdict
    shown = re.findall(r'<article class="sample.*?</article>', rest, re.DOTALL)
    assert 3 * 2 < len(shown) <= 3 * 2 + 2 * telling.MOST_TELLING
    assert rest.count("<audio") == len(shown) <= MOST_CLIPS
    unparsed = [sample for sample in shown if f'data-place="{telling.UNPARSED}"' in sample]
    assert len(unparsed) == telling.MOST_TELLING
    for sample in unparsed:
        assert "By <bdi>org/mumbler</bdi>" in sample
        assert "<bdi>org/mumbler</bdi>: <q><bdi>It may be &lt;b&gt;either&lt;/b&gt;.</bdi></q>" in sample
    assert f'<option value="{telling.WRONG_WITH}">' in rest


@pytest.mark.slow
def test_only_so_many_clips_are_shown_and_of_long_ones_the_beginning(results, monkeypatch):
    out, table = results
    (comparison,) = compare_results([out], data=table)
    monkeypatch.setattr("audio_compositionality.evaluator.report.listening.MOST_CLIPS", 4)
    monkeypatch.setattr("audio_compositionality.evaluator.report.listening.LONGEST_PLAYED", 0.25)
    samples = choose_samples(comparison, comparison.views["accuracy"], [0])
    assert [len(clip.waveform) for sample in samples for clip in sample.clips] == [2_001] * 4


@pytest.mark.slow
def test_the_tables(results):
    out, table = results
    (comparison,) = compare_results([out], data=table)
    brief = paper_table(comparison)
    assert brief.in_one_column
    ((name, heard, unheard, gain),) = ([cell.value for cell in row.cells] for row in brief.rows)
    assert name == "mumbler"
    assert gain == pytest.approx(heard - unheard)
    kind_of = dict(zip(comparison.ids, comparison.samples.groups["kind"], strict=True))
    kinds = [kind_of[row.cells[0].value] for row in answerable_table(comparison).rows]
    assert kinds.count(WORDS) > 0.8 * len(kinds)


@pytest.mark.slow
@pytest.mark.browser
def test_the_filter_works_by_keyboard_and_without_a_script_everything_is_shown(results, tmp_path, chromium):
    out, table = results
    page = write_report([out], tmp_path / "page.html", data=table, progress=False)
    opened = chromium.new_page(viewport={"width": 390, "height": 800})
    opened.goto(page.as_uri())
    group = opened.get_by_role("group", name="Which questions are shown")
    choice = group.get_by_label("Show")
    samples, seen = opened.locator(".sample"), opened.locator(".sample:visible")
    count = samples.count()
    choice.focus()
    opened.keyboard.type("no option")
    assert choice.input_value() == telling.UNPARSED
    assert seen.count() == telling.MOST_TELLING
    assert {one.get_attribute("data-place") for one in seen.all()} == {telling.UNPARSED}
    status = group.get_by_role("status")
    assert status.inner_text() == f"{telling.MOST_TELLING} of {count} questions"
    choice.select_option("")
    assert seen.count() == count
    assert status.inner_text() == ""
    assert opened.evaluate("document.documentElement.scrollWidth") == 390
    plain = chromium.new_context(java_script_enabled=False).new_page()
    plain.goto(page.as_uri())
    assert plain.locator(".filter:visible").count() == 0
    plain.locator("details.more > summary").click()
    assert plain.locator(".sample:visible").count() == count
