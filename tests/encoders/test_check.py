from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from audio_compositionality.encoders.base import Model, ModelCard, StagedEncoder, check_waveforms, resample
from audio_compositionality.encoders.check import ModelCheck, all_passed, check_model, check_table
from audio_compositionality.encoders.check_sounds import (
    cosines,
    distances,
    make_bursts,
    make_tones,
    relative_difference,
)
from audio_compositionality.encoders.loading.registry import load_model

EXAMPLE = Path(__file__).parents[1] / "examples" / "band_energies.py"


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


class IgnoresTheRate(Bands):
    def embed(self, waveforms: Any, sample_rate: int) -> np.ndarray:
        return self.bands(check_waveforms(waveforms))


class NormalisesTheBatch(Bands):
    def embed(self, waveforms: Any, sample_rate: int) -> np.ndarray:
        z = super().embed(waveforms, sample_rate)
        return (z - z.mean(axis=0)) / (z.std(axis=0) + 1e-3)


class IsRandom(Bands):
    generator = np.random.default_rng(0)

    def embed(self, waveforms: Any, sample_rate: int) -> np.ndarray:
        return self.generator.normal(size=(len(waveforms), 16)).astype(np.float32)


class CropsAtRandom(Bands):
    generator = np.random.default_rng(0)

    def bands(self, clips: np.ndarray) -> np.ndarray:
        start = int(self.generator.integers(clips.shape[1] // 4))
        return super().bands(clips[:, start : start + clips.shape[1] // 2])


class RemembersTheLastClip(Bands):
    last: np.ndarray | float = 0.0

    def embed(self, waveforms: Any, sample_rate: int) -> np.ndarray:
        z = super().embed(waveforms, sample_rate)
        previous, self.last = self.last, z[-1]
        return z + np.float32(1e-3) * previous


class ReturnsNaN(Bands):
    def bands(self, clips: np.ndarray) -> np.ndarray:
        return np.full((len(clips), 16), np.nan, np.float32)


class LogOfZero(Bands):
    def bands(self, clips: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log10(np.abs(np.fft.rfft(clips))[:, :: clips.shape[1] // 30][:, :16]).astype(np.float32)


class IsConstant(Bands):
    def bands(self, clips: np.ndarray) -> np.ndarray:
        return np.ones((len(clips), 16), np.float32)


class ForgetsToPool(Bands):
    def bands(self, clips: np.ndarray) -> np.ndarray:
        return np.repeat(super().bands(clips)[:, None], 3, axis=1)


class StatesAnotherDimension(Bands):
    card = ModelCard("bands", "1", 8_000, 15)


class ReturnsDouble(Bands):
    def bands(self, clips: np.ndarray) -> np.ndarray:
        return super().bands(clips).astype(np.float64)


class ReversesRows(Bands):
    def bands(self, clips: np.ndarray) -> np.ndarray:
        return super().bands(clips)[::-1]


class RollsRows(Bands):
    def bands(self, clips: np.ndarray) -> np.ndarray:
        return np.roll(super().bands(clips), 1, axis=0)


class SortsByPitch(Bands):
    def bands(self, clips: np.ndarray) -> np.ndarray:
        return super().bands(clips[np.argsort(np.abs(np.diff(clips)).mean(axis=1))])


class TakesInt16ForFloat(Bands):
    def embed(self, waveforms: Any, sample_rate: int) -> np.ndarray:
        return super().embed(np.asarray(waveforms, np.float32), sample_rate)


class RefusesTenSeconds(Bands):
    def bands(self, clips: np.ndarray) -> np.ndarray:
        if clips.shape[1] > 5 * self.card.sample_rate:
            raise ValueError("clips may last 5 s")
        return super().bands(clips)


class HearsTheFirstSecond(Bands):
    def bands(self, clips: np.ndarray) -> np.ndarray:
        return super().bands(clips[:, : self.card.sample_rate])


class CropsToSevenSeconds(Bands):
    def bands(self, clips: np.ndarray) -> np.ndarray:
        return super().bands(clips[:, : 7 * self.card.sample_rate])


class DropsQuietSamples(Bands):
    def bands(self, clips: np.ndarray) -> np.ndarray:
        return super().bands(np.where(np.abs(clips) < 0.01, np.float32(0), clips))


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
    ("encoder", "check"),
    [
        (IgnoresTheRate, "rate"),
        (NormalisesTheBatch, "batch"),
        (PadsToTheLongest, "batch"),
        (IsRandom, "deterministic"),
        (CropsAtRandom, "deterministic"),
        (RemembersTheLastClip, "deterministic"),
        (ReturnsNaN, "finite"),
        (StagedNaN, "finite"),
        (LogOfZero, "finite"),
        (IsConstant, "sensitive"),
        (ForgetsToPool, "shape"),
        (StatesAnotherDimension, "shape"),
        (ReturnsDouble, "dtype"),
        (ReversesRows, "order"),
        (RollsRows, "order"),
        (SortsByPitch, "order"),
        (TakesInt16ForFloat, "int16"),
        (HearsTheFirstSecond, "seconds"),
        (CropsToSevenSeconds, "seconds"),
        (DropsQuietSamples, "quiet"),
        (RefusesTenSeconds, "embeds"),
    ],
)
def test_each_fault_fails_the_check_that_looks_for_it_and_no_other(encoder: Callable[[], Any], check: str) -> None:
    results = check_model(encoder())
    assert failures(results) == [check]
    assert not all_passed(results)
    assert by_name(results)[check].hint


def test_what_a_failure_makes_meaningless_is_not_run() -> None:
    results = by_name(check_model(IsConstant()))
    assert results["rate"].status == results["order"].status == "info"
    assert results["rate"].value == "not run, as 'sensitive' did not pass"
    assert results["batch"].status == "pass"
    results = by_name(check_model(IsRandom()))
    assert {name for name, result in results.items() if "not run" in result.value} == {
        "sensitive", "seconds", "quiet", "alike", "batch", "order", "rate", "int16", "level",
    }  # fmt: skip


@pytest.mark.slow
def test_messages_hold_what_was_measured() -> None:
    assert by_name(check_model(ForgetsToPool()))["shape"].value == "(4, 3, 16), but must be (4, 16)"
    assert by_name(check_model(ReturnsDouble()))["dtype"].value == "float64"
    assert by_name(check_model(RefusesTenSeconds()))["embeds"].value == "ValueError: clips may last 5 s"
    assert by_name(check_model(LogOfZero()))["finite"].value.startswith("silence: 16 values")
    deaf = by_name(check_model(CropsToSevenSeconds()))["seconds"].value
    assert deaf == "sound in these seconds, 1 to 10, changes nothing: 8, 9, 10"
    assert "clips [3, 0, 1, 2] gave" in by_name(check_model(ReversesRows()))["order"].value
    assert "Hz in a clip at 16,000 Hz is closest to" in by_name(check_model(IgnoresTheRate()))["rate"].value


def test_an_encoder_of_long_clips_only_is_checked_with_these() -> None:
    class LongOnly(Bands):
        def bands(self, clips: np.ndarray) -> np.ndarray:
            if clips.shape[1] < 9 * self.card.sample_rate:
                raise ValueError("clips must last 9 s")
            return super().bands(clips)

    results = check_model(LongOnly())
    assert failures(results) == []
    assert "refused (ValueError: clips must last 9 s)" in by_name(results)["clips of 2 s"].value


@pytest.mark.parametrize("name", ["downsample", "log-mel-statistics", f"{EXAMPLE}:BandEnergies"])
def test_baselines_and_the_example_pass(name: str) -> None:
    results = check_model(name)
    assert failures(results) == []
    assert results[0].name == "loads"


def test_the_random_baseline_fails_at_other_rates_only() -> None:
    assert failures(check_model("random")) == ["rate"]


@pytest.mark.slow
@pytest.mark.parametrize("untrained", [False, True])
def test_a_tiny_whisper_passes(untrained: bool, tmp_path: Path) -> None:
    config = transformers.WhisperConfig(
        d_model=32, encoder_layers=2, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=48, decoder_ffn_dim=48, vocab_size=12, max_source_positions=600, num_mel_bins=80,
        bos_token_id=1, eos_token_id=1, pad_token_id=1, decoder_start_token_id=1,
        suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.WhisperForConditionalGeneration(config).save_pretrained(tmp_path)
    transformers.WhisperFeatureExtractor(feature_size=80, chunk_length=12).save_pretrained(tmp_path)
    results = check_model(f"{'untrained:' if untrained else ''}{tmp_path}", device="cpu")
    assert failures(results) == []


def test_an_encoder_that_does_not_load() -> None:
    results = check_model("wisper-base")
    assert [(result.name, result.status) for result in results] == [("loads", "fail")]
    assert "did you mean 'whisper-base'" in results[0].value
    assert not all_passed(results)


def test_an_error_of_the_encoders_own_code_is_a_result(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "class Broken:\n    sample_rate = 8000\n    output_dim = 3\n"
        "    def embed(self, waveforms, sample_rate):\n        return {}['no such key']\n"
    )
    results = by_name(check_model(f"{tmp_path}/broken.py:Broken"))
    assert results["loads"].status == "pass"
    assert results["embeds"].status == "fail"
    assert (
        results["embeds"].value == "'" + f"{tmp_path}/broken.py:Broken': KeyError in broken.py, line 5: 'no such key'"
    )
    (tmp_path / "worse.py").write_text("import no_such_module\n")
    results = by_name(check_model(f"{tmp_path}/worse.py:Broken"))
    assert (
        results["loads"].value
        == "'worse.py': ModuleNotFoundError in worse.py, line 1: No module named 'no_such_module'"
    )


def test_tones_are_the_same_sounds_at_every_rate() -> None:
    tones = make_tones(16_000, 1)
    assert tones.shape == (4, 16_000)
    assert tones.dtype == np.float32
    assert np.abs(tones).max() < 0.5
    np.testing.assert_allclose(make_tones(48_000, 1)[:, ::3], tones, atol=1e-5)
    spectrum = np.abs(np.fft.rfft(tones))
    np.testing.assert_allclose(spectrum[:, :160].argmax(axis=1), [50, 71, 100, 141], atol=1)


def test_differences_by_hand() -> None:
    reference = np.array([[3.0, 4.0], [0.0, 1.0]], np.float32)
    assert relative_difference(np.array([[3.0, 4.5], [0.0, 1.0]]), reference) == pytest.approx(0.1)
    assert relative_difference(np.zeros((1, 2)), np.zeros((1, 2))) == 0
    assert relative_difference(np.ones((1, 2)), np.zeros((1, 2))) == np.inf
    np.testing.assert_allclose(distances(reference, np.zeros((1, 2))), [[5], [1]])


def test_bursts_by_hand() -> None:
    bursts = make_bursts(8_000, 3)
    assert (bursts.shape, bursts.dtype) == ((4, 24_000), np.float32)
    difference = np.abs(bursts[1:] - bursts[0]).reshape(3, 3, 8_000).max(axis=2) > 0
    np.testing.assert_array_equal(difference, np.eye(3, dtype=bool))


def test_cosines_by_hand() -> None:
    rows = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(cosines(rows), [[1, 0.5**0.5, 0], [0.5**0.5, 1, 0], [0, 0, 0]], atol=1e-12)


def test_embeddings_that_are_nearly_one_are_warned_of() -> None:
    class NearlyOne(Bands):
        def bands(self, clips: np.ndarray) -> np.ndarray:
            return super().bands(clips) + np.float32(1000)

    results = by_name(check_model(NearlyOne()))
    assert results["alike"].status == "warn"
    assert "untrained twin" in results["alike"].hint
    assert by_name(check_model(Bands()))["alike"].status == "info"
    assert failures(list(results.values())) == []


def test_results_as_a_table() -> None:
    results = [ModelCheck("shape", "pass", "[4, 8]"), ModelCheck("rate", "fail", "wrong", "Clips are not resampled.")]
    table = check_table(results, "mine")
    assert [[cell.value for cell in row.cells] for row in table.rows] == [
        ["shape", "pass", "[4, 8]"],
        ["rate", "fail", "wrong"],
    ]
    assert table.legend == ("rate: Clips are not resampled.",)


def test_a_loaded_encoder_of_the_library_can_be_checked() -> None:
    assert all_passed(check_model(load_model("log-mel-statistics")))
