"""Reading a transformers checkpoint from a local folder or from the Hugging Face Hub, and nothing but data from it.

Weights are read from safetensors only (a pickle can run code; `partial.PUBLISHED_PICKLES` names the exception), and
code shipped beside them is never run. A checkpoint that does not hold every weight of the model is refused:
transformers would fill the gaps with random weights and carry on.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import hf_hub_download
from transformers import AutoConfig, AutoFeatureExtractor
from transformers.utils import logging as transformers_logging

from .weights import file_digest, shown

UNUSED_WEIGHTS = ("masked_spec_embed",)
"""Weights that only training uses, which published checkpoints often lack."""

UNUSED_BUFFERS = ("position_ids",)
"""Constants that older versions of transformers stored beside the weights."""

HOW_TO_WRAP = (
    "to embed with it anyway, write a class with `sample_rate` (Hz) and `embed(waveforms, sample_rate)`, which returns "
    "[clips, dim], and pass --encoder path/to/file.py:ClassName"
)
"""What an error about a model that is not supported ends with."""


@dataclass(frozen=True)
class Checkpoint:
    """A model on disk or on the Hub, of which only the configuration has been read so far.

    Attributes:
        id: Hub id, or the name of the local folder.
        source: what transformers loads from: a Hub id or a folder.
        commit: commit of the Hub repository; None for a folder.
        config: the transformers configuration.
        seed: None for the stored weights, else the seed of fresh ones.
    """

    id: str
    source: str
    commit: str | None
    config: Any
    seed: int | None = None

    @property
    def encoder_id(self) -> str:
        """The id of an encoder made of it: that of an untrained one says so."""
        return self.id if self.seed is None else f"untrained:{self.id}"

    @property
    def revision(self) -> str:
        """What exactly is run: see `Encoder.revision`."""
        if self.seed is not None:
            settings = self.config.to_diff_dict()
            for key in ("transformers_version", "dtype", "architectures", "_name_or_path"):
                settings.pop(key, None)
            text = repr(sorted(settings.items()))
            return f"seed-{self.seed}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        return self.commit if self.commit is not None else f"sha256-{self.weights_sha256}"

    @cached_property
    def weights_sha256(self) -> str | None:
        """SHA-256 of the weights, of several files that of their digests in the order of names; None of fresh ones."""
        if self.seed is not None:
            return None
        folder = Path(self.source)
        if self.commit is not None:
            # What was loaded lies in the cache, in the same folder as the configuration.
            folder = Path(hf_hub_download(self.source, "config.json", revision=self.commit)).parent
        return weights_digest(weight_files(folder))


def open_checkpoint(source: str | Path, seed: int | None = None, name: str | None = None) -> Checkpoint:
    """Read the configuration of a checkpoint.

    Args:
        source: a folder (`Path`) that holds config.json, or a Hub id (`str`).
        seed: see `Checkpoint`.
        name: the id, where it is not that of the Hub or the folder's name: a registered name.

    Raises:
        ValueError: if there is no such repository, it cannot be reached, or its configuration cannot be read.
    """
    if isinstance(source, Path):
        identifier, commit = source.resolve().name, None
    else:
        identifier, commit = source, _hub_commit(source)
    try:
        with quiet(source):
            config = AutoConfig.from_pretrained(source, revision=commit, trust_remote_code=False)
    except Exception as error:
        raise ValueError(f"cannot read the configuration of '{identifier}': {error}; {HOW_TO_WRAP}") from error
    return Checkpoint(name or identifier, str(source), commit, config, seed)


def load_feature_extractor(checkpoint: Checkpoint) -> Any:
    """The checkpoint's audio feature extractor.

    Raises:
        ValueError: if it has none: the model does not take sound, or its preprocessor_config.json is missing.
    """
    try:
        with quiet(checkpoint.source):
            extractor = AutoFeatureExtractor.from_pretrained(  # type: ignore[no-untyped-call]
                checkpoint.source, revision=checkpoint.commit, trust_remote_code=False
            )
    except Exception as error:
        raise ValueError(
            f"'{checkpoint.id}' (model type '{checkpoint.config.model_type}') has no feature extractor: an audio "
            f"encoder needs preprocessor_config.json beside config.json ({error}); {HOW_TO_WRAP}"
        ) from error
    if not isinstance(getattr(extractor, "sampling_rate", None), int):
        raise ValueError(
            f"'{checkpoint.id}' (model type '{checkpoint.config.model_type}') is no audio model: its "
            f"{type(extractor).__name__} has no sampling_rate; {HOW_TO_WRAP}"
        )
    return extractor


def load_model(checkpoint: Checkpoint, model_class: Any, parts: tuple[str, ...] = ("",)) -> Any:
    """The model in float32 and evaluation mode, with its stored weights or with fresh ones.

    Args:
        checkpoint: where from.
        model_class: `AutoModel` or a class of model; of the full model, where only a part of it is used.
        parts: prefixes of the weights that are used, for which the checkpoint must account.

    Raises:
        ValueError: if there are no safetensors weights, if weights are missing, of another shape or left over, or
            if the configuration describes no model.
    """
    if checkpoint.seed is not None:
        return _fresh_model(checkpoint, model_class).eval()
    if checkpoint.commit is None:
        weight_files(Path(checkpoint.source))
    try:
        with quiet(checkpoint.source):
            model, info = model_class.from_pretrained(
                checkpoint.source,
                config=checkpoint.config,
                revision=checkpoint.commit,
                dtype=torch.float32,
                use_safetensors=True,
                trust_remote_code=False,
                ignore_mismatched_sizes=True,
                output_loading_info=True,
            )
    except Exception as error:
        raise ValueError(f"cannot load the weights of '{checkpoint.id}': {error}") from error
    _check_loaded(checkpoint, model, info, parts)
    return model.eval()


@contextmanager
def quiet(source: str | Path) -> Iterator[None]:
    """Keep transformers from reporting what is checked here; the bars of a download stay."""
    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    local = Path(source).is_dir()
    transformers_logging.set_verbosity(logging.CRITICAL)
    if local:
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if local and bars:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _fresh_model(checkpoint: Checkpoint, model_class: Any) -> Any:
    assert checkpoint.seed is not None
    build = getattr(model_class, "from_config", None) or model_class._from_config
    # Weights are drawn on the CPU, so that they are the same whatever the model runs on afterwards.
    with torch.random.fork_rng(devices=[]), quiet(checkpoint.source):
        torch.manual_seed(checkpoint.seed)
        try:
            return build(checkpoint.config, dtype=torch.float32)
        except Exception as error:
            raise ValueError(f"the configuration of '{checkpoint.id}' describes no model: {error}") from error


def _check_loaded(checkpoint: Checkpoint, model: Any, info: dict[str, Any], parts: tuple[str, ...]) -> None:
    prefix = f"{model.base_model_prefix}."
    modules = {name.split(".")[0] for name in (*model.state_dict(), *dict(model.named_children()))}

    def belongs(key: str) -> bool:
        """Whether a left-over key is of the part used, rather than of a head on top of the model."""
        name = key.removeprefix(prefix)
        return name.split(".")[0] in modules and name.startswith(parts) and not key.endswith(UNUSED_BUFFERS)

    missing = [k for k in info["missing_keys"] if k.startswith(parts) and not k.endswith(UNUSED_WEIGHTS)]
    reshaped = [
        f"{k} (stored {tuple(stored)}, model {tuple(expected)})"
        for k, stored, expected in info["mismatched_keys"]
        if k.startswith(parts)
    ]
    unexpected = [k for k in info["unexpected_keys"] if belongs(k)]
    problems = [
        f"{len(keys)} {what}: {shown(sorted(keys))}"
        for what, keys in (("missing", missing), ("of another shape", reshaped), ("unexpected", unexpected))
        if keys
    ]
    if problems or info.get("error_msgs"):
        details = "; ".join([*problems, *info.get("error_msgs", [])])
        raise ValueError(
            f"the weights of '{checkpoint.id}' are not those of a {type(model).__name__}: {details}. Weights and "
            "config.json must come from the same model"
        )


def _hub_commit(repository: str) -> str:
    """The commit that the Hub (or, without network, its cache) has of a repository."""
    try:
        path = Path(hf_hub_download(repository, "config.json"))
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(
            f"cannot get '{repository}' from the Hugging Face Hub: {reason} "
            "Without network, pass a local folder that holds config.json, preprocessor_config.json and "
            "safetensors weights"
        ) from error
    return path.parent.name


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder, in the order of names.

    Raises:
        ValueError: if there are none.
    """
    files = sorted(folder.glob("*.safetensors"))
    if files:
        return files
    pickles = sorted(p.name for p in folder.iterdir() if p.suffix in {".bin", ".pt", ".pth", ".ckpt", ".pkl"})
    found = f"; {shown(pickles)} is a pickle, which can run code when read, and is refused" if pickles else ""
    raise ValueError(
        f"folder '{folder.name}' holds no safetensors weights{found}. Save the model with save_pretrained()"
    )


def weights_digest(files: Sequence[Path]) -> str:
    """SHA-256 of a file, of several that of their digests one after the other."""
    digests = [file_digest(file) for file in files]
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("".join(digests).encode()).hexdigest()
