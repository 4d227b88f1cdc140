"""Tasks: a task joins a recipe, a kind of model and a metric, and describes every number that it returns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np
import yaml
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.spec import Spec

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Floats = NDArray[np.float64]
Number = float | int | bool | None
Source = Mapping[str, str]
Scene = Sequence[Source]
MeanOfPlaces = Callable[[NDArray[np.int64]], float]

Scoring = Literal["generate", "letters", "options"]
GENERATE: Scoring = "generate"
"""The scoring that takes the text written by the model as its answer."""

ENERGY = "energy alone"
"""The trivial baseline of an encoder that represents energy alone."""

CHANCE = "chance"
"""The trivial baseline of a task in which energy alone cannot score, such as one with texts."""

BEST_CONSTANT = "the best constant answer"
"""The trivial baseline that gives the same answer for all clips."""

UNTRAINED_TWIN = ("untrained:", "its untrained twin")
"""The prefix that names the untrained twin of a model, and its name in sentences."""

TOTAL = "total"
"""Name of the sum over attributes among the entropies: H^quad for a quadruple, H for a scene."""

Settings = TypeVar("Settings", bound=Spec)


class TaskError(AudioCompositionalityError):
    """A task does not exist or cannot score its rows; the message says which and why."""


@dataclass(frozen=True)
class ShownQuestion:
    """A question with options, as shown to people.

    Attributes:
        question: one line.
        options: in the order shown.
        answer: the right option.
    """

    question: str
    options: tuple[str, ...]
    answer: str


@dataclass(frozen=True)
class Tally:
    """A table of measures, such as of counts: truth in its rows, answers in its columns.

    Attributes:
        title: what is counted.
        of_rows: heading of the first column, with the row headings.
        columns: headings of the other columns.
        rows: row headings, each with the name of a measure per column.
        needs: name of a measure without which the table is left out; empty if any measure suffices.
        right: index of the column of right answers in rows of counts, which are shown with their shares of the row.
    """

    title: str
    of_rows: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[str, ...]]
    right: Mapping[str, int] = field(default_factory=dict)
    needs: str = ""


@dataclass(frozen=True)
class Profile:
    """The profile of a single model, reported in addition to all tables.

    Attributes:
        measure: name of the measure, a mean over all samples, that is reported by groups of samples.
        groupings: the groupings of `Samples.groups` to draw, in order.
        shares: pairs of a measure that is a count and the measure that is its total; the first pair counts all answers
            without a choice.
        tallies: tables of measures.
        choices: name of the samples' column with the index of the chosen option, from 0; empty if nothing is chosen.
        no_choice: the meaning of its negative numbers, in words.
        heard_from: name of the grouping whose groups each get samples to listen to; empty: all samples together.
        parts: names of measures over one kind of samples; a result without one had no sample of that kind.
    """

    measure: str
    groupings: tuple[str, ...]
    shares: tuple[tuple[str, str], ...] = ()
    tallies: tuple[Tally, ...] = ()
    choices: str = ""
    no_choice: Mapping[int, str] = field(default_factory=dict)
    heard_from: str = ""
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Printed:
    """Figures printed in a publication.

    Attributes:
        source: the publication.
        caveat: why they are only reference marks; one sentence.
        remarks: remarks by the name of a measure; a sentence each.
        figures: figures by the printed name of a model, then by the name of a measure; as shares, not in percent.
    """

    source: str
    caveat: str
    remarks: Mapping[str, str]
    figures: Mapping[str, Mapping[str, float]]

    @property
    def measures(self) -> tuple[str, ...]:
        """Return the names of the measures with printed figures."""
        return tuple(dict.fromkeys(name for of_model in self.figures.values() for name in of_model))

    def of_measure(self, name: str) -> tuple[float, ...]:
        """Return the printed figures of a measure, in the order of the models."""
        return tuple(of_model[name] for of_model in self.figures.values() if name in of_model)

    @property
    def sentence(self) -> str:
        """Return the source of the figures and their limits, for captions and legends."""
        return " ".join((f"From {self.source}.", self.caveat, *self.remarks.values()))


@cache
def printed_figures(name: str) -> Printed:
    """Return the figures of ``NAME_printed.yaml``, a file in the folder of the tasks with percentages."""
    content: dict[str, Any] = yaml.safe_load(files(__package__).joinpath(f"{name}_printed.yaml").read_text("utf-8"))
    figures = {
        model: {measure: round(percent / 100, 6) for measure, percent in of_model.items()}
        for model, of_model in content["figures"].items()
    }
    return Printed(content["source"], content["caveat"], content["remarks"], figures)


@dataclass(frozen=True)
class Measure:
    """One number of a task: the only place that describes it.

    Attributes:
        name: key in the metric's result and in result files: ``matched_null``.
        heading: heading of its column in a table: ``matched null``.
        meaning: one sentence, for legends, Spaces, report and board.
        digits: decimals shown; 0 for counts.
        range: lowest and highest possible value.
        null: name of the measure that is its null, its chance level or another baseline to exceed.
        column: name of the samples' column whose mean it is: intervals, paired tests and box plots are drawn from it.
        fitted: whether it depends on the random state of a fit.
        spread: name of the measure that is the standard deviation of its fits; without one, verification reports a
            fitted measure but does not compare it.
        shown: whether tables show it; the others are in result files only.
        linear: value that an encoder linear in the waveform has by construction; None if there is none.
        trivial: name of the measure that is the null computed from the model itself; the larger null counts, see
            `nulls_of`.
        outside: why single samples may lie outside `range`; a sentence. Ends of intervals never do.
        within: a column of the samples and a value: the measure is the mean over samples with that value only. It has
            intervals, but no paired tests.
        less_is_better: whether a model must be below the null, as with a rank.
    """

    name: str
    heading: str
    meaning: str
    digits: int = 3
    range: tuple[float, float] = (-1.0, 1.0)
    null: str | None = None
    column: str | None = None
    fitted: bool = False
    spread: str | None = None
    shown: bool = True
    linear: float | None = None
    outside: str = ""
    trivial: str | None = None
    within: tuple[str, float] | None = None
    less_is_better: bool = False

    def places(self, columns: Mapping[str, Floats]) -> NDArray[np.int64]:
        """Return the indices of the samples that it averages, from columns that include its own.

        There are none without the column of `within`.
        """
        if self.within is None:
            return np.arange(len(columns[self.column or ""]))
        name, value = self.within
        return np.flatnonzero(columns[name] == value) if name in columns else np.zeros(0, np.int64)


@dataclass(frozen=True)
class TaskInfo:
    """The facts of a task: its name, its needs, its measures.

    The defaults are the values of most tasks. A shape has a dictionary of the values that its tasks share, such as
    `PAIRS` in ``shapes/pairs.py``: ``TaskInfo(**PAIRS, name=…)``.

    Attributes:
        name: name of the task in commands, results and folders.
        version: version of the score; increases with any change of the metric or of the task that changes a number.
        title: the name for people.
        question: the question that it asks about a model, one sentence.
        benchmark: the group of tasks that it belongs to.
        recipe: name of the recipe whose configuration it scores.
        needs: abilities that a model must have: `ENCODER`, `TEXT_ENCODER` or `LANGUAGE_MODEL` of `encoders.base`. With
            ``frames`` in addition to ``audio``, `Outputs.clips` are frames, see `BinnedFrames`, of clips that all last
            the ``duration`` of the rows.
        samples: plural noun for what is scored: "quadruples".
        measures: all numbers that it returns; the first is its score.
        ranks_by: name of the measure that tables and boards sort by.
        warning: what a reader must know to interpret the score; one or two sentences.
        citation: BibTeX.
        protocols: settings that follow a publication exactly, under the name by which they are requested: ``paper``.
            Their data are presets of the recipe with that name as a prefix: ``paper-mini``.
        trusted: the measures that readers should trust, each with the score of an encoder that represents energy alone:
            a number, or the name of the measure that is its chance level; None if no formula gives it. A model must
            also exceed the energy baselines. Empty: the measure that the task ranks by.
        captions: description of each clip of a row, derived clips too, for people who listen, by the clip's name; for a
            list of clips ``name/0``, ``name/1`` … by the name of the list.
        on_request: whether the task is left out if neither tasks nor a benchmark are named.
        is_first_look: whether a run without arguments scores it.
        controls: models that are scored too if the task is named: names, and twins of each model such as ``shuffled:``;
            the baselines and the untrained twin always are.
        is_level_matched: whether all compared clips have the same level and number of sources, so that counting sources
            does not help. The course of the level over time may still help: energy alone is assumed to score at most
            the chance level of `trusted` only if the results have no energy baseline.
        ability: a verb for what a score above all baselines shows, such as ``listen``, for verdicts; empty for none.
        printed: published figures of the same measures on other data, shown as marks, without any comparison.
        heard: names of the clips to listen to, if a row has too many; empty: all.
        derived: derived clips to listen to, by name: sums of the model's clips, ``("B", "-A")``.
        heard_by: name of the measure that selects the samples to listen to; empty: the first trusted one.
        judged_by: name of the measure that decides whether a model is above another; empty: the measure that the task
            ranks by.
        trivial: name of the trivial baseline whose levels `trusted` has, in sentences: `ENERGY`, or ``chance`` for a
            model without knowledge.
        described_by: names of the acoustic or text baselines of its criterion; empty: all for models of this kind.
        twin: the prefix of the twin that a model must exceed first, and its name in sentences.
        optional_baselines: further baselines with their names in sentences, twins and controls by their prefix,
            baselines by their name. If the results have them, a model must exceed them in addition to `twin`, the
            acoustic or text baselines and the trivial baseline.
        is_headline: whether this task decides the verdict on a model even if there are results of other tasks: on
            recordings, not on presets. Its score shows training, provided the training matched the task's question.
        needs_scenes: whether it cannot score rows made of recordings; see `passes_over`.
        training: recipe of the training split that goes with the scored data; tables mark models that were trained on
            it.
        shows_training: whether tables state what data each model was trained on; otherwise they state how it was
        trained. profile: profile of a single model; None if tables suffice. choices: settings that submissions may
        change, with their defaults; boards show their values.
    """

    name: str
    version: int
    title: str
    question: str
    benchmark: str
    recipe: str
    needs: frozenset[str]
    samples: str
    measures: tuple[Measure, ...]
    ranks_by: str
    warning: str
    citation: str
    protocols: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    trusted: Mapping[str, float | str | None] = field(default_factory=dict)
    captions: Mapping[str, str] = field(default_factory=dict)
    on_request: bool = False
    is_first_look: bool = False
    controls: tuple[str, ...] = ()
    is_level_matched: bool = False
    ability: str = ""
    printed: Printed | None = None
    heard: tuple[str, ...] = ()
    derived: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    heard_by: str = ""
    judged_by: str = ""
    trivial: str = ENERGY
    described_by: tuple[str, ...] = ()
    twin: tuple[str, str] = UNTRAINED_TWIN
    optional_baselines: Mapping[str, str] = field(default_factory={"shuffled:": "its weights shuffled"}.copy)
    is_headline: bool = False
    needs_scenes: bool = False
    training: str = ""
    shows_training: bool = False
    profile: Profile | None = None
    choices: Mapping[str, str | int] = field(default_factory=dict)

    def passes_over(self, rows: Sequence[Row]) -> bool:
        """Return whether the task, unless it is named, silently skips these rows.

        It skips rows with a ``recording`` if it needs scenes.
        """
        return self.needs_scenes and any(row.get("recording") for row in rows)

    def measure(self, name: str) -> Measure:
        """Return a measure by its name. Raises KeyError if there is none."""
        return self._by_name[name]

    @property
    def _by_name(self) -> dict[str, Measure]:
        return {measure.name: measure for measure in self.measures}

    @property
    def score(self) -> Measure:
        """Return the measure that the task is named for."""
        return self.measures[0]

    @property
    def recommended(self) -> tuple[Measure, ...]:
        """Return the trusted measures, the one that the task ranks by first."""
        return tuple(self._by_name[name] for name in dict.fromkeys((self.ranks_by, *self.trusted)))

    @property
    def judge(self) -> Measure:
        """Return the measure that decides whether a model is above another."""
        return self._by_name[self.judged_by or self.ranks_by]

    @property
    def sampled(self) -> tuple[Measure, ...]:
        """Return the measures that are means over all samples: they have intervals and paired tests."""
        return tuple(measure for measure in self.measures if measure.column is not None and measure.within is None)

    @property
    def with_intervals(self) -> tuple[Measure, ...]:
        """Return the measures that are means over samples, all or some of them."""
        return tuple(measure for measure in self.measures if measure.column is not None)

    @property
    def shown(self) -> tuple[Measure, ...]:
        """Return the measures that tables show."""
        return tuple(measure for measure in self.measures if measure.shown)


def nulls_of(measure: Measure, info: TaskInfo, values: Mapping[str, Number]) -> list[tuple[Measure, float]]:
    """Return the null and the trivial baseline of a measure with their values, the larger first.

    The larger one is the measure's baseline.

    A trivial baseline may be above or below the null: one-dimensional embeddings of random sign carry no information,
    but have a group score of nearly one half, their trivial baseline, while independent similarities score 1/6.

    Args:
        measure: measure of the task.
        info: facts of the task.
        values: all measures of one result; a missing one is left out.
    """
    named = [info.measure(name) for name in (measure.null, measure.trivial) if name is not None]
    stated = [(null, float(value)) for null in named if (value := values.get(null.name)) is not None]
    return sorted(stated, key=lambda pair: -pair[1])


def least_of(measure: Measure, info: TaskInfo, values: Mapping[str, Number]) -> tuple[Measure, float] | None:
    """Return the baseline of a measure and its value: the first of `nulls_of`; None if there is none."""
    return next(iter(nulls_of(measure, info, values)), None)


def settings_among(spec: type[Settings], requested: Mapping[str, Any]) -> Settings:
    """Return the settings of one task, out of settings requested for several tasks.

    Raises:
        InputError: a value is invalid for its field.
    """
    return spec(**{name: value for name, value in requested.items() if name in spec.model_fields})


@dataclass(frozen=True)
class Inputs:
    """The inputs of a model for one row.

    Attributes:
        clips: names of the row's clips, as in `Recipe.clip_names`, in the order that `Task.score` expects.
        texts: texts for an audio–text encoder to embed.
        prompts: prompts for an audio language model; each is about an equal number of `clips`, in order.
        options: for each of `prompts` the texts to choose from, in the order of the prompt; empty if the answer is
            free.
        scoring: how an answer is obtained: `GENERATE`, the text that the model writes; or the log-likelihood that
            decides among `options`, ``letters`` or ``options``, see `Model.score_options`.
        new_tokens: tokens that an answer may need; None for the model's own limit.
        group: name shared by rows whose clips have the same sounds, so that none replaces another clip among them;
            empty if the clusters of samples define this.
        cuts: whether a clip longer than the model's input is cut to its beginning; else it is refused.
    """

    clips: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    options: tuple[tuple[str, ...], ...] = ()
    scoring: Scoring = GENERATE
    new_tokens: int | None = None
    group: str = ""
    cuts: bool = False


@dataclass(frozen=True)
class Outputs:
    """The outputs of a model for the inputs of some rows, row by row.

    Attributes:
        clips: embeddings of the clips, float32 [clips of all rows, dim].
        texts: embeddings of the texts, float32 [texts of all rows, dim].
        answers: answers to the prompts of all rows.
    """

    clips: NDArray[np.floating] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    texts: NDArray[np.floating] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    answers: Sequence[str] = ()


@dataclass(frozen=True)
class Scores:
    """The scores of one model in a task.

    Attributes:
        measures: every measure of `TaskInfo.measures` by its name; None if it is not defined.
        ids: row id of each scored sample, [n].
        columns: columns of the samples by name, finite float64 [n] each, as measures and drawings need them.
        training: lists about the fits by name, such as the best step of each seed; empty if nothing is fitted.
    """

    measures: Mapping[str, Number]
    ids: tuple[str, ...]
    columns: Mapping[str, Floats]
    training: Mapping[str, Sequence[int | float]] = field(default_factory=dict)


def scores_from(values: Mapping[str, Any], info: TaskInfo, rows: Sequence[Row]) -> Scores:
    """Return scores from the return value of a task's metric with ``return_scores``.

    Args:
        values: its measures by name, and for each column of samples a list named in the plural, ``scores_top1`` for
            ``score_top1``; a list that is None because the measure is not defined has no column.
        info: facts of the task.
        rows: the scored samples.
    """
    lists = {str(measure.column): values[f"scores{str(measure.column)[len('score') :]}"] for measure in info.sampled}
    columns = {name: np.array(scores, np.float64) for name, scores in lists.items() if scores is not None}
    measures = {measure.name: values[measure.name] for measure in info.measures}
    return Scores(measures, tuple(row["id"] for row in rows), columns)


@dataclass(frozen=True)
class Samples:
    """The scored samples: everything known about them except their scores.

    Attributes:
        rows: row of each sample, without audio.
        clusters: [n] int64, equal for samples that are not independent of each other.
        clustered_by: the property that samples of a cluster share, in words; empty if each sample is its own cluster.
        diversity: variables on which scores may depend, [n] by name; figures show the first.
        diversity_name: its symbol or words, such as ``H``.
        held_fixed: covariates [n] by name; the slope against diversity is also computed with these held fixed.
        groups: the group of each sample, by the name of a grouping.
        contents: contents of each clip of a sample as people read them: a table of labels by the name of a part.
        texts: captions of a sample's clips, by the clips' names.
        asked: the question of each sample, if it has options.
        without_listening: score without any clip for the samples at given indices, by its name in words, such as
            ``chance``.
    """

    rows: tuple[Row, ...]
    clusters: NDArray[np.int64]
    clustered_by: str = ""
    diversity: Mapping[str, Floats] = field(default_factory=dict)
    diversity_name: str = ""
    held_fixed: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    contents: tuple[Mapping[str, Sequence[Mapping[str, str]]], ...] = ()
    texts: tuple[Mapping[str, str], ...] = ()
    asked: tuple[ShownQuestion, ...] = ()
    without_listening: Mapping[str, MeanOfPlaces] = field(default_factory=dict)

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the row id of each sample."""
        return tuple(row["id"] for row in self.rows)

    def at(self, index: Sequence[int]) -> Samples:
        """Return some of the samples, in the order of the index."""
        places = np.asarray(index, np.int64)

        def taken(values: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(values[place] for place in places) if len(values) else ()

        return Samples(
            rows=taken(self.rows),
            clusters=self.clusters[places],
            clustered_by=self.clustered_by,
            diversity={name: values[places] for name, values in self.diversity.items()},
            diversity_name=self.diversity_name,
            held_fixed={name: values[places] for name, values in self.held_fixed.items()},
            groups={name: taken(labels) for name, labels in self.groups.items()},
            contents=taken(self.contents),
            texts=taken(self.texts),
            asked=taken(self.asked),
            without_listening={name: _of_some(reached, places) for name, reached in self.without_listening.items()},
        )


def _of_some(mean: MeanOfPlaces, places: NDArray[np.int64]) -> MeanOfPlaces:
    """Return the mean restricted to the samples at some indices."""
    return lambda some: mean(places[some])


def events_shown(events: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return events of a clip as people read them, for `Samples.contents`.

    Events have ``label``, and ``start`` and ``stop`` in seconds.
    """
    return [
        {"sound": event["label"], "from (s)": f"{event['start']:.2f}", "to (s)": f"{event['stop']:.2f}"}
        for event in events
    ]


def groups_of(rows: Sequence[Row], column: str = "group") -> NDArray[np.int64]:
    """Return a number for each row, [n], equal if a column has the same text."""
    return np.unique([row[column] for row in rows], return_inverse=True)[1].astype(np.int64)


def entropies(rows: Sequence[Row], parts: Sequence[Sequence[Scene]]) -> dict[str, Floats]:
    """Return the entropy of the classes of the sources of each row: ``total`` first, then by attribute.

    It is the sum over the row's scenes, each in units of the logarithm of the number of classes (arXiv 2603.13685,
    section 4.2). Entropies stated in rows are used; others are computed from the labels.

    Args:
        rows: [n] rows.
        parts: for each part of a row (A, C and T of a quadruple; the scene) its scene in each row.

    Returns:
        float64 [n] by name.
    """
    if not rows:
        return {TOTAL: np.zeros(0)}
    labels = list(parts[0][0][0])
    classes = {label: len({s[label] for part in parts for scene in part for s in scene}) for label in labels}
    by_attribute = {}
    for label in labels:
        attribute = label.removesuffix("_label")
        if all(attribute in (row.get("entropy") or {}) for row in rows):
            values = [float(row["entropy"][attribute]) for row in rows]
        else:
            values = [
                sum(_entropy([source[label] for source in part[k]], classes[label]) for part in parts)
                for k in range(len(rows))
            ]
        by_attribute[attribute] = np.array(values)
    return {TOTAL: np.sum(list(by_attribute.values()), axis=0), **by_attribute}


def _entropy(labels: Sequence[str], classes: int) -> float:
    shares = [count / len(labels) for count in Counter(labels).values()]
    return abs(sum(share * math.log(share) for share in shares)) / math.log(classes) if classes > 1 else 0.0


def source_counts(scenes: Sequence[Scene]) -> NDArray[np.int64]:
    """Return the number of sources of each scene, [n]."""
    return np.array([len(scene) for scene in scenes], np.int64)


def same_scenes(scenes: Sequence[Scene]) -> NDArray[np.int64]:
    """Return a number for each scene, [n], equal for scenes with the same sources."""
    return numbered([frozenset(tuple(sorted(source.items())) for source in scene) for scene in scenes])


def numbered(names: Sequence[Hashable]) -> NDArray[np.int64]:
    """Return a number for each name, [n], equal for equal names, in order of first appearance."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)


def differing_attributes(first: Scene, second: Scene) -> str:
    """Return the attributes whose counts of classes differ between two scenes, joined by " + "; or "none"."""
    names = [
        label.removesuffix("_label")
        for label in first[0]
        if Counter(source[label] for source in first) != Counter(source[label] for source in second)
    ]
    return " + ".join(names) or "none"


def labels_for_people(scene: Scene) -> list[dict[str, str]]:
    """Return the sources of a scene with their attributes' names as people read them."""
    return [{label.removesuffix("_label"): value for label, value in source.items()} for source in scene]


def independent_samples(rows: Sequence[Row]) -> Samples:
    """Return samples that are independent, without further properties."""
    return Samples(tuple(rows), np.arange(len(rows)))


@dataclass(frozen=True)
class Drawing:
    """A figure of a single task: a panel for each model.

    Attributes:
        name: name of its files.
        title: caption, one sentence.
        alternative: alternative text, for people who cannot see it.
        columns: the samples' columns that it needs; it is left out if a result lacks one.
        panel: draws one model's panel onto axes, from its columns and lists of `training` as arrays, and its measures.
        training: the lists of `Scores.training` that it needs; it is left out if a result lacks one.
        intervals: names of measures whose 95 % intervals it needs, as in tables: each is added to the columns under the
            measure's name, as the lower and the upper end, NaN for too few samples.
        x, y: labels of the axes, if all panels share them.
        one: draws the panel with one sample marked, by its index; None if the figure shows no single samples.
    """

    name: str
    title: str
    alternative: str
    columns: tuple[str, ...]
    panel: Callable[[Axes, Mapping[str, Floats], Mapping[str, Number]], None]
    one: Callable[[Axes, Mapping[str, Floats], Mapping[str, Number], int], None] | None = None
    training: tuple[str, ...] = ()
    intervals: tuple[str, ...] = ()
    x: str = ""
    y: str = ""


class Task(Protocol):
    """A task: a module in this folder, or of an installed package, has one by the name ``TASK``.

    Attributes:
        info: facts of the task.
        drawings: its own figures, in addition to the common ones.
    """

    info: TaskInfo
    drawings: tuple[Drawing, ...]

    @property
    def spec(self) -> type[Spec]:
        """Return the class whose fields are the task's settings; `Spec` itself if it has none."""
        ...

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """Return the inputs of a model for a row, under settings; see `settings`."""
        ...

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """Return everything that the score depends on besides the model and the data, as JSON values.

        Args:
            rows: rows of the configuration.
            requested: values that replace defaults of `spec`; values for other tasks may be among them.

        Raises:
            TaskError: the rows cannot be scored.
            InputError: a requested value is invalid for its field.
        """
        ...

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the outputs of a model for all inputs.

        Args:
            rows: all rows, training rows included.
            outputs: outputs for their inputs.
            settings: see `settings`.
            device: torch device of fits.
            progress: whether to show progress of fits.
        """
        ...

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return the scored samples, in the order of `Scores.ids`."""
        ...


class PlainTask:
    """Base class of tasks without settings and figures and with one clip per row.

    A subclass scores and describes its samples; see `Task`.
    """

    spec: type[Spec] = Spec
    drawings: tuple[Drawing, ...] = ()

    def __init__(self, info: TaskInfo) -> None:
        """Store the facts of the task."""
        self.info = info

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """Return the clip of the row."""
        return Inputs(clips=("audio",))

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """Return no settings: the score depends only on the outputs and their rows.

        Raises:
            TaskError: there are no rows.
        """
        if not rows:
            raise TaskError(f"{self.info.name} has no {self.info.samples}; at least one is needed")
        return {}
