"""Embeddings and answers in a submission: rounded to 16 bits, and word for word."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from audio_compositionality.evaluator.results.strict import ResultError, read_strict_json, stated_text
from audio_compositionality.evaluator.run.opened import OpenedTask
from audio_compositionality.support.text import shortened

MAX_DIM = 8_192
"""Longest embedding that can be submitted."""

MAX_HEADER = 2_000
"""Most bytes of the header of the file, which is JSON: names, types and shapes of six tensors."""

LARGEST_EXPONENT = 15
"""Values are scaled to less than 2^15: half the range of float16, so that none is rounded to infinity, and as far as
possible from 2^-14, below which float16 has fewer than 11 bits."""

EXPONENTS = range(-170, 120)
"""Exponents of the scale: the range of float32 embeddings, from 2^-149 to 2^128, and a few more."""

_FORM = {
    "clips": "uint8 of 1 dimension",
    "offset": "float32 of 1 dimension",
    "scale": "float64 of 0 dimensions",
    "text_offset": "float32 of 1 dimension",
    "texts": "int64 of 0 dimensions",
    "values": "float16 of 2 dimensions",
}
"""The tensors of a file of embeddings."""


def clips_digest(ids: Sequence[str]) -> str:
    """SHA-256 of the ids of clips, and of the names of texts, in their order, each with a line end."""
    return hashlib.sha256("".join(f"{id}\n" for id in ids).encode()).hexdigest()


@dataclass(frozen=True)
class RoundedEmbeddings:
    """Embeddings z = offset + scale · value.

    Cosines of differences are indifferent to both. Without them float16 would round away the differences between clips
    where an encoder has a long mean in common, or overflow.

    Attributes:
        clips: `clips_digest` of the clips, and of the different texts behind them where a task scores texts; their
            order as in the data.
        values: float16 [clips and texts, dim].
        offset: float32 [dim], the mean embedding of the clips.
        scale: a power of two.
        texts: number of rows of texts, the last ones.
        text_offset: float32 [dim], the mean embedding of the texts, which lie apart from clips; [0] without texts.
    """

    clips: str
    values: NDArray[np.float16]
    offset: NDArray[np.float32]
    scale: float
    texts: int
    text_offset: NDArray[np.float32]

    @classmethod
    def of(cls, ids: Sequence[str], embeddings: NDArray[np.floating], texts: int = 0) -> RoundedEmbeddings:
        """Round finite embeddings [clips and texts, dim]; each number is off by at most 2^-11 of its value, or
        2^-39 of the largest, both measured from the mean of the clips or of the texts.

        Args:
            ids: the name of each, for the digest.
            embeddings: of the clips, then of the texts.
            texts: number of texts; fewer than rows.
        """
        exact = embeddings.astype(np.float64)
        clips = len(exact) - texts
        offset, text_offset = exact[:clips].mean(axis=0).astype(np.float32), np.zeros(0, np.float32)
        exact[:clips] -= offset
        if texts:
            text_offset = exact[clips:].mean(axis=0).astype(np.float32)
            exact[clips:] -= text_offset
        largest = float(np.abs(exact).max(initial=0.0))
        scale = math.ldexp(1.0, math.frexp(largest)[1] - LARGEST_EXPONENT) if largest else 1.0
        return cls(clips_digest(ids), (exact / scale).astype(np.float16), offset, scale, texts, text_offset)

    def restored(self) -> NDArray[np.float64]:
        """The embeddings, [clips and texts, dim]."""
        restored: NDArray[np.float64] = self.values.astype(np.float64) * self.scale
        clips = len(restored) - self.texts
        restored[:clips] += self.offset
        if self.texts:
            restored[clips:] += self.text_offset
        return restored

    def dumps(self) -> bytes:
        """As a file of safetensors with the tensors of `_FORM`: ``clips`` is the digest of the clips, in 32 bytes. Its
        bytes depend on its content alone (and the version of safetensors)."""
        tensors = {
            "clips": np.frombuffer(bytes.fromhex(self.clips), np.uint8),
            "offset": np.ascontiguousarray(self.offset, "<f4"),
            "scale": np.array(self.scale, "<f8"),
            "text_offset": np.ascontiguousarray(self.text_offset, "<f4"),
            "texts": np.array(self.texts, "<i8"),
            "values": np.ascontiguousarray(self.values, "<f2"),
        }
        return save(tensors)

    @classmethod
    def loads(cls, content: bytes) -> RoundedEmbeddings:
        """From a file that a third party wrote.

        Raises:
            ResultError: it is no such file: damaged, other names, types or shapes, values that are not finite, or a
                scale that is no power of two.
        """
        length = int.from_bytes(content[:8], "little")
        if length > MAX_HEADER:
            raise ResultError(f"its header has {length:,} bytes; at most {MAX_HEADER:,} are allowed")
        try:
            tensors = load(content)
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise ResultError(f"it is not a safetensors file: {shortened(str(error), 200)}") from None
        form = {
            name: f"{tensor.dtype.name} of {tensor.ndim} dimension{'s' * (tensor.ndim != 1)}"
            for name, tensor in sorted(tensors.items())
        }
        if form != _FORM:
            found, right = ("; ".join(f"{name}, {text}" for name, text in of.items()) for of in (form, _FORM))
            raise ResultError(f"its tensors are {shortened(found, 300)}; it must have {right}")
        (rows, dim), texts, scale = tensors["values"].shape, int(tensors["texts"]), float(tensors["scale"])
        if not (rows >= 1 and 1 <= dim <= MAX_DIM):
            raise ResultError(f"it has {rows:,} embeddings of {dim:,} numbers each; 1 to {MAX_DIM:,} are allowed")
        if not 0 <= texts < rows:
            raise ResultError(f"it has {rows:,} embeddings; {texts:,} of them cannot be of texts")
        for name, size in (("offset", dim), ("text_offset", dim if texts else 0), ("clips", 32)):
            if len(tensors[name]) != size:
                raise ResultError(f"its {name} has {len(tensors[name]):,} numbers, not {size:,}")
        if not all(np.isfinite(tensors[name]).all() for name in ("values", "offset", "text_offset")):
            raise ResultError("its embeddings are not finite")
        if not (0 < scale < math.inf) or math.frexp(scale)[0] != 0.5 or math.frexp(scale)[1] - 1 not in EXPONENTS:
            raise ResultError(f"its scale is {scale!r}, not 2^{EXPONENTS.start} to 2^{EXPONENTS.stop - 1}")
        digest = tensors["clips"].tobytes().hex()
        return cls(digest, tensors["values"], tensors["offset"], scale, texts, tensors["text_offset"])


# ----- Answers


MAX_ANSWER = 20_000
"""Most characters of an answer; a thought of 1,024 tokens has about 5,000."""

MAX_ID = 300
"""Most characters of a question's id."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""Stands for a character that is not allowed in a submission."""

_UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters but tab and line ends, and unpaired surrogates."""


def question_ids(opened: OpenedTask) -> list[str]:
    """A name for each prompt of a task: its row's id, with a number from 0 after it where the row has several."""
    return [
        row["id"] if len(one.prompts) == 1 else f"{row['id']}?{number}"
        for row, one in zip(opened.rows, opened.inputs, strict=True)
        for number in range(len(one.prompts))
    ]


@dataclass(frozen=True)
class RawAnswers:
    """The answers of a model to the questions of a task.

    Attributes:
        ids: of the questions, in the order of the data, see `question_ids`.
        texts: the answers, word for word, except characters that a submission cannot hold, see `of`.
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
        """From a file that a third party wrote; the caller has checked its size.

        Raises:
            ResultError: it is not byte for byte what `dumps` writes: no lines of JSON, other names or types, a text
                that is too long or has control characters, or a repeated id.
        """
        try:
            *lines, rest = content.decode("ascii").split("\n")
        except UnicodeDecodeError as error:
            raise ResultError(f"byte {error.start + 1:,} is not ASCII, in which JSON can write all texts") from None
        if rest or not lines:
            raise ResultError("its last line is incomplete" if rest else "it is empty")
        pairs = []
        for number, line in enumerate(lines, 1):
            try:
                values = read_strict_json(line)
                if not isinstance(values, dict) or set(values) != {"id", "answer"}:
                    raise ResultError(
                        f"it is {stated_text(values)}; it must be an object with id and answer, and nothing else"
                    )
                for name, limit in (("id", MAX_ID), ("answer", MAX_ANSWER)):
                    text = values[name]
                    if not isinstance(text, str):
                        raise ResultError(f"its {name} is {stated_text(text)}; it must be a text")
                    if len(text) > limit:
                        raise ResultError(f"its {name} has {len(text):,} characters; at most {limit:,} are allowed")
                    if (unsafe := _UNSAFE.search(text)) is not None:
                        code = f"U+{ord(unsafe.group()):04X}"
                        raise ResultError(f"its {name} has the character {code}, which is not allowed")
                id, answer = values["id"], values["answer"]
                if not (id and id.isprintable()):
                    raise ResultError(f"its id is {stated_text(id)}; it must have one or more printable characters")
                if _line(id, answer) != f"{line}\n":
                    raise ResultError("it is not written as `submit` writes it: a name, a blank or an escape differs")
            except ResultError as error:
                raise ResultError(f"line {number:,}: {error}") from None
            pairs.append((id, answer))
        id, count = Counter(id for id, _ in pairs).most_common(1)[0]
        if count > 1:
            raise ResultError(f"it has {count:,} answers to {shortened(id, 100)}; each question has one")
        return cls(tuple(id for id, _ in pairs), tuple(text for _, text in pairs))

    def problem_of(self, ids: Sequence[str]) -> str | None:
        """Why these are not the answers to some questions, in their order; None where they are."""
        if self.ids == tuple(ids):
            return None
        asked, answered = set(ids), set(self.ids)
        unknown = next((id for id in self.ids if id not in asked), None)
        if unknown is not None:
            return f"it has an answer to {shortened(unknown, 100)}, which is not a question of the data"
        missing = [id for id in ids if id not in answered]
        if missing:
            return (
                f"it has answers to {len(self.ids):,} questions, the data have {len(ids):,}: none to "
                f"{shortened(missing[0], 100)}"
            )
        return "its answers are in another order than the questions of the data"


def _line(id: str, text: str) -> str:
    return json.dumps({"id": id, "answer": text}) + "\n"
