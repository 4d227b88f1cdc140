"""`studies.validity --quick` from end to end: what must hold holds, what fails is told, page and terminal agree."""

import contextlib
import io
import re
from dataclasses import replace

import pytest
import torch

from audio_compositionality.support.table import to_markdown
from studies.validity import validate as validity
from studies.validity.__main__ import main
from studies.validity.dials import Invariance
from studies.validity.page import markdown, sections, write_page
from studies.validity.theory import Agreement
from studies.validity.validate import Validity, validate

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def _quick(one_thread):
    """Small fits are slower in several threads."""


@pytest.fixture(scope="module")
def quick(tmp_path_factory, _quick):
    """Exit status, output, page and result of the quick command."""
    path = tmp_path_factory.mktemp("validity") / "docs" / "validity.md"
    kept: list[Validity] = []

    def keep(**options) -> Validity:
        kept.append(validate(**options))
        return kept[0]

    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr(validity, "validate", keep)
        status = main(["--quick", "--simulations", "60", "--out", str(path)])
    return status, out.getvalue(), path, kept[0]


def test_quick_command_succeeds_and_everything_holds(quick):
    status, _, _, outcome = quick
    assert status == 0
    assert outcome.holds
    assert {dial.name for dial in outcome.dials} == {
        "noise",
        "binding",
        "saturation",
        "permutation",
        "shared mean",
        "shared mean, noise",
        "number",
        "loudness",
    }


def test_every_family_has_checks_and_dials_of_its_own(quick):
    parts = quick[3].parts
    assert len({part.name for part in parts}) == len(parts) > 20
    assert {part.title.split()[0] for part in parts if part.level == 2} >= {"8."}
    assert not any("{" in part.text for part in parts)
    assert all(part.checks for part in parts if part.level > 2)
    dials = [part.dial for part in parts if part.dial is not None]
    assert all(len(values) == len(dial.levels) for dial in dials for values in dial.scores.values())


def test_published_scores_fail_where_the_page_says_so(quick):
    _, _, _, outcome = quick
    dials = {dial.name: dial for dial in outcome.dials}
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
    _, _, _, outcome = quick
    text = " ".join(bullet.head + bullet.text for section in sections(outcome) for bullet in section.bullets)
    for phrase in ("The raw A-TRE rises", "The raw A-COAT rises", "Student's t ignores"):
        assert phrase in text
    assert "{" not in text
    broken = replace(outcome.dials[0].verdicts["a_tre", "ridge_r2"], claimed=False, holds=False)
    verdicts = {**outcome.dials[0].verdicts, ("a_tre", "ridge_r2"): broken}
    other = replace(outcome, dials=(replace(outcome.dials[0], verdicts=verdicts), *outcome.dials[1:]))
    heads = [bullet.head for section in sections(other) for bullet in section.bullets]
    assert "a_tre.ridge_r2 along the dial of noise:" in heads


def test_page_has_command_versions_and_the_tables_of_the_terminal(quick):
    _, out, path, outcome = quick
    page = path.read_text("utf-8")
    assert f"python -m studies.validity --out {path} --simulations 60 --quick" in page
    assert f"torch {torch.__version__}" in page
    assert re.search(r"seed 0, on \d{4}-\d\d-\d\d", page)
    for section in sections(outcome):
        assert f"{'#' * section.level} {section.title}\n" in page
        assert section.title in out
        if section.table is not None:
            assert to_markdown(section.table).rstrip() in page
            assert all(len(row.cells) == len(section.table.columns) for row in section.table.rows)
    measured = [f"{item.measured:.4f}" for item in outcome.agreements if item.error is not None]
    assert len(measured) > 15
    assert all(figure.lstrip("-") in out for figure in measured)
    assert "NO" not in page.split()


def test_what_does_not_hold_changes_status_and_page(quick, monkeypatch, tmp_path, capsys):
    _, _, _, outcome = quick
    dial = outcome.dials[0]
    wrong = {**dial.verdicts, ("a_coat", "a_coat"): replace(dial.verdicts["a_coat", "a_coat"], holds=False)}
    invariance = Invariance("scale", ("a_coat", "a_coat"), 1e-3, 1e-9, "rounding")
    cases = {
        "dials": replace(outcome, dials=(replace(dial, verdicts=wrong), *outcome.dials[1:])),
        "invariances": replace(outcome, invariances=(invariance,)),
        "agreements": replace(outcome, agreements=(Agreement("additive", "A-COAT", 9, 1.0, 0.9), *outcome.agreements)),
        "coverages": replace(outcome, coverages=(replace(outcome.coverages[0], covered=0.5), *outcome.coverages[1:])),
        "tests": replace(outcome, false_positives=(replace(outcome.false_positives[0], rate=0.5),)),
    }
    for case in cases.values():
        assert not case.holds
        page = markdown(case, "command")
        assert "NOT everything that must hold does" in page
        assert "| NO |" in page
    monkeypatch.setattr(validity, "validate", lambda **_: cases["coverages"])
    assert main([]) == 1
    assert "NOT everything" in capsys.readouterr().out
    contrast = replace(outcome.coverages[-1], covered=0.5, claimed=False)
    assert replace(outcome, coverages=(*outcome.coverages, contrast)).holds


def test_contrasts_show_what_the_simulations_would_catch(quick):
    _, _, _, outcome = quick
    ignored = [item.covered for item in outcome.coverages if item.interval == "Student's t" and item.clusters < item.n]
    assert min(ignored) < 0.85
    assert all(item.claimed for item in outcome.false_positives if item.clusters == item.n)


def test_page_is_written_into_new_folders_and_a_folder_is_refused(quick, tmp_path, capsys):
    _, _, _, outcome = quick
    write_page(outcome, tmp_path / "new" / "page.md", "command")
    assert (tmp_path / "new" / "page.md").read_text("utf-8").startswith("# Validity")
    assert main(["--out", str(tmp_path)]) == 2
    assert "is a folder; give the name of a file" in capsys.readouterr().err
