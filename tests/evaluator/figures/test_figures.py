"""Figures: what is drawn is what was given, for any task, and names of strangers stay names."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.text import Text
from PIL import Image

from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.diversity import fit_line
from audio_compositionality.evaluator.compare.loading import ModelKind
from audio_compositionality.evaluator.compare.statistics import compare_pairs
from audio_compositionality.evaluator.figures import catalogue, layout
from audio_compositionality.evaluator.figures.catalogue import described_figures, write_figures
from audio_compositionality.evaluator.figures.models import control_scatter, dots_of, significance_map
from audio_compositionality.evaluator.figures.samples import diversity_panels, sample_panels, score_boxes, task_panels
from audio_compositionality.evaluator.figures.style import LOOKS, FigureError, figure_style, figure_svg, save_figure
from audio_compositionality.evaluator.results.result import SampleTable

MODELS = ("random", "untrained:whisper-base", "whisper-base", "org/model")
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


def step_plane(comparison, labels=None):
    (drawing,) = comparison.task.drawings
    return task_panels(comparison, drawing, labels)


def boxes_of(comparison):
    return score_boxes(comparison, comparison.info.score.name)


def diversity_of(comparison):
    return diversity_panels(comparison, comparison.info.score.name)


def map_of(comparison):
    return significance_map(comparison, comparison.info.score.name)


ALL = (boxes_of, diversity_of, control_scatter, map_of, step_plane)


@pytest.fixture(scope="module")
def comparisons(tmp_path_factory, write_results):
    return compare_results([write_results(tmp_path_factory.mktemp("results"), MODELS)])


@pytest.fixture(scope="module")
def coat(comparisons):
    return comparisons[0]


@pytest.fixture(scope="module")
def tre(comparisons):
    return comparisons[1]


@pytest.fixture(scope="module")
def toy(tmp_path_factory, write_results, registered_toy):
    return compare_results([write_results(tmp_path_factory.mktemp("toys"), MODELS, tasks=["toy"])])[0]


def with_results(comparison, results):
    return replace(comparison, results=tuple(results))


def with_columns(result, **columns):
    """The result with other columns, None for one that it lacks."""
    merged = {name: column for name, column in {**result.samples.columns, **columns}.items() if column is not None}
    return replace(result, samples=SampleTable(result.ids, merged))


def with_scores(comparison, change):
    """The comparison with other scores: those that a function makes of each result's place and scores."""
    changed = [
        with_columns(result, score=change(place, result.samples.columns["score"]))
        for place, result in enumerate(comparison.results)
    ]
    return with_results(comparison, changed)


def with_measures(result, **measures):
    changed = {**result.result.measures, **measures}
    return replace(result, result=result.result.model_copy(update={"measures": changed}))


def renamed(comparison, names):
    """The comparison with as many results as names, alternately its own."""
    results = comparison.results
    return with_results(comparison, [replace(results[k % len(results)], label=name) for k, name in enumerate(names)])


def fewer(comparison, n):
    ids = comparison.ids[:n]
    results = tuple(result.at(ids) for result in comparison.results)
    return replace(comparison, results=results, samples=comparison.samples.at(range(n)))


def texts(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def boxes_in(axes):
    return [patch for patch in axes.patches if isinstance(patch, PathPatch)]


def foot(figure):
    """The notes below the panels, line by line from the top."""
    return " ".join(text.get_text() for text in reversed(figure.texts))


def svg_texts(svg):
    return [
        "".join(node.itertext())
        for node in ElementTree.fromstring(svg.encode()).iter("{http://www.w3.org/2000/svg}text")
    ]


class TestScoreBoxes:
    @pytest.mark.parametrize("measure", ["a_coat", "centred"])
    def test_boxes_are_the_quartiles_and_the_notches_of_the_textbook(self, coat, measure):
        axes = score_boxes(coat, measure).axes[0]
        boxes = boxes_in(axes)
        view = coat.view(measure)
        order = np.argsort(-view.means)
        assert len(boxes) == len(order) == 4
        for box, column in zip(boxes, order, strict=True):
            values = view.values[:, column]
            low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
            x = box.get_path().vertices[:, 0]
            # McGill, Tukey and Larsen 1978: median ± 1.57 IQR / √n.
            notch = 1.57 * (high - low) / np.sqrt(64)
            expected = [low, median - notch, median, median + notch, high]
            np.testing.assert_allclose(np.unique(x.round(9)), expected, atol=1e-8)

    def test_rows_go_down_from_the_highest_mean_and_kinds_differ_by_hatch_and_colour(self, coat):
        axes, view = boxes_of(coat).axes[0], coat.view("a_coat")
        assert [label.get_text() for label in axes.get_yticklabels()] == list(coat.labels)
        means = [line for line in axes.lines if line.get_marker() == "D"]
        np.testing.assert_allclose([line.get_xdata()[0] for line in means], view.means)
        rows = [line.get_ydata()[0] for line in means]
        assert rows == sorted(rows)
        assert axes.yaxis_inverted()
        assert set(view.intervals) <= {tuple(line.get_xdata()) for line in axes.lines if len(line.get_xdata()) == 2}
        boxes = boxes_in(axes)
        looks = {label: (b.get_hatch(), b.get_facecolor()) for label, b in zip(coat.labels, boxes, strict=True)}
        assert looks["whisper-base"] == looks["org/model"]
        different = [looks[label] for label in ("random", "untrained:whisper-base", "whisper-base")]
        assert len(set(different)) == len({hatch for hatch, _ in different}) == 3

    def test_whiskers_and_outliers_hold_all_samples(self, coat):
        values = coat.view("a_coat").values.copy()
        values[1, 1] = -0.99
        axes = boxes_of(with_scores(coat, lambda place, _: values[:, place])).axes[0]
        points = next(line for line in axes.lines if line.get_marker() == ".").get_xdata()
        far = []
        for column in values.T:
            low, high = np.quantile(column, [0.25, 0.75])
            far += column[(column < low - 1.5 * (high - low)) | (column > high + 1.5 * (high - low))].tolist()
        assert -0.99 in far
        np.testing.assert_array_equal(np.sort(points), np.sort(far))

    def test_few_samples_have_no_notch_and_no_interval(self, coat):
        axes = boxes_of(fewer(coat, 9)).axes[0]
        boxes = boxes_in(axes)
        assert all(len(np.unique(box.get_path().vertices[:, 0].round(12))) == 2 for box in boxes)
        thin = [line for line in axes.lines if line.get_linewidth() == 0.8]
        assert thin
        assert all(np.ptp(line.get_xdata()) == 0 for line in thin)

    def test_scores_near_one_are_told_apart(self, tre):
        near = with_scores(tre, lambda place, score: 1 - 10.0 ** -(place + 1) * (1 - score / 10))
        axes = boxes_of(near).axes[0]
        pixels = axes.transData.transform([(x, 0) for x in (0.9, 0.99, 0.999)])[:, 0]
        np.testing.assert_allclose(np.diff(pixels)[0] / np.diff(pixels)[1], 1, atol=0.1)
        assert axes.get_xlabel() == "A-TRE (log scale of the distance to 1)"
        assert {"0.9", "0.99", "0.999"} <= {tick.get_text() for tick in axes.get_xticklabels()}

    def test_a_measure_that_is_not_there(self, coat):
        with pytest.raises(FigureError, match=r"a_coat has no measure 'mean' by sample; .*Valid: a_coat, adjusted"):
            score_boxes(coat, "mean")
        first, *others = coat.results
        without = with_results(coat, [with_columns(first, score_centred=None), *others])
        with pytest.raises(FigureError, match="not all results of a_coat have centred by sample"):
            score_boxes(without, "centred")


class TestDiversityPanels:
    def test_points_line_and_band(self, coat):
        x = coat.samples.diversity["total"]
        panels = diversity_of(coat).axes
        assert len(panels) == 4
        for axes, y, label in zip(panels, coat.view("a_coat").values.T, coat.labels, strict=True):
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

    def test_panels_have_one_axis_where_that_shows_all(self, coat, tre):
        assert len({axes.get_ylim() for axes in diversity_of(coat).axes}) == 1
        unlike = with_scores(tre, lambda place, score: place + score / 100)
        panels, view = diversity_of(unlike).axes, unlike.view("a_tre")
        assert len({axes.get_ylim() for axes in panels}) == 4
        for axes, place in zip(panels, view.order, strict=True):
            y = view.values[:, place]
            assert axes.get_ylim()[0] < y.min() < y.max() < axes.get_ylim()[1]
        # Scores that nearly agree look even.
        axes = diversity_of(with_scores(tre, lambda _, score: 0.998 + score * 1e-6)).axes[0]
        assert np.ptp(axes.get_ylim()) == pytest.approx(0.01, rel=1e-3)

    def test_nothing_is_known_of_the_samples(self, coat):
        unknown = replace(coat, samples=None, missing="the data 'x' are not here")
        with pytest.raises(FigureError, match="against diversity: the data 'x' are not here"):
            diversity_of(unknown)
        silent = replace(coat, samples=replace(coat.samples, diversity={}))
        with pytest.raises(FigureError, match="A-COAT states no diversity of its quadruples"):
            diversity_of(silent)
        assert sum("too few samples" in text for text in texts(diversity_of(fewer(coat, 9)))) == 4


class TestControlScatter:
    def test_a_point_a_model(self, coat):
        figure = control_scatter(coat)
        pairs = dict(pairwise(text.get_text() for text in figure.texts))
        assert [pairs[str(k + 1)] for k in range(4)] == list(coat.labels), "the key names the numbers"
        panels = {axes.get_xlabel(): axes for axes in figure.axes}
        assert list(panels) == [measure.heading for measure in coat.info.shown if measure is not coat.info.score]
        points = [line for line in panels["matched null"].lines if line.get_marker() in "o^s"]
        assert [line.get_marker() for line in points] == ["o", "o", "^", "s"]
        stated = [result.result.measures["matched_null"] for result in coat.results]
        np.testing.assert_allclose([line.get_xdata()[0] for line in points], stated)
        np.testing.assert_allclose([line.get_ydata()[0] for line in points], coat.view("a_coat").means)
        bars = [tuple(line.get_ydata()) for line in panels["centred"].lines if line.get_linewidth() == 0.6]
        assert bars == coat.view("a_coat").intervals

    def test_a_measure_that_one_has_not_leaves_out_its_point_and_keeps_the_numbers(self, tre):
        first, second, *others = tre.results
        figure = control_scatter(with_results(tre, [first, with_measures(second, gain=None), *others]))
        panels = {axes.get_xlabel(): axes for axes in figure.axes}
        assert sorted(text.get_text() for text in panels["gain"].texts) == ["1", "3", "4"]
        assert sorted(text.get_text() for text in panels["constant"].texts) == ["1", "2", "3", "4"]

    def test_the_line_where_score_and_null_are_equal_and_that_of_chance(self, tre):
        figure = control_scatter(tre)
        assert {"score = constant", "chance"} < {text.get_text() for text in figure.legends[0].texts}
        panels = {axes.get_xlabel(): axes for axes in figure.axes}
        for name, axes in panels.items():
            dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
            assert len(dashed) == (name == "constant")
            for line in dashed:
                np.testing.assert_allclose(line.get_xdata(), line.get_ydata())
        top = panels["top-1"]
        chance = next(line for line in top.lines if line.get_linestyle() == ":")
        assert chance.get_xdata()[0] == pytest.approx(1 / 64)
        assert top.get_xlim()[0] < 1 / 64

    def test_no_other_measures(self, coat):
        lacking = {"score_centred": None, "score_adjusted": None, "score_top1": None}
        bare = [with_columns(result, **lacking) for result in coat.results]
        bare = [replace(r, result=r.result.model_copy(update={"measures": {"a_coat": 0.1}})) for r in bare]
        with pytest.raises(FigureError, match="the results of A-COAT have no measure other than the score"):
            control_scatter(with_results(coat, bare))


class TestSignificanceMap:
    def test_colours_are_the_differences_and_dots_the_corrected_p(self, coat):
        axes = map_of(coat).axes[0]
        view = coat.view("a_coat")
        drawn = axes.images[0].get_array()
        np.testing.assert_allclose(drawn.filled(0), view.means[:, None] - view.means)
        assert drawn.mask.diagonal().all()
        assert drawn.mask.sum() == 4
        dots = {}
        for line in axes.lines:
            subpaths = len(line.get_marker().to_polygons())
            for x, y in zip(*line.get_data(), strict=True):
                dots[int(y), int(x)] = subpaths
        for test in view.tests:
            expected = sum(test.p_adjusted <= level for level in (0.05, 0.01, 0.001))
            assert dots.get((test.first, test.second), 0) == expected
            assert dots.get((test.second, test.first), 0) == expected
        assert any(test.p_adjusted > 0.05 for test in view.tests) or len(dots) == 12

    @pytest.mark.parametrize(("p", "dots"), [(0.05, 1), (0.0500001, 0), (0.01, 2), (0.001, 3), (0.2, 0), (None, 0)])
    def test_levels(self, p, dots):
        tests = compare_pairs(np.random.default_rng(0).random((64, 3)), np.arange(64))
        tests.p_adjusted = None if p is None else np.array([1.0, p, 1.0])
        expected = np.zeros((3, 3), int)
        expected[0, 1] = expected[1, 0] = dots
        np.testing.assert_array_equal(dots_of(tests, [2, 0, 1]), expected)

    def test_rows_are_in_the_order_of_the_measure(self, coat):
        turned = with_results(
            coat, [with_columns(result, score_centred=-result.samples.columns["score"]) for result in coat.results]
        )
        axes = significance_map(turned, "centred").axes[0]
        names = [label.get_text().rsplit("  ", 1) for label in axes.get_yticklabels()]
        assert names == [[label, str(k)] for k, label in enumerate(reversed(coat.labels), 1)]
        above = axes.images[0].get_array().filled(0)[np.triu_indices(4, 1)]
        assert (above >= 0).all()

    def test_too_few_samples_are_hatched(self, coat):
        few = map_of(fewer(coat, 9))
        (rectangle,) = [patch for patch in few.axes[0].patches if isinstance(patch, Rectangle) and patch.get_hatch()]
        assert (rectangle.get_width(), rectangle.get_height()) == (4, 4)
        assert not any(len(line.get_xdata()) for line in few.axes[0].lines)
        assert any("too few samples" in text for text in texts(few))
        assert not any(patch.get_hatch() for patch in map_of(coat).axes[0].patches)

        with pytest.raises(FigureError, match="only one result of A-COAT; a paired test needs two"):
            map_of(with_results(coat, coat.results[:1]))


class TestTaskPanels:
    def test_steps_and_their_lines(self, coat):
        figure = step_plane(coat)
        assert len(figure.axes) == 4
        for axes, result in zip(figure.axes, coat.results, strict=True):
            columns = result.samples.columns
            steps = np.stack([columns[name] for name in ("ab_1", "ab_2", "cd_1", "cd_2")], axis=1)
            (everything,) = axes.lines
            assert {tuple(row) for row in everything.get_xydata()} == {tuple(row) for row in steps.reshape(-1, 2)}
            (lines,) = [artist for artist in axes.collections if isinstance(artist, LineCollection)]
            first, second = [artist for artist in axes.collections if artist is not lines]
            np.testing.assert_array_equal(first.get_offsets(), steps[:, :2])
            np.testing.assert_array_equal(second.get_offsets(), steps[:, 2:])
            np.testing.assert_array_equal(np.array(lines.get_segments()), steps.reshape(-1, 2, 2))
            assert axes.get_xlabel().startswith("axis 1 (")
            assert axes.get_aspect() == 1
            assert all(artist.get_rasterized() for artist in (*axes.lines, *axes.collections))
        assert [text.get_text() for text in figure.legends[0].texts] == ["B − A", "D − C"]

    @pytest.mark.slow
    def test_is_given_the_intervals_of_tables(self, coat):
        given = []
        drawing = replace(
            coat.task.drawings[0],
            intervals=("adjusted", "top1"),
            panel=lambda axes, columns, measures: given.append(columns),
        )
        task_panels(coat, drawing)
        for name in drawing.intervals:
            np.testing.assert_allclose([columns[name] for columns in given], coat.view(name).intervals)
        few = [with_columns(result, score_adjusted=None) for result in coat.results]
        task_panels(with_results(coat, few), drawing)
        assert np.isnan(given[-1]["adjusted"]).all()

    def test_at_most_twelve_and_the_others_are_named(self, coat):
        many = renamed(coat, [f"e{k}" for k in range(15)])
        figure = step_plane(many)
        assert [axes.get_title(loc="left").split("\n")[0] for axes in figure.axes] == [f"e{k}" for k in range(12)]
        assert "Not drawn: e12, e13, e14." in foot(figure)
        named = step_plane(many, ["e14", "e0"])
        assert [axes.get_title(loc="left").split("\n")[0] for axes in named.axes] == ["e14", "e0"]

    def test_a_result_without_the_columns_is_named(self, coat):
        first, *others = coat.results
        figure = step_plane(with_results(coat, [with_columns(first, ab_1=None), *others]))
        assert len(figure.axes) == 3
        assert f"Not drawn, since the result lacks the values: {first.label}." in foot(figure)
        with pytest.raises(FigureError, match="is called 'whisper'; did you mean 'whisper-base'"):
            step_plane(coat, ["whisper"])
        with pytest.raises(FigureError, match="no result of A-COAT has the columns of this figure: ab_1"):
            step_plane(with_results(coat, [with_columns(result, ab_1=None) for result in coat.results]))


class TestCatalogue:
    def test_what_a_new_task_recommends_is_drawn(self, toy):
        figures = {figure.name: figure for figure in described_figures(toy)}
        by_sample = {f"{kind}-squeak" for kind in ("score_boxes", "significance_map", "diversity_panels")}
        assert set(figures) == by_sample | {"control_scatter", "shelf"}
        assert "Toy score, squeak" in figures["score_boxes-squeak"].caption
        assert "64 toys" in figures["score_boxes-squeak"].alternative
        controls = figures["control_scatter"].draw()
        assert [axes.get_xlabel() for axes in controls.axes] == ["shine", "squeak", "wheels"]

    def test_hits_and_misses_have_neither_boxes_nor_lines(self, coat):
        hits = [with_columns(result, score_top1=np.arange(64) % 2 * 1.0) for result in coat.results]
        names = {figure.name for figure in described_figures(with_results(coat, hits))}
        assert "significance_map-top1" in names
        assert not {"score_boxes-top1", "diversity_panels-top1"} & names
        assert {"score_boxes-adjusted", "diversity_panels-adjusted"} <= names

    def test_all_are_written_to_a_folder(self, toy, tmp_path, monkeypatch):
        described = list(described_figures(toy))
        undrawn = replace(described[0], name="undrawn", draw=lambda: score_boxes(toy, "nothing"))
        monkeypatch.setattr(catalogue, "described_figures", lambda _: [described[0], undrawn])
        write_figures([toy, replace(toy, version=2)], tmp_path / "new", progress=False)
        names = {path.name for path in (tmp_path / "new").iterdir()}
        stem = described[0].name
        assert names == {f"toy-v{k}-{stem}.{suffix}" for k in (1, 2) for suffix in ("svg", "png")}


class TestEveryFigure:
    """Of models whose names are chosen by strangers."""

    @pytest.mark.slow
    @pytest.mark.parametrize("draw", ALL)
    def test_fits_its_page_and_is_a_file_of_its_own_whose_names_are_text(self, coat, draw, tmp_path):
        comparison = renamed(coat, [*HOSTILE, "W" * 300, "M" * 40, "m" * 39])
        fits(draw(comparison))
        svg = figure_svg(draw(comparison))
        if draw is boxes_of:
            first, second = (save_figure(draw(comparison), tmp_path / name) for name in ("one", "two"))
            assert [path.suffix for path in first] == [".svg", ".png"]
            assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
        root = ElementTree.fromstring(svg.encode())
        assert {node.tag.split("}")[1] for node in root.iter()} <= {
            "svg", "g", "defs", "style", "path", "use", "text", "image", "clipPath", "rect", "pattern"
        }  # fmt: skip
        shown = " ".join(svg_texts(svg))
        assert all(words in shown for words in ("alert(1)", r"\frac{1}{2}", "_hidden", "&amp;b"))
        assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", svg)
        assert "<script" not in svg
        ids = [node.get("id") for node in root.iter() if node.get("id")]
        assert len(ids) == len(set(ids))
        links = [value for node in root.iter() for name, value in node.attrib.items() if name.endswith("href")]
        links += [f"#{name}" for name in re.findall(r"url\(#(\w+)\)", svg)]
        assert links
        assert all(link.startswith("data:image/png;base64,") or link[1:] in ids for link in links)
        assert svg.count("url(") == len(re.findall(r"url\(#\w+\)", svg))
        # Where the reader has not our font, his own without serifs.
        assert "sans-serif" in svg

    @pytest.mark.slow
    def test_of_slopes_of_four_decimals_fits_too(self, tre):
        x = tre.samples.diversity["total"]
        sloping = with_scores(tre, lambda _, score: 0.99 - 0.0033 * x + score * 1e-3)
        figure = diversity_of(renamed(sloping, HOSTILE))
        assert any(re.search(r"−0\.\d{4} \[−0\.\d{4}, −0\.\d{4}\]", text) for text in texts(figure))
        fits(figure)


def fits(figure):
    with figure_style():
        box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert layout.COLUMN <= width <= layout.PAGE
    assert -0.01 <= box.x0 <= box.x1 <= width + 0.01
    assert -0.01 <= box.y0 <= box.y1 <= height + 0.01
    assert min(text.get_fontsize() for text in figure.findobj(Text) if text.get_text()) >= 6.5


class TestNames:
    def test_are_shortened_in_their_middle_and_numbered_where_they_would_be_the_same(self):
        assert layout.short_label("a" * 40) == "a" * 40
        short = layout.short_label("begin" + "x" * 300 + "end")
        assert len(short) == layout.LONGEST_SHORT_NAME
        assert re.fullmatch("begin.*….*end", short)
        short = layout.short_labels([*("a" * 30 + str(k) + "b" * 30 for k in range(3)), "other"])
        assert len(set(short)) == 4
        assert max(map(len, short)) <= layout.LONGEST_SHORT_NAME
        assert short[3] == "other"
        assert layout.short_label("a\x00b\u202ec\ud800d\te\u2028f") == "a?b?c?d e f".replace("?", "\ufffd")

    @pytest.mark.parametrize("label", ["W" * 40, "org/" + "name" * 8])
    def test_break_into_two_lines_of_the_panel(self, label):
        with figure_style():
            lines = layout.title_lines(label, 1.2)
            figure, size = Figure(), matplotlib.rcParams["axes.titlesize"]
            placed = [figure.text(0, 0, line, fontsize=size) for line in lines.split("\n")]
            widths = [text.get_window_extent().width for text in placed]
        assert len(widths) <= 2
        assert max(widths) / figure.dpi <= 1.2 * 1.03  # the letters' places are rounded to pixels
        assert lines.replace("\n", "")[0] == label[0]


class TestFiles:
    def test_the_user_s_settings_do_not_matter(self, coat):
        plain = figure_svg(boxes_of(coat))
        before = matplotlib.rcParams.copy()
        with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "text.usetex": True}):
            assert figure_svg(boxes_of(coat)) == plain
        assert matplotlib.rcParams == before

    def test_names_with_dots_and_folders_that_are_not_there(self, coat, tmp_path):
        svg, png = save_figure(boxes_of(coat), tmp_path / "new" / "v1.2")
        assert (svg.name, png.name) == ("v1.2.svg", "v1.2.png")
        assert svg.read_text("utf-8").startswith("<?xml")
        image = Image.open(png)
        assert image.size[0] == layout.COLUMN * 300
        assert image.info["dpi"] == pytest.approx((300, 300), abs=0.1)
        assert not {"Software", "Creation Time", "date"} & set(image.info)

    def test_nothing_of_pyplot_is_used(self):
        """It would choose a backend, and keep every figure."""
        room = Path(catalogue.__file__).parents[1]
        assert not [path for path in room.rglob("*.py") if re.search("import.*pyplot", path.read_text("utf-8"))]


def test_kinds_differ_by_more_than_colour():
    assert list(LOOKS) == list(ModelKind)
    for part in ("hatch", "marker", "colour"):
        assert len({getattr(look, part) for look in LOOKS.values()}) == 4


class TestOneSample:
    def test_its_steps_are_arrows(self, coat):
        (drawing,) = coat.task.drawings
        figure = sample_panels(coat, drawing, 5, [0, 1])
        for place, axes in enumerate(figure.axes):
            columns = coat.results[place].samples.columns
            ends = [arrow.xy for arrow in axes.texts]
            assert ends == [(columns[f"{step}_1"][5], columns[f"{step}_2"][5]) for step in ("ab", "cd")]
            assert axes.get_title(loc="left").replace("\n", "") == coat.labels[place]
        assert {text.get_text() for text in figure.legends[0].texts} == {"B − A", "D − C", "mean of all steps"}

    def test_what_cannot_be_drawn(self, coat, toy):
        with pytest.raises(FigureError, match="shelf cannot be drawn for one sample"):
            sample_panels(toy, toy.task.drawings[0], 0, [0])
        without = with_results(coat, [with_columns(result, ab_1=None) for result in coat.results])
        with pytest.raises(FigureError, match="step_plane cannot be drawn"):
            sample_panels(without, coat.task.drawings[0], 0, [0])
