"""The probes stand in each metric that uses them, character by character: metrics cannot import each other."""

from __future__ import annotations

from audio_compositionality.metrics import list_metrics, metric_file

FIRST, LAST = "# ----- probes: ", "# ----- end of the probes\n"


def sections() -> dict[str, str]:
    """The section of probes of each metric that has one."""
    texts = {name: metric_file(name).read_text("utf-8") for name in list_metrics()}
    return {name: text[text.index(FIRST) : text.index(LAST)] for name, text in texts.items() if FIRST in text}


def test_metrics_with_probes_have_a_section_of_them() -> None:
    assert set(sections()) >= {"disentanglement", "equivariance", "informativeness"}


def test_the_sections_are_the_same() -> None:
    first, *others = sections().items()
    different = [name for name, text in others if text.splitlines() != first[1].splitlines()]
    assert not different, f"the probes of {', '.join(different)} are not those of {first[0]}: copy them"


def test_what_is_in_the_section_is_defined_nowhere_else() -> None:
    for name, section in sections().items():
        text = metric_file(name).read_text("utf-8")
        defined = [line for line in section.splitlines() if line.startswith(("def ", "class "))]
        assert defined
        assert not [line for line in defined if text.count(line) != 1], name
