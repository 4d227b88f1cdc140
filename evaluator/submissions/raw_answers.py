"""Answers as a submission holds them: the raw text of each beside its question's id, a line of JSON each."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from audio_compositionality.evaluator.results.strict import ResultError, read_json, told
from audio_compositionality.evaluator.run.opened import OpenedTask
from audio_compositionality.support.text import shortened

MAX_ANSWER = 20_000
"""Characters of an answer; a thought of 1,024 tokens has about 5,000."""

MAX_ID = 300
"""Characters of a question's id."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""In place of a character that cannot stand in a submission."""

_UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters but tab and line ends, and halves of a surrogate pair, which are no text."""


def question_ids(opened: OpenedTask) -> list[str]:
    """What names each prompt of a task: its row's id, behind which those of a row with several are counted from 0."""
    return [
        row["id"] if len(one.prompts) == 1 else f"{row['id']}?{number}"
        for row, one in zip(opened.rows, opened.inputs, strict=True)
        for number in range(len(one.prompts))
    ]


@dataclass(frozen=True)
class RawAnswers:
    """What a model answered to the questions of a task.

    Attributes:
        ids: of the questions, in the order of the data, see `question_ids`.
        texts: the answers, word for word; of some that a submission cannot hold see `of`.
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]

    @classmethod
    def of(cls, ids: Sequence[str], answers: Sequence[str]) -> RawAnswers:
        """Answers as they can be submitted: control characters that no text needs are replaced.

        Raises:
            ResultError: an answer is too long.
        """
        for id, answer in zip(ids, answers, strict=True):
            if len(answer) > MAX_ANSWER:
                raise ResultError(
                    f"the answer to {id} has {len(answer):,} characters, at most {MAX_ANSWER:,} can be submitted: "
                    "evaluate it with fewer new tokens; without answers the result can be submitted, and stays "
                    "self-reported"
                )
        return cls(tuple(ids), tuple(_UNSAFE.sub(REPLACEMENT, answer) for answer in answers))

    def dumps(self) -> bytes:
        """As JSON Lines in ASCII, ``{"id": …, "answer": …}`` each. Its bytes depend on its content alone."""
        return "".join(_line(id, text) for id, text in zip(self.ids, self.texts, strict=True)).encode("ascii")

    @classmethod
    def loads(cls, content: bytes) -> RawAnswers:
        """From a file that a stranger wrote, which the caller has found to be of a size that can be read.

        Raises:
            ResultError: it is not byte for byte what `dumps` writes: no lines of JSON, other names or types, a text
                that is too long or has control characters, or an id that stands twice.
        """
        try:
            *lines, rest = content.decode("ascii").split("\n")
        except UnicodeDecodeError as error:
            raise ResultError(f"byte {error.start + 1:,} is none of ASCII, in which JSON can write all texts") from None
        if rest or not lines:
            raise ResultError("its last line has no end" if rest else "it is empty")
        pairs = []
        for number, line in enumerate(lines, 1):
            try:
                pairs.append(_read(line))
            except ResultError as error:
                raise ResultError(f"line {number:,}: {error}") from None
        id, count = Counter(id for id, _ in pairs).most_common(1)[0]
        if count > 1:
            raise ResultError(f"it has {count:,} answers to {shortened(id, 100)}; one answer can be to each question")
        return cls(tuple(id for id, _ in pairs), tuple(text for _, text in pairs))

    def problem_of(self, ids: Sequence[str]) -> str | None:
        """Why these are not the answers to some questions, in their order; None where they are."""
        if self.ids == tuple(ids):
            return None
        asked, answered = set(ids), set(self.ids)
        unknown = next((id for id in self.ids if id not in asked), None)
        if unknown is not None:
            return f"it has an answer to {shortened(unknown, 100)}, which is no question of the data"
        missing = [id for id in ids if id not in answered]
        if missing:
            return (
                f"it has answers to {len(self.ids):,} questions, the data have {len(ids):,}: none to "
                f"{shortened(missing[0], 100)}"
            )
        return "its answers are in another order than the questions of the data"


def _line(id: str, text: str) -> str:
    return json.dumps({"id": id, "answer": text}) + "\n"


def _read(line: str) -> tuple[str, str]:
    """The id and the answer of a line."""
    values = read_json(line)
    if not isinstance(values, dict) or set(values) != {"id", "answer"}:
        raise ResultError(f"it is {told(values)}; it must be an object with id and answer, and nothing else")
    for name, limit in (("id", MAX_ID), ("answer", MAX_ANSWER)):
        text = values[name]
        if not isinstance(text, str):
            raise ResultError(f"its {name} is {told(text)}; it must be a text")
        if len(text) > limit:
            raise ResultError(f"its {name} has {len(text):,} characters; at most {limit:,} can be")
        unsafe = _UNSAFE.search(text)
        if unsafe is not None:
            raise ResultError(f"its {name} has the character U+{ord(unsafe.group()):04X}, which no text needs")
    id, answer = values["id"], values["answer"]
    if not (id and id.isprintable()):
        raise ResultError(f"its id is {told(id)}; it must have printable characters, and one at least")
    if _line(id, answer) != f"{line}\n":
        raise ResultError("it is not written as `submit` writes it: a name, a blank or an escape is other")
    return id, answer
