"""Batches: each row's texts depend on its place alone, any step can be had, processes share what one would have."""

from collections import Counter
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch

from audio_compositionality.encoders.networks.small_networks import tiny_tokenizer
from audio_compositionality.support.errors import InputError
from audio_compositionality.training.batches import (
    ArrayFeatures,
    Batches,
    BatchSettings,
    TextSettings,
    Tokeniser,
    draw_texts,
    nearest_rows,
)
from audio_compositionality.training.settings import TrainingError

from .made_data import made_data, made_row
from .toy_towers import pad_tokens


class WrittenTokens:
    """A tokeniser whose tokens are numbers of texts, which can be read again."""

    def __init__(self):
        self.texts = [""]

    def __call__(self, texts):
        for text in texts:
            if text not in self.texts:
                self.texts.append(text)
        return pad_tokens([[self.texts.index(text)] for text in texts], 0)

    def read(self, tokens):
        return [self.texts[number] for number in tokens.ids[:, 0].tolist()] if len(tokens) else []


def texts_of(kind, negatives=None):
    return TextSettings.of(kind, (3 if kind == "hard" else 7) if negatives is None else negatives, 7)


def batches(kind="modular", data=None, *, neighbours=None, tokens=None, negatives=None, **settings):
    data = made_data() if data is None else data
    settings = BatchSettings(texts=texts_of(kind, negatives), **{"batch_size": 8, **settings})
    features = ArrayFeatures(np.arange(40, dtype=np.float16)[:, None])
    return Batches(data, features, tokens or WrittenTokens(), settings, neighbours)


def assert_same(one, other):
    for name in ("audio", "negative_row", "positive_row", "expressions", "rows"):
        assert torch.equal(getattr(one, name), getattr(other, name))
    for name in ("captions", "negatives", "positives"):
        assert torch.equal(getattr(one, name).ids, getattr(other, name).ids)


def test_texts_are_those_of_the_row():
    tokens = WrittenTokens()
    batch = batches(tokens=tokens).batch(3)
    assert len(batch) == len(set(batch.rows.tolist())) == 8
    assert batch.audio.dtype == torch.float32
    assert torch.equal(batch.audio[:, 0], batch.rows.float())
    for row, caption in zip(batch.rows.tolist(), tokens.read(batch.captions), strict=True):
        assert caption.startswith(f"caption {row} ")
    for texts, rows, count in (
        (batch.negatives, batch.negative_row, 7),
        (batch.positives, batch.positive_row, 2),
    ):
        read = tokens.read(texts)
        assert len(set(read)) == len(read) == 8 * count
        assert rows.tolist() == sorted(rows.tolist())
        assert [text.split()[1] for text in read] == [str(batch.rows[row].item()) for row in rows.tolist()]


def test_each_stage_takes_its_rows_and_texts():
    rows = [made_row(0, kinds=()), made_row(1, kinds=("absent",)), made_row(2, kinds=("",)), made_row(3, parts=0)]
    for kind, taken in (("contrastive", [0, 1, 2, 3]), ("hard", [2, 3]), ("modular", [0, 1, 2])):
        assert [row.clip for row in rows if texts_of(kind).takes(row)] == taken
    tokens = WrittenTokens()
    batch = batches("hard", tokens=tokens).batch(0)
    assert set(Counter(batch.negative_row.tolist()).values()) == {3}
    assert not any(text.startswith("absent") for text in tokens.read(batch.negatives))
    assert batch.positives.ids.shape == (0, 0)
    assert len(batches("contrastive").batch(0).negatives) == 0
    assert Counter(batches("hard", negatives=5).batch(0).negative_row.tolist()) == dict.fromkeys(range(8), 5)


def test_draws_depend_on_seed_stage_epoch_and_row_alone():
    row, settings = made_row(1), texts_of("modular")
    at = {"seed": 1, "stage": 2, "epoch": 3}
    drawn = draw_texts(row, settings, **at)
    assert draw_texts(row, settings, **at) == drawn
    changed = [{**at, name: value + 1} for name, value in at.items()]
    assert all(draw_texts(row, settings, **other) != drawn for other in changed)
    assert draw_texts(replace(row, id="another"), settings, **at) != drawn
    # The same on every machine, today and later.
    assert (drawn.caption, drawn.positives) == ("caption 1 d", ("part 1 1", "part 1 0"))


def test_an_epoch_has_every_row_once_and_drops_what_is_left():
    data = made_data(rows=[made_row(number) for number in range(21)])
    made = batches(data=data)
    assert made.steps_per_epoch == 2
    epochs = [np.concatenate([made.rows(step) for step in range(2 * epoch, 2 * epoch + 2)]) for epoch in range(20)]
    assert all(len(set(epoch.tolist())) == 16 for epoch in epochs)
    assert set(np.concatenate(epochs).tolist()) == set(range(21))
    assert not np.array_equal(epochs[0], epochs[1])
    assert not np.array_equal(epochs[0], batches(data=data, seed=1).rows(0))
    assert not np.array_equal(epochs[0][:8], batches(data=data, stage=1).rows(0))


def test_any_step_can_be_had_at_once():
    tokens = WrittenTokens()
    whole = list(batches(tokens=tokens).stream(0, 13))
    assert len(whole) == 13
    later = list(islice(batches(tokens=tokens).stream(7), 6))
    for one, other in zip(whole[7:], later, strict=True):
        assert_same(one, other)
    assert_same(whole[11], batches(tokens=tokens).batch(11))


@pytest.mark.parametrize("neighbours", [None, 3])
def test_processes_share_the_batch_of_one(neighbours):
    tokens, data = WrittenTokens(), made_data()
    near = None if neighbours is None else nearest_rows(np.random.default_rng(0).normal(size=(40, 3)), data.rows, 3)
    options = {"data": data, "tokens": tokens, "neighbours": near}
    for step in (0, 4, 7):
        one = batches(**options).batch(step)
        shares = [batches(**options, process=process, processes=2).batch(step) for process in range(2)]
        assert torch.equal(one.rows, torch.cat([share.rows for share in shares]))
        for name in ("captions", "negatives", "positives"):
            texts = [text for share in shares for text in tokens.read(getattr(share, name))]
            assert texts == tokens.read(getattr(one, name))


def test_rows_that_say_the_same_are_known():
    rows = [replace(made_row(number), expression=str(number // 2)) for number in range(8)]
    batch = batches(data=made_data(rows=rows)).batch(0)
    says = dict(zip(batch.rows.tolist(), batch.expressions.tolist(), strict=True))
    assert all((says[one] == says[other]) == (one // 2 == other // 2) for one in range(8) for other in range(8))
    # The same in every process, unlike `hash`.
    assert made_row(0).says == -2_901_078_978_816_340_416


def test_neighbours_are_the_nearest_that_say_something_else():
    rng = np.random.default_rng(0)
    embeddings = rng.normal(size=(40, 4))
    rows = [replace(made_row(number), expression=str(number // 2)) for number in range(40)]
    near = nearest_rows(embeddings, rows, 5)
    units = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    for row in range(40):
        ranked = sorted((one for one in range(40) if one // 2 != row // 2), key=lambda one: -units[row] @ units[one])
        assert near[row].tolist() == ranked[:5]
    made = batches(data=made_data(rows=rows), neighbours=near)
    assert made.steps_per_epoch == 10
    assert sorted(np.concatenate([made.rows(step)[::2] for step in range(10)]).tolist()) == list(range(40))
    pairs = [pair for step in range(10) for pair in made.rows(step).reshape(-1, 2).tolist()]
    assert sum(other in near[row] for row, other in pairs) >= 38
    assert all(len(set(made.rows(step).tolist())) == 8 for step in range(10))


def test_neighbours_without_texts_are_not_taken():
    rows = [made_row(number, kinds=() if number % 2 else ("order",)) for number in range(40)]
    near = np.array([[row + 1 - 2 * (row % 2)] for row in range(40)])
    made = batches("hard", made_data(rows=rows), neighbours=near)
    assert made.steps_per_epoch == 5
    assert not any((made.rows(step) % 2).any() for step in range(5))
    all_taken = batches("hard", made_data(rows=rows[:16]), neighbours=near[:16])
    assert set(all_taken.rows(0).tolist()) == set(range(0, 16, 2))


def test_what_cannot_be_batched_is_told():
    rows = [made_row(n, kinds=("absent",) if n else ("order",)) for n in range(9)]
    near = np.zeros((40, 2), np.int64)
    for message, ask in (
        ("batch_size is 8, which 3 processes cannot share", lambda: batches(processes=3)),
        ("process 2 of 2", lambda: batches(process=2, processes=2)),
        (r"neighbours have shape \(3, 2\); they must be \[40, N\]", lambda: batches(neighbours=near[:3])),
        ("half of a batch are neighbours", lambda: batches(neighbours=near, batch_size=6, processes=2)),
        ("neighbours is 40, but a row has only 39 other", lambda: nearest_rows(np.ones((40, 2)), made_data().rows, 40)),
        ("there are 3 embeddings but 40 rows", lambda: nearest_rows(np.ones((3, 2)), made_data().rows, 4)),
    ):
        with pytest.raises(InputError, match=message):
            ask()
    with pytest.raises(TrainingError, match="has 1 rows for a stage 'hard', out of 9; a batch needs 8"):
        batches("hard", made_data(rows=rows))


class TestTokeniser:
    def test_tokens_are_those_of_the_tokenizer(self):
        tokenizer = tiny_tokenizer()
        texts = ["a high bell followed by an organ", "a bell", "a high bell followed by an organ", "zyx"]
        expected = tokenizer(texts, padding=True, return_tensors="pt")
        tokenise = Tokeniser(tokenizer, 77)
        for _ in range(2):
            tokens = tokenise(texts)
            assert torch.equal(tokens.ids, expected["input_ids"])
            assert torch.equal(tokens.mask, expected["attention_mask"].bool())
        assert tokenise([]).ids.shape == (0, 0)

    def test_a_text_that_is_too_long_is_told(self):
        tokenise = Tokeniser(tiny_tokenizer(), 8)
        row = replace(made_row(0), parts=("bell " * 9,))
        message = "the text 'bell bell .*' has 11 tokens; the text tower takes at most 8"
        with pytest.raises(TrainingError, match=message):
            tokenise(["bell", *row.parts])
        with pytest.raises(TrainingError, match=message):
            tokenise.check(replace(row, captions=("bell",), negatives=()).texts)

    def test_what_is_kept_has_an_end(self, monkeypatch):
        monkeypatch.setattr("audio_compositionality.training.batches.MOST_KEPT", 2)
        tokenise = Tokeniser(tiny_tokenizer(), 77)
        texts = [f"{number} bell" for number in range(6)]
        once = [tokenise([text]).ids for text in texts]
        assert len(tokenise._kept) == 2
        assert all(torch.equal(tokenise([text]).ids, ids) for text, ids in zip(texts, once, strict=True))
