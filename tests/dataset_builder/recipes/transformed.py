"""What the tests of the recipe share: few short scenes, and what is rendered of settings."""

import numpy as np

from audio_compositionality.dataset_builder.recipes.transforms import RECIPE
from audio_compositionality.dataset_builder.scenes.bases import TransformSpec
from audio_compositionality.dataset_builder.sounds.tones import default_voices

SMALL = TransformSpec(
    bases=10,
    untransformed=0,
    num_classes=3,
    voices=default_voices()[:3],
    rate_range=(1, 3),
    duration=2,
    sample_rate=16_000,
)


def by_id(settings):
    rendering = RECIPE.render(settings)
    return {row["id"]: (row, *rendering.clips(index)) for index, row in enumerate(rendering.rows)}


def of_recordings(recordings, **changes):
    return TransformSpec(sounds=recordings, **changes)


def level(clip):
    return np.sqrt(np.mean(clip.astype(float) ** 2))
