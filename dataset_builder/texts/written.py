"""Data whose captions a language model has written: once, before anything is built, and named by their fingerprint.

What is rendered on the fly never asks a model: `written_data` does it before, for all rows, so that the identity of the
data can hold what was written.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.cache import cache_folder
from audio_compositionality.support.checked_files import DamagedError, TornError, parsed_line, sealed_line
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import safe_file_name, sha256_of

from ..data import DatasetError, Row
from ..recipes import load_recipe
from ..recipes.base import fingerprint_of
from ..rendered import RenderedConfiguration, RenderedData
from .rewriting import LanguageModelWriter, TextModel, WriterReport, rewrite

if TYPE_CHECKING:
    from datasets import Features


_WRITTEN = ("captions", "negatives", "writer", "template")
"""Columns that a writer may change."""


class WrittenConfiguration(RenderedConfiguration):
    """A configuration with the rows of a writer; their sound is the same.

    Attributes:
        report: what became of the texts.
    """

    def __init__(
        self, rendered: RenderedConfiguration, rows: Sequence[Row], report: WriterReport, writer: Mapping[str, Any]
    ) -> None:
        """Nothing is asked any more.

        Args:
            rendered: the configuration with its texts by template.
            rows: of it, written.
            report: what became of the texts.
            writer: its identity.
        """
        super().__init__(rendered.source, rendered.recipe, rendered.settings)
        self.report = report
        self._written_rows = tuple(rows)
        self._writer = {**writer, "texts": _digest(rows)}
        self.fingerprint = fingerprint_of(self.recipe, load_recipe(self.recipe).version, self.values)

    @property
    def rows(self) -> Sequence[Row]:
        """All rows without their audio."""
        return self._written_rows

    @property
    def values(self) -> dict[str, Any]:
        """The settings, the writer, and the digest of all texts: a model may write others on another machine."""
        return {**super().values, "writer": self._writer}

    @property
    def features(self) -> Features:
        """The columns, ``writer`` among them."""
        from datasets import Features, Value

        return Features({**super().features, "writer": Value("string")})

    @property
    def description(self) -> str:
        """Markdown of the card, with the count of texts."""
        sentences = "\n".join(f"- {sentence}" for sentence in self.report.sentences())
        return f"""\
{super().description.rstrip()}

### Texts by a language model

Rows with `language-model` as `writer` have captions or negatives of {self._writer["model"]} (revision
`{self._writer["revision"]}`), each tested by the program that tests the others. They need not have the words of the
caption.

{sentences}
"""


class WrittenData(RenderedData):
    """Data some of whose configurations have the rows of a writer; see `written_data`."""

    def __init__(self, data: RenderedData, written: Mapping[str, WrittenConfiguration]) -> None:
        """Configurations that are not written are those of the data."""
        super().__init__(data.source, data.settings)
        self._configurations.update(written)
        self._written = written

    @property
    def reports(self) -> dict[str, WriterReport]:
        """What became of the texts, by the name of the recipe."""
        return {name: configuration.report for name, configuration in self._written.items()}


def written_data(
    data: RenderedData, writer: LanguageModelWriter, *, keep_answers: bool = True, progress: bool = False
) -> WrittenData:
    """Data with the texts of a language model where they are taken.

    Args:
        data: with captions that can be read; recipes without are left as they are.
        writer: asks the model.
        keep_answers: keep the model's answers in the user's cache, so that a run that was stopped goes on, and the same
            run asks nothing.
        progress: show a progress bar.

    Raises:
        DatasetError: an answer in the cache was changed.
        InputError: no recipe has rows that this writer may write.
    """
    if keep_answers:
        writer = LanguageModelWriter(KeptAnswers(writer.model), in_test=writer.in_test)
    written = {}
    for name in data.recipes:
        configuration = data.configuration(name)
        if any(_is_written(row, writer) for row in configuration.rows):
            rows, report = rewrite(configuration.rows, writer, progress=progress)
            written[name] = WrittenConfiguration(configuration, rows, report, writer.identity)
    if not written:
        raise InputError(
            f"none of {', '.join(data.recipes)} has captions that a language model may write: they are those of rows "
            "to train with, and of rows of the split test only where it is asked for"
        )
    return WrittenData(data, written)


def _is_written(row: Row, writer: LanguageModelWriter) -> bool:
    return {"captions", "events"} <= row.keys() and (row["split"] != "test" or writer.in_test)


def _digest(rows: Sequence[Row]) -> str:
    texts = [[row["id"], *(row.get(name) for name in _WRITTEN)] for row in rows]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


class KeptAnswers:
    """A model that is asked nothing twice: its answers are kept in the user's cache. See `TextModel`.

    Each line has a digest of its own. One that was torn is left out, and what it answered is asked again; one that was
    changed is refused: other texts would be other data.
    """

    def __init__(self, model: TextModel) -> None:
        """Nothing is read yet."""
        self._model = model

    @property
    def identity(self) -> Mapping[str, str]:
        """Of the model."""
        return self._model.identity

    @cached_property
    def path(self) -> Path:
        """The file of the answers, one a line."""
        name = safe_file_name(f"{self.identity['model']}-{self._digest[:12]}")
        return cache_folder() / "written" / f"{name}.jsonl"

    @cached_property
    def _digest(self) -> str:
        """Of the model's identity: an answer of another belongs to another file."""
        return sha256_of(json.dumps(dict(self.identity), sort_keys=True).encode())

    @cached_property
    def _answers(self) -> dict[str, str]:
        answers: dict[str, str] = {}
        torn: list[str] = []
        for number, line in enumerate(self.path.read_bytes().split(b"\n") if self.path.exists() else [], 1):
            # Each write begins with a line end, behind whatever was cut short.
            if not line:
                continue
            try:
                prompt, answer = parsed_line(line, self._digest)
                answers[prompt] = answer
            except TornError as error:
                torn.append(f"{error} (line {number})")
            except DamagedError as error:
                raise DatasetError(
                    f"line {number} of {self.path} was changed after it was written: {error}. Remove the line, and "
                    "the model is asked again"
                ) from error
        if torn:
            # A file of before answers had digests has thousands.
            warnings.warn(
                f"{len(torn):,} of the lines of {self.path} are left out, and what they answer is asked again: "
                f"{torn[0]}",
                stacklevel=2,
            )
        return answers

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """The answer to each prompt; only those are asked that have none."""
        keys = [sha256_of(prompt.encode()) for prompt in prompts]
        asked = {key: prompt for key, prompt in zip(keys, prompts, strict=True) if key not in self._answers}
        if asked:
            answers = dict(zip(asked, self._model.generate(list(asked.values())), strict=True))
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as stream:
                # Behind a line that was cut short begins a new one.
                stream.write(b"\n" + b"".join(sealed_line([*both], self._digest) for both in answers.items()))
            self._answers.update(answers)
        return [self._answers[key] for key in keys]
