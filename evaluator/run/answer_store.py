"""Where a model's answers to the prompts of a task are kept: each as soon as it is there, for it may have cost.

Sixteen answers make a shard, see `store`. Until it is finished, those that are there stand beside it, a line each, in a
file that ends in ``.begun``; whatever stops a run, no answer that came back is asked for again.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from audio_compositionality.encoders.base import ModelCard
from audio_compositionality.support.checked_files import NO_DIGEST, DamagedError, parsed_line, sealed_line
from audio_compositionality.support.files import write_whole
from audio_compositionality.tasks.base import GENERATE, Scoring

from .opened import OpenedTask, digest_of_texts
from .store import KEY_NAME, ShardStore, StoreError
from .store_key import StoreKey

ANSWERS_PER_SHARD = 16

Answer = tuple[str, Mapping[str, Any]]
"""The text of an answer, and what is known of it beside."""


@dataclass(frozen=True)
class AnswerShard:
    """The answers to consecutive prompts.

    Attributes:
        answers: one a prompt, empty where there is none.
        errors: by place in the shard, why there is none.
        facts: what is known of each answer beside its text, as JSON values by name: ``log_likelihoods`` of the options,
            of a server also how many of them are but upper bounds (``unlisted``), whether it marks the answer as
            ``refused`` and its ``fingerprint``, ``finish_reason`` and ``tokens``, the number of those that were
            written; empty where nothing is of any.
    """

    answers: tuple[str, ...]
    errors: Mapping[int, str]
    facts: tuple[Mapping[str, Any], ...] = ()


class AnswerStore(ShardStore[AnswerShard]):
    """The answers that one model gives to prompts, as JSON with a digest."""

    suffix = ".json"
    items_per_shard = ANSWERS_PER_SHARD

    def load(self) -> AnswerShard:
        """All answers, merged in the order of the prompts.

        Raises:
            StoreError: as `read`.
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
        facts = {"digest": NO_DIGEST, "ids": self._ids_digest(shard), "errors": errors}
        beside = {"facts": list(content.facts)} if content.facts else {}
        return json.dumps({**facts, "answers": list(content.answers), **beside}, allow_nan=False).encode() + b"\n"

    def _parse(self, shard: int, content: bytes) -> AnswerShard:
        facts: Any = json.loads(content)
        if facts["ids"] != self._ids_digest(shard):
            raise StoreError("it holds answers of another key or to other prompts")
        errors = {int(place): str(error) for place, error in facts["errors"].items()}
        return AnswerShard(tuple(map(str, facts["answers"])), errors, tuple(facts.get("facts", ())))

    def begun(self, shard: int) -> dict[int, Answer]:
        """The answers that are there of a shard that is not finished, by their places among all.

        A line that was torn, changed, or belongs to another key counts as not there; a warning says so.

        Raises:
            StoreError: the file cannot be read, such as a folder in its place.
        """
        path = self._begun_path(shard)
        if path is None:
            return {}
        try:
            lines = path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StoreError(_unusable(path, error)) from error
        answers: dict[int, Answer] = {}
        for number, line in enumerate(lines, 1):
            # Each write begins with a line end, behind whatever was torn.
            if line:
                try:
                    place, text, facts = parsed_line(line, self._ids_digest(shard))
                    answers[place] = text, facts
                except DamagedError as error:
                    # Of one place, whoever asks: a warning is shown once.
                    warnings.warn(
                        f"line {number} of {path} is left out, and its question is asked again: {error}", stacklevel=1
                    )
        return answers

    def add(self, shard: int, answers: Iterable[tuple[int, Answer]]) -> None:
        """Keep answers of a shard that is not finished yet, by their places among all; nothing in memory.

        Raises:
            StoreError: there is a folder in the place of their file.
        """
        path = self._begun_path(shard)
        if path is None:
            return
        belongs_to = self._ids_digest(shard)
        lines = b"".join(sealed_line([place, text, dict(facts)], belongs_to) for place, (text, facts) in answers)
        if not (path.parent / KEY_NAME).exists():
            write_whole(path.parent / KEY_NAME, self.key.dumps())
        # In one write, behind what is there: of a process that ends meanwhile one line is torn at most.
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        except (IsADirectoryError, PermissionError) as error:
            raise StoreError(_unusable(path, error)) from error
        try:
            os.write(descriptor, b"\n" + lines)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def write(self, shard: int, content: AnswerShard, *, checked: bool = True) -> None:
        """See `ShardStore.write`."""
        super().write(shard, content, checked=checked)
        self._forget_begun(shard)

    def discard(self, shard: int) -> None:
        """See `ShardStore.discard`; so with what is there of one that is not finished."""
        super().discard(shard)
        self._forget_begun(shard)

    def _forget_begun(self, shard: int) -> None:
        path = self._begun_path(shard)
        if path is not None:
            try:
                path.unlink(missing_ok=True)
            except (IsADirectoryError, PermissionError) as error:
                raise StoreError(_unusable(path, error)) from error

    def _begun_path(self, shard: int) -> Path | None:
        path = self.path(shard)
        return None if path is None else path.with_suffix(".begun")


def _unusable(path: Path, error: OSError) -> str:
    return f"{path} cannot be used: {error.strerror}; it is a file of answers that are there already: remove it"


def scoring_of(opened: OpenedTask) -> Scoring:
    """How the answers to a task's prompts are taken; it is the same of all prompts."""
    return next((one.scoring for one in opened.inputs if one.prompts), GENERATE)


def answer_store(card: ModelCard, opened: OpenedTask, root: str | Path | None) -> AnswerStore:
    """The store of a model's answers.

    Its key holds the words of all prompts, and so their version and the orders of the options, and how answers are
    taken.

    Args:
        card: of the model.
        opened: the task and its data.
        root: folder of all stores; None keeps the answers in memory.

    Raises:
        StoreError: the folder holds another key or a damaged one, or is a file.
    """
    scoring = scoring_of(opened)
    asked = [opened.configuration.fingerprint, *opened.prompts]
    if scoring != GENERATE:
        asked += [f"scoring by {scoring}", *(text for options in opened.options for text in options)]
    key = StoreKey.of(card, opened.configuration.recipe, digest_of_texts(asked), "answers")
    ids = [f"{id}?{number}" for number, id in enumerate(opened.clip_ids)]
    return AnswerStore(root, replace(key, output_dim=None), ids)
