"""The recipe polybench of our own scenes: sizes, what is built, what is refused, its card."""

import datasets
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError, recipe_fingerprint
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.dataset_builder.scenes.polyphony import PolyphonySpec

RECIPE = load_recipe("polybench")
SMALL = PolyphonySpec(train_sets=1, test_sets=1, sample_rate=8_000)


def test_presets():
    sizes = {name: (preset.train_sets, preset.test_sets) for name, preset in RECIPE.presets.items()}
    assert sizes == {"mini": (30, 12), "full": (30, 200)}
    rows = RECIPE.render(RECIPE.presets["mini"]).rows
    for split, clips, questions in (("train", 690, 750), ("test", 276, 300)):
        of_split = [row for row in rows if row["split"] == split]
        assert (len({row["recording"] for row in of_split}), len(of_split)) == (clips, questions)


def test_built_and_rendered_are_the_same_rows_and_samples_by_one_worker_and_by_two(tmp_path):
    data = RenderedData("small", {RECIPE.name: SMALL})
    folders = [build_dataset(data, tmp_path / str(n), workers=n, progress=False) for n in (1, 2)]
    one, two = ({path.name: path.read_bytes() for path in folder.rglob("*.parquet")} for folder in folders)
    assert one == two
    rendered, built = data.configuration(RECIPE.name), open_data(folders[0]).configuration(RECIPE.name)
    assert list(rendered.rows) == list(built.rows)
    assert rendered.fingerprint == built.fingerprint
    assert len(rendered.clip_ids) == len(rendered.rows) == 50
    for clip, stored in zip(rendered.clips(), built.clips(), strict=True):
        assert (clip.id, clip.sample_rate, len(clip.waveform)) == (stored.id, 8_000, 80_000)
        assert (clip.waveform == stored.waveform).all()
    rows = datasets.load_dataset(str(folders[0]), RECIPE.name, split="test", cache_dir=str(tmp_path / "hub"))
    assert set(rows.features) == set(RECIPE.features(SMALL))
    assert rows.features["options"].feature.dtype == "string"
    assert "CC BY 4.0" in (folders[0] / "README.md").read_text("utf-8")


def test_the_fingerprint_names_all_that_decides_the_samples(monkeypatch):
    changes = ({}, {"seed": 1}, {"train_sets": 2}, {"test_sets": 2}, {"sample_rate": 16_000}, {"velocity": 90})
    prints = [recipe_fingerprint(RECIPE.name, RECIPE.version, SMALL.changed(**change).values()) for change in changes]
    module = "audio_compositionality.dataset_builder.scenes.polyphony.templates_digest"
    monkeypatch.setattr(module, lambda: "other wordings")
    prints.append(recipe_fingerprint(RECIPE.name, RECIPE.version, SMALL.values()))
    assert len(set(prints)) == len(changes) + 1


def test_the_card_says_what_there_is():
    text = RECIPE.describe(RECIPE.presets["mini"])
    assert "300 multiple-choice questions about 276 clips" in text
    assert "750 about\n690 to learn from" in text
    assert "electric piano, brass section" in text
    for column in set(RECIPE.features(SMALL)):
        assert f"`{column}`" in text


def test_a_row_that_is_no_question_is_refused():
    row = RECIPE.render(SMALL).rows[0]
    RECIPE.check_row(row)
    assert RECIPE.clip_names(row) == ("audio",)
    with pytest.raises(DatasetError, match=f"row {row['id']}: answer is 'many'"):
        RECIPE.check_row({**row, "answer": "many"})
