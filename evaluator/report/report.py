"""The report: one self-contained HTML file of everything that is known of some results.

The page refers to nothing outside itself, runs no script but its own, and shows whatever comes from elsewhere (names of
encoders and data, labels, reasons) as text. Its parts are in the folder ``templates``.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import math
import warnings
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files
from itertools import islice
from pathlib import Path

import jinja2
from markupsafe import Markup
from tqdm.auto import tqdm

from audio_compositionality.dataset_builder.synthesis.scenes import ATTRIBUTES

from audio_compositionality.evaluator.compare.comparison import Comparison, compare_results
from audio_compositionality.evaluator.figures.figures.figure_kinds import BASELINE, UNTRAINED_NETWORK, kind_of
from .listening import PLAYBACK_GAIN, HeardSample, hear_samples
from .report_sections import STEPS, Section, page_sections
from .report_tables import (MOST_PAIRS, counted, encoder_table, listed, number_text, remarks, run_table, shortened, skipped_table, version_table)
from audio_compositionality.evaluator.results.result import write_text
from audio_compositionality.evaluator.compare.statistics import MIN_CLUSTERS, MIN_SAMPLES, RESAMPLES
from audio_compositionality.evaluator.compare.table import SAMPLES, TITLES, plain

MOST_BYTES = 4_900_000
"""Of a page, which has to stay below 5 MB."""


def write_report(
    results: Sequence[str | Path],
    out: str | Path = "report.html",
    *,
    data: str | None = None,
    encoder: str | None = None,
    figures: str | Path | None = None,
    command: str | None = None,
    progress: bool = True,
) -> Path:
    """Write the report of some results as one HTML file, which appears only when it is whole.

    Args:
        results: folders of results, or their JSON files.
        out: the file.
        data: where the data are (a preset, a folder or a Hub id); by default where the results say they are. Where they
            cannot be opened, the report is without the clips and without what is known of diversity, and says so.
        encoder: id of the encoder whose highest- and lowest-scoring samples can be listened to; by default the mean
            score of all that are neither baselines nor untrained decides.
        figures: folder for all figures, as SVG and PNG.
        command: what made the report, as it is to stand in it.
        progress: show a progress bar.

    Returns:
        path of the file.

    Raises:
        ResultError: there are no results, or a damaged one.
        DatasetError: `data` is given and cannot be opened, or is the data of none of the results.
        ValueError: there is no result of `encoder`, or `out` is a folder.
        OSError: the file cannot be written.
    """
    out = Path(out)
    if out.is_dir():
        raise ValueError(f"{out} is a folder; give the report the name of a file, such as {out / 'report.html'}")
    comparisons = compare_results(results, data=data)
    with tqdm(total=len(comparisons) * STEPS + 1, desc="report", unit="step", disable=not progress) as bar:
        sections = page_sections(comparisons, encoder, None if figures is None else Path(figures), bar)
        page = _page(sections, comparisons, command)
        bar.update()
    size = len(page.encode())
    if size > MOST_BYTES:
        warnings.warn(f"the report is {size / 1e6:.1f} MB: give it fewer results", stacklevel=2)
    write_text(out, page)
    return out


def _page(sections: Sequence[Section], comparisons: Sequence[Comparison], command: str | None) -> str:
    """The page; its clips are cut where it would be larger than MOST_BYTES."""
    template = _environment().get_template("report.html")
    facts = {
        "sections": sections,
        "comparisons": comparisons,
        "summary": _summary(comparisons),
        "tables": [encoder_table(comparisons), run_table(comparisons), version_table(comparisons)],
        "skipped": skipped_table(comparisons),
        "remarks": remarks(comparisons),
        "command": command,
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "version": importlib.metadata.version("audio-compositionality"),
    }
    heard = _heard(sections, math.inf)
    page = template.render(heard=heard, **facts)
    excess = len(page.encode()) - MOST_BYTES
    if excess > 0:
        audio = sum(len(clip.audio) for samples in heard.values() for sample in samples for clip in sample.clips)
        # Three bytes are four in base64, and the page then says that clips are cut. A tenth is left in any case.
        most = max(audio - 0.75 * (excess + 1_000), audio / 10)
        page = template.render(heard=_heard(sections, most), **facts)
    return page


def _heard(sections: Sequence[Section], most_bytes: float) -> dict[str, tuple[HeardSample, ...]]:
    """The samples of each section, by its name."""
    heard = hear_samples([sample for section in sections for sample in section.found], most_bytes)
    return {section.name: tuple(islice(heard, len(section.found))) for section in sections}


def _summary(comparisons: Sequence[Comparison]) -> str:
    """How many encoders, on which data, in words."""
    encoders = {(entry.result.encoder_id, entry.result.encoder_revision) for c in comparisons for entry in c.entries}
    kinds = Counter(kind_of(encoder_id).name for encoder_id, _ in encoders)
    others = [counted(kinds[kind.name], kind.name) for kind in (BASELINE, UNTRAINED_NETWORK) if kinds[kind.name]]
    which = f" ({', '.join(others)})" if others else ""
    data = list(dict.fromkeys(comparison.dataset for comparison in comparisons))
    return f"{counted(len(encoders), 'encoder')}{which} on the data “{listed(data)}”"


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = (Markup(_template(name)) for name in ("report.css", "report.js"))
    environment.globals.update(
        style=style,
        script=script,
        policy=_policy(style, script),
        citation=Markup.escape(_template("citation.bib").strip()),
        attributes=ATTRIBUTES,
        min_samples=MIN_SAMPLES,
        min_clusters=MIN_CLUSTERS,
        most_pairs=MOST_PAIRS,
        playback_gain=PLAYBACK_GAIN,
        resamples=RESAMPLES,
        samples_of=SAMPLES,
        titles=TITLES,
    )
    environment.filters.update(base64=_base64, decibels=_decibels, number=number_text, shortened=shortened)
    return environment


def _template(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text("utf-8")


def _policy(style: str, script: str) -> str:
    """The page's Content-Security-Policy: its own style and script by their hash, pictures and sound inside of it."""

    def source(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; style-src {source(style)}; script-src {source(script)}; img-src data:; media-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _visible(value: object) -> object:
    """`plain` for what is text and not a part of the page itself."""
    return value if not isinstance(value, str) or isinstance(value, Markup) else plain(value)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decibels(gain: float) -> float:
    return 20 * math.log10(gain)
