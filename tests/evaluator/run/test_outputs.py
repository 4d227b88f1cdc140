"""Rows of any number of clips of any length, texts and answers: all are computed once, kept, and scored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import Clip, check_range
from audio_compositionality.encoders.base import LANGUAGE_MODEL, TEXT_ENCODER, ClipError, Model, ModelCard
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.support.spec import Spec
from audio_compositionality.tasks.base import Inputs, Measure, Scores, TaskInfo, independent_samples

INFO = TaskInfo(
    name="toy",
    version=1,
    title="Toy",
    question="Does it work?",
    benchmark="toys",
    recipe="ragged",
    needs=TEXT_ENCODER,
    samples="rows",
    measures=(Measure("toy", "toy", "mean of what is scored", column="score"),),
    ranks_by="toy",
    warning="It is a toy.",
    citation="@misc{toy}",
)


class Ragged:
    """Rows of one, two, three clips …, each a second longer than the one before, at 8 kHz; each row has a caption."""

    recipe, source, fingerprint, recipes = "ragged", "ragged", "a" * 64, ("ragged",)

    def __init__(self, count: int) -> None:
        self.rows = [
            {"id": f"r{n}", "split": "test", "caption": f"{n % 2} tones", "clips": n + 1} for n in range(count)
        ]
        self.clip_ids = [f"{row['id']}/clip/{k}" for row in self.rows for k in range(row["clips"])]

    def configuration(self, recipe: str) -> Ragged:
        return self

    def clips(self, wanted=None, *, keep_invalid=False):
        for number in check_range(wanted, len(self.clip_ids)):
            yield Clip(self.clip_ids[number], np.full(8 * (number + 1), number / 100, np.float32), 8)


class Captions:
    """Every clip of a row and its caption; or a question about the first clip."""

    spec = Spec
    drawings = ()

    def __init__(self, info: TaskInfo, asks: bool = False) -> None:
        self.info, self.asks = info, asks
        self.seen: Any = None

    def inputs(self, row, settings):
        clips = tuple(f"clip/{k}" for k in range(row["clips"]))
        if self.asks:
            return Inputs(clips=clips[:1], prompts=(f"How many tones are in {row['id']}?",))
        return Inputs(clips=clips, texts=(row["caption"],))

    def settings(self, rows, requested):
        return {}

    def score(self, rows, outputs, settings, device, progress):
        self.seen = outputs
        return Scores({"toy": 0.5}, tuple(row["id"] for row in rows), {"score": np.full(len(rows), 0.5)})

    def samples(self, rows):
        return independent_samples(rows)


class TextEncoder(Model):
    """Embeds a clip as its number and its length, a text as the number of its characters."""

    device = "cpu"
    card = ModelCard("text-encoder", "v1", 8, 2)

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, waveforms, sample_rate):
        return np.stack([waveforms[:, 0], np.full(len(waveforms), waveforms.shape[1])], axis=1).astype(np.float32)

    def embed_text(self, texts):
        self.texts += texts
        return np.array([[len(text), ord(text[0])] for text in texts], np.float32)


class Talker(Model):
    device = "cpu"
    card = ModelCard("talker", "v1", 8, None)

    def __init__(self) -> None:
        self.batches: list[int] = []

    def answer(self, clips, prompts):
        self.batches.append(len(clips))
        return [f"{len(clip.waveform)} at {clip.sample_rate}: {p}" for (clip,), p in zip(clips, prompts, strict=True)]


def test_clips_of_all_lengths_and_texts_are_embedded_once_and_come_in_the_order_of_the_rows(tmp_path):
    data, model, task = Ragged(12), TextEncoder(), Captions(INFO)
    options = RunOptions(store=tmp_path, progress=False)
    (result,) = evaluate_models([model], data, [task], options)
    assert (result.n, result.score, result.intervals["toy"]) == (12, 0.5, (0.5, 0.5))
    count = len(data.clip_ids)
    np.testing.assert_allclose(task.seen.clips[:, 0], np.arange(count) / 100, atol=1e-6)
    assert task.seen.clips[:, 1].tolist() == [8 * (k + 1) for k in range(count)]
    assert task.seen.texts.tolist() == [[7, ord(row["caption"][0])] for row in data.rows]
    # So few are all embedded a second time, in other company.
    assert sorted(model.texts) == ["0 tones", "0 tones", "1 tones", "1 tones"]
    evaluate_models([model], data, [task], options)
    assert len(model.texts) == 4
    evaluate_models([model], data, [task], options.changed(force=True))
    assert len(model.texts) == 8


def test_a_task_may_want_some_of_the_clips_in_another_order(tmp_path):
    class Backwards(Captions):
        def inputs(self, row, settings):
            return Inputs(clips=("clip/0",) if row["clips"] < 3 else ("clip/2", "clip/1"))

    data, task = Ragged(4), Backwards(INFO)
    evaluate_models([TextEncoder()], data, [task], RunOptions(progress=False))
    numbers = [data.clip_ids.index(id) for id in ("r0/clip/0", "r1/clip/0", "r2/clip/2", "r2/clip/1", "r3/clip/2")]
    np.testing.assert_allclose(task.seen.clips[:5, 0], np.array(numbers) / 100, atol=1e-6)


@pytest.mark.parametrize("batch_size", [None, 3])
def test_answers_are_kept_and_come_in_the_order_of_the_rows(tmp_path, batch_size):
    data, model = Ragged(70), Talker()
    task = Captions(replace(INFO, needs=LANGUAGE_MODEL), asks=True)
    options = RunOptions(store=tmp_path, batch_size=batch_size, progress=False)
    evaluate_models([model], data, [task], options)
    firsts = [data.clip_ids.index(f"{row['id']}/clip/0") for row in data.rows]
    expected = [f"{8 * (k + 1)} at 8: How many tones are in r{n}?" for n, k in enumerate(firsts)]
    assert list(task.seen.answers) == expected
    assert max(model.batches) == (batch_size or 4)
    asked = len(model.batches)
    evaluate_models([model], data, [task], options)
    assert list(task.seen.answers) == expected
    assert len(model.batches) == asked


class Damaged(Ragged):
    """One clip cannot be used; keeps which clips were read."""

    damaged = "r5/clip/0"

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.read: list[range] = []

    def clips(self, wanted=None, *, keep_invalid=False):
        self.read.append(wanted)
        for clip in super().clips(wanted):
            yield replace(clip, problem="is silent") if clip.id == self.damaged else clip


def test_a_row_with_a_clip_that_cannot_be_used_is_not_asked_about(tmp_path):
    data, model = Damaged(8), Talker()
    task = Captions(replace(INFO, needs=LANGUAGE_MODEL), asks=True)
    options = RunOptions(store=tmp_path, progress=False)
    with pytest.raises(ClipError, match=r"r5/clip/0.*is silent; --skip-invalid leaves it out"):
        evaluate_models([model], data, [task], options)
    assert model.batches == []
    for _ in range(2):
        (result,) = evaluate_models([model], data, [task], options.changed(skip_invalid=True))
        assert [(clip.id, clip.reason) for clip in result.skipped] == [("r5/clip/0", "is silent")]
        assert result.n == 7
        assert [answer.rpartition(" ")[2] for answer in task.seen.answers] == [f"r{n}?" for n in range(8) if n != 5]
        assert model.batches == [4, 3]
    with pytest.raises(ClipError, match="--skip-invalid leaves it out, --force computes it again"):
        evaluate_models([model], data, [task], options)


def test_clips_that_lie_near_each_other_are_read_in_one_go():
    data = Damaged(20)
    data.damaged = "r5/clip/1"
    task = Captions(replace(INFO, needs=LANGUAGE_MODEL), asks=True)
    (result,) = evaluate_models([Talker()], data, [task], RunOptions(progress=False))
    assert result.skipped == []
    firsts = [data.clip_ids.index(f"r{n}/clip/0") for n in range(20)]
    assert data.read == [range(firsts[9] + 1), *(range(first, first + 1) for first in firsts[10:])]


@pytest.mark.parametrize("asks", [True, False])
def test_a_result_says_whether_what_it_needs_was_computed_or_read(tmp_path, asks):
    model = Talker() if asks else TextEncoder()
    task = Captions(replace(INFO, needs=LANGUAGE_MODEL) if asks else INFO, asks)
    data, options = Ragged(66 if asks else 12), RunOptions(store=tmp_path, progress=False)

    def stages():
        (result,) = evaluate_models([model], data, [task], options)
        return set(result.seconds)

    assert stages() == {"embed", "score"}
    assert stages() == {"read", "score"}
    files = sorted(file for file in tmp_path.rglob("0000*-of-0000[25].*"))
    assert len(files) == (5 if asks else 2)
    files[0].unlink()
    assert stages() == {"embed_rest", "score"}


@pytest.mark.parametrize("stored", [True, False])
def test_tasks_that_share_a_recipe_share_its_embeddings(tmp_path, stored):
    class Counting(TextEncoder):
        clips = 0

        def embed(self, waveforms, sample_rate):
            self.clips += len(waveforms)
            return super().embed(waveforms, sample_rate)

    data, model = Ragged(5), Counting()
    tasks = [Captions(INFO), Captions(replace(INFO, name="toy_2"))]
    options = RunOptions(store=tmp_path if stored else None, force=True, progress=False)
    for times in (1, 2):
        assert len(evaluate_models([model], data, tasks, options)) == 2
        # Each is embedded a second time, in other company.
        assert model.clips == 2 * times * len(data.clip_ids)
        assert (tasks[0].seen.clips == tasks[1].seen.clips).all()
