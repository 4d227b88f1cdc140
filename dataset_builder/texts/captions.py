"""Wordings of captions, a grammar from ``templates.yaml``, and prompts for labels, from ``prompts.yaml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import groupby, product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import packaged_yaml, read_file, sha256_of_json
from audio_compositionality.support.text import first_line, nearest
from audio_compositionality.support.yaml_text import parse_yaml

from ..scenes.captioned import Expression, Leaf, Then, Together, joined
from ..sounds.entries import label_words, word_places

Meaning = Literal["sequence", "together", "throughout"]
Mention = Literal["forward", "reverse", ""]


@dataclass(frozen=True)
class CaptionTemplate:
    """A way to put two parts into words.

    Attributes:
        name: unique name.
        meaning: ``sequence``, ``together``, ``throughout``.
        text: contains ``{first}`` and ``{second}``, each once.
        mention: for a sequence, whether the first sound is named first (``forward``) or last (``reverse``).
        chains: whether it may join more than two parts.
        held_out: whether it is reserved for test.
    """

    name: str
    meaning: Meaning
    text: str
    mention: Mention = ""
    chains: bool = False
    held_out: bool = False

    def join(self, first: str, second: str) -> str:
        """Return two parts as one text."""
        return self.text.format(first=first, second=second)


@cache
def language_digest() -> str:
    """Return the SHA-256 of the lexicon and the templates: texts are part of the data, and so of their fingerprint."""
    return sha256_of_json([word_places(), packaged_yaml(__package__, "templates.yaml")])


@cache
def caption_templates() -> Mapping[Meaning, tuple[CaptionTemplate, ...]]:
    """Return all templates, by meaning."""
    content = packaged_yaml(__package__, "templates.yaml")
    return {
        meaning: tuple(CaptionTemplate(meaning=meaning, **entry) for entry in entries)
        for meaning, entries in content.items()
    }


_PUNCTUATION = ",.;:!?\"'()"


@dataclass(frozen=True)
class CaptionWording:
    """A template for each kind of joint in an expression; None for a kind that it lacks.

    Attributes:
        sequence, together, throughout: the template for this meaning.
    """

    sequence: CaptionTemplate | None = None
    together: CaptionTemplate | None = None
    throughout: CaptionTemplate | None = None

    @property
    def name(self) -> str:
        """Return the names of the templates: ``followed by``, ``throughout + after``."""
        of_joints = (self.throughout, self.sequence, self.together)
        return " + ".join(template.name for template in of_joints if template is not None)

    @property
    def mention(self) -> str:
        """Return ``forward`` or ``reverse`` if there is a sequence, else an empty text."""
        return self.sequence.mention if self.sequence is not None else ""

    @property
    def held_out(self) -> bool:
        """Return whether one of the templates is reserved for test."""
        return any(one is not None and one.held_out for one in (self.sequence, self.together, self.throughout))


@dataclass(frozen=True)
class _Joint:
    """Parts with one kind of joint.

    Attributes:
        kind: a meaning that has templates, or one with a fixed wording, a key of `_FIXED`.
        parts: two or more.
        chains: whether only templates that chain read well here.
    """

    kind: str
    parts: tuple[_Plan, ...]
    chains: bool = False


_Plan = Leaf | _Joint

_FIXED = {"parallel": ", and at the same time ", "stages": "; after that, "}
"""The joints of the parts on levels 3 and 4."""


def _plan(expression: Expression) -> _Plan:
    if isinstance(expression, Leaf):
        return expression
    if isinstance(expression, Together):
        if _is_tight(expression):
            return _Joint("together", tuple(map(_tight, expression.operands)), len(expression.operands) > 2)
        # Level 3.
        sequences = tuple(_flat(part) for part in expression.operands if isinstance(part, Then))
        singles = [part for part in expression.operands if not isinstance(part, Then)]
        plan = sequences[0] if len(sequences) == 1 else _Joint("parallel", sequences)
        return _Joint("throughout", (_tight(joined(Together, singles)), plan)) if singles else plan
    if all(map(_is_tight, expression.operands)):
        simple = len(expression.operands) == 2 and all(isinstance(part, Leaf) for part in expression.operands)
        return _flat(expression, chains=not simple)
    # Level 4: neighbouring parts that level 2 can express form one stage.
    stages: list[_Plan] = []
    for is_tight, run in groupby(expression.operands, _is_tight):
        operands = list(run)
        stages += [_flat(joined(Then, operands))] if is_tight else map(_plan, operands)
    return _Joint("stages", tuple(stages))


def _is_tight(expression: Expression) -> bool:
    """Return whether an expression is a leaf or simultaneous leaves."""
    return isinstance(expression, Leaf) or (
        isinstance(expression, Together) and all(isinstance(part, Leaf) for part in expression.operands)
    )


def _tight(expression: Expression) -> _Plan:
    """Return a level-1 plan."""
    return expression if isinstance(expression, Leaf) else _Joint("tight", tuple(map(_tight, expression.operands)))


def _flat(expression: Expression, *, chains: bool = True) -> _Plan:
    """Return a level-2 plan: a leaf, simultaneous leaves, or a sequence of these."""
    if not isinstance(expression, Then):
        return _tight(expression)
    if not all(map(_is_tight, expression.operands)):
        raise InputError("the expression is nested too deeply for an unambiguous caption")
    return _Joint("sequence", tuple(map(_tight, expression.operands)), chains)


def _joints(plan: _Plan) -> Iterator[_Joint]:
    if isinstance(plan, _Joint):
        yield plan
        for part in plan.parts:
            yield from _joints(part)


def wordings(expression: Expression, *, held_out: bool | None = None) -> tuple[CaptionWording, ...]:
    """Return all wordings that suit an expression.

    Args:
        expression: any expression that has a caption.
        held_out: True: only wordings with a template reserved for test; False: only those without; None: all.

    Raises:
        InputError: the nesting is too deep for an unambiguous text.
    """
    joints = _joints(_plan(expression))
    return _wordings(frozenset((joint.kind, joint.chains) for joint in joints), held_out)


@cache
def _wordings(joints: frozenset[tuple[str, bool]], held_out: bool | None) -> tuple[CaptionWording, ...]:
    """Return the wordings for these kinds of joints; each kind says whether its template must chain."""
    options: list[tuple[CaptionTemplate | None, ...]] = []
    for meaning, of_meaning in caption_templates().items():
        suiting = tuple(template for template in of_meaning if template.chains or (meaning, True) not in joints)
        options.append(suiting if {(meaning, True), (meaning, False)} & joints else (None,))
    every = (CaptionWording(**dict(zip(caption_templates(), one, strict=True))) for one in product(*options))
    return tuple(wording for wording in every if held_out is None or wording.held_out == held_out)


def stands_behind(word: str) -> bool:
    """Return whether a word follows its noun, as in "man speaking"."""
    return word.endswith("ing")


def named(leaf: Leaf) -> str:
    """Return a leaf with its words: "slow high bell", "man speaking"."""
    before = [word for word in leaf.attributes if not stands_behind(word)]
    return " ".join((*before, leaf.label, *filter(stands_behind, leaf.attributes)))


def phrase(leaf: Leaf) -> str:
    """Return the noun phrase of a leaf in a caption: "a slow high bell"; "rain" if no word precedes it."""
    text = named(leaf)
    if all(map(stands_behind, leaf.attributes)):
        return text
    return f"{'an' if text[:1].lower() in tuple('aeiou') else 'a'} {text}"


def caption(expression: Expression, wording: CaptionWording) -> str:
    """Return an expression in words.

    Args:
        expression: its simultaneous parts are named in this order.
        wording: one of `wordings`.

    Raises:
        InputError: the nesting is too deep for an unambiguous text, or the wording does not suit the expression.
    """
    return _said(_plan(expression), wording)


def _said(plan: _Plan, wording: CaptionWording) -> str:
    if isinstance(plan, Leaf):
        return phrase(plan)
    texts = [_said(part, wording) for part in plan.parts]
    if plan.kind == "tight":
        return f"{', '.join(texts[:-1])} and {texts[-1]} together"
    if plan.kind in _FIXED:
        return _FIXED[plan.kind].join(texts)
    template: CaptionTemplate | None = getattr(wording, plan.kind)
    if template is None or (plan.chains and not template.chains):
        raise InputError(f"the wording {wording.name!r} does not suit the expression; use one of wordings(expression)")
    return reduce(template.join, texts)


def draw_tree(size: int, rng: np.random.Generator) -> Expression:
    """Draw a tree with `size` leaves, ``+`` and ``*`` equally often at every level, with an unambiguous caption."""
    while True:
        tree = _any_tree(size, rng)
        try:
            if wordings(tree, held_out=False):
                return tree
        except InputError:
            continue


def _any_tree(size: int, rng: np.random.Generator) -> Expression:
    if size == 1:
        return Leaf("")
    cut = int(rng.integers(1, size))
    kind = (Then, Together)[int(rng.integers(2))]
    return joined(kind, [_any_tree(cut, rng), _any_tree(size - cut, rng)])


def bag_of_words(text: str) -> tuple[str, ...]:
    """Return a text's words in lower case without punctuation, sorted: equal for texts that differ only in order."""
    words = (word.strip(_PUNCTUATION) for word in text.lower().split())
    return tuple(sorted(filter(None, words)))


Templates = tuple[str, ...]
"""Prompt templates: whole sentences, with punctuation."""

SLOT = "{label}"
"""Placeholder for the words of a class."""

DEFAULT = "default"
"""Name of the default set."""


def load_templates(name: str = DEFAULT) -> Templates:
    """Return the prompt templates of a set.

    Args:
        name: a set in ``prompts.yaml``, or the path of a YAML file with a list of templates.

    Raises:
        InputError: neither exists, or the file lists no templates.
    """
    sets: Mapping[str, Any] = packaged_yaml(__package__, "prompts.yaml")
    if name in sets:
        return check_templates(sets[name])
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        raise InputError(
            f"unknown prompts {name!r}: neither a YAML file of templates nor a known set; {nearest(name, sets)}"
        )
    try:
        values = parse_yaml(read_file(path), name)
    except (OSError, InputError) as error:
        raise InputError(f"prompts cannot be read from {name!r}: {first_line(error)}") from error
    if not isinstance(values, list):
        raise InputError(f"{name!r} lists no prompt templates; each must be a text that contains {SLOT}")
    return check_templates(values)


def check_templates(templates: Sequence[Any]) -> Templates:
    """Return templates without duplicates.

    Raises:
        InputError: there is none, or one is not a text that contains the placeholder exactly once.
    """
    for template in templates:
        if not isinstance(template, str) or template.count(SLOT) != 1:
            raise InputError(f"the prompt template is {template!r}; it must be a text that contains {SLOT} once")
    if not templates:
        raise InputError(f"no prompt templates; give at least one text that contains {SLOT}")
    return tuple(dict.fromkeys(templates))


def prompts_of(label: str, templates: Sequence[str]) -> list[str]:
    """Return the prompts of a class, one for each template."""
    return [template.replace(SLOT, label_words(label)) for template in templates]
