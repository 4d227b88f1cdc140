"""Data whose texts a model writes: once, before they are built, named by the fingerprint; the sound is the same."""

import datasets
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.dataset_builder.texts.rewriting import (
    KeptAnswers,
    LanguageModelWriter,
    rewrite,
    written_data,
)
from audio_compositionality.support.errors import InputError

from ..recipes.test_captioned_recordings import ATTRIBUTE, TRAIN, WHO, recordings, settings_of
from .scripted import Scripted, as_json, kind_of_prompt, save_tiny_gpt2
from .test_rewriting import caption_in

SMALL = {
    "comp_a_train": {"sample_rate": 8_000, "train_rows": 6, "validation_rows": 2},
    "comp_a_order": {"sample_rate": 8_000, "items": 8},
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(tmp_path / "cache"))


def small(*recipes):
    settings = {name: load_recipe(name).presets["mini"].changed(**SMALL[name]) for name in recipes}
    return RenderedData("small", settings)


_TOGETHER = tuple((word, "alongside") for word in ("with", "over", "amid", "while"))


def renamed(prompt):
    """Paraphrases by another word, where the caption has one of these; nothing else."""
    if kind_of_prompt(prompt) != "paraphrase":
        return ""
    caption = caption_in(prompt)
    for before, after in (("followed by", "then"), ("and then", "then"), ("after", "preceded by"), *_TOGETHER):
        caption = caption.replace(f" {before} ", f" {after} ")
    return as_json(caption=caption)


@pytest.fixture
def data():
    return small("comp_a_train")


def test_texts_are_in_the_fingerprint_and_nothing_is_asked_twice(data):
    model = Scripted(renamed)
    written = written_data(data, LanguageModelWriter(model))
    report = written.reports["comp_a_train"]
    assert 0 < report.taken < report.asked
    count = len(model.asked)
    assert count
    one, again = written.configuration("comp_a_train"), written_data(data, LanguageModelWriter(model))
    assert len(model.asked) == count
    assert again.configuration("comp_a_train").fingerprint == one.fingerprint
    assert again.configuration("comp_a_train").rows == one.rows
    prints = {data.configuration("comp_a_train").fingerprint, one.fingerprint}
    for other in (Scripted(renamed, revision="2"), Scripted(lambda prompt: ""), Scripted(renamed)):
        writer = LanguageModelWriter(other, in_test=other.identity["revision"] == "1")
        prints.add(written_data(data, writer, keep_answers=False).configuration("comp_a_train").fingerprint)
    # Another revision; what it did not write; the same as the latter, but allowed in tests.
    assert len(prints) == 5


def test_a_built_folder_holds_them_beside_the_same_sound(data, tmp_path):
    written = written_data(data, LanguageModelWriter(Scripted(renamed)))
    folder = build_dataset(written, tmp_path / "written", progress=False)
    stored, plain = open_data(folder).configuration("comp_a_train"), data.configuration("comp_a_train")
    assert stored.fingerprint == written.configuration("comp_a_train").fingerprint
    assert "language-model" in {row["writer"] for row in stored.rows} <= {"template", "language-model"}
    columns = ("id", "split", "captions", "negatives", "writer")
    rows = written.configuration("comp_a_train").rows
    assert [{name: row[name] for name in columns} for row in stored.rows] == [
        {name: row[name] for name in columns} for row in rows
    ]
    assert [row["captions"] for row in rows] != [row["captions"] for row in plain.rows]
    for one, other in zip(stored.clips(), plain.clips(), strict=True):
        assert (one.waveform == other.waveform).all()
    rows = datasets.load_dataset(str(folder), "comp_a_train", split="train", cache_dir=str(tmp_path / "hub"))
    assert rows.features["writer"].dtype == "string"
    card = (folder / "README.md").read_text()
    assert "texts asked of scripted" in card
    # Another build of the same is none; without the model it is other data.
    assert build_dataset(written, folder, progress=False) == folder
    with pytest.raises(DatasetError, match="holds another data set"):
        build_dataset(data, folder, progress=False)


def test_some_recipes_of_written_data_are_still_written(tmp_path):
    written = written_data(small("comp_a_train", "comp_a_order"), LanguageModelWriter(Scripted(renamed)))
    assert written.reports.keys() == {"comp_a_train"}
    folder = build_dataset(written, tmp_path / "x", recipes=["comp_a_train"], progress=False)
    (name,) = open_data(folder).recipes
    assert open_data(folder).configuration(name).fingerprint == written.configuration(name).fingerprint


def test_test_items_are_written_only_where_it_is_asked_for():
    data = small("comp_a_order")
    model = Scripted(renamed)
    with pytest.raises(InputError, match="none of comp_a_order has captions that a language model may write"):
        written_data(data, LanguageModelWriter(model))
    assert model.asked == []
    written = written_data(data, LanguageModelWriter(model, in_test=True)).configuration("comp_a_order")
    assert [row["captions"] for row in written.rows] != [
        row["captions"] for row in data.configuration("comp_a_order").rows
    ]
    assert "writer" in written.features


def test_data_without_captions_are_refused(toys):
    data = RenderedData("toys", {toys.name: next(iter(toys.presets.values()))})
    with pytest.raises(InputError, match="has captions that a language model may write"):
        written_data(data, LanguageModelWriter(Scripted()))


def test_a_file_of_answers_that_was_cut_short_is_gone_on_with():
    model = Scripted(lambda prompt: f"to {prompt}")
    kept = KeptAnswers(model)
    assert kept.generate(["a", "b", "a"]) == ["to a", "to b", "to a"]
    assert model.asked == [["a", "b"]]
    kept.path.write_bytes(kept.path.read_bytes()[:-10])
    with pytest.warns(UserWarning, match=r"1 of the lines of .*\.jsonl are left out, .* asked again: .*line 3"):
        assert KeptAnswers(model).generate(["b", "c"]) == ["to b", "to c"]
    assert model.asked[1:] == [["b", "c"]]
    assert KeptAnswers(model).generate(["a", "b", "c"]) == ["to a", "to b", "to c"]
    assert len(model.asked) == 2
    # Another model's answers are others.
    assert KeptAnswers(Scripted(lambda prompt: "", revision="2")).generate(["a"]) == [""]


def test_an_answer_that_was_changed_is_refused():
    model = Scripted(lambda prompt: f"to {prompt}")
    path = KeptAnswers(model).path
    KeptAnswers(model).generate(["a", "b"])
    path.write_bytes(path.read_bytes().replace(b"to b", b"to c"))
    with pytest.raises(DatasetError, match=r"line 3 of .*\.jsonl was changed after it was written: .* Remove the line"):
        KeptAnswers(model).generate(["a"])
    # As it was before answers had digests.
    path.write_text('{"prompt": "a", "answer": "to b"}\n' * 3)
    with pytest.warns(UserWarning, match="3 of the lines of .* are left out") as warned:
        assert KeptAnswers(model).generate(["a"]) == ["to a"]
    assert len(warned) == 1


def test_the_command_builds_with_a_model_from_a_folder(tmp_path, capsys, monkeypatch):
    from audio_compositionality.cli.main import main
    from audio_compositionality.dataset_builder import rendered
    from audio_compositionality.dataset_builder.texts import rewriting as written

    preset = rendered.rendered_preset

    def few_of(name, *, recipes=None, **changes):
        return preset(name) if recipes is None else small(*recipes)

    monkeypatch.setattr(rendered, "rendered_preset", few_of)
    monkeypatch.setattr(written, "MOST_NEW_TOKENS", 10)
    folder = save_tiny_gpt2(tmp_path / "tiny")
    few = ("build", "--recipes", "comp_a_train", "--out", str(tmp_path / "x"))
    assert main([*few, "--set", "writer_in_test=true"]) == 2
    assert "writer_in_test has no effect without --writer MODEL; give it too" in capsys.readouterr().err
    assert main([*few, "--writer", "nowhere"]) == 2
    assert "cannot load the language model 'nowhere'" in capsys.readouterr().err
    assert main([*few, "--writer", str(folder), "--set", "writer_device=cpu"]) == 0
    output = capsys.readouterr().out
    assert "texts asked of tiny, 0 are taken (0%)" in output
    assert "'no JSON'" in output
    assert {row["writer"] for row in open_data(tmp_path / "x").configuration("comp_a_train").rows} == {"template"}


def test_captions_of_scenes_and_of_recordings_can_all_be_read():
    scenes = [small(name).configuration(name).rows for name in SMALL]
    order = load_recipe("comp_a_order")
    recorded = [
        order.render(settings_of(order, items=20)).rows,
        ATTRIBUTE.render(settings_of(ATTRIBUTE, recordings(WHO), items=8)).rows,
        TRAIN.render(settings_of(TRAIN, train_rows=30, validation_rows=5)).rows,
    ]
    for rows in (*scenes, *recorded):
        _, report = rewrite(rows, LanguageModelWriter(Scripted(renamed), in_test=True))
        assert report.left == 0
        assert report.taken > 0
