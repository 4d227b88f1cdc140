"""Few rows of every recipe: of tones, and of the sounds that a user brings."""

from audio_compositionality.dataset_builder.recipes import list_recipes, load_recipe
from audio_compositionality.dataset_builder.rendered import RenderedData

from ..sounds.made import made_recordings
from .recorded import RATE, WHO, described, instances, named, unconditioned

SMALL = {
    "a_coat": {"quadruples": 6, "quadruple_candidates": 600},
    "a_coat_instances": {"blocks": 3},
    "a_coat_recordings": {"quadruples": 6},
    "a_tre": {"scene_candidates": 600, "train_scenes": 8, "validation_scenes": 4, "test_scenes": 4},
    "audio_text_retrieval": {"clips": 8},
    "binding": {"trials": 6},
    "comp_a_attribute": {"items": 8},
    "comp_a_order": {"items": 8},
    "comp_a_train": {"train_rows": 8, "validation_rows": 4},
    "composed_retrieval": {"items": 6},
    "count_instances": {"ladders": 6},
    "count_instances_questions": {"ladders": 6},
    "factors": {"stars": 2, "crossed_levels": (2, 2, 2, 2)},
    "louder": {"items": 6},
    "negation": {"items": 10},
    "negation_questions": {"items": 10},
    "polybench": {"train_sets": 1, "test_sets": 1},
    "polybench_apart": {"train_sets": 1, "test_sets": 1},
    "polybench_atoms": {"train_sets": 1, "test_sets": 1},
    "rate_binding": {"low_notes": (57,), "high_notes": (75,), "swells": (5, 10)},
    "transforms": {"bases": 10, "untransformed": 4, "transforms": ("gain",)},
    "two_clips": {"comparisons": 4},
    "when": {"groups": 5},
    "zero_shot_audio": {"clips": 16},
}
"""Changes to the preset mini that leave few rows, so that tests are quick."""

SOUNDS = {
    "a_coat_instances": (instances(7), {"blocks": 3, "classes": 3, "context_sources": 2, "duration": 0.75}),
    "a_coat_recordings": (unconditioned([2] * 7), {"quadruples": 6, "duration": 0.75}),
    "audio_text_retrieval": (described(), {}),
    "binding": (instances(4, ("a/1", "a/2", "b/1", "b/2", "c")), {"trials": 8, "duration": 0.75}),
    "comp_a_attribute": (named(WHO), {"items": 6}),
    "comp_a_order": (named(), {"items": 6}),
    "comp_a_train": (named(), {"train_rows": 4, "validation_rows": 2}),
    "composed_retrieval": (unconditioned([2] * 6), {"items": 4}),
    "count_instances": (named(each=2), {"ladders": 6}),
    "count_instances_questions": (named(each=2), {"ladders": 6}),
    "louder": (unconditioned([2] * 4), {"items": 6}),
    "negation": (unconditioned([2] * 3), {"items": 8}),
    "negation_questions": (unconditioned([2] * 3), {"items": 8}),
    "polybench": (made_recordings(28, labels="abcdefg", rate=RATE), SMALL["polybench"]),
    "polybench_apart": (made_recordings(28, labels="abcdefg", rate=RATE), SMALL["polybench"]),
    "polybench_atoms": (made_recordings(28, labels="abcdefg", rate=RATE), SMALL["polybench"]),
    "transforms": (made_recordings(12, rate=RATE), {"bases": 10, "transforms": ("noise",)}),
    "two_clips": (unconditioned([2] * 3), {"comparisons": 3}),
    "when": (made_recordings(12, labels="abcd", rate=RATE), {"groups": 5}),
    "zero_shot_audio": (described(), {}),
}
"""Sounds that suit a recipe, with changes that leave few rows."""

OTHER_SOUNDS = instances(14), {}
"""Sounds for a recipe that takes any and has no entry in `SOUNDS`."""

RECIPES = [*(name for name in list_recipes() if name != "toys" and load_recipe(name).presets), "louder"]

MEMBERS = [*RECIPES, *(f"{name} of sounds" for name in list_recipes() if load_recipe(name).takes_sounds)]
MEMBERS.append("louder of sounds")


def spec_of(member, **changes):
    name, _, of_sounds = member.partition(" of ")
    recipe = load_recipe(name)
    if of_sounds:
        sounds, few = SOUNDS.get(name, OTHER_SOUNDS)
        rate = {"sample_rate": RATE} if "sample_rate" in type(recipe.presets["mini"]).model_fields else {}
        return recipe, recipe.of_sounds(recipe.presets["mini"], sounds, {**rate, **few, **changes})
    return recipe, recipe.presets["mini"].changed(**{**SMALL.get(name, {}), **changes})


def opened(member, **changes):
    recipe, spec = spec_of(member, **changes)
    return RenderedData("small", {recipe.name: spec}).configuration(recipe.name)
