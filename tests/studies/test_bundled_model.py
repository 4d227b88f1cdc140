"""The model of the package: what its commands make, and what it is."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from safetensors.torch import load_file

from audio_compositionality.cli.main import main
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.encoders.families.compa_clap_tiny import FOLDER
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.support.errors import InputError
from studies.bundled_model import KEPT, MOST_BYTES, SPREAD, WEIGHTS, make_bundled_model


def test_it_is_small_and_its_card_says_what_it_learnt_from():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < MOST_BYTES
    card = (FOLDER / "README.md").read_text("utf-8")
    data = rendered_preset("mini", recipes=("comp_a_train",)).configuration("comp_a_train")
    assert f"4,000 rows of comp_a_train, mini, fingerprint `{data.fingerprint[:12]}`" in card
    assert "python -m studies.bundled_model trained" in card
    # Files of a training that are not in the package.
    assert not any(name in card for name in ("settings.yaml", "training.json", "evaluations.csv", "best/"))


def test_it_hears_and_reads_beside_its_twin():
    clips = np.random.default_rng(0).normal(0, 0.1, (2, 16_000)).astype(np.float32)
    texts = ["a low bell, then a high organ", "a high organ, then a low bell"]
    model, twin = load_model("compa-clap-tiny"), load_model("untrained:compa-clap-tiny")
    assert "comp_a_train" in model.card.trained_on
    assert twin.card.trained_on is None
    for one in (model, twin):
        assert one.embed(clips, 16_000).shape == one.embed_text(texts).shape == (2, 128)
    assert not np.allclose(model.embed_text(texts), twin.embed_text(texts))


def test_what_is_no_training_is_refused(tmp_path):
    with pytest.raises(InputError, match=f"has no {WEIGHTS}, README.md, {KEPT[0]}"):
        make_bundled_model(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_training_lands_within_its_spread(tmp_path, one_thread):
    """The whole training, which takes minutes."""
    assert main(["train", "--seed", "0", "--out", str(tmp_path / "trained")]) == 0
    with (tmp_path / "trained" / "evaluations.csv").open(encoding="utf-8") as file:
        last = [float(row["value"]) for row in csv.DictReader(file) if row["name"] == "score"][-1]
    # Three standard deviations of trainings beyond the lowest and the highest.
    margin = 3 * np.std(SPREAD, ddof=1)
    assert min(SPREAD) - margin <= last <= max(SPREAD) + margin
    make_bundled_model(tmp_path / "trained" / "best", tmp_path / "made")
    made, bundled = load_file(tmp_path / "made" / WEIGHTS), load_file(FOLDER / WEIGHTS)
    assert {name: tensor.shape for name, tensor in made.items()} == {n: tensor.shape for n, tensor in bundled.items()}
    for name in KEPT:
        assert (tmp_path / "made" / name).read_bytes() == (FOLDER / name).read_bytes()
