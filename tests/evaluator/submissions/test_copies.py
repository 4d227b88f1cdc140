"""Which embeddings are recognised as copies, and which are not."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.evaluator.submissions.copies import Earlier, Sketch, near_duplicates, sketch_of
from audio_compositionality.evaluator.submissions.rounded import RoundedEmbeddings

CLIPS, DIM = 200, 48


def rounded(embeddings: np.ndarray) -> RoundedEmbeddings:
    return RoundedEmbeddings.of([str(clip) for clip in range(len(embeddings))], embeddings)


def made_up(seed: int, clips: int = CLIPS) -> np.ndarray:
    """Embeddings of clips that all models hear something of: shared factors, seen by each model in its own way."""
    factors = np.random.default_rng(99).gamma(1.0, size=(clips, 6))
    rng = np.random.default_rng(seed)
    return 5 + np.tanh(factors @ rng.normal(size=(6, DIM))) @ rng.normal(size=(DIM, DIM))


@pytest.fixture
def first() -> np.ndarray:
    return made_up(0)


def kind_of(embeddings: np.ndarray, *others: np.ndarray) -> list[str]:
    earlier = [
        Earlier(f"entry {k}", f"org/model-{k}", f"2026-01-{k + 1:02}T00:00:00+00:00", sketch_of(rounded(other)))
        for k, other in enumerate(others)
    ]
    return [duplicate.kind for duplicate in near_duplicates(sketch_of(rounded(embeddings)), "org/new", earlier)]


def rotation() -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(5).normal(size=(DIM, DIM)))[0]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda z: z, "exact"),
        (lambda z: 2.0**-7 * z, "exact"),
        (lambda z: 3 * z, "near"),
        (lambda z: z + 100, "near"),
        (lambda z: -z, "near"),
        (lambda z: z[:, ::-1], "near"),
        (lambda z: z @ rotation(), "near"),
        (lambda z: np.concatenate([z, np.ones((len(z), 3))], axis=1), "near"),
        (lambda z: z + 0.1 * z.std() * np.random.default_rng(7).normal(size=z.shape), "near"),
        (lambda z: rounded(z).restored(), "near"),
        (lambda z: np.random.default_rng(3).permutation(-2 * z @ rotation()), "permuted"),
    ],
    ids=["same", "power of 2", "scale", "shift", "signs", "dims", "rotation", "padding", "noise", "rounding", "rows"],
)
def test_a_copy_is_recognised(first, change, kind):
    assert kind_of(change(first), first) in ([kind], ["exact"])


def test_another_model_of_the_same_clips_is_no_copy(first):
    assert kind_of(first, *(made_up(seed) for seed in range(1, 30))) == []
    rng = np.random.default_rng(1)
    assert kind_of(rng.normal(size=(CLIPS, 768)), *(rng.normal(size=(CLIPS, 768)) for _ in range(30))) == []


def test_clips_that_are_all_alike_tell_nothing():
    ones = np.ones((CLIPS, DIM))
    far = np.eye(CLIPS)
    assert kind_of(far, far[::-1] * 3) == []
    assert kind_of(ones, 2 * ones) == ["exact"]
    assert kind_of(np.ones((1, 3)), np.array([[1.0, 2.0, 4.0]])) == ["exact"]


def test_other_clips_are_not_compared(first):
    assert kind_of(first, first[:-1] * 3) == []


def test_the_first_owner_is_named_first(first):
    copies = [
        Earlier("later", "org/a", "2026-03-01T00:00:00+00:00", sketch_of(rounded(first))),
        Earlier("near", "org/b", "2026-01-01T00:00:00+00:00", sketch_of(rounded(first * 3))),
        Earlier("owner", "org/c", "2026-02-01T00:00:00+00:00", sketch_of(rounded(first))),
        Earlier("own", "org/new", "2025-01-01T00:00:00+00:00", sketch_of(rounded(first))),
    ]
    duplicates = near_duplicates(sketch_of(rounded(first)), "org/new", copies)
    assert [(duplicate.earlier.name, duplicate.kind) for duplicate in duplicates] == [
        ("owner", "exact"),
        ("later", "exact"),
        ("near", "near"),
    ]
    assert str(duplicates[0]) == "its embeddings are those of org/c, owner of 2026-02-01T00:00:00+00:00"


def test_a_sketch_is_small_and_says_nothing_of_the_form_of_the_file(first):
    sketch = sketch_of(rounded(first))
    assert len(sketch.model_dump_json()) < 2_000
    assert Sketch.model_validate_json(sketch.model_dump_json()) == sketch
    other = rounded(first)
    zero = RoundedEmbeddings(
        other.clips, np.where(other.values == 0, np.float16(-0.0), other.values), other.offset, 0.5
    )
    assert sketch_of(zero) == sketch
    assert sketch_of(RoundedEmbeddings.loads(other.dumps())) == sketch
