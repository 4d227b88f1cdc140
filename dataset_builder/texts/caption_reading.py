"""The meaning of an untrusted text, and the acceptance of texts by a language model.

Reading applies the grammar of `captions` backwards, with the synonyms of ``reading.yaml``. It is strict: a text has no
reading if a word is not listed and is no noun or attribute of the clip, or if joints are ambiguous. Each caption of the
grammar is read as the expression that it was made from.

A model is not trusted. Its answer is searched for JSON of the requested form, within limits of size and depth. A text
in it must name the sounds of the caption and be readable; otherwise it is refused as ``undecided``, however good it may
be. Then the same `truth` decides as for captions from templates.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Literal

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import packaged_yaml, sha256_of_json

from ..scenes.captioned import Expression, Leaf, Then, Together, formula, joined, leaves, replaced
from ..sounds.entries import word_places
from .captions import Mention, caption_templates, stands_behind
from .truth import HeardEvent, NegativeKind, false_variants, is_false, is_true

_WORD = re.compile(r"[^\W_]+")

_JOINING = re.compile(r"[\s_-]*")
"""Separators of words that belong together."""

_PUNCTUATION = re.compile(r"[\s,.;:!\"'()_–—-]*")
"""Separators of words. A question mark, a slash or any other character may carry meaning."""


class UnreadableError(InputError):
    """A text whose meaning is uncertain.

    Attributes:
        word: the first unlisted word; empty if only the joints of the parts are ambiguous.
    """

    def __init__(self, text: str, word: str = "") -> None:
        why = (
            f"{word!r} is not a word of reading.yaml"
            if word
            else "its parts can be joined in no way or in several ways"
        )
        super().__init__(f"{text!r} cannot be read: {why}")
        self.word = word


@dataclass(frozen=True)
class CaptionReading:
    """The meaning of a text.

    Attributes:
        expression: its leaves are in the order of their roles, not of the text.
        mention: ``forward`` if the first sound is named first in every sequence, ``reverse`` if it is named last, empty
            if there is no sequence.
        cues: phrases that join its parts, each with its role.
    """

    expression: Expression
    mention: Mention
    cues: frozenset[tuple[str, str]]

    @property
    def formula(self) -> str:
        """Return the formula; see `formula_of`."""
        return formula_of(self.expression)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return its labels, sorted; each as often as the text names it."""
        return tuple(sorted(leaf.label for leaf in leaves(self.expression)))

    @property
    def held_out(self) -> bool:
        """Return whether it contains the words of a template reserved for test."""
        return any(cues <= self.cues for cues in _held_out_cues())


def formula_of(expression: Expression) -> str:
    """Return the formula as `scenes.captioned.formula` does, but independent of the order of a leaf's words."""
    new = [replace(leaf, attributes=tuple(sorted(leaf.attributes))) for leaf in leaves(expression)]
    return formula(replaced(expression, new))


def words_in(text: str) -> tuple[str, ...]:
    """Return a text's words in lower case, also split at ``_`` and ``-``, without punctuation."""
    return tuple(_WORD.findall(text.lower()))


@dataclass(frozen=True)
class Vocabulary:
    """The names that may occur in a text about a clip.

    Attributes:
        labels: labels of its events.
        attributes: words that may precede them; words of the lexicon are added.
    """

    labels: frozenset[str]
    attributes: frozenset[str] = frozenset()

    @classmethod
    def of(cls, leaves: Iterable[Leaf]) -> Vocabulary:
        """Return the names in some leaves."""
        every = tuple(leaves)
        return cls(frozenset(leaf.label for leaf in every), frozenset(word for one in every for word in one.attributes))

    @cached_property
    def phrases(self) -> Mapping[tuple[str, ...], _Unit]:
        """Return the unit of each sequence of words; a label takes precedence, then an attribute, then a cue."""
        attributes = {words_in(word): _Unit("attribute", word) for word in self.attributes}
        return {**_listed(), **attributes, **{words_in(label): _Unit("label", label) for label in self.labels}}


def read(text: str, vocabulary: Vocabulary) -> CaptionReading:
    """Return the meaning of a text.

    Raises:
        UnreadableError: it is ambiguous or unknown.
    """
    parser = _Parser(text)
    expression = parser.whole(_with_leaves(_units(text, vocabulary), text))
    mentions = {_MENTIONS[role] for _, role in parser.cues if role in _MENTIONS}
    if len(mentions) > 1:
        raise UnreadableError(text)
    stages = any(role == "stages" for _, role in parser.cues)
    return CaptionReading(expression, next(iter(mentions), "forward" if stages else ""), frozenset(parser.cues))


@cache
def reading_digest() -> str:
    """Return the SHA-256 of ``reading.yaml``."""
    return sha256_of_json(_content())


def cues_of(*roles: str) -> tuple[str, ...]:
    """Return the phrases with some roles that are in no template reserved for test."""
    kept = {cue for cues in _held_out_cues() for cue in cues}
    return tuple(phrase for role in roles for phrase in _content()["roles"][role] if (phrase, role) not in kept)


def _content() -> Mapping[str, Any]:
    content: Mapping[str, Any] = packaged_yaml(__package__, "reading.yaml")
    return content


@cache
def _roles() -> Mapping[str, frozenset[str]]:
    """Return the roles of each cue."""
    roles: dict[str, set[str]] = {}
    for role, phrases in _content()["roles"].items():
        for phrase in phrases:
            roles.setdefault(phrase, set()).add(role)
    return {phrase: frozenset(of_phrase) for phrase, of_phrase in roles.items()}


@cache
def _listed() -> Mapping[tuple[str, ...], _Unit]:
    """Return the units that can be read for any clip."""
    listed: dict[tuple[str, ...], _Unit] = {words_in(phrase): _Unit("neutral") for phrase in _content()["neutral"]}
    listed |= {words_in(phrase): _Unit("cue", phrase) for phrase in _roles()}
    return listed | {words_in(word): _Unit("attribute", word) for of_one in word_places().values() for word in of_one}


@cache
def _held_out_cues() -> tuple[frozenset[tuple[str, str]], ...]:
    """Return the cues of each template reserved for test, e.g. a leading ``before`` for a sequence."""
    two = Vocabulary(frozenset({"x1", "y1"}))
    every = (template for of_meaning in caption_templates().values() for template in of_meaning if template.held_out)
    return tuple(read(template.join("x1", "y1"), two).cues for template in every)


_MENTIONS: Mapping[str, Mention] = {
    "forward": "forward",
    "leading_forward": "forward",
    "reverse": "reverse",
    "leading_reverse": "reverse",
}


@dataclass(frozen=True)
class _Unit:
    """One or more words with one meaning.

    Attributes:
        kind: label, attribute, cue, neutral; leaf, once labels have their attributes.
        text: the label, attribute or cue.
        leaf: the leaf, if it is one.
        parted: whether a comma or similar precedes it.
    """

    kind: str
    text: str = ""
    leaf: Leaf | None = None
    parted: bool = False

    def has(self, *roles: str) -> bool:
        """Return whether it is a cue with one of these roles."""
        return self.kind == "cue" and not _roles()[self.text].isdisjoint(roles)


_Units = Sequence[_Unit]


def _units(text: str, vocabulary: Vocabulary) -> list[_Unit]:
    """Return the units of a text, the longest that fit, without the neutral ones."""
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
    """Return labels as leaves with their attributes: before them, possibly joined by "and", and after them.

    Attributes precede a label; attributes for actions, as in "man speaking", may also follow it directly.
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
    """Parses a text, on the levels of `captions` from the loosest to the tightest.

    Attributes:
        text: the text, for errors.
        cues: cues found so far, each with its role.
    """

    text: str
    cues: set[tuple[str, str]] = field(default_factory=set)

    def whole(self, units: _Units) -> Expression:
        """Parse any text; "x with y" must be the whole text, since inside another its scope would be ambiguous."""
        if len(units) > 2 and units[0].leaf and units[-1].leaf and units[1].has("with"):
            operands = self._parts(units, "with", self._leaf)
            return joined(Together, operands)
        return joined(Then, self._parts(units, "stages", self._stage))

    def _parts(self, units: _Units, role: str, parse: Any) -> list[Expression]:
        """Return the expressions between the cues of a role."""
        parts: list[list[_Unit]] = [[]]
        for unit in units:
            if unit.has(role):
                self.cues.add((unit.text, role))
                parts.append([])
            else:
                parts[-1].append(unit)
        return [parse(part) for part in parts]

    def _stage(self, units: _Units) -> Expression:
        """Parse a sound throughout a sequence, two simultaneous sequences, or a flat expression."""
        for role in ("throughout", "behind"):
            places = [place for place, unit in enumerate(units) if unit.has(role)]
            if not places:
                continue
            if len(places) > 1:
                raise UnreadableError(self.text)
            self.cues.add((units[places[0]].text, role))
            parts = units[: places[0]], units[places[0] + 1 :]
            single, sequence = parts if role == "throughout" else parts[::-1]
            behind, heard = self._tight(single), joined(Together, self._parts(sequence, "parallel", self._flat))
            if not any(isinstance(part, Then) for part in (heard, *getattr(heard, "operands", ()))):
                raise UnreadableError(self.text)
            return joined(Together, [behind, heard])
        return joined(Together, self._parts(units, "parallel", self._flat))

    def _flat(self, units: _Units) -> Expression:
        """Parse a sequence of tight expressions in one direction, or two leaves after one cue: "before y, x"."""
        # "First" precedes or follows the sound that is named first.
        first = next((place for place in (0, 1) if len(units) > place and units[place].has("first")), None)
        is_first = first is not None
        if first is not None:
            self.cues.add((units[first].text, "first"))
            units = [*units[:first], *units[first + 1 :]]
        leading = ("leading_forward", "leading_reverse", "leading_together")
        if units and units[0].has(*leading) and not is_first:
            if len(units) != 3:
                raise UnreadableError(self.text)
            one, other = self._leaf([units[1]]), self._leaf([units[2]])
            role = next(role for role in leading if units[0].has(role))
            self.cues.add((units[0].text, role))
            if role == "leading_together":
                return one * other
            return one + other if role == "leading_forward" else other + one
        roles = {role for role in ("forward", "reverse") for unit in units[1:] if unit.has(role)}
        if len(roles) > 1 or (is_first and roles != {"forward"}):
            raise UnreadableError(self.text)
        if not roles:
            return self._tight(units)
        operands = self._parts(units, next(iter(roles)), self._tight)
        return joined(Then, operands if roles == {"forward"} else operands[::-1])

    def _tight(self, units: _Units) -> Expression:
        """Parse a leaf, or simultaneous leaves: "x, y and z together"."""
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


Reason = Literal[
    "no JSON",
    "no text",
    "too long",
    "sounds",
    "repeated",
    "undecided",
    "wrong",
    "direction",
    "kept for test",
    "counterparts",
]
"""Reasons to refuse a text.

- ``no JSON``: the answer has no object with the requested key.
- ``no text``: there is none, or it has invisible characters.
- ``too long``: it has more than `MOST_WORDS` words.
- ``sounds``: it does not name each sound of the caption once.
- ``repeated``: it has the words of another text of the row, in the same order.
- ``undecided``: its meaning is ambiguous or unknown; see `CaptionReading`.
- ``wrong``: its meaning differs from the caption's, or is not true of the clip; or as a negative, it is not false.
- ``direction``: it names the last sound first although the caption does not, or vice versa. Otherwise a model that
  always names the first sound first would undo the balance of the templates, and "after" would never be learnt.
- ``kept for test``: a training row would get the words of a template reserved for test.
- ``counterparts``: the other caption of an item, which has the same words, was refused, or has other words.
"""

MOST_WORDS = 30
"""Most words of a text (arXiv 2310.08753)."""

_LONGEST_ANSWER, _LONGEST_TEXT, _MOST_OBJECTS = 20_000, 500, 50
"""Characters that are searched, and places at which JSON is looked for."""

_END_OF_THOUGHT = "</think>"
"""The end of a model's thoughts, which are not part of the answer."""


def texts_of_answer(answer: str, key: str) -> list[Any] | None:
    """Return the values under a key of the first JSON object in an answer that has this key; None if there is none.

    Args:
        answer: any text.
        key: key of a text or a list.
    """
    searched = answer.rpartition(_END_OF_THOUGHT)[2][:_LONGEST_ANSWER]
    decoder = json.JSONDecoder()
    start = -1
    for _ in range(_MOST_OBJECTS):
        start = searched.find("{", start + 1)
        if start < 0:
            return None
        try:
            content, _ = decoder.raw_decode(searched, start)
        # Numbers of thousands of digits raise a ValueError, thousands of nested brackets a RecursionError.
        except (ValueError, RecursionError):
            continue
        if isinstance(content, dict) and key in content:
            value = content[key]
            return value if isinstance(value, list) else [value]
    return None


def tidy(text: Any, spelled: str = "") -> str | None:
    """Return a text in the form of captions: one line, lower case, no full stop; None if it is not a text.

    Args:
        text: any value.
        spelled: a text whose capitalised words keep their spelling.
    """
    if not isinstance(text, str) or len(text) > _LONGEST_TEXT:
        return None
    line = " ".join(text.split()).rstrip(" .!")
    if not line or not line.isprintable():
        return None
    line = line.lower()
    for word in set(re.findall(r"\w+", spelled)):
        if word != word.lower():
            line = re.sub(rf"\b{word.lower()}\b", word, line)
    return line


@dataclass(frozen=True)
class Judgement:
    """The decision about a text.

    Attributes:
        text: the text if accepted; empty if refused.
        reason: why it was refused; None if accepted.
        reading: reading of an accepted text.
        word: the unlisted word, if a text is undecided for this reason.
    """

    text: str = ""
    reason: Reason | None = None
    reading: CaptionReading | None = None
    word: str = ""


@dataclass(frozen=True)
class Judge:
    """Decides on texts that replace or accompany a caption.

    Attributes:
        text: the caption.
        caption: its meaning.
        events: events of the clip.
        texts: texts of the row, in the form of `words_in`; none may occur twice.
        training: whether the row is for training: words reserved for test are then refused.
    """

    text: str
    caption: CaptionReading
    events: Sequence[HeardEvent]
    texts: Collection[tuple[str, ...]] = ()
    training: bool = True

    @classmethod
    def of(
        cls,
        caption: str,
        events: Sequence[HeardEvent],
        *,
        texts: Iterable[str] = (),
        training: bool = True,
    ) -> Judge:
        """Return a judge of texts that replace or accompany a caption.

        Args:
            caption: a caption that is true of the clip.
            events: events of the clip.
            texts: other texts of the row.
            training: see `Judge`.

        Raises:
            UnreadableError: the caption cannot be read.
        """
        reading = read(caption, vocabulary_of(events))
        return cls(caption, reading, events, frozenset(map(words_in, (caption, *texts))), training)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the sounds that a text must name, each once."""
        return self.caption.labels

    def beside(self, *texts: str) -> Judge:
        """Return a judge with further texts in the row; empty texts are ignored."""
        return replace(self, texts=frozenset(self.texts) | set(map(words_in, filter(None, texts))))

    def equivalent(self, text: Any, *, most_words: int = MOST_WORDS) -> Judgement:
        """Judge a paraphrase: it must have the meaning of the caption, which is true of the clip."""
        judgement = self._readable(text, most_words)
        reading = judgement.reading
        if reading is None:
            return judgement
        if reading.formula != self.caption.formula or not is_true(reading.expression, self.events):
            return Judgement(reason="wrong")
        return judgement

    def negative(self, text: Any) -> Judgement:
        """Judge a text that must name the same sounds and be false of the clip."""
        judgement = self._readable(text, MOST_WORDS)
        reading = judgement.reading
        if reading is not None and not is_false(reading.expression, self.events):
            return Judgement(reason="wrong")
        return judgement

    def _readable(self, text: Any, most_words: int) -> Judgement:
        """Check the requirements common to true and false texts."""
        line = tidy(text, self.text)
        if line is None:
            return Judgement(reason="no text")
        words = words_in(line)
        if len(words) > most_words:
            return Judgement(reason="too long")
        for part in map(words_in, self.labels):
            if not any(words[start : start + len(part)] == part for start in range(len(words))):
                return Judgement(reason="sounds")
        if words in self.texts:
            return Judgement(reason="repeated")
        try:
            reading = read(line, vocabulary_of(self.events))
        except UnreadableError as error:
            return Judgement(reason="undecided", word=error.word)
        if reading.labels != self.labels:
            return Judgement(reason="sounds")
        mention = self.caption.mention
        if reading.mention and mention and reading.mention != mention:
            return Judgement(reason="direction")
        if self.training and reading.held_out:
            return Judgement(reason="kept for test")
        return Judgement(line, reading=reading)


def vocabulary_of(events: Iterable[HeardEvent]) -> Vocabulary:
    """Return the permitted names: all sounds of the clip."""
    return Vocabulary.of(Leaf(event.label, event.attributes) for event in events)


def negative_kind(negative: CaptionReading, caption: CaptionReading) -> NegativeKind:
    """Return the kind of a negative with the sounds of a caption: the single change from the caption.

    After several changes: ``attribute`` if a sound has other words, ``order`` if the same parts are in other positions,
    else ``relation``.
    """
    for variant, kind in false_variants(caption.expression):
        if formula_of(variant) == negative.formula:
            return kind
    one, other = (sorted(map(formula_of, leaves(reading.expression))) for reading in (negative, caption))
    if one != other:
        return "attribute"
    return "order" if _shape(negative.expression) == _shape(caption.expression) else "relation"


def _shape(expression: Expression) -> str:
    if isinstance(expression, Leaf):
        return "x"
    parts = [_shape(operand) for operand in expression.operands]
    return f"({' * '.join(sorted(parts))})" if isinstance(expression, Together) else f"({' + '.join(parts)})"


Tag = Callable[[str], Iterable[tuple[str, str]]]
"""A function that returns the words of a text with their Penn Treebank tags (Marcus et al., 1993)."""

CLASSES: Mapping[str, str] = {
    "NN": "nouns",
    "VB": "verbs",
    "JJ": "adjectives",
    "RB": "adverbs",
    "IN": "prepositions and subordinating conjunctions",
    "TO": "prepositions and subordinating conjunctions",
    "DT": "determiners",
    "CC": "coordinating conjunctions",
    "PR": "pronouns",
    "CD": "numbers",
}
"""Parts of speech by the first two letters of a tag."""

OTHER = "other words"


@dataclass(frozen=True)
class WordStatistics:
    """Counts of words in captions.

    Attributes:
        captions: number of captions.
        different: number of different texts.
        words: words of all captions, without punctuation.
        vocabulary: number of different words, ignoring case.
        classes: number of words of each part of speech, by its name, most frequent first.
        nouns: count of each noun, in lower case, most frequent first.
    """

    captions: int
    different: int
    words: int
    vocabulary: int
    classes: Mapping[str, int]
    nouns: Mapping[str, int]

    @property
    def words_per_caption(self) -> float:
        """Return the mean number of words."""
        return self.words / self.captions

    @property
    def nouns_per_caption(self) -> float:
        """Return the mean number of nouns."""
        return sum(self.nouns.values()) / self.captions


def open_tagger() -> Tag:
    """Return a tagger.

    Raises:
        InputError: TextBlob is not installed.
    """
    try:
        from textblob.en.taggers import PatternTagger
    except ImportError as error:
        raise InputError(
            "parts of speech need textblob, which is not installed: pip install 'audio-compositionality[captions]'"
        ) from error
    tagger = PatternTagger()
    return lambda text: [(str(word), str(tag)) for word, tag in tagger.tag(text)]


def word_statistics(captions: Sequence[str], tag: Tag) -> WordStatistics:
    """Return counts of words in captions by their parts of speech.

    Args:
        captions: one or more.
        tag: a tagger, see `open_tagger`; punctuation is not counted.

    Raises:
        InputError: there are no captions.
    """
    if not captions:
        raise InputError("there are no captions to count words of")
    counted = Counter(captions)
    classes: Counter[str] = Counter()
    nouns: Counter[str] = Counter()
    vocabulary: set[str] = set()
    # Each different text is tagged once.
    for caption, times in counted.items():
        for word, name in tag(caption):
            if not any(letter.isalnum() for letter in word):
                continue
            kind = CLASSES.get(name[:2], OTHER)
            classes[kind] += times
            vocabulary.add(word.lower())
            if kind == CLASSES["NN"]:
                nouns[word.lower()] += times
    return WordStatistics(
        captions=len(captions),
        different=len(counted),
        words=classes.total(),
        vocabulary=len(vocabulary),
        classes=dict(classes.most_common()),
        nouns=dict(nouns.most_common()),
    )
