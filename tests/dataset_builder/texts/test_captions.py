"""What sounds are called in captions, and the templates that join them."""

from audio_compositionality.dataset_builder.scenes.captioned import Leaf
from audio_compositionality.dataset_builder.texts.captions import caption_templates, phrase


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
