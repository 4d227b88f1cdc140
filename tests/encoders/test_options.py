import pytest

from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import EncoderOptions


def test_the_suffix_tells_options_apart() -> None:
    assert EncoderOptions().suffix == ""
    assert EncoderOptions(compile=True).suffix == ""
    assert EncoderOptions(layer=0).suffix == "@layer=0"
    assert EncoderOptions(3, "max", "bfloat16").suffix == "@layer=3+pooling=max+bfloat16"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pooling": "maximum"}, "pooling is 'maximum': did you mean 'max'\\? Valid: mean, cls, max"),
        ({"precision": "bf16"}, "precision is 'bf16': .*Valid: float32, bfloat16, float16"),
        ({"layer": 1.5}, "layer is 1.5; it must be a whole number"),
        ({"layer": True}, "layer is True"),
    ],
)
def test_what_is_no_option(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EncoderOptions(**arguments)


def test_a_baseline_takes_none() -> None:
    with pytest.raises(ValueError, match="'random' is a baseline without a model: it takes no layer"):
        load_model("random", options=EncoderOptions(layer=1))
