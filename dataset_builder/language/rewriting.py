"""Rows with captions and negatives by a language model, where its texts are taken; else they stay as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tqdm import tqdm

from audio_compositionality.support.text import listed

from ..data import Row
from .acceptance import MOST_WORDS, Judge, Judgement, Reason, kind_of
from .captions import bag_of_words
from .expressions import leaves
from .reading import UnreadableError, words_in
from .truth import Event, is_false
from .writer import (
    LanguageModelWriter,
    description_prompt,
    equivalent,
    false_texts,
    negatives_prompt,
    paraphrase_prompt,
)

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
        reading = self._judges[0].caption
        return reading is not None and len(leaves(reading.expression)) > 1

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
        if judgement.reading is None or caption is None:
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
