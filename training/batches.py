"""Batches of rows, with their texts and tokens; each is made while the model works on the previous one."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from itertools import chain, count, islice
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator

from audio_compositionality.encoders.text_towers import longest_text, tokens_of
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import Spec
from audio_compositionality.support.text import shortened

from .data import TrainingData, TrainingRow
from .settings import StageKind, TrainingError


@dataclass(frozen=True)
class Tokens:
    """Texts of a batch.

    Attributes:
        ids: int64 [M, T], token numbers, with special tokens, padded at the end.
        mask: bool [M, T], False for padding.
    """

    ids: torch.Tensor
    mask: torch.Tensor

    def __len__(self) -> int:
        return int(self.ids.shape[0])

    def to(self, device: torch.device | str) -> Tokens:
        """Return the tokens on a device."""
        return Tokens(self.ids.to(device, non_blocking=True), self.mask.to(device, non_blocking=True))

    def take(self, which: slice | torch.Tensor) -> Tokens:
        """Return some of the texts, without columns that are padding in all of them."""
        mask = self.mask[which]
        longest = int(mask.sum(dim=1).max()) if len(mask) else 0
        return Tokens(self.ids[which][:, :longest], mask[:, :longest])


def join_tokens(parts: Sequence[Tokens], pad: int) -> Tokens:
    """Join the texts of several batches, one batch after the other.

    Args:
        parts: at least one.
        pad: number of the padding token.
    """
    longest = max(part.ids.shape[1] for part in parts)
    ids = [torch.nn.functional.pad(part.ids, (0, longest - part.ids.shape[1]), value=pad) for part in parts]
    masks = [torch.nn.functional.pad(part.mask, (0, longest - part.mask.shape[1])) for part in parts]
    return Tokens(torch.cat(ids), torch.cat(masks))


ABSENT = "absent"
"""The kind of negatives that name an absent sound: they do not teach how parts are combined."""

MOST_KEPT = 1_000_000
"""Maximum number of texts whose tokens are kept in memory, some 200 bytes each."""

_NUMBER = np.dtype(np.int32)


class TextSettings(Spec):
    """The kinds of texts on which a stage trains."""

    kind: StageKind = Field(description="Kind of the stage.")
    negatives: int = Field(ge=0, description="K, maximum number of negative texts per row.")
    positives: int = Field(ge=0, description="P, maximum number of positive texts per row, without its caption.")

    @classmethod
    def of(cls, kind: StageKind, negatives: int, positives: int) -> TextSettings:
        """Return the settings of a stage: a contrastive one takes captions alone, a hard one no parts."""
        return cls(
            kind=kind,
            negatives=0 if kind == "contrastive" else negatives,
            positives=positives if kind == "modular" else 0,
        )

    def false_texts(self, row: TrainingRow) -> tuple[str, ...]:
        """Return the negatives of a row that the stage may use; a hard stage uses none that names an absent sound."""
        return tuple(text for text, kind in row.negatives if self.kind != "hard" or kind != ABSENT)

    def takes(self, row: TrainingRow) -> bool:
        """Whether the stage trains on a row."""
        if self.kind == "hard":
            return bool(self.false_texts(row))
        return self.kind == "contrastive" or bool(row.parts)


@dataclass(frozen=True)
class DrawnTexts:
    """The texts of a row in an epoch.

    Attributes:
        caption: one of the row's captions.
        positives: true texts about parts.
        negatives: false texts.
    """

    caption: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]


def draw_texts(row: TrainingRow, settings: TextSettings, *, seed: int, stage: int, epoch: int) -> DrawnTexts:
    """Draw the texts of a row; they depend only on these arguments.

    Args:
        row: row of the data.
        settings: settings of the stage.
        seed: seed of the training.
        stage: number of the stage, from 0: two stages of one kind draw differently.
        epoch: epoch of the stage, from 0.
    """
    rng = generator_of("texts", seed, stage, epoch, row.id)
    caption = row.captions[int(rng.integers(len(row.captions)))]
    return DrawnTexts(
        caption,
        _drawn(row.parts, settings.positives, rng),
        _drawn(settings.false_texts(row), settings.negatives, rng),
    )


def generator_of(use: str, *place: int | str) -> np.random.Generator:
    """Return the random generator for one use at one place; it is the same in every process."""
    digest = hashlib.sha256("\n".join([use, *map(str, place)]).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))


def _drawn(texts: Sequence[str], most: int, rng: np.random.Generator) -> tuple[str, ...]:
    """Draw up to `most` of the texts, each at most once."""
    return tuple(texts[int(place)] for place in rng.permutation(len(texts))[:most])


class Tokeniser:
    """The tokeniser of a text tower: a call returns the `Tokens` of texts, padded to the longest of them.

    The token numbers of each text are kept: every epoch needs most of them again, and they take longer than batching.

    Attributes:
        pad: number of the padding token.
        longest: maximum number of tokens of a text, with special tokens.
    """

    def __init__(self, tokenizer: Any, positions: int) -> None:
        """Read the settings.

        Args:
            tokenizer: tokenizer of transformers.
            positions: number of positions of the text tower.
        """
        self.pad = int(tokenizer.pad_token_id)
        self.longest = longest_text(tokenizer, positions)
        self._tokenizer = tokenizer
        self._kept: dict[str, bytes] = {}

    def __call__(self, texts: Sequence[str]) -> Tokens:
        """Return the tokens of texts; [0, 0] for none.

        Raises:
            TrainingError: a text has too many tokens.
        """
        numbers = self._numbers(texts)
        lengths = np.array([len(one) // _NUMBER.itemsize for one in numbers], np.int64)
        mask = np.arange(lengths.max(initial=0))[None] < lengths[:, None]
        ids = np.full(mask.shape, self.pad, np.int64)
        ids[mask] = np.frombuffer(b"".join(numbers), _NUMBER)
        return Tokens(torch.from_numpy(ids), torch.from_numpy(mask))

    def check(self, texts: Iterable[str]) -> None:
        """Raise an error for a text that is too long, before hours of training.

        Raises:
            TrainingError: names the text, its tokens and the limit.
        """
        self._numbers(list(dict.fromkeys(texts)))

    def _numbers(self, texts: Sequence[str]) -> list[bytes]:
        """Return the token numbers of each text."""
        kept = self._kept if len(self._kept) < MOST_KEPT else {}
        missing = [text for text in dict.fromkeys(texts) if text not in self._kept]
        for text, tokens in zip(missing, tokens_of(self._tokenizer, missing) if missing else [], strict=True):
            if len(tokens) > self.longest:
                raise TrainingError(
                    f"the text {shortened(text, 80)!r} has {len(tokens)} tokens; the text tower takes at most "
                    f"{self.longest}; shorten it, or leave its row out"
                )
            kept[text] = np.array(tokens, _NUMBER).tobytes()
        return [self._kept[text] if text in self._kept else kept[text] for text in texts]


@dataclass(frozen=True)
class Batch:
    """The rows of one step that belong to one process.

    Negatives and positives are lists with the row of each, since rows have different numbers of them and padding
    need not be embedded.

    Attributes:
        audio: [B, ...], features of the clips.
        captions: B texts, one per clip.
        negatives: n texts, each false of the clip of its row.
        negative_row: int64 [n], the row of each, ascending.
        positives: m texts, each true of the clip of its row.
        positive_row: int64 [m], the row of each, ascending.
        expressions: int64 [B], equal for rows with the same meaning.
        rows: int64 [B], numbers of the rows in the data.
    """

    audio: torch.Tensor
    captions: Tokens
    negatives: Tokens
    negative_row: torch.Tensor
    positives: Tokens
    positive_row: torch.Tensor
    expressions: torch.Tensor
    rows: torch.Tensor

    def __len__(self) -> int:
        return int(self.audio.shape[0])

    def to(self, device: torch.device | str) -> Batch:
        """The same on a device."""
        return replace(self, **{field.name: getattr(self, field.name).to(device) for field in fields(self)})


def scatter_rows(values: torch.Tensor, row_of: torch.Tensor, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the embeddings of a list of texts as a padded block.

    Args:
        values: [n, D].
        row_of: int64 [n], the row of each, ascending.
        rows: B.

    Returns:
        [B, K, D], K the maximum number of texts per row, zeros as padding; bool [B, K], False for padding.
    """
    counts = torch.bincount(row_of, minlength=rows)
    longest = int(counts.max()) if len(row_of) else 0
    first = counts.cumsum(0) - counts
    place = torch.arange(len(row_of), device=row_of.device) - first[row_of]
    block = values.new_zeros(rows, longest, values.shape[1]).index_put((row_of, place), values)
    mask = torch.arange(longest, device=row_of.device)[None] < counts[:, None]
    return block, mask


RowNumbers = NDArray[np.int64]

AHEAD = 2
"""Number of batches made in advance."""

_ROWS_AT_ONCE = 1_024
"""Number of rows whose similarities to all others are in memory at a time."""


class FeatureSource(Protocol):
    """The features of the clips of some data, as a model takes them."""

    def gather(self, clips: RowNumbers) -> torch.Tensor:
        """Return features [n, ...] of clips by their numbers, float32."""
        ...


@dataclass(frozen=True)
class ArrayFeatures:
    """Features in memory.

    Attributes:
        values: [clips, ...].
    """

    values: NDArray[Any]

    def gather(self, clips: RowNumbers) -> torch.Tensor:
        """See `FeatureSource`."""
        return torch.from_numpy(np.asarray(self.values[clips], np.float32))


class BatchSettings(Spec):
    """The settings of a stage's batches."""

    texts: TextSettings = Field(description="Choice of texts, and thereby of rows.")
    batch_size: int = Field(ge=2, description="Rows per step, over all processes; each is contrasted with the others.")
    seed: int = Field(0, ge=0, description="Seed of the training.")
    stage: int = Field(0, ge=0, description="Number of the stage.")
    process: int = Field(0, ge=0, description="Number of this process.")
    processes: int = Field(1, ge=1, description="Number of processes, which share every batch in equal parts.")

    @model_validator(mode="after")
    def _can_be_shared(self) -> BatchSettings:
        if self.process >= self.processes:
            raise InputError(f"process {self.process} of {self.processes}: processes are numbered from 0")
        if self.batch_size % self.processes:
            raise InputError(
                f"batch_size is {self.batch_size}, which {self.processes} processes cannot share in equal parts"
            )
        return self


class Batches:
    """The batches of a stage for this process: each is available by its number, independently of earlier reads.

    Each epoch has its own order of rows; rows left over after its last full batch are not used in it. The batches
    of all processes, joined in order, equal the batch of a single process.
    """

    def __init__(
        self,
        data: TrainingData,
        features: FeatureSource,
        tokenise: Callable[[Sequence[str]], Tokens],
        settings: BatchSettings,
        neighbours: RowNumbers | None = None,
    ) -> None:
        """Choose the rows.

        Args:
            data: the split to train on.
            features: features of its clips.
            tokenise: returns the tokens of texts, such as a `Tokeniser`.
            settings: see `BatchSettings`.
            neighbours: int64 [rows, N], numbers of the rows nearest to each row of the data, see `nearest_rows`, the
                same in every process: half of a batch is then drawn in order, and each row brings one neighbour.

        Raises:
            TrainingError: fewer rows suit the stage than a batch has.
            InputError: the neighbours do not match the rows, or a batch cannot be halved.
        """
        self._data, self._features, self._tokenise, self.settings = data, features, tokenise, settings
        takes = settings.texts.takes
        self._eligible: RowNumbers = np.array([n for n, row in enumerate(data.rows) if takes(row)], np.int64)
        if len(self._eligible) < settings.batch_size:
            raise TrainingError(
                f"{data.source} has {len(self._eligible):,} rows for a stage {settings.texts.kind!r}, "
                f"out of {len(data.rows):,}; a batch needs {settings.batch_size:,}"
            )
        if neighbours is not None:
            if neighbours.shape[:1] != (len(data.rows),) or neighbours.ndim != 2 or not neighbours.shape[1]:
                raise InputError(f"neighbours have shape {neighbours.shape}; they must be [{len(data.rows)}, N]")
            if settings.batch_size % (2 * settings.processes):
                raise InputError(
                    f"batch_size is {settings.batch_size}; half of a batch are neighbours, so each of "
                    f"{settings.processes} processes must have an even part of it"
                )
        self._neighbours, self._eligible_set = neighbours, frozenset(self._eligible.tolist())
        self._order: tuple[int, RowNumbers] | None = None

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches per epoch."""
        return len(self._eligible) // self._drawn

    @property
    def _drawn(self) -> int:
        """Number of rows of a batch that are drawn in order."""
        return self.settings.batch_size // (1 if self._neighbours is None else 2)

    def rows(self, step: int) -> RowNumbers:
        """Return the numbers of the rows of a step in the data, over all processes, int64 [batch_size].

        With neighbours, each drawn row is followed by one of its neighbours that is not in the batch yet, or by
        any row if all are.
        """
        settings, (epoch, place) = self.settings, divmod(step, self.steps_per_epoch)
        # A single assignment: a thread that makes batches ahead may already be at the next epoch.
        order = self._order
        if order is None or order[0] != epoch:
            rng = generator_of("order", settings.seed, settings.stage, epoch)
            order = self._order = (epoch, rng.permutation(self._eligible))
        drawn = order[1][place * self._drawn : (place + 1) * self._drawn]
        if self._neighbours is None:
            return drawn
        taken = set(drawn.tolist())
        eligible = self._eligible_set
        rows: list[int] = []
        for row in drawn.tolist():
            rng = generator_of("neighbours", settings.seed, settings.stage, epoch, row)
            near = (int(one) for one in rng.permutation(self._neighbours[row]))
            neighbour = next((one for one in near if one in eligible and one not in taken), None)
            while neighbour is None:
                any_row = int(self._eligible[rng.integers(len(self._eligible))])
                neighbour = any_row if any_row not in taken else None
            taken.add(neighbour)
            rows += [row, neighbour]
        return np.array(rows, np.int64)

    def batch(self, step: int) -> Batch:
        """Return the batch of a step of the stage, counted from 0 through all epochs."""
        settings = self.settings
        part = settings.batch_size // settings.processes
        numbers = self.rows(step)[settings.process * part : (settings.process + 1) * part]
        rows = [self._data.rows[number] for number in numbers.tolist()]
        at = {"seed": settings.seed, "stage": settings.stage, "epoch": step // self.steps_per_epoch}
        drawn = [draw_texts(row, settings.texts, **at) for row in rows]
        negatives, negative_row = self._tokens_of([one.negatives for one in drawn])
        positives, positive_row = self._tokens_of([one.positives for one in drawn])
        return Batch(
            audio=self._features.gather(np.array([row.clip for row in rows], np.int64)),
            captions=self._tokenise([one.caption for one in drawn]),
            negatives=negatives,
            negative_row=negative_row,
            positives=positives,
            positive_row=positive_row,
            expressions=torch.tensor([row.says for row in rows], dtype=torch.int64),
            rows=torch.from_numpy(numbers.copy()),
        )

    def stream(self, start: int = 0, stop: int | None = None) -> Generator[Batch, None, None]:
        """Yield the batches of steps from `start` to before `stop` (None: without end), made ahead in a thread."""
        steps = count(start) if stop is None else iter(range(start, stop))
        pool = ThreadPoolExecutor(1, thread_name_prefix="batches")
        try:
            ahead = deque(pool.submit(self.batch, step) for step in islice(steps, AHEAD))
            while ahead:
                batch = ahead.popleft().result()
                ahead.extend(pool.submit(self.batch, step) for step in islice(steps, 1))
                yield batch
        finally:
            pool.shutdown(cancel_futures=True)

    def _tokens_of(self, of_rows: Sequence[Sequence[str]]) -> tuple[Tokens, torch.Tensor]:
        """Return the texts of all rows in one list, and the row of each."""
        places = [place for place, texts in enumerate(of_rows) for _ in texts]
        return self._tokenise(list(chain.from_iterable(of_rows))), torch.tensor(places, dtype=torch.int64)


def nearest_rows(embeddings: NDArray[np.floating[Any]], rows: Sequence[TrainingRow], most: int) -> RowNumbers:
    """Return the rows whose clips are nearest to each row's clip by cosine, nearest first, without rows of the same
    meaning.

    Args:
        embeddings: [rows, D], embeddings of the rows' clips in order.
        rows: rows of the data.
        most: N.

    Returns:
        int64 [rows, N].

    Raises:
        InputError: see `check_neighbours`, or the numbers of embeddings and rows differ.
    """
    if len(embeddings) != len(rows):
        raise InputError(f"there are {len(embeddings):,} embeddings but {len(rows):,} rows; the numbers must be equal")
    check_neighbours(rows, most)
    said = np.array([row.says for row in rows], np.int64)
    units = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True).clip(1e-12)
    nearest = np.empty((len(rows), most), np.int64)
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        some = slice(first, first + _ROWS_AT_ONCE)
        similarity = units[some] @ units.T
        similarity[said[some, None] == said[None]] = -np.inf
        best = np.argpartition(-similarity, most - 1, axis=1)[:, :most]
        order = np.argsort(-np.take_along_axis(similarity, best, axis=1), axis=1, kind="stable")
        nearest[some] = np.take_along_axis(best, order, axis=1)
    return nearest


def check_neighbours(rows: Sequence[TrainingRow], most: int) -> None:
    """Raise an error if more neighbours are requested than a row has.

    Raises:
        InputError: a row has fewer other rows with another meaning.
    """
    most_alike = max(Counter(row.says for row in rows).values(), default=0)
    if not 1 <= most <= len(rows) - most_alike:
        raise InputError(
            f"neighbours is {most}, but a row has only {max(len(rows) - most_alike, 0)} other rows with another meaning"
        )
