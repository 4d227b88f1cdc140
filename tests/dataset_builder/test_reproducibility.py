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
    "a_coat": (
        1,
        "5c9b62573c04ff841d6531e403354ed1d9a8b65b78612e7056d7d7437c3a8fdd",
        "3b7c2b83287a09baf6a1ba63ae3a9c3348d48eec48da28f867230a8d5e77d86e",
    ),
    "a_coat_instances": (
        1,
        "290af0bbf6831dce13d815e537f009deecb07b88c981c6c1f93b839cfb48ccbb",
        "50ad07f53422919641b569bbe498356c7864753389dcf0ed44f581588326389c",
    ),
    "a_coat_recordings": (
        1,
        "c150465218fc920a6273e52953b53d7418b2adadfbea88387e240a5484824780",
        "167bdc695d7571bffacba03afb0bfef75693219b2bf76fe4392a38dbf9a96aad",
    ),
    "a_tre": (
        1,
        "34c833a9b4d960ef9bccb84fc7c06f0a6a81e67e52934dbfe5ecfb11a1346e77",
        "d22a67ce9eec19fd606a4ea244730fa3485545bde6460d14b906d28e52bce4ea",
    ),
    "audio_text_retrieval": (
        1,
        "f4122b24f3832d796f215f20a4f702304029f8acd03952e171cd5d6dc41b9821",
        "eb409ff2832cc1030e61cfb667bc7425c99a5b3415536917b92acc52940fe65a",
    ),
    "binding": (
        1,
        "4cabc5113374e5f0eb1499f603a53c6faf2a45b4d8234462a917716303124b6b",
        "4d90df5341bd3f1b3ef76a8cea6fce5b6aaf9a85c467397362175eb8db6eab36",
    ),
    "comp_a_attribute": (
        3,
        "81277c0bab97d7e8358415e342f73190f2fe8c2a3cad790ff585e6746c7a5bd5",
        "eac02475c6fbbf29478c7989d51b9841d16a21f92c1604b5d3b7b3d75b8901d5",
    ),
    "comp_a_order": (
        3,
        "c75d9669cb8a9e53155f2a221f749d55c37559f0bec788e14b6e6117bc552bff",
        "c83b7fbf673f9991ab834ba62bf54d07140ea9fcf3c626d7e70347c0cebe3370",
    ),
    "comp_a_train": (
        3,
        "448240dfd5a5ac350120e5c0ecd5d64db2083d23b49557bde645b9d2be89a83c",
        "3c5aef6cb19ddaf67ab7d88b165681fe91e41f1f5d71e90226e455998f2b504b",
    ),
    "factors": (
        1,
        "13e92ecdb3de5164cefa36e04d56b49e45c53b914cdf2d875542c38977014290",
        "76359338739d6214060de7ec121eb1eef7d55819cb3b3e66447ab571058e6778",
    ),
    "polybench": (
        3,
        "54ab945f1b4b2acc6321b8d06c712520eade9424ef3d32c68f7c59b60ca64265",
        "01dd171eb7fc1a2225ce350c904519d8d3d2c930d570629c217a26267f661957",
    ),
    "polybench_apart": (
        2,
        "49ec7aff1c35a1089f054fe26bb18dd6988c360c826fa04015f32f1a839803dd",
        "fbcedc62229b35ff287b98308e32d673d8f9b16a19b6e700a98aae27af80708f",
    ),
    "polybench_atoms": (
        2,
        "a8c2906e81f15d45ca29479a837ced2f77c46bd7bc3ce59ca0f4f904804bab2d",
        "d12f194a0fbe53ade21ba2283447ff03119515de3f6d6f0280c80e635cd6cac4",
    ),
    "rate_binding": (
        1,
        "d84ea6733184788bc4258cc873d2187e1eaba1b227e7bba82f549d2e6cee01fb",
        "b7cc7a61b82b1db58160ce0dc3d8196711323bd6536eb7c397dcc7ef8a744ec0",
    ),
    "transforms": (
        2,
        "e342ceba5bda359cea681d52d8bb2a802da9300857e4766a5a117d8478b77c83",
        "121bd89a21e5e68b4416f685fe340431df6bc294c88fa001dca541ca010c76a5",
    ),
    "zero_shot_audio": (
        1,
        "8ffd19de66f5d95312174cd902c62784c8490eda1ea4f93e4f29f32614d17967",
        "1c1559ac8e387465e3984b02a4cf4cdc0a11b182b906ca364d4f2a8c233a26c3",
    ),
}


SLOW = {"comp_a_train", "transforms"}
"""Recipes whose preset takes long to draw."""


def test_every_recipe_is_frozen():
    assert set(FROZEN) == set(list_recipes())


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe", [pytest.param(recipe, marks=pytest.mark.slow if recipe in SLOW else ()) for recipe in FROZEN]
)
def test_the_mini_preset_keeps_its_rows_and_samples(recipe):
    configuration = open_data("mini").configuration(recipe)
    # The other columns follow from these; their last bits may be those of a processor.
    columns = ("id", "split", "metadata", "onsets", "transform", "fold", "labels", "instances", "instances_b")
    columns += ("captions", "parts", "negatives", "events", "question", "options", "answer")
    rows = [[row[column] for column in columns if column in row] for row in configuration.rows]
    digest = hashlib.sha256(json.dumps(rows).encode())
    ids = configuration.clip_ids
    for place in range(0, len(ids), 64):
        for clip in configuration.clips(range(place, min(place + 4, len(ids)))):
            digest.update(f"{clip.id} {clip.sample_rate}".encode())
            digest.update(clip.waveform.tobytes())
    stated = (load_recipe(recipe).version, configuration.fingerprint, digest.hexdigest())
    assert stated == FROZEN[recipe]
