"""The parts of `validate` against hand-worked cases, and the quick command from end to end."""

import contextlib
import io
import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from audio_compositionality.cli import command_line
from audio_compositionality.studies import validity
from audio_compositionality.evaluator.results.result import mean_interval
from audio_compositionality.studies.validity import Validity, validate
from audio_compositionality.studies.validity.agreement import Agreement
from audio_compositionality.studies.validity.constructed import additive, noisy
from audio_compositionality.studies.validity.data import Data, Plan
from audio_compositionality.studies.validity.dials import monotone, sampling_error
from audio_compositionality.studies.validity.invariance import Invariance
from audio_compositionality.studies.validity.page import markdown, sections, write_page
from audio_compositionality.studies.validity.simulation import (COMMON, DIM, SIZES, coverage_band, make_clusters, simulate_coverage, simulate_false_positives, simulate_scores)
from audio_compositionality.studies.validity.theory import expected_population_a_coat

SMALL = Plan(quadruples=40, train=40, test=20, candidates=(500, 2_000), max_steps=2, replicates=2)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# ----- the parts


def test_a_score_that_rises_with_its_dial_has_correlation_one():
    levels = [0.0, 0.5, 0.8, 1.0]
    assert monotone(levels, [0.1, 0.2, 0.3, 0.9]) == pytest.approx(1)
    assert monotone(levels, [0.9, 0.3, 0.2, 0.1], falls=True) == pytest.approx(-1)
    assert monotone(levels, [0.2, 0.1, 0.3, 0.9]) == pytest.approx(1 - 6 * 2 / (4 * 15))  # two neighbours exchanged
    assert monotone(levels, [0.5] * 4) == 0


def test_ties_count_against_a_score_except_at_its_ceiling():
    levels = [0.0, 0.5, 0.8, 1.0]
    assert monotone(levels, [0.1, 0.2, 1.0, 1.0]) == pytest.approx(1)
    assert monotone(levels, [1.0, 1.0, 0.4, 0.1], falls=True) == pytest.approx(-1)
    assert monotone(levels, [0.1, 0.1, 0.3, 1.0]) < 0.99
    assert monotone(levels, [1.0, 0.2, 0.4, 1.0]) < 0.9  # it was at the ceiling, and left it


def test_agreement_is_within_the_interval_that_decides():
    near = Agreement("e", "s", 100, expected=0.5, measured=0.52, error=0.01)
    low, high = near.interval
    half = stats.t.ppf(0.975, 99) * 0.01
    assert (low, high) == pytest.approx((0.02 - half, 0.02 + half))
    assert not near.holds
    assert replace(near, level=0.999).holds
    assert replace(near, measured=0.3, at_most=True).holds
    assert not replace(near, at_most=True).holds
    assert Agreement("e", "s", 10, 1.0, 1.0 - 1e-10).holds
    assert not Agreement("e", "s", 10, 1.0, 1.0 - 1e-8).holds


def test_sampling_error_is_half_the_interval_of_the_score():
    scores = np.random.default_rng(0).normal(size=30)
    result = {"n": 30, "scores": scores.tolist(), "scores_centred": (2 * scores).tolist(), "top1": 0.0}
    low, high = mean_interval(scores)
    assert sampling_error("a_tre", "a_tre", result) == pytest.approx((high - low) / 2)
    assert sampling_error("a_tre", "ridge_r2", result) == pytest.approx(high - low)
    assert sampling_error("a_tre", "top1", result) == pytest.approx(1.96 * math.sqrt(2 / 34 * 32 / 34 / 34))


def test_coverage_band_is_the_wider_one():
    assert coverage_band(1_000) == (0.93, 0.97)
    low, high = coverage_band(100)
    assert stats.binom.cdf(round(100 * low) - 1, 100, 0.95) < 0.005 <= stats.binom.cdf(round(100 * low), 100, 0.95)
    assert low < 0.93 < 0.97 < high


def test_simulated_scores_have_the_truth_and_the_clusters_that_they_claim():
    rng = np.random.default_rng(1)
    clusters = make_clusters(4_000, 1_000, rng)
    assert np.bincount(clusters).min() == 1
    assert len(np.bincount(clusters)) == 1_000
    scores = simulate_scores(clusters, 0.5, 2, rng)
    means = np.stack([np.bincount(clusters, column) / np.bincount(clusters) for column in scores.T])
    truth = expected_population_a_coat(0.5, DIM, SIZES)
    assert np.abs(means.mean(axis=1) - truth).max() < 4 * stats.sem(means, axis=1).max()
    pairs = np.flatnonzero(np.diff(clusters) == 0)[::2]
    within = np.corrcoef(scores[pairs, 0], scores[pairs + 1, 0])[0, 1]
    assert within > COMMON / 2
    single = simulate_scores(np.arange(2_000), 0.5, 1, rng)[:, 0]
    assert abs(np.corrcoef(single[:-1], single[1:])[0, 1]) < 0.1


def test_simulations_repeat_themselves():
    assert simulate_coverage(20, 100, 5, False) == simulate_coverage(20, 100, 5, False)
    first = simulate_false_positives(20, 5, False)
    assert first == simulate_false_positives(20, 5, False)
    assert first != simulate_false_positives(20, 6, False)


def test_data_are_those_of_the_plan_and_no_t_occurs_twice():
    data = Data(SMALL, seed=0)
    assert (len(data.rows["train"]), len(data.rows["test"])) == (40, 20)
    added = np.sort(data.quadruples.t.codes, axis=1)
    assert len(np.unique(added, axis=0)) == len(added) <= 40
    result = data.a_coat(additive())
    assert result["a_coat"] == pytest.approx(1, abs=1e-12)
    assert result["top1"] == 1
    half = data.a_coat(additive(), 0.5)["scores"]
    assert np.sum(np.abs(np.array(half) - 1) > 1e-9) == round(0.5 * len(added))


def test_a_fit_is_kept_and_depends_on_the_permutation():
    data = Data(SMALL, seed=0)
    result = data.a_tre(noisy(0.5))
    assert data.a_tre(noisy(0.5)) is result
    assert data.a_tre(noisy(0.5), 1.0)["ridge_centred"] < result["ridge_centred"] - 0.2


@pytest.mark.parametrize(
    ("options", "message"), [({"simulations": 19}, "simulations is 19"), ({"seed": -1}, "seed is")]
)
def test_settings_that_cannot_work_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        validate(quick=True, **options)


# ----- the command


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Exit status, output, page and result of the quick command."""
    path = tmp_path_factory.mktemp("validity") / "docs" / "validity.md"
    kept: list[Validity] = []

    def keep(**options) -> Validity:
        kept.append(validate(**options, progress=False))
        return kept[0]

    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr(validity, "validate", keep)
        status = command_line.main(["validate", "--quick", "--simulations", "60", "--out", str(path)])
    return status, out.getvalue(), path, kept[0]


def test_quick_command_succeeds_and_everything_holds(quick):
    status, _, _, found = quick
    assert status == 0
    assert found.holds
    assert {dial.name for dial in found.dials} == {
        "noise",
        "binding",
        "saturation",
        "permutation",
        "shared mean",
        "shared mean, noise",
        "number",
        "loudness",
    }


def test_published_scores_fail_where_the_page_says_so(quick):
    _, _, _, found = quick
    dials = {dial.name: dial for dial in found.dials}
    for name, score in (
        ("shared mean", ("a_tre", "a_tre")),
        ("shared mean, noise", ("a_tre", "a_tre")),
        ("number", ("a_coat", "a_coat")),
        ("loudness", ("a_coat", "a_coat")),
    ):
        verdict = dials[name].verdicts[score]
        assert not verdict.claimed
        assert not verdict.holds
    assert dials["shared mean, noise"].scores["a_tre", "a_tre"][-1] > 0.99
    assert dials["number"].scores["a_coat", "a_coat"][-1] == pytest.approx(1)
    assert dials["number"].scores["a_coat", "adjusted"][-1] == pytest.approx(0, abs=0.01)


def test_every_failure_is_told_as_a_finding(quick):
    _, _, _, found = quick
    text = " ".join(bullet.head + bullet.text for section in sections(found) for bullet in section.bullets)
    for phrase in ("The raw A-TRE rises", "The raw A-COAT rises", "Student's t ignores"):
        assert phrase in text
    assert "{" not in text
    broken = replace(found.dials[0].verdicts["a_tre", "ridge_r2"], claimed=False, holds=False)
    verdicts = {**found.dials[0].verdicts, ("a_tre", "ridge_r2"): broken}
    other = replace(found, dials=(replace(found.dials[0], verdicts=verdicts), *found.dials[1:]))
    heads = [bullet.head for section in sections(other) for bullet in section.bullets]
    assert "a_tre.ridge_r2 along the dial of noise:" in heads


def test_page_has_command_versions_and_the_tables_of_the_terminal(quick):
    _, out, path, found = quick
    page = path.read_text("utf-8")
    assert f"audio-compositionality validate --out {path} --simulations 60 --quick" in page
    assert f"torch {torch.__version__}" in page
    assert re.search(r"seed 0, on \d{4}-\d\d-\d\d", page)
    for section in sections(found):
        assert f"{'#' * section.level} {section.title}\n" in page
        assert section.title in out
        width = len(section.headings)
        for row in section.rows:
            assert len(row) == width
            assert "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" in page
    measured = [f"{item.measured:.4f}" for item in found.agreements if item.error is not None]
    assert len(measured) > 15
    assert all(figure.lstrip("-") in out for figure in measured)
    assert "NO" not in page.split()


def test_what_does_not_hold_changes_status_and_page(quick, monkeypatch, tmp_path, capsys):
    _, _, _, found = quick
    dial = found.dials[0]
    wrong = {**dial.verdicts, ("a_coat", "a_coat"): replace(dial.verdicts["a_coat", "a_coat"], holds=False)}
    cases = {
        "dials": replace(found, dials=(replace(dial, verdicts=wrong), *found.dials[1:])),
        "invariances": replace(found, invariances=(Invariance("scale", ("a_coat", "a_coat"), 1e-3, 1e-9, "rounding"),)),
        "agreements": replace(found, agreements=(Agreement("additive", "A-COAT", 9, 1.0, 0.9), *found.agreements)),
        "coverages": replace(found, coverages=(replace(found.coverages[0], covered=0.5), *found.coverages[1:])),
        "tests": replace(found, false_positives=(replace(found.false_positives[0], rate=0.5),)),
    }
    for case in cases.values():
        assert not case.holds
        page = markdown(case, "command")
        assert "NOT everything that must hold does" in page
        assert "| NO |" in page
    monkeypatch.setattr(validity, "validate", lambda **_: cases["coverages"])
    assert command_line.main(["validate"]) == 1
    assert "NOT everything" in capsys.readouterr().out
    contrast = replace(found.coverages[-1], covered=0.5, claimed=False)
    assert replace(found, coverages=(*found.coverages, contrast)).holds


def test_contrasts_show_what_the_simulations_would_catch(quick):
    _, _, _, found = quick
    ignored = [item.covered for item in found.coverages if item.interval == "Student's t" and item.clusters < item.n]
    assert min(ignored) < 0.85
    assert all(item.claimed for item in found.false_positives if item.clusters == item.n)


def test_page_is_written_into_new_folders_and_a_folder_is_refused(quick, tmp_path, capsys):
    _, _, _, found = quick
    write_page(found, tmp_path / "new" / "page.md", "command")
    assert (tmp_path / "new" / "page.md").read_text("utf-8").startswith("# Validity")
    assert command_line.main(["validate", "--out", str(tmp_path)]) == 2
    assert "a folder; give a file" in capsys.readouterr().err
