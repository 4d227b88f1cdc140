"""The digest of rows: a recipe that draws otherwise under an unchanged version gets another one."""

import dataclasses
from functools import partial

import numpy as np
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import digest_of_rows
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.dataset_builder.scenes.mixing import DrawnRendering, Event


def louder(one):
    return dataclasses.replace(one, clips=[[dataclasses.replace(e, gain=2.0) for e in clip] for clip in one.clips])


def later(one):
    return dataclasses.replace(one, clips=partial(one.clips.func, *one.clips.args[:-1], [(1,)]))


FEW = {"scene_candidates": 600, "train_scenes": 8, "validation_scenes": 4, "test_scenes": 4}


@pytest.mark.parametrize(("recipe", "change", "settings"), [("negation", louder, {}), ("a_tre", later, FEW)])
def test_another_draw_under_an_unchanged_version_has_another_digest(recipe, change, settings, monkeypatch):
    monkeypatch.setattr(DrawnRendering, "_renderings", {})
    before = rendered_preset("mini", recipes=[recipe], **settings).configuration(recipe)
    digest = before.rows_digest
    kind = type(load_recipe(recipe))
    draw = kind.draw

    def changed(self, spec, sounds):
        for number, one in enumerate(draw(self, spec, sounds)):
            yield change(one) if number == 5 else one

    monkeypatch.setattr(kind, "draw", changed)
    monkeypatch.setattr(DrawnRendering, "_renderings", {})
    after = rendered_preset("mini", recipes=[recipe], **settings).configuration(recipe)
    assert after.fingerprint == before.fingerprint
    assert after.rows_digest != digest


def test_what_decides_the_sound_decides_the_digest():
    def of(plan, row=None):
        return digest_of_rows([row or {"id": "1", "level": 0.1}], [plan])

    event = Event(1, 0, 10)
    every = [
        None,
        [event],
        [[event]],
        *([dataclasses.replace(event, **{name: 3})] for name in ("entry", "start", "gain", "offset")),
        partial(of, 1),
        partial(of, 2),
        partial(of, row=2),
        partial(len, 1),
        np.arange(3),
        np.arange(200.0),
        np.arange(200.0)[::-1],
        object(),
    ]
    assert len(set(map(of, every))) == len(every)
    assert of(object()) == of(object())
    # The last bits of a sum depend on the processor.
    assert of(0.1 + 0.2, {"level": 0.1, "id": "1"}) == of(0.3)
    assert of(0.30001) != of(0.3)


def test_a_built_folder_has_the_digest_of_its_preset(tiny_data, tmp_path):
    data = tiny_data.only(["a_coat"])
    build_dataset(data, tmp_path / "out", progress=False)
    assert open_data(tmp_path / "out").configuration("a_coat").rows_digest == data.configuration("a_coat").rows_digest
