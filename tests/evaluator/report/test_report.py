"""The report: what is on the page is what was computed, whoever named it, for any task."""

from __future__ import annotations

import base64
import errno
import hashlib
import io
import re
import socket
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree

import numpy as np
import pytest
import soundfile
from PIL import Image

from audio_compositionality.dataset_builder.rendered import RenderedConfiguration, RenderedData
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.report import listening, sections
from audio_compositionality.evaluator.report import page as page_module
from audio_compositionality.evaluator.report.facts import run_table
from audio_compositionality.evaluator.report.listening import (
    PLAYBACK_GAIN,
    choose_samples,
    encode_mp3,
    hear_samples,
    outermost,
)
from audio_compositionality.evaluator.report.page import _data_summary, write_report
from audio_compositionality.evaluator.results.result import ResultError
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import number_text

MODELS = ("random", "log-mel-statistics", "org/one", "untrained:org/one", "org/two")
TRAINED = ("org/one", "org/two")

VOID = {"meta", "img", "br", "wbr", "link", "input", "hr"}


class Page(HTMLParser):
    """A page as a browser takes it: elements with their attributes, and the text of each."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.source = path.read_text("utf-8")
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[list[str]] = []
        self._open: list[int] = []
        self.feed(self.source)
        self.close()
        assert not self._open, "an element is not closed"

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(set(names)) == len(names), f"an attribute of <{tag}> stands twice"
        self.elements.append((tag, dict(attributes)))
        self.texts.append([])
        if tag not in VOID:
            self._open.append(len(self.elements) - 1)

    def handle_endtag(self, tag):
        opened = self.elements[self._open.pop()][0]
        assert opened == tag, f"<{opened}> is closed by </{tag}>"

    def handle_data(self, data):
        # What can be copied holds names at their full length.
        to_copy = any(self.elements[number][1].get("class") in ("latex", "markdown") for number in self._open)
        for number in self._open[-1:] if to_copy else self._open:
            self.texts[number].append(data)

    def find(self, tag, **attributes):
        return [
            (found, "".join(self.texts[number]).strip())
            for number, (name, found) in enumerate(self.elements)
            if name == tag and all(found.get(key.rstrip("_")) == value for key, value in attributes.items())
        ]

    @property
    def text(self):
        return " ".join(" ".join(text for tag in ("header", "main") for _, text in self.find(tag)).split())

    def tables(self):
        """Caption -> rows of cells' texts, headings first."""
        found, rows = {}, []
        for number, (tag, _) in enumerate(self.elements):
            if tag == "table":
                rows = []
            elif tag == "caption":
                found["".join(self.texts[number]).strip()] = rows
            elif tag == "tr":
                rows.append([])
            elif tag in ("td", "th"):
                rows[-1].append("".join(self.texts[number]).strip())
        return found

    def media(self, tag):
        """What data URLs of <audio> or <img> hold, with their type."""
        found = []
        for attributes, _ in self.find(tag):
            kind, data = attributes["src"].removeprefix("data:").split(",", 1)
            is_base64 = kind.endswith(";base64")
            content = base64.b64decode(data, validate=True) if is_base64 else unquote_to_bytes(data)
            found.append((kind.split(";")[0], content))
        return found


def called(data, source):
    """The same data, opened from elsewhere."""
    return RenderedData(source, data.settings)


def typeset(value, digits=3):
    return number_text(value, digits, minus="−")


@pytest.fixture(scope="module")
def data(small_data):
    """Clips of two seconds."""
    settings = {
        name: values.changed(rate_range=(1.0, 3.0), duration=2.0) for name, values in small_data.settings.items()
    }
    return RenderedData("made-up data", settings)


@pytest.fixture(scope="module")
def results(data, tmp_path_factory, write_results):
    return write_results(tmp_path_factory.mktemp("results"), MODELS, data)


@pytest.fixture(scope="module")
def comparisons(results, data):
    return compare_results([results], data=data)


@pytest.fixture(scope="module")
def page(results, data, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "socket", lambda *_, **__: pytest.fail("the report reaches for the network"))
        out = tmp_path_factory.mktemp("page") / "report.html"
        command = "the 'command' & <its> options"
        assert write_report([results], out, data=data, command=command, progress=False) == out
    return Page(out)


@pytest.fixture
def without_figures(monkeypatch):
    """For tests of what else is on the page: figures and spectrograms take most of the time."""
    monkeypatch.setattr(sections, "described_figures", lambda _: ())
    monkeypatch.setattr(listening, "spectrogram_png", lambda *_: b"")


def shown_samples(page):
    return [text.split()[-1] for _, text in page.find("h4") if text.startswith(("Highest", "Lowest"))]


def cells(table):
    """Rows of a page's table by heading."""
    headings, *rows = table
    return [dict(zip(headings, row, strict=True)) for row in rows]


class TestThePage:
    def test_is_one_file_that_refers_to_nothing_else(self, page):
        assert len(page.source) < 5_000_000
        for tag, attributes in page.elements:
            for name, value in attributes.items():
                assert not name.startswith("on"), f"<{tag}> has {name}"
                assert name not in ("style", "srcset", "srcdoc", "action", "background", "http-equiv") or tag == "meta"
                if name in ("src", "href"):
                    assert value.startswith(("data:image/", "data:audio/mpeg;", "#")), value[:80]
        assert {tag for tag, _ in page.elements} & {"link", "iframe", "object", "embed", "base", "form"} == set()

    def test_runs_only_its_own_script_and_style(self, page):
        (policy,) = [a["content"] for t, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert rules["default-src"] == "'none'"
        assert rules["img-src"] == rules["media-src"] == "data:"
        for tag in ("script", "style"):
            (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page.source, re.DOTALL)
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            assert rules[f"{tag}-src"] == f"'sha256-{digest}'"
            assert len(page.find(tag)) == 1

    def test_can_be_read_by_a_screen_reader(self, page):
        assert page.find("html")[0][0]["lang"] == "en"
        ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
        assert len(set(ids)) == len(ids)
        for _, attributes in page.elements:
            for name in (attributes.get("aria-labelledby") or "").split():
                assert name in ids
            if (attributes.get("href") or "").startswith("#"):
                assert attributes["href"][1:] in ids
        assert all(attributes["alt"] for attributes, _ in page.find("img"))
        assert all(attributes["aria-label"] for attributes, _ in page.find("audio"))
        assert all(attributes["scope"] in ("row", "col") for attributes, _ in page.find("th"))
        assert len(page.find("caption")) == len(page.find("table"))
        levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1 == levels.count(1)
        assert all(after <= before + 1 for before, after in pairwise(levels))
        assert len(page.find("main")) == len(page.find("header")) == len(page.find("footer")) == 1

    def test_begins_with_what_was_measured_and_the_warning(self, page, comparisons):
        headings = [text for _, text in page.find("h2")]
        expected = ["Scores", "Listen", "Figures", "Diversity", "How it was computed", "Cite"]
        assert headings == ["Verdict", *expected]
        assert "2 models, 1 untrained network and 2 baselines" in page.text
        for comparison in comparisons:
            rows, clips = comparison.configuration.rows, comparison.configuration.clip_ids
            size = f"{len(comparison.ids)} {comparison.info.samples} of {len(rows)} rows with {len(clips)} clips"
            assert size in page.text
        for comparison in comparisons:
            info = comparison.info
            assert f"{len(comparison.ids)} {info.samples}: {info.question}" in page.text
            assert info.warning in page.text
        # The later models were made to score higher, and the twin stands between the two: org/two has none.
        assert "0 of 2 models are above all baselines; " in page.text
        assert "Only models above all baselines are ranked." in page.text
        assert "to compare, score `untrained:org/two`" in page.text

    def test_has_the_scores_of_the_results(self, page, comparisons):
        for comparison in comparisons:
            info, view = comparison.info, comparison.view(comparison.info.ranks_by)
            rows = cells(page.tables()[f"{info.title} on made-up data, n = {len(comparison.ids)}"])
            kinds = {"random": "baseline", "log-mel-statistics": "baseline", "untrained:org/one": "untrained network"}
            for place, (row, result) in enumerate(zip(rows, comparison.results, strict=True)):
                interval = view.intervals[place]
                bounds = "" if interval is None else f"[{typeset(interval[0])}, {typeset(interval[1])}]"
                assert row["model"] == result.label + kinds.get(result.label, "")
                assert row[view.measure.heading] == typeset(float(view.means[place])) + bounds
                assert row["groups"] == view.letters[place]
                for measure in info.shown:
                    value = result.value(measure)
                    assert row[measure.heading].startswith(typeset(value, measure.digits))
        assert comparisons[1].view("a_tre").intervals == [None] * 5  # 8 scenes are too few

    def test_has_every_paired_test(self, page, comparisons):
        tables = page.tables()
        for name, title in (("adjusted", "A-COAT, adjusted"), ("top1", "A-COAT, top-1")):
            tests = comparisons[0].view(name).tests
            rows = cells(tables[f"{title}: paired differences, n = 12"])
            assert len(rows) == len(tests) == 10
            for row, test in zip(rows, tests, strict=True):
                assert row["difference"].startswith(typeset(test.difference) + "[")
                expected = "< 0.001" if test.p_adjusted < 0.001 else f"{test.p_adjusted:.3f}"
                assert row["p, corrected"] == expected
        (first, *_) = cells(tables["A-TRE, centred: paired differences, n = 8"])
        assert "too few samples" in first["difference"]

    def test_says_how_it_was_computed_and_whom_to_cite(self, page, comparisons):
        for words in (comparisons[0].fingerprint, "version 1", "Benjamini and Hochberg", "seeds 0, 1, 2"):
            assert words in page.text
        given = [text for _, text in page.find("pre")]
        for comparison in comparisons:
            assert all(f"{measure.meaning}." in page.text for measure in comparison.info.measures)
            assert comparison.info.citation.strip() in given
        assert "the 'command' & <its> options" in page.text

    def test_cuts_no_caption_and_no_conclusion_short(self, page):
        captions = list(page.tables())
        assert "A-COAT, adjusted: slopes by attribute, number of sources of A" in " ".join(captions)
        assert any(len(caption) > 80 for caption in captions)
        conclusions = [row[-1] for row in page.tables()["Is each model above all baselines?"][1:]]
        assert conclusions
        # The name of a model may be cut, the conclusion not.
        assert not [text for text in (*captions, *(text.rpartition("`")[2] for text in conclusions)) if "…" in text]
        assert all(text.endswith(".") for text in conclusions)

    def test_has_well_formed_figures_with_words(self, page):
        pictures = [data for kind, data in page.media("img") if kind == "image/svg+xml"]
        assert len(pictures) >= 10
        for picture in pictures:
            assert b"<script" not in picture
            assert ElementTree.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
        assert any("Box plots of A-COAT, adjusted over 12 quadruples" in a["alt"] for a, _ in page.find("img"))


@pytest.mark.slow
def test_a_page_of_one_model_without_long_tables(without_figures, results, data, comparisons, tmp_path, monkeypatch):
    """No paper prints long tables, and a page would hold each three times."""
    monkeypatch.setattr(page_module, "MOST_COPIED", 5)
    out = write_report([results], tmp_path / "a" / "b" / "r.html", data=data, model="random", progress=False)
    ours = Page(out)
    short = [name for name, rows in ours.tables().items() if len(rows) <= 6]
    assert 0 < len(ours.find("pre", class_="latex")) <= len(short) < len(ours.tables())
    values = comparisons[0].view("adjusted").values[:, comparisons[0].labels.index("random")]
    order = np.argsort(-values)
    assert shown_samples(ours)[:4] == [comparisons[0].ids[k] for k in (*order[:2], *order[::-1][:2])]
    assert "by the score of random." in ours.text
    # Cut where the page would be too large.
    size = len(out.read_bytes()) - 100_000
    monkeypatch.setattr(page_module, "MOST_PAGE_BYTES", size)
    cut = Page(write_report([results], out, data=data, model="random", progress=False))
    assert len(cut.source.encode()) <= size
    assert len(cut.find("audio")) == 24
    assert "At most the first" in cut.text


class TestSamples:
    def test_are_the_highest_and_the_lowest(self, page, comparisons):
        expected = []
        for comparison in comparisons:
            view = comparison.recommended[0]
            places = [comparison.labels.index(name) for name in TRAINED]
            order = np.argsort(-view.values[:, places].mean(axis=1))
            expected += [comparison.ids[k] for k in (*order[:2], *order[::-1][:2])]
        assert shown_samples(page) == expected

    def test_can_be_heard_in_the_order_of_the_data(self, page, data):
        heard = page.media("audio")
        assert len(heard) == 4 * 5 + 4
        clips = self.clips(data, "a_coat", shown_samples(page)[0])
        for place, (kind, content) in enumerate(heard[:4]):
            samples, rate = soundfile.read(io.BytesIO(content))
            assert (kind, rate, len(samples)) == ("audio/mpeg", 32_000, 64_000)
            fits = [np.corrcoef(samples, clip.waveform)[0, 1] for clip in clips]
            assert np.argmax(fits) == place
            assert max(fits) > 0.9

    def clips(self, data, recipe, id):
        configuration = data.configuration(recipe)
        places = [k for k, clip_id in enumerate(configuration.clip_ids) if clip_id.split("/")[0] == id]
        return list(configuration.clips(range(places[0], places[-1] + 1)))

    def test_keep_their_level(self, page, data):
        """Every clip is as loud as in the data, less one gain for all, so that B is as much louder than A as it is."""
        heard = iter(page.media("audio"))
        for recipe, ids in (("a_coat", shown_samples(page)[:4]), ("a_tre", shown_samples(page)[4:])):
            for id in ids:
                clips = self.clips(data, recipe, id)
                waveforms = [clip.waveform for clip in clips]
                if recipe == "a_coat":
                    # T alone: what is added to A, and to C.
                    waveforms.append(waveforms[1] - waveforms[0])
                    assert np.array_equal(waveforms[4], waveforms[3] - waveforms[2])
                for waveform in waveforms:
                    samples, _ = soundfile.read(io.BytesIO(next(heard)[1]))
                    change = np.sqrt(np.mean(samples**2) / np.mean((PLAYBACK_GAIN * waveform) ** 2))
                    assert abs(20 * np.log10(change)) < 0.5
                    assert np.abs(samples).max() <= 1
        assert next(heard, None) is None

    def test_are_seen_and_described(self, page, data):
        contents = [content for kind, content in page.media("img") if kind == "image/png"]
        assert max(map(len, contents)) < 12_000
        pictures = [Image.open(io.BytesIO(content)) for content in contents]
        assert len(pictures) == 24
        assert {picture.size for picture in pictures} == {(320, 120)}
        first = shown_samples(page)[0]
        (row,) = (row for row in data.configuration("a_coat").rows if row["id"] == first)
        start = next(k for k, (tag, a) in enumerate(page.elements) if (a.get("id") or "").endswith("1-contents"))
        rows = [
            "".join(page.texts[k]).strip()
            for k, (tag, _) in enumerate(page.elements)
            if k > start and tag in ("td", "th")
        ]
        expected = ["in", "timbre", "pitch", "rate", "amplitude"]
        for name in "ACT":
            for source in row["metadata"][name]:
                expected += [name, *(source[f"{word}_label"].replace("-", "−") for word in expected[1:5])]
        assert rows[: len(expected)] == expected

    def test_have_every_models_scores(self, page, comparisons):
        first, coat = shown_samples(page)[0], comparisons[0]
        place = coat.ids.index(first)
        assert page.tables()[f"Scores of {first}"] == [
            ["model", "adjusted", "top-1"],
            *(
                [label, *(typeset(coat.view(name).values[place, k]) for name in ("adjusted", "top1"))]
                for k, label in enumerate(coat.labels)
            ),
        ]

    @pytest.mark.parametrize(
        ("scores", "expected"),
        [
            ([0.5], [("highest", 1, 0)]),
            ([0.1, 0.9], [("highest", 1, 1), ("lowest", 1, 0)]),
            (
                [0, 4, 2, 1, 3],
                [("highest", r, k) for r, k in ((1, 1), (2, 4))] + [("lowest", 1, 0), ("lowest", 2, 3)],
            ),
            ([1, 1, 1, 1], [("highest", 1, 0), ("highest", 2, 1), ("lowest", 1, 3), ("lowest", 2, 2)]),
        ],
    )
    def test_no_sample_is_both(self, scores, expected):
        assert outermost(np.array(scores, np.float64)) == expected

    @pytest.mark.slow
    def test_are_cut_alike_where_they_would_take_too_much(self, comparisons):
        chosen = choose_samples(comparisons[1], comparisons[1].view("a_tre"), [0])
        whole, cut = list(hear_samples(chosen, 10**9)), list(hear_samples(chosen, 30_000))
        assert not any(clip.is_cut for sample in whole for clip in sample.clips)
        assert all(clip.is_cut for sample in cut for clip in sample.clips)
        assert 20_000 < sum(len(clip.audio) for sample in cut for clip in sample.clips) <= 30_000
        (seconds,) = {clip.seconds for sample in cut for clip in sample.clips}
        for before, after in zip(whole, cut, strict=True):
            one, two = (soundfile.read(io.BytesIO(sample.clips[0].audio))[0] for sample in (before, after))
            assert len(two) == round(seconds * 32_000) < len(one)
            assert np.corrcoef(one[: len(two)], two)[0, 1] > 0.9

    @pytest.mark.parametrize("rate", [11_000, 96_000])
    def test_any_rate_can_be_played(self, rate):
        tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(2 * rate) / rate).astype(np.float32)
        samples, played = soundfile.read(io.BytesIO(encode_mp3(tone, rate)))
        assert len(samples) / played == pytest.approx(2, abs=0.001)
        assert np.abs(np.fft.rfft(samples)).argmax() / 2 == 440

    @pytest.mark.slow
    def test_of_a_damaged_clip_say_so(self, comparisons, monkeypatch):
        intact = RenderedConfiguration.clips

        def damaged(self, wanted=None, *, keep_invalid=False):
            assert keep_invalid
            for clip in intact(self, wanted):
                yield replace(clip, problem="is damaged") if clip.id.endswith("/C") else clip

        monkeypatch.setattr(RenderedConfiguration, "clips", damaged)
        first, *_ = hear_samples(choose_samples(comparisons[0], comparisons[0].view("a_coat"), [0]), 10**9)
        assert [clip.problem for clip in first.clips] == [None, None, "is damaged", None, None]
        assert not first.clips[2].audio
        assert first.clips[3].audio


NAMES = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "\"' autofocus onfocus=alert(1) x='\"",
    "{{ 7 * 7 }}{% raw %}",
    "long-" + "x" * 190,
    "&lt;b&gt; & &amp;",
)


@pytest.fixture(scope="module")
def hostile(data, tmp_path_factory, write_results):
    names = ("<script>", "\"'><b>&lt;", "{{x}}")
    settings = {
        recipe: values.changed(voices=tuple(replace(v, name=n) for v, n in zip(values.voices, names, strict=True)))
        for recipe, values in data.settings.items()
    }
    named = RenderedData("<b onclick=alert(1)>", settings)
    folder = tmp_path_factory.mktemp("hostile")
    results = write_results(
        folder / "results",
        NAMES,
        named,
        tasks=["a_coat"],
        model={name: f"<u>{name}</u>" for name in ("revision", "paradigm", "licence")},
        device="<script>device</script>",
        versions={"<script>x</script>": "<script>y</script>"},
        skipped=[{"id": "<i>clip</i>", "reason": "</td><script>reason</script>\u202e" + "r" * 1_000}],
        precision_deviation={"relative_mean": 0.1, "relative_max": 0.2, "spread_ratio": 0.3, "clips": 4},
    )
    command = "x '</script><script>'\u202e"
    with pytest.MonkeyPatch.context() as patch:
        # Names of strangers in figures have tests of their own.
        patch.setattr(sections, "described_figures", lambda _: ())
        return Page(write_report([results], folder / "r.html", data=named, command=command, progress=False))


class TestHostileText:
    def test_is_shown_as_text(self, hostile):
        fields = [f"<u>{name}</u>" for name in ("revision", "paradigm", "licence")]
        texts = ["&lt;b&gt; & &amp;", "<script>device</script>", "</td><script>reason</script>", "<i>clip</i>"]
        for words in (*NAMES[:4], *fields, *texts):
            assert words in hostile.text
        assert "49" not in [text for _, text in hostile.find("th")]

    def test_becomes_no_element_and_no_attribute(self, hostile, page):
        assert {tag for tag, _ in hostile.elements} <= {tag for tag, _ in page.elements}
        assert len(hostile.find("script")) == 1
        names = {name for _, attributes in page.elements for name in attributes}
        assert {name for _, attributes in hostile.elements for name in attributes} <= names

    def test_is_shortened_and_has_no_character_that_moves_others(self, hostile):
        assert {character for character in set(hostile.source) if not character.isprintable()} == {"\n"}
        assert "x '</script><script>'\ufffd" in hostile.text
        assert "x" * 180 not in hostile.text
        assert "r" * 150 not in hostile.text
        assert len(hostile.source) < 5_000_000


@pytest.mark.usefixtures("without_figures")
class TestWithoutTheData:
    @pytest.fixture
    def gone(self, data, tmp_path, write_results):
        return write_results(tmp_path / "results", MODELS[1:3], called(data, str(tmp_path / "data")))

    def test_the_report_says_what_is_missing_and_why(self, gone, tmp_path):
        page = Page(write_report([gone], tmp_path / "x.html", progress=False))
        assert not page.find("audio")
        assert "There is nothing to listen to" in page.text
        assert str(tmp_path / "data")[-40:] in page.text
        assert "--data" in page.text
        assert any(caption.startswith("A-COAT on ") for caption in page.tables())

    def test_clips_that_are_gone_cost_the_clips_alone(self, gone, data, tmp_path, monkeypatch):
        def unreadable(*_, **__):
            raise OSError(errno.EIO, "gone")

        monkeypatch.setattr(RenderedConfiguration, "clips", unreadable)
        page = Page(write_report([gone], tmp_path / "x.html", data=data, progress=False))
        assert "There is nothing to listen to: [Errno 5] gone." in page.text
        assert any(caption.startswith("A-COAT, adjusted against diversity") for caption in page.tables())


def test_a_run_that_read_its_embeddings_says_so(data, tmp_path, write_results):
    for name, seconds in (("computed", {"embed": 9.0}), ("stored", {"read": 0.2}), ("both", {"embed_rest": 1.0})):
        write_results(tmp_path, [name], data, tasks=["a_coat"], seconds=seconds)
    table = run_table(compare_results([tmp_path], data=data))
    column = [column.heading for column in table.columns].index("embedding (s)")
    notes = {row.cells[0].value: row.cells[column].note for row in table.rows}
    assert notes == {"computed": "", "stored": "read from the cache", "both": "some read from the cache"}
    assert {row.cells[column].value for row in table.rows} == {9.0, 0.2, 1.0}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the spread of one number
def test_one_sample_and_one_model_are_enough(without_figures, data, tmp_path, write_results):
    few = {"a_coat": {"quadruples": 1}, "a_tre": {"test_scenes": 1}}
    tiny = RenderedData("tiny", {name: data.settings[name].changed(**changes) for name, changes in few.items()})
    results = write_results(tmp_path / "results", ["org/one"], tiny)
    page = Page(write_report([results], tmp_path / "x.html", data=tiny, progress=False))
    assert len(page.find("audio")) == 6
    few = "too few samples to compare with energy alone: 1 independent, a test needs 10"
    missing = "not compared with its untrained twin (to compare, score `untrained:org/one`); not compared with log-mel"
    assert f"org/one: Cannot tell. A-COAT and A-TRE: {few}; {missing}" in page.text
    assert not {"Layers", "Models by size"} & set(page.tables())


@pytest.mark.slow
def test_of_baselines_alone_there_is_nothing_to_judge(without_figures, tiny_data, write_results, tmp_path):
    results = write_results(tmp_path / "results", ["random", "downsample"], tiny_data, tasks=["a_coat"])
    page = Page(write_report([results], tmp_path / "x.html", data=tiny_data, progress=False))
    (comparison,) = compare_results([results], data=tiny_data)
    highest = int(comparison.view("adjusted").values.mean(axis=1).argmax())
    assert shown_samples(page)[0] == comparison.ids[highest]
    assert "by the mean score over all models." in page.text
    assert "No trained model was scored, so there is no verdict." in page.text


def test_mistakes_leave_nothing(results, tmp_path):
    with pytest.raises(InputError, match="there is no result of the model 'org/tow'; did you mean 'org/two'"):
        write_report([results], tmp_path / "x.html", model="org/tow", progress=False)
    with pytest.raises(InputError, match="is a folder; give the report the name of a file"):
        write_report([results], tmp_path, progress=False)
    with pytest.raises(ResultError, match="no such file or folder"):
        write_report([tmp_path / "nothing"], tmp_path / "x.html")
    assert not list(tmp_path.iterdir())


# ----- benchmarks, and a task that nobody knows

SCRIPT = "<script>alert(1)</script>"
TOY_MODELS = ("random", "untrained:one", "one", "one@layer=2", SCRIPT)


@pytest.fixture(scope="module")
def toy_page(tmp_path_factory, write_results, registered_toy, tiny_data):
    folder = tmp_path_factory.mktemp("results")
    tasks = ["a_coat", "toy"]
    write_results(folder / "results", [*TOY_MODELS[:3], SCRIPT], tiny_data, tasks, measures={"broken": True})
    options = {"layer": 2, "pooling": None, "precision": "float32", "compile": False}
    write_results(folder / "results", TOY_MODELS[3:4], tiny_data, tasks, model={"options": options})
    of_any, figures = sections.described_figures, folder / "figures"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "described_figures", lambda one: of_any(one) if one.info.name == "toy" else ())
        patch.setattr(listening, "spectrogram_png", lambda *_: b"")
        path = write_report([folder / "results"], folder / "r.html", data=tiny_data, figures=figures, progress=False)
    page = Page(path)
    page.written = {path.name for path in figures.iterdir()}
    return page


@pytest.mark.slow
def test_a_new_task_is_on_the_page_and_its_figures_in_the_folder(toy_page):
    headings = toy_page.tables()["Toy score on tiny, n = 2"][0]
    assert headings == ["model", "toy", "shine", "squeak", "groups", "wheels"]
    assert any("squeak: paired" in caption for caption in toy_page.tables())
    assert {"toy-shelf.svg", "toy-shelf.png"} <= toy_page.written
    assert SCRIPT not in toy_page.source
    assert any(attributes["alt"] == "A shelf, a panel a model." for attributes, _ in toy_page.find("img"))
    for words in ("it is broken.", "A toy is no instrument.", "Is it a toy?"):
        assert words in toy_page.text
    # The tables of layers and of sizes stand with the scores.
    assert [row[:2] for row in toy_page.tables()["Layers"]] == [["model", "layer"], ["one", "2"], ["one", "output"]]
    assert {"Layers", "Models by size"} <= {text for _, text in toy_page.find("h3")}


def test_of_a_whole_benchmark_of_many_tasks_the_head_says_the_sum(write_results, tiny_data, tmp_path, monkeypatch):
    monkeypatch.setattr(sections, "MOST_NAMED", 1)
    comparisons = compare_results([write_results(tmp_path, ["one"], tiny_data)], data=tiny_data)
    every = {comparisons[0].info.benchmark: tuple(comparison.info.name for comparison in comparisons)}
    monkeypatch.setattr(sections, "list_benchmarks", lambda: every)
    configurations = [comparison.configuration for comparison in comparisons]
    rows = sum(len(configuration.rows) for configuration in configurations)
    clips = sum(len(configuration.clip_ids) for configuration in configurations)
    assert _data_summary(comparisons) == f"Composition of scenes on tiny: 2 tasks on {rows} rows with {clips} clips"
    unopened = [replace(comparisons[0], configuration=None), *comparisons[1:]]
    assert _data_summary(unopened) == "Composition of scenes on tiny: 2 tasks"
    # Of a benchmark that is not whole each task is named.
    title = comparisons[0].info.title
    assert _data_summary(comparisons[:1]).startswith(f"{title} on tiny: {len(comparisons[0].ids)} ")
