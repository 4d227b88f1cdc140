"""What holds of everything that can be set, whichever room it stands in: read off the bounds of its own fields."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from math import ceil, floor, inf, nextafter
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic.fields import FieldInfo

from audio_compositionality.dataset_builder.recipes import list_recipes, load_recipe
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import (
    Spec,
    TypedAs,
    as_typed,
    check_values,
    default_of,
    fingerprint_of,
    read_yaml,
    rule_of,
)

from .test_architecture import modules

NEEDED: dict[str, dict[str, Any]] = {
    "TrainingSettings": {"data": "comp_a_train"},
    "Stage": {"kind": "hard", "steps": 7, "learning_rate": 0.1, "warm_up": 2},
    "TextSettings": {"kind": "hard", "negatives": 3, "positives": 0},
}
"""Values of fields that have no default, for an example of the spec."""


def names_of_specs() -> Iterator[tuple[str, str]]:
    """(module, class) of all classes of the product that are made of `Spec`, by their bases as they are written."""
    bases = {
        (module, name): set(re.sub(r"\[.*\]", "", named).replace(",", " ").split())
        for module, path in modules().items()
        for name, named in re.findall(r"^class (\w+)\((.*)\):", path.read_text("utf-8"), re.MULTILINE)
    }
    specs = {"Spec"}
    while more := {name for (_, name), of_class in bases.items() if of_class & specs} - specs:
        specs |= more
    return ((module, name) for (module, name), of_class in bases.items() if of_class & specs)


SPECS: list[type[Spec]] = [getattr(importlib.import_module(module), name) for module, name in names_of_specs()]
OWN = {spec: {n: f for n, f in spec.settable().items() if n in spec.__annotations__} for spec in SPECS}
"""Fields that can be typed, where they are stated."""

each_spec = pytest.mark.parametrize("spec", [spec for spec in SPECS if OWN[spec]], ids=lambda spec: spec.__name__)


def examples() -> dict[type[Spec], Spec]:
    """A valid spec of each kind of which one can be had without sounds."""
    presets = [spec for name in list_recipes() for spec in load_recipe(name).presets.values()]
    made = {type(spec): spec for spec in presets}
    for spec in SPECS:
        needed = NEEDED.get(spec.__name__, {})
        if all(name in needed or not field.is_required() for name, field in spec.model_fields.items()):
            made[spec] = spec(**needed)
    return made


EXAMPLES = examples()


def bounds(field: FieldInfo) -> dict[str, float]:
    return {
        name: getattr(one, name) for one in field.metadata for name in ("ge", "gt", "le", "lt") if hasattr(one, name)
    }


def kind_of(field: FieldInfo) -> Any:
    kinds = [kind for kind in get_args(field.annotation) if kind is not type(None)]
    is_optional = type(None) in get_args(field.annotation)
    return kinds[0] if is_optional else field.annotation


def values_of(kind: Any, limits: dict[str, float]) -> st.SearchStrategy[Any]:
    """Valid values of a type within limits."""
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    if get_origin(kind) is tuple:
        parts = get_args(kind)
        one = values_of(parts[0], {})
        return st.lists(one, min_size=1, max_size=3).map(tuple) if ... in parts else st.tuples(*[one] * len(parts))
    low, high = limits.get("ge", limits.get("gt")), limits.get("le", limits.get("lt"))
    if kind is int:
        least = None if low is None else floor(low) + 1 if "gt" in limits else ceil(low)
        most = None if high is None else ceil(high) - 1 if "lt" in limits else floor(high)
        return st.integers(least, most)
    if kind is float:
        return st.floats(
            low, high, exclude_min="gt" in limits, exclude_max="lt" in limits, allow_nan=False, allow_infinity=False
        )
    return st.booleans() if kind is bool else st.sampled_from(["mini", "a b", "Straße", "cp949"])


def step_over(kind: type, name: str, bound: float) -> float:
    """The nearest value that a bound leaves out."""
    if name in ("gt", "lt"):
        return kind(bound)
    down = name == "ge"
    return int(bound) + (-1 if down else 1) if kind is int else nextafter(bound, -inf if down else inf)


DIFFERENT = {
    "batch_size": "of forward passes at most 64, of answers any, of a training at least a pair",
    "duration": "a clip holds its events: notes of a rate a second, sounds of a folder a quarter",
    "learning_rate": "of a stage one, of a training one for each stage",
    "negatives": "a switch of questions, and a number of texts",
    "num_classes": "polyphonies need five voices",
    "positives": "a stage may have none, a training that asks for them has one",
    "precision": "in the words of the library that computes",
    "quadruples": "of tones their candidates are the limit",
    "seed": "of a training's batches: drawn from the training's own, which has the limit",
    "train": "a share of the sounds, and the parts of a tower",
    "warm_up": "of a stage one, of a training one for each stage",
}
"""Fields of one name that have other rules in other specs, and why."""

BESIDE: dict[str, dict[str, Any]] = {
    "four": {"duration": 20.0},
    "TrainingSpec": {"duration": 20.0},
    "PolyphonySpec": {"rate_range": (0.2, 4.0)},
    "width": {"block": "post-norm"},
    "dropout": {"block": "post-norm"},
    "validate_every": {"block": "post-norm"},
    "patience": {"evaluate_every": 1},
}
"""Values of other fields without which a field, or the number of classes of a spec, has no other value."""


def other_values(spec: Spec, name: str, field: FieldInfo) -> list[Any]:
    """Values near a field's own, some of which may break a rule."""
    own, kind, limits = getattr(spec, name), kind_of(field), bounds(field)
    part = get_args(kind)[0] if get_origin(kind) is tuple else None
    if part is not None:
        steps = (lambda one: one + 1, lambda one: one * 1.5, lambda one: one * 0.9)
        near = [tuple(map(step, own)) for step in steps] if own and part in (int, float) else []
        parts = get_args(part) or (["timbre_pitch", "a"] if part is str else [1])
        return [*near, *((one,) for one in parts), *([own[:-1], (*own, own[-1])] if own else [(1, 2)])]
    if kind in (int, float):
        steps = ((own or 0) + 1, (own or 0) - 1, (own or 0) + 2, (own or 0) / 2, (own or 0) / 2 + 0.5, *limits.values())
        return [kind(one) for one in steps if kind(one) != own]
    return [one for one in get_args(kind) or ((not own,) if kind is bool else ("a b", "cp949")) if one != own]


def test_there_are_specs_in_every_room_that_has_settings():
    rooms = {spec.__module__.split(".")[1] for spec in SPECS}
    assert rooms >= {"dataset_builder", "encoders", "evaluator", "tasks", "training"}
    assert len(EXAMPLES) >= 20


@each_spec
def test_settings_are_described_and_their_defaults_read_as_they_are_printed(spec):
    for name, field in OWN[spec].items():
        assert field.description, name
        assert field.description[-1] in ".:", f"the description of {name} is a sentence"
        if not field.is_required():
            default = field.get_default(call_default_factory=True)
            assert spec.read([f"{name}={default_of(field)}"]) == {name: default}


@each_spec
@settings(max_examples=10)
@given(data=st.data())
def test_values_within_the_bounds_are_read_as_they_are_typed(spec, data):
    # What texts of fields with words of their own mean, their own tests say.
    fields = {n: f for n, f in OWN[spec].items() if not any(isinstance(one, TypedAs) for one in f.metadata)}
    values = {name: data.draw(values_of(kind_of(field), bounds(field))) for name, field in fields.items()}
    check_values(values, fields, "it")
    assert spec.read([f"{name}={as_typed(value)}" for name, value in values.items()]) == values


def wrong_values(field: FieldInfo) -> list[Any]:
    """The nearest values beyond each bound, and some of other types."""
    kind = kind_of(field)
    wrong: list[Any] = [step_over(kind, *bound) for bound in bounds(field).items()]
    if get_origin(kind) is Literal:
        return [*wrong, "nonesuch", True]
    others = {int: [1.5, "1", True], float: [float("nan"), float("inf"), "1", True], bool: [1, "true"], str: [1, ["a"]]}
    return wrong + others.get(kind, [])


@each_spec
def test_values_out_of_the_bounds_are_refused_with_value_and_rule(spec):
    for name, field in OWN[spec].items():
        for value in wrong_values(field):
            with pytest.raises(InputError) as raised:
                check_values({name: value}, {name: field}, "it")
            assert str(raised.value).startswith(f"{name} is {as_typed(value, quoted=True)}; it is {rule_of(field)}")
            if spec in EXAMPLES:
                with pytest.raises(InputError, match=f"{name} is .*"):
                    EXAMPLES[spec].changed(**{name: value})


@each_spec
def test_a_name_that_is_none_gets_the_nearest(spec):
    for name in OWN[spec]:
        nearest = rf"no setting '{name}x'; did you mean '{name}'\?"
        with pytest.raises(InputError, match=nearest):
            spec.read([f"{name}x=1"])
        with pytest.raises(InputError, match=nearest):
            check_values({f"{name}x": 1}, spec.settable(), "it")


@pytest.mark.parametrize("spec", EXAMPLES.values(), ids=[kind.__name__ for kind in EXAMPLES])
def test_a_spec_is_the_same_when_nothing_changes_and_its_values_are_json(spec):
    assert spec.changed() == spec
    values = spec.values()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    with pytest.raises(InputError, match="no setting 'nonesuch'"):
        spec.changed(nonesuch=1)


@pytest.mark.parametrize("spec", EXAMPLES.values(), ids=[kind.__name__ for kind in EXAMPLES])
def test_a_fingerprint_changes_with_each_field(spec):
    for name, field in spec.settable().items():
        beside = dict(BESIDE.get(type(spec).__name__ if name == "num_classes" else name, {}))
        before = fingerprint_of(**spec.changed(**beside).values())
        if name == "num_classes":
            beside["voices"] = spec.voices[: spec.num_classes - 1]
        changed = []
        for value in other_values(spec, name, field):
            with suppress(InputError):
                changed.append(spec.changed(**{**beside, name: value}))
        assert changed, f"{name} has another value"
        assert all(fingerprint_of(**one.values()) != before for one in changed), name


@pytest.mark.parametrize("spec", EXAMPLES.values(), ids=[kind.__name__ for kind in EXAMPLES])
def test_a_spec_is_written_as_yaml_and_read_again(spec, tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(spec.to_yaml(), "utf-8")
    written = read_yaml(path)
    assert written == spec.values()
    # A field that is written in another form has a validator that says so.
    plain = {name: json.loads(json.dumps(getattr(spec, name), default=str)) for name in spec.settable()}
    typed = {name: value for name, value in written.items() if plain.get(name) == value}
    assert spec.changed(**typed) == spec
    if set(typed) == set(written):
        assert type(spec).from_yaml(path) == spec


def test_fields_of_one_name_have_one_rule_or_a_reason():
    rules: dict[str, set[str]] = {}
    for fields in OWN.values():
        for name, field in fields.items():
            rules.setdefault(name, set()).add(rule_of(field))
    assert {name for name, different in rules.items() if len(different) > 1} == set(DIFFERENT)
