"""`studies.validity --quick` from end to end: what must hold holds, failures are findings, page and terminal agree."""

import contextlib
import io
import re
from dataclasses import replace

import pytest
import torch

from audio_compositionality.support.table import to_markdown
from studies.validity import axes, comp_a, composed, count_instances, dials, instances, negation, when
from studies.validity.__main__ import main
from studies.validity.checks import Check, Part
from studies.validity.page import all_hold, findings, markdown, sections

pytestmark = pytest.mark.slow

CHAPTERS = (dials, axes, instances, comp_a, composed, count_instances, when, negation)


@pytest.fixture(autouse=True, scope="module")
def _quick(one_thread):
    """Small fits are slower in several threads."""


@pytest.fixture(scope="module")
def quick(tmp_path_factory, _quick):
    """Exit status, output, page and parts of the quick command."""
    path = tmp_path_factory.mktemp("validity") / "docs" / "understand/validity-appendix.md"
    kept: list[Part] = []
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        for module in CHAPTERS:

            def keep(*, chapter=module.chapter, **options):
                kept.extend(made := chapter(**options))
                return made

            patch.setattr(module, "chapter", keep)
        status = main(["--quick", "--simulations", "20", "--out", str(path)])
    return status, out.getvalue(), path, kept


def test_quick_command_succeeds_and_everything_holds(quick):
    status, _, _, parts = quick
    assert status == 0
    assert all_hold(parts)
    assert len({part.name for part in parts}) == len(parts) > 30
    assert all(part.checks for part in parts if part.level > 2)
    assert not any("{" in part.text for part in parts)
    tables = [part.dial for part in parts if part.dial is not None]
    assert all(len(values) == len(table.levels) for table in tables for values in table.scores.values())


def test_published_scores_fail_where_the_page_says_so(quick):
    by_title = {part.title: part for part in quick[3]}
    for title, score in (
        ("Shared mean (anisotropy)", "A-TRE: largest change"),
        ("Shared mean without any signal", "A-TRE: largest change"),
        ("Energy only: number of sources", "A-COAT: largest change"),
        ("Energy only: loudness", "A-COAT: largest change"),
    ):
        check = next(check for check in by_title[title].checks if check.score == score)
        assert not check.claimed
        assert not check.holds
    noise, number = by_title["Shared mean without any signal"].dial, by_title["Energy only: number of sources"].dial
    assert noise.scores["A-TRE"][-1] > 0.99
    assert number.scores["A-COAT"][-1] == pytest.approx(1)
    assert number.scores["A-COAT: adjusted"][-1] == pytest.approx(0, abs=0.01)
    ignored = [check for check in by_title["4. Coverage of 95 % intervals"].checks if not check.claimed]
    assert min(check.measured for check in ignored) < 0.85


def test_every_failure_is_a_finding(quick):
    text = " ".join(findings(quick[3]))
    for phrase in ("The raw A-TRE rises", "The raw A-COAT rises", "covered by Student's t"):
        assert phrase in text
    assert "{" not in text


def test_page_has_command_versions_and_the_tables_of_the_terminal(quick):
    _, out, path, parts = quick
    page = path.read_text("utf-8")
    assert f"python -m studies.validity --out {path} --simulations 20 --quick" in page
    assert f"torch {torch.__version__}" in page
    assert re.search(r"seed 0, on \d{4}-\d\d-\d\d", page)
    for section in sections(parts):
        assert f"{'#' * section.level} {section.title}\n" in page
        assert section.title in out
        for table in section.tables:
            assert to_markdown(table).rstrip() in page
            assert all(len(row.cells) == len(table.columns) for row in table.rows)
    measured = [f"{check.measured:.4f}" for part in parts for check in part.checks]
    assert len(measured) > 500
    assert all(figure.lstrip("-") in out for figure in measured if len(figure) < 8)
    assert "NO" not in page.split()


def test_what_does_not_hold_changes_status_and_page(monkeypatch, capsys):
    right = Check("additive", "A-COAT", "1", 1.0, 1.0, 1.0)
    wrong = replace(right, measured=0.9)
    for module in CHAPTERS:
        monkeypatch.setattr(module, "chapter", lambda **_: ())
    for check, status in ((right, 0), (wrong, 1), (replace(wrong, claimed=False), 0), (replace(right, low=2.0), 1)):
        monkeypatch.setattr(dials, "chapter", lambda check=check, **_: (Part("a", "A", "text", (check,)),))
        assert main(["--quick"]) == status
        out = capsys.readouterr().out
        assert ("Every check that must hold does." in out) == (status == 0)
        assert ("NO" in out.split()) == (status == 1)
        page = markdown((Part("a", "A", "text", (check,)),), "command", 0)
        assert ("**a:** additive: A-COAT 0.9000, expected 1." in page) == (not check.claimed)


@pytest.mark.parametrize(
    ("typed", "message"), [(["--simulations", "19"], "simulations is 19"), (["--seed", "-1"], "seed is -1")]
)
def test_settings_that_cannot_work_are_refused(typed, message, capsys):
    assert main(["--quick", *typed]) == 2
    assert message in capsys.readouterr().err


def test_a_folder_is_refused_as_the_page(tmp_path, capsys):
    assert main(["--out", str(tmp_path)]) == 2
    assert "is a folder; give the name of a file" in capsys.readouterr().err
