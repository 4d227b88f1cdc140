"""Rows of any number of clips of any length, texts and answers: all are computed once, kept, and scored."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.encoders.base import LANGUAGE_MODEL, ClipError, Model, ModelCard
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.tasks.base import Inputs

from .toys import Captions, Ragged, TextEncoder


class Talker(Model):
    """Says how long a clip is, at which rate, and the question."""

    device = "cpu"
    card = ModelCard("talker", "v1", 8, None)

    def __init__(self) -> None:
        self.batches: list[int] = []

    def answer(self, clips, prompts):
        self.batches.append(len(clips))
        return [f"{len(clip.waveform)} at {clip.sample_rate}: {p}" for (clip,), p in zip(clips, prompts, strict=True)]


def test_clips_of_all_lengths_and_texts_are_embedded_once_and_come_in_the_order_of_the_rows(tmp_path):
    data, model, task = Ragged(12), TextEncoder(), Captions()
    options = RunOptions(cache=tmp_path, progress=False)
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


@pytest.mark.parametrize("batch_size", [None, 3])
def test_answers_are_kept_and_come_in_the_order_of_the_rows(tmp_path, batch_size):
    data, model = Ragged(70), Talker()
    task = Captions(needs=LANGUAGE_MODEL)
    options = RunOptions(cache=tmp_path, batch_size=batch_size, progress=False)
    evaluate_models([model], data, [task], options)
    firsts = [data.clip_ids.index(f"{row['id']}/clip/0") for row in data.rows]
    expected = [f"{8 * (k + 1)} at 8: How many tones are in r{n}?" for n, k in enumerate(firsts)]
    assert task.answers == expected
    assert max(model.batches) == (batch_size or 4)
    asked = len(model.batches)
    evaluate_models([model], data, [task], options)
    assert task.answers == expected
    assert len(model.batches) == asked


def test_a_row_with_a_clip_that_cannot_be_used_is_not_asked_about(tmp_path):
    data, model = Ragged(8), Talker()
    data.damaged = "r5/clip/0"
    task = Captions(needs=LANGUAGE_MODEL)
    options = RunOptions(cache=tmp_path, progress=False)
    with pytest.raises(ClipError, match=r"r5/clip/0.*is damaged; --skip-invalid leaves it out"):
        evaluate_models([model], data, [task], options)
    assert model.batches == []
    for _ in range(2):
        (result,) = evaluate_models([model], data, [task], options.changed(skip_invalid=True))
        assert [(clip.id, clip.reason) for clip in result.skipped] == [("r5/clip/0", "is damaged")]
        assert result.n == 7
        assert [answer.rpartition(" ")[2] for answer in task.answers] == [f"r{n}?" for n in range(8) if n != 5]
        assert model.batches == [4, 3]
    with pytest.raises(ClipError, match="--skip-invalid leaves it out, --force computes it again"):
        evaluate_models([model], data, [task], options)


def test_clips_that_lie_near_each_other_are_read_in_one_go():
    data = Ragged(20)
    data.damaged = "r5/clip/1"
    task = Captions(needs=LANGUAGE_MODEL)
    (result,) = evaluate_models([Talker()], data, [task], RunOptions(progress=False))
    assert result.skipped == []
    firsts = [data.clip_ids.index(f"r{n}/clip/0") for n in range(20)]
    assert data.read == [range(firsts[9] + 1), *(range(first, first + 1) for first in firsts[10:])]


@pytest.mark.parametrize("asks", [True, False])
def test_a_result_says_whether_what_it_needs_was_computed_or_read(tmp_path, asks):
    model = Talker() if asks else TextEncoder()
    task = Captions(needs=LANGUAGE_MODEL) if asks else Captions()
    data, options = Ragged(66 if asks else 12), RunOptions(cache=tmp_path, progress=False)

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
def test_tasks_of_a_recipe_share_its_embeddings_whichever_of_the_clips_they_want(tmp_path, stored):
    class Backwards(Captions):
        def inputs(self, row, settings):
            return Inputs(clips=("clip/0",) if row["clips"] < 3 else ("clip/2", "clip/1"))

    data, model = Ragged(4), TextEncoder()
    tasks = [Captions(), Backwards(name="toy_2")]
    options = RunOptions(cache=tmp_path if stored else None, force=True, progress=False)
    for times in (1, 2):
        assert len(evaluate_models([model], data, tasks, options)) == 2
        # Each is embedded a second time, in other company.
        assert model.clips == 2 * times * len(data.clip_ids)
    numbers = [data.clip_ids.index(id) for id in ("r0/clip/0", "r1/clip/0", "r2/clip/2", "r2/clip/1", "r3/clip/2")]
    assert (tasks[1].seen.clips[:5] == tasks[0].seen.clips[numbers]).all()
