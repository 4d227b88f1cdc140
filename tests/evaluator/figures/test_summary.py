"""The figure of all tasks: models by tasks with verdicts, and the intervals; in a file, and from Python."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.text import Text

import audio_compositionality as ac
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.model_verdicts import verdicts_of
from audio_compositionality.evaluator.figures import layout
from audio_compositionality.evaluator.figures.style import FigureError
from audio_compositionality.evaluator.figures.summary import summary_figure, write_summary

MODELS = ("random", "untrained:whisper-base", "whisper-base", "$\\frac{1}{2}$ <b>")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, write_results):
    return write_results(tmp_path_factory.mktemp("results"), MODELS)


@pytest.fixture(scope="module")
def verdicts(folder):
    return verdicts_of(compare_results([folder]))


def test_a_cell_has_the_sign_of_the_verdict_and_a_panel_the_intervals(verdicts):
    figure = summary_figure(verdicts)
    assert figure.get_figwidth() == layout.COLUMN
    matrix, *panels = figure.axes
    assert [text.get_text() for text in matrix.get_xticklabels()] == ["A-COAT,\nadjusted", "A-TRE,\ncentred"]
    assert {text.get_text() for text in matrix.get_yticklabels()[:2]} == {"whisper-base", MODELS[-1]}
    cells = [text.get_text() for text in matrix.texts]
    assert sum(cell[0] in "▲▼○?" for cell in cells) == 2 * len(verdicts.models)
    for axes, comparison in zip(panels, verdicts.comparisons, strict=True):
        view = comparison.view(comparison.info.judge.name)
        drawn = sorted(float(line.get_xdata()[0]) for line in axes.lines if len(line.get_xdata()) == 1)
        assert np.allclose(drawn, sorted(view.means))
        bars = {tuple(map(float, line.get_xdata())) for line in axes.lines if len(line.get_xdata()) == 2}
        assert bars == {tuple(map(float, interval)) for interval in view.intervals}
    figure.draw_without_rendering()
    width, height = figure.bbox.size
    # A number of an axis beyond its end has a place, and is not drawn.
    beyond = {text for axes in panels for text in axes.get_xticklabels()}
    for text in set(figure.findobj(Text)) - beyond:
        box = text.get_window_extent()
        assert not text.get_text() or (box.x0 >= -1 and box.x1 <= width + 1 and box.y0 >= -1 and box.y1 <= height + 1)


@pytest.mark.parametrize(("ending", "head"), [("pdf", b"%PDF"), ("svg", b"<?xml"), ("PNG", b"\x89PNG")])
def test_a_file_is_the_same_each_time(verdicts, tmp_path, ending, head):
    for name in ("a", "b"):
        write_summary(verdicts, tmp_path / f"{name}.{ending}")
    one, other = ((tmp_path / f"{name}.{ending}").read_bytes() for name in ("a", "b"))
    assert one.startswith(head)
    assert one == other


def test_another_ending_is_refused(verdicts, tmp_path):
    with pytest.raises(FigureError, match=r"x\.gif must end in \.pdf, \.svg or \.png"):
        write_summary(verdicts, tmp_path / "x.gif")


def test_figures_are_axes_in_python(folder):
    assert len(ac.plot(str(folder))) == 3
    (axes, *_) = ac.plot(str(folder), "score_boxes-adjusted", task="a_coat")
    assert axes.figure.get_figwidth() > 0
    with pytest.raises(FigureError, match=r"there is no figure 'boxes'; .*score_boxes-adjusted"):
        ac.plot(str(folder), "boxes", task="a_coat")
    with pytest.raises(FigureError, match=r"there is no result of 'a_cot'; did you mean .?a_coat"):
        ac.plot(str(folder), "score_boxes-adjusted", task="a_cot")
