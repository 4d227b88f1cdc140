"""What a level meter reaches on the sound of the four axes, and where it has to be at chance."""

from __future__ import annotations

from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import to_waveform
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.tasks.base import Outputs, Scores
from audio_compositionality.tasks.registry import load_task
from audio_compositionality.tasks.shapes.designs import METERS

from .axes_data import BOTH, AxesPlan, heading
from .families import Check, at_least, near

LEVEL_METER = METERS[0]

READS = {
    "informativeness": ("rate_informativeness", "amplitude_informativeness"),
    "disentanglement": ("rate_over_timbre_unseen",),
}
"""Numbers that how loud a clip is, and how that changes, is enough for."""

CANNOT_READ = "rate_binding"


def read_from_levels(plan: AxesPlan, seed: int) -> list[Check]:
    """A level meter on rendered sound: it reads rate and amplitude, also from timbres that its probe has never heard;
    of two sources it cannot say which has which rate."""
    single = load_recipe("factors")
    settings = single.presets["mini"].changed(**{"seed": seed, **plan.factors})
    rendering = single.render(settings)
    places = [place for place, row in enumerate(rendering.rows) if row["kind"] == "crossed"]
    rows, meter = [rendering.rows[place] for place in places], _embedded(LEVEL_METER, rendering, places)
    together = load_recipe(CANNOT_READ)
    exchanged = together.render(together.presets["mini"].changed(seed=seed))
    everything = range(len(exchanged.rows))
    return [
        *(
            at_least(LEVEL_METER, heading(task, name), 0.9, value)
            for task, names in READS.items()
            for scores in (_scored(task, rows, meter),)
            for name in names
            if (value := scores.measures[name]) is not None
        ),
        *(_at_chance(name, exchanged.rows, _embedded(name, exchanged, everything)) for name in METERS),
    ]


def _embedded(name: str, rendering: Any, places: Any) -> np.ndarray:
    model: Any = load_model(name)
    return np.concatenate(
        [model.embed(to_waveform(np.stack(rendering.clips(place))), rendering.sample_rate) for place in places]
    )


def _scored(task: str, rows: Any, embeddings: np.ndarray) -> Scores:
    scored = load_task(task)
    settings = scored.settings(rows, {"probes": list(BOTH)})
    return scored.score(rows, Outputs(clips=embeddings), settings, "cpu", False)


def _at_chance(name: str, rows: Any, embeddings: np.ndarray) -> Check:
    """A score of 0, give or take three standard errors over the contexts of clips."""
    info = load_task(CANNOT_READ).info
    scores = _scored(CANNOT_READ, rows, embeddings)
    column = scores.columns[str(info.judge.column)]
    clusters = load_task(CANNOT_READ).samples(rows).clusters
    means = np.array([column[clusters == cluster].mean() for cluster in np.unique(clusters)])
    error = float(means.std(ddof=1) / np.sqrt(len(means)))
    return near(name, heading(CANNOT_READ, info.ranks_by), 0, float(means.mean()), max(3 * error, 1e-9))
