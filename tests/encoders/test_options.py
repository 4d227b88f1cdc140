import pytest

from audio_compositionality.encoders import EncoderOptions, load_encoder


def test_the_suffix_tells_options_apart() -> None:
    assert EncoderOptions().suffix == ""
    assert EncoderOptions(compile=True).suffix == ""
    assert EncoderOptions(layer=0).suffix == "@layer=0"
    assert EncoderOptions(3, "max", "bfloat16").suffix == "@layer=3+pooling=max+bfloat16"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pooling": "maximum"}, "pooling is 'maximum', but must be one of mean, cls, max; did you mean 'max'"),
        ({"precision": "bf16"}, "precision is 'bf16', but must be one of float32, bfloat16, float16"),
        ({"layer": 1.5}, "layer is 1.5; it must be a whole number"),
        ({"layer": True}, "layer is True"),
    ],
)
def test_what_is_no_option(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EncoderOptions(**arguments)


def test_a_baseline_takes_none() -> None:
    with pytest.raises(ValueError, match="'random' is a baseline without a model: it takes no layer"):
        load_encoder("random", options=EncoderOptions(layer=1))
