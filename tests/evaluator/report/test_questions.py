"""Questions on the page: each model by itself, who took which option, and what a score has to be above."""

from __future__ import annotations

import re

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import Clip, check_range
from audio_compositionality.encoders.base import Model, ModelCard
from audio_compositionality.evaluator.compare import comparison as comparison_module
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.formats import comparison_tables
from audio_compositionality.evaluator.compare.tables import score_table
from audio_compositionality.evaluator.compare.task_verdicts import Standing, task_verdicts
from audio_compositionality.evaluator.report.listening import heard_question
from audio_compositionality.evaluator.report.page import write_report
from audio_compositionality.evaluator.report.profiles import model_profiles
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.tasks.registry import load_task
from audio_compositionality.tasks.shapes.asking import read_prompt

from ...tasks.questions import LABELS, always_yes, first, knowing, refusing, twin_rows

RATE = 8_000


class Questions:
    """Questions made by hand, with a tone for each label."""

    recipe, source, recipes = "polybench", "mini", ("polybench",)
    fingerprint = rows_digest = "b" * 64

    def __init__(self, sets: int) -> None:
        self.rows = [*twin_rows(1, "train"), *twin_rows(sets)]
        self.clip_ids = [f"{row['id']}/audio" for row in self.rows]

    def configuration(self, recipe):
        return self

    def clips(self, wanted=None, *, keep_invalid=False):
        for number in check_range(wanted, len(self.clip_ids)):
            waveform = np.zeros(2 * RATE, np.float32)
            for event in self.rows[number]["events"]:
                start, stop = (round(RATE * event[end] / 5) for end in ("onset", "offset"))
                pitch = 200 * (1 + LABELS.index(event["label"]))
                waveform[start:stop] += 0.2 * np.sin(2 * np.pi * pitch * np.arange(stop - start) / RATE)
            yield Clip(self.clip_ids[number], waveform, RATE)


class Says(Model):
    """Whoever answers in a known way; it knows the row by its clip's name."""

    device = "cpu"

    def __init__(self, name, who, data, paradigm="instruction tuning"):
        self.card = ModelCard(name, "1", RATE, None, paradigm=paradigm)
        self._who, self._rows = who, {f"{row['id']}/audio": row for row in data.rows}

    def answer(self, clips, prompts):
        return [self._who(self._rows[clip.id]) for (clip,) in clips]


def knows_all_but_detection(row):
    return "D" if row["task"] == "detection" else knowing(row)


@pytest.fixture(scope="module")
def data():
    return Questions(12)


@pytest.fixture(scope="module")
def results(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    models = [
        Says("org/listener", knows_all_but_detection, data),
        Says("without-audio:org/listener", first, data, "control (silence for every clip)"),
        Says("org/yes", always_yes, data),
        Says("polite", refusing, data, "none"),
    ]
    evaluate_models(models, data, [load_task("polybench")], RunOptions(out=folder, progress=False))
    return folder


@pytest.fixture
def compared(results, data, monkeypatch):
    monkeypatch.setattr(comparison_module, "reopened_data", lambda source: data)
    (comparison,) = compare_results([results], data="mini")
    return comparison


def test_a_model_is_judged_beside_itself_without_sound(compared):
    by_label = {verdict.label: verdict for verdict in task_verdicts(compared)}
    assert set(by_label) == {"org/listener", "org/yes"}
    listener, other = by_label["org/listener"], by_label["org/yes"]
    for name, words in (("twin", "the same model without sound"), ("trivial", "the best without listening")):
        assert (listener.baselines[name][0].words, listener.standings[name]) == (words, Standing.ABOVE)
    (twin,) = other.baselines["twin"]
    assert twin.outcome == "not compared with the same model without sound (to compare, score `without-audio:org/yes`)"
    assert other.standings["trivial"] is not Standing.ABOVE


def test_each_model_by_itself(compared):
    profiles = {profile.label: profile for profile in model_profiles(compared)}
    assert list(profiles) == list(compared.labels)
    model = profiles["org/listener"]
    by_task, by_polyphony, by_overlap = model.parts
    assert [bar.name for bar in by_task.bars] == [
        "counting", "duration", "concurrency", "classification", "detection",
    ]  # fmt: skip
    assert [bar.x for bar in by_task.bars] == [100, 100, 100, 100, 25]
    assert [bar.is_above for bar in by_task.bars] == [True] * 4 + [False]
    assert [round(one.x, 1) for bar in by_task.bars for one in bar.references[:1]] == [25, 33.3, 50, 25, 25]
    assert by_task.bars[0].printed == (57.5, 30.1, 53.4, 43.8, 51.4)
    assert all(bar.printed == () for bar in by_polyphony.bars)
    # All of 12 groups right: Wilson's lower end, 1 - z² / (12 + z²).
    assert by_task.bars[0].text == "1.000 [0.76, 1.00]"
    assert [bar.name for bar in by_polyphony.bars] == ["2", "3", "4"]
    assert [bar.name for bar in by_overlap.bars] == sorted(bar.name for bar in by_overlap.bars)
    numbers = {number.name: number.text for number in model.numbers}
    assert numbers["unparsed"] == "0 of 228 answers (0.0%)"
    assert numbers["groups right"].startswith("0.800 [")
    refuser = {number.name: number.text for number in profiles["polite"].numbers}
    assert refuser["refused"] == refuser["unparsed"] == "228 of 228 answers (100.0%)"
    legend = " ".join(score_table(compared).legend)
    assert "polite: unparsed: 228 of 228 answers. polite: refused: 228 of 228 answers." in legend
    assert "org/yes: " not in legend


@pytest.mark.slow
def test_where_most_answers_name_no_option_the_page_says_that_first(data, monkeypatch, tmp_path):
    monkeypatch.setattr(comparison_module, "reopened_data", lambda source: data)

    def hardly(count):
        numbers = {row["id"]: number for number, row in enumerate(row for row in data.rows if row["split"] == "test")}
        return lambda row: "Well, well." if numbers[row["id"]] < count else knowing(row)

    pages = {}
    for count in (114, 115):
        evaluate_models(
            [Says("org/poet", hardly(count), data)],
            data,
            [load_task("polybench")],
            RunOptions(out=tmp_path / str(count), progress=False),
        )
        page = write_report([tmp_path / str(count)], tmp_path / "page.html", data="mini", progress=False).read_text()
        pages[count] = re.sub(r"\s+", " ", re.sub(r"<.*?>", "", page[page.index("Verdict</h2>") :]))
    said = "org/poet: Cannot tell. PolyBench: not judged, since most answers name no option (115 of 228)."
    assert said in pages[115][: len(said) + 50]
    assert "most answers" not in pages[114]


def test_tables_of_tasks_and_states(compared):
    profiles = {profile.label: profile for profile in model_profiles(compared)}

    def cells(label, table):
        return [[cell.value for cell in row.cells] for row in profiles[label].tallies[table].rows]

    assert cells("org/yes", 1) == [["something overlaps", 12, 12, 0], ["nothing overlaps", 12, 12, 0]]
    assert cells("polite", 1) == [["something overlaps", 0, 0, 24], ["nothing overlaps", 0, 0, 24]]
    assert profiles["polite"].tallies[1].rows[0].cells[3].notes == ("100%",)
    counting, *_, detection = cells("org/listener", 0)
    assert counting[:3] == ["counting (no time)", 1, 0.25]
    assert detection[0].startswith("detection (")
    assert detection[1] == pytest.approx(0.25)
    assert detection[5:] == pytest.approx([0, 1 / 256])
    # Intervals are those of the bars.
    assert profiles["org/listener"].tallies[0].rows[0].cells[1].notes == ("[0.76, 1.00]",)
    # Who took which option of a question.
    asked = heard_question(compared, compared.ids.index("test-0-t-1"))
    assert [option.is_right for option in asked.options] == [False, True, False, False]
    assert set(asked.options[0].models) == {"org/yes", "without-audio:org/listener"}
    assert [option.models for option in asked.options[1:]] == [(), (), ("org/listener",)]
    assert asked.without_choice == {"refuses to answer": ("polite",)}


def test_groups_of_questions_are_told_by_plain_shares(compared):
    tables = {table.caption: table for table in comparison_tables(compared)}
    (by_task,) = (table for caption, table in tables.items() if caption.endswith("by task"))
    shares = {row.cells[0].value: [cell.value for cell in row.cells[1:]] for row in by_task.rows}
    headings = [column.heading for column in by_task.columns[1:]]
    assert headings[0] == "classification (n = 48)"
    assert dict(zip(headings, shares["org/listener"], strict=True))["detection (n = 48)"] == 0.25
    scores = next(iter(tables.values()))
    counting = [column.heading for column in scores.columns].index("counting")
    row = next(row for row in scores.rows if row.cells[0].value == "org/listener")
    assert row.cells[counting].value == 1
    assert "[1.000, 1.000]" in row.cells[counting].notes


@pytest.mark.slow
def test_the_page(results, data, monkeypatch, tmp_path):
    monkeypatch.setattr(comparison_module, "reopened_data", lambda source: data)
    page = write_report([results], tmp_path / "page.html", data="mini", progress=False).read_text()
    heard = re.findall(r'<h4 id="polybench-1-[a-z]+-\d">.*?</article>', page, re.DOTALL)
    assert len(heard) == 10
    headings = [re.sub(r"<.*?>", "", re.search(r"<h4.*?>(.*?)</h4>", sample, re.DOTALL)[1]) for sample in heard]
    assert [heading.partition(":")[0] for heading in headings] == [
        f"{task}, {place}"
        for task in ("Counting", "Duration", "Concurrency", "Classification", "Detection")
        for place in ("highest", "lowest")
    ]
    rows = {row["id"]: row for row in data.rows}
    for sample in heard:
        row = rows[re.search(r'class="id">([^<]+)<', sample)[1]]
        assert row["question"] in sample
        options = re.findall(r'class="option">([A-D])\. <bdi>(.*?)</bdi>', sample)
        assert options == list(zip("ABCD", row["options"], strict=False))
        assert len(re.findall(r'<li class="right">', sample)) == 1
        assert re.search(r'<li class="right"><span class="option">[A-D]\. <bdi>(.*?)<', sample)[1] == row["answer"]
        assert "refuses to answer" in sample
        assert sample.count("<audio") == 1
    assert page.count('<details class="profile"') == 4
    assert re.findall(r'<details class="profile" open>\s*<summary><bdi>(.*?)<', page) == ["org/listener"]
    assert '<a href="#models">Each model</a>' in page
    assert "the same model without sound" in page
    assert "untrained twin" not in page.partition('<h2 id="methods">')[0].partition("<main")[2]


@pytest.mark.slow
def test_without_the_data_the_page_still_tells_of_each_model(results, tmp_path, monkeypatch):
    monkeypatch.setattr(comparison_module, "is_preset", lambda source: False)
    page = write_report([results], tmp_path / "page.html", progress=False).read_text()
    assert page.count('<details class="profile"') == 4
    assert "Groups of questions are unknown" in page
    assert "228 of 228 answers" in page


class Reads(Says):
    """As `Says`, of the options in the order in which a prompt has them."""

    def answer(self, clips, prompts):
        shown = [read_prompt(prompt)[1] for prompt in prompts]
        return [self._who({**self._rows[clip.id], "options": o}) for (clip,), o in zip(clips, shown, strict=True)]


@pytest.mark.slow
def test_under_several_orders_the_page_tells_of_consistency_and_of_one_order_it_does_not(tmp_path, data, compared):
    title = "Every question under all cyclic orders of its options"
    assert all(tally.caption != title for profile in model_profiles(compared) for tally in profile.tallies)
    models = [Reads("org/listener", knowing, data), Reads("org/first", first, data)]
    options = RunOptions(out=tmp_path, progress=False, settings={"orders": "cyclic"})
    evaluate_models(models, data, [load_task("polybench")], options)
    (comparison,) = compare_results([tmp_path], data="mini")
    tables = {p.label: next(t for t in p.tallies if t.caption == title) for p in model_profiles(comparison)}
    cells = {label: [cell.value for cell in table.rows[0].cells] for label, table in tables.items()}
    assert cells["org/listener"][:2] == ["all", 1]
    assert cells["org/listener"][3::2] == pytest.approx([1, 0], abs=1e-12)
    assert cells["org/first"][1] == cells["org/first"][3] == 0
    assert cells["org/first"][2] == pytest.approx((12 / 4 + 3 / 3 + 4 / 2) / 19)
    assert cells["org/first"][5] > 0.6
    numbers = {p.label: {n.name: n.text for n in p.numbers} for p in model_profiles(comparison)}
    assert numbers["org/first"]["unparsed"] == "0 of 780 answers (0.0%)"
    page = write_report([tmp_path], tmp_path / "report.html", data="mini", progress=False).read_text()
    assert title in page
