import pytest

from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import EncoderOptions


def test_the_suffix_tells_options_apart() -> None:
    assert EncoderOptions().suffix == ""
    assert EncoderOptions(compile=True).suffix == ""
    assert EncoderOptions(layer=0).suffix == "@layer=0"
    assert EncoderOptions(layer=3, pooling="max", precision="bfloat16").suffix == "@layer=3+pooling=max+bfloat16"


def test_a_baseline_takes_none() -> None:
    with pytest.raises(ValueError, match="'random' is a baseline without a model: it takes no layer"):
        load_model("random", options=EncoderOptions(layer=1))
