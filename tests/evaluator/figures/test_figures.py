"""Figures: what is drawn is what was given, names of strangers stay names, and colours stay apart to all eyes."""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
from dataclasses import replace
from itertools import combinations, pairwise
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.text import Text
from PIL import Image

from audio_compositionality.evaluator.figures.figures import figure_kinds
from audio_compositionality.evaluator.figures.figures import figure_pairs
from audio_compositionality.evaluator.figures.figures import figures
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.figures.figures.figure_files import figure_style
from audio_compositionality.evaluator.figures.figures.figure_layout import COLUMN, LONGEST, PAGE, label_places, short_label, short_labels, title_lines
from audio_compositionality.evaluator.figures.figures.figure_pairs import dots_of
from audio_compositionality.evaluator.figures.figures.figures import (FigureError, control_scatter, diversity_panels, figure_svg, save_figure, score_boxes, significance_map, step_plane)
from audio_compositionality.evaluator.compare.statistics import PairedTest, fit_line

ENCODERS = ("random", "untrained:whisper-base", "whisper-base", "org/model")
HOSTILE = (
    "<script>alert(1)</script>",
    r"$\frac{1}{2}$ \alpha_{x}^",
    "a&amp;b]]>-->'\"",
    "_hidden",
    "line\nbreak\x00\x1b[31m\u202eevil\ud800",
    "x" * 300,
    "日本語/模型",
    "",
)
ALL = (score_boxes, diversity_panels, control_scatter, significance_map, step_plane)


@pytest.fixture(scope="module")
def comparisons(tmp_path_factory, write_results):
    return compare_results([write_results(tmp_path_factory.mktemp("results"), ENCODERS)])


@pytest.fixture(scope="module")
def coat(comparisons):
    return comparisons[0]


@pytest.fixture(scope="module")
def tre(comparisons):
    return comparisons[1]


def renamed(comparison, names):
    """The comparison with as many entries as names, alternately its own."""
    own = comparison.entries
    entries = [replace(own[k % len(own)], label=name) for k, name in enumerate(names)]
    return replace(comparison, entries=tuple(entries))


def fewer(comparison, n):
    ids = comparison.ids[:n]
    entries = tuple(entry.at(ids) for entry in comparison.entries)
    return replace(comparison, entries=entries, samples=comparison.samples.at(range(n)))


def texts(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def foot(figure):
    """The notes below the panels, line by line from the top."""
    return " ".join(text.get_text() for text in reversed(figure.texts))


def svg_texts(svg):
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


class TestScoreBoxes:
    @pytest.mark.parametrize("measure", ["score", "centred"])
    def test_boxes_are_the_quartiles_and_the_notches_of_the_textbook(self, coat, measure):
        axes = score_boxes(coat, measure).axes[0]
        boxes = [patch for patch in axes.patches if isinstance(patch, PathPatch)]
        order = np.argsort(-coat.values(measure).mean(axis=0))
        assert len(boxes) == len(order) == 4
        for box, column in zip(boxes, order, strict=True):
            values = coat.values(measure)[:, column]
            low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
            x = box.get_path().vertices[:, 0]
            # McGill, Tukey and Larsen 1978: median ± 1.57 IQR / √n.
            notch = 1.57 * (high - low) / np.sqrt(64)
            expected = [low, median - notch, median, median + notch, high]
            np.testing.assert_allclose(np.unique(x.round(9)), expected, atol=1e-8)

    def test_rows_go_down_from_the_highest_mean(self, coat):
        axes = score_boxes(coat).axes[0]
        assert [label.get_text() for label in axes.get_yticklabels()] == list(coat.labels)
        means = [line for line in axes.lines if line.get_marker() == "D"]
        np.testing.assert_allclose([line.get_xdata()[0] for line in means], coat.scores.mean(axis=0))
        rows = [line.get_ydata()[0] for line in means]
        assert rows == sorted(rows)
        assert axes.yaxis_inverted()

    def test_the_interval_is_that_of_the_comparison(self, coat):
        axes = score_boxes(coat).axes[0]
        drawn = [tuple(line.get_xdata()) for line in axes.lines if len(line.get_xdata()) == 2]
        assert set(coat.intervals) <= set(drawn)

    def test_whiskers_and_outliers_hold_all_samples(self, coat):
        values = coat.scores.copy()
        values[1, 1] = -0.99
        entries = tuple(replace(e, score=values[:, k]) for k, e in enumerate(coat.entries))
        axes = score_boxes(replace(coat, entries=entries)).axes[0]
        points = next(line for line in axes.lines if line.get_marker() == ".").get_xdata()
        far = []
        for column in values.T:
            low, high = np.quantile(column, [0.25, 0.75])
            far += column[(column < low - 1.5 * (high - low)) | (column > high + 1.5 * (high - low))].tolist()
        assert -0.99 in far
        np.testing.assert_array_equal(np.sort(points), np.sort(far))

    def test_kinds_differ_by_hatch_and_colour(self, coat):
        axes = score_boxes(coat).axes[0]
        boxes = dict(zip(coat.labels, (p for p in axes.patches if isinstance(p, PathPatch)), strict=True))
        looks = {label: (box.get_hatch(), box.get_facecolor()) for label, box in boxes.items()}
        assert looks["whisper-base"] == looks["org/model"]
        assert len({looks[label] for label in ("random", "untrained:whisper-base", "whisper-base")}) == 3
        assert len({looks[label][0] for label in ("random", "untrained:whisper-base", "whisper-base")}) == 3

    def test_few_samples_have_no_notch_and_no_interval(self, coat):
        axes = score_boxes(fewer(coat, 9)).axes[0]
        boxes = [patch for patch in axes.patches if isinstance(patch, PathPatch)]
        assert all(len(np.unique(box.get_path().vertices[:, 0].round(12))) == 2 for box in boxes)
        assert all(np.ptp(line.get_xdata()) == 0 for line in axes.lines if line.get_linewidth() == 0.8)

    def test_scores_near_one_are_told_apart(self, tre):
        near = tuple(replace(e, score=1 - 10.0 ** -(k + 1) * (1 - e.score / 10)) for k, e in enumerate(tre.entries))
        axes = score_boxes(replace(tre, entries=near)).axes[0]
        pixels = axes.transData.transform([(x, 0) for x in (0.9, 0.99, 0.999)])[:, 0]
        np.testing.assert_allclose(np.diff(pixels)[0] / np.diff(pixels)[1], 1, atol=0.1)
        assert "log scale of 1 − A-TRE" in axes.get_xlabel()

    def test_a_measure_that_is_not_there(self, coat):
        with pytest.raises(FigureError, match="measure 'mean' is unknown; it is one of score, centred"):
            score_boxes(coat, "mean")
        without = replace(coat, entries=(replace(coat.entries[0], centred=None), *coat.entries[1:]))
        with pytest.raises(FigureError, match="not all results of a_coat have centred scores"):
            score_boxes(without, "centred")


class TestDiversityPanels:
    def test_points_line_and_band(self, coat):
        x = coat.samples.entropy["total"]
        panels = diversity_panels(coat).axes
        assert len(panels) == 4
        for axes, y, label in zip(panels, coat.scores.T, coat.labels, strict=True):
            points, line = axes.lines
            np.testing.assert_array_equal(points.get_xydata(), np.stack([x, y], axis=1))
            assert points.get_rasterized()
            fit = fit_line(x, y)
            ends = np.array([x.min(), x.max()])
            np.testing.assert_allclose(line.get_xydata(), np.stack([ends, fit.intercept + fit.slope * ends], axis=1))
            band = axes.collections[0].get_paths()[0].vertices
            _, low, high = fit.band(ends[:1])
            drawn = band[np.isclose(band[:, 0], ends[0]), 1]
            np.testing.assert_allclose([drawn.min(), drawn.max()], [low[0], high[0]])
            title = axes.get_title(loc="left").replace("−", "-")
            numbers = [float(number) for number in re.findall(r"-?\d+\.\d+", title)]
            np.testing.assert_allclose(numbers, [fit.slope, *fit.slope_interval], atol=5.1e-4)
            assert title.startswith(label)

    def test_panels_of_a_coat_have_one_axis(self, coat, tre):
        assert len({axes.get_ylim() for axes in diversity_panels(coat).axes}) == 1
        assert len({axes.get_ylim() for axes in diversity_panels(tre).axes}) == 4
        for axes, y in zip(diversity_panels(tre).axes, tre.scores.T, strict=True):
            assert axes.get_ylim()[0] < y.min() < y.max() < axes.get_ylim()[1]

    def test_nothing_is_known_of_the_samples(self, coat):
        unknown = replace(coat, samples=None, missing="the data 'x' are not here")
        with pytest.raises(FigureError, match="against diversity: the data 'x' are not here"):
            diversity_panels(unknown)

    def test_too_few_samples(self, coat):
        assert sum("too few samples" in text for text in texts(diversity_panels(fewer(coat, 9)))) == 4

    def test_scores_that_nearly_agree_look_even(self, tre):
        entries = tuple(replace(e, score=0.998 + e.score * 1e-6) for e in tre.entries)
        axes = diversity_panels(replace(tre, entries=entries)).axes[0]
        assert np.ptp(axes.get_ylim()) == pytest.approx(0.01)


class TestControlScatter:
    def test_a_point_an_encoder(self, coat):
        panels = {axes.get_xlabel(): axes for axes in control_scatter(coat).axes}
        assert list(panels) == ["matched null", "adjusted", "centred", "top-1"]
        points = [line for line in panels["matched null"].lines if line.get_marker() in "o^s"]
        assert [line.get_marker() for line in points] == ["o", "o", "^", "s"]
        np.testing.assert_allclose([line.get_xdata()[0] for line in points], 0.12)
        np.testing.assert_allclose([line.get_ydata()[0] for line in points], coat.scores.mean(axis=0))
        bars = [tuple(line.get_ydata()) for line in panels["centred"].lines if line.get_linewidth() == 0.6]
        assert bars == coat.intervals

    def test_controls_of_a_tre(self, tre):
        labels = [axes.get_xlabel() for axes in control_scatter(tre).axes]
        assert labels == ["constant", "gain", "centred", "ridge R²", "top-1"]

    def test_the_null_where_not_all_have_a_matched_one(self, coat):
        first = coat.entries[0]
        without = replace(first, result=replace(first.result, controls={**first.result.controls, "matched_null": None}))
        axes = control_scatter(replace(coat, entries=(without, *coat.entries[1:]))).axes[0]
        assert axes.get_xlabel() == "null"

    def test_a_control_that_one_has_not_leaves_out_its_point_and_keeps_the_numbers(self, tre):
        second = tre.entries[1]
        controls = {name: value for name, value in second.result.controls.items() if name != "gain"}
        entries = (tre.entries[0], replace(second, result=replace(second.result, controls=controls)), *tre.entries[2:])
        figure = control_scatter(replace(tre, entries=entries))
        gain = figure.axes[1]
        assert sorted(text.get_text() for text in gain.texts) == ["1", "3", "4"]
        assert sorted(text.get_text() for text in figure.axes[0].texts) == ["1", "2", "3", "4"]

    def test_the_line_where_score_and_control_are_equal(self, tre):
        constant, gain, centred, ridge, top = control_scatter(tre).axes
        for axes in (constant, centred):
            line = next(line for line in axes.lines if line.get_linestyle() == "--")
            np.testing.assert_allclose(line.get_xdata(), line.get_ydata())
        for axes in (gain, ridge, top):
            assert all(line.get_linestyle() != "--" for line in axes.lines)
        chance = next(line for line in top.lines if line.get_linestyle() == ":")
        assert chance.get_xdata()[0] == pytest.approx(1 / 64)
        assert top.get_xlim()[0] < 1 / 64

    def test_the_key_names_the_numbers(self, coat):
        drawn = [text.get_text() for text in control_scatter(coat).texts]
        pairs = dict(pairwise(drawn))
        assert [pairs[str(k + 1)] for k in range(4)] == list(coat.labels)

    def test_no_controls(self, coat):
        entries = tuple(replace(e, result=replace(e.result, controls={})) for e in coat.entries)
        with pytest.raises(FigureError, match="the results of a_coat have no controls"):
            control_scatter(replace(coat, entries=entries))


class TestSignificanceMap:
    def test_colours_are_the_differences_and_dots_the_corrected_p(self, coat):
        axes = significance_map(coat).axes[0]
        means = coat.scores.mean(axis=0)
        drawn = axes.images[0].get_array()
        np.testing.assert_allclose(drawn.filled(0), means[:, None] - means)
        assert drawn.mask.diagonal().all()
        assert drawn.mask.sum() == 4
        found = {}
        for line in axes.lines:
            subpaths = len(line.get_marker().to_polygons())
            for x, y in zip(*line.get_data(), strict=True):
                found[int(y), int(x)] = subpaths
        for test in coat.tests:
            dots = sum(test.p_adjusted <= level for level in (0.05, 0.01, 0.001))
            assert found.get((test.first, test.second), 0) == dots
            assert found.get((test.second, test.first), 0) == dots
        assert any(test.p_adjusted > 0.05 for test in coat.tests) or len(found) == 12

    @pytest.mark.parametrize(("p", "dots"), [(0.05, 1), (0.0500001, 0), (0.01, 2), (0.001, 3), (0.2, 0), (None, 0)])
    def test_levels(self, p, dots):
        test = PairedTest(0, 2, 64, 0.1, None, None, p, p, None)
        expected = np.zeros((3, 3), int)
        expected[0, 1] = expected[1, 0] = dots
        np.testing.assert_array_equal(dots_of([test], [2, 0, 1]), expected)

    def test_rows_are_in_the_order_of_the_measure(self, coat):
        turned = replace(coat, entries=tuple(replace(e, centred=-e.score) for e in coat.entries))
        axes = significance_map(turned, "centred").axes[0]
        names = [label.get_text().rsplit("  ", 1) for label in axes.get_yticklabels()]
        assert names == [[label, str(k)] for k, label in enumerate(reversed(coat.labels), 1)]
        above = axes.images[0].get_array().filled(0)[np.triu_indices(4, 1)]
        assert (above >= 0).all()

    def test_too_few_samples_are_hatched(self, coat):
        few = significance_map(fewer(coat, 9))
        (rectangle,) = [patch for patch in few.axes[0].patches if isinstance(patch, Rectangle) and patch.get_hatch()]
        assert (rectangle.get_width(), rectangle.get_height()) == (4, 4)
        assert not any(len(line.get_xdata()) for line in few.axes[0].lines)
        assert any("too few samples" in text for text in texts(few))
        assert not any(patch.get_hatch() for patch in significance_map(coat).axes[0].patches)

    def test_one_encoder(self, coat):
        with pytest.raises(FigureError, match="one result of a_coat: nothing to test it against"):
            significance_map(replace(coat, entries=coat.entries[:1]))


class TestStepPlane:
    def test_steps_and_their_lines(self, coat):
        figure = step_plane(coat)
        assert len(figure.axes) == 4
        for axes, entry in zip(figure.axes, coat.entries, strict=True):
            everything, first, second = axes.lines
            np.testing.assert_array_equal(everything.get_xydata(), entry.steps.reshape(-1, 2))
            np.testing.assert_array_equal(first.get_xydata(), entry.steps[:, :2])
            np.testing.assert_array_equal(second.get_xydata(), entry.steps[:, 2:])
            (lines,) = [found for found in axes.collections if isinstance(found, LineCollection)]
            np.testing.assert_array_equal(np.array(lines.get_segments()), entry.steps.reshape(-1, 2, 2))
            assert (axes.get_xlabel(), axes.get_ylabel()) == ("axis 1 (40 %)", "axis 2 (20 %)")
            assert axes.get_aspect() == 1
            assert all(artist.get_rasterized() for artist in (*axes.lines, lines))

    def test_many_quadruples_are_joined_in_part_and_all_are_drawn(self, coat):
        many = np.random.default_rng(0).normal(size=(2_000, 4))
        ids = tuple(str(k) for k in range(2_000))
        entry = replace(coat.entries[0], ids=ids, score=np.zeros(2_000), centred=None, steps=many)
        figure = step_plane(replace(coat, entries=(entry,), samples=None))
        everything, first, second = figure.axes[0].lines
        assert len(everything.get_xdata()) == 4_000
        assert len(first.get_xdata()) == len(second.get_xdata()) == 100
        rows = {tuple(row) for row in many}
        assert all(row in rows for row in map(tuple, np.hstack([first.get_xydata(), second.get_xydata()])))
        assert "Joined are 100 of the 2,000 quadruples, at even distances." in foot(figure)

    def test_at_most_twelve_and_the_others_are_named(self, coat):
        many = renamed(coat, [f"e{k}" for k in range(15)])
        figure = step_plane(many)
        assert [axes.get_title(loc="left").split("\n")[0] for axes in figure.axes] == [f"e{k}" for k in range(12)]
        assert "Not drawn for want of room: e12, e13, e14." in foot(figure)
        chosen = step_plane(many, ["e14", "e0"])
        assert [axes.get_title(loc="left").split("\n")[0] for axes in chosen.axes] == ["e14", "e0"]

    def test_a_result_without_steps_is_named(self, coat):
        first = replace(coat.entries[0], steps=None)
        figure = step_plane(replace(coat, entries=(first, *coat.entries[1:])))
        assert len(figure.axes) == 3
        assert f"Not drawn, no steps in the result: {first.label}." in foot(figure)

    def test_what_cannot_be_drawn(self, coat, tre):
        with pytest.raises(FigureError, match="a_tre has no steps"):
            step_plane(tre)
        with pytest.raises(FigureError, match="steps is called 'whisper'; the nearest is 'whisper-base'"):
            step_plane(coat, ["whisper"])
        with pytest.raises(FigureError, match="no result of a_coat states its steps"):
            step_plane(replace(coat, entries=tuple(replace(e, steps=None) for e in coat.entries)))


class TestNames:
    @pytest.mark.parametrize("draw", ALL)
    def test_of_strangers_are_text(self, coat, draw):
        svg = figure_svg(draw(renamed(coat, HOSTILE)))
        root = ElementTree.fromstring(svg)
        assert {node.tag.split("}")[1] for node in root.iter()} <= {
            "svg", "g", "defs", "path", "use", "text", "image", "clipPath", "rect", "pattern"
        }  # fmt: skip
        shown = " ".join(svg_texts(svg))
        assert "alert(1)" in shown
        assert r"\frac{1}{2}" in shown
        assert "_hidden" in shown
        assert "&amp;b" in shown
        assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", svg)
        assert "<script" not in svg

    @pytest.mark.parametrize("draw", [*ALL, "a_tre"])
    def test_fit_into_the_figure(self, coat, tre, draw):
        names = [*HOSTILE, "W" * 300, "M" * 40, "m" * 39]
        if draw == "a_tre":
            # Slopes of four decimals, all below zero.
            x = tre.samples.entropy["total"]
            entries = tuple(replace(e, score=0.99 - 0.0033 * x + e.score * 1e-3) for e in tre.entries)
            figure = diversity_panels(renamed(replace(tre, entries=entries), names))
            assert any(re.search(r"−0\.\d{4} \[−0\.\d{4}, −0\.\d{4}\]", text) for text in texts(figure))
        else:
            figure = draw(renamed(coat, names))
        with figure_style():
            box = figure.get_tightbbox()
        width, height = figure.get_size_inches()
        assert -0.01 <= box.x0 <= box.x1 <= width + 0.01
        assert -0.01 <= box.y0 <= box.y1 <= height + 0.01

    def test_are_shortened_in_their_middle(self):
        assert short_label("a" * 40) == "a" * 40
        short = short_label("begin" + "x" * 300 + "end")
        assert len(short) == LONGEST
        assert short.startswith("begin")
        assert short.endswith("end")
        assert "…" in short

    def test_that_would_be_the_same_are_numbered(self):
        long = ["a" * 30 + str(k) + "b" * 30 for k in range(3)]
        short = short_labels([*long, "other"])
        assert len(set(short)) == 4
        assert max(map(len, short)) <= LONGEST
        assert short[3] == "other"

    def test_that_are_not_seen_are_replaced(self):
        assert short_label("a\x00b\u202ec\ud800d\te\u2028f") == "a?b?c?d e f".replace("?", "\ufffd")

    @pytest.mark.parametrize("label", ["m" * 40, "W" * 40, "i" * 40, "org/" + "name" * 8, "a-b_c.d:e/f"])
    def test_break_into_two_lines_of_the_panel(self, label):
        with figure_style():
            lines = title_lines(label, 1.2)
            figure = Figure()
            widths = [
                figure.text(0, 0, line, fontsize=matplotlib.rcParams["axes.titlesize"]).get_window_extent().width
                for line in lines.split("\n")
            ]
        assert len(widths) <= 2
        assert max(widths) / figure.dpi <= 1.2 * 1.03  # the letters' places are rounded to pixels
        assert lines.replace("\n", "")[0] == label[0]


class TestNumbersOfPoints:
    def places(self, points, reach=2.0, size=(8.0, 6.0), corners=((0, 0), (150, 150))):
        points = np.asarray(points, float)
        markers = np.full_like(points, reach)
        return label_places(points, markers, np.tile(size, (len(points), 1)), np.asarray(corners, float))

    def overlap(self, first, second, halves):
        """Square points that two boxes share."""
        return (np.maximum(halves - np.abs(first - second), 0)).prod()

    @pytest.mark.parametrize("seed", range(3))
    def test_cover_no_point_and_no_other_number(self, seed):
        points = np.random.default_rng(seed).normal(75, 20, (30, 2)).clip(5, 145)
        centres, _ = self.places(points)
        half = np.array([4.0, 3.0])
        for first, second in combinations(centres, 2):
            assert self.overlap(first, second, 2 * half) < 0.01
        for centre in centres:
            for point in points:
                assert self.overlap(centre, point, half + 2.0) < 0.01
        assert (centres >= half).all()
        assert (centres <= 150 - half).all()

    def test_stand_beside_a_point_that_is_alone(self):
        centres, joined = self.places([(20, 20), (120, 120)])
        assert (np.hypot(*(centres - [(20, 20), (120, 120)]).T) < 9).all()
        assert not joined.any()

    def test_are_joined_where_it_would_not_be_clear_whose_they_are(self):
        _, joined = self.places([(75 + k, 75) for k in range(12)])
        assert joined.any()

    def test_points_at_the_same_place(self):
        centres, _ = self.places([(75, 75)] * 6)
        assert len(np.unique(centres, axis=0)) == 6


class TestFiles:
    @pytest.mark.parametrize("draw", ALL)
    def test_the_same_figure_gives_the_same_bytes(self, coat, draw, tmp_path):
        first, second = (save_figure(draw(coat), tmp_path / name) for name in ("one", "two"))
        assert [path.suffix for path in first] == [".svg", ".png"]
        assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]

    def test_the_user_s_settings_do_not_matter(self, coat):
        plain = figure_svg(score_boxes(coat))
        before = matplotlib.rcParams.copy()
        with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "text.usetex": True}):
            assert figure_svg(score_boxes(coat)) == plain
        assert matplotlib.rcParams == before

    def test_names_with_dots_and_folders_that_are_not_there(self, coat, tmp_path):
        svg, png = save_figure(score_boxes(coat), tmp_path / "new" / "v1.2")
        assert (svg.name, png.name) == ("v1.2.svg", "v1.2.png")
        assert svg.read_text("utf-8").startswith("<?xml")
        image = Image.open(png)
        assert image.size[0] == COLUMN * 300
        assert image.info["dpi"] == pytest.approx((300, 300), abs=0.1)
        assert not {"Software", "Creation Time", "date"} & set(image.info)

    @pytest.mark.parametrize("draw", ALL)
    def test_svg_stands_alone(self, coat, draw):
        svg = figure_svg(draw(coat))
        assert svg.startswith("<svg ")
        for unwanted in ("<!DOCTYPE", "<metadata", "<style", "<!--", "<?", "DejaVu", "http://matplotlib"):
            assert unwanted not in svg
        root = ElementTree.fromstring(svg)
        ids = [node.get("id") for node in root.iter() if node.get("id")]
        assert len(ids) == len(set(ids))
        links = [value for node in root.iter() for name, value in node.attrib.items() if name.endswith("href")]
        links += [f"#{name}" for name in re.findall(r"url\(#(\w+)\)", svg)]
        assert links
        for link in links:
            assert link.startswith("data:image/png;base64,") or link[1:] in ids
        assert svg.count("url(") == len(re.findall(r"url\(#\w+\)", svg))
        assert root.get("font-family") == "sans-serif"

    def test_ids_are_those_of_one_figure(self, coat, tre):
        found = [set(re.findall(r'\bid="(\w+)"', figure_svg(score_boxes(c)))) for c in (coat, tre)]
        assert all(found)
        assert not found[0] & found[1]

    @pytest.mark.parametrize("draw", ALL)
    def test_svg_shows_the_text_of_the_figure(self, coat, draw):
        figure = draw(coat)
        lines = {line.strip() for text in texts(figure) for line in text.split("\n")}
        shown = {text.strip() for text in svg_texts(figure_svg(figure))}
        assert {text for text in shown if not re.fullmatch(r"[−\d.]*", text)} <= lines
        assert set(coat.labels) <= {text.rsplit("  ", 1)[0] for text in shown}

    def test_colours_of_a_map_are_exact_in_svg(self, coat):
        figure = significance_map(coat)
        image = figure.axes[0].images[0]
        embedded = re.findall(r"data:image/png;base64,([\w+/=]+)", figure_svg(figure))
        sizes = [Image.open(io.BytesIO(base64.b64decode(text))) for text in embedded]
        (cells,) = [np.asarray(found) for found in sizes if found.size == (4, 4)]
        expected = image.to_rgba(image.get_array(), bytes=True)
        found = cells if (cells[0] == expected[0]).all() else cells[::-1]
        np.testing.assert_array_equal(found, expected)

    @pytest.mark.parametrize("draw", ALL)
    @pytest.mark.parametrize("count", [4, 30])
    def test_text_can_be_read_at_the_width_of_a_column_or_a_page(self, coat, draw, count):
        figure = draw(renamed(coat, [f"encoder {k}" for k in range(count)]))
        assert COLUMN <= figure.get_figwidth() <= PAGE
        assert min(text.get_fontsize() for text in figure.findobj(Text) if text.get_text()) >= 6.5

    def test_nothing_of_pyplot_is_loaded(self):
        code = "import sys; import audio_compositionality.evaluator.figures.figures; print('matplotlib.pyplot' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "False"


# Machado, Oliveira and Fernandes 2009, "A physiologically-based model for simulation of color vision deficiency",
# table 1, severity 1.0; they act on linear RGB.
SEEN_BY = {
    "all": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(colour, eyes):
    """CIE L*a*b* (D65) of an sRGB colour as some eyes see it."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(SEEN_BY[eyes]) @ linear, 0, 1)
    matrix = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    xyz = np.array(matrix) @ seen / [0.95047, 1, 1.08883]
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_lab_of_known_colours():
    # Of sRGB primaries under D65, to the first decimal.
    assert lab("white", "all") == pytest.approx([100, 0, 0], abs=0.05)
    assert lab("#FF0000", "all") == pytest.approx([53.2, 80.1, 67.2], abs=0.05)
    assert lab("#0000FF", "all") == pytest.approx([32.3, 79.2, -107.9], abs=0.05)


@pytest.mark.parametrize("eyes", SEEN_BY)
class TestColours:
    """Distances in L*a*b*: 2.3 is just seen."""

    def apart(self, first, second, eyes):
        return np.linalg.norm(lab(first, eyes) - lab(second, eyes))

    @pytest.mark.parametrize("group", ["kinds", "fills", "steps", "cloud and line"])
    def test_used_together_are_apart(self, group, eyes):
        kinds = (figure_kinds.TRAINED, figure_kinds.UNTRAINED_NETWORK, figure_kinds.BASELINE)
        colours = {
            "kinds": [kind.colour for kind in kinds],
            "fills": [kind.fill for kind in kinds],
            "steps": [figures.FIRST_STEP["color"], figures.SECOND_STEP["color"], figures.ALL_STEPS],
            "cloud and line": [figure_kinds.CLOUD, figure_kinds.FIT],
        }[group]
        for first, second in combinations([*colours, "white"], 2):
            assert self.apart(first, second, eyes) > 10

    def test_signs_of_a_difference_are_apart(self, eyes):
        colours = matplotlib.colormaps[figure_pairs.DIVERGING]
        for share in (0.2, 0.5, 1.0):
            assert self.apart(colours(0.5 - share / 2)[:3], colours(0.5 + share / 2)[:3], eyes) > 10
        lightness = [lab(colours(x)[:3], eyes)[0] for x in np.linspace(0, 1, 21)]
        assert (np.diff(lightness[:11]) > 0).all()
        assert (np.diff(lightness[10:]) < 0).all()

    def test_dots_are_seen_on_every_cell(self, coat, eyes):
        axes = significance_map(coat).axes[0]
        image = axes.images[0]
        cells = image.to_rgba(image.get_array())
        for line in axes.lines:
            for x, y in zip(*line.get_data(), strict=True):
                assert abs(lab(line.get_color(), eyes)[0] - lab(cells[int(y), int(x), :3], eyes)[0]) > 30


def test_kinds_differ_by_more_than_colour():
    kinds = (figure_kinds.TRAINED, figure_kinds.UNTRAINED_NETWORK, figure_kinds.BASELINE)
    assert len({kind.hatch for kind in kinds}) == len({kind.marker for kind in kinds}) == 3
    assert figures.FIRST_STEP["marker"] != figures.SECOND_STEP["marker"]


@pytest.mark.parametrize(
    ("encoder_id", "kind"),
    [
        ("random", figure_kinds.BASELINE),
        ("downsample", figure_kinds.BASELINE),
        ("log-mel-statistics", figure_kinds.BASELINE),
        ("untrained:whisper-base", figure_kinds.UNTRAINED_NETWORK),
        ("whisper-base", figure_kinds.TRAINED),
        ("my/random", figure_kinds.TRAINED),
    ],
)
def test_kinds(encoder_id, kind):
    assert figure_kinds.kind_of(encoder_id) is kind
