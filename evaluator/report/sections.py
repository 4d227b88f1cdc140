"""The sections of a report, one per comparison: leaders, tables, figures, samples to listen to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup
from matplotlib.figure import Figure
from tqdm.auto import tqdm

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.evaluator.compare.comparison import Comparison
from audio_compositionality.evaluator.compare.gain import answerable_table, gain_table, paper_table
from audio_compositionality.evaluator.compare.loading import ModelKind
from audio_compositionality.evaluator.compare.model_verdicts import Verdicts
from audio_compositionality.evaluator.compare.summary import short_table
from audio_compositionality.evaluator.compare.tables import (
    diversity_tables,
    pair_table,
    printed_table,
    score_table,
    versioned_title,
)
from audio_compositionality.evaluator.figures import style
from audio_compositionality.evaluator.figures.catalogue import described_figures, file_prefix
from audio_compositionality.evaluator.figures.layout import COLUMN
from audio_compositionality.evaluator.figures.samples import sample_panels
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.table import Table
from audio_compositionality.support.text import listed, nearest, shortened
from audio_compositionality.tasks.registry import list_benchmarks

from .facts import LONGEST_TEXT
from .listening import ChosenSample, choose_samples
from .overview import Overview, overviews
from .profiles import ModelProfile, model_profiles

MOST_NAMED = 3
"""Most tasks of a full benchmark that are named one by one."""


def is_long(comparisons: Sequence[Comparison]) -> bool:
    """Whether comparisons cover all tasks of one benchmark, each once, and are more than `MOST_NAMED`."""
    tasks = list_benchmarks().get(comparisons[0].info.benchmark, ())
    return len(tasks) > MOST_NAMED and sorted(comparison.info.name for comparison in comparisons) == sorted(tasks)


MOST_PAGE_PAIRS = 500
"""Most paired tests of a measure on a page: all pairs of 32 models. CSV and JSON contain all."""

MOST_PAGE_TESTS = 4_000
"""Most paired tests on a page: more would take more than half of it."""

MOST_MARKED = 4
"""Most models in the figure of one sample."""

SECTION_STEPS = 3
"""Steps of a progress bar per comparison: clips, tables, figures."""


@dataclass(frozen=True)
class Picture:
    """A figure on the page.

    Attributes:
        source: its address from `data_url`.
        alternative: its content in words.
        caption: its caption.
        is_wide: whether it is as wide as a page.
    """

    source: Markup
    alternative: str
    caption: str
    is_wide: bool


@dataclass(frozen=True)
class Section:
    """The page's section about one comparison.

    Attributes:
        name: of the section in the page's addresses.
        title: task and data.
        comparison: the comparison.
        leads: the leading model, in sentences; empty if there is none.
        overviews: the picture of each recommended measure.
        short: the table of the recommended measures.
        scores: the table of all shown measures.
        pairs: the paired tests, a table per measure.
        pictures: the figures.
        undrawn: why figures are missing.
        diversity: tables of diversity and groups.
        chosen_by: in words, the models whose score selects the samples.
        samples: the samples to listen to.
        steps: the task's own figures with the first sample marked.
        silent: why there are no samples; None if there are.
        profiles: of each model, if the task defines them.
        printed: published figures of the task on other data; None if there are none.
        gain: the audio gain; None if the task does not ask for it.
        gain_in_brief: the audio gain in few columns; None without one.
        answerable: the questions that are answerable without audio; None if there are none.
    """

    name: str
    title: str
    comparison: Comparison
    leads: tuple[str, ...]
    overviews: tuple[Overview, ...]
    short: Table
    scores: Table
    pairs: tuple[Table, ...]
    pictures: tuple[Picture, ...]
    undrawn: tuple[str, ...]
    diversity: tuple[Table, ...]
    chosen_by: str
    samples: tuple[ChosenSample, ...]
    steps: tuple[Picture, ...]
    silent: str | None
    profiles: tuple[ModelProfile, ...]
    printed: Table | None
    gain: Table | None
    gain_in_brief: Table | None
    answerable: Table | None


def page_sections(verdicts: Verdicts, model: str | None, folder: Path | None, bar: tqdm[Any]) -> list[Section]:
    """Return the sections of a page; arguments as in `write_report`.

    Raises:
        InputError: there is no result of `model`.
    """
    comparisons = verdicts.comparisons
    names = {name for c in comparisons for result in c.results for name in (result.label, result.result.model.id)}
    if model is not None and model not in names:
        raise InputError(f"there is no result of the model {model!r}; {nearest(model, sorted(names))}")
    sections = []
    views = sum(len(comparison.recommended) for comparison in comparisons)
    most_pairs = min(MOST_PAGE_PAIRS, MOST_PAGE_TESTS // max(views, 1))
    for number, comparison in enumerate(comparisons, 1):
        title = section_title(comparison)
        bar.set_postfix_str(title)
        chosen_by, places = _chosen_by(comparison, model)
        view = comparison.views.get(comparison.info.heard_by) or next(iter(comparison.recommended), None)
        samples, silent = list[ChosenSample](), None if view is not None else "no measure has values by sample"
        try:
            samples = [] if view is None else choose_samples(comparison, view, places)
        except (DatasetError, OSError) as error:
            silent = str(error)
        # The task's own figures of the models that selected the samples, with the first sample marked.
        steps = []
        for drawing in comparison.task.drawings if samples else ():
            try:
                figure = sample_panels(comparison, drawing, samples[0].index, places[:MOST_MARKED])
            except style.FigureError:
                continue
            words = (f"{drawing.alternative} One is marked.", f"{drawing.title} This sample is marked.")
            steps.append(_picture(figure, *words))
        bar.update()
        pairs = tuple(pair_table(comparison, view, most_pairs) for view in comparison.recommended)
        tables = tuple(diversity_tables(comparison))
        bar.update()
        pictures, undrawn = list[Picture](), dict[str, None]()
        for described in described_figures(comparison):
            try:
                figure = described.draw()
            except style.FigureError as error:
                undrawn[str(error)] = None
                continue
            if folder is not None:
                style.save_figure(figure, folder / f"{file_prefix(comparison, comparisons)}-{described.name}")
            pictures.append(_picture(figure, described.alternative, described.caption))
        bar.update()
        sections.append(
            Section(
                name=f"{comparison.info.name}-{number}",
                title=title,
                comparison=comparison,
                leads=verdicts.order(comparison),
                overviews=tuple(overviews(comparison)),
                short=short_table(comparison),
                scores=score_table(comparison),
                pairs=pairs if len(comparison.results) > 1 else (),
                pictures=tuple(pictures),
                undrawn=tuple(undrawn),
                diversity=tables,
                chosen_by=chosen_by,
                samples=tuple(samples),
                steps=tuple(steps),
                silent=silent,
                profiles=tuple(model_profiles(comparison)),
                printed=printed_table(comparison.info),
                gain=gain_table(comparison, with_ids=False),
                gain_in_brief=paper_table(comparison),
                answerable=answerable_table(comparison),
            )
        )
    return sections


def section_title(comparison: Comparison) -> str:
    """Return the title of a section: task and data."""
    title = versioned_title(comparison.info, comparison.version)
    return f"{title} on {shortened(comparison.data_name, LONGEST_TEXT)}"


def _chosen_by(comparison: Comparison, model: str | None) -> tuple[str, list[int]]:
    """Return the models whose score selects the samples: in words, and as indices of the results."""
    results = list(enumerate(comparison.results))
    of_model = [k for k, result in results if model in (result.label, result.result.model.id)]
    trained = [k for k, result in results if result.kind is ModelKind.TRAINED]
    if of_model:
        return f"the score of {listed([shortened(comparison.labels[k], LONGEST_TEXT) for k in of_model])}", of_model
    if len(trained) == 1:
        label = shortened(comparison.labels[trained[0]], LONGEST_TEXT)
        return f"the score of {label}, the only model that is neither a baseline nor untrained", trained
    if trained:
        return f"the mean score over the {len(trained)} models that are neither baselines nor untrained", trained
    return "the mean score over all models", [k for k, _ in results]


def _picture(figure: Figure, alternative: str, caption: str) -> Picture:
    source = Markup(style.data_url(style.figure_svg(figure)))
    return Picture(source, alternative, caption, figure.get_figwidth() > COLUMN)
