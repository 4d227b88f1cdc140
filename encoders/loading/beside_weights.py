"""Files next to weights: tokenizer files, and the record of the data that `train` has trained the weights on."""

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
"""Files of a tokenizer; one suffices. Without any, transformers silently makes a tokenizer that knows no words."""

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
        repository: Hub repository of the tokenizer.
        class_name: its class in transformers.
        probe: a text.
        tokens: token numbers of the probe, which identify the tokenizer.
    """

    repository: str
    class_name: str
    probe: str
    tokens: tuple[int, ...]

    def load(self, folder: Path | None, model: str) -> Any:
        """Load the tokenizer from the folder if it holds one, else from the Hub.

        Args:
            folder: folder of the weights; None if they were downloaded.
            model: the model's name, for messages.

        Raises:
            ModelError: the tokenizer cannot be downloaded or read, or is another one.
        """
        import transformers

        if folder is None or not any((folder / name).is_file() for name in VOCABULARIES):
            try:
                folder = download_from_hub(self.repository, "tokenizer.json").parent
            except Exception as error:
                raise ModelError(
                    f"'{model}' needs the tokenizer of {self.repository} to embed text, which cannot be downloaded: "
                    f"{first_line(error).rstrip('.')}. Without network, put its tokenizer.json next to the weights "
                    f"and pass {model}=/path/to/the file"
                ) from error
        try:
            tokenizer = getattr(transformers, self.class_name).from_pretrained(folder)
            tokens = tuple(tokenizer(self.probe)["input_ids"])
        except Exception as error:
            raise ModelError(f"cannot read the tokenizer in {folder} for '{model}': {first_line(error)}") from error
        if tokens != self.tokens:
            raise ModelError(
                f"the tokenizer in {folder} differs from {self.repository}, with which '{model}' was trained: "
                f"'{self.probe}' has the tokens {list(tokens)}, expected {list(self.tokens)}"
            )
        return tokenizer


RECORD = "training.json"

STATES_RECORD = "training_record"
"""Key in config.json, with the value `RECORD`, of a model with a record: without the record, it is not loaded."""

RECORD_VERSION = 2
"""Version of the record; raise it when its keys change."""

LONGEST = 300
"""Longest text of a record on a card, in characters."""

Find = Callable[[str], Path | None]
"""Return the local path of a file next to the weights, None if it does not exist; see `Checkpoint.find`."""


def recorded_data(find: Find, *, is_stated: bool, fresh: bool = False) -> str | None:
    """Return the training data of weights in words, with the name of the rows' recipe; None if nothing is recorded.

    Args:
        find: function that finds files next to the weights.
        is_stated: whether their configuration states that there is a record.
        fresh: whether the stored weights will not be used.

    Raises:
        ModelError: the record is stated but missing, cannot be read, or a file of the model differs from the file that
            was written with the record.
    """
    try:
        path = find(RECORD)
    except ModelError:
        # Without network, cached files are used all the same.
        return None
    if path is None and is_stated:
        raise ModelError(
            f"the model has no {RECORD}, which holds the digests of its files: get the model again, or remove "
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
        raise ModelError(f"{path} does not state the training data of the weights next to it: {error!r}") from error
    check_recorded_files(values, find, path.parent, fresh=fresh)
    return shortened(data if not recipe or str(recipe) in data else f"{data} ({recipe})", LONGEST)


def read_record_values(path: Path) -> dict[str, Any]:
    """Return the values of a record.

    Raises:
        DamagedError: the record was changed after it was written.
        OSError: it cannot be read.
    """
    return parsed_sealed_json(read_file(path), path)


def check_recorded_files(values: Mapping[str, Any], find: Find, folder: Path, *, fresh: bool = False) -> None:
    """Raise an error if files of a model differ from those written with its record.

    Args:
        values: values of the record.
        find: function that finds files next to it.
        folder: folder of the record, for messages.
        fresh: skip weights, which will not be used.

    Raises:
        ModelError: a file was changed or is missing.
    """
    if not values.get("files"):
        raise ModelError(f"{folder / RECORD} names no files; training of this model is not finished")
    for name, digest in values["files"].items():
        if fresh and name.endswith(".safetensors"):
            continue
        path = find(name)
        if path is None or sha256_of_file(path) != digest:
            what = "is missing" if path is None else f"is damaged or was changed: its SHA-256 differs from {RECORD}"
            raise ModelError(
                f"{folder / name} {what}; get the model again or train it again, or remove {RECORD}, and "
                f"{STATES_RECORD!r} from config.json, if the change is intended"
            )
