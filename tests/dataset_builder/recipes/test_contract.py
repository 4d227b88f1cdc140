"""Every recipe keeps one contract, whatever it draws: of tones, and of the sounds that a user brings.

Recipes are discovered. One without an entry in `few` is drawn as its preset mini, and of `OTHER_SOUNDS`.
"""

import re
from collections.abc import Mapping
from typing import Literal, get_args, get_origin

import numpy as np
import pytest
from datasets import Audio, Dataset, Features

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import AUDIO, NUMBER, TEXT, WHOLE, DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.dataset_builder.scenes.effects import ParameterRange
from audio_compositionality.support.errors import InputError

from .. import frozen
from ..sounds.made import made_recordings
from . import louder
from .few import MEMBERS, OTHER_SOUNDS, RECIPES, SMALL, SOUNDS, opened, spec_of
from .recorded import WHO, described, instances, named, unconditioned
from .toy import registered

NUMBER_DECIDES = {"a_coat", "a_tre", "audio_text_retrieval", "rate_binding", "zero_shot_audio"}
"""Recipes whose rows depend on how many there are: they are selected from all, or evenly."""


def more_of(name):
    """The same with more rows."""
    few, of_sounds = SMALL.get(name, {}), SOUNDS.get(name, OTHER_SOUNDS)[1]
    counts = {field: value for field, value in few.items() if isinstance(value, int)}
    return {field: max(value, of_sounds.get(field, 0)) + 1 for field, value in counts.items()}


CARDS = {
    "a_coat_instances": ("3 blocks: two contexts A and C, and 6 classes", "no recordings", "has 1 source with"),
    "factors": ("2 **stars** of 30 clips", "16 **crossed** clips"),
    "polybench": (
        "25 multiple-choice questions about 23 clips",
        "25 about\n23 clips for training",
        "electric piano, brass sec",
    ),
    "transforms": (
        "10 sound scenes: in turn a single source, and 2 to 3 sources together.",
        "4 further single sources follow without copies",
        "| `gain` | −24 to 0 dB |",
        "| 7 | Breath Pad |",
    ),
    "transforms of sounds": (
        "recordings, distributed over labels as evenly",
        "Other recordings, as many as there are and at most 112, follow without copies",
        "| `noise` | −10 to 40 dB | adds white Gaussian noise",
    ),
}
"""Words of cards, by the names of members: where a template has a branch or reckons."""


@pytest.fixture(scope="module", autouse=True)
def a_recipe_of_another():
    with registered(louder.RECIPE):
        yield


@pytest.fixture(scope="module", params=MEMBERS)
def member(request):
    return request.param


@pytest.fixture(scope="module")
def configuration(member):
    """A few rows of each recipe."""
    return opened(member)


def audio_columns(features):
    return {name for name, feature in features.items() if isinstance(getattr(feature, "feature", feature), Audio)}


def test_ids_are_of_their_own_and_splits_follow_each_other(configuration, member):
    ids = [row["id"] for row in configuration.rows]
    assert len(set(ids)) == len(ids) > 0
    splits = load_recipe(configuration.recipe).splits
    places = [splits.index(row["split"]) for row in configuration.rows]
    assert places == sorted(places)
    if " of " not in member:
        assert {row["domain"] for row in configuration.rows if "domain" in row} <= {"tones", "timbres"}


def test_features_hold_what_rows_say(configuration):
    features = configuration.features
    silent = [name for name in features if name not in audio_columns(features)]
    rows = [{name: row[name] for name in silent} for row in configuration.rows]
    assert all({*row, *audio_columns(features)} - {"split"} == set(features) for row in configuration.rows)
    stored = Dataset.from_list(rows, features=Features({name: features[name] for name in silent}))
    for row, read in zip(rows, stored, strict=True):
        assert read == row
        load_recipe(configuration.recipe).check_row({**read, "split": "test"})


def test_clips_have_names_and_are_16_bits_under_full_scale(configuration):
    recipe, rendering = load_recipe(configuration.recipe), configuration.rendering
    for index in range(min(3, len(configuration.rows))):
        clips = rendering.clips(index)
        names = recipe.clip_names(configuration.rows[index])
        assert len(clips) == len(set(names)) > 0
        assert {name.partition("/")[0] for name in names} <= audio_columns(configuration.features)
        for clip in clips:
            assert clip.dtype == np.int16
            assert 0 < np.abs(clip.astype(int)).max() < 2**15
        if recipe.one_length:
            assert len({len(clip) for clip in clips}) == 1


def wrong_values(column, value):
    """Values that break a rule of a column."""
    yield {"no": "column"}
    if not column.optional:
        yield None
    if isinstance(column.kind, list):
        yield "text"
        if column.least:
            yield value[: column.least - 1]
        if column.count or column.per:
            yield [*value, *value[:1]] if value else ["another"]
        if column.filled:
            yield [*value, ""]
        if column.choices:
            yield [*value, "nonesuch"]
        if value:
            yield [*value[:-1], {}]
    elif isinstance(column.kind, Mapping):
        for name in column.kind if value is not None else ():
            yield {**value, name: None}
            if column.least:
                yield {**value, name: value[name][: column.least - 1]}
    elif column.choices:
        yield from ("nonesuch", 4_711)
    else:
        yield from {TEXT: (3,), NUMBER: ("1", float("nan"), True), WHOLE: (1.5, True)}[column.kind]


def test_a_row_in_which_a_column_is_damaged_is_refused(configuration):
    recipe = load_recipe(configuration.recipe)
    row = dict(configuration.rows[0])
    for column in recipe.columns(next(iter(recipe.presets.values()))):
        if column.kind in (AUDIO, [AUDIO]) or column.name == "id":
            continue
        rules = rf"^row {re.escape(row['id'])}: {column.name} (is|are) .*; .*(it|each|none)"
        for value in wrong_values(column, row[column.name]):
            with pytest.raises(DatasetError, match=rules):
                recipe.check_row({**row, column.name: value})


def test_the_card_names_every_column_and_says_what_there_is(configuration, member):
    card = configuration.description
    assert [name for name in configuration.features if f"`{name}`" not in card] == []
    assert [words for words in CARDS.get(member, ()) if words not in card] == []
    assert not card.startswith("#")
    assert "{{" not in card
    assert "None" not in card
    assert "FM voice" not in card or member in RECIPES
    # What is included ends its line.
    assert not re.search(r"[a-z]\.[A-Z][a-z]", card)
    if configuration.recipe.startswith("comp_a"):
        assert max(len(line) for line in card.splitlines() if not line.startswith("|")) <= 140


def test_another_seed_draws_other_rows(member, configuration):
    """That the same spec draws the same is what the frozen digests say."""
    other = opened(member, seed=7)
    assert other.fingerprint != configuration.fingerprint
    if configuration.recipe not in ("audio_text_retrieval", "zero_shot_audio"):
        assert list(other.rows) != list(configuration.rows)


def test_few_rows_and_samples_are_frozen(member, configuration):
    """Our own output, as in `test_reproducibility`: it says that nothing changed, not that it is right."""
    if (entry := frozen.frozen().get(configuration.recipe)) is not None:  # "louder" is a recipe of the tests
        how = f"raise its version, then python -m tests.dataset_builder.frozen {configuration.recipe}"
        assert frozen.digest_of(configuration, 16) == entry["few"][member], f"rows of {member} changed: {how}"


@pytest.mark.parametrize(
    "member",
    [
        member
        for member in MEMBERS
        if more_of(name := member.partition(" of ")[0])
        and name not in NUMBER_DECIDES
        and member != "transforms of sounds"
    ],
    scope="module",
)
def test_further_rows_change_none(member, configuration):
    more = opened(member, **more_of(configuration.recipe))
    places = {row["id"]: place for place, row in enumerate(more.rows)}
    # The numbers of crossed clips say which of them they are.
    rows = [row for row in configuration.rows if row.get("kind") != "crossed"]
    assert len(places) > len(rows) > 0
    assert [more.rows[places[row["id"]]] for row in rows] == rows
    last = len(rows) - 1
    pairs = zip(more.rendering.clips(places[rows[last]["id"]]), configuration.rendering.clips(last), strict=True)
    assert all(np.array_equal(*pair) for pair in pairs)


OTHERS = {
    "ranges": [(("gain", ParameterRange(-6, 0)), ("noise", ParameterRange(0, 9)))],
    "transforms": [("reverb",)],
    "templates": [("{label}",)],
    "domain": ["birds"],
    "background": ["dog"],
    "swapped": [(), ("pitch",), ("action",)],
    "sounds": [
        named(WHO, each=7),
        instances(9),
        unconditioned([3] * 9),
        made_recordings(28, labels="abcdefg"),
        described(6),
    ],
    "crossed_levels": [(3, 2, 2, 2)],
}
"""Other values of some fields."""


def others_of(spec, name):
    """Other values of a field, the nearest first; not all of them are possible."""
    value, kind = getattr(spec, name), type(spec).model_fields[name].annotation
    if name in OTHERS:
        others = OTHERS[name]
    elif name == "voices":
        others = [value[::-1]]
    elif get_origin(kind) is Literal:
        others = get_args(kind)
    elif isinstance(value, bool):
        others = [not value]
    elif isinstance(value, tuple):
        *rest, last = value
        others = [(*rest, last * 0.97), (*rest, last - 1), (*rest, last * 1.03), value[:-1], (*value, last + 1)]
    else:
        others = [value + 1, value - 1, value * 2, value * 0.9, value + 0.1]
    return [other for other in others if other != value]


def test_the_fingerprint_changes_exactly_when_a_field_does(member, configuration):
    recipe, spec = spec_of(member)
    assert opened(member).fingerprint == configuration.fingerprint
    fingerprints = {configuration.fingerprint: "none"}
    # There are as many classes as voices; recordings of one rate keep it.
    fields = set(type(spec).model_fields) - {"num_classes"}
    fields -= (
        set() if member in RECIPES else spec.of_tones | ({"sample_rate"} if recipe.name == "transforms" else set())
    )
    for name in sorted(fields):
        for other in others_of(spec, name):
            try:
                changed = spec.changed(**{name: other})
            except InputError:
                continue
            fingerprint = RenderedData("x", {recipe.name: changed}).configuration(recipe.name).fingerprint
            assert fingerprints.setdefault(fingerprint, name) == name
            break
    # Four tones after each other need longer clips.
    assert {"none", *fields} - set(fingerprints.values()) <= {"four"}


@pytest.mark.slow
@pytest.mark.parametrize("member", [*RECIPES, "binding of sounds", "zero_shot_audio of sounds"])
def test_what_is_built_is_what_is_rendered_bit_for_bit(member, tmp_path):
    recipe, spec = spec_of(member)
    data = RenderedData("small", {recipe.name: spec})
    folder = build_dataset(data, tmp_path / "built", audio_format="wav", progress=False, workers=1)
    stored, rendered = open_data(str(folder)).configuration(recipe.name), data.configuration(recipe.name)
    assert stored.fingerprint == rendered.fingerprint
    assert list(stored.rows) == [dict(row) for row in rendered.rows]
    assert list(stored.clip_ids) == list(rendered.clip_ids)
    for read, made in zip(stored.clips(), rendered.clips(), strict=True):
        assert (read.id, read.sample_rate, read.problem) == (made.id, made.sample_rate, None)
        np.testing.assert_array_equal(read.waveform, made.waveform)
    card = (folder / "README.md").read_text("utf-8")
    assert rendered.description.splitlines()[0] in card
    assert ("CC BY" in card) == (member in RECIPES)


LETTER = {
    "a_coat": {"onset": "locked", "level": "clip"},
    "a_tre": {"onset": "locked"},
    "transforms": {
        "transforms": ("noise", "reverb"),
        "ranges": {"noise": (-30, 50), "pitch": (-12, 12), "reverb": (0.1, 3), "stretch": (0.5, 2)},
    },
}
"""What presets after the papers' letter change."""


@pytest.mark.parametrize("name", [name for name in RECIPES[:-1] if "paper-mini" in load_recipe(name).presets])
def test_presets_after_the_papers_letter_change_what_it_says_and_nothing_else(name):
    presets = load_recipe(name).presets
    for size in ("mini", "full"):
        ours, letter = presets[size], presets[f"paper-{size}"]
        differing = {field for field in type(ours).model_fields if getattr(ours, field) != getattr(letter, field)}
        assert differing == set(LETTER.get(name, ()))
        for field, value in LETTER.get(name, {}).items():
            stated = getattr(letter, field)
            assert stated == value or {of: (span.low, span.high) for of, span in stated} == value
