"""Words of classes, and which settings cannot be told by words."""

from itertools import pairwise

import pytest

from audio_compositionality.dataset_builder.scenes.sources import SceneSettings, Source
from audio_compositionality.dataset_builder.sounds.dx7.voice import Operator, Voice
from audio_compositionality.dataset_builder.sounds.tones import default_voices
from audio_compositionality.dataset_builder.texts.captions import template_of, templates
from audio_compositionality.dataset_builder.scenes.expressions import Leaf
from audio_compositionality.dataset_builder.texts.lexicon import (
    attributes_of,
    check_captioned,
    dimension_of,
    nouns,
    phrase,
    plain_phrase,
    words_of_classes,
)
from audio_compositionality.support.errors import InputError


def voices(count):
    return tuple(
        Voice(name=f"VOICE {place}", operators=(Operator(output_level=99, coarse=place % 31), *[Operator()] * 5))
        for place in range(1, count + 1)
    )


def test_the_words_of_eight_classes_are_those_that_are_documented():
    assert words_of_classes("pitch", 8) == {"low": (0, 1), "middle": (3, 4), "high": (6, 7)}
    assert words_of_classes("rate", 8) == {"slow": (1, 2), "steady": (4,), "fast": (6, 7)}
    assert words_of_classes("amplitude", 8) == {"quiet": (1, 2), "loud": (6, 7)}


@pytest.mark.parametrize("count", range(6, 25))
@pytest.mark.parametrize("attribute", ["pitch", "rate", "amplitude"])
def test_a_class_without_a_word_lies_between_any_two_words(attribute, count):
    words = words_of_classes(attribute, count)
    assert all(words.values())
    for first, second in pairwise(words.values()):
        assert max(first) + 1 < min(second)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_classes": 5, "voices": voices(5)}, "5 classes of pitch leave no gap"),
        ({"pitch_range": (48, 83)}, "35 semitones; captions need 36 or more"),
    ],
)
def test_settings_that_words_do_not_tell_apart_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        check_captioned(SceneSettings(**changes))


def test_timbres_have_nouns_and_those_of_a_users_bank_their_labels():
    every = nouns(SceneSettings())
    assert every == (
        "electric piano", "brass section", "bell", "plucked bass", "reed", "organ", "marimba", "pad"
    )  # fmt: skip
    mixed = SceneSettings(num_classes=6, voices=(*default_voices()[:3], *voices(3)))
    assert nouns(mixed) == ("electric piano", "brass section", "bell", "VOICE 1", "VOICE 2", "VOICE 3")
    check_captioned(mixed)


def test_words_are_read_in_one_order():
    settings = SceneSettings()
    assert attributes_of(Source(2, 7, 1, 6), settings) == ("loud", "slow", "high")
    assert attributes_of(Source(2, 2, 0, 3), settings) == ()
    assert [dimension_of(word) for word in ("high", "slow", "loud", "man")] == ["pitch", "rate", "amplitude", ""]
    assert phrase(Leaf("bell", ("slow", "high"))) == "a slow high bell"
    assert phrase(Leaf("organ")) == "an organ"
    assert plain_phrase(Leaf("speaking", ("man",))) == "man speaking"


def test_templates_are_two_halves_of_which_each_keeps_one_from_training():
    sequences = templates()["sequence"]
    for mention in ("forward", "reverse"):
        of_mention = [template for template in sequences if template.mention == mention]
        assert len(of_mention) == 4
        assert sum(template.held_out for template in of_mention) == 1
        for template in of_mention:
            text = template.join("FIRST", "SECOND")
            assert (text.index("FIRST") < text.index("SECOND")) == (mention == "forward")
    assert sum(template.held_out for template in templates()["together"]) == 1
    assert template_of("after").mention == "reverse"
    with pytest.raises(InputError, match="unknown template 'aftr'; did you mean 'after'"):
        template_of("aftr")
