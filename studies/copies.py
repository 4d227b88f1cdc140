"""How far copies of embeddings and of answers are from honest models, and where the limits of `submissions.copies`
lie between them.

`python -m studies.copies embeddings --store DIR MODEL …` embeds 32 quadruples of the preset mini
at all layers of each model, and prints which pairs are called copies, how near honest ones come, and what each
manipulation does to distances and to the numbers that rank A-COAT. `… copies pairs RECIPE --store DIR MODEL …` prints
the first half for the clips of another recipe, at the models' own layers. `… copies answers` makes up models that
answer.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.encoders.base import LETTERS
from audio_compositionality.evaluator.submissions.copies import (
    ALIKE_RANKS,
    COPIED,
    Choices,
    Shape,
    agreement_of_errors,
    are_nearly_same,
    are_nearly_same_choices,
    difference_of_ranks,
    same_dimensions,
    sketch_of,
)
from audio_compositionality.evaluator.submissions.outputs import RoundedEmbeddings

Floats = NDArray[np.floating]
Generator = np.random.Generator


def _noise(z: Floats, share: float, rng: Generator) -> Floats:
    """Each dimension plus noise of a share of its standard deviation."""
    return np.asarray(z + share * z.std(axis=0) * rng.normal(size=z.shape))


def _even_noise(z: Floats, share: float, rng: Generator) -> Floats:
    """All dimensions plus noise of a share of their root mean square standard deviation."""
    return np.asarray(z + share * np.sqrt(z.var(axis=0).mean()) * rng.normal(size=z.shape))


def _dropped(z: Floats, share: float, rng: Generator) -> Floats:
    kept = max(1, round((1 - share) * z.shape[1]))
    return z[:, np.sort(rng.choice(z.shape[1], kept, replace=False))]


def _doubled(z: Floats, share: float, rng: Generator) -> Floats:
    again = rng.choice(z.shape[1], max(1, round(share * z.shape[1])), replace=False)
    return np.concatenate([z, z[:, again]], axis=1)


def _added(z: Floats, share: float, rng: Generator) -> Floats:
    count = max(1, round(share * z.shape[1]))
    return np.concatenate([z, np.sqrt(z.var(axis=0).mean()) * rng.normal(size=(len(z), count))], axis=1)


def _moved(z: Floats, deviations: float, rng: Generator) -> Floats:
    """One row moved by so many standard deviations in all dimensions."""
    moved = z.copy()
    moved[rng.integers(len(z))] += deviations * z.std(axis=0)
    return moved


def _exchanged(z: Floats, share: float, rng: Generator) -> Floats:
    """A share of the rows exchanged, two by two."""
    exchanged = z.copy()
    count = max(1, round(share * len(z) / 2))
    places = rng.choice(len(z), 2 * count, replace=False).reshape(2, count)
    exchanged[places[0]], exchanged[places[1]] = z[places[1]], z[places[0]]
    return exchanged


def _rotated(z: Floats, _: float, rng: Generator) -> Floats:
    return np.asarray(z @ np.linalg.qr(rng.normal(size=(z.shape[1],) * 2))[0])


def _to_unit(z: Floats, _: float, rng: Generator) -> Floats:
    lengths = np.linalg.norm(z, axis=1, keepdims=True)
    return np.asarray(z / np.where(lengths > 0, lengths, 1))


_CHANGES: Mapping[str, Callable[[Floats, float, Generator], Floats]] = {
    "float16": lambda z, _, rng: (z / np.abs(z).max()).astype(np.float16).astype(np.float64),
    "scale": lambda z, factor, rng: factor * z,
    "shift": lambda z, deviations, rng: z + deviations * z.std() * rng.normal(size=z.shape[1]),
    "rotation": _rotated,
    "signs": lambda z, _, rng: z * rng.choice([-1, 1], size=z.shape[1]),
    "permuted dimensions": lambda z, _, rng: z[:, rng.permutation(z.shape[1])],
    "dropped dimensions": _dropped,
    "doubled dimensions": _doubled,
    "noise": _noise,
    "even noise": _even_noise,
    "added noise dimensions": _added,
    "one row moved": _moved,
    "rows to unit length": _to_unit,
    "rows exchanged": _exchanged,
}

_STRENGTHS: Mapping[str, Sequence[float]] = {
    "scale": (1e-3, 3.0, -7.0),
    "shift": (1.0, 100.0),
    "dropped dimensions": (0.05, 0.1, 0.25, 0.5),
    "doubled dimensions": (0.05, 0.1, 0.5, 1.0),
    "noise": (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5),
    "even noise": (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5),
    "added noise dimensions": (0.05, 0.1, 0.25, 0.5, 1.0),
    "one row moved": (3.0, 30.0, 1e4),
    "rows exchanged": (0.01, 0.02, 0.05),
}

MANIPULATIONS: tuple[tuple[str, float], ...] = tuple(
    (name, strength) for name in _CHANGES for strength in _STRENGTHS.get(name, (0.0,))
)
"""Manipulations that disguise copies: a name, and a strength, a share or a number of standard deviations."""


def manipulated(embeddings: Floats, name: str, strength: float, seed: int) -> Floats:
    """Embeddings [clips, dim] changed by one of `MANIPULATIONS`; their order stays that of the clips."""
    return _CHANGES[name](embeddings.astype(np.float64), strength, np.random.default_rng([seed, len(name)]))


def shape_of_embeddings(embeddings: Floats) -> Shape:
    """The shape of embeddings [clips, dim] in a submission."""
    shape = sketch_of(RoundedEmbeddings.of([str(clip) for clip in range(len(embeddings))], embeddings)).shape
    assert shape is not None
    return shape


def print_honest(shapes: Mapping[tuple[str, str], Shape]) -> None:
    """Print which pairs of models are called copies, and which come nearest.

    Args:
        shapes: by the name of the weights and the layer.
    """
    pairs = list(combinations(shapes, 2))
    values = {
        (a, b): (*difference_of_ranks(shapes[a], shapes[b]), same_dimensions(shapes[a], shapes[b])) for a, b in pairs
    }
    called = [pair for pair in pairs if are_nearly_same(*(shapes[name] for name in pair))]
    of_one = {pair for pair in pairs if pair[0][0] == pair[1][0]}
    print(f"{len(shapes)} models and layers, {len(pairs)} pairs, {len(of_one)} of them layers of the same weights")
    print(f"called copies: {len(called)}", *called, sep="\n  ")
    for name, some in (("other weights", [p for p in pairs if p not in of_one]), ("layers", sorted(of_one))):
        if not some:
            continue
        alike = [pair for pair in some if values[pair][0] <= ALIKE_RANKS]
        least = min(some, key=lambda pair: values[pair][0])
        print(f"{name}: least difference {values[least][0]:.4f}, {least}; {len(alike)} pairs up to {ALIKE_RANKS}")
        if alike:
            structure = min(alike, key=lambda pair: values[pair][1])
            print(f"  of these the least structure {values[structure][1]:.3f}, {structure}")
        dimensions = max(some, key=lambda pair: values[pair][2])
        print(f"  most dimensions that are the same {values[dimensions][2]}, {dimensions}")


def print_copies(embeddings: Mapping[str, Floats], scores: Callable[[Floats], Mapping[str, float]], seeds: int) -> None:
    """Print the effect of each manipulation on copies: how many are caught, and the distance of the others.

    Args:
        embeddings: of each model, [clips, dim].
        scores: the numbers that rank embeddings.
        seeds: of random numbers.
    """
    sources = {name: (shape_of_embeddings(z), scores(z)) for name, z in embeddings.items()}
    print(f"{'manipulation':<28} caught      difference structure  missed (those with a number no lower)")
    for manipulation, strength in MANIPULATIONS:
        caught, missed, harmful, differences, structures = 0, [], [], [0.0], [-1.0]
        for name, z in embeddings.items():
            shape, source = sources[name]
            for seed in range(seeds):
                copy = manipulated(z, manipulation, strength, seed)
                other = shape_of_embeddings(copy)
                difference, structure = difference_of_ranks(shape, other)
                differences.append(difference)
                structures.append(structure)
                if are_nearly_same(shape, other):
                    caught += 1
                    continue
                missed.append(name)
                harmful += [name for measure, value in scores(copy).items() if value >= source[measure]][:1]
        told = f"{', '.join(sorted(set(missed)))} ({len(harmful)}: {', '.join(sorted(set(harmful)))})" if missed else ""
        print(
            f"{manipulation:<22} {strength:<5g} {caught:>4} of {caught + len(missed):<4} {max(differences):9.4f} "
            f"{max(structures):9.3f}  {told}",
            flush=True,
        )


def made_up_answerers(count: int, questions: int, seed: int) -> list[Choices]:
    """Choices of honest models of several families, accuracies and habits, with common hard questions and common
    attractive wrong options.

    Each option has an appeal common to all models, one common to a family, one of the model's own, and the model's
    habit for its position; the right option also has the model's ability less the question's difficulty. The option
    with the most appeal is chosen.
    """
    rng = np.random.default_rng(seed)
    options = rng.choice([2, 3, 4], size=questions, p=[0.2, 0.2, 0.6])
    exists = np.arange(4) < options[:, None]
    right = rng.integers(options)
    shared, difficulty = rng.normal(size=(questions, 4)), rng.normal(size=questions)
    families = [rng.normal(size=(questions, 4)) for _ in range(max(1, count // 6))]
    made = []
    for number in range(count):
        habit = rng.normal(size=4) * rng.choice([0, 0.3, 1])
        appeal = 1.2 * shared + 0.8 * families[number % len(families)] + 0.6 * rng.normal(size=(questions, 4)) + habit
        appeal[np.arange(questions), right] += rng.uniform(-0.5, 3.5) - difficulty
        taken = np.where(exists, appeal, -np.inf).argmax(axis=1)
        made.append(_choices(taken, right, options))
    return made


def _choices(taken: NDArray[np.int64], right: NDArray[np.int64], options: NDArray[np.int64]) -> Choices:
    texts = ("".join(LETTERS[int(place)] for place in places) for places in (taken, right, options - 1))
    return Choices(**dict(zip(("taken", "right", "last"), texts, strict=True)))


def with_others(choices: Choices, share: float, seed: int) -> Choices:
    """Choices with a share of them drawn anew."""
    rng = np.random.default_rng(seed)
    taken = list(choices.taken)
    for place in rng.choice(len(taken), round(share * len(taken)), replace=False):
        taken[place] = LETTERS[int(rng.integers(LETTERS.index(choices.last[place]) + 1))]
    return choices.model_copy(update={"taken": "".join(taken)})


def print_answers(count: int, questions: int, seed: int) -> None:
    """Print how often honest models are called copies by their wrong answers, and copies with changed answers."""
    models = made_up_answerers(count, questions, seed)
    accuracy = [np.mean([a == b for a, b in zip(one.taken, one.right, strict=True)]) for one in models]
    pairs = list(combinations(models, 2))
    kappas = [agreement_of_errors(one, other)[0] for one, other in pairs]
    called = sum(are_nearly_same_choices(one, other) for one, other in pairs)
    print(
        f"{questions} questions, {count} models, accuracy {min(accuracy):.2f} to {max(accuracy):.2f}: {called} of "
        f"{len(pairs)} pairs are called copies; kappa of wrong choices: median {np.median(kappas):.2f}, most "
        f"{max(kappas):.2f}, limit {COPIED}"
    )
    for share in (0.0, 0.01, 0.02, 0.05, 0.1, 0.2):
        copies = [with_others(one, share, place) for place, one in enumerate(models)]
        changed = [(one, copy) for one, copy in zip(models, copies, strict=True)]
        caught = [are_nearly_same_choices(one, copy) for one, copy in changed]
        least = min(agreement_of_errors(one, copy)[0] for one, copy in changed)
        print(
            f"  {share:4.0%} of the answers drawn anew: {sum(caught)} of {count} copies caught; least kappa {least:.2f}"
        )


def _opened(recipe: str, **changes: int) -> Any:
    """The clips of a recipe's preset mini."""
    from audio_compositionality.dataset_builder.rendered import rendered_preset

    return rendered_preset("mini", recipes=[recipe], **changes).configuration(recipe)


def _embedded(
    configuration: Any, names: Sequence[str], seeds: Sequence[int], store: Path, *, all_layers: bool
) -> dict[tuple[str, str], Floats]:
    """Embeddings of clips by weights and layer: all layers of models that have layers, or only the model's own."""
    from audio_compositionality.encoders.base import ModelError
    from audio_compositionality.encoders.loading.registry import load_layers, load_model
    from audio_compositionality.evaluator.run.embeddings import embed_at_layers
    from audio_compositionality.evaluator.run.options import RunOptions

    def loaded(name: str, seed: int) -> list[Any]:
        if all_layers:
            with contextlib.suppress(ModelError):
                return list(load_layers(name, seed=seed))
        return [load_model(name, seed=seed)]

    embeddings = {}
    for name in names:
        for seed in seeds if name.startswith(("untrained:", "shuffled:")) else [0]:
            models = loaded(name, seed)
            stores = embed_at_layers(models, configuration, RunOptions(store=store, progress=False))
            for model, stored in zip(models, stores, strict=True):
                card = model.card
                embeddings[f"{card.id} {card.revision}", f"layer {card.options.layer}"] = stored.load().embeddings
    return embeddings


def _scores(configuration: Any) -> Callable[[Floats], dict[str, float]]:
    """The function that scores embeddings of the clips of A-COAT, by the numbers that rank."""
    from audio_compositionality.tasks.base import Outputs
    from audio_compositionality.tasks.registry import load_task

    task, rows = load_task("a_coat"), list(configuration.rows)

    def scores(z: Floats) -> dict[str, float]:
        restored = RoundedEmbeddings.of([str(clip) for clip in range(len(z))], z).restored()
        measures = task.score(rows, Outputs(clips=restored), {}, "cpu", False).measures
        return {measure.name: float(measures[measure.name] or 0.0) for measure in task.info.recommended}

    return scores


def main() -> None:
    """Run the command named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    of_embeddings = parts.add_parser("embeddings")
    of_embeddings.add_argument("--quadruples", type=int, default=32)
    of_embeddings.add_argument("--seeds", type=int, default=2, help="copies of each manipulation")
    of_pairs = parts.add_parser("pairs")
    of_pairs.add_argument("recipe", help="whose clips of the preset mini are embedded, such as rate_binding")
    for part in (of_embeddings, of_pairs):
        part.add_argument("models", nargs="+", help="as `audio-compositionality embed` takes them")
        part.add_argument("--store", type=Path, required=True, help="where embeddings are kept")
        part.add_argument("--twin-seeds", default="0", help="of untrained: and shuffled: models, such as 0,1,2")
    of_answers = parts.add_parser("answers")
    of_answers.add_argument("--models", type=int, default=48)
    given = parser.parse_args()
    if given.part == "answers":
        for questions in (300, 1_000, 4_000):
            print_answers(given.models, questions, 0)
        return
    seeds = [int(seed) for seed in given.twin_seeds.split(",")]
    of_a_coat = given.part == "embeddings"
    configuration = _opened("a_coat", quadruples=given.quadruples) if of_a_coat else _opened(given.recipe)
    embeddings = _embedded(configuration, given.models, seeds, given.store, all_layers=of_a_coat)
    print_honest({name: shape_of_embeddings(z) for name, z in embeddings.items()})
    if of_a_coat:
        print_copies({" ".join(name): z for name, z in embeddings.items()}, _scores(configuration), given.seeds)


if __name__ == "__main__":
    main()
