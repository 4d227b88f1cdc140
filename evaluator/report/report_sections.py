"""What a report tells of each comparison: who leads, the tables, the figures, the samples to listen to."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from tqdm.auto import tqdm

from audio_compositionality.dataset_builder import DatasetError
from audio_compositionality.dataset_builder.messages import nearest

from audio_compositionality.evaluator.compare.comparison import MEASURES, Comparison, diversity
from audio_compositionality.evaluator.figures.figures.figure_kinds import TRAINED, FigureError, kind_of
from audio_compositionality.evaluator.figures.figures.figure_layout import COLUMN
from audio_compositionality.evaluator.figures.figures.figures import (control_scatter, diversity_panels, figure_svg, save_figure, score_boxes, significance_map, step_plane)
from .listening import FoundSample, find_samples
from .report_tables import (Table, group_tables, listed, number_text, pair_table, score_table, shortened, slope_tables)
from audio_compositionality.evaluator.compare.statistics import Interval
from audio_compositionality.evaluator.compare.table import SAMPLES, TITLES


@dataclass(frozen=True)
class Picture:
    """A figure: its address in the page, what it shows in words, its caption, whether it is as wide as a page."""

    source: str
    alternative: str
    caption: str
    is_wide: bool


@dataclass(frozen=True)
class Leader:
    """The encoder with the highest mean score: of those that are neither baselines nor untrained, where there are such.

    Attributes:
        measure: of which score, in words.
        label: its own.
        score: its mean, and the interval of that where there is one.
        is_trained: whether it is neither a baseline nor untrained.
        others: how many more there are of which that can be said.
        alike: in words, those of them that it is not distinguishable from; empty where there are none.
        tested: whether there are enough samples for tests.
        above: in words, the baselines and untrained networks whose mean is significantly higher.
        collapsed: in words, the encoders whose fits return hardly more than the mean embedding.
    """

    measure: str
    label: str
    score: str
    is_trained: bool
    others: int
    alike: str
    tested: bool
    above: str
    collapsed: str


@dataclass(frozen=True)
class Section:
    """What the page tells of one comparison.

    Attributes:
        name: of the section in the page's addresses.
        title: score and data.
        comparison: which one.
        leaders: the encoder with the highest score, and that with the highest centred score; of A-TRE, whose score a
            mean that all embeddings share raises, the latter first.
        scores: the table of scores and controls.
        pairs: the paired tests.
        pictures: the figures.
        undrawn: why figures are missing.
        slopes, groups: what is known of diversity.
        chosen_by: in words, whose score the samples are chosen by.
        found: the samples that can be listened to.
        silent: why there are none.
    """

    name: str
    title: str
    comparison: Comparison
    leaders: tuple[Leader, ...]
    scores: Table
    pairs: tuple[Table, ...]
    pictures: tuple[Picture, ...]
    undrawn: tuple[str, ...]
    slopes: tuple[Table, ...]
    groups: tuple[Table, ...]
    chosen_by: str
    found: tuple[FoundSample, ...]
    silent: str | None


@dataclass(frozen=True)
class _Drawing:
    """A kind of figure: name of its files, how it is drawn, what it shows in words, and its caption."""

    name: str
    draw: Callable[[Comparison], Figure]
    alternative: str
    caption: str
    tasks: tuple[str, ...] = ("a_coat", "a_tre")


_DRAWINGS = (
    _Drawing(
        "score_boxes",
        score_boxes,
        "Box plots of {score} over {n} {samples}, one for each of {encoders}, the highest mean first.",
        "{score} of each sample, by encoder. Boxes span the quartiles, notches the 95 % interval of the median; the "
        "diamond is the mean with its interval.",
    ),
    _Drawing(
        "score_boxes_centred",
        lambda comparison: score_boxes(comparison, "centred"),
        "Box plots of centred {score} over {n} {samples}, one for each of {encoders}, the highest mean first.",
        "The same of the centred score: after what all embeddings share is taken away.",
    ),
    _Drawing(
        "significance_map",
        significance_map,
        "Map of the paired differences in {score} between every two of {encoders}, with the corrected tests.",
        "Paired differences in {score} between every two encoders, and whether the corrected tests tell them apart.",
    ),
    _Drawing(
        "significance_map_centred",
        lambda comparison: significance_map(comparison, "centred"),
        "Map of the paired differences in centred {score} between every two of {encoders}, with the corrected tests.",
        "The same of the centred score.",
    ),
    _Drawing(
        "control_scatter",
        control_scatter,
        "{score} of {encoders} against each of its controls, a point an encoder.",
        "{score} against its controls. A score no higher than its null, or than its constant predictor, says nothing.",
    ),
    _Drawing(
        "diversity_panels",
        diversity_panels,
        "{score} of each of the {n} {samples} against their diversity, with a line and its 95 % band, a "
        "panel for each of {encoders}.",
        "{score} against diversity, the entropy summed over attributes, with the least-squares line and its 95 % band.",
    ),
    _Drawing(
        "step_plane",
        step_plane,
        "The steps B − A and D − C of the quadruples on their first two principal axes, a panel an encoder.",
        "The steps B − A and D − C on the first two principal axes of all steps of an encoder.",
        ("a_coat",),
    ),
)

STEPS = 4 + len(_DRAWINGS)
"""Steps of a progress bar for each comparison."""


def page_sections(
    comparisons: Sequence[Comparison], encoder: str | None, folder: Path | None, bar: tqdm[Any]
) -> list[Section]:
    """The sections of a page; arguments as `write_report` has them.

    Raises:
        ValueError: there is no result of `encoder`.
    """
    choices = _choices(comparisons, encoder)
    found = _find_all(comparisons, [places for _, places in choices], bar)
    sections = []
    for number, (comparison, samples, choice) in enumerate(zip(comparisons, found, choices, strict=True), 1):
        title = title_of(comparison, comparisons)
        bar.set_postfix_str(title)
        table = score_table(comparison)
        bar.update()
        known = diversity(comparison)
        bar.update()
        drawn = list(_pictures(comparison, file_prefix(comparison, comparisons), folder, bar))
        sections.append(
            Section(
                name=f"{comparison.task}-{number}",
                title=title,
                comparison=comparison,
                leaders=_leaders(comparison),
                scores=table,
                pairs=tuple(filter(None, (pair_table(comparison, measure) for measure in MEASURES))),
                pictures=tuple(picture for picture in drawn if isinstance(picture, Picture)),
                undrawn=tuple(dict.fromkeys(picture for picture in drawn if isinstance(picture, str))),
                slopes=() if known is None else tuple(slope_tables(known, comparison.task)),
                groups=() if known is None else tuple(group_tables(known, comparison.task)),
                chosen_by=choice[0],
                found=() if isinstance(samples, str) else tuple(samples),
                silent=samples if isinstance(samples, str) else None,
            )
        )
        bar.update()
    return sections


def write_figures(comparisons: Sequence[Comparison], folder: Path, *, progress: bool = True) -> None:
    """Write all figures of some comparisons to a folder, as SVG and PNG."""
    with tqdm(total=len(comparisons) * len(_DRAWINGS), desc="figures", disable=not progress) as bar:
        for comparison in comparisons:
            for _ in _pictures(comparison, file_prefix(comparison, comparisons), folder, bar):
                pass


def title_of(comparison: Comparison, comparisons: Sequence[Comparison]) -> str:
    """Score and data, with the beginning of the fingerprint where the same name stands for several data."""
    place = (comparison.task, comparison.dataset)
    shared = sum((other.task, other.dataset) == place for other in comparisons) > 1
    which = f" (data {comparison.fingerprint[:8]})" if shared else ""
    return f"{TITLES[comparison.task]} on {shortened(comparison.dataset)}{which}"


def file_prefix(comparison: Comparison, comparisons: Sequence[Comparison]) -> str:
    """Beginning of the names of a comparison's figures."""
    shared = sum(other.task == comparison.task for other in comparisons) > 1
    return f"{comparison.task}-{comparison.fingerprint[:8]}" if shared else comparison.task


def _choices(comparisons: Sequence[Comparison], encoder: str | None) -> list[tuple[str, list[int]]]:
    """For each comparison whose mean score its samples are chosen by: in words, and the places of the entries."""
    known = {name for c in comparisons for entry in c.entries for name in (entry.label, entry.result.encoder_id)}
    if encoder is not None and encoder not in known:
        raise ValueError(f"there is no result of the encoder {encoder!r}; {nearest(encoder, sorted(known))}")
    choices = []
    for comparison in comparisons:
        entries = list(enumerate(comparison.entries))
        own = [k for k, entry in entries if encoder in (entry.label, entry.result.encoder_id)]
        trained = [k for k, entry in entries if kind_of(entry.result.encoder_id) is TRAINED]
        if own:
            choices.append((f"the score of {listed([comparison.labels[k] for k in own])}", own))
        elif len(trained) == 1:
            label = shortened(comparison.labels[trained[0]])
            choices.append(
                (f"the score of {label}, the only encoder that is neither a baseline nor untrained", trained)
            )
        elif trained:
            choices.append(
                (f"the mean score over the {len(trained)} encoders that are neither baselines nor untrained", trained)
            )
        else:
            choices.append(("the mean score over all encoders", [k for k, _ in entries]))
    return choices


def _find_all(
    comparisons: Sequence[Comparison], chosen_by: Sequence[Sequence[int]], bar: tqdm[Any]
) -> list[list[FoundSample] | str]:
    """The samples of each comparison, or why there are none."""
    found: list[list[FoundSample] | str] = []
    for comparison, entries in zip(comparisons, chosen_by, strict=True):
        bar.set_postfix_str("clips")
        if comparison.benchmark is None:
            found.append(comparison.missing or "")
        else:
            try:
                found.append(find_samples(comparison, entries, comparison.benchmark))
            except (DatasetError, OSError) as error:
                found.append(str(error))
        bar.update()
    return found


def _pictures(comparison: Comparison, prefix: str, folder: Path | None, bar: tqdm[Any]) -> Iterator[Picture | str]:
    """The figures of a comparison, also written to the folder; for one that cannot be drawn, why."""
    words = {
        "score": TITLES[comparison.task],
        "n": f"{len(comparison.ids):,}",
        "samples": SAMPLES[comparison.task],
        "encoders": "1 encoder" if len(comparison.entries) == 1 else f"{len(comparison.entries)} encoders",
    }
    for drawing in _DRAWINGS:
        if comparison.task in drawing.tasks:
            try:
                figure = drawing.draw(comparison)
            except FigureError as error:
                yield str(error)
            else:
                if folder is not None:
                    save_figure(figure, folder / f"{prefix}-{drawing.name}")
                encoded = base64.b64encode(figure_svg(figure).encode()).decode()
                yield Picture(
                    f"data:image/svg+xml;base64,{encoded}",
                    drawing.alternative.format_map(words),
                    drawing.caption.format_map(words),
                    figure.get_figwidth() > COLUMN,
                )
        bar.update()


def _leaders(comparison: Comparison) -> tuple[Leader, ...]:
    measures = MEASURES if comparison.task == "a_coat" else MEASURES[::-1]
    return tuple(_leader(comparison, measure) for measure in measures if comparison.values(measure) is not None)


def _leader(comparison: Comparison, measure: str) -> Leader:
    scored = measure == "score"
    values = comparison.values(measure)
    assert values is not None
    means = values.mean(axis=0)
    entries = comparison.entries
    trained = [k for k, entry in enumerate(entries) if kind_of(entry.result.encoder_id) is TRAINED]
    rivals = trained or list(range(len(entries)))
    first = max(rivals, key=lambda k: float(means[k]))
    interval = (comparison.intervals if scored else comparison.centred_intervals)[first]
    tests = comparison.tests if scored else comparison.centred_tests
    others = {t.second if t.first == first else t.first: t for t in tests if first in (t.first, t.second)}
    above = [k for k, test in others.items() if k not in trained and means[k] > means[first] and test.significant]
    collapsed = [k for k in trained if scored and entries[k].result.controls.get("collapsed")]
    score = number_text(float(means[first]))
    return Leader(
        measure=TITLES[comparison.task] if scored else f"centred {TITLES[comparison.task]}",
        label=shortened(comparison.labels[first]),
        score=score if interval is None else f"{score} ({_bounds(interval)})",
        is_trained=bool(trained),
        others=len(rivals) - 1,
        alike=listed([comparison.labels[k] for k in rivals if k in others and not others[k].significant]),
        tested=all(test.p is not None for test in others.values()),
        above=listed([comparison.labels[k] for k in above]),
        collapsed=listed([comparison.labels[k] for k in collapsed]),
    )


def _bounds(interval: Interval) -> str:
    return f"95 % interval {number_text(interval[0])} to {number_text(interval[1])}"
