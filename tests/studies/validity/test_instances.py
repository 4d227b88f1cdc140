"""Constructed encoders across instances: their parts by hand, what must hold on few rows, and scores that are wrong."""

import math

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.sounds.entries import related
from audio_compositionality.metrics import a_coat_instances as blocks_module
from audio_compositionality.metrics import a_tre_held_out as held_out_module
from audio_compositionality.metrics import binding as binding_module
from studies.validity import instances
from studies.validity import instances_encoders as make
from studies.validity.instances_encoders import (
    BLOCKS,
    CLASSES,
    CONDITIONS,
    ENGINES,
    LABELS,
    SMALL,
    ImaginedRecordings,
    InstancesMaterial,
)

PARTS = {
    "oracle": instances.perfect,
    "deaf": instances.deaf,
    "calls": instances.calls,
    "random": instances.random,
    "linear": instances.linear,
    "space": instances.moved_in_space,
    "bound": instances.binding_theory,
    "held out": instances.held_out_theory,
    "noise": lambda data: instances.turn_noise(data, False)[1],
    "strength": lambda data: instances.turn_strength(data, False)[1],
    "masking": lambda data: instances.turn_masking(data, False)[1],
    "nuisance": lambda data: instances.turn_common_nuisance(data, False)[1],
    "binding": lambda data: instances.turn_binding(data, False)[1],
    "by heart": lambda data: instances.turn_heart(data, False)[1],
}
"""The checks of each part."""


@pytest.fixture(autouse=True, scope="module")
def _quick(one_thread):
    """Small fits are slower in several threads."""


@pytest.fixture(scope="module")
def data():
    """Rows of the quick plan; what is rendered is rendered once."""
    material = InstancesMaterial(SMALL, 0)
    rendered = material.downsampled()
    material.downsampled = lambda: rendered
    return material


def failures(name, data):
    return [check for check in PARTS[name](data) if check.claimed and not check.holds]


METRICS = (
    (blocks_module, "a_coat_instances"),
    (binding_module, "binding"),
    (held_out_module, "a_tre_held_out"),
)


def change(monkeypatch, to):
    """Make all metrics return other numbers, and lists of such, but for chances and counts."""

    def changed(value, name=""):
        if name.endswith("chance") or name in ("n", "classes", "n_train", "sets"):
            return value
        if isinstance(value, list):
            return [changed(item) for item in value]
        if isinstance(value, dict):
            return {key: changed(item, key) for key, item in value.items()}
        return to(value) if value is None or isinstance(value, float) else value

    def replaced(true):
        return lambda *args, **kwargs: changed(true(*args, **kwargs))

    for module, function in METRICS:
        monkeypatch.setattr(module, function, replaced(getattr(module, function)))


def other_classes(true, a, b, c, d, alone_b, alone_d, *names, **options):
    """As if D had its candidates in another order."""
    return true(a, b, c, np.roll(d, 1, axis=1), alone_b, alone_d, *names, **options)


def ties_won(true, *args, **options):
    """As if the first of tied ones were right."""
    faint = np.random.default_rng(0).standard_normal(np.shape(args[1])[-1])
    b, d = (x + 1e-6 * np.arange(x.shape[1])[:, None] * faint for x in (args[1], args[3]))
    return true(args[0], b, args[2], d, *args[4:], **options)


def about_the_origin(true, *args, **options):
    """As if embeddings were brought to length 1."""
    unit = [x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-9) for x in args[:6]]
    return true(*unit, *args[6:], **options)


def scenes_for_sources(true, a, b, c, d, alone_b, alone_d, *names, **options):
    """As if sources alone were not heard: scenes stand for them."""
    return true(a, b, c, d, b, d, *names, **options)


def part_is_scene(true, *args, **options):
    result = true(*args, **options)
    pairs = {"part_top1": "top1", "part_pairwise": "pairwise"}
    scores = {"scores_part_top1": "scores", "scores_part_pairwise": "scores_pairwise"}
    return result | {name: result[taken] for name, taken in (pairs | scores).items()}


def fits_nothing(true, *args, **options):
    result = true(*args, **options)
    return result | {name: result[name.removeprefix("fitted_")] for name in result if name.startswith("fitted_")}


def plus(amount, *names):
    def to(true, *args, **options):
        result = true(*args, **options)
        return result | {name: result[name] + amount for name in names}

    return to


def other_sign(true, x1, y1, x2, y2, *across, **options):
    return true(x1, y1, y2, x2, *across, **options)


def no_other_conditions(true, x1, y1, x2, y2, *across, **options):
    """As if X3 and Y3 were X2 and Y2."""
    return true(x1, y1, x2, y2, x2, y2, **options)


def nothing_held_out(true, *args, **options):
    result = true(*args, **options)
    same = {"held_out": result["random"], "gap": 0.0, "gap_single": 0.0, "kept": 1.0, "ridge_gap": 0.0}
    return result | {"by_pair": [numbers | same for numbers in result["by_pair"]]} | same


def moved_by_shift(true, embeddings, *args, **options):
    return true(np.asarray(embeddings) + 1, *args, **options)


WRONG = {
    "other classes": (blocks_module, ("oracle", "noise", "strength", "masking"), other_classes),
    "ties won": (blocks_module, ("deaf",), ties_won),
    "about the origin": (blocks_module, ("space", "strength", "linear"), about_the_origin),
    "scenes for sources": (blocks_module, ("masking",), scenes_for_sources),
    "part is scene": (blocks_module, ("masking",), part_is_scene),
    "fits nothing": (blocks_module, ("nuisance",), fits_nothing),
    "a little above chance": (blocks_module, ("random", "deaf"), plus(0.04, "top1", "pairwise")),
    "part and alone apart": (blocks_module, ("linear",), plus(1e-4, "part_top1", "part_pairwise")),
    "a conflict won": (blocks_module, ("oracle", "strength"), plus(0.01, "conflict")),
    "a null missed": (blocks_module, ("oracle", "strength"), plus(0.01, "step_null")),
    "other sign": (binding_module, ("bound", "binding"), other_sign),
    "no other conditions": (binding_module, ("bound", "binding"), no_other_conditions),
    "nothing held out": (held_out_module, ("by heart",), nothing_held_out),
    "a gap of noise": (held_out_module, ("held out",), plus(0.02, "gap")),
    "moved by a shift": (held_out_module, ("held out",), moved_by_shift),
}
"""Metrics that are wrong, and the parts that have to see it."""


class TestMaterial:
    def test_every_label_is_recorded_under_every_condition_and_cannot_be_heard(self):
        recordings = ImaginedRecordings()
        assert len({entry.id for entry in recordings.entries}) == LABELS * CONDITIONS
        assert len({entry.sha256 for entry in recordings.entries}) == LABELS * CONDITIONS
        first = recordings.entries[0]
        kin = {entry.condition for entry in recordings.entries if related(entry.condition, first.condition)}
        assert len(kin) == CONDITIONS // ENGINES
        with pytest.raises(DatasetError, match="has no sound"):
            recordings.waveform(0)


class TestEncoders:
    def test_the_oracle_adds_label_and_condition_of_what_is_added(self, data):
        clips = data.clips[BLOCKS]
        z = make.oracle(clips, 0)
        step, alone = z[2] - z[0], z[2 + 2 * CLASSES]
        assert step == pytest.approx(alone)
        assert step[:LABELS] == pytest.approx(np.eye(LABELS)[clips.added[2]])
        assert np.linalg.norm(step) == pytest.approx(math.hypot(1, make.STRONG))
        assert not make.without_labels(clips, 0)[:, :LABELS].any()


class TestFormulas:
    @pytest.mark.parametrize(("first", "second", "sd"), [(1, 1, 0.3), (1, 0.4, 0.2), (0.5, 0.5, 0.2), (1, 0, 0.2)])
    def test_pairwise_of_the_noisy_oracle_is_that_of_simulated_labels(self, first, second, sd):
        rng = np.random.default_rng(0)
        u = np.eye(make.DIM)[0] - np.eye(make.DIM)[1]
        n = math.sqrt(2) * sd * rng.standard_normal((2, 20_000, make.DIM))
        positive = np.mean(((first * u + n[0]) * (second * u + n[1])).sum(axis=1) > 0)
        assert instances.expected_pairwise(first, second, sd) == pytest.approx(positive, abs=0.012)

    def test_binding_is_that_of_simulated_sums(self):
        rng = np.random.default_rng(0)
        for share in (0.0, 0.1, 0.4):
            i = math.sqrt(4 * share / make.DIM) * rng.standard_normal((20_000, make.DIM))
            n = math.sqrt(2) * instances.ROUGH * rng.standard_normal((2, *i.shape))
            positive = np.mean(((i + n[0]) * (i + n[1])).sum(axis=1) > 0)
            assert instances.expected_binding(share, instances.ROUGH) == pytest.approx(positive, abs=0.012)


class TestChecks:
    @pytest.mark.parametrize("name", ["oracle", "bound", "held out"])
    def test_of_scores_that_are_no_numbers_hold_nowhere(self, name, data, monkeypatch):
        change(monkeypatch, lambda _: math.nan)
        assert [check for check in PARTS[name](data) if check.holds] == []

    @pytest.mark.slow
    @pytest.mark.parametrize("name", WRONG)
    def test_see_a_wrong_score(self, name, data, monkeypatch):
        module, parts, to = WRONG[name]
        function = next(function for scored, function in METRICS if scored is module)
        true = getattr(module, function)
        monkeypatch.setattr(module, function, lambda *args, **options: to(true, *args, **options))
        for part in parts:
            assert failures(part, data), part
