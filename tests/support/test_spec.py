"""What can be set is checked, printed and read in one place."""

from functools import cached_property
from typing import Literal

import numpy as np
import pytest
from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import Spec, fingerprint_of, rule_of


class Items(Spec):
    """Settings of the kinds that there are."""

    seed: int = Field(0, ge=0, le=2**63 - 1, description="Of all choices.")
    share: float = Field(0.25, ge=0, le=1, description="Of triplets.")
    onset: Literal["random", "locked"] = Field("random", description="When sources begin.")
    gaps: tuple[float, ...] = Field((0.0, 0.5), description="Seconds of silence.")
    span: tuple[float, float] = Field((36, 84), description="Lowest and highest note.")
    counts: tuple[int, ...] | None = Field(None, description="That are options.")
    names: tuple[str, ...] = Field((), description="Of transforms.")
    related: bool = Field(True, description="Whether they may be.")
    domain: str = Field("", description="In a word.")

    @model_validator(mode="after")
    def _goes_up(self) -> "Items":
        if self.span[0] >= self.span[1]:
            raise InputError(f"span is {self.span}; it goes up")
        return self

    @cached_property
    def doubled(self) -> int:
        return 2 * self.seed


class TestValues:
    def test_are_json_and_equal_specs_have_equal_ones(self):
        items = Items(seed=np.int64(3), gaps=[1, 2])
        assert items.values() == {
            "seed": 3, "share": 0.25, "onset": "random", "gaps": [1.0, 2.0], "span": [36.0, 84.0], "counts": None,
            "names": [], "related": True, "domain": "",
        }  # fmt: skip
        assert items == Items(gaps=(1.0, 2.0), seed=3) == Items(gaps="1, 2", seed=3)
        assert len({items, Items(gaps=(1, 2), seed=3), Items()}) == 2
        assert items.doubled == 6
        assert items == Items(gaps=(1.0, 2.0), seed=3), "what is computed of it is no part of it"

    def test_changes_are_checked_as_new_values_are(self):
        assert Items(seed=3).changed(share=1) == Items(seed=3, share=1.0)
        with pytest.raises(InputError, match="share is 2; it must be a number from 0 to 1"):
            Items().changed(share=2)

    def test_a_spec_does_not_change(self):
        with pytest.raises(Exception, match="frozen"):
            Items().seed = 3

    def test_a_fingerprint_is_of_values_by_name_in_any_order(self):
        assert fingerprint_of(a=1, b=[2.0]) == fingerprint_of(b=[2.0], a=1) != fingerprint_of(a=1, b=[3.0])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"seed": -1}, "seed is -1; it must be a whole number from 0 to 9,223,372,036,854,775,807"),
        ({"seed": 1.5}, "seed is 1.5; it must be a whole number"),
        ({"share": "much"}, "share is 'much'; it must be a number from 0 to 1"),
        ({"onset": "late"}, "onset is 'late'; it must be one of random, locked"),
        ({"gaps": ["a"]}, "gaps is a; it must be numbers with commas between them"),
        ({"span": (1,)}, "span is 1; it must be 2 numbers with commas between them"),
        ({"span": (84, 36)}, r"span is \(84.0, 36.0\); it goes up"),
        ({"sed": 1}, "there is no setting 'sed'; did you mean 'seed'?"),
    ],
)
def test_a_wrong_value_is_refused_with_the_rule_and_the_nearest_name(values, message):
    with pytest.raises(InputError, match=message):
        Items(**values)


class TestTexts:
    def test_are_read_by_the_type_of_the_field(self):
        texts = [
            "seed=3",
            "share=1",
            "onset=locked",
            "gaps=0, 2",
            "span=1,2",
            "counts=1,2",
            "names=a, b",
            "related=false",
        ]
        assert Items.read([*texts, "domain=my birds"]) == {
            "seed": 3, "share": 1.0, "onset": "locked", "gaps": (0.0, 2.0), "span": (1.0, 2.0), "counts": (1, 2),
            "names": ("a", "b"), "related": False, "domain": "my birds",
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("texts", "message"),
        [
            (["seed"], "--set is 'seed'; give NAME=VALUE"),
            (["sed=1"], "has no setting 'sed'; did you mean 'seed'?"),
            (["seed=1", "seed=2"], "--set gives seed twice"),
            (["seed=x"], "seed is 'x'; it is a whole number"),
            (["span=1"], "span is '1'; it is 2 numbers"),
            (["onset=late"], "onset is 'late'; it is one of random, locked"),
            (["related=perhaps"], "related is 'perhaps'; it is true or false"),
        ],
    )
    def test_that_are_wrong_say_the_rule(self, texts, message):
        with pytest.raises(InputError, match=message):
            Items.read(texts)

    def test_what_cannot_be_typed_is_not_offered(self):
        class Held(Spec):
            sounds: object = None
            count: int = 1

        assert list(Held.settable()) == ["count"]


def test_the_table_has_a_row_a_setting_with_its_rule():
    rows = [[cell.value for cell in row.cells] for row in Items.table().rows]
    assert [row[0] for row in rows] == list(Items.settable())
    assert rows[1] == ["share", "0.25", "a number from 0 to 1", "Of triplets."]
    assert rule_of(Items.model_fields["gaps"]) == "numbers with commas between them"


class TestFiles:
    def test_numbers_may_have_exponents(self, tmp_path):
        path = tmp_path / "items.yaml"
        path.write_text("share: 1e-3\nseed: 1\ngaps: [1, 2e-1]\ndomain: '1e3'\n", "utf-8")
        assert Items.from_yaml(path) == Items(share=0.001, seed=1, gaps=(1, 0.2), domain="1e3")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("sed: 1", r"items\.yaml: there is no setting 'sed'; did you mean 'seed'"),
            ("share: much", r"items\.yaml: share is 'much'; it must be a number from 0 to 1"),
            ("1: 2", "there is no setting '1'"),
            ("- a", "must have lines like 'seed: 1', but contains a list"),
            ("just words", "but contains a str"),
            ("", "but contains a NoneType"),
            ("a: [", "is not YAML: .*expected node content"),
            ("[" * 1_100, "is nested more than 50 deep"),
            ("a: &a [1]\nb: &b [*a, *a]\nc: &c [*b, *b]\nseed: [*c, *c]\n", "'c' is nested more deeply"),
            (f"domain: {'x' * 2**20}", "the limit for YAML"),
        ],
    )
    def test_that_are_wrong_are_named(self, tmp_path, text, message):
        path = tmp_path / "items.yaml"
        path.write_text(text, "utf-8")
        with pytest.raises(InputError, match=message):
            Items.from_yaml(path)

    def test_that_are_not_there_are_named(self, tmp_path):
        with pytest.raises(InputError, match=r"cannot read the settings in .*absent\.yaml: No such file"):
            Items.from_yaml(tmp_path / "absent.yaml")
