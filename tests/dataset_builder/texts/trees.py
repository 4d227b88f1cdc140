"""Random scenes as trees, and a second test of truth: 10-ms frames instead of intervals, written from the rules."""

import numpy as np

from audio_compositionality.dataset_builder.scenes.captioned import Leaf, Then, Together, joined
from audio_compositionality.dataset_builder.texts.truth import HeardEvent

LABELS = ("bell", "organ", "pad", "reed", "marimba", "brass section", "plucked bass", "electric piano")
WORDS = (("quiet", "loud"), ("slow", "steady", "fast"), ("low", "middle", "high"))

FRAMES = 1_000
"""A clip of 10 s."""


def random_tree(rng, most=4):
    """A tree over 1 to 4 leaves, all of different labels and each with two or three words."""
    count = int(rng.integers(1, most + 1))
    labels = [LABELS[place] for place in rng.permutation(len(LABELS))[:count]]
    return _tree([Leaf(label, _words(rng)) for label in labels], rng)


def _words(rng):
    words = [str(rng.choice(of_attribute)) for of_attribute in WORDS]
    del words[int(rng.integers(4)) :][:1]
    return tuple(words)


def _tree(leaves, rng):
    if len(leaves) == 1:
        return leaves[0]
    cut = int(rng.integers(1, len(leaves)))
    return joined((Then, Together)[int(rng.integers(2))], [_tree(leaves[:cut], rng), _tree(leaves[cut:], rng)])


def events_of_tree(tree, rng, start=0, stop=FRAMES):
    """When each leaf is heard: a `Then` divides its time, at places that are drawn, a `Together` gives it to each."""
    if isinstance(tree, Leaf):
        # An event begins up to .4 s late, and some are two with a pause between.
        first = start + int(rng.integers(0, 41))
        times = [(first, stop)]
        if stop - first > 250 and rng.random() < 0.3:
            middle = (first + stop) // 2
            times = [(first, middle - 5), (middle + 5, stop)]
        return [HeardEvent(tree.label, one / 100, other / 100, tree.attributes) for one, other in times]
    if isinstance(tree, Together):
        return [event for part in tree.operands for event in events_of_tree(part, rng, start, stop)]
    shares = rng.uniform(1, 1.4, len(tree.operands))
    cuts = start + np.rint(np.cumsum(np.concatenate([[0], shares])) / shares.sum() * (stop - start)).astype(int)
    return [
        event
        for part, one, other in zip(tree.operands, cuts, cuts[1:], strict=False)
        for event in events_of_tree(part, rng, int(one), int(other))
    ]


def is_true_by_frames(tree, events):
    """As `is_true`, from one row of booleans a leaf."""
    try:
        _activity(tree, events)
    except LookupError:
        return False
    return True


def _activity(tree, events):
    """Frames in which any leaf of a tree is heard; LookupError where the tree is false."""
    if isinstance(tree, Leaf):
        active = np.zeros(FRAMES, bool)
        for event in events:
            if event.label == tree.label and all(word in event.attributes for word in tree.attributes):
                active[round(event.start * 100) : round(event.stop * 100)] = True
        if active.sum() < 100:
            raise LookupError("not heard")
        return active
    rows = [_activity(part, events) for part in tree.operands]
    for number, row in enumerate(rows[:-1]):
        after = rows[number + 1]
        if isinstance(tree, Then) and np.flatnonzero(after)[0] + 10 < np.flatnonzero(row)[-1] + 1:
            raise LookupError("not after it")
    if isinstance(tree, Together):
        for one, row in enumerate(rows):
            for other, second in enumerate(rows):
                if one == other:
                    continue
                part, behind = tree.operands[one], tree.operands[other]
                if isinstance(part, Then) and not isinstance(behind, Then):
                    pieces = [_activity(piece, events) for piece in part.operands]
                    if any(2 * (piece & second).sum() < piece.sum() for piece in pieces):
                        raise LookupError("not throughout")
                alike = isinstance(part, Then) == isinstance(behind, Then)
                if alike and 2 * (row & second).sum() < min(row.sum(), second.sum()):
                    raise LookupError("not at one time")
    return np.any(rows, axis=0)
