"""Prompts: sets of templates by name or from a file, and labels as words."""

import pytest

from audio_compositionality.dataset_builder.sounds.entries import label_words
from audio_compositionality.dataset_builder.texts.captions import load_templates, prompts_of
from audio_compositionality.support.errors import InputError


def test_sets_by_name():
    assert load_templates() == ("This is a sound of {label}",)
    assert len(load_templates("several")) == 5
    with pytest.raises(InputError, match=r"unknown prompts 'severel'.*'several'"):
        load_templates("severel")


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("- hear {label}\n- '{label}'\n- hear {label}\n")
    assert load_templates(str(path)) == ("hear {label}", "{label}")
    for text, message in (("a: b", "lists no templates"), ("- x", "template of a prompt is 'x'"), ("[", "cannot be")):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            load_templates(str(path))
    with pytest.raises(InputError, match="cannot be read"):
        load_templates(str(tmp_path / "none.yaml"))


@pytest.mark.parametrize("label", ["dog_bark", "Dog bark", " dog  bark "])
def test_labels_are_words(label):
    assert label_words(label) == "dog bark"
    assert prompts_of(label, ("a {label}", "{label}")) == ["a dog bark", "dog bark"]
