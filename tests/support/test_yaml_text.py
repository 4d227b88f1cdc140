"""YAML of anybody: what is refused, what plain values mean."""

import pytest

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.yaml_text import LARGEST, MOST_VALUES, parse_yaml


def test_plain_values_are_those_of_yaml_1_2():
    text = "[1e-3, .5, yes, no, on, true, FALSE, ~, null, 1_000, 012, 0o17, 0x1F, -7, 1:30, 2026-11-28, -.inf, '', <<]"
    values = [0.001, 0.5, "yes", "no", "on", True, False, None, None, "1_000", 12, 15, 31, -7, "1:30", "2026-11-28"]
    assert parse_yaml(text, "a.yaml") == [*values, float("-inf"), "", "<<"]
    # Every digit of a number of 300 is read.
    assert parse_yaml("9" * 300, "a.yaml") == 10**300 - 1
    assert parse_yaml(b"a: &x [1]\nb: *x\nc:", "a.yaml") == {"a": [1], "b": [1], "c": None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" + "x," * MOST_VALUES + "]", "more than 200,000 values"),
        ("a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)), "200,000 values"),
        ("configs: &a [*a]", "the alias 'a' has no full value"),
        ("[*a]", "found undefined alias|the alias 'a' has no full value"),
        ("- " * 51 + "x", "nested more than 50 deep"),
        ("9" * 301, "it has a number of 301 characters"),
        ("0x" + "f" * 300, "it has a number of 302 characters"),
        ("!!int 1:30", "is not YAML: invalid literal"),
        ("!!python/object/apply:os.system [ls]", "could not determine a constructor for the tag"),
        ("!!timestamp x", "could not determine a constructor"),
        ("!!bool x", "is not YAML"),
        ("{[a]: 1}", "found unhashable key"),
        ("a\n--- b\n", "but found another document"),
        ("a: \ud800", "surrogates not allowed"),
        (b"\xff", "can't decode byte"),
        (" " * (LARGEST + 1), "more than 1,048,576 bytes"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(InputError, match=message) as raised:
        parse_yaml(text, "a.yaml")
    assert str(raised.value).startswith("a.yaml ")
    assert len(str(raised.value)) < 500
