"""What recipes refuse beyond the rules of single columns and fields: rows, settings and sounds that do not fit."""

import dataclasses

import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.recipes.a_tre import SplitSceneSpec
from audio_compositionality.dataset_builder.recipes.comp_a_attribute import AttributeSpec
from audio_compositionality.dataset_builder.recipes.comp_a_order import OrderSpec
from audio_compositionality.dataset_builder.recipes.comp_a_train import TrainingSpec
from audio_compositionality.dataset_builder.recipes.factors import FactorSpec
from audio_compositionality.dataset_builder.recipes.rate_binding import RateBindingSpec
from audio_compositionality.dataset_builder.scenes.bases import TransformSpec
from audio_compositionality.dataset_builder.scenes.effects import ParameterRange
from audio_compositionality.dataset_builder.sounds.tones import default_voices
from audio_compositionality.dataset_builder.texts.polyphony import PolyphonySpec
from audio_compositionality.support.errors import InputError

from ..sounds.made import made_recordings
from .few import SMALL
from .recorded import ENGINES, WHO, described, instances, labels_of, made, named, settings_of, unconditioned

BELL = {"label": "bell", "attributes": [], "dimensions": [], "entry": "a"}

ROWS = {
    "a_coat_instances": [
        ({"labels": ["a", "b", "a", "c", "d", "e"]}, "labels are .*; the labels of a block must differ")
    ],
    "a_coat_recordings": [
        (
            {"gains": {part: [1.0] * 9 for part in "ACT"}},
            "the gains of A are .*; each source must have one gain above 0",
        ),
        ({"gains": {part: [0.0] for part in "ACT"}}, "the gains of A are"),
    ],
    "binding": [
        ({"conditions_across": ["a"]}, "conditions_across is .*; it must have 2"),
        ({"conditions_across": ["a", "b"], "instances_across": []}, r"instances_across is \[\]; it must have 4"),
        ({"instances_across": ["a"] * 4}, "instances_across is .*; it must have 0"),
    ],
    "comp_a_order": [
        ({"captions": ["a", "a"]}, "two or three different ones"),
        ({"captions": ["a", "b", "c", "d"], "events": [[]] * 4}, "two or three different ones"),
        ({"events": [[]]}, r"events is \[\[\]\]; it must have one value for each of captions"),
        ({"events": [[], [{**BELL, "start": 2.0, "stop": 1.0}]]}, "start < stop in seconds"),
        ({"events": [[], [{"start": 0.0, "stop": 1.0}]]}, "events is .*; it is a list of lists"),
    ],
    "comp_a_train": [
        ({"negatives": [{"text": "a bell", "kind": "wrong"}]}, "it must have a text and a kind: 'order'"),
        ({"events": [{**BELL, "start": 2.0, "stop": 1.0}]}, "start < stop in seconds"),
        ({"events": [{"label": "bell", "start": 1.0, "stop": 2.0}]}, "events is .*; it is a list of structures"),
    ],
    "factors": [
        ({"kind": "crossed", "factor": "pitch"}, "factor is 'pitch'; it must be '' for a crossed clip"),
        ({"kind": "crossed", "factor": ""}, "block is 'star-00000'"),
    ],
    "polybench": [({"answer": "many"}, "answer is 'many'")],
    "polybench_apart": [({"pair": ""}, "pair is ''; it must name the question")],
    "polybench_atoms": [
        ({"task": "presence", "polarity": "before"}, "polarity is 'before'; it must be present or absent")
    ],
    "transforms": [
        ({"parameter": None}, "parameter is None; it must be a number for a copy, and null"),
        ({"scaled": None}, "scaled is None; it must be a number for a copy, and null"),
        ({"transform": "", "quarter": -1}, "parameter is .*; it must be a number for a copy, and null for a base"),
        ({"candidate": "same"}, "candidate is 'same'; it must be empty if there is a transform"),
        ({"quarter": -1}, "quarter is -1; it must be 0 to 3, or -1 for a base"),
    ],
    "zero_shot_audio": [({"prompts": [[]]}, r"prompts is \[\[\]\]; each label must have one or more")],
}
"""Changes of a good row that no rule of a single column refuses."""


GOOD = {
    "a_coat_recordings": lambda row: len(row["metadata"]["A"]) == 1,
    "comp_a_order": lambda row: len(row["captions"]) == 2,
    "transforms": lambda row: row["transform"],
}
"""Which rows are changed, where not the first."""


@pytest.mark.parametrize("name", ROWS)
def test_rows_whose_columns_contradict_each_other(name):
    recipe = load_recipe(name)
    rows = recipe.render(recipe.presets["mini"].changed(**SMALL[name])).rows
    row = next(filter(GOOD.get(name, bool), rows))
    recipe.check_row(row)
    for changes, message in ROWS[name]:
        with pytest.raises(DatasetError, match=f"row {row['id']}: .*{message}"):
            recipe.check_row({**row, **changes})


VOICES = default_voices()
ALIKE = tuple(dataclasses.replace(voice, name=name) for voice, name in zip(VOICES, "aAcdefgh", strict=True))

SETTINGS = [
    (SplitSceneSpec, {"test_scenes": 0}, "test_scenes is"),
    (SplitSceneSpec, {"train_scenes": 149_000}, "_scenes is"),
    (OrderSpec, {"gaps": ()}, "gaps is"),
    (OrderSpec, {"gaps": (10,)}, "not negative and shorter than the clip"),
    (OrderSpec, {"gaps": (5,)}, "two tones of a 'slow' source"),
    (OrderSpec, {"rate_range": (3, 20), "duration": 2, "gaps": (0,)}, "events must last 1.2 s or more"),
    (AttributeSpec, {"pitch_range": (60, 84)}, "captions need 36 or more"),
    (AttributeSpec, {"sample_rate": 22_051}, "a multiple of 100"),
    (AttributeSpec, {"swapped": ("pitch+rate", "rate+pitch")}, "each combination once"),
    (TrainingSpec, {"single": 0.5, "three": 0.6}, r"single \+ three \+ four is 1.1"),
    (FactorSpec, {"stars": 4_097}, "stars is 4097; with K = 8 classes it may be at most 4,096"),
    (FactorSpec, {"crossed_levels": (8, 1, 8, 8)}, "crossed_levels of pitch is 1; it must be from 2"),
    (
        FactorSpec,
        {"num_classes": 2, "voices": VOICES[:2], "max_sources": 13, "stars": 1},
        "is 13; with K = 2 .* at most 12",
    ),
    (PolyphonySpec, {"duration": 12}, "there is no setting 'duration'"),
    (PolyphonySpec, {"rate_range": (0.2, 1.9)}, "fastest class repeats every .* s; questions need 0.4 s or"),
    (PolyphonySpec, {"num_classes": 4, "voices": VOICES[:4]}, "num_classes is 4; it must be a whole"),
    (PolyphonySpec, {"voices": ALIKE}, "two timbres have the same name"),
    (RateBindingSpec, {"swells": (5,)}, r"swells is \(5,\); give 2 or more different whole numbers"),
    (RateBindingSpec, {"swells": (5, 5)}, "swells is"),
    (RateBindingSpec, {"low_notes": (76,)}, "low_notes go up to 76; all must be below 75"),
    (RateBindingSpec, {"voices": VOICES[:1]}, "1 voices; two or more are needed"),
    (TransformSpec, {"untransformed": 1_849}, "untransformed is 1849; it must be from 0 to 1,848"),
    (TransformSpec, {"transforms": ()}, "give some of gain, lowpass, noise, reverb, each once"),
    (TransformSpec, {"transforms": ("revreb",)}, "unknown transform 'revreb'; did you mean 'reverb'"),
    (TransformSpec, {"transforms": ("pitch",)}, "the transform 'pitch' is for recordings, not for scenes"),
    (TransformSpec, {"ranges": (("nois", ParameterRange(0, 1)),)}, "unknown transform 'nois'"),
    (TransformSpec, {"ranges": (("noise", ParameterRange(1, 0)),)}, "low must be below high"),
    (TransformSpec, {"ranges": (("noise", ParameterRange(0, 1, "log")),)}, "positive on the scale log"),
]


@pytest.mark.parametrize(("spec", "changes", "message"), SETTINGS)
def test_settings_that_contradict_each_other_or_cannot_be_made(spec, changes, message):
    with pytest.raises(InputError, match=message):
        spec(**changes)


OF_TONES = {
    "comp_a_order": {"velocity": 90, "gaps": (0.0,)},
    "polybench": {"velocity": 90},
    "transforms": {"rate_range": (3, 9), "max_sources": 5, "onset": "locked"},
}


@pytest.mark.parametrize("name", OF_TONES)
def test_settings_of_tones_beside_other_sounds(name):
    for field, value in OF_TONES[name].items():
        with pytest.raises(InputError, match=f"{field} applies to tones, which are replaced by recordings here"):
            settings_of(load_recipe(name), made_recordings(28, labels="abcdefg"), **{field: value})


SOUNDS = [
    ("a_coat_recordings", unconditioned([1] * 5), {}, "5 labels; 2 .* A, C and T require 6: --set part_sources=1"),
    (
        "a_coat_recordings",
        unconditioned([2] * 7),
        {"level_range": (3, 0)},
        r"is \(3, 0\); it must increase, within -40",
    ),
    ("binding", unconditioned([3] * 4), {}, "has no conditions, and trials need two .*: LABEL/CONDITION/file"),
    ("binding", instances(4, ("near",)), {}, r"has only one condition \('near'\); trials need two conditions"),
    (
        "binding",
        instances(2, without={(labels_of(2)[0], condition) for condition in ENGINES[1:]}),
        {},
        "of the same two labels; .* share the most labels, 1",
    ),
    ("comp_a_order", named(each=1), {}, "made up has 0 labels with two or more recordings"),
    ("comp_a_order", named(("dog", "bark")), {}, "no two labels of different kinds of sounds"),
    ("comp_a_order", named(), {"itemz": 3}, "there is no setting 'itemz'"),
    ("comp_a_train", named(("dog", "bark")), {}, "no two training labels that can occur together"),
    ("comp_a_attribute", named(WHO[:3]), {}, "two sources that make two sounds each, in all four combinations"),
    ("comp_a_attribute", named(WHO), {"swapped": ("acton",)}, "swapped has 'acton'; did you mean 'action'"),
    ("polybench", made_recordings(12, labels="abcd"), {}, "has 4 labels, 4 for train and 4 for test; questions need 5"),
    ("polybench", made_recordings(), {"test_set": 3}, "there is no setting 'test_set'; did you mean 'test_sets'"),
    ("transforms", made_recordings(seconds=0.05), {}, r"recording 0\.wav lasts 0\.050 s; it needs 0\.1 s"),
    (
        "audio_text_retrieval",
        described().without(0).without(0),
        {},
        r"has 1 recordings with captions .*; at least 2 are",
    ),
    ("zero_shot_audio", made([("1", "dog_bark", "", {})] * 2), {}, "has one class, 'dog_bark'; at least 2 are needed"),
    ("zero_shot_audio", made([("1", "", "", {})] * 2), {}, "has no labels; prompts are made from classes"),
    ("zero_shot_audio", made([("1", "1.5", "", {"number": 1.5})] * 2), {}, r"has numbers as labels, e\.g\."),
    *(
        ("zero_shot_audio", described(), {"templates": templates}, "template")
        for templates in ((), ("no slot",), ("{label} {label}",), (3,))
    ),
]


@pytest.mark.parametrize(("name", "sounds", "changes", "message"), SOUNDS)
def test_sounds_that_do_not_suffice(name, sounds, changes, message):
    recipe = load_recipe(name)
    with pytest.raises((DatasetError, InputError), match=message):
        recipe.render(recipe.of_sounds(recipe.presets["mini"], sounds, changes)).clips(0)


@dataclasses.dataclass(frozen=True)
class Silent:
    """Other sounds without a sound."""

    of: object
    fingerprint: str = "silent"

    def __getattr__(self, name):
        return getattr(self.of, name)

    def waveform(self, index):
        samples, rate = self.of.waveform(index)
        return 0 * samples, rate


@pytest.mark.parametrize(
    ("name", "sounds"), [("comp_a_order", named(("dog", "rain"), each=4)), ("a_coat_instances", instances(12))]
)
def test_silent_recordings_are_named(name, sounds):
    with pytest.raises(DatasetError, match=r"^made up: recording '.*' is silent"):
        load_recipe(name).render(settings_of(load_recipe(name), Silent(sounds))).clips(0)
