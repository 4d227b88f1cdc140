"""Files beside weights: those of the tokenizer, and the record of the data that `train` has trained them on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audio_compositionality.support.checked_files import DamagedError, parsed_sealed_json
from audio_compositionality.support.files import read_file, sha256_of_file
from audio_compositionality.support.text import first_line, shortened

from ..base import ModelError
from .downloads import download_from_hub

VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt", "sentencepiece.bpe.model", "spiece.model")
"""Files of which a tokenizer has one. Without any, transformers silently makes one that knows no words."""

TOKENIZER_FILES = (
    *VOCABULARIES,
    "merges.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
)
"""Files that decide the tokens of a text."""


@dataclass(frozen=True)
class PublishedTokenizer:
    """The tokenizer of a published language model, for a model whose file of weights holds none.

    Attributes:
        repository: of the Hub that has it.
        class_name: of transformers.
        probe: a text.
        tokens: the numbers of its tokens, by which another tokenizer is recognised.
    """

    repository: str
    class_name: str
    probe: str
    tokens: tuple[int, ...]

    def load(self, folder: Path | None, model: str) -> Any:
        """The tokenizer, from the folder where it holds one, else from the Hub.

        Args:
            folder: where the weights are; None where they were fetched.
            model: the model's name, for messages.

        Raises:
            ModelError: it cannot be had or read, or is another.
        """
        import transformers

        if folder is None or not any((folder / name).is_file() for name in VOCABULARIES):
            try:
                folder = download_from_hub(self.repository, "tokenizer.json").parent
            except Exception as error:
                raise ModelError(
                    f"'{model}' embeds text with the tokenizer of {self.repository}, which cannot be had: "
                    f"{first_line(error).rstrip('.')}. Without network, put its tokenizer.json beside the file of "
                    f"weights and pass {model}=/path/to/the file"
                ) from error
        try:
            tokenizer = getattr(transformers, self.class_name).from_pretrained(folder)
            tokens = tuple(tokenizer(self.probe)["input_ids"])
        except Exception as error:
            raise ModelError(f"cannot read the tokenizer in {folder} for '{model}': {first_line(error)}") from error
        if tokens != self.tokens:
            raise ModelError(
                f"the tokenizer in {folder} is not that of {self.repository}, whose words '{model}' was trained with: "
                f"'{self.probe}' has the tokens {list(tokens)}, but must have {list(self.tokens)}"
            )
        return tokenizer


RECORD = "training.json"

STATES_RECORD = "training_record"
"""Name in config.json, with `RECORD`, of a model that has one: without it, the weights are not loaded."""

RECORD_VERSION = 2
"""Version of the record; another version has other names in it."""

LONGEST = 300
"""Most of its characters on a card."""

Find = Callable[[str], Path | None]
"""The local path of a file beside the weights, None where there is none; see `Checkpoint.find`."""


def recorded_data(find: Find, *, is_stated: bool, fresh: bool = False) -> str | None:
    """The training data of weights, in words, with the name of the rows' recipe; None where nothing is recorded.

    Args:
        find: files beside the weights.
        is_stated: whether their configuration states that there is a record.
        fresh: whether the stored weights are not going to be used.

    Raises:
        ModelError: the record is stated and not there, or cannot be read, or a file of the model is not the one that
            was written with it.
    """
    try:
        path = find(RECORD)
    except ModelError:
        # Without network, cached files are run all the same.
        return None
    if path is None and is_stated:
        raise ModelError(
            f"the model has no {RECORD}, which has the digests of its files: get the model again, or remove "
            f"{STATES_RECORD!r} from its config.json to load unverified files"
        )
    if path is None:
        return None
    try:
        values = read_record_values(path)
        data, recipe = str(values["trained_on"]), values.get("recipe")
    except DamagedError as error:
        raise ModelError(f"{error}; get the model again, or train it again") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelError(f"{path} does not state the training data of the weights beside it: {error!r}") from error
    check_recorded_files(values, find, path.parent, fresh=fresh)
    return shortened(data if not recipe or str(recipe) in data else f"{data} ({recipe})", LONGEST)


def read_record_values(path: Path) -> dict[str, Any]:
    """The values of a record.

    Raises:
        DamagedError: it is not as it was written.
        OSError: it cannot be read.
    """
    return parsed_sealed_json(read_file(path), path)


def check_recorded_files(values: Mapping[str, Any], find: Find, folder: Path, *, fresh: bool = False) -> None:
    """Refuse files of a model that differ from those written with its record.

    Args:
        values: of the record.
        find: files beside it.
        folder: where it lies, for messages.
        fresh: leave out weights, which are not going to be used.

    Raises:
        ModelError: one was changed, or is missing.
    """
    if not values.get("files"):
        raise ModelError(f"{folder / RECORD} names no files: it is not the record of a model that is finished")
    for name, digest in values["files"].items():
        if fresh and name.endswith(".safetensors"):
            continue
        path = find(name)
        if path is None or sha256_of_file(path) != digest:
            what = "is not there" if path is None else f"is damaged or was changed: its SHA-256 is not that in {RECORD}"
            raise ModelError(
                f"{folder / name} {what}; get the model again or train it again, or remove {RECORD}, and "
                f"{STATES_RECORD!r} from config.json, if the change is intended"
            )
