"""Scores of a model in training on the validation split: tasks with captions, and true against nearly true texts.

Is a true text nearer to its clip than nearly true ones? Captions are tested, and parts of mixtures of three events.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tqdm.auto import tqdm

from audio_compositionality.dataset_builder.data import Clip, Data, DatasetError, Row, in_batches, recipe_fingerprint
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.recipes.base import ValidatedRecipe
from audio_compositionality.dataset_builder.rendered import RenderedConfiguration
from audio_compositionality.dataset_builder.scenes.captioned import leaves, parts
from audio_compositionality.dataset_builder.texts.caption_reading import UnreadableError, read, vocabulary_of
from audio_compositionality.dataset_builder.texts.captions import caption
from audio_compositionality.dataset_builder.texts.truth import SAME_WORDS, HeardEvent, draw_wording, is_true, negatives
from audio_compositionality.encoders.base import TEXT_ENCODER, Model
from audio_compositionality.evaluator.run.opened import OpenedTask
from audio_compositionality.support.errors import InputError
from audio_compositionality.tasks.base import Outputs, TaskError
from audio_compositionality.tasks.registry import list_tasks

from .batches import generator_of
from .data import TrainingSplits, open_training
from .settings import VALIDATION_ITEMS, TrainingError

NEAR = 1e-6
"""Cosines that differ by at most this are a tie, which is wrong (as in the metric of captions of the same words)."""

LEAST_EVENTS = 3
"""Minimum number of events of a clip whose parts are themselves compositions."""

MOST_FALSE = 8
"""Maximum number of false texts per true one."""

SAME, CAPTION, PART = "same_words", "caption", "part"


@dataclass(frozen=True)
class Trial:
    """A text that is true of a clip, and texts that are false of it.

    Attributes:
        what: its kind: ``caption.KIND`` with the kind of the false texts, or ``part``.
        clip: number of the clip among the embedded clips.
        true: text.
        false: at least one text.
    """

    what: str
    clip: int
    true: str
    false: tuple[str, ...]


def caption_trials(row: Row, clip: int) -> Iterator[Trial]:
    """Yield the first caption of a training row with its false texts: by kind, and all of the same words together."""
    by_kind: dict[str, list[str]] = {}
    for negative in row.get("negatives") or ():
        by_kind.setdefault(negative["kind"] or "", []).append(negative["text"])
    for kind, texts in by_kind.items():
        if kind:
            yield Trial(f"{CAPTION}.{kind}", clip, row["captions"][0], tuple(texts))
    same = [text for kind in (*SAME_WORDS, "") for text in by_kind.get(kind, ())]
    if same:
        yield Trial(f"{CAPTION}.{SAME}", clip, row["captions"][0], tuple(same))


def part_trials(row: Row, clip: int, rng: np.random.Generator) -> Iterator[Trial]:
    """Yield parts with two or more events of a training row with three or more, each with its own false variants.

    The row's first caption is parsed; a row without events, or with an ambiguous caption, has no parts.

    Args:
        row: row with ``captions`` and ``events``.
        clip: see `Trial`.
        rng: draws wordings, as in training.
    """
    events = [HeardEvent.of(event) for event in row.get("events") or ()]
    if len(events) < LEAST_EVENTS:
        return
    try:
        whole = read(row["captions"][0], vocabulary_of(events)).expression
    except UnreadableError:
        return
    for part in parts(whole):
        if len(leaves(part)) < 2 or not is_true(part, events):
            continue
        wording = draw_wording(part, rng, held_out=False)
        false = negatives(part, wording, events, rng, most=MOST_FALSE, held_out=False)
        if false:
            yield Trial(PART, clip, caption(part, wording), tuple(one.text for one in false))


def nearer(true: ArrayLike, false: ArrayLike, of_trial: ArrayLike) -> NDArray[np.float64]:
    """Return whether the true text of each trial is nearer to its clip than every false one; a tie is wrong.

    Args:
        true: [n], the cosine of the true text of each trial with its clip.
        false: [m], the cosines of false texts.
        of_trial: [m], the number of each false text's trial; every trial has at least one.

    Returns:
        [n], 1 or 0.
    """
    cosines = np.asarray(true, np.float64)
    nearest = np.full(len(cosines), -np.inf)
    np.maximum.at(nearest, np.asarray(of_trial, np.int64), np.asarray(false, np.float64))
    return (cosines > nearest + NEAR).astype(np.float64)


def score_trials(
    trials: Sequence[Trial], clips: NDArray[np.floating], texts: dict[str, NDArray[np.floating]]
) -> dict[str, float]:
    """Return the share of trials whose true text is the nearest, by `Trial.what`.

    Args:
        trials: the trials.
        clips: [clips, dim], of any length but 0.
        texts: the embedding of each text, [dim].
    """
    if not trials:
        return {}
    of_trial = np.repeat(np.arange(len(trials)), [len(trial.false) for trial in trials])
    clip = np.array([trial.clip for trial in trials])
    unit = _unit(clips)
    true = (unit[clip] * _unit(np.stack([texts[trial.true] for trial in trials]))).sum(axis=1)
    false = _unit(np.stack([texts[text] for trial in trials for text in trial.false]))
    right = nearer(true, (unit[clip[of_trial]] * false).sum(axis=1), of_trial)
    kinds = np.array([trial.what for trial in trials])
    return {kind: float(right[kinds == kind].mean()) for kind in dict.fromkeys(kinds.tolist())}


def _unit(embeddings: NDArray[np.floating]) -> NDArray[np.float64]:
    values = np.asarray(embeddings, np.float64)
    unit: NDArray[np.float64] = values / np.maximum(np.linalg.norm(values, axis=1)[:, None], np.finfo(np.float64).tiny)
    return unit


MOST_CLIPS = 100
"""Number of candidates of a retrieval: fixed, so that scores on different data have the same chance level."""

BATCH = 32
"""Number of clips per call of the model."""

MOST_LABELS = 4
"""Maximum number of groups of a grouping; with more, scores are not split by it."""

SCORE = "score"
"""The score that decides which weights are the best."""


@dataclass
class Validation:
    """Scores of a model in training, returned by a call. Clips are made, and their features computed, once.

    Attributes:
        items: tasks with their own items.
        rows: tasks on the rows and clips of the training data's split ``validation``.
        trials: texts that are true and nearly true of these clips.
        clips: clips of the rows.
        progress: show a progress bar while clips are prepared.
        left_out: reasons why tasks have no items, a phrase each.
    """

    items: tuple[OpenedTask, ...]
    rows: tuple[OpenedTask, ...]
    trials: tuple[Trial, ...]
    clips: tuple[Clip, ...]
    progress: bool = False
    left_out: tuple[str, ...] = ()
    _features: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def texts(self) -> list[str]:
        """All texts, each once."""
        texts = [text for one in (*self.items, *self.rows) for text in one.texts]
        texts += [text for trial in self.trials for text in (trial.true, *trial.false)]
        return list(dict.fromkeys(texts))

    def __call__(self, encoder: Model, step: int = 0) -> dict[str, float]:
        """Score a model.

        Args:
            encoder: the current model; its front end is the same in all calls.
            step: step of the training; nothing depends on it.

        Returns:
            numbers by name: first `SCORE`, the mean over the tasks with items of each task's ranking measure or,
            without such tasks, the share of captions that are nearer to their clip than all false texts of the same
            words; then ``TASK.MEASURE``, ``TASK.MEASURE.GROUPING=LABEL`` and ``caption.KIND``, ``part``.
        """
        listed = self.texts
        texts = dict(zip(listed, encoder.embed_text(listed), strict=True)) if listed else {}
        scores: dict[str, float] = {}
        for one in self.items:
            clips = self._embed(encoder, one.task.info.name, one.configuration.clips())
            scores |= _scores_of(one, clips, texts)
        if self.clips:
            clips = self._embed(encoder, "", iter(self.clips))
            for one in self.rows:
                scores |= _scores_of(one, clips[: len(one.rows)], texts)
            scores |= score_trials(self.trials, clips, texts)
        deciding = [scores[f"{one.task.info.name}.{one.task.info.ranks_by}"] for one in self.items]
        score = float(np.mean(deciding)) if deciding else scores.get(f"{CAPTION}.{SAME}", math.nan)
        return {SCORE: score, **scores}

    def _embed(self, encoder: Model, what: str, clips: Iterator[Clip]) -> NDArray[np.float32]:
        """Embed some clips; their features are kept under a name."""
        what = f"{type(encoder).__qualname__} {what}"
        if what not in self._features:
            bar = tqdm(clips, desc="clips for validation", unit="clip", disable=None if self.progress else True)
            self._features[what] = [
                encoder.prepare(batch.waveforms, batch.sample_rate) for batch in in_batches(bar, BATCH)
            ]
        return np.concatenate([encoder.forward(batch) for batch in self._features[what]])


def open_validation(
    data: TrainingSplits | Data, *, most: int = VALIDATION_ITEMS, seed: int = 0, progress: bool = False
) -> Validation:
    """Return the validation of a model in training; none of it is trained on.

    Tasks with items are those for models that embed text, whose recipe draws items of the split ``validation`` that are
    like the training rows (`ValidatedRecipe`). Other tasks for such models are scored on the rows of that split, if
    these have what they need.

    Args:
        data: training data, or opened data with a recipe for training.
        most: maximum number of items, or rows, of a task.
        seed: seed of the wordings.
        progress: show a progress bar while clips are prepared.

    Raises:
        TrainingError: there is nothing to score.
    """
    if most < 2:
        raise TrainingError(f"{most} validation items are too few; use 2 or more")
    if not isinstance(data, TrainingSplits):
        data = open_training(data)
    train, validation = data.train, data.validation
    text_tasks = [task for task in list_tasks() if task.info.needs == TEXT_ENCODER]
    items: list[OpenedTask] = []
    left_out: list[str] = []
    of_train = train.configuration
    for task in text_tasks:
        has_items = isinstance(load_recipe(task.info.recipe), ValidatedRecipe)
        if not has_items or not isinstance(of_train, RenderedConfiguration):
            continue
        try:
            made = _Items(train.source, task.info.recipe, of_train.settings, most)
            made_rows = tuple(made.rows)
            settings = task.settings(made_rows, {})
        except (InputError, DatasetError, TaskError) as error:
            left_out.append(f"no items of {task.info.name} for validation: {error}")
            continue
        inputs = tuple(task.inputs(row, settings) for row in made_rows)
        items.append(OpenedTask(task, made, made_rows, inputs, settings))
    rows: list[OpenedTask] = []
    trials: list[Trial] = []
    clips: list[Clip] = []
    if validation is not None:
        # Rows with different meanings, as the recipe has them, and their clips.
        configuration = validation.configuration
        by_id = {row["id"]: row for row in configuration.rows if row.get("split") == validation.split}
        taken = list({row.says: row for row in reversed(validation.rows)}.values())[::-1][:most]
        raw: list[Row] = []
        for one in taken:
            negatives = [{"text": text, "kind": kind} for text, kind in one.negatives]
            raw.append(by_id.get(one.id) or {"id": one.id, "captions": list(one.captions), "negatives": negatives})
            clips += validation.clips(range(one.clip, one.clip + 1))
        # Each is scored by its first caption.
        scored = tuple({**row, "captions": row["captions"][:1]} for row in raw[:MOST_CLIPS])
        names = {clip_id.rpartition("/")[2] for clip_id in configuration.clip_ids[:1]}
        for task in text_tasks:
            try:
                settings = task.settings(scored, {})
                inputs = tuple(task.inputs(row, settings) for row in scored)
            except (KeyError, TypeError, TaskError):
                continue
            if all(set(one.clips) == names for one in inputs):
                rows.append(OpenedTask(task, configuration, scored, inputs, settings))
        rng = generator_of("validation", seed)
        for place, row in enumerate(raw):
            trials += [*caption_trials(row, place), *part_trials(row, place, rng)]
    if not items and not clips:
        raise TrainingError(
            f"{train.source} has no validation data: no rows of the validation split, and no items like them"
        )
    return Validation(tuple(items), tuple(rows), tuple(trials), tuple(clips), progress, tuple(left_out))


class _Items(RenderedConfiguration):
    """Items of the split ``validation``."""

    def __init__(self, source: str, name: str, scenes: Any, count: int) -> None:
        recipe = load_recipe(name)
        assert isinstance(recipe, ValidatedRecipe)
        rendering: Any = recipe.render_validation(scenes, count)
        super().__init__(source, name, rendering.spec)
        self.rendering = rendering
        self.fingerprint = recipe_fingerprint(name, recipe.version, {**rendering.spec.values(), "split": "validation"})


def _scores_of(
    opened: OpenedTask, clips: NDArray[np.float32], texts: dict[str, NDArray[np.float32]]
) -> dict[str, float]:
    """Return the reported measures of a task, and its headline measures by the groups of its samples."""
    info = opened.task.info
    scores = opened.score(Outputs(clips=clips, texts=np.stack([texts[text] for text in opened.texts])))
    values = {
        f"{info.name}.{measure.name}": float(value)
        for measure in info.shown
        if isinstance(value := scores.measures.get(measure.name), int | float)
    }
    if not isinstance(load_recipe(info.recipe), ValidatedRecipe):
        return values
    for grouping, labels in opened.samples.groups.items():
        if not 1 < len(Counter(labels)) <= MOST_LABELS:
            continue
        for measure in info.recommended:
            column = scores.columns.get(measure.column or "")
            if column is None:
                continue
            for label in sorted(set(labels)):
                places = np.array([one == label for one in labels])
                values[f"{info.name}.{measure.name}.{grouping}={label}"] = float(column[places].mean())
    return values
