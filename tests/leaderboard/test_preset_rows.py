"""The digests of the presets' rows that the board knows without drawing them."""

import pytest

from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.support.files import packaged_yaml
from audio_compositionality.tasks.registry import list_tasks

KNOWN = packaged_yaml("audio_compositionality.leaderboard", "preset_rows.yaml")


def of_tasks(preset):
    configurations = {info.recipe: rendered_preset(preset) for info in (task.info for task in list_tasks())}
    made = ((recipe, data) for recipe, data in configurations.items() if recipe in data.recipes)
    return {configuration.fingerprint: configuration for recipe, data in made
            for configuration in [data.configuration(recipe)]}  # fmt: skip


@pytest.mark.parametrize(
    "preset", [pytest.param("mini", marks=pytest.mark.slow), pytest.param("full", marks=pytest.mark.long)]
)
def test_they_are_those_of_the_rows(preset):
    """A changed recipe has another fingerprint, and its rows are drawn until its line is written anew."""
    drawn = of_tasks(preset)
    assert drawn.keys() & KNOWN.keys()
    stale = [configuration.recipe for key, configuration in drawn.items()
             if key in KNOWN and KNOWN[key] != configuration.rows_digest]  # fmt: skip
    assert not stale, f"change the digests of {stale} in leaderboard/preset_rows.yaml"
