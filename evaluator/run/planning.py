"""The plan of a run, and its cost.

The plan lists the models to score and the baselines, twins and controls that the tasks need. The cost is in clips,
seconds of sound, minutes and MB, from rates measured on this machine.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from audio_compositionality.dataset_builder.data import Configuration, Data
from audio_compositionality.encoders.adapters.custom_loading import twin_problem
from audio_compositionality.encoders.base import ENCODER, LANGUAGE_MODEL, Model
from audio_compositionality.encoders.controls import CONTROLS, can_control
from audio_compositionality.encoders.loading.names import list_models, parse_name, split_control
from audio_compositionality.encoders.loading.registry import has_twins
from audio_compositionality.encoders.loading.twins import UNTRAINED
from audio_compositionality.evaluator.compare.loading import descriptions_of
from audio_compositionality.support.files import cache_folder
from audio_compositionality.support.table import Cell, Column, Row, Table
from audio_compositionality.tasks.base import Task

from .outputs import can_do

_OF_INPUT = tuple(kind.prefix for kind in CONTROLS.values())


@dataclass(frozen=True)
class Named:
    """A model named by the user, as far as it can be resolved.

    Attributes:
        name: as the user typed it.
        loaded: its models, one per layer; empty if it is not loaded. A name that is neither loaded nor listed counts
            as an audio encoder.
    """

    name: str
    loaded: tuple[Model, ...] = ()

    def does(self, task: Task) -> bool:
        """Whether it has the abilities that a task needs."""
        if self.loaded:
            return any(can_do(task, model) for model in self.loaded)
        parsed = parse_name(self.name)
        if parsed.form == "endpoint" or parsed.prefix == "detected-as-text":
            return task.info.needs <= LANGUAGE_MODEL
        return task.info.needs <= ENCODER if parsed.listing is None else parsed.listing.can_do(task.info.needs)

    def takes(self, prefix: str) -> bool:
        """Whether the model has this twin or takes this control; a model under a control takes none.

        Warns if the weights of a twin cannot be drawn.
        """
        if prefix not in _OF_INPUT:
            if not has_twins(self.name, prefix, self.loaded):
                return False
            # A problem if it is unknown how the model's weights are initialized.
            problem = next(filter(None, (twin_problem(model, prefix) for model in self.loaded)), None)
            if problem is not None:
                warnings.warn(f"{prefix}{self.name} is left out: {problem}", stacklevel=3)
            return problem is None
        kind, _ = split_control(f"{prefix}{self.name}")
        is_control = self.name.startswith(_OF_INPUT) or kind is None
        return not is_control and all(can_control(model, kind) for model in self.loaded if kind is not None)


@dataclass(frozen=True)
class Plan:
    """The models of a run.

    Attributes:
        tasks: the tasks to score.
        baselines: names of the baselines that are scored too.
        controls: for each named model, its twins and controls.
        apart: pairs (name of a baseline, name of a task) that are not scored, such as a text baseline and a task
            without texts.
    """

    tasks: tuple[Task, ...]
    baselines: tuple[str, ...]
    controls: Mapping[str, tuple[str, ...]]
    apart: frozenset[tuple[str, str]] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all models, each followed by its twins and controls."""
        named = [one for name, controls in self.controls.items() for one in (name, *controls)]
        return (*self.baselines, *named)


def planned(
    given: Sequence[Named], tasks: Sequence[Task], *, is_named: bool, is_judged: bool, is_first_look: bool = False
) -> Plan:
    """Return the plan of an evaluation.

    Args:
        given: the models.
        tasks: the named tasks, or those that the data allow.
        is_named: whether the tasks were named; else tasks that none of the models can do are left out.
        is_judged: whether each model gets every twin and control that a task wants; else its untrained twin alone.
        is_first_look: whether to leave out baselines that a verdict does not need.
    """
    scored = [task for task in tasks if is_named or not given or any(one.does(task) for one in given)]
    needs = {task.info.needs for task in scored}
    common = [one.name for one in list_models() if one.is_baseline and any(map(one.can_do, needs))]
    baselines = [] if is_first_look else common
    wanted = [control for task in scored for control in task.info.controls] if is_judged else []
    # A verdict needs the acoustic or text baselines.
    wanted += [name for task in scored for name in descriptions_of(task.info)]
    baselines += [name for name in dict.fromkeys(wanted) if not name.endswith(":") and name not in baselines]
    names = {one.name for one in given}
    controls = {}
    for one in given:
        if one.name in baselines:
            continue
        prefixes = [UNTRAINED]
        if is_judged:
            done = [task for task in scored if one.does(task)]
            # The untrained twin is only run if a task judges by it: an untrained model that must read a question is no
            # informative baseline.
            judged = {task.info.twin[0] for task in done} or {UNTRAINED}
            wanted = [control for task in done for control in task.info.controls if control.endswith(":")]
            every = dict.fromkeys([*([UNTRAINED] if UNTRAINED in judged else []), *wanted])
            # Twins first.
            prefixes = sorted(every, key=lambda prefix: prefix in _OF_INPUT)
        controls[one.name] = tuple(
            f"{prefix}{one.name}" for prefix in prefixes if f"{prefix}{one.name}" not in names and one.takes(prefix)
        )
    listings = {one.name: one for one in list_models()}
    apart = frozenset(
        (name, task.info.name)
        for name in baselines
        for task in scored
        if listings[name].embeds_text and not listings[name].is_baseline and "text" not in task.info.needs
    )
    return Plan(tuple(scored), tuple(baselines), controls, apart)


TRIED = 4
"""Clips for measuring a rate; one more is embedded first, so that one-time work does not count."""

_BYTES = 4
"""Bytes of one number of a cached embedding."""


@dataclass(frozen=True)
class Cost:
    """The size of a configuration, which determines the cost of embedding its clips or answering about them.

    Attributes:
        recipe: of the configuration.
        rows: number of rows.
        asked: number of rows of the test split; for tasks with questions, the number of questions.
        clips: number of clips.
        seconds: seconds of sound, estimated from the mean length of the first few clips.
    """

    recipe: str
    rows: int
    asked: int
    clips: int
    seconds: float


def cost_of(configuration: Configuration) -> Cost:
    """Return the cost of a configuration; a few of its clips are rendered or read.

    Raises:
        DatasetError: unusable data.
    """
    count = len(configuration.clip_ids)
    first = list(configuration.clips(range(min(count, TRIED)), keep_invalid=True))
    mean = sum(len(clip.waveform) / clip.sample_rate for clip in first) / max(len(first), 1)
    asked = sum(row["split"] == "test" for row in configuration.rows)
    return Cost(configuration.recipe, len(configuration.rows), asked, count, mean * count)


def seconds_per_clip(model: Model, configuration: Configuration) -> float:
    """Return the seconds to render or read one clip and to embed it alone, measured on this machine.

    Raises:
        DatasetError: unusable data.
        ModelError: the model cannot embed these clips.
    """
    clips = configuration.clips(range(min(len(configuration.clip_ids), TRIED + 1)), keep_invalid=True)
    taken: list[float] = []
    started = time.perf_counter()
    for clip in islice(clips, TRIED + 1):
        if clip.problem is None:
            model.embed(clip.waveform[None], clip.sample_rate)
        taken.append(time.perf_counter() - started)
        started = time.perf_counter()
    return sum(taken[1:] or taken) / max(len(taken[1:] or taken), 1)


def cached_megabytes(model: Model, costs: Sequence[Cost]) -> float:
    """Return the MB of a model's embeddings in the cache."""
    return sum(cost.clips for cost in costs) * (model.card.output_dim or 0) * _BYTES / 1e6


def to_download(name: str) -> str:
    """Return the files of a model that have to be downloaded, in words; empty if none have to be.

    Args:
        name: as `load_model` takes it.

    Raises:
        ModelError: no model has this name.
    """
    parsed = parse_name(name)
    listing = parsed.listing
    source = parsed.model if parsed.form == "hub" else None if listing is None or parsed.path else listing.source
    if source is None or isinstance(source, Path):
        return ""
    if isinstance(source, str):
        from huggingface_hub import try_to_load_from_cache

        is_here = isinstance(try_to_load_from_cache(source, "config.json"), str)
        return "" if is_here else f"{source} from the Hub"
    if parsed.twin is not None and parsed.twin.is_fresh:
        return ""
    is_here = (cache_folder() / "weights" / source.name).exists()
    return "" if is_here else f"{source.name}, {source.size / 1e6:,.0f} MB"


@dataclass(frozen=True)
class ModelCost:
    """The cost of one model of a plan.

    Attributes:
        name: of the model.
        clips: number of clips that it embeds.
        questions: number of questions that it is asked.
        seconds: time for its clips on this machine; None if the model is not here or answers questions.
        megabytes: size of its embeddings in the cache; None as for `seconds`.
        download: the files to download; empty if there are none.
    """

    name: str
    clips: int
    questions: int
    seconds: float | None
    megabytes: float | None
    download: str


def is_here(name: str) -> bool:
    """Whether a model can be loaded without a download or a call to a server.

    Raises:
        ModelError: no model has this name.
    """
    parsed = parse_name(name)
    return parsed.form != "endpoint" and parsed.prefix != "detected-as-text" and not to_download(name)


def costs_of_plan(plan: Plan, data: Data, load: Callable[[str], Sequence[Model]]) -> list[ModelCost]:
    """Return the cost of each model; encoders that need no download are loaded, and embed a few clips.

    Args:
        plan: of an evaluation.
        data: its data.
        load: returns the models of a name, one per layer and per seed of a twin.
    """
    costs = {recipe: cost_of(data.configuration(recipe)) for recipe in {task.info.recipe for task in plan.tasks}}
    costs_of_models = []
    for name in plan.names:
        embeds = load(name) if is_here(name) else ()
        scored = Named(name, tuple(embeds)) if embeds else Named(parse_name(name).model)
        tasks = [task for task in plan.tasks if scored.does(task) and (name, task.info.name) not in plan.apart]
        asked = {task.info.recipe for task in tasks if "answer" in task.info.needs}
        embedded = sorted({task.info.recipe for task in tasks} - asked)
        count = max(len(embeds), 1)
        clips = count * sum(costs[recipe].clips for recipe in embedded)
        questions = count * sum(costs[recipe].asked for recipe in asked)
        seconds = megabytes = None
        if embeds and embedded:
            seconds = sum(
                costs[recipe].clips * seconds_per_clip(model, data.configuration(recipe))
                for model in embeds
                for recipe in embedded
            )
            megabytes = sum(cached_megabytes(model, [costs[recipe] for recipe in embedded]) for model in embeds)
        costs_of_models.append(ModelCost(name, clips, questions, seconds, megabytes, to_download(name)))
    return costs_of_models


def plan_table(costs: Sequence[ModelCost]) -> Table:
    """Return the costs of each model as a table."""
    columns = (
        Column("model", numeric=False),
        Column("clips", "to embed", digits=None),
        Column("questions", digits=None),
        Column("minutes", "measured on a few clips", digits=1),
        Column("MB", "of embeddings", digits=1),
        Column("download", numeric=False),
    )
    rows = [
        Row(
            (
                Cell(one.name),
                Cell(one.clips or None),
                Cell(one.questions or None),
                Cell(None if one.seconds is None else one.seconds / 60),
                Cell(one.megabytes),
                Cell(one.download),
            )
        )
        for one in costs
    ]
    return Table("What would be run", columns, tuple(rows), (), "plan")
