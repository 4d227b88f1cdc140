import base64
import errno
import hashlib
import io
import re
import shutil
import socket
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from audio_compositionality.dataset_builder import RenderedBenchmark, build_dataset, open_benchmark
from audio_compositionality.dataset_builder.benchmark import ClipBatch
from audio_compositionality.evaluator import ResultError, write_report
from audio_compositionality.cli.command_line import main
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.report.report.listening import PLAYBACK_GAIN, chosen_samples, encode_mp3, find_samples, hear_samples
from audio_compositionality.evaluator.report.report.report_tables import listed, number_text
from audio_compositionality.evaluator.compare.table_formats import write_comparisons

ENCODERS = ("random", "log-mel-statistics", "org/one", "untrained:org/one", "org/two")
TRAINED = ("org/one", "org/two")
VOID = {"meta", "img", "br", "link", "input", "hr"}


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
        for number in self._open:
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
            kind, data = attributes["src"].removeprefix("data:").split(";base64,")
            found.append((kind, base64.b64decode(data, validate=True)))
        return found


@pytest.fixture(scope="module")
def config(small_config):
    """Clips of two seconds."""
    return replace(small_config, rate_range=(1, 3), duration=2)


@pytest.fixture(scope="module")
def benchmark(config, tmp_path_factory):
    return open_benchmark(build_dataset(config, tmp_path_factory.mktemp("data") / "data", progress=False))


@pytest.fixture(scope="module")
def results(benchmark, tmp_path_factory, write_results):
    return write_results(tmp_path_factory.mktemp("results"), ENCODERS, benchmark)


@pytest.fixture(scope="module")
def comparisons(results):
    return compare_results([results])


@pytest.fixture(scope="module")
def page(results, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "socket", lambda *_, **__: pytest.fail("the report reaches for the network"))
        out = tmp_path_factory.mktemp("page") / "report.html"
        assert write_report([results], out, command="the 'command' & <its> options", progress=False) == out
    return Page(out)


@pytest.fixture
def without_figures(monkeypatch):
    """For tests of what else is on the page: figures and spectrograms take most of the time."""
    monkeypatch.setattr("audio_compositionality.evaluator.report.report.report_sections._DRAWINGS", ())
    monkeypatch.setattr("audio_compositionality.evaluator.report.report.listening.spectrogram_png", lambda *_: b"")


def shown_samples(page):
    return [text.split()[-1] for _, text in page.find("h4") if text.startswith(("Highest", "Lowest"))]


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
        assert headings == ["Summary", "Scores", "Figures", "Diversity", "Listen", "How it was computed", "Cite"]
        assert "5 encoders (2 baselines, 1 untrained network)" in page.text
        assert "on 12 quadruples" in page.text
        assert "on 8 test scenes" in page.text
        assert "A high score alone is no evidence of learned composition." in page.text
        # The later encoders were made to score higher, and the twin stands between the two.
        assert "Of the 2 encoders that are neither baselines nor untrained, org/two has the highest A-COAT" in page.text

    def test_has_the_scores_of_the_results(self, page, comparisons):
        tables = page.tables()
        for comparison, name in zip(comparisons, ("A-COAT", "A-TRE"), strict=True):
            (caption,) = (caption for caption in tables if caption.startswith(f"{name} of 5 encoders on "))
            headings, *rows = tables[caption]
            assert len(rows) == 5
            for row, entry, interval in zip(rows, comparison.entries, comparison.intervals, strict=True):
                cells = dict(zip(headings, row, strict=True))
                kind = {
                    "random": "baseline",
                    "log-mel-statistics": "baseline",
                    "untrained:org/one": "untrained network",
                }
                assert cells["encoder"] == entry.label + kind.get(entry.label, "encoder")
                bounds = "" if interval is None else f"[{interval[0]:.3f}, {interval[1]:.3f}]"
                assert cells[name] == f"{entry.score.mean():.3f}{bounds}".replace("-", "−")
                assert cells["sd"] == f"{np.std(entry.score, ddof=1):.3f}"
                assert cells["n"] == str(len(entry.score))
                assert cells["dim"] == str(entry.result.output_dim)
                assert cells["date"] == "2026-01-01"
            assert [row[2] for row in rows] == comparison.letters
        assert comparisons[1].intervals == [None] * 5  # 8 scenes are too few

    def test_has_every_paired_test(self, page, comparisons):
        tables = page.tables()
        for centred, tests in (("", comparisons[0].tests), (", centred", comparisons[0].centred_tests)):
            rows = tables[f"A-COAT{centred}: paired differences, n = 12, 10 tests"][1:]
            assert len(rows) == len(tests) == 10
            for row, test in zip(rows, tests, strict=True):
                assert row[1].startswith(number_text(test.difference) + "[")
                assert row[4] == ("< 0.001" if test.p_adjusted < 0.001 else f"{test.p_adjusted:.3f}")
        assert "too few samples" in tables["A-TRE: paired differences, n = 8, 10 tests"][1][1]

    def test_says_how_it_was_computed(self, page, comparisons, results):
        for words in (
            comparisons[0].fingerprint,
            "version 1",
            "Benjamini and Hochberg",
            "seeds 0, 1, 2",
            "max_steps 600",
        ):
            assert words in page.text
        assert "the 'command' & <its> options" in page.text

    def test_gives_the_citation_of_the_readme(self, page):
        readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
        (citation,) = re.findall(r"```bibtex\n(.*?)\n```", readme, re.DOTALL)
        assert page.find("pre")[-1][1] == citation


class TestFigures:
    def test_are_well_formed_pictures_with_words(self, page):
        pictures = [(kind, data) for kind, data in page.media("img") if kind == "image/svg+xml"]
        assert len(pictures) >= 11
        for _, data in pictures:
            assert data.startswith(b"<svg")
            assert b"<script" not in data
        assert any("Box plots of A-COAT over 12 quadruples" in a["alt"] for a, _ in page.find("img"))

    def test_are_written_to_a_folder(self, results, tmp_path):
        out = tmp_path / "report.html"
        assert main(["report", str(results), "--out", str(out), "--figures", str(tmp_path / "figures")]) == 0
        names = {path.name for path in (tmp_path / "figures").iterdir()}
        for name in ("a_coat-score_boxes", "a_tre-diversity_panels", "a_coat-step_plane", "a_tre-significance_map"):
            assert {f"{name}.svg", f"{name}.png"} <= names
        assert {path.rsplit(".", 1)[0] for path in names if path.endswith(".svg")} == {
            path.rsplit(".", 1)[0] for path in names if path.endswith(".png")
        }


class TestSamples:
    def test_are_the_highest_and_the_lowest(self, page, comparisons):
        expected = []
        for comparison in comparisons:
            places = [comparison.labels.index(name) for name in TRAINED]
            order = np.argsort(-comparison.scores[:, places].mean(axis=1))
            expected += [comparison.ids[k] for k in (*order[:3], *order[::-1][:3])]
        assert shown_samples(page) == expected

    def test_are_those_of_one_encoder_on_request(self, without_figures, results, comparisons, tmp_path):
        page = Page(write_report([results], tmp_path / "x.html", encoder="random", progress=False))
        entry = comparisons[0].entries[comparisons[0].labels.index("random")]
        order = np.argsort(-entry.score)
        assert shown_samples(page)[:6] == [comparisons[0].ids[k] for k in (*order[:3], *order[::-1][:3])]
        assert "Chosen by the score of random." in page.text

    def test_are_chosen_by_all_where_there_are_only_baselines(
        self, without_figures, benchmark, write_results, tmp_path
    ):
        results = write_results(tmp_path / "results", ["random", "downsample"], benchmark, tasks=["a_coat"])
        page = Page(write_report([results], tmp_path / "x.html", progress=False))
        (comparison,) = compare_results([results])
        assert shown_samples(page)[0] == comparison.ids[int(comparison.scores.mean(axis=1).argmax())]
        assert "Chosen by the mean score over all encoders." in page.text
        assert (
            "All results are of baselines and untrained networks. The highest A-COAT is that of downsample" in page.text
        )

    def test_can_be_heard_in_the_order_of_the_data(self, page, benchmark):
        ids = [row["id"] for row in benchmark.rows("a_coat")]
        heard = page.media("audio")
        assert len(heard) == 6 * 4 + 6
        first = ids.index(shown_samples(page)[0])
        (batch,) = benchmark.batches("a_coat", 4, range(first, first + 1))
        for place, (kind, data) in enumerate(heard[:4]):
            samples, rate = soundfile.read(io.BytesIO(data))
            assert (kind, rate, len(samples)) == ("audio/mpeg", 32_000, 64_000)
            fits = [np.corrcoef(samples, waveform)[0, 1] for waveform in batch.waveforms]
            assert np.argmax(fits) == place
            assert max(fits) > 0.9

    def test_keep_their_level(self, page, benchmark):
        """Every clip is as loud as in the data, less one gain for all, so that B is as much louder than A as it is."""
        heard = iter(page.media("audio"))
        for task, ids in (("a_coat", shown_samples(page)[:6]), ("a_tre", shown_samples(page)[6:])):
            numbers = {row["id"]: number for number, row in enumerate(benchmark.rows(task))}
            for id in ids:
                (batch,) = benchmark.batches(task, 4, range(numbers[id], numbers[id] + 1))
                for waveform in batch.waveforms:
                    samples, _ = soundfile.read(io.BytesIO(next(heard)[1]))
                    change = np.sqrt(np.mean(samples**2) / np.mean((PLAYBACK_GAIN * waveform) ** 2))
                    assert abs(20 * np.log10(change)) < 0.5
                    assert np.abs(samples).max() <= 1
        assert next(heard, None) is None

    def test_are_seen_and_described(self, page, benchmark):
        pictures = [Image.open(io.BytesIO(data)) for kind, data in page.media("img") if kind == "image/png"]
        assert len(pictures) == 30
        assert {picture.size for picture in pictures} == {(320, 120)}
        first = shown_samples(page)[0]
        (row,) = (row for row in benchmark.rows("a_coat") if row["id"] == first)
        start = next(k for k, (tag, a) in enumerate(page.elements) if (a.get("id") or "").endswith("1-sources"))
        rows = [
            "".join(page.texts[k]).strip()
            for k, (tag, _) in enumerate(page.elements)
            if k > start and tag in ("td", "th")
        ]
        expected = ["in", "timbre", "pitch", "rate", "amplitude"]
        for name in "ACT":
            for source in row["metadata"][name]:
                expected += [name, *(source[f"{word}_label"] for word in expected[1:5])]
        assert rows[: len(expected)] == expected

    def test_have_every_encoders_score(self, page, comparisons):
        first = shown_samples(page)[0]
        rows = page.tables()[f"Scores of {first}"][1:]
        place = comparisons[0].ids.index(first)
        assert rows == [
            [entry.label, number_text(entry.score[place]), number_text(entry.centred[place])]
            for entry in comparisons[0].entries
        ]

    @pytest.mark.parametrize(
        ("scores", "expected"),
        [
            ([0.5], [("highest", 1, 0)]),
            ([0.1, 0.9], [("highest", 1, 1), ("lowest", 1, 0)]),
            (
                [0, 4, 2, 1, 3],
                [("highest", r, k) for r, k in ((1, 1), (2, 4), (3, 2))] + [("lowest", 1, 0), ("lowest", 2, 3)],
            ),
            ([1, 1, 1, 1], [("highest", 1, 0), ("highest", 2, 1), ("lowest", 1, 3), ("lowest", 2, 2)]),
        ],
    )
    def test_no_sample_is_both(self, scores, expected):
        assert chosen_samples(np.array(scores, np.float64)) == expected

    def test_are_cut_alike_where_they_would_take_too_much(self, comparisons, benchmark):
        found = find_samples(comparisons[1], [0], benchmark)
        whole, cut = list(hear_samples(found, 10**9)), list(hear_samples(found, 30_000))
        assert not any(clip.is_cut for sample in whole for clip in sample.clips)
        assert all(clip.is_cut for sample in cut for clip in sample.clips)
        assert 20_000 < sum(len(clip.audio) for sample in cut for clip in sample.clips) <= 30_000
        (seconds,) = {clip.seconds for sample in cut for clip in sample.clips}
        for before, after in zip(whole, cut, strict=True):
            one, two = (soundfile.read(io.BytesIO(sample.clips[0].audio))[0] for sample in (before, after))
            assert len(two) == round(seconds * 32_000) < len(one)
            assert np.corrcoef(one[: len(two)], two)[0, 1] > 0.9

    def test_are_cut_where_the_page_would_be_too_large(self, results, tmp_path, without_figures, monkeypatch):
        size = len(write_report([results], tmp_path / "whole.html", progress=False).read_bytes())
        monkeypatch.setattr("audio_compositionality.evaluator.report.report.MOST_BYTES", size - 100_000)
        page = Page(write_report([results], tmp_path / "cut.html", progress=False))
        assert len(page.source.encode()) <= size - 100_000
        assert len(page.find("audio")) == 30
        assert "Of a clip at most the first" in page.text

    @pytest.mark.parametrize("rate", [8_000, 11_000, 44_100, 96_000])
    def test_any_rate_can_be_played(self, rate):
        tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(2 * rate) / rate).astype(np.float32)
        samples, played = soundfile.read(io.BytesIO(encode_mp3(tone, rate)))
        assert len(samples) / played == pytest.approx(2, abs=0.001)
        assert np.abs(np.fft.rfft(samples)).argmax() / 2 == 440

    def test_of_a_damaged_clip_say_so(self, comparisons, benchmark):
        class Damaged:
            source = "damaged"

            def rows(self, task):
                return benchmark.rows(task)

            def batches(self, task, batch_size, rows=None, *, keep_invalid=False):
                (batch,) = benchmark.batches(task, batch_size, rows)
                waveforms = batch.waveforms.copy()
                waveforms[2] = np.nan
                yield ClipBatch(batch.ids, waveforms, batch.sample_rate, {2: "is damaged"} if keep_invalid else {})

        (first, *_) = hear_samples(find_samples(comparisons[0], [0], Damaged()), 10**9)
        assert [clip.problem for clip in first.clips] == [None, None, "is damaged", None]
        assert not first.clips[2].audio
        assert first.clips[3].audio


NAMES = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "\"' autofocus onfocus=alert(1) x='\"",
    "{{ 7 * 7 }}{% raw %}",
    "safe\u202egpj.exe\u2066\x00\x1b[31m",
    "long-" + "x" * 190,
    "&lt;b&gt; & &amp;",
)


@pytest.fixture(scope="module")
def hostile(config, tmp_path_factory, write_results):
    names = ("<script>", "\"'><b>&lt;", "{{x}}")
    voices = tuple(replace(v, name=n) for v, n in zip(config.voices, names, strict=True))
    tmp_path = tmp_path_factory.mktemp("hostile")
    folder = build_dataset(replace(config, voices=voices), tmp_path / "<b onclick=alert(1)>", progress=False)
    results = write_results(
        tmp_path / "results",
        NAMES,
        open_benchmark(folder),
        encoder_revision="<u>revision</u>",
        paradigm="<u>paradigm</u>",
        licence="<u>licence</u>",
        device="<script>device</script>",
        versions={"<script>x</script>": "<script>y</script>"},
        skipped=[{"id": "<i>clip</i>", "reason": "</td><script>reason</script>" + "r" * 10_000}],
        options={"layer": None, "pooling": "<s>", "precision": "<s>", "compile": True},
        precision_deviation={"relative_mean": 0.1, "relative_max": 0.2, "spread_ratio": 0.3, "clips": 4},
    )
    out = write_report([results], tmp_path / "r.html", command="x '</script><script>'", progress=False)
    return Page(out)


class TestHostileText:
    def test_is_shown_as_text(self, hostile):
        shown = hostile.text
        for name in NAMES[:4]:
            assert name in shown
        assert "&lt;b&gt; & &amp;" in shown
        for words in (
            "<script>device</script>",
            "<u>revision</u>",
            "<u>paradigm</u>",
            "<u>licence</u>",
            "</td><script>reason</script>",
            "<i>clip</i>",
        ):
            assert words in shown
        assert "49" not in [text for _, text in hostile.find("th")]

    def test_becomes_no_element_and_no_attribute(self, hostile, page):
        assert {tag for tag, _ in hostile.elements} == {tag for tag, _ in page.elements}
        assert len(hostile.find("script")) == 1
        names = {name for _, attributes in page.elements for name in attributes}
        assert {name for _, attributes in hostile.elements for name in attributes} <= names

    def test_has_no_character_that_moves_others(self, hostile):
        assert {character for character in set(hostile.source) if not character.isprintable()} == {"\n"}
        assert "safe\ufffdgpj.exe\ufffd\ufffd\ufffd[31m" in hostile.text

    def test_is_shortened(self, hostile):
        assert "x" * 150 not in hostile.text
        assert "r" * 150 not in hostile.text
        assert len(hostile.source) < 5_000_000


@pytest.mark.usefixtures("without_figures")
class TestWithoutTheData:
    @pytest.fixture
    def gone(self, benchmark, tmp_path, write_results):
        folder = tmp_path / "data"
        shutil.copytree(benchmark.source, folder)
        results = write_results(tmp_path / "results", ENCODERS[1:3], open_benchmark(folder))
        folder.rename(tmp_path / "elsewhere")
        return results, tmp_path / "elsewhere"

    def test_the_report_says_what_is_missing_and_why(self, gone, tmp_path):
        results, _ = gone
        page = Page(write_report([results], tmp_path / "x.html", progress=False))
        assert not page.find("audio")
        assert "There is nothing to listen to" in page.text
        assert str(tmp_path / "data")[-40:] in page.text
        assert "--data" in page.text
        assert "A-COAT of 2 encoders on 12 quadruples, the highest mean first" in page.tables()

    def test_the_report_is_whole_where_they_are_named(self, gone, tmp_path):
        results, elsewhere = gone
        page = Page(write_report([results], tmp_path / "x.html", data=str(elsewhere), progress=False))
        assert len(page.find("audio")) == 30

    def test_shards_that_are_gone_cost_the_clips_alone(self, gone, tmp_path, monkeypatch):
        results, elsewhere = gone
        opened = open_benchmark(elsewhere)
        monkeypatch.setattr("audio_compositionality.evaluator.compare.comparison.open_benchmark", lambda *_: Unreadable(opened))
        page = Page(write_report([results], tmp_path / "x.html", data=str(elsewhere), progress=False))
        assert "There is nothing to listen to: [Errno 5] gone." in page.text
        assert any(caption.startswith("Slope of A-COAT against diversity") for caption in page.tables())


class Unreadable:
    def __init__(self, opened):
        self.rows, self.source, self.fingerprint = opened.rows, opened.source, opened.fingerprint

    def batches(self, *_, **__):
        raise OSError(errno.EIO, "gone")


def test_two_data_sets_are_told_apart(without_figures, results, config, tmp_path, write_results):
    other = build_dataset(replace(config, seed=1), tmp_path / "other", progress=False)
    more = write_results(tmp_path / "results", ["org/one"], open_benchmark(other))
    page = Page(write_report([results, more], tmp_path / "x.html", progress=False))
    assert len(page.find("audio")) == 60
    titles = [text for _, text in page.find("h3") if text.startswith("A-COAT on ")]
    assert len(set(titles)) == 2


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the spread of one number
def test_one_sample_and_one_encoder_are_enough(without_figures, config, tmp_path, write_results):
    tiny = replace(config, quadruples=1, test_scenes=1, train_scenes=20)
    folder = build_dataset(tiny, tmp_path / "data", progress=False)
    results = write_results(tmp_path / "results", ["org/one"], open_benchmark(folder), std=0.0, interval=None)
    page = Page(write_report([results], tmp_path / "x.html", progress=False))
    assert len(page.find("audio")) == 5
    assert "org/one, the only encoder that is neither a baseline nor untrained, has the" in page.text


class TestTheFile:
    def test_a_full_disk_leaves_the_old_report(self, without_figures, results, tmp_path, monkeypatch):
        out = tmp_path / "report.html"
        out.write_text("old")

        def full(*_, **__):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(Path, "write_text", full)
        with pytest.raises(OSError, match="No space left"):
            write_report([results], out, progress=False)
        assert out.read_bytes() == b"old"
        assert [path.name for path in tmp_path.iterdir()] == ["report.html"]

    def test_its_folder_is_made(self, without_figures, results, tmp_path):
        assert main(["report", str(results), "--out", str(tmp_path / "a" / "b" / "r.html")]) == 0
        assert "audio-compositionality report" in Page(tmp_path / "a" / "b" / "r.html").text

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--encoder", "org/tow"], "there is no result of the encoder 'org/tow'; did you mean 'org/two'?"),
            (["--format", "htm"], "unknown format 'htm'; did you mean 'html'?"),
            (["--data", "nowhere"], "no data 'nowhere'"),
            (["--data", "mini"], "mini (ed8f3e8f) is not the data of these results"),
            (["--out", "."], "is a folder"),
            (["--format", "csv", "--encoder", "random"], "which only the format html has"),
        ],
    )
    def test_a_mistake_is_one_line_and_leaves_nothing(self, arguments, message, results, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        assert main(["report", str(results), *arguments]) == 2
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert error.startswith("error: ")
        assert message in error
        assert not list(tmp_path.iterdir())

    def test_no_results_are_an_error(self, tmp_path):
        with pytest.raises(ResultError, match="no such file or folder"):
            write_report([tmp_path / "nothing"], tmp_path / "x.html")

    @pytest.mark.parametrize("format", ["markdown", "latex", "csv", "json"])
    def test_the_other_formats_are_tables(self, format, results, comparisons, tmp_path, capsys):
        assert main(["report", str(results), "--format", format]) == 0
        printed = capsys.readouterr().out
        assert printed == write_comparisons(comparisons, format)
        assert main(["report", str(results), "--format", format, "--out", str(tmp_path / "t")]) == 0
        assert (tmp_path / "t").read_text("utf-8") == printed


@pytest.mark.usefixtures("without_figures")
class TestOfARun:
    @pytest.fixture
    def run(self, config, tmp_path, monkeypatch):
        small = RenderedBenchmark("mini", replace(config, quadruples=2, train_scenes=20, test_scenes=2))
        monkeypatch.setattr("audio_compositionality.dataset_builder.open_benchmark", lambda _: small)
        monkeypatch.setattr("audio_compositionality.evaluator.compare.comparison.open_benchmark", lambda _: small)
        monkeypatch.setattr("audio_compositionality.tasks.scoring.FEW_STEPS", 2)
        monkeypatch.setattr("audio_compositionality.cli.command_line.BASELINES", ("random",))
        out = tmp_path / "results"
        return out, small, lambda: main(["run", "--out", str(out), "--seeds", "1", "--device", "cpu"])

    def test_has_the_results_of_earlier_encoders_too(self, run, write_results, capsys):
        out, small, main_job = run
        write_results(out, ["org/earlier"], small)
        assert main_job() == 0
        assert f"The report is {out / 'report.html'}" in capsys.readouterr().out
        page = Page(out / "report.html")
        assert "A-COAT of 2 encoders on 2 quadruples, the highest mean first" in page.tables()
        assert f"audio-compositionality run --out {out}" in page.text

    def test_a_damaged_result_beside_it_is_told_of(self, run, capsys):
        out, _, main_job = run
        (out / "other" / "1").mkdir(parents=True)
        (out / "other" / "1" / "a_coat.json").write_text("{")
        assert main_job() == 0
        assert "note: there is no report: " in capsys.readouterr().err
        assert not (out / "report.html").exists()


def test_names_are_listed_in_words():
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(list("abcdefgh"), most=3) == "a, b, c and 5 more"


@pytest.mark.parametrize(
    ("value", "text"), [(0.12345, "0.123"), (-0.5, "−0.500"), (-0.0001, "0.000"), (None, "–"), (2, "2.000")]
)
def test_numbers_are_typeset(value, text):
    assert number_text(value) == text
