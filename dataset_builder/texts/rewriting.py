"""Rows with captions and negatives by a language model, where its texts are taken; else they stay as they are."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, Protocol

import yaml
from tqdm import tqdm

from audio_compositionality.support.text import listed

from ..data import Row
from ..scenes.captioned import leaves
from .caption_reading import (
    MOST_WORDS,
    Judge,
    Judgement,
    Reason,
    UnreadableError,
    cues_of,
    kind_of,
    reading_digest,
    texts_in,
    words_in,
)
from .captions import bag_of_words, named
from .truth import Event, is_false

WRITER = "language-model"
"""In the column ``writer`` of a row that has a text of a model."""

TEMPLATE = "language-model"
"""In the column ``template`` of an item whose first two captions are a model's."""

_ROWS_AT_A_TIME = 64

_MOST_WORDS_SHOWN = 10


@dataclass(frozen=True)
class WriterReport:
    """What became of the texts that a model was asked for.

    Attributes:
        model: its name.
        asked: how many texts.
        taken: how many of them.
        refused: how many for each reason.
        left: rows that nothing was asked for, since their own captions cannot be read.
        overlap: share of words that a negative has in common with the caption, the mean of those by ``template`` and of
            those of the ``language-model``; none where there are no such negatives.
        unlisted: words for which texts were ``undecided``, the most frequent first.
    """

    model: str
    asked: int
    taken: int
    refused: Mapping[Reason, int]
    left: int
    overlap: Mapping[str, float]
    unlisted: Mapping[str, int]

    def values(self) -> dict[str, Any]:
        """As JSON values."""
        return {name: dict(value) if isinstance(value, Mapping) else value for name, value in vars(self).items()}

    def sentences(self) -> Iterator[str]:
        """What a person wants to know."""
        share = self.taken / self.asked if self.asked else 0.0
        yield f"Of {self.asked:,} texts asked of {self.model}, {self.taken:,} are taken ({share:.0%})."
        if self.refused:
            reasons = [f"{count:,} {reason!r}" for reason, count in self.refused.items()]
            yield f"Refused are {listed(reasons, len(reasons))}; the texts by template stay there."
        if self.unlisted:
            yield f"Words most often refused as undecided: {listed(list(self.unlisted), _MOST_WORDS_SHOWN)}."
        if self.left:
            yield f"Of {self.left:,} rows the captions cannot be read; nothing was asked for them."
        if self.overlap:
            shares = [f"{share:.2f} by {writer}" for writer, share in self.overlap.items()]
            yield f"Share of words that negatives have in common with the caption: {listed(shares)}."


@dataclass
class _Tally:
    """Counts of what has been judged."""

    asked: int = 0
    refused: Counter[Reason] = field(default_factory=Counter)
    left: int = 0
    unlisted: Counter[str] = field(default_factory=Counter)
    overlap: dict[str, list[float]] = field(default_factory=dict)

    def count(self, judgement: Judgement) -> None:
        self.asked += 1
        if judgement.reason is not None:
            self.refused[judgement.reason] += 1
        if judgement.word:
            self.unlisted[judgement.word] += 1

    def compare(self, writer: str, negative: str, caption: str) -> None:
        one, other = Counter(bag_of_words(negative)), Counter(bag_of_words(caption))
        self.overlap.setdefault(writer, []).append(2 * (one & other).total() / (one.total() + other.total()))

    def report(self, model: str) -> WriterReport:
        means = {writer: sum(shares) / len(shares) for writer, shares in sorted(self.overlap.items())}
        return WriterReport(
            model=model,
            asked=self.asked,
            taken=self.asked - self.refused.total(),
            refused=dict(self.refused.most_common()),
            left=self.left,
            overlap=means,
            unlisted=dict(self.unlisted.most_common(_MOST_WORDS_SHOWN)),
        )


class _Draft(Protocol):
    """A row that is being rewritten."""

    def prompts(self) -> list[str]:
        """What is asked."""
        ...

    def rewritten(self, answers: Sequence[str], tally: _Tally) -> Row:
        """The row with what is taken of the answers."""
        ...


def rewrite(
    rows: Sequence[Row], writer: LanguageModelWriter, *, progress: bool = False
) -> tuple[tuple[Row, ...], WriterReport]:
    """Rows with the texts of a model where they are taken.

    Of a training row each caption is paraphrased, the last of several is made from the sounds and their times instead,
    and three negatives are asked for; each takes the place of a text by template, a negative of one of its kind. Of an
    item each caption is paraphrased, the first two in the same words or not at all. Every row says in ``writer`` who
    wrote it.

    Args:
        rows: with ``captions``, ``events``, and ``negatives`` if they are to train with.
        writer: asks, and says whether rows of the split ``test`` are written.
        progress: show a progress bar.

    Returns:
        as many rows, and what became of the texts.
    """
    tally = _Tally()
    result: list[Row] = []
    with tqdm(total=len(rows), unit="row", desc="texts", disable=None if progress else True) as bar:
        for start in range(0, len(rows), _ROWS_AT_A_TIME):
            part = rows[start : start + _ROWS_AT_A_TIME]
            result += _rewrite(part, writer, tally)
            bar.update(len(part))
    return tuple(result), tally.report(writer.model.identity["model"])


def _rewrite(rows: Sequence[Row], writer: LanguageModelWriter, tally: _Tally) -> list[Row]:
    drafts = [_draft(row, writer, tally) for row in rows]
    prompts = [draft.prompts() if draft is not None else [] for draft in drafts]
    answers = iter(writer.model.generate([prompt for of_row in prompts for prompt in of_row]))
    result = []
    for row, draft, asked in zip(rows, drafts, prompts, strict=True):
        of_row = [next(answers) for _ in asked]
        result.append(
            {**row, "writer": row.get("writer", "template")} if draft is None else draft.rewritten(of_row, tally)
        )
    return result


def _draft(row: Row, writer: LanguageModelWriter, tally: _Tally) -> _Draft | None:
    if row["split"] == "test" and not writer.in_test:
        return None
    try:
        return _TrainingDraft(row) if "negatives" in row else _ItemDraft(row)
    except UnreadableError:
        tally.left += 1
        return None


class _TrainingDraft:
    def __init__(self, row: Row) -> None:
        self._row = row
        self._captions: list[str] = row["captions"]
        events = [Event.of(event) for event in row["events"]]
        texts = (*self._captions, *row["parts"], *(negative["text"] for negative in row["negatives"]))
        self._judges = [Judge.of(caption, events, texts=texts) for caption in self._captions]

    @property
    def _has_negatives(self) -> bool:
        """Of one sound nothing can be put in another order."""
        return len(leaves(self._judges[0].caption.expression)) > 1

    def _is_described(self, place: int) -> bool:
        return place > 0 and place == len(self._captions) - 1

    def prompts(self) -> list[str]:
        asked = [
            description_prompt(judge) if self._is_described(place) else paraphrase_prompt(judge)
            for place, judge in enumerate(self._judges)
        ]
        return [*asked, negatives_prompt(self._judges[0])] if self._has_negatives else asked

    def rewritten(self, answers: Sequence[str], tally: _Tally) -> Row:
        captions, written = [], set[str]()
        for place, caption in enumerate(self._captions):
            judge = self._beside(place, written)
            most_words = MOST_WORDS - 1 if self._is_described(place) else MOST_WORDS
            judgement = equivalent(answers[place], judge, most_words=most_words)
            tally.count(judgement)
            captions.append(judgement.text or caption)
            written.add(judgement.text)
        negatives = [dict(negative) for negative in self._row["negatives"]]
        of_template = [*negatives]
        if self._has_negatives:
            for judgement in false_texts(answers[-1], self._beside(0, written)):
                tally.count(judgement)
                written.add(judgement.text)
                self._place(judgement, negatives, of_template)
        for negative in negatives:
            writer = "template" if any(negative is one for one in of_template) else WRITER
            tally.compare(writer, negative["text"], self._captions[0])
        writer = WRITER if any(written) else "template"
        return {**self._row, "captions": captions, "negatives": negatives, "writer": writer}

    def _beside(self, place: int, written: set[str]) -> Judge:
        judge = self._judges[place]
        for text in written:
            judge = judge.beside(text)
        return judge

    def _place(self, judgement: Judgement, negatives: list[dict[str, str]], of_template: list[dict[str, str]]) -> None:
        """Put a negative in the place of one by template of its kind, so that there are as many of each; else last."""
        caption = self._judges[0].caption
        if judgement.reading is None:
            return
        new = {"text": judgement.text, "kind": kind_of(judgement.reading, caption)}
        replaced = next((one for one in of_template if one["kind"] == new["kind"]), None)
        if replaced is None:
            negatives.append(new)
            return
        of_template.remove(replaced)
        negatives[next(place for place, one in enumerate(negatives) if one is replaced)] = new


class _ItemDraft:
    def __init__(self, row: Row) -> None:
        self._row = row
        self._captions: list[str] = row["captions"]
        self._events = [[Event.of(event) for event in of_clip] for of_clip in row["events"]]
        self._judges = [
            Judge.of(caption, events, texts=self._captions, training=row["split"] != "test")
            for caption, events in zip(self._captions, self._events, strict=True)
        ]

    def prompts(self) -> list[str]:
        return [paraphrase_prompt(judge) for judge in self._judges]

    def rewritten(self, answers: Sequence[str], tally: _Tally) -> Row:
        judgements = []
        for place, (answer, judge) in enumerate(zip(answers, self._judges, strict=True)):
            judgement = equivalent(answer, judge)
            of_others = (events for number, events in enumerate(self._events) if number != place)
            if judgement.reading is not None and not all(
                is_false(judgement.reading.expression, events) for events in of_others
            ):
                judgement = Judgement(reason="wrong")
            judgements.append(judgement)
        judgements[:2] = _twins(*judgements[:2])
        for judgement in judgements:
            tally.count(judgement)
        taken = [judgement.text for judgement in judgements]
        captions = [text or caption for text, caption in zip(taken, self._captions, strict=True)]
        changes = {"captions": captions, "writer": WRITER if any(taken) else self._row["writer"]}
        return {**self._row, **changes, **({"template": TEMPLATE} if taken[0] else {})}


def _twins(one: Judgement, other: Judgement) -> tuple[Judgement, Judgement]:
    """Both, if they have the same words: else wording alone would tell the two captions of an item apart."""
    if one.text and other.text and sorted(words_in(one.text)) == sorted(words_in(other.text)):
        return one, other
    refused = Judgement(reason="twins")
    return (refused if one.text else one), (refused if other.text else other)


NEGATIVES = 3
"""How many are asked for (arXiv 2310.08753)."""


class TextModel(Protocol):
    """What answers prompts; `language_model.LanguageModel` is one."""

    @property
    def identity(self) -> Mapping[str, str]:
        """``model``, ``revision`` and whatever else decides its answers."""
        ...

    def generate(self, prompts: Sequence[str]) -> Sequence[str]:
        """The answer to each prompt."""
        ...


class LanguageModelWriter:
    """Asks a model for texts about clips.

    Attributes:
        model: that is asked.
        in_test: whether it writes rows of the split ``test`` too. Models that are tested should not read what a model
            of their kind wrote, so it has to be asked for.
    """

    def __init__(self, model: TextModel, *, in_test: bool = False) -> None:
        self.model = model
        self.in_test = in_test

    @property
    def identity(self) -> dict[str, Any]:
        """All that decides which texts are taken from which rows, but for the rows themselves, as JSON values."""
        return {**self.model.identity, "prompts": writer_digest(), "in_test": self.in_test}


def equivalent(answer: str, judge: Judge, *, most_words: int = MOST_WORDS) -> Judgement:
    """The caption of an answer."""
    texts = texts_in(answer, "caption")
    if texts is None:
        return Judgement(reason="no JSON")
    return judge.equivalent(texts[0] if texts else None, most_words=most_words)


def false_texts(answer: str, judge: Judge) -> list[Judgement]:
    """The first `NEGATIVES` negatives of an answer; none of them comes twice."""
    texts = texts_in(answer, "negatives")
    if texts is None:
        return [Judgement(reason="no JSON")] * NEGATIVES
    judgements: list[Judgement] = []
    for text in [*texts, *[None] * NEGATIVES][:NEGATIVES]:
        judgements.append(judge.negative(text))
        judge = judge.beside(judgements[-1].text)
    return judgements


def paraphrase_prompt(judge: Judge) -> str:
    """What is asked for the caption in other words."""
    return _prompt("paraphrase", judge, caption=judge.text)


def description_prompt(judge: Judge) -> str:
    """What is asked for a caption of less than `MOST_WORDS` words, from the sounds and their times alone."""
    return _prompt("description", judge, sounds="\n".join(_sounds(judge)))


def negatives_prompt(judge: Judge) -> str:
    """What is asked for `NEGATIVES` texts of the sounds of the caption that are false of the clip."""
    return _prompt("negatives", judge, caption=judge.text, count=str(NEGATIVES))


def _prompt(name: str, judge: Judge, **values: str) -> str:
    mention = judge.caption.mention
    return Template(_content()[name]).substitute(
        values,
        order=_content()["order"][mention],
        joining=", ".join(_joining(mention)),
        verbs=", ".join(_content()["verbs"]),
    )


@cache
def _joining(mention: str) -> tuple[str, ...]:
    """Words that join sounds, of sequences in one direction; none that is kept from training."""
    sequence = cues_of("reverse") if mention == "reverse" else cues_of("forward")
    every = (*sequence, *cues_of("with", "together", "throughout"))
    return tuple(dict.fromkeys(every))


def _sounds(judge: Judge) -> list[str]:
    """The sounds with their times, a line each, in the order of their beginnings."""
    lines = []
    for leaf in leaves(judge.caption.expression):
        fitting = [event for event in judge.events if event.is_of(leaf)]
        times = ", ".join(f"{event.start:.1f} to {event.stop:.1f} s" for event in fitting)
        lines.append((min((event.start for event in fitting), default=0.0), f"- {named(leaf)}: {times}"))
    return [line for _, line in sorted(lines)]


@cache
def writer_digest() -> str:
    """SHA-256 of the prompts and of the words that can be read: they decide which texts are taken."""
    return hashlib.sha256(json.dumps([_content(), reading_digest()], sort_keys=True).encode()).hexdigest()


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(files(__package__).joinpath("writer.yaml").read_text("utf-8"))
    return content
