"""Caches of model outputs on disk: each output is computed once and stored in shards, under a key with its origin.

A cache is a folder, ``<root>/<model id>/<recipe>-<kind>-<first 16 hex digits of the key's digest>``. It contains the
key as JSON and one file for every 64 items. Each key has its own folder, so cached outputs are never mixed up and
never have to be deleted. A shard gets its name only when it is complete and on the disk; a shard with a single changed
bit is refused. Embeddings have a temporary name until a share of them has been computed a second time, see
`embeddings.accept_or_refuse`.

Answers to prompts may be expensive, so each is written as soon as it arrives. Sixteen make a shard. Until then, they
are lines of a file that ends in ``.begun``: after an interruption, no answer is asked for again.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from audio_compositionality.encoders.base import ModelCard
from audio_compositionality.support import checked_files
from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.files import (
    cache_folder,
    read_file,
    remove_partial_files,
    safe_file_name,
    write_whole,
)
from audio_compositionality.support.text import plain
from audio_compositionality.tasks.base import GENERATE, Scoring

from .opened import OpenedTask, digest_of_texts
from .options import ITEMS_PER_SHARD

Kind = Literal["clips", "texts", "answers"]

EMBEDDINGS_VERSION, ANSWERS_VERSION = 4, 3
"""Versions of the layouts of caches of embeddings and of answers; every key contains one of them."""


@dataclass(frozen=True)
class CacheKey:
    """The origin of outputs: equal keys mean equal outputs, up to rounding.

    Attributes:
        recipe: name of the configuration of the data.
        fingerprint: of the configuration; for texts, the SHA-256 of them all.
        rows_digest: of the configuration; it differs even if a recipe draws other rows without a new version, which
            leaves the fingerprint unchanged. Empty for texts.
        kind: ``clips``, ``texts`` or ``answers``.
        model_id, revision, weights_sha256, output_dim, front_end_version: see `ModelCard`.
        layer, pooling, precision: see `EncoderOptions`.
    """

    recipe: str
    fingerprint: str
    rows_digest: str
    kind: Kind
    model_id: str
    revision: str
    weights_sha256: str | None
    output_dim: int | None
    layer: int | None
    pooling: str | None
    precision: str
    front_end_version: int

    @classmethod
    def of(
        cls, card: ModelCard, recipe: str, fingerprint: str, rows_digest: str = "", kind: Kind = "clips"
    ) -> CacheKey:
        """Return the key of a model's outputs."""
        return cls(
            recipe=recipe,
            fingerprint=fingerprint,
            rows_digest=rows_digest,
            kind=kind,
            model_id=card.id,
            revision=card.revision,
            weights_sha256=card.weights_sha256,
            output_dim=card.output_dim,
            layer=card.options.layer,
            pooling=card.options.pooling,
            precision=card.options.precision,
            front_end_version=card.front_end_version,
        )

    @property
    def schema_version(self) -> int:
        """Return the version of the cache's layout."""
        return ANSWERS_VERSION if self.kind == "answers" else EMBEDDINGS_VERSION

    def dumps(self) -> str:
        """Return the key as JSON text."""
        return json.dumps({"schema_version": self.schema_version, **asdict(self)}, indent=1) + "\n"

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the key as JSON with sorted names and no spaces, in hexadecimal."""
        values = {"schema_version": self.schema_version, **asdict(self)}
        return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


SHARDS_PER_BLOCK = 8
"""Shards in a block, so 512 items: a model receives the items of a block in the order of their hashes."""

UNCHECKED = ".unchecked"
"""Suffix of the name of a shard whose items have not been checked by a second computation."""

KEY_NAME = "key.json"

Content = TypeVar("Content")

_REMEDY = "delete it, or compute all shards again with --force"


class CacheError(AudioCompositionalityError):
    """Cached outputs that cannot be used; the message names the file, the problem and the remedy."""


def cached_outputs_folder() -> Path:
    """Return the default folder of cached embeddings and answers: ``outputs`` in the user's cache."""
    return cache_folder() / "outputs"


class ShardCache(ABC, Generic[Content]):
    """The cached items of one key, in shards; a subclass defines how a shard is written and read.

    Attributes:
        key: the origin of the items.
        ids: of the items, in their order.
        folder: where the shards are; None for a cache in memory.
    """

    suffix = ""
    items_per_shard = ITEMS_PER_SHARD

    def __init__(self, root: str | Path | None, key: CacheKey, ids: Sequence[str]) -> None:
        """Open a cache; the folder is created with the first shard.

        Temporary files of this machine's killed processes are removed.

        Args:
            root: folder of all caches; None keeps the shards in memory.
            key: the origin of the items.
            ids: of all items, in their order.

        Raises:
            CacheError: the folder holds another key or a damaged one, or is a file.
        """
        self.key = key
        self.ids = tuple(ids)
        self.folder: Path | None = None
        self._kept: dict[int, Content] = {}
        self._kept_unchecked: dict[int, Content] = {}
        if root is None:
            return
        self.folder = Path(root) / safe_file_name(key.model_id) / f"{key.recipe}-{key.kind}-{key.digest[:16]}"
        if self.folder.exists():
            if not self.folder.is_dir():
                raise CacheError(f"{self.folder} is a file; give another folder for the outputs of models")
            _check_key(self.folder / KEY_NAME, key)
            remove_partial_files(self.folder)

    @property
    def num_shards(self) -> int:
        """Return the number of shards of the complete cache."""
        return -(-len(self.ids) // self.items_per_shard)

    def items(self, shard: int) -> range:
        """Return the positions that a shard covers among all items of the cache, counted from 0."""
        size = self.items_per_shard
        return range(shard * size, min((shard + 1) * size, len(self.ids)))

    def numbers(self, shard: int) -> Sequence[int]:
        """Return the indices into `ids` of a shard's items, in the order of the shard."""
        return self.items(shard)

    def path(self, shard: int) -> Path | None:
        """Return the path of a shard's file; None in memory."""
        return None if self.folder is None else self.folder / f"{shard:05d}-of-{self.num_shards:05d}{self.suffix}"

    def has(self, shard: int) -> bool:
        """Whether a shard is finished; only `read` checks its content."""
        path = self.path(shard)
        return shard in self._kept if path is None else path.exists()

    def awaits_check(self, shard: int) -> bool:
        """Whether a shard is stored but not yet checked by a second computation."""
        path = self.path(shard)
        return shard in self._kept_unchecked if path is None else _unchecked(path).exists()

    def is_stored(self, shard: int) -> bool:
        """Whether a shard is finished or awaits its check."""
        return self.has(shard) or self.awaits_check(shard)

    def write(self, shard: int, content: Content, *, checked: bool = True) -> None:
        """Write a shard: the file gets its name only when it is complete and on the disk.

        Its bytes depend on the content alone.

        Args:
            shard: its number.
            content: the items.
            checked: False gives the file a temporary name, until `accept` finishes it.
        """
        path = self.path(shard)
        if path is None:
            (self._kept if checked else self._kept_unchecked)[shard] = content
            return
        key = path.parent / KEY_NAME
        if not key.exists():
            write_whole(key, self.key.dumps())
        write_whole(path if checked else _unchecked(path), checked_files.sealed(self._serialise(shard, content)))

    def accept(self, shard: int) -> None:
        """Finish a shard that awaits a check."""
        path = self.path(shard)
        if path is None:
            self._kept[shard] = self._kept_unchecked.pop(shard)
        else:
            os.replace(_unchecked(path), path)

    def discard(self, shard: int) -> None:
        """Delete a shard, finished or not, so that it is computed again."""
        path = self.path(shard)
        if path is None:
            self._kept.pop(shard, None)
            self._kept_unchecked.pop(shard, None)
        else:
            path.unlink(missing_ok=True)
            _unchecked(path).unlink(missing_ok=True)

    def read(self, shard: int) -> Content:
        """Return the content of a shard that is finished or awaits its check.

        Raises:
            CacheError: it is absent, damaged, or has another key, other items or another shape.
        """
        path = self.path(shard)
        if path is None:
            return self._kept[shard] if shard in self._kept else self._kept_unchecked[shard]
        if not path.exists() and _unchecked(path).exists():
            path = _unchecked(path)
        try:
            content = read_file(path)
        except FileNotFoundError as error:
            raise CacheError(f"{path} does not exist") from error
        except OSError as error:
            raise CacheError(f"{path} cannot be read: {error.strerror}; {_REMEDY}") from error
        if not checked_files.is_sealed(content):
            raise CacheError(f"{path} is damaged: its content differs from what was written; {_REMEDY}")
        try:
            return self._parse(shard, content)
        except (SafetensorError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise CacheError(f"{path} is damaged or belongs to other data: {error}; {_REMEDY}") from error

    @abstractmethod
    def _serialise(self, shard: int, content: Content) -> bytes:
        """Return the bytes of a shard, a function of its content alone; the first value, ``digest``, is `NO_DIGEST`."""

    @abstractmethod
    def _parse(self, shard: int, content: bytes) -> Content:
        """Return the content of a shard's bytes, whose digest is verified; raise if they belong to another cache."""

    def check_complete(self) -> None:
        """Raise if shards are missing after every process has finished.

        Raises:
            CacheError: shards are missing.
        """
        absent = [shard for shard in range(self.num_shards) if not self.has(shard)]
        if absent:
            raise CacheError(
                f"{len(absent)} of {self.num_shards} shards are missing from {self.folder}, such as {absent[0]}, but "
                "every process has finished. The folder must be on a file system that all machines share, see --cache. "
                "If that file system shows new files late, run the same command again"
            )

    def _ids_digest(self, shard: int) -> str:
        ids = [self.ids[number] for number in self.numbers(shard)]
        return hashlib.sha256(json.dumps([self.key.digest, ids]).encode()).hexdigest()


def stage_of(cache: ShardCache[Any], shards: Sequence[int], force: bool) -> str:
    """Return the work left for some shards: ``embed`` (compute all), ``read`` (all are finished) or ``embed_rest``."""
    finished = sum(map(cache.has, shards))
    if force or not any(map(cache.is_stored, shards)):
        # Without shards, there is nothing to read either.
        return "embed"
    return "read" if finished == len(shards) else "embed_rest"


@dataclass(frozen=True)
class EmbeddingShard:
    """The embeddings of some items.

    Attributes:
        embeddings: float32 [items, output_dim], NaN for an item without an embedding.
        errors: the reason for each missing embedding, by position in the shard.
    """

    embeddings: NDArray[np.float32]
    errors: Mapping[int, str]


class EmbeddingCache(ShardCache[EmbeddingShard]):
    """The embeddings of clips or texts by one model, as safetensors.

    Items have the order in which the model receives them: sorted by hash within each block of `SHARDS_PER_BLOCK`
    shards. So a model that counts its inputs learns nothing about any row.
    """

    suffix = ".safetensors"

    def numbers(self, shard: int) -> Sequence[int]:
        """Return the indices into `ids` of a shard's items, in the order of the shard."""
        places = self.items(shard)
        return self._order[places.start : places.stop]

    @cached_property
    def _order(self) -> tuple[int, ...]:
        """Return all indices into `ids`, block after block, each block in the order of hashes."""
        block = SHARDS_PER_BLOCK * self.items_per_shard
        return tuple(
            number
            for start in range(0, len(self.ids), block)
            for number in self.by_hash(range(start, min(start + block, len(self.ids))), "order")
        )

    def by_hash(self, numbers: Iterable[int], purpose: str) -> list[int]:
        """Return items in the order of the SHA-256 of their ids and the fingerprint of the data, for any model the
        same.

        Args:
            numbers: indices into `ids`.
            purpose: a text; each text gives another order.
        """
        start = f"{purpose}\n{self.key.recipe}\n{self.key.fingerprint}\n"
        return sorted(numbers, key=lambda number: hashlib.sha256(f"{start}{self.ids[number]}".encode()).digest())

    @property
    def dim(self) -> int:
        """Return the length of an embedding."""
        if self.key.output_dim is None:
            raise CacheError(f"'{self.key.model_id}' gives no embeddings: its card has no output_dim")
        return self.key.output_dim

    def load(self) -> EmbeddingShard:
        """Return all embeddings, in the order of `ids`.

        Raises:
            CacheError: as `read`.
        """
        embeddings = np.empty((len(self.ids), self.dim), np.float32)
        errors: dict[int, str] = {}
        for shard in range(self.num_shards):
            content, numbers = self.read(shard), self.numbers(shard)
            embeddings[list(numbers)] = content.embeddings
            errors |= {numbers[place]: error for place, error in content.errors.items()}
        return EmbeddingShard(embeddings, dict(sorted(errors.items())))

    def _serialise(self, shard: int, content: EmbeddingShard) -> bytes:
        expected = (len(self.items(shard)), self.dim)
        if content.embeddings.shape != expected:
            raise CacheError(f"shard {shard} has shape {content.embeddings.shape}, but must have {expected}")
        values = np.array(content.embeddings, np.float32, order="C")
        values[sorted(content.errors)] = 0
        errors = {str(place): content.errors[place] for place in sorted(content.errors)}
        facts = {"digest": checked_files.NO_DIGEST, "ids": self._ids_digest(shard), "errors": errors}
        # A single entry: safetensors writes several in any order.
        return bytes(save({"embeddings": values}, metadata={"shard": json.dumps(facts)}))

    def _parse(self, shard: int, content: bytes) -> EmbeddingShard:
        # The header of a safetensors file is a length in 8 bytes, then JSON.
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + length])
        facts = json.loads(header["__metadata__"]["shard"])
        if facts["ids"] != self._ids_digest(shard):
            raise CacheError("it holds embeddings of another key or of other clips")
        values = load(content)["embeddings"]
        expected = (len(self.items(shard)), self.dim)
        if values.shape != expected or values.dtype != np.float32:
            raise CacheError(f"it holds {values.dtype} {values.shape}, not float32 {expected}")
        if not np.isfinite(values).all():
            raise CacheError("it has values that are NaN or infinite")
        errors = {int(place): str(error) for place, error in facts["errors"].items()}
        embeddings = np.array(values)
        embeddings[sorted(errors)] = np.nan
        return EmbeddingShard(embeddings, errors)


def _unchecked(path: Path) -> Path:
    """Path of a shard before its check."""
    return path.with_name(path.name + UNCHECKED)


def _check_key(path: Path, key: CacheKey) -> None:
    try:
        stored: Any = json.loads(read_file(path))
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise CacheError(f"{path} is damaged: {error}; delete the folder {path.parent}") from error
    expected = json.loads(key.dumps())
    if stored != expected:
        names = sorted(expected) if not isinstance(stored, dict) else sorted({*stored, *expected})
        other = [name for name in names if not isinstance(stored, dict) or stored.get(name) != expected.get(name)]
        raise CacheError(
            f"{path.parent} holds outputs of another model, of other data or settings (different: "
            f"{plain(', '.join(other))}); delete the folder, or give another one"
        )


ANSWERS_PER_SHARD = 16

Answer = tuple[str, Mapping[str, Any]]
"""The text of an answer, and facts about it."""


@dataclass(frozen=True)
class AnswerShard:
    """The answers to consecutive prompts.

    Attributes:
        answers: one per prompt; empty if it is missing.
        errors: the reason for each missing answer, by position in the shard.
        facts: facts about each answer, as JSON values by name: ``log_likelihoods`` of the options; ``finish_reason``;
            ``tokens``, the number of written tokens; ``only``, see `WITHOUT_TEXT` of the models. From a server also
            ``unlisted``, the number of log-likelihoods that are only upper bounds, ``refused``, whether the server
            marks the answer as refused, and its ``fingerprint``. Empty if no answer has any.
    """

    answers: tuple[str, ...]
    errors: Mapping[int, str]
    facts: tuple[Mapping[str, Any], ...] = ()


class AnswerCache(ShardCache[AnswerShard]):
    """The cached answers of one model to prompts, as JSON with a digest."""

    suffix = ".json"
    items_per_shard = ANSWERS_PER_SHARD

    def load(self) -> AnswerShard:
        """Return all answers, merged in the order of the prompts.

        Raises:
            CacheError: as `read`.
        """
        answers: list[str] = []
        errors: dict[int, str] = {}
        facts: list[Mapping[str, Any]] = []
        for shard in range(self.num_shards):
            content = self.read(shard)
            errors |= {len(answers) + place: error for place, error in content.errors.items()}
            answers += content.answers
            facts += content.facts or [{}] * len(content.answers)
        return AnswerShard(tuple(answers), errors, tuple(facts) if any(facts) else ())

    def _serialise(self, shard: int, content: AnswerShard) -> bytes:
        errors = {str(place): content.errors[place] for place in sorted(content.errors)}
        facts = {"digest": checked_files.NO_DIGEST, "ids": self._ids_digest(shard), "errors": errors}
        beside = {"facts": list(content.facts)} if content.facts else {}
        return json.dumps({**facts, "answers": list(content.answers), **beside}, allow_nan=False).encode() + b"\n"

    def _parse(self, shard: int, content: bytes) -> AnswerShard:
        facts: Any = json.loads(content)
        if facts["ids"] != self._ids_digest(shard):
            raise CacheError("it holds answers of another key or to other prompts")
        errors = {int(place): str(error) for place, error in facts["errors"].items()}
        return AnswerShard(tuple(map(str, facts["answers"])), errors, tuple(facts.get("facts", ())))

    def begun(self, shard: int) -> dict[int, Answer]:
        """Return the answers of an unfinished shard, by their positions among all.

        A line that is incomplete, was changed or belongs to another key counts as missing, with a warning.

        Raises:
            CacheError: the file cannot be read, for instance because it is a folder.
        """
        path = self._begun_path(shard)
        if path is None:
            return {}
        try:
            lines = read_file(path).split(b"\n")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise CacheError(_unusable(path, error)) from error
        answers: dict[int, Answer] = {}
        for number, line in enumerate(lines, 1):
            # Each write begins with a line end, after any torn line.
            if line:
                try:
                    place, text, facts = checked_files.parsed_line(line, self._ids_digest(shard))
                    answers[place] = text, facts
                except checked_files.DamagedError as error:
                    # The same place in the code for all callers: a warning is shown once.
                    warnings.warn(
                        f"line {number} of {path} is left out, and its question is asked again: {error}", stacklevel=1
                    )
        return answers

    def add(self, shard: int, answers: Iterable[tuple[int, Answer]]) -> None:
        """Write answers of an unfinished shard, by their positions among all; does nothing in memory.

        Raises:
            CacheError: a folder has the name of their file.
        """
        path = self._begun_path(shard)
        if path is None:
            return
        belongs_to = self._ids_digest(shard)
        lines = b"".join(
            checked_files.sealed_line([place, text, dict(facts)], belongs_to) for place, (text, facts) in answers
        )
        if not (path.parent / KEY_NAME).exists():
            write_whole(path.parent / KEY_NAME, self.key.dumps())
        # One write, at the end of the file: a process that ends meanwhile tears at most one line.
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        except (IsADirectoryError, PermissionError) as error:
            raise CacheError(_unusable(path, error)) from error
        try:
            # Not forced to the disk, since this is done for each answer: it survives the process, not a power cut.
            os.write(descriptor, b"\n" + lines)
        finally:
            os.close(descriptor)

    def write(self, shard: int, content: AnswerShard, *, checked: bool = True) -> None:
        """See `ShardCache.write`."""
        super().write(shard, content, checked=checked)
        self.forget_begun(shard)

    def discard(self, shard: int) -> None:
        """See `ShardCache.discard`; also deletes the answers of an unfinished shard."""
        super().discard(shard)
        self.forget_begun(shard)

    def forget_begun(self, shard: int) -> None:
        """Delete the answers that `add` wrote: a process killed while it finishes a shard leaves them behind."""
        path = self._begun_path(shard)
        if path is not None:
            try:
                path.unlink(missing_ok=True)
            except (IsADirectoryError, PermissionError) as error:
                raise CacheError(_unusable(path, error)) from error

    def _begun_path(self, shard: int) -> Path | None:
        path = self.path(shard)
        return None if path is None else path.with_suffix(".begun")


def _unusable(path: Path, error: OSError) -> str:
    return f"{path} cannot be used as a file of earlier answers: {error.strerror}; remove it"


def scoring_of(opened: OpenedTask) -> Scoring:
    """Return the scoring of a task's answers, which all its prompts share."""
    return next((one.scoring for one in opened.inputs if one.prompts), GENERATE)


def answer_cache(card: ModelCard, opened: OpenedTask, root: str | Path | None) -> AnswerCache:
    """Return the cache of a model's answers to a task.

    Its key contains the scoring and the texts of all prompts, which include the order of the options.

    Args:
        card: of the model.
        opened: the task and its data.
        root: folder of all caches; None keeps the answers in memory.

    Raises:
        CacheError: the folder holds another key or a damaged one, or is a file.
    """
    scoring = scoring_of(opened)
    asked = [opened.configuration.fingerprint, *opened.prompts]
    if scoring != GENERATE:
        asked += [f"scoring by {scoring}", *(text for options in opened.options for text in options)]
    configuration = opened.configuration
    key = CacheKey.of(card, configuration.recipe, digest_of_texts(asked), configuration.rows_digest, "answers")
    ids = [f"{'+'.join(about)}?{number}" for number, about in enumerate(opened.asked_about)]
    return AnswerCache(root, replace(key, output_dim=None), ids)
