"""The check of models: one that is right passes, and each fault fails the check that looks for it."""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audio_compositionality.dataset_builder.texts.questions import annotation_of, check_question_row
from audio_compositionality.encoders import check_sounds
from audio_compositionality.encoders.base import Model, ModelCard, StagedEncoder, check_waveforms, resample
from audio_compositionality.encoders.check import ModelCheck, all_passed, check_model, check_table
from audio_compositionality.encoders.inference import relative_difference
from audio_compositionality.tasks.answerers.chooser import prompted
from audio_compositionality.tasks.answerers.symbolic import place_of_answer
from audio_compositionality.tasks.shapes.asking import direct_prompt


class Bands(Model):
    """A sound encoder that is right: log energies of 16 bands at 8 kHz."""

    card = ModelCard("bands", "1", 8_000, 16)
    device = "cpu"

    def embed(self, waveforms: Any, sample_rate: int) -> np.ndarray:
        return self.bands(resample(check_waveforms(waveforms), sample_rate, self.card.sample_rate))

    def bands(self, clips: np.ndarray) -> np.ndarray:
        power = np.abs(np.fft.rfft(clips)) ** 2 / clips.shape[1] ** 2
        edges = np.linspace(0, 0.3 * power.shape[1], 17).astype(int)
        energies = np.stack([power[:, a:b].sum(axis=1) for a, b in pairwise(edges)], axis=1)
        return np.log10(energies + 1e-9).astype(np.float32)


class Faulty(Bands):
    """Its embeddings of clips, or of waveforms and a rate, are those of a function that has what is right as well."""

    def __init__(self, bands: Any = None, embed: Any = None, **card: Any) -> None:
        self.wrong_bands, self.wrong_embed = bands, embed
        self.card = replace(Bands.card, **card)
        self.generator, self.last = np.random.default_rng(0), 0.0

    def embed(self, waveforms: Any, sample_rate: int) -> np.ndarray:
        embed = self.wrong_embed or Bands.embed
        return embed(self, waveforms, sample_rate)

    def bands(self, clips: np.ndarray) -> np.ndarray:
        return self.wrong_bands(self, clips) if self.wrong_bands else super().bands(clips)


def right(clips: np.ndarray) -> np.ndarray:
    return Bands().bands(clips)


def remember(model: Faulty, waveforms: Any, sample_rate: int) -> np.ndarray:
    rows = Bands().embed(waveforms, sample_rate)
    previous, model.last = model.last, rows[-1]
    return rows + np.float32(1e-3) * previous


def normalise(model: Faulty, waveforms: Any, sample_rate: int) -> np.ndarray:
    rows = Bands().embed(waveforms, sample_rate)
    return (rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1e-3)


def log_of_zero(model: Faulty, clips: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log10(np.abs(np.fft.rfft(clips))[:, :: clips.shape[1] // 30][:, :16]).astype(np.float32)


def refuse_ten_seconds(model: Faulty, clips: np.ndarray) -> np.ndarray:
    if clips.shape[1] > 5 * 8_000:
        raise ValueError("clips may last 5 s")
    return right(clips)


def of(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[], Faulty]:
    """A model whose embeddings are a function of clips."""
    return lambda: Faulty(lambda _, clips: function(clips))


IGNORES_THE_RATE = lambda: Faulty(embed=lambda model, waveforms, _: right(check_waveforms(waveforms)))  # noqa: E731
IS_CONSTANT = of(lambda clips: np.ones((len(clips), 16), np.float32))
FORGETS_TO_POOL = of(lambda clips: np.repeat(right(clips)[:, None], 3, axis=1))
REVERSES_ROWS = of(lambda clips: right(clips)[::-1])
CROPS_TO_SEVEN_SECONDS = of(lambda clips: right(clips[:, : 7 * 8_000]))


class PadsToTheLongest(StagedEncoder[np.ndarray]):
    card = ModelCard("pads", "1", 8_000, 16)

    def embed(self, waveforms: Any, sample_rate: int) -> np.ndarray:
        longest = max(len(clip) for clip in waveforms)
        return super().embed([np.pad(clip, (0, longest - len(clip))) for clip in waveforms], sample_rate)

    def _extract_features(self, clips: np.ndarray) -> np.ndarray:
        return clips

    def _run_model(self, features: np.ndarray) -> np.ndarray:
        return Bands().bands(features)


class StagedNaN(PadsToTheLongest):
    def _run_model(self, features: np.ndarray) -> np.ndarray:
        return np.full((len(features), 16), np.inf, np.float32)


def failures(results: list[ModelCheck]) -> list[str]:
    return [result.name for result in results if result.status == "fail"]


def by_name(results: list[ModelCheck]) -> dict[str, ModelCheck]:
    return {result.name: result for result in results}


def test_a_right_encoder_passes_and_every_check_was_run() -> None:
    results = check_model(Bands())
    assert failures(results) == []
    assert all_passed(results)
    assert [result.name for result in results if result.status == "pass"] == [
        "embeds", "finite", "shape", "dtype", "deterministic", "sensitive", "seconds", "quiet", "batch",
        "order", "rate", "int16",
    ]  # fmt: skip
    assert not any("not run" in result.value or result.hint for result in results)


@pytest.mark.parametrize(
    ("encoder", "check", "value"),
    [
        (IGNORES_THE_RATE, "rate", "Hz in a clip at 16,000 Hz is closest to"),
        (lambda: Faulty(embed=normalise), "batch", ""),
        (lambda: Faulty(embed=remember), "deterministic", ""),
        (StagedNaN, "finite", ""),
        (lambda: Faulty(log_of_zero), "finite", "silence: 16 values"),
        (IS_CONSTANT, "sensitive", ""),
        (FORGETS_TO_POOL, "shape", "(4, 3, 16), but must be (4, 16)"),
        (of(lambda clips: right(clips).astype(np.float64)), "dtype", "float64"),
        (REVERSES_ROWS, "order", "clips [3, 0, 1, 2] gave"),
        (lambda: Faulty(embed=lambda _, clips, rate: Bands().embed(np.asarray(clips, np.float32), rate)), "int16", ""),
        (CROPS_TO_SEVEN_SECONDS, "seconds", "sound in these seconds (1 to 10) does not change the embedding: 8, 9, 10"),
        (of(lambda clips: right(np.where(np.abs(clips) < 0.01, np.float32(0), clips))), "quiet", ""),
        (lambda: Faulty(refuse_ten_seconds), "embeds", "ValueError: clips may last 5 s"),
    ],
)
def test_each_fault_fails_the_check_that_looks_for_it_and_no_other(
    encoder: Callable[[], Any], check: str, value: str
) -> None:
    results = check_model(encoder())
    assert failures(results) == [check]
    assert not all_passed(results)
    found = by_name(results)
    assert found[check].hint
    assert value in found[check].value
    not_run = {name for name, result in found.items() if result.value == f"not run, as '{check}' did not pass"}
    assert all(found[name].status == "info" for name in not_run)
    if check == "sensitive":
        assert not_run == {"seconds", "quiet", "order", "rate", "level"}
        assert found["batch"].status == "pass"


@pytest.mark.slow
def test_an_encoder_of_long_clips_only_is_checked_with_these() -> None:
    class LongOnly(Bands):
        def bands(self, clips: np.ndarray) -> np.ndarray:
            if clips.shape[1] < 9 * self.card.sample_rate:
                raise ValueError("clips must last 9 s")
            return super().bands(clips)

    results = check_model(LongOnly())
    assert failures(results) == []
    assert "refused (ValueError: clips must last 9 s)" in by_name(results)["clips of 2 s"].value


@pytest.mark.parametrize("name", ["log-mel-statistics"])
def test_a_baseline_passes(name: str) -> None:
    results = check_model(name)
    assert failures(results) == []
    assert results[0].name == "loads"


def test_the_random_baseline_fails_at_other_rates_only() -> None:
    assert failures(check_model("random")) == ["rate"]


@pytest.mark.parametrize(
    ("model", "value", "hint"),
    [
        ("wisper-base", "did you mean 'whisper-base'", "No model has this name"),
        ("panns-cnn14=none.pth", "there is no such file", "The files of the model are missing"),
        (
            "import no_such_module",
            "ModuleNotFoundError in m.py, line 1",
            "The model's code imports a package",
        ),
        ("raise MemoryError", "MemoryError", "more memory than is available"),
        ("1 / 0", "ZeroDivisionError in m.py, line 1", "The model's code raised an error"),
        ("class A:\n    sample_rate = 8000", "has no embed", "the class lacks a method: it needs sample_rate"),
    ],
)
def test_a_model_that_does_not_load_has_a_cause_that_fits(model: Any, value: str, hint: str, tmp_path: Path) -> None:
    if isinstance(model, str) and " " in model:
        (tmp_path / "m.py").write_text(model)
        model = f"{tmp_path}/m.py:A"
    results = check_model(model)
    assert [(result.name, result.status) for result in results] == [("loads", "fail")]
    assert value in results[0].value
    assert hint in results[0].hint
    assert not all_passed(results)


def test_tones_are_the_same_sounds_at_every_rate() -> None:
    tones = check_sounds.make_tones(16_000, 1)
    assert tones.shape == (4, 16_000)
    assert tones.dtype == np.float32
    assert np.abs(tones).max() < 0.5
    np.testing.assert_allclose(check_sounds.make_tones(48_000, 1)[:, ::3], tones, atol=1e-5)
    spectrum = np.abs(np.fft.rfft(tones))
    np.testing.assert_allclose(spectrum[:, :160].argmax(axis=1), [50, 71, 100, 141], atol=1)


def test_comparisons_by_hand() -> None:
    reference = np.array([[3.0, 4.0], [0.0, 1.0]], np.float32)
    assert relative_difference(np.array([[3.0, 4.5], [0.0, 1.0]]), reference) == pytest.approx(0.1)
    assert relative_difference(np.zeros((1, 2)), np.zeros((1, 2))) == 0
    assert relative_difference(np.ones((1, 2)), np.zeros((1, 2))) == np.inf
    np.testing.assert_allclose(check_sounds.distances(reference, np.zeros((1, 2))), [[5], [1]])
    rows = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(check_sounds.cosines(rows), [[1, 0.5**0.5, 0], [0.5**0.5, 1, 0], [0, 0, 0]], atol=1e-12)
    bursts = check_sounds.make_bursts(8_000, 3)
    difference = np.abs(bursts[1:] - bursts[0]).reshape(3, 3, 8_000).max(axis=2) > 0
    np.testing.assert_array_equal(difference, np.eye(3, dtype=bool))


def test_embeddings_that_are_nearly_one_are_warned_of() -> None:
    class NearlyOne(Bands):
        def bands(self, clips: np.ndarray) -> np.ndarray:
            return super().bands(clips) + np.float32(1000)

    results = by_name(check_model(NearlyOne()))
    assert results["alike"].status == "warn"
    assert "untrained twin" in results["alike"].hint
    assert failures(list(results.values())) == []


def test_results_as_a_table() -> None:
    results = [ModelCheck("shape", "pass", "[4, 8]"), ModelCheck("rate", "fail", "wrong", "Clips are not resampled.")]
    table = check_table(results, "mine")
    shown = [[cell.value for cell in row.cells] for row in table.rows]
    assert shown == [["shape", "pass", "[4, 8]"], ["rate", "fail", "wrong"]]
    assert table.legend == ("rate: Clips are not resampled.",)


# Texts


DIM = 16


class Words(Model):
    """Right: of a text the sum of a vector for each word and place, of a clip sums of samples."""

    card = ModelCard("words", "1", 8_000, DIM)
    device = "cpu"

    def embed(self, waveforms: np.ndarray, sample_rate: int) -> np.ndarray:
        clips = np.asarray(waveforms, np.float32)
        return np.stack([part.std(axis=1) for part in np.array_split(clips, DIM, axis=1)], axis=1)

    def vector(self, text: str) -> np.ndarray:
        seeds = [[zlib.crc32(word.encode()), place] for place, word in enumerate(text.split())]
        return sum(np.random.default_rng(seed).normal(size=DIM) for seed in seeds)

    def embed_text(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self.vector(text) for text in texts]).astype(np.float32)


class WrongWords(Words):
    """Its embeddings of texts are those of a function that has what is right as well."""

    def __init__(self, wrong: Callable[[Words, Sequence[str]], Any]) -> None:
        self.wrong, self.generator = wrong, np.random.default_rng(0)

    def embed_text(self, texts: Sequence[str]) -> np.ndarray:
        return self.wrong(self, texts)


def words(texts: Sequence[str]) -> np.ndarray:
    return Words().embed_text(texts)


def pad(model: Words, texts: Sequence[str]) -> np.ndarray:
    longest = max(len(text.split()) for text in texts)
    return words([text + " pad" * (longest - len(text.split())) for text in texts])


def drop_out(model: WrongWords, texts: Sequence[str]) -> np.ndarray:
    return words(texts) * (model.generator.random(DIM) > 0.5).astype("f")


def sort_words(model: Words, texts: Sequence[str]) -> np.ndarray:
    return words([" ".join(sorted(text.split())) for text in texts])


def results_of(encoder: Words) -> dict[str, ModelCheck]:
    return {check.name: check for check in check_model(encoder) if check.name.startswith("texts")}


def test_an_encoder_of_texts_that_is_right_passes() -> None:
    results = results_of(Words())
    passing = dict.fromkeys(("texts", *(f"texts: {name}" for name in ("dtype", "deterministic", "batch", "sensitive"))))
    assert {name: check.status for name, check in results.items()} == {
        **dict.fromkeys(passing, "pass"),
        "texts: order": "info",
    }
    assert results["texts"].value == "4 texts, (4, 16)"


@pytest.mark.parametrize(
    ("wrong", "check", "status", "value"),
    [
        (pad, "batch", "fail", "relative difference|in a batch, rows"),
        (lambda _, texts: words(sorted(texts, key=len)), "batch", "fail", r"nearest to texts \[2, 0, 3"),
        (drop_out, "deterministic", "fail", "relative difference"),
        (lambda _, texts: words(["[CLS]"] * len(texts)), "sensitive", "fail", "by at least 0.0e[+]00 of"),
        (lambda _, texts: words(texts).astype(np.float64), "dtype", "fail", "float64"),
        (lambda _, texts: words(texts)[:, :8], "", "fail", r"\(4, 8\), but must be \(4, 16\)"),
        (lambda _, texts: words(texts) * np.float32("nan"), "", "fail", "64 values are NaN or infinite"),
        (sort_words, "order", "warn", "move an embedding by 0 of the distance"),
        (lambda _, texts: {}["no tokenizer"], "", "fail", "KeyError: 'no tokenizer'"),
    ],
)
def test_each_fault_of_texts_is_told(wrong: Any, check: str, status: str, value: str) -> None:
    results = results_of(WrongWords(wrong))
    name = f"texts: {check}" if check else "texts"
    faults = {one: result.status for one, result in results.items() if result.status in ("fail", "warn")}
    assert faults == {name: status}
    assert re.search(value, results[name].value)
    assert results[name].hint


# Answers


class Sound(Model):
    """Answers by the length and the level of a clip."""

    device, card = "cpu", ModelCard("sound", "v1", 8_000, None)

    def answer(self, clips, prompts):
        assert all(clip.sample_rate == 8_000 for (clip,) in clips)
        return ["AB"[int(len(clip.waveform) > 30_000 or not clip.waveform.any())] for (clip,) in clips]


class Wrong(Sound):
    def answer(self, clips, prompts):
        return self.given(super().answer(clips, prompts))


def test_an_answerer_that_is_right_passes():
    checks = by_name(check_model(Sound()))
    passing, measured = ("", ": letters", ": deterministic", ": batch"), (": silence", ": speed")
    assert {name: check.status for name, check in checks.items()} == {
        **{f"answers{name}": "pass" for name in passing},
        **{f"answers{name}": "info" for name in measured},
        "memory": "info",
    }
    assert re.match(r"[123] of 4 answers differ", checks["answers: silence"].value)


@pytest.mark.parametrize(
    ("given", "failing", "words"),
    [
        (lambda answers: None, "answers", "answer() returned a NoneType"),
        (lambda answers: "A" * len(answers), "answers", "answer() returned a str"),
        (lambda answers: answers[:-1], "answers", "3 answers to 4 prompts"),
        (lambda answers: [0 for _ in answers], "answers", "answer() returned a int among its answers"),
        (lambda answers: sorted(answers), "answers: batch", "of 4 answers differ"),
    ],
)
def test_each_fault_of_answers_is_told(given, failing, words):
    model = Wrong()
    model.given = given
    checks = check_model(model)
    assert [check.name for check in checks if check.status == "fail"] == [failing]
    told = next(check for check in checks if check.name == failing)
    assert words in told.value
    assert told.hint in "\n".join(check_table(checks, "wrong").legend)


def test_chance_and_talk_are_told():
    model, counter = Wrong(), itertools.count()
    model.given = lambda answers: [f"I say {next(counter)}" for _ in answers]
    of = {check.name: check.status for check in check_model(model)}
    assert (of["answers: letters"], of["answers: deterministic"], of["answers: batch"]) == ("warn", "fail", "info")


@pytest.mark.parametrize("name", ["majority", "oracle"])
def test_answerers_pass(name):
    checks = check_model(name, device="cpu")
    assert all_passed(checks)
    taught = name == "majority"
    assert [check.value for check in checks if check.name == "answers"] == [
        "4 questions about clips of 3 to 5 s" + (", after 16 to learn from" if taught else "")
    ]


@pytest.mark.parametrize(("split", "number"), [*(("test", number) for number in range(4)), ("train", 0), ("train", 15)])
def test_the_questions_are_such_as_the_data_have(split, number):
    row = check_sounds.question_row(number, split)
    check_question_row(row)
    prompt = check_sounds.prompt_of(row)
    assert prompt == direct_prompt(row["question"], row["options"])
    asked = prompted(prompt)
    assert asked.wording is not None
    assert asked.wording.asked[:4] == (row["task"], row["variant"], row["anchor"], row["polarity"])
    place = place_of_answer(asked, annotation_of(row))
    assert place is not None
    sound = check_sounds.row_sound(row, 8_000)
    assert len(sound) == round(row["duration"] * 8_000)
    quiet = np.ones(len(sound), bool)
    for event in row["events"]:
        quiet[int(event["onset"] * 8_000) : int(event["offset"] * 8_000) + 1] = False
    assert not sound[quiet].any()
    assert row["options"][place] == row["answer"]
