"""Small data, tasks and models for tests of how models are run: what each gives can be said beforehand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import torch

from audio_compositionality.dataset_builder.data import Clip, check_range
from audio_compositionality.encoders.base import LANGUAGE_MODEL, TEXT_ENCODER, Model, ModelCard, ModelError
from audio_compositionality.encoders.model_encoder import Hidden, ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.support.spec import Spec
from audio_compositionality.tasks.base import Inputs, Measure, Samples, Scores, TaskInfo

# ----- data


class Made:
    """Data of one configuration, of which no clip is rendered; keeps which clips were read.

    Attributes:
        damaged: id of a clip that cannot be used.
        read: the clips of each read.
    """

    recipe = source = "toy"
    fingerprint = rows_digest = "f" * 64
    damaged = ""

    def __init__(self, rows: Sequence[Mapping[str, Any]], clip_ids: Sequence[str]) -> None:
        self.rows, self.clip_ids = list(rows), list(clip_ids)
        self._ids = tuple(clip_ids)
        self.read: list[range] = []

    @property
    def recipes(self) -> tuple[str, ...]:
        return (self.recipe,)

    def configuration(self, recipe: str) -> Made:
        return self

    def sound(self, number: int) -> tuple[np.ndarray, int]:
        """Samples and sample rate of a clip."""
        raise NotImplementedError

    def clips(self, wanted: range | None = None, *, keep_invalid: bool = False) -> Iterator[Clip]:
        numbers = check_range(wanted, len(self.clip_ids))
        self.read.append(numbers)
        for number in numbers:
            id = self._ids[number]
            waveform, rate = self.sound(number)
            problem = "is damaged" if id == self.damaged else None
            yield Clip(id, waveform * np.float32(np.nan) if problem else waveform, rate, problem)


class Numbered(Made):
    """Clips of 8 samples, each of which is the number of its clip."""

    recipe, source = "numbers", "numbered"

    def __init__(self, count: int) -> None:
        super().__init__(
            [{"id": f"s{number}", "split": "test"} for number in range(count)], [f"s{n}/audio" for n in range(count)]
        )

    def sound(self, number):
        return np.full(8, number, np.float32), 16_000


class Ragged(Made):
    """Rows of one, two, three clips …, each a second longer than the one before, at 8 kHz; each row has a caption."""

    recipe = source = "ragged"

    def __init__(self, count: int) -> None:
        rows = [{"id": f"r{n}", "split": "test", "caption": f"{n % 2} tones", "clips": n + 1} for n in range(count)]
        super().__init__(rows, [f"{row['id']}/clip/{k}" for row in rows for k in range(row["clips"])])

    def sound(self, number):
        return np.full(8 * (number + 1), number / 100, np.float32), 8


class ManyTexts(Ragged):
    """Each row has one clip and a caption of its own."""

    def __init__(self, count: int) -> None:
        rows = [{"id": f"r{n}", "split": "test", "caption": f"caption r{n}", "clips": 1} for n in range(count)]
        Made.__init__(self, rows, [f"r{n}/clip/0" for n in range(count)])


class Questions(Made):
    """70 rows to learn from among others to be asked, two a group; a clip's samples are its number / 1000."""

    source = "made by hand"

    def __init__(self, asked: int = 8, trained: int = 70, fingerprint: str = "1") -> None:
        splits = [*["train"] * (trained // 2), *["test"] * asked, *["train"] * (trained - trained // 2)]
        rows = [
            {"id": f"r{n}", "split": split, "group": f"g{n // 2}", "answer": f"a{n % 3}"}
            for n, split in enumerate(splits)
        ]
        super().__init__(rows, [f"{row['id']}/audio" for row in rows])
        self.fingerprint = fingerprint * 64

    def sound(self, number):
        return np.full(8, number / 1000, np.float32), 8

    def of(self, split: str) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["split"] == split]


# ----- tasks


def toy_info(**changes: Any) -> TaskInfo:
    """What is known of a task, with some of it changed."""
    known: dict[str, Any] = {
        "name": "toy",
        "version": 1,
        "title": "Toy",
        "question": "Does it work?",
        "benchmark": "toys",
        "recipe": "toy",
        "needs": LANGUAGE_MODEL,
        "samples": "rows",
        "measures": (Measure("toy", "toy", "mean of what is scored", column="score"),),
        "ranks_by": "toy",
        "warning": "It is a toy.",
        "citation": "@misc{toy}",
    }
    return TaskInfo(**known | changes)


class Task:
    """A question about the clip of each row of the test; every model has a half. Keeps what it has scored."""

    spec: type[Spec] = Spec
    drawings = ()

    def __init__(self, **changes: Any) -> None:
        self.info, self.seen = toy_info(**changes), None

    @property
    def answers(self) -> list[str]:
        return list(self.seen.answers)

    def inputs(self, row, settings):
        return Inputs(("audio",), prompts=(f"What is {row['id']}?",)) if row["split"] == "test" else Inputs()

    def settings(self, rows, requested):
        return self.spec(**requested).values()

    def score(self, rows, outputs, settings, device, progress):
        self.seen = outputs
        tested = self.samples(rows).ids
        return Scores({"toy": 0.5}, tested, {"score": np.full(len(tested), 0.5)})

    def samples(self, rows):
        tested = tuple(row for row in rows if row["split"] == "test")
        return Samples(tested, np.array([int(row.get("group", row["id"])[1:]) for row in tested]))


class Captions(Task):
    """Every clip of a row of `Ragged` and its caption; where it needs a model that answers, a question about one."""

    def __init__(self, **changes: Any) -> None:
        super().__init__(**{"recipe": "ragged", "needs": TEXT_ENCODER} | changes)

    def inputs(self, row, settings):
        clips = tuple(f"clip/{k}" for k in range(row["clips"]))
        if self.info.needs == LANGUAGE_MODEL:
            return Inputs(clips=clips[:1], prompts=(f"How many tones are in {row['id']}?",))
        return Inputs(clips=clips, texts=(row["caption"],))


class OrdersSpec(Spec):
    orders: int = 1
    scoring: str = "generate"
    long: bool = False


class Orders(Task):
    """Each question under one or both orders of its two options."""

    spec = OrdersSpec

    def inputs(self, row, settings):
        if row["split"] != "test":
            return Inputs()
        options = (("x", "y"), ("y", "x"))[: settings["orders"]]
        prompts = tuple(f"{row['id']}?\nA. {texts[0]}\nB. {texts[1]}" for texts in options)
        long = 1024 if settings["long"] else None
        return Inputs(("audio",) * len(options), (), prompts, options, settings["scoring"], long)


# ----- models


class BandEnergies(Model):
    """Sixteen band energies, or with ``constant`` always the same vector; counts its calls."""

    device = "cpu"

    def __init__(self, constant: bool = False, **card: Any) -> None:
        self.card = replace(ModelCard("toy", "v1", 32_000, 16), **card)
        self.constant = constant
        self.calls = 0

    def embed(self, waveforms, sample_rate):
        self.calls += 1
        if self.constant:
            return np.ones((len(waveforms), 16), np.float32)
        power = np.abs(np.fft.rfft(waveforms)) ** 2
        return np.log1p(power[:, 1:].reshape(len(power), 16, -1).sum(axis=2)).astype(np.float32)


class Linear(ModelEncoder[torch.Tensor]):
    """A fixed random projection of the power spectrum, run by torch."""

    def __init__(self, options: EncoderOptions | None = None, **card: Any) -> None:
        options = options or EncoderOptions()
        described = ModelCard("linear", "v1", 32_000, 8, weights_sha256="0" * 64, front_end_version=3, options=options)
        super().__init__(replace(described, **card), num_layers=1, device=torch.device("cpu"))
        self._weights = torch.from_numpy(np.random.default_rng(0).normal(size=(256, 8)).astype(np.float32))

    def _extract_features(self, clips):
        spectrum = np.abs(np.fft.rfft(clips))[:, 1:].reshape(len(clips), 256, -1)
        return torch.from_numpy(np.log1p(spectrum.mean(axis=2)).astype(np.float32))

    def _encode(self, features):
        return Hidden((features @ self._weights)[:, None], frame_seconds=1.0)


class TextEncoder(Model):
    """Embeds a clip as its number and its length, a text as the number of its characters; counts clips."""

    device = "cpu"
    card = ModelCard("text-encoder", "v1", 8, 2)

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.clips = 0

    def embed(self, waveforms, sample_rate):
        self.clips += len(waveforms)
        return np.stack([waveforms[:, 0], np.full(len(waveforms), waveforms.shape[1])], axis=1).astype(np.float32)

    def embed_text(self, texts):
        self.texts += texts
        return np.array([[len(text), ord(text[0])] for text in texts], np.float32)


class Hears(Model):
    """Says the number of a clip of `Questions`; counts the questions that it is asked."""

    device, card = "cpu", ModelCard("hears", "v1", 8, None)
    asked = 0

    def answer(self, clips, prompts):
        self.asked += len(prompts)
        return [f"{round(clip.waveform[0] * 1000)}" for (clip,) in clips]


class Likely(Hears):
    """Knows that it is x, but for every third clip, where it knows nothing; writes a B."""

    card = ModelCard("likely", "v1", 8, None)

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def answer(self, clips, prompts):
        self.calls.append(("generate", len(prompts)))
        return ["B"] * len(prompts)

    def score_options(self, clips, prompts, options, by):
        self.calls.append((by, len(prompts)))
        numbers = [round(1000 * clip.waveform[0]) for (clip,) in clips]
        return [
            [math.nan] * 2 if number % 3 == 0 else [-0.5 if text == "x" else -math.inf for text in texts]
            for number, texts in zip(numbers, options, strict=True)
        ]


class Tells(Hears):
    """Gives each answer as soon as it is there; from its `breaks_at`th one on, it does not answer."""

    card = ModelCard("tells", "v1", 8, None)
    batch_size, questions_per_call = 6, 24

    def __init__(self, breaks_at: int = 10**9) -> None:
        self.calls: list[int] = []
        self.breaks_at, self.answered = breaks_at, 0

    def answers(self, questions, by=None, *, size):
        for _, together in groupby(questions, key=lambda question: question.index // size):
            call = list(together)
            self.calls.append(len(call))
            for question in call:
                if self.answered == self.breaks_at:
                    raise ModelError("the server is down")
                self.answered += 1
                yield question.index, ("A", {"finish_reason": "length"} if question.index % 2 else {})
