"""Scenes by chance, questions about them as rows, and how often they are answered rightly."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from audio_compositionality.dataset_builder.sounds.annotations import Annotation, LabelledEvent
from audio_compositionality.dataset_builder.texts.label_questions import draw_questions
from audio_compositionality.dataset_builder.texts.question_tasks import QuestionSettings
from audio_compositionality.dataset_builder.texts.questions import row_of
from audio_compositionality.encoders.base import LETTERS
from audio_compositionality.tasks.shapes.asking import direct_prompt

LABELS = ("Dog", "car horn", "rain", "TV", "bell", "people talking")

KINDS = (
    *("counting/kinds", "duration/total", "concurrency/anchor", "concurrency/clip"),
    *("classification/overlap", "detection/first", "detection/regions"),
    *("counting/together", "duration/longest"),
)


class Clip:
    """What a model is given as a clip."""

    def __init__(self, waveform, sample_rate=32_000):
        self.waveform, self.sample_rate = np.asarray(waveform, np.float32), sample_rate


SILENCE = Clip(np.zeros(16))


def scene(number, seed=0):
    """Two to five labels with one or two events each, anywhere in 10 s."""
    rng = np.random.default_rng([seed, number])
    events = []
    for label in rng.permutation(LABELS)[: int(rng.integers(2, 6))].tolist():
        for _ in range(int(rng.integers(1, 3))):
            onset = round(float(rng.uniform(0, 8)), 2)
            events.append(LabelledEvent(onset, min(10.0, round(onset + float(rng.uniform(0.4, 3)), 2)), label))
    return Annotation(f"s{seed}-{number:04d}", 10.0, tuple(events), 0.0, "scenes by chance")


def asked(count=600, seed=0, split="test", kinds=KINDS):
    """(question, annotation, row) of balanced questions about so many scenes."""
    annotations = {annotation.key: annotation for annotation in (scene(number, seed) for number in range(count))}
    questions = draw_questions(annotations.values(), QuestionSettings(ask=kinds, least_clips=3), seed=seed)
    return [
        (q, annotations[q.recording, q.start], row_of(q, annotations[q.recording, q.start], split)) for q in questions
    ]


def prompts_of(rows):
    return [direct_prompt(row["question"], row["options"]) for row in rows]


def right(rows, answers):
    """Whether each answer is the letter of the right option."""
    return np.array([LETTERS[row["options"].index(row["answer"])] == a for row, a in zip(rows, answers, strict=True)])


def by_kind(rows, answers):
    """Of each kind: share that is right, chance, and the standard error of chance."""
    groups = defaultdict(list)
    for row, is_right in zip(rows, right(rows, answers), strict=True):
        groups[f"{row['task']}/{row['variant']}"].append((is_right, 1 / len(row["options"])))
    shares = {}
    for kind, pairs in groups.items():
        hits, chances = np.array(pairs, float).T
        shares[kind] = hits.mean(), chances.mean(), np.sqrt((chances * (1 - chances)).sum()) / len(chances)
    return shares
