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
        "4607ed411998a24be9245c585d55f7ad0ecd6e6860cf7b83d53047de042150fe",
        "50ad07f53422919641b569bbe498356c7864753389dcf0ed44f581588326389c",
    ),
    "a_coat_recordings": (
        1,
        "ced2c3888e1ee3afeb59216ff761916dad0a8c4616569876fb9a842d820ab226",
        "167bdc695d7571bffacba03afb0bfef75693219b2bf76fe4392a38dbf9a96aad",
    ),
    "a_tre": (
        1,
        "34c833a9b4d960ef9bccb84fc7c06f0a6a81e67e52934dbfe5ecfb11a1346e77",
        "d22a67ce9eec19fd606a4ea244730fa3485545bde6460d14b906d28e52bce4ea",
    ),
    "audio_text_retrieval": (
        1,
        "70714ab181523a3eda888b39ecfad8da90944b8bcd7fb36b22cf47a801bae171",
        "eb409ff2832cc1030e61cfb667bc7425c99a5b3415536917b92acc52940fe65a",
    ),
    "binding": (
        1,
        "14ed582a52be8912a36c075e225745e6ec90f65272fc25e936969ea356e31750",
        "4d90df5341bd3f1b3ef76a8cea6fce5b6aaf9a85c467397362175eb8db6eab36",
    ),
    "comp_a_attribute": (
        3,
        "44f9e2d350279899cecf4058561d49232c20ca66ac6d8215ac80a61d450bfe0c",
        "eac02475c6fbbf29478c7989d51b9841d16a21f92c1604b5d3b7b3d75b8901d5",
    ),
    "comp_a_order": (
        3,
        "f4cb852963cdef9d558d4307818dbcd174af40f7945dbfda5b1bbd61cd7c55bc",
        "c83b7fbf673f9991ab834ba62bf54d07140ea9fcf3c626d7e70347c0cebe3370",
    ),
    "comp_a_train": (
        3,
        "c0d89b1843a637a3ee8bfdd2121f81bcd0b929d18b069f48f9f59fbdd17aa255",
        "3c5aef6cb19ddaf67ab7d88b165681fe91e41f1f5d71e90226e455998f2b504b",
    ),
    "factors": (
        1,
        "13e92ecdb3de5164cefa36e04d56b49e45c53b914cdf2d875542c38977014290",
        "76359338739d6214060de7ec121eb1eef7d55819cb3b3e66447ab571058e6778",
    ),
    "polybench": (
        3,
        "cb1bd36aa9a70b3b7ceba562eb99e8be1baf8032c8134cf2fcda993ac10c7871",
        "01dd171eb7fc1a2225ce350c904519d8d3d2c930d570629c217a26267f661957",
    ),
    "polybench_apart": (
        2,
        "d7c4ae93de2f382e9dab5707bf6d508b7701eb3396bf63a28744bffa0378fb96",
        "fbcedc62229b35ff287b98308e32d673d8f9b16a19b6e700a98aae27af80708f",
    ),
    "polybench_atoms": (
        2,
        "514810471f00d38959b69ead044fb09c7fc2db3adf174db105194040c1b8e564",
        "d12f194a0fbe53ade21ba2283447ff03119515de3f6d6f0280c80e635cd6cac4",
    ),
    "rate_binding": (
        1,
        "d84ea6733184788bc4258cc873d2187e1eaba1b227e7bba82f549d2e6cee01fb",
        "b7cc7a61b82b1db58160ce0dc3d8196711323bd6536eb7c397dcc7ef8a744ec0",
    ),
    "transforms": (
        2,
        "9f546d8bcf674e5825026f356d66e8c1a30b7f8d3b2d80f1a6ea7c9f041ca520",
        "121bd89a21e5e68b4416f685fe340431df6bc294c88fa001dca541ca010c76a5",
    ),
    "zero_shot_audio": (
        1,
        "72276b08c96e7609a1159d0aea73405751438bce92ed149848269a782c6786de",
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
