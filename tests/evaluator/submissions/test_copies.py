"""Which embeddings and answers are recognised as copies, and which are not."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from audio_compositionality.encoders.base import ModelCard
from audio_compositionality.evaluator.results.result import ScoredModel
from audio_compositionality.evaluator.submissions.copies import (
    Earlier,
    Sketch,
    duplicates_of,
    may_be_copied,
    relation_of,
    sketch_of,
)
from audio_compositionality.evaluator.submissions.outputs import RoundedEmbeddings
from studies.copies import MANIPULATIONS, manipulated

from .conftest import lines_of, with_lines

CLIPS, DIM = 200, 48


def rounded(embeddings: np.ndarray, first: int = 0, texts: int = 0) -> RoundedEmbeddings:
    return RoundedEmbeddings.of([str(first + clip) for clip in range(len(embeddings))], embeddings, texts)


def made_up(seed: int, clips: int = CLIPS) -> np.ndarray:
    """Embeddings of clips that all models hear something of: shared factors, seen by each model in its own way."""
    factors = np.random.default_rng(99).gamma(1.0, size=(clips, 6))
    rng = np.random.default_rng(seed)
    return 5 + np.tanh(factors @ rng.normal(size=(6, DIM))) @ rng.normal(size=(DIM, DIM))


FIRST, ROTATION = made_up(0), np.linalg.qr(np.random.default_rng(5).normal(size=(DIM, DIM)))[0]


def stated(id: str, revision: str = "1", weights: str | None = None) -> ScoredModel:
    return ScoredModel.of(ModelCard(id, revision, 16_000, DIM, weights))


def earlier_of(name: str, embeddings: np.ndarray, day: str = "2026-01-01", model: ScoredModel | None = None) -> Earlier:
    model = model or stated(f"org/{name}")
    return Earlier(name, "a_coat", model, f"{day}T00:00:00+00:00", sketch_of(rounded(embeddings)))


def kind_of(embeddings: np.ndarray, *others: np.ndarray) -> list[str]:
    earlier = [earlier_of(str(k), other) for k, other in enumerate(others)]
    return [duplicate.kind for duplicate in duplicates_of(sketch_of(rounded(embeddings)), stated("org/new"), earlier)]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda z: 2.0**-7 * z, "exact"),
        (lambda z: np.concatenate([z, np.ones((len(z), 3))], axis=1), "near"),
        (lambda z: -3 * z @ ROTATION + 10, "near"),
        (lambda z: z / z.std(axis=0), "near"),
        (lambda z: z * np.random.default_rng(7).uniform(0.1, 10, size=(len(z), 1)), "near"),
        (lambda z: np.random.default_rng(3).permutation(-2 * z @ ROTATION), "permuted"),
        *((lambda z, how=how: manipulated(z, *how, 0), "near") for how in MANIPULATIONS),
    ],
)
def test_a_copy_is_recognised(change, kind):
    assert kind_of(change(FIRST), FIRST) in ([kind], ["exact"])


def test_what_is_no_copy():
    models = [earlier_of(str(seed), made_up(seed)) for seed in range(8)]
    assert not any(duplicates_of(a.sketch, a.model, [b]) for a, b in combinations(models, 2))
    ones, far = np.ones((CLIPS, DIM)), np.eye(CLIPS)
    # Clips that are all alike tell nothing.
    assert (kind_of(far, far[::-1] * 3), kind_of(ones, 2 * ones)) == ([], ["exact"])
    # Other clips are not compared; of clips with texts the texts are not.
    assert kind_of(FIRST, FIRST[:-1] * 3) == []
    assert duplicates_of(sketch_of(rounded(3 * FIRST, first=9)), stated("org/new"), [earlier_of("there", FIRST)]) == []
    one, other = (sketch_of(rounded(np.concatenate([scale * FIRST, made_up(scale, 50)]), texts=50)) for scale in (1, 3))
    (duplicate,) = duplicates_of(other, stated("org/new"), [Earlier("there", "said", stated("org/a"), "2026", one)])
    assert duplicate.kind == "near"


def test_the_first_owner_is_named_first_and_the_same_weights_are_a_reproduction():
    dated = {"later": ("2026-03-01", 1), "near": ("2026-01-01", 3), "owner": ("2026-02-01", 1)}
    copies = [earlier_of(name, FIRST * factor, day) for name, (day, factor) in dated.items()]
    duplicates = duplicates_of(sketch_of(rounded(FIRST)), stated("org/new"), copies)
    assert [f"{one.earlier.name} {one.kind}" for one in duplicates] == ["owner exact", "later exact", "near near"]
    assert str(duplicates[0]) == "its embeddings are those of org/owner, owner of 2026-02-01T00:00:00+00:00"
    assert may_be_copied(duplicates)
    weights = "a" * 64
    assert relation_of(stated("org/a"), stated("org/a")) == "weights"
    assert relation_of(stated("org/a", "1", weights), stated("org/b", "2", weights)) == "weights"
    assert relation_of(stated("org/a"), stated("org/a", "2")) == "model"
    assert relation_of(stated("org/a"), stated("org/b")) == "other"
    owner = earlier_of("owner", FIRST, model=stated("org/a", "1", weights))
    thief = earlier_of("thief", 3 * FIRST, "2026-02-01")
    again, sketch = stated("org/again", "9", weights), sketch_of(rounded(FIRST + 1))
    assert str(duplicates_of(sketch, again, [owner])[0]).endswith(", which states the same weights")
    # Who came first decides.
    assert not may_be_copied(duplicates_of(sketch, again, [thief, owner]))
    assert may_be_copied(duplicates_of(sketch, stated("org/thief"), [thief, owner]))


def test_a_sketch_is_small_and_says_nothing_of_the_form_of_the_file():
    sketch, other = sketch_of(rounded(FIRST)), rounded(FIRST)
    assert len(sketch.model_dump_json()) < 35_000
    assert Sketch.model_validate_json(sketch.model_dump_json()) == sketch
    zero = replace(other, values=np.where(other.values == 0, np.float16(-0.0), other.values))
    assert sketch_of(zero) == sketch_of(RoundedEmbeddings.loads(other.dumps())) == sketch


REWRITTEN = (str.lower, " {}. \n".format, "I think that it is {}".format, "({})".format)


@pytest.mark.parametrize("change", [*REWRITTEN, None])
@pytest.mark.parametrize("model", ["oracle", "blind"])
def test_answers_that_are_written_otherwise_are_the_same(answered, verify, questions, model, change):
    """Whatever is around it, the choice counts."""
    lines = lines_of(answered[model].files)
    options = {row["id"]: row["options"] for row in questions.configuration("polybench").rows}
    for line in lines:
        text = line["answer"]
        line["answer"] = change(text) if change else options[line["id"]]["ABCD".index(text)] if len(text) == 1 else text
    verification, source = verify(with_lines(answered[model].files, lines)), verify(answered[model].files)
    assert verification.verified, verification.problems
    theirs = source.result.model.model_copy(update={"id": "theirs"})
    earlier = [Earlier("results/there", "polybench", theirs, "2026-01-01T00:00:00+00:00", source.sketch)]
    (duplicate,) = duplicates_of(verification.sketch, verification.result.model, earlier)
    assert (duplicate.kind, duplicate.relation) == ("near", "other")
    assert str(duplicate).startswith("its answers choose nearly as those of theirs, results/there of 2026-01-01")


def test_constant_answers_are_nobodys_and_others_are_no_copies(answered, verify):
    found = {name: verify(answered[name].files) for name in ("blind", "first")}
    assert set(found["first"].sketch.choices.taken) == {"A"}
    for one, other in (("first", "first"), ("first", "blind")):
        theirs = found[other].result.model.model_copy(update={"id": "theirs"})
        earlier = [Earlier("there", "polybench", theirs, "2026", found[other].sketch)]
        assert duplicates_of(found[one].sketch, found[one].result.model, earlier) == []
