"""Data whose captions a language model has written: once, before anything is built, and named by their fingerprint.

What is rendered on the fly never asks a model: `written_data` does it before, for all rows, so that the identity of the
data can hold what was written. Any causal language model of transformers can be asked, of the Hub or of a folder:
greedy, in batches.
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
from audio_compositionality.support.files import safe_file_name, sha256_of, sha256_of_file
from audio_compositionality.support.text import first_line

from ..data import DatasetError, Row
from ..recipes import load_recipe
from ..data import fingerprint_of
from ..rendered import RenderedConfiguration, RenderedData
from .rewriting import LanguageModelWriter, TextModel, WriterReport, rewrite

if TYPE_CHECKING:
    from datasets import Features


MOST_NEW_TOKENS = 200
"""Of an answer: three captions of thirty words as JSON, with some to spare."""

_BATCH_SIZES = {"cpu": 4}
_BATCH_SIZE = 32

_READ = (".json", ".safetensors", ".txt", ".model", ".jinja")
"""Files of a folder that decide what a model answers."""


class LanguageModel:
    """A causal language model; see `writer.TextModel`.

    A model that has a chat template is asked by it, as a user who says one thing; any other goes on from the prompt.
    The most probable token is taken each time, whatever the model's own settings of sampling. Code that comes with a
    model is never run, and only weights in safetensors are read.
    """

    def __init__(
        self,
        name: str | Path,
        *,
        revision: str | None = None,
        device: str | None = None,
        batch_size: int | None = None,
        most_new_tokens: int | None = None,
    ) -> None:
        """Load the model.

        Args:
            name: a folder, or a Hub id.
            revision: branch, tag or commit of a Hub id.
            device: as torch calls it; default CUDA where there is one, else the CPU.
            batch_size: prompts at a time; default 32, on the CPU 4.
            most_new_tokens: after which an answer is cut; default `MOST_NEW_TOKENS`.

        Raises:
            InputError: there is no such model, it is none that goes on from a text, or it needs code of its own.
        """
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._batch_size = batch_size or _BATCH_SIZES.get(self._device, _BATCH_SIZE)
        self._most_new_tokens = most_new_tokens or MOST_NEW_TOKENS
        folder = Path(name) if Path(name).is_dir() else None
        where = {"revision": revision, "trust_remote_code": False}
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(str(name), **where)
            # In half precision a processor is slower, and where it is not, it rounds as no other does.
            dtype = "auto" if torch.device(self._device).type == "cuda" else torch.float32
            model: Any = AutoModelForCausalLM.from_pretrained(str(name), dtype=dtype, use_safetensors=True, **where)
            self._model: Any = model.to(self._device).eval()
        except Exception as error:
            raise InputError(
                f"cannot load the language model {str(name)!r}: {first_line(error).rstrip('.')}. Give a folder or a "
                "Hub id of a model that transformers opens as a causal language model without code of its own, with a "
                "tokenizer and weights in safetensors"
            ) from error
        commit = getattr(self._model.config, "_commit_hash", None)
        self._revision = _digest(folder) if folder else str(commit)
        self._name = folder.resolve().name if folder else str(name)
        self._end = _end_tokens(self._model, self._tokenizer)

    @property
    def identity(self) -> Mapping[str, str]:
        """Name, revision (the commit; of a folder the digest of its files), precision, and how answers are made.

        With other batches, or on another device, rounding may decide otherwise between two words.
        """
        return {
            "model": self._name,
            "revision": self._revision,
            "precision": str(self._model.dtype).removeprefix("torch."),
            "decoding": f"greedy, at most {self._most_new_tokens} tokens, {self._batch_size} at a time",
        }

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """The answer to each prompt, without the prompt.

        Raises:
            InputError: a prompt and its answer are longer than the model reads.
        """
        answers = []
        for start in range(0, len(prompts), self._batch_size):
            answers += self._generate([self._tokens(prompt) for prompt in prompts[start : start + self._batch_size]])
        return answers

    def _tokens(self, prompt: str) -> list[int]:
        text = prompt
        chats = getattr(self._tokenizer, "chat_template", None) is not None
        if chats:
            # Models that can think aloud are told not to; others do not read it.
            text = self._tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}],
                add_generation_prompt=True,
                tokenize=False,
                enable_thinking=False,
            )
        tokens: list[int] = self._tokenizer(text, add_special_tokens=not chats)["input_ids"]
        limit = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        if isinstance(limit, int) and len(tokens) + self._most_new_tokens > limit:
            raise InputError(
                f"{self._name} reads {limit:,} tokens; a prompt has {len(tokens):,} and its answer up to "
                f"{self._most_new_tokens:,}: take a model that reads more"
            )
        return tokens

    def _generate(self, batch: Sequence[list[int]]) -> list[str]:
        import torch
        from transformers import GenerationConfig

        longest = max(map(len, batch))
        padding = self._end[0] if self._end else 0
        # Answers begin behind the prompts, so these end in one place.
        rows = [[padding] * (longest - len(tokens)) + tokens for tokens in batch]
        mask = [[0] * (longest - len(tokens)) + [1] * len(tokens) for tokens in batch]
        greedy = GenerationConfig(  # type: ignore[no-untyped-call]
            do_sample=False,
            num_beams=1,
            max_new_tokens=self._most_new_tokens,
            eos_token_id=self._end or None,
            pad_token_id=padding,
        )
        # What a configuration of generation does not say is taken from the model's, which may sample or punish words.
        self._model.generation_config = greedy
        with torch.inference_mode():
            tokens = self._model.generate(
                input_ids=torch.tensor(rows, device=self._device),
                attention_mask=torch.tensor(mask, device=self._device),
                generation_config=greedy,
            )
        answers: list[str] = self._tokenizer.batch_decode(tokens[:, longest:], skip_special_tokens=True)
        return answers


def _end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """Tokens that end an answer: the model's, else the tokenizer's, else none."""
    stated = getattr(model.generation_config, "eos_token_id", None)
    if stated is None:
        stated = tokenizer.eos_token_id
    return [] if stated is None else [stated] if isinstance(stated, int) else list(stated)


def _digest(folder: Path) -> str:
    digests = [
        f"{path.name} {sha256_of_file(path)}"
        for path in sorted(folder.iterdir())
        if path.is_file() and path.suffix in _READ
    ]
    return sha256_of("\n".join(digests).encode())


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
        self._writer = {**writer, "texts": _digest_of_rows(rows)}
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


def _digest_of_rows(rows: Sequence[Row]) -> str:
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
