"""Which texts of a row a step learns from, and their tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from audio_compositionality.encoders.loading.tokenizers import longest_text, tokenise_with
from audio_compositionality.support.spec import Spec
from audio_compositionality.support.text import shortened

from .errors import TrainingError
from .settings import StageKind

if TYPE_CHECKING:
    from .data import TrainingRow
    from .tokens import Tokens

ABSENT = "absent"
"""The kind of negatives that name what is not heard, by which nobody learns how parts are joined."""

MOST_NEGATIVES = {"contrastive": 0, "hard": 3, "modular": 7}
MOST_POSITIVES = {"contrastive": 0, "hard": 0, "modular": 7}
"""Texts of a row by the kind of stage (arXiv 2310.08753, section 3)."""

MOST_KEPT = 1_000_000
"""Texts whose tokens are kept in the memory, some 200 bytes each."""

_NUMBER = np.dtype(np.int32)


class TextSettings(Spec):
    """Which texts a stage learns from."""

    kind: StageKind = Field(description="Of the stage.")
    negatives: int = Field(ge=0, description="K, most texts of a row that are false of its clip.")
    positives: int = Field(ge=0, description="P, most texts of a row beside the caption that are true of its clip.")

    @classmethod
    def of(cls, kind: StageKind, negatives: int | None = None, positives: int | None = None) -> TextSettings:
        """Those of a stage; what is None is that of the paper. A contrastive stage takes captions alone."""
        if kind == "contrastive":
            return cls(kind=kind, negatives=0, positives=0)
        return cls(
            kind=kind,
            negatives=MOST_NEGATIVES.get(kind, 0) if negatives is None else negatives,
            positives=(MOST_POSITIVES.get(kind, 0) if positives is None else positives) if kind == "modular" else 0,
        )

    def false_texts(self, row: TrainingRow) -> tuple[str, ...]:
        """The negatives of a row that the stage may take: of hard ones, none that names what is not heard."""
        return tuple(text for text, kind in row.negatives if self.kind != "hard" or kind != ABSENT)

    def takes(self, row: TrainingRow) -> bool:
        """Whether the stage learns from a row."""
        if self.kind == "hard":
            return bool(self.false_texts(row))
        return self.kind == "contrastive" or bool(row.parts)


@dataclass(frozen=True)
class DrawnTexts:
    """The texts of a row in an epoch.

    Attributes:
        caption: one of the row's.
        positives: parts that are true.
        negatives: false.
    """

    caption: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]


def draw_texts(row: TrainingRow, settings: TextSettings, *, seed: int, stage: int, epoch: int) -> DrawnTexts:
    """Draw the texts of a row; they depend on nothing but these arguments.

    Args:
        row: of the data.
        settings: of the stage.
        seed: of the training.
        stage: its number, from 0: two stages of one kind draw otherwise.
        epoch: of the stage, from 0.
    """
    rng = generator_of("texts", seed, stage, epoch, row.id)
    caption = row.captions[int(rng.integers(len(row.captions)))]
    return DrawnTexts(
        caption,
        _drawn(row.parts, settings.positives, rng),
        _drawn(settings.false_texts(row), settings.negatives, rng),
    )


def generator_of(use: str, *place: int | str) -> np.random.Generator:
    """The random numbers of one use at one place, the same in every process."""
    digest = hashlib.sha256("\n".join([use, *map(str, place)]).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))


def _drawn(texts: Sequence[str], most: int, rng: np.random.Generator) -> tuple[str, ...]:
    """Up to so many of the texts, each at most once."""
    return tuple(texts[int(place)] for place in rng.permutation(len(texts))[:most])


class Tokeniser:
    """Texts as a text tower takes them: a call gives their `Tokens`, padded to the longest of them.

    The numbers of a text are kept: every epoch asks for most of them again, and they take longer to make than to batch.

    Attributes:
        pad: number of the token that stands for nothing.
        longest: tokens that a text may have, special ones among them.
    """

    def __init__(self, tokenizer: Any, positions: int) -> None:
        """Read the settings.

        Args:
            tokenizer: of transformers.
            positions: tokens that the text tower has positions for.
        """
        self.pad = int(tokenizer.pad_token_id)
        self.longest = longest_text(tokenizer, positions)
        self._tokenise = tokenise_with(tokenizer)
        self._kept: dict[str, bytes] = {}

    def __call__(self, texts: Sequence[str]) -> Tokens:
        """Tokens of some texts, of none [0, 0].

        Raises:
            TrainingError: a text has too many tokens.
        """
        import torch

        from .tokens import Tokens

        numbers = self._numbers(texts)
        lengths = np.array([len(one) // _NUMBER.itemsize for one in numbers], np.int64)
        mask = np.arange(lengths.max(initial=0))[None] < lengths[:, None]
        ids = np.full(mask.shape, self.pad, np.int64)
        ids[mask] = np.frombuffer(b"".join(numbers), _NUMBER)
        return Tokens(torch.from_numpy(ids), torch.from_numpy(mask))

    def check(self, texts: Iterable[str]) -> None:
        """Refuse a text that is too long, before hours have been spent on those that are not.

        Raises:
            TrainingError: names the text, its tokens and the limit.
        """
        self._numbers(list(dict.fromkeys(texts)))

    def _numbers(self, texts: Sequence[str]) -> list[bytes]:
        """The numbers of the tokens of each text."""
        kept = self._kept if len(self._kept) < MOST_KEPT else {}
        missing = [text for text in dict.fromkeys(texts) if text not in self._kept]
        for text, tokens in zip(missing, self._tokenise(missing) if missing else [], strict=True):
            if len(tokens) > self.longest:
                raise TrainingError(
                    f"the text {shortened(text, 80)!r} has {len(tokens)} tokens; the text tower takes {self.longest} "
                    "at most: shorten it, or leave its row out"
                )
            kept[text] = np.array(tokens, _NUMBER).tobytes()
        return [self._kept[text] if text in self._kept else kept[text] for text in texts]
