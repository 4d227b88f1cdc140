"""What a stranger's text says: the grammar of `captions` read backwards, with the synonyms of ``reading.yaml``.

It is strict. A text with a word that is neither a noun or an attribute of the clip nor listed, or whose parts could be
taken in two ways, is read as nothing. It reads each caption of the grammar as what it was made from.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import yaml

from audio_compositionality.support.errors import InputError

from ..scenes.expressions import Expression, Leaf, Then, Together, formula, joined, leaves, replaced
from ..sounds.words import word_places
from .captions import Mention, stands_behind, templates

_WORD = re.compile(r"[^\W_]+")

_JOINING = re.compile(r"[\s_-]*")
"""What stands between words that nothing parts."""

_PUNCTUATION = re.compile(r"[\s,.;:!\"'()_–—-]*")
"""What may stand between words. A question mark, a slash or a sign of any other kind may say something."""


class UnreadableError(InputError):
    """A text whose meaning is not certain.

    Attributes:
        word: the first one that is not listed; empty where only the way in which the parts are joined is not clear.
    """

    def __init__(self, text: str, word: str = "") -> None:
        why = f"{word!r} is no word of reading.yaml" if word else "its parts can be joined in none or in several ways"
        super().__init__(f"{text!r} cannot be read: {why}")
        self.word = word


@dataclass(frozen=True)
class Reading:
    """What a text says.

    Attributes:
        expression: its leaves in the order of their roles, not of the text.
        mention: ``forward`` where what is heard first is named first in every sequence, ``reverse`` where it is named
            last, empty where there is none.
        cues: phrases that join its parts, each with its role.
    """

    expression: Expression
    mention: Mention
    cues: frozenset[tuple[str, str]]

    @property
    def formula(self) -> str:
        """See `formula_of`."""
        return formula_of(self.expression)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that it names, sorted; each as often as it names it."""
        return tuple(sorted(leaf.label for leaf in leaves(self.expression)))

    @property
    def held_out(self) -> bool:
        """Whether it has the words of a template that is kept from training."""
        return any(cues <= self.cues for cues in _held_out_cues())


def formula_of(expression: Expression) -> str:
    """As `expressions.formula`, and equal in whatever order the words of a leaf stand."""
    new = [replace(leaf, attributes=tuple(sorted(leaf.attributes))) for leaf in leaves(expression)]
    return formula(replaced(expression, new))


def words_in(text: str) -> tuple[str, ...]:
    """The words of a text in lower case, parted by ``_`` and ``-`` too: equal for texts that differ in punctuation."""
    return tuple(_WORD.findall(text.lower()))


@dataclass(frozen=True)
class Vocabulary:
    """What a text about a clip may name.

    Attributes:
        labels: of its events.
        attributes: words that may stand before them; those of the lexicon are added.
    """

    labels: frozenset[str]
    attributes: frozenset[str] = frozenset()

    @classmethod
    def of(cls, leaves: Iterable[Leaf]) -> Vocabulary:
        """What some leaves name."""
        every = tuple(leaves)
        return cls(frozenset(leaf.label for leaf in every), frozenset(word for one in every for word in one.attributes))

    @cached_property
    def phrases(self) -> Mapping[tuple[str, ...], _Unit]:
        """What each sequence of words is; where one is several, a label before an attribute before a cue."""
        attributes = {words_in(word): _Unit("attribute", word) for word in self.attributes}
        return {**_listed(), **attributes, **{words_in(label): _Unit("label", label) for label in self.labels}}


def read(text: str, vocabulary: Vocabulary) -> Reading:
    """What a text says.

    Raises:
        UnreadableError: it is not certain.
    """
    parser = _Parser(text)
    expression = parser.whole(_with_leaves(_units(text, vocabulary), text))
    mentions = {_MENTIONS[role] for _, role in parser.cues if role in _MENTIONS}
    if len(mentions) > 1:
        raise UnreadableError(text)
    stages = any(role == "stages" for _, role in parser.cues)
    return Reading(expression, next(iter(mentions), "forward" if stages else ""), frozenset(parser.cues))


@cache
def reading_digest() -> str:
    """SHA-256 of ``reading.yaml``."""
    return hashlib.sha256(json.dumps(_content(), sort_keys=True).encode()).hexdigest()


def cues_of(*roles: str) -> tuple[str, ...]:
    """The phrases of some roles that no template has which is kept from training."""
    kept = {cue for cues in _held_out_cues() for cue in cues}
    return tuple(phrase for role in roles for phrase in _content()["roles"][role] if (phrase, role) not in kept)


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(files(__package__).joinpath("reading.yaml").read_text("utf-8"))
    return content


@cache
def _roles() -> Mapping[str, frozenset[str]]:
    """The roles of each cue."""
    roles: dict[str, set[str]] = {}
    for role, phrases in _content()["roles"].items():
        for phrase in phrases:
            roles.setdefault(phrase, set()).add(role)
    return {phrase: frozenset(of_phrase) for phrase, of_phrase in roles.items()}


@cache
def _listed() -> Mapping[tuple[str, ...], _Unit]:
    """What can be read of any clip."""
    listed: dict[tuple[str, ...], _Unit] = {words_in(phrase): _Unit("neutral") for phrase in _content()["neutral"]}
    listed |= {words_in(phrase): _Unit("cue", phrase) for phrase in _roles()}
    return listed | {words_in(word): _Unit("attribute", word) for of_one in word_places().values() for word in of_one}


@cache
def _held_out_cues() -> tuple[frozenset[tuple[str, str]], ...]:
    """The cues of each template that is kept from training; of one of a sequence's, say, ``before`` that leads."""
    two = Vocabulary(frozenset({"x1", "y1"}))
    every = (template for of_meaning in templates().values() for template in of_meaning if template.held_out)
    return tuple(read(template.join("x1", "y1"), two).cues for template in every)


_MENTIONS: Mapping[str, Mention] = {
    "forward": "forward",
    "leading_forward": "forward",
    "reverse": "reverse",
    "leading_reverse": "reverse",
}


@dataclass(frozen=True)
class _Unit:
    """One or more words that are one thing.

    Attributes:
        kind: label, attribute, cue, neutral; leaf, once labels have their attributes.
        text: the label, attribute or cue.
        leaf: of a leaf.
        parted: whether a comma or the like stands before it.
    """

    kind: str
    text: str = ""
    leaf: Leaf | None = None
    parted: bool = False

    def has(self, *roles: str) -> bool:
        """Whether it is a cue that has one of these roles."""
        return self.kind == "cue" and not _roles()[self.text].isdisjoint(roles)


_Units = Sequence[_Unit]


def _units(text: str, vocabulary: Vocabulary) -> list[_Unit]:
    """The units of a text, of all that fit the longest, without the neutral ones."""
    between = _WORD.split(text)
    if not all(map(_PUNCTUATION.fullmatch, between)):
        raise UnreadableError(text)
    words, phrases = words_in(text), vocabulary.phrases
    longest = max(map(len, phrases))
    units = []
    place, parted = 0, False
    while place < len(words):
        lengths = (size for size in range(longest, 0, -1) if words[place : place + size] in phrases)
        size = next(lengths, 0)
        if not size:
            raise UnreadableError(text, words[place])
        unit = phrases[words[place : place + size]]
        parted = parted or not _JOINING.fullmatch(between[place])
        if unit.kind != "neutral":
            units.append(replace(unit, parted=parted))
            parted = False
        place += size
    return units


def _with_leaves(units: _Units, text: str) -> list[_Unit]:
    """Labels as leaves with their attributes: those before them, which may have "and" between them, and those behind.

    Words stand before a label; those of actions, as in "man speaking", also right behind it.
    """
    result: list[_Unit] = []
    attributes: list[str] = []
    for place, unit in enumerate(units):
        last = result[-1].leaf if result else None
        if unit.kind == "attribute" and last and not attributes and not unit.parted and stands_behind(unit.text):
            result[-1] = _Unit("leaf", leaf=Leaf(last.label, (*last.attributes, unit.text)))
        elif unit.kind == "attribute":
            attributes.append(unit.text)
        elif unit.kind == "label":
            result.append(_Unit("leaf", leaf=Leaf(unit.text, tuple(attributes))))
            attributes = []
        elif attributes:
            if not unit.has("and") or place + 1 == len(units) or units[place + 1].kind != "attribute":
                raise UnreadableError(text)
        else:
            result.append(unit)
    if attributes or any(len(set(one.leaf.attributes)) < len(one.leaf.attributes) for one in result if one.leaf):
        raise UnreadableError(text)
    return result


@dataclass
class _Parser:
    """Takes a text apart, on the levels of `captions` from the loosest to the tightest.

    Attributes:
        text: for errors.
        cues: that have been used, each with its role.
    """

    text: str
    cues: set[tuple[str, str]] = field(default_factory=set)

    def whole(self, units: _Units) -> Expression:
        """Any text; "x with y" is one of its own, since within another nobody could tell what it belongs to."""
        if len(units) > 2 and units[0].leaf and units[-1].leaf and units[1].has("with"):
            operands = self._parts(units, "with", self._leaf)
            return joined(Together, operands)
        return joined(Then, self._parts(units, "stages", self._stage))

    def _parts(self, units: _Units, role: str, parse: Any) -> list[Expression]:
        """What stands between the cues of a role."""
        parts: list[list[_Unit]] = [[]]
        for unit in units:
            if unit.has(role):
                self.cues.add((unit.text, role))
                parts.append([])
            else:
                parts[-1].append(unit)
        return [parse(part) for part in parts]

    def _stage(self, units: _Units) -> Expression:
        """Something throughout a sequence, two sequences at one time, or what is flat."""
        for role in ("throughout", "behind"):
            if not any(unit.has(role) for unit in units):
                continue
            parts = self._split_once(units, role)
            single, sequence = parts if role == "throughout" else parts[::-1]
            behind, heard = self._tight(single), self._parallel(sequence)
            if not any(isinstance(part, Then) for part in (heard, *getattr(heard, "operands", ()))):
                raise UnreadableError(self.text)
            return joined(Together, [behind, heard])
        return self._parallel(units)

    def _split_once(self, units: _Units, role: str) -> tuple[_Units, _Units]:
        places = [place for place, unit in enumerate(units) if unit.has(role)]
        if len(places) != 1:
            raise UnreadableError(self.text)
        self.cues.add((units[places[0]].text, role))
        return units[: places[0]], units[places[0] + 1 :]

    def _parallel(self, units: _Units) -> Expression:
        return joined(Together, self._parts(units, "parallel", self._flat))

    def _flat(self, units: _Units) -> Expression:
        """A sequence of what is tight, in one direction."""
        units, is_first = self._without_first(units)
        if units and units[0].has("leading_forward", "leading_reverse", "leading_together") and not is_first:
            return self._led(units)
        roles = {role for role in ("forward", "reverse") for unit in units[1:] if unit.has(role)}
        if len(roles) > 1 or (is_first and roles != {"forward"}):
            raise UnreadableError(self.text)
        if not roles:
            return self._tight(units)
        operands = self._parts(units, next(iter(roles)), self._tight)
        return joined(Then, operands if roles == {"forward"} else operands[::-1])

    def _without_first(self, units: _Units) -> tuple[_Units, bool]:
        """Without "first" before or behind what is named first."""
        for place in (0, 1):
            if len(units) > place and units[place].has("first"):
                self.cues.add((units[place].text, "first"))
                return [*units[:place], *units[place + 1 :]], True
        return units, False

    def _led(self, units: _Units) -> Expression:
        """Two leaves behind one cue: "before y, x"."""
        if len(units) != 3:
            raise UnreadableError(self.text)
        cue, one, other = units[0], *map(self._leaf, ([units[1]], [units[2]]))
        role = next(role for role in ("leading_forward", "leading_reverse", "leading_together") if cue.has(role))
        self.cues.add((cue.text, role))
        if role == "leading_together":
            return one * other
        return one + other if role == "leading_forward" else other + one

    def _tight(self, units: _Units) -> Expression:
        """A leaf, or leaves at one time: "x, y and z together"."""
        if len(units) < 3 or not units[-1].has("together"):
            return self._leaf(units)
        self.cues.add((units[-1].text, "together"))
        *listed, conjunction, last, _ = units
        if not conjunction.has("and"):
            raise UnreadableError(self.text)
        return joined(Together, [self._leaf([unit]) for unit in (*listed, last) if not unit.has("and")])

    def _leaf(self, units: _Units) -> Leaf:
        if len(units) != 1 or units[0].leaf is None:
            raise UnreadableError(self.text)
        return units[0].leaf
