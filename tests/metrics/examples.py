"""Arguments of each metric for its tests, as small as they show something."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from audio_compositionality.metrics import composed_retrieval as composed
from audio_compositionality.metrics import negation as denied
from audio_compositionality.metrics.answer_words import LETTERS
from audio_compositionality.metrics.count_instances import HELD
from audio_compositionality.metrics.polybench import POLARITIES


def a_coat() -> dict[str, Any]:
    """Return arguments of `a_coat`: a partly additive encoder of 40 quadruples in 8 dimensions."""
    rng = np.random.default_rng(0)
    size, level = rng.integers(1, 4, 40), rng.uniform(-20, 0, 40)
    energy, t = rng.normal(size=8), rng.normal(size=(40, 8))
    step = t + 0.5 * size[:, None] * energy
    a, c = rng.normal(size=(2, 40, 8))
    b, d = (x + step + rng.normal(0, 0.5, (40, 8)) for x in (a, c))
    arrays = {"a": a, "b": b, "c": c, "d": d, "t_size": size, "t_level": level}
    return {name: x.round(3) for name, x in arrays.items()}


def a_coat_instances() -> dict[str, Any]:
    """Return arguments of `a_coat_instances`: an encoder that hears classes, 12 blocks of 4 in 6 dimensions."""
    rng = np.random.default_rng(0)
    classes, voices = rng.normal(size=(12, 6)), rng.normal(size=(24, 6))
    labels = np.stack([rng.choice(12, 4, replace=False) for _ in range(12)])
    a, c = rng.normal(size=(2, 12, 6))
    alone = [classes[labels] + voices[side::2, None] + rng.normal(0, 0.4, (12, 4, 6)) for side in (0, 1)]
    b, d = (0.7 * context[:, None] + 0.6 * source for context, source in zip((a, c), alone, strict=True))
    arrays = {"a": a, "b": b + rng.normal(0, 0.2, b.shape), "c": c, "d": d + rng.normal(0, 0.2, d.shape)}
    arrays |= {"alone_b": alone[0], "alone_d": alone[1]}
    return {name: x.round(3) for name, x in arrays.items()} | {
        "labels": [[f"class {label}" for label in row] for row in labels],
        "conditions": [[f"voice {2 * block}", f"voice {2 * block + 1}"] for block in range(12)],
    }


def a_tre() -> dict[str, Any]:
    """Return arguments of `a_tre`: a partly additive encoder of 200 scenes of one to three sources in 8 dimensions."""
    rng = np.random.default_rng(0)
    labels = {"timbre_label": ("bell", "brass", "reed"), "pitch_label": ("low", "high"), "rate_label": ("slow", "fast")}
    labels["amplitude_label"] = ("soft", "loud")
    vectors = {(name, label): rng.normal(size=8) for name, choices in labels.items() for label in choices}
    mean = rng.normal(size=8)
    embeddings, scenes = [], []
    splits = ["train"] * 140 + ["validation"] * 30 + ["test"] * 30
    for _ in splits:
        sources = [{name: str(rng.choice(labels[name])) for name in labels} for _ in range(rng.integers(1, 4))]
        total = sum(vectors[pair] for source in sources for pair in source.items())
        embeddings.append((mean + total + rng.normal(0, 0.5, 8)).round(3))
        scenes.append(sources)
    return {"embeddings": np.array(embeddings), "scenes": scenes, "splits": splits}


def a_tre_held_out() -> dict[str, Any]:
    """Return arguments of `a_tre_held_out`: 200 different scenes of one to three sources in 8 dimensions, of an encoder
    that is additive in classes, except for timbre and pitch, with one vector per combination."""
    rng = np.random.default_rng(0)
    labels: dict[str, Sequence[str]] = {"timbre_label": ("bell", "brass", "reed"), "rate_label": ("slow", "fast")}
    labels |= {"pitch_label": ("low", "mid", "high"), "amplitude_label": ("soft", "loud")}
    vectors = {(name, label): rng.normal(size=8) for name, choices in labels.items() for label in choices}
    combined = {pair: rng.normal(size=8) for pair in itertools.product(labels["timbre_label"], labels["pitch_label"])}
    mean = rng.normal(size=8)
    embeddings: list[np.ndarray] = []
    scenes: list[list[dict[str, str]]] = []
    while len(scenes) < 200:
        sources = [{name: str(rng.choice(labels[name])) for name in labels} for _ in range(rng.integers(1, 4))]
        sources.sort(key=lambda source: list(source.values()))
        if sources in scenes:
            continue
        parts = [vectors[pair] for source in sources for pair in source.items()]
        parts += [combined[source["timbre_label"], source["pitch_label"]] for source in sources]
        embeddings.append((mean + np.sum(parts, axis=0) + rng.normal(0, 0.5, 8)).round(3))
        scenes.append(sources)
    return {"embeddings": np.array(embeddings), "scenes": scenes}


def audio_questions() -> dict[str, Any]:
    """Return arguments of `audio_questions`: 16 questions in every rotation of their options, two in three right."""
    rng = np.random.default_rng(0)
    texts = {"source": ["bell", "brass", "organ"], "mood": ["sad", "happy", "calm", "tense"]}
    rows: dict[str, list[Any]] = {
        name: [] for name in ("predictions", "references", "options", "kinds", "ids", "groups")
    }
    for number in range(8):
        for kind, options in texts.items():
            answer = options[number % len(options)]
            for turn in range(len(options)):
                shown = options[turn:] + options[:turn]
                place = shown.index(answer) if rng.random() < 2 / 3 else int(rng.integers(len(shown)))
                rows["predictions"].append(
                    f"{LETTERS[place]}. {shown[place]}" if rng.random() < 0.9 else "I cannot say."
                )
                rows["references"].append(answer)
                rows["options"].append(shown)
                rows["kinds"].append(kind)
                rows["ids"].append(f"{kind} {number}")
                rows["groups"].append(f"clip {number}")
    return rows


def audio_text_retrieval() -> dict[str, Any]:
    """Return arguments of `audio_text_retrieval`: a model that finds many of 30 captions of 12 clips, 6 dimensions."""
    rng = np.random.default_rng(0)
    clip = np.concatenate([np.arange(12), np.arange(12), np.arange(6)])
    audio = rng.normal(size=(12, 6))
    text = audio[clip] + 0.8 * rng.normal(size=(30, 6))
    return {"audio": audio.round(3), "text": text.round(3), "clip_of_text": clip}


def binding() -> dict[str, Any]:
    """Return arguments of `binding`: an encoder that recognises some bindings, in 40 trials of 8 dimensions."""
    rng = np.random.default_rng(0)
    same, bound = rng.normal(size=(2, 40, 8))
    weights = {"x1": 1, "y1": -1, "x2": 1, "y2": -1, "x3": 0.3, "y3": -0.3}
    return {name: (same + weight * bound + rng.normal(size=(40, 8))).round(3) for name, weight in weights.items()}


def comp_a() -> dict[str, Any]:
    """Return arguments of `comp_a`: a model that is right in most items, 16 pairs and 8 triplets in 6 dimensions."""
    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(24), [3 if number % 3 == 0 else 2 for number in range(24)])
    scene, twin, unheard = rng.normal(size=(24, 6))[item], rng.normal(size=(len(item), 6)), rng.normal(size=(24, 6))
    audio = scene + 0.7 * twin
    text = scene + 0.7 * twin + 0.5 * unheard[item] + 0.7 * rng.normal(size=audio.shape)
    return {"audio": audio.round(3), "text": text.round(3), "item": [f"item {number}" for number in item]}


def composed_retrieval() -> dict[str, Any]:
    """Return arguments of `composed_retrieval`: a model that composes some of 30 queries, in 8 dimensions."""
    rng = np.random.default_rng(0)
    kinds = [composed.KINDS[row % 3] for row in range(30)]
    candidates = [rng.normal(size=(6 if kind == "without" else 8, 8)).round(3) for kind in kinds]
    target = rng.integers(6, size=30)
    source, noise = rng.normal(size=(2, 30, 8))
    change = np.stack([x[place] for x, place in zip(candidates, target, strict=True)]) - source + noise
    arrays = {"source": source.round(3), "change": change.round(3), "target": target}
    return {**arrays, "candidates": [x.tolist() for x in candidates], "kinds": kinds}


def count_instances() -> dict[str, Any]:
    """Return arguments of `count_instances`: a noisy encoder of 24 ladders of 4 clips and captions."""
    rng = np.random.default_rng(0)
    counts, ladders = np.tile([2, 3, 4, 5], 24), np.repeat(np.arange(24), 4)
    words = rng.normal(size=(6, 6))[counts]
    return {
        "embeddings": (words + rng.normal(size=(96, 6))).round(3),
        "texts": (words + rng.normal(0, 0.2, (96, 6))).round(3),
        "counts": counts,
        "ladders": [f"ladder-{ladder}" for ladder in ladders],
        "held": [list(HELD)[ladder % 4] for ladder in ladders],
    }


def disentanglement() -> dict[str, Any]:
    """Return arguments of `disentanglement`: 48 clips of crossed factors in 8 dimensions, partly entangled."""
    rng = np.random.default_rng(0)
    clips = [(timbre, pitch, rate) for timbre in range(3) for pitch in range(4) for rate in range(4)]
    timbres = rng.normal(size=(3, 8))
    axes = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    z = [timbres[t] + p * axes[0] + r * axes[1] + 0.4 * p * r * axes[2] for t, p, r in clips]
    return {
        "embeddings": (np.array(z) + rng.normal(0, 0.2, (48, 8))).round(3),
        "factors": [{"timbre": ("bell", "horn", "reed")[t], "pitch": 60 + 2 * p, "rate": 2.0**r} for t, p, r in clips],
        "blocks": np.array([4 * t + p for t, p, _ in clips]),
    }


def equivariance() -> dict[str, Any]:
    """Return arguments of `equivariance`: a noisy encoder of 20 contexts, each at four levels of one parameter."""
    rng = np.random.default_rng(0)
    orbits, parameters = np.repeat(np.arange(20), 4), np.tile([0.0, 2.0, 4.0, 6.0], 20)
    context, direction = rng.normal(size=(20, 6)), rng.normal(size=6)
    z = context[orbits] + parameters[:, None] / 4 * direction + rng.normal(0, 0.4, (80, 6))
    names = [f"context-{orbit}" for orbit in orbits]
    return {"embeddings": z.round(3), "orbits": names, "parameters": parameters, "folds": orbits % 5, "blocks": orbits}


def informativeness() -> dict[str, Any]:
    """Return arguments of `informativeness`: a noisy encoder of 60 clips in 20 blocks, and one number of each."""
    rng = np.random.default_rng(0)
    blocks = np.repeat(np.arange(20), 3)
    labels = rng.integers(0, 8, 60) * 1.5
    z = rng.normal(size=(60, 6)) + labels[:, None] * rng.normal(0, 0.3, 6)
    return {"embeddings": z.round(3), "labels": labels, "folds": blocks % 5, "blocks": [f"speaker-{b}" for b in blocks]}


def invariance() -> dict[str, Any]:
    """Return arguments of `invariance`: 20 originals in 8 dimensions, two copies of each, moved by their parameter."""
    rng = np.random.default_rng(0)
    originals = rng.normal(size=(20, 8)) + 1
    owners = np.repeat(np.arange(20), 2)
    parameters = rng.uniform(0, 1, 40)
    copies = originals[owners] + parameters[:, None] * rng.normal(size=(40, 8))
    return {
        "embeddings": np.vstack([originals, copies]).round(3),
        "base": np.concatenate([np.full(20, -1), owners]),
        "parameters": np.concatenate([np.full(20, np.nan), parameters.round(3)]),
        "blocks": np.concatenate([np.arange(20), owners]) // 2,
    }


def negation() -> dict[str, Any]:
    """Return arguments of `negation`: a model that is right in most of 24 items, in 6 dimensions."""
    rng = np.random.default_rng(0)
    item, place = np.arange(48) // 2, np.arange(24)
    scene, twin = rng.normal(size=(24, 6))[item], rng.normal(size=(48, 6))
    audio, text = scene + twin, scene + twin + 0.8 * rng.normal(size=(48, 6))
    names = [f"item {number}" for number in item]
    kinds = [denied.KINDS[number] for number in place % 4]
    negated = np.where(place % 4 == 2, -1, place // 4 % 2).tolist()
    return {"audio": audio.round(3), "text": text.round(3), "item": names, "negated": negated, "kinds": kinds}


def polybench() -> dict[str, Any]:
    """Return arguments of `polybench`: 28 questions in every rotation of their options, two in three right."""
    rng = np.random.default_rng(0)
    texts = {
        "counting": ["1", "2", "3", "4"],
        "duration": ["bell", "brass", "organ"],
        "concurrency": ["Yes", "No"],
        "classification": ["bell", "brass", "organ", "reed"],
        "detection": ["0.0–1.0 s", "2.0–3.0 s", "4.5–5.5 s", "7.0–8.0 s"],
        "counting_together": ["2", "3", "4"],
        "duration_longest": ["bell", "brass", "organ"],
    }
    styles = ("{0}", "{0}. {1}", "({0})", "{1}", "The answer is {1}.", "I cannot determine this.")
    rows: dict[str, list[Any]] = {
        name: []
        for name in (
            "predictions",
            "references",
            "options",
            "tasks",
            "ids",
            "groups",
            "polarity",
            "polyphony",
            "overlap",
        )
    }
    for number, (task, options) in itertools.product(range(4), texts.items()):
        answer, is_alone = options[number % len(options)], bool(number & 2)
        for turn in range(len(options)):
            shown = options[turn:] + options[:turn]
            place = shown.index(answer) if rng.random() < 2 / 3 else int(rng.integers(len(shown)))
            style = styles[min(int(rng.integers(20)) // 4, 4) if rng.random() < 0.95 else 5]
            rows["predictions"].append(style.format(LETTERS[place], shown[place]))
            rows["references"].append(answer)
            rows["options"].append(shown)
            rows["tasks"].append(task)
            rows["ids"].append(f"{task} {number}")
            rows["groups"].append(f"{task}, scene {number // 2}")
            rows["polarity"].append(POLARITIES[is_alone])
            rows["polyphony"].append(2 + number % 2)
            rows["overlap"].append(0.5 * number)
    return rows


def when() -> dict[str, Any]:
    """Return arguments of `when`: 24 clips of three sounds, most answers about right, some of another sound."""
    rng = np.random.default_rng(0)
    rows: dict[str, list[Any]] = {name: [] for name in ("predictions", "onset", "offset", "duration", "spans")}
    for _ in range(24):
        onsets = np.sort(rng.uniform(0.0, 5.0, 3)).round(2)
        spans = [[float(onset), round(float(onset) + float(rng.uniform(0.6, 2.4)), 2)] for onset in onsets]
        asked, said = rng.integers(3), rng.random()
        first, last = spans[asked] if said < 0.7 else spans[rng.integers(3)]
        answer = f"It is heard from {first + 0.1:.1f} to {last:.1f} seconds." if said < 0.9 else "I cannot tell."
        for name, value in zip(rows, (answer, *spans[asked], 8.0, spans), strict=True):
            rows[name].append(value)
    return rows


def zero_shot_audio() -> dict[str, Any]:
    """Return arguments of `zero_shot_audio`: a model that knows 6 classes, 40 clips in 8 dimensions."""
    rng = np.random.default_rng(0)
    text, labels = rng.normal(size=(6, 8)), np.arange(40) % 6
    audio = text[labels] + 1.2 * rng.normal(size=(40, 8))
    return {"audio": audio.round(3), "labels": labels, "text": text.round(3)}
