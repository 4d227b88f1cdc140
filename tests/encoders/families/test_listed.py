"""Models by their listed names: the contract of encoders with small networks, and that no listed model is without."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from audio_compositionality.encoders.loading.names import list_models
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import EncoderOptions

from ..contract import LISTED, About, ModelContract, different_clips, relative_error, small_networks

BASELINES = {"downsample": 768, "random": 768, "log-mel-statistics": 256, "modulation-statistics": 384,
             "mfcc-statistics": 60, "level-statistics": 8, "rms": 1, "bag-of-words": 256, "tiny-clap": 128}  # fmt: skip

BUNDLED = "compa-clap-tiny"


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with small_networks():
        yield


class TestBaselines(ModelContract):
    @pytest.fixture(params=["downsample", "random", "rms", "tiny-clap"])
    def about(self, request: pytest.FixtureRequest) -> About:
        name = request.param
        different = 1e-4 if name == "tiny-clap" else 1e-3
        return About(name, 16_000 if name == "tiny-clap" else 32_000, BASELINES[name], 0.5, False, different)


class TestBoxed(ModelContract):
    @pytest.fixture
    def about(self) -> About:
        return About(BUNDLED, 16_000, 128, 0.5, has_trained_weights=True, different=1e-3)


class TestListed(ModelContract):
    @pytest.fixture(params=LISTED)
    def about(self, request: pytest.FixtureRequest) -> About:
        name = request.param
        # Untrained networks give nearly the same vector for every clip.
        return About(f"untrained:{name}", *LISTED[name], has_trained_weights=False, different=1e-5)


def test_every_listed_encoder_is_under_the_contract() -> None:
    """BEATs iter3+ differs from iter3 by its weights; Whispers by their sizes."""
    names = {info.name for info in list_models() if info.embeds_sound}
    whispers = {name for name in names if name.startswith("whisper-")}
    assert names - whispers == {*BASELINES, *LISTED, BUNDLED, "beats-iter3-plus", "af-whisper", "laion-clap"}
    assert len(whispers) == 11
    for info in list_models():
        if info.name in (*BASELINES, BUNDLED):
            card = load_model(info.name).card
            assert (info.output_dim, info.sample_rate) == (card.output_dim, card.sample_rate)
            assert (info.paradigm, info.licence) == (card.paradigm, card.licence)


@pytest.mark.parametrize("name", ["audiomae", "ms-clap-2022", "passt-s"])
def test_reduced_precision_is_near_float32(name: str) -> None:
    rate = LISTED[name][0]
    clips = different_clips(rate, 0.5)
    exact = load_model(f"untrained:{name}", device="cpu").embed(clips, rate)
    rounded = load_model(f"untrained:{name}", device="cpu", options=EncoderOptions(precision="bfloat16"))
    assert 1e-7 < relative_error(rounded.embed(clips, rate), exact) < 0.1


def test_lists_say_which_embed_text() -> None:
    listings = {info.name: info for info in list_models()}
    assert {name for name, info in listings.items() if info.embeds_text} == {
        *["random", "bag-of-words", "tiny-clap", BUNDLED, "laion-clap", "ms-clap-2022", "ms-clap-2023"]
    }
    assert (listings["laion-clap"].gives, listings["downsample"].gives) == ("sound, text", "sound")
    assert all(("text" in load_model(name).abilities) == listings[name].embeds_text for name in BASELINES)
    assert not listings["bag-of-words"].is_baseline
