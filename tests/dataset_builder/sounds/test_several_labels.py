"""Which label a recording of several has."""

from audio_compositionality.dataset_builder.sounds.labels import specific_labels, split_labels


def specific(texts, separator, support):
    return specific_labels([split_labels(text, separator) for text in texts], support)


def test_it_is_the_one_that_is_above_none():
    texts = ["Guitar,Strings,Music"] * 3 + ["Harp,Strings,Music"] * 3 + ["Drum,Music"] * 3
    assert specific(texts, ",", support=3) == ["Guitar"] * 3 + ["Harp"] * 3 + ["Drum"] * 3


def test_there_is_none_where_nobody_says_which():
    plain = ["a,top"] * 3 + ["b,top"] * 3
    #                       only what is above, two at once, a label that is above neither, none
    others = ["top", "a,b,top", "a,top,rare", ""]
    assert specific(plain + others, ",", support=3) == ["a"] * 3 + ["b"] * 3 + [None] * 4


def test_rare_labels_tell_nothing_of_the_hierarchy():
    # All of the one clip "rare" is also "a": that does not put "a" above it.
    texts = [" a ; top"] * 3 + ["rare;a;top", "top"]
    assert specific(texts, ";", support=3) == ["a"] * 3 + [None, None]
    assert specific(texts, ";", support=1) == [None] * 3 + ["rare", None]


def test_labels_that_always_come_together_are_told_apart_by_nobody():
    assert specific(["a,b"] * 4, ",", support=2) == [None] * 4
