"""Annotations by chance: of any kind, and such as DESED and MAESTRO have."""

import numpy as np

from audio_compositionality.dataset_builder.sounds.annotations import Annotation, LabelledEvent, joined_events

NEAR_MISSES = (-0.5, -0.49, -0.2, -0.1, 0, 0.05, 0.1, 0.2, 0.21, 0.4)


def random_annotation(rng, number, source="random"):
    """Times on a fine grid, a coarse one or none, many near misses, certain or soft, with sources or without."""
    resolution = float(rng.choice([0.0, 0.1, 1.0, 0.037]))
    duration = float(rng.choice([10.0, 25.0, 9.96, 4.3, 12.502]))
    grid = float(rng.choice([0.001, 0.01, 0.05, 0.1, 0.5, 1.0]))
    soft, sources = rng.random() < 0.3, rng.random() < 0.4
    labels = [f"label {letter}" for letter in "abcdefgh"][: int(rng.integers(1, 9))]
    events = []
    for _ in range(int(rng.integers(0, 9))):
        onset = round(rng.uniform(0, duration) / grid) * grid
        if rng.random() < 0.3 and events:
            onset = max(0.0, events[-1].offset + float(rng.choice(NEAR_MISSES)))
        offset = min(onset + round(rng.exponential(1.5) / grid) * grid, duration)
        if onset < offset:
            source_of = str(rng.integers(3)) if sources else None
            confidence = float(round(rng.random(), 1)) if soft else None
            events.append(LabelledEvent(float(onset), float(offset), str(rng.choice(labels)), source_of, confidence))
    return Annotation(f"r{number:05d}", duration, tuple(events), resolution, source)


def random_annotations(count, seed=0, source="random"):
    return [random_annotation(np.random.default_rng([seed, number]), number, source) for number in range(count)]


# Share of clips, events a clip, seconds an event; guessed, such that half of the clips have one class.
DOMESTIC = {
    "Speech": (0.40, 3, 1.5),
    "Dishes": (0.18, 3, 0.6),
    "Alarm bell ringing": (0.13, 2, 3.0),
    "Cat": (0.10, 2, 1.5),
    "Dog": (0.12, 3, 0.9),
    "Running water": (0.12, 1, 6.0),
    "Blender": (0.07, 1, 5.0),
    "Electric shaver toothbrush": (0.06, 1, 8.0),
    "Vacuum cleaner": (0.07, 1, 9.0),
    "Frying": (0.08, 1, 9.0),
}
TOGETHER = (("Frying", "Dishes"), ("Frying", "Speech"), ("Running water", "Dishes"), ("Cat", "Speech"))


def domestic(count, seed=0, source="desed-like"):
    """Clips of 10 s with ten classes, most with one or two, some of which come together and last throughout."""
    annotations = []
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        size = int(rng.choice([1, 2, 3, 4], p=[0.5, 0.41, 0.08, 0.01]))
        shares = np.array([share for share, _, _ in DOMESTIC.values()])
        names = rng.choice(list(DOMESTIC), size=size, replace=False, p=shares / shares.sum()).tolist()
        for pair in TOGETHER:
            if size > 1 and pair[0] in names and rng.random() < 0.5:
                names = [pair[0], pair[1], *[name for name in names if name not in pair]][:size]
        duration = 10.0 if rng.random() < 0.9 else round(float(rng.uniform(9, 10)), 3)
        events = [event for name in names for event in _events_of(rng, name, duration)]
        annotations.append(Annotation(f"Y{number:05d}", duration, tuple(events), 0.0, source))
    return annotations


def _events_of(rng, name, duration):
    _, count, seconds = DOMESTIC[name]
    events, time = [], float(rng.uniform(0, 3 if seconds > 4 else 6))
    if seconds > 4 and rng.random() < 0.6:
        time = 0.0
    for _ in range(int(rng.integers(1, count + 1))):
        length = max(0.25, float(rng.normal(seconds, seconds / 2)))
        onset, offset = round(time, 3), round(min(time + length, duration), 3)
        if onset < offset:
            events.append(LabelledEvent(onset, offset, name))
        time += length + float(rng.exponential(0.8)) + 0.15
    return events


SCENES = {
    "cafe": ("people talking", "cutlery and dishes", "coffee machine", "furniture dragging", "cash register"),
    "street": ("car", "footsteps", "people talking", "large vehicle", "birds singing"),
    "station": ("metro approaching", "people talking", "footsteps", "announcement", "door opens"),
    "park": ("birds singing", "wind blowing", "footsteps", "children voices", "people talking"),
}


def streets(count, seed=0, source="maestro-like"):
    """Recordings of 3 to 5 minutes, each second of each class on a grid of a second, cut into 25 s by the caller."""
    annotations = []
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        scene = list(SCENES)[number % len(SCENES)]
        seconds, events = int(rng.integers(180, 300)), []
        for place, label in enumerate(SCENES[scene]):
            leaving, coming = 0.04 + 0.09 * place, 0.10 / (1 + place)
            state = rng.random() < 0.5
            for second in range(seconds):
                state = rng.random() >= leaving if state else rng.random() < coming
                if state:
                    events.append(LabelledEvent(float(second), second + 1.0, label))
        annotations.append(
            Annotation(f"{scene}_{number:02d}", float(seconds), tuple(joined_events(events)), 1.0, source)
        )
    return annotations
