"""The wordings of captions, what sounds are called in them, and prompts: templates by name or from a file."""

import pytest

from audio_compositionality.dataset_builder.scenes.captioned import Leaf
from audio_compositionality.dataset_builder.sounds.entries import label_words
from audio_compositionality.dataset_builder.texts.captions import caption_templates, load_templates, phrase, prompts_of
from audio_compositionality.support.errors import InputError


def test_words_stand_before_their_noun_and_actions_behind_it():
    assert phrase(Leaf("bell", ("slow", "high"))) == "a slow high bell"
    assert phrase(Leaf("organ", ("old",))) == "an old organ"
    assert phrase(Leaf("man", ("speaking",))) == "man speaking"
    assert phrase(Leaf("man", ("loud", "speaking"))) == "a loud man speaking"
    assert phrase(Leaf("rain")) == "rain"


def test_templates_are_two_halves_of_which_each_keeps_one_from_training():
    sequences = caption_templates()["sequence"]
    for mention in ("forward", "reverse"):
        of_mention = [template for template in sequences if template.mention == mention]
        assert len(of_mention) == 4
        assert sum(template.held_out for template in of_mention) == 1
        for template in of_mention:
            text = template.join("FIRST", "SECOND")
            assert (text.index("FIRST") < text.index("SECOND")) == (mention == "forward")
    assert sum(template.held_out for template in caption_templates()["together"]) == 1


def test_sets_by_name():
    assert load_templates() == ("This is a sound of {label}",)
    assert len(load_templates("several")) == 5
    with pytest.raises(InputError, match=r"unknown prompts 'severel'.*'several'"):
        load_templates("severel")


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("- hear {label}\n- '{label}'\n- hear {label}\n")
    assert load_templates(str(path)) == ("hear {label}", "{label}")
    for text, message in (
        ("a: b", "lists no prompt templates"),
        ("- x", "prompt template is 'x'"),
        ("[", "cannot be"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            load_templates(str(path))
    with pytest.raises(InputError, match="cannot be read"):
        load_templates(str(tmp_path / "none.yaml"))


@pytest.mark.parametrize("label", ["dog_bark", "Dog bark", " dog  bark "])
def test_labels_are_words(label):
    assert label_words(label) == "dog bark"
    assert prompts_of(label, ("a {label}", "{label}")) == ["a dog bark", "dog bark"]
