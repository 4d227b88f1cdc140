"""What an evaluation costs before it is begun: clips, seconds of sound, minutes and MB, from rates measured here."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from audio_compositionality.dataset_builder.data import Configuration, Data
from audio_compositionality.encoders.base import Model
from audio_compositionality.encoders.loading.names import parse_name
from audio_compositionality.support.files import cache_folder
from audio_compositionality.support.table import Cell, Column, Row, Table

from .planning import Named, Plan

TRIED = 4
"""Clips that a rate is measured by; one more is embedded before, so that what is done once does not count."""

_BYTES = 4
"""Of a number of an embedding in the store."""


@dataclass(frozen=True)
class Cost:
    """What embedding or asking about the clips of a configuration takes.

    Attributes:
        recipe: of the configuration.
        rows: how many.
        asked: rows of the split test: of questions, those that are put.
        clips: how many.
        seconds: of sound, as long as the first few clips are on average.
    """

    recipe: str
    rows: int
    asked: int
    clips: int
    seconds: float


def cost_of(configuration: Configuration) -> Cost:
    """The cost of a configuration; a few clips of it are rendered or read.

    Raises:
        DatasetError: the data cannot be used.
    """
    count = len(configuration.clip_ids)
    first = list(configuration.clips(range(min(count, TRIED)), keep_invalid=True))
    mean = sum(len(clip.waveform) / clip.sample_rate for clip in first) / max(len(first), 1)
    asked = sum(row["split"] == "test" for row in configuration.rows)
    return Cost(configuration.recipe, len(configuration.rows), asked, count, mean * count)


def seconds_per_clip(model: Model, configuration: Configuration) -> float:
    """Seconds that one clip takes on this machine, rendered or read and embedded by itself.

    Raises:
        DatasetError: the data cannot be used.
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


def stored_megabytes(model: Model, costs: Sequence[Cost]) -> float:
    """MB that the embeddings take in the store."""
    return sum(cost.clips for cost in costs) * (model.card.output_dim or 0) * _BYTES / 1e6


def to_download(name: str) -> str:
    """What of a model has to be fetched before it can be run, in words; empty where all of it is here.

    Args:
        name: as `load_model` takes it.

    Raises:
        ModelError: nothing has that name.
    """
    parsed = parse_name(name)
    listing = parsed.listing
    source = parsed.model if parsed.form == "hub" else None if listing is None or parsed.path else listing.source
    if source is None:
        return ""
    if isinstance(source, str):
        from huggingface_hub import try_to_load_from_cache

        is_here = isinstance(try_to_load_from_cache(source, "config.json"), str)
        return "" if is_here else f"{source} of the Hub"
    if parsed.twin is not None and parsed.twin.is_fresh:
        return ""
    is_here = (cache_folder() / "weights" / source.name).exists()
    return "" if is_here else f"{source.name}, {source.size / 1e6:,.0f} MB"


@dataclass(frozen=True)
class ModelCost:
    """What one model of a plan costs.

    Attributes:
        name: of the model.
        clips: that it embeds.
        questions: that it is put.
        seconds: that its clips take here; None where the model is not here, or answers.
        megabytes: of its embeddings in the store; None likewise.
        download: what has to be fetched; empty where nothing has to be.
    """

    name: str
    clips: int
    questions: int
    seconds: float | None
    megabytes: float | None
    download: str


def is_here(name: str) -> bool:
    """Whether a model can be loaded without fetching anything, and without asking a server.

    Raises:
        ModelError: nothing has that name.
    """
    parsed = parse_name(name)
    return parsed.form != "endpoint" and parsed.prefix != "heard-as-text" and not to_download(name)


def costs_of_plan(plan: Plan, data: Data, load: Callable[[str], Sequence[Model]]) -> list[ModelCost]:
    """The costs of each model; those that embed and are here are loaded, and embed a few clips.

    Args:
        plan: of an evaluation.
        data: that it is of.
        load: gives the models that a name becomes: one a layer and one a seed of a twin.
    """
    costs = {recipe: cost_of(data.configuration(recipe)) for recipe in {task.info.recipe for task in plan.tasks}}
    return [_cost_of_model(name, plan, data, costs, load) for name in plan.names]


def _cost_of_model(
    name: str, plan: Plan, data: Data, costs: Mapping[str, Cost], load: Callable[[str], Sequence[Model]]
) -> ModelCost:
    embeds = load(name) if is_here(name) else ()
    scored = Named(name, tuple(embeds)) if embeds else Named(parse_name(name).model)
    tasks = [task for task in plan.tasks if scored.does(task)]
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
        megabytes = sum(stored_megabytes(model, [costs[recipe] for recipe in embedded]) for model in embeds)
    return ModelCost(name, clips, questions, seconds, megabytes, to_download(name))


def plan_table(costs: Sequence[ModelCost]) -> Table:
    """The costs of each model as a table."""
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
