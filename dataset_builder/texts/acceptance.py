"""Which of a language model's texts are taken: those that a program can read and that pass its test of truth.

Nothing is trusted. An answer is searched for JSON of the form that was asked for, within bounds of size and depth; a
text of it has to name what the caption names, and be read by `reading`: where no certain meaning can be read, the text
is refused as ``undecided``, however well it may sound. Then the same `truth` decides as for the captions by rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..scenes.expressions import Expression, Leaf, Together, leaves
from .caption_reading import Reading, UnreadableError, Vocabulary, formula_of, read, words_in
from .truth import Event, is_false, is_true
from .variants import Kind, false_variants

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
    "twins",
]
"""Why a text is refused.

- ``no JSON``: the answer holds no object with the key that was asked for.
- ``no text``: there is none, or it has characters that nobody sees.
- ``too long``: it has more than `MOST_WORDS` words.
- ``sounds``: it does not name the sounds that the caption names, each once.
- ``repeated``: it has the words of another text of the row, in their order.
- ``undecided``: what it says is not certain; see `reading`.
- ``wrong``: it says something else than the caption, or is not true of the clip; or as a negative, it is not false.
- ``direction``: it names what is heard last first where the caption does not, or the other way round. Otherwise a model
  that always names the first sound first would undo the balance of the templates, and with it "after" is never learnt.
- ``kept for test``: a training row would get the words of a template that is kept from training.
- ``twins``: of the captions of an item, which have the same words, the other one was refused, or it has other words.
"""

MOST_WORDS = 30
"""Of a text (arXiv 2310.08753)."""

_LONGEST_ANSWER, _LONGEST_TEXT, _MOST_OBJECTS = 20_000, 500, 50
"""Characters that are looked at, and places at which JSON is looked for."""

_END_OF_THOUGHT = "</think>"
"""What comes before it in an answer is no answer."""


def texts_in(answer: str, key: str) -> list[Any] | None:
    """The values under a key of the first JSON object in an answer that has it; None where there is none.

    Args:
        answer: anything.
        key: of a text or a list.
    """
    searched = answer.rpartition(_END_OF_THOUGHT)[2][:_LONGEST_ANSWER]
    for content in _objects(searched):
        if key in content:
            value = content[key]
            return value if isinstance(value, list) else [value]
    return None


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    start = -1
    for _ in range(_MOST_OBJECTS):
        start = text.find("{", start + 1)
        if start < 0:
            return
        try:
            content, _ = decoder.raw_decode(text, start)
        # Numbers of thousands of digits are a ValueError, brackets of thousands of levels a RecursionError.
        except (ValueError, RecursionError):
            continue
        if isinstance(content, dict):
            yield content


def tidy(text: Any, spelled: str = "") -> str | None:
    """A text as captions are written: one line, in lower case, no full stop; None if it is none.

    Args:
        text: anything.
        spelled: a text whose words in capitals stay as they are there.
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
    """What became of a text.

    Attributes:
        text: that is taken; empty where it was refused.
        reason: why it was refused; None where it was taken.
        reading: of a text that is taken.
        word: of one that is undecided, the word that is not listed, if that is why.
    """

    text: str = ""
    reason: Reason | None = None
    reading: Reading | None = None
    word: str = ""


@dataclass(frozen=True)
class Judge:
    """Decides on texts that stand for a caption or beside it.

    Attributes:
        text: of the caption; of labels with times these alone.
        caption: what it says; None of labels with times.
        events: of the clip.
        texts: of the row, as `words_in` has them; none may come twice.
        training: whether the row is one to train with: what is kept for test is refused.
    """

    text: str
    caption: Reading | None
    events: Sequence[Event]
    texts: Collection[tuple[str, ...]] = ()
    training: bool = True

    @classmethod
    def of(
        cls,
        caption: str,
        events: Sequence[Event],
        *,
        texts: Iterable[str] = (),
        training: bool = True,
    ) -> Judge:
        """For texts that stand for a caption or beside it.

        Args:
            caption: true of the clip.
            events: of the clip.
            texts: others of the row.
            training: see `Judge`.

        Raises:
            UnreadableError: the caption cannot be read.
        """
        reading = read(caption, vocabulary_of(events))
        return cls(caption, reading, events, frozenset(map(words_in, (caption, *texts))), training)

    @classmethod
    def of_labels(cls, events: Sequence[Event]) -> Judge:
        """For captions of labels with times: one names them all, each once."""
        return cls(" ".join(event.label for event in events), None, events)

    @property
    def labels(self) -> tuple[str, ...]:
        """The sounds that a text has to name, each once; without a caption all that are heard."""
        return tuple(sorted({event.label for event in self.events})) if self.caption is None else self.caption.labels

    def beside(self, text: str) -> Judge:
        """The same with one more text in the row; an empty one is none."""
        return replace(self, texts=frozenset(self.texts) | {words_in(text)}) if text else self

    def equivalent(self, text: Any, *, most_words: int = MOST_WORDS) -> Judgement:
        """A text in other words: it says what the caption says, and that is true of the clip."""
        judgement = self._readable(text, most_words)
        reading = judgement.reading
        if reading is None:
            return judgement
        says_the_same = self.caption is None or reading.formula == self.caption.formula
        if not says_the_same or not is_true(reading.expression, self.events):
            return Judgement(reason="wrong")
        return judgement

    def negative(self, text: Any) -> Judgement:
        """A text that names the same sounds and is false of the clip."""
        judgement = self._readable(text, MOST_WORDS)
        reading = judgement.reading
        if reading is not None and not is_false(reading.expression, self.events):
            return Judgement(reason="wrong")
        return judgement

    def _readable(self, text: Any, most_words: int) -> Judgement:
        """All that a text has to fulfil whether it is to be true or false."""
        line = tidy(text, self.text)
        if line is None:
            return Judgement(reason="no text")
        words = words_in(line)
        if len(words) > most_words:
            return Judgement(reason="too long")
        if not all(_holds(words, words_in(label)) for label in self.labels):
            return Judgement(reason="sounds")
        if words in self.texts:
            return Judgement(reason="repeated")
        try:
            reading = read(line, vocabulary_of(self.events))
        except UnreadableError as error:
            return Judgement(reason="undecided", word=error.word)
        if reading.labels != self.labels:
            return Judgement(reason="sounds")
        mention = reading.mention if self.caption is None else self.caption.mention
        if reading.mention and mention and reading.mention != mention:
            return Judgement(reason="direction")
        if self.training and reading.held_out:
            return Judgement(reason="kept for test")
        return Judgement(line, reading=reading)


def vocabulary_of(events: Iterable[Event]) -> Vocabulary:
    """What may be named: all that is heard."""
    return Vocabulary.of(Leaf(event.label, event.attributes) for event in events)


def _holds(words: Sequence[str], part: Sequence[str]) -> bool:
    """Whether some words stand in a text one after the other."""
    return any(tuple(words[start : start + len(part)]) == part for start in range(len(words)))


def kind_of(negative: Reading, caption: Reading) -> Kind:
    """The kind of a negative that names the sounds of a caption: that of the one change that makes it of the caption.

    Where several changes do: ``attribute`` if a sound has other words, ``order`` if the same parts stand in other
    places, else ``relation``.
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
