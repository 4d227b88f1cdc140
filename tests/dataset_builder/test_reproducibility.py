"""Guards reproducibility: the figures here are our own output, frozen.

They say nothing about what is right. A failure means that a change altered the published samples of a recipe: either it
must not, or the recipe's version has to rise and its figures here with it.
"""

import hashlib
import json

import pytest

from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import list_recipes, load_recipe

FROZEN = {
    "a_coat": (1, "5c9b62573c04ff841d6531e403354ed1d9a8b65b", "3b7c2b83287a09baf6a1ba63ae3a9c3348d48eec"),
    "a_coat_instances": (1, "290af0bbf6831dce13d815e537f009deecb07b88", "50ad07f53422919641b569bbe498356c78647533"),
    "a_coat_recordings": (1, "c150465218fc920a6273e52953b53d7418b2adad", "167bdc695d7571bffacba03afb0bfef75693219b"),
    "a_tre": (1, "34c833a9b4d960ef9bccb84fc7c06f0a6a81e67e", "d22a67ce9eec19fd606a4ea244730fa3485545bd"),
    "audio_text_retrieval": (1, "f4122b24f3832d796f215f20a4f702304029f8ac", "eb409ff2832cc1030e61cfb667bc7425c99a5b34"),
    "binding": (1, "4cabc5113374e5f0eb1499f603a53c6faf2a45b4", "4d90df5341bd3f1b3ef76a8cea6fce5b6aaf9a85"),
    "comp_a_attribute": (3, "81277c0bab97d7e8358415e342f73190f2fe8c2a", "eac02475c6fbbf29478c7989d51b9841d16a21f9"),
    "comp_a_order": (3, "c75d9669cb8a9e53155f2a221f749d55c37559f0", "c83b7fbf673f9991ab834ba62bf54d07140ea9fc"),
    "comp_a_train": (3, "448240dfd5a5ac350120e5c0ecd5d64db2083d23", "3c5aef6cb19ddaf67ab7d88b165681fe91e41f1f"),
    "composed_retrieval": (1, "6f72e1e5103acf8baabcac01ba32d11c0c927dac", "5e041d6319c89fb1cd575ab318f634f7fb0b25f0"),
    "count_instances": (1, "7175a17d141bef51aab07dec1696ec4a9b3eda8b", "966d8e837f7130db44570735eb68df4e95a95873"),
    "count_instances_questions": (
        1,
        "fa78a8e2eb38cf85606a08d0a6a3c9e3ec00862d",
        "773f30e8883e3953c8a4b78f53751aa611c5b4a3",
    ),
    "factors": (1, "13e92ecdb3de5164cefa36e04d56b49e45c53b91", "76359338739d6214060de7ec121eb1eef7d55819"),
    "negation": (1, "010937234cec3836bb7c16674a0a9f726ec7a53c", "faeaa88e8cb794a56c7c8782cc6baf449d68de4e"),
    "negation_questions": (1, "ed3bb114fee41acfcc295a3b3d6716970b9fd4e4", "3a4f789a2099777ddbaee097bde8b5240b8938fb"),
    "polybench": (3, "54ab945f1b4b2acc6321b8d06c712520eade9424", "01dd171eb7fc1a2225ce350c904519d8d3d2c930"),
    "polybench_apart": (2, "49ec7aff1c35a1089f054fe26bb18dd6988c360c", "fbcedc62229b35ff287b98308e32d673d8f9b16a"),
    "polybench_atoms": (2, "a8c2906e81f15d45ca29479a837ced2f77c46bd7", "d12f194a0fbe53ade21ba2283447ff03119515de"),
    "rate_binding": (1, "d84ea6733184788bc4258cc873d2187e1eaba1b2", "b7cc7a61b82b1db58160ce0dc3d8196711323bd6"),
    "transforms": (2, "e342ceba5bda359cea681d52d8bb2a802da93008", "121bd89a21e5e68b4416f685fe340431df6bc294"),
    "two_clips": (1, "a6fb7ef1cd518c2f1cd8048a139e8e7781d3c8fa", "48f024e5a7f4d1fff2e88c3a9b6c71c3c558d4a9"),
    "when": (1, "7b5e796f3bed35b728f2de8dba5a6f10f1c18a05", "aec2694cc5575c766190cc1341b6f8a76c3b7b2c"),
    "zero_shot_audio": (1, "8ffd19de66f5d95312174cd902c62784c8490eda", "1c1559ac8e387465e3984b02a4cf4cdc0a11b182"),
}
"""Of each recipe its version, its fingerprint, and the digest of some rows and clips: 40 digits of both."""

SLOW = {"comp_a_train", "transforms"}
"""Recipes whose preset takes long to draw."""


def test_every_recipe_is_frozen():
    assert set(FROZEN) == {name for name in list_recipes() if load_recipe(name).presets}


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe", [pytest.param(recipe, marks=pytest.mark.slow if recipe in SLOW else ()) for recipe in FROZEN]
)
def test_the_mini_preset_keeps_its_rows_and_samples(recipe):
    configuration = open_data("mini").configuration(recipe)
    # The other columns follow from these; their last bits may be those of a processor.
    columns = ("id", "split", "metadata", "onsets", "transform", "fold", "labels", "instances", "instances_b")
    columns += ("captions", "parts", "negatives", "events", "question", "options", "answer")
    columns += ("change", "roles")
    rows = [[row[column] for column in columns if column in row] for row in configuration.rows]
    digest = hashlib.sha256(json.dumps(rows).encode())
    ids = configuration.clip_ids
    for place in range(0, len(ids), 64):
        for clip in configuration.clips(range(place, min(place + 4, len(ids)))):
            digest.update(f"{clip.id} {clip.sample_rate}".encode())
            digest.update(clip.waveform.tobytes())
    stated = (load_recipe(recipe).version, configuration.fingerprint[:40], digest.hexdigest()[:40])
    assert stated == FROZEN[recipe]
