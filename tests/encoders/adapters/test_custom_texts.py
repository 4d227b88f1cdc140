"""A class of one's own with `embed_text`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from audio_compositionality.encoders.adapters.custom import ModelCodeError
from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.check import check_model
from audio_compositionality.encoders.loading.registry import load_model

EXAMPLE = Path(__file__).parents[3] / "examples" / "words_and_bands.py"

CLASS = """
import numpy as np, torch
class Mine:
    sample_rate = 8_000
    def embed(self, waveforms, sample_rate):
        return waveforms[:, :3]
    def embed_text(self, texts):
        {body}
"""


def write(folder: Path, body: str) -> str:
    (folder / "mine.py").write_text(CLASS.format(body=body))
    return f"{folder}/mine.py:Mine"


def test_a_class_with_embed_text_is_an_audio_text_encoder(tmp_path: Path) -> None:
    name = write(tmp_path, "return torch.tensor([[len(text), 1.5, 2] for text in texts], dtype=torch.bfloat16)")
    model = load_model(name)
    assert "text" in model.abilities
    rows = model.embed_text(["dog", "a cat"])
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, [[3, 1.5, 2], [5, 1.5, 2]])
    (tmp_path / "mine.py").write_text(CLASS.format(body="pass").partition("    def embed_text")[0])
    assert load_model(name).abilities == {"audio"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "return np.zeros((2, 4))",
            r"returned shape \(2, 4\) for texts, but must return \[2, 3\]: texts and clips share",
        ),
        ("return np.zeros((2, 3), int)", "returned int64 for texts, but must return floating"),
        ("return np.array([[0, 0, 0], [0, np.nan, 0]])", "returned values that are NaN or infinite for 'a cat'"),
        ("return [[0.0, 0, 0]] * 2", "returned a list, but must return a NumPy array or a torch tensor"),
        ("return {}[texts[0]]", r"KeyError in mine\.py, line 8: 'dog'"),
    ],
)
def test_what_is_no_embedding_of_texts_is_refused(body: str, message: str, tmp_path: Path) -> None:
    model = load_model(write(tmp_path, body))
    assert "text" in model.abilities
    with pytest.raises((ModelError, ModelCodeError), match=message):
        model.embed_text(["dog", "a cat"])


def test_the_example_is_short_and_passes_every_check() -> None:
    lines = EXAMPLE.read_text("utf-8").splitlines()
    assert len(lines) <= 30
    results = {check.name: check for check in check_model(f"{EXAMPLE}:WordsAndBands")}
    assert {name for name, check in results.items() if check.status == "fail"} == set()
    assert results["texts"].status == results["texts: batch"].status == "pass"
