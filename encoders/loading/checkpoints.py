"""Read a transformers checkpoint from a local folder or the Hugging Face Hub as data, without running its code.

Weights are read from safetensors only (a pickle can run code; `PUBLISHED_PICKLES` names the exception), and
code shipped with them is never run. A checkpoint that does not hold every weight of the model is refused:
transformers would fill the gaps with random weights and carry on. For a part of a model (`Checkpoint.part`), only the
files that hold its weights are downloaded, read and hashed. Configurations of this package's networks, which may come
from a third party, are checked before the network that they describe is built.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch
from huggingface_hub import try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig, AutoFeatureExtractor, AutoTokenizer, PretrainedConfig, initialization
from transformers.utils import logging as transformers_logging

from audio_compositionality.support.files import open_file, read_file, sha256_of, sha256_of_file
from audio_compositionality.support.text import first_line, shortened, shown

from ..base import ModelError
from .beside_weights import STATES_RECORD, TOKENIZER_FILES, VOCABULARIES, recorded_data
from .downloads import WeightsFile, check_digest, download_from_hub
from .listing import register_configuration
from .twins import ModelSource, Twin
from .weights import PICKLES, State, load_exactly, read_tensors, weight_problems

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"

SETTINGS = ("config.json", "preprocessor_config.json", "processor_config.json")
"""Files that, with the weights, decide a model's output for a clip."""

UNUSED_WEIGHTS = ("masked_spec_embed",)
"""Weights used only in training, which published checkpoints often lack."""

UNUSED_BUFFERS = ("position_ids",)
"""Constants that older versions of transformers stored with the weights."""

PUBLISHED_PICKLES = {
    "laion/clap-htsat-unfused": WeightsFile(
        "pytorch_model.bin",
        "laion/clap-htsat-unfused",
        614_525_833,
        "sha256:1cd3c601bc4afe0fa87be3de4c13dd2cfadd249fac1e29acf74a9b296c3219bb",
    ),
}
"""Repositories whose only weights are a PyTorch file, with its published hash. If the hash matches, torch's restricted
unpickler reads the file."""

HOW_TO_WRAP = (
    "to embed with it anyway, write a class with `sample_rate` (Hz) and `embed(waveforms, sample_rate)`, which returns "
    "[clips, dim], and pass path/to/file.py:ClassName"
)
"""End of an error about an unsupported model."""


Rename = Callable[[str], "str | None"]
"""Map the name of a stored tensor to its name in a part; None for a tensor of another part."""


@dataclass(frozen=True)
class Checkpoint(ModelSource):
    """A model on disk or on the Hub; at first, only its configuration has been read.

    Attributes:
        name: listed name, Hub id, or name of the local folder.
        twin, paradigm, licence, trained_on: see `ModelSource`.
        source: what transformers loads from: a Hub id or a folder.
        commit: commit of the Hub repository; None for a folder.
        config: the transformers configuration.
        rename: for a part of the model, maps the name of a stored tensor to its name in the part, or to None for a
            tensor of another part; None for the whole model.
        rename_text: like `rename`, for a text tower, which is loaded separately and later; None without one. For a
            folder, the files of the text tower and of the tokenizer are also part of the revision; on the Hub the
            commit identifies them, and they are downloaded with the first text.
        built: a model of transformers in memory, its feature extractor and its tokenizer, from which encoders copy
            the parts that they run, instead of reading files. The commit is then the revision on cards.
    """

    name: str
    source: str
    commit: str | None
    config: Any
    twin: Twin | None = None
    paradigm: str | None = None
    licence: str | None = None
    trained_on: str | None = None
    rename: Rename | None = None
    rename_text: Rename | None = None
    built: tuple[Any, Any, Any] | None = None

    def part(self, rename: Rename = str, rename_text: Rename | None = None) -> Self:
        """Return the part whose tensors `rename` names, by default all of them; also a part of a part."""
        return replace(self, rename=rename, rename_text=rename_text)

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of the files that, with the weights, decide what the model computes."""
        return SETTINGS if self.rename_text is None else (*SETTINGS, *TOKENIZER_FILES)

    @property
    def revision(self) -> str:
        """The exact revision: see `ModelCard`."""
        if self.commit is not None:
            return self.commit if self.twin is None else f"seed-{self.twin.seed}-{self.commit[:12]}"
        files = [path for name in self.settings if (path := Path(self.source) / name).is_file()]
        if self.fresh_seed is None:
            files = [*self.files, *files]
        digest = files_digest(files)
        return f"sha256-{digest}" if self.twin is None else f"seed-{self.twin.seed}-{digest[:12]}"

    @cached_property
    def weights_sha256(self) -> str | None:
        """SHA-256 of `files`; of several files, of their digests in the order of names; None for a twin."""
        return None if self.twin is not None or self.built is not None else files_digest(self.files)

    def _is_used(self, tensor: str) -> bool:
        """Whether a stored tensor is used by the part or, in a folder, by the text tower, which is in the revision."""
        if self.rename is None or self.rename(tensor) is not None:
            return True
        return self.commit is None and self.rename_text is not None and self.rename_text(tensor) is not None

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """The files that hold the weights, in the order of names; missing ones are downloaded from the Hub.

        Without safetensors, a part may use the file of a repository of `PUBLISHED_PICKLES`, or its copy in a folder.

        Raises:
            ModelError: there are no such files, or one is missing or cannot be downloaded.
        """
        if (single := self.find(WEIGHTS)) is not None:
            return (single,)
        if (index := self.find(INDEX)) is not None:
            try:
                weight_map = json.loads(read_file(index))["weight_map"]
                names = sorted({file for tensor, file in weight_map.items() if self._is_used(tensor)})
                strange = [name for name in names if Path(name).name != name or not name.endswith(".safetensors")]
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ModelError(
                    f"cannot read {index}, the index of the weights of '{self.name}': {error!r}"
                ) from error
            if strange:
                raise ModelError(f"{index} lists {shown(strange)}, but must list .safetensors files next to it")
            if not names:
                raise ModelError(f"{index} lists no weights of the encoder of '{self.name}'")
            paths = {name: self.find(name) for name in names}
            for name, path in paths.items():
                if path is None:
                    raise ModelError(f"'{self.name}' has no {name}, which holds weights of its encoder")
            return tuple(path for path in paths.values() if path is not None)
        for repository, published in PUBLISHED_PICKLES.items() if self.rename is not None else ():
            if self.commit is not None and self.source != repository:
                continue
            path = self.find(published.name)
            if path is not None and (self.commit is not None or published.digest == f"sha256:{sha256_of_file(path)}"):
                check_digest(path, published.digest)
                return (path,)
        raise self._without_safetensors()

    def find(self, name: str) -> Path | None:
        """Return the local path of a file of the checkpoint, None if it has no such file.

        Raises:
            ModelError: the file cannot be downloaded.
        """
        if self.commit is None:
            path = Path(self.source) / name
            return path if path.is_file() else None
        # A commit does not change, so its cached files need no network.
        cached = try_to_load_from_cache(self.source, name, revision=self.commit)
        if cached is not None:
            return Path(cached) if isinstance(cached, str) else None
        try:
            return download_from_hub(self.source, name, self.commit)
        except Exception as error:
            if isinstance(error, EntryNotFoundError) and not isinstance(error, LocalEntryNotFoundError):
                return None
            raise ModelError(
                f"cannot get {name} of '{self.source}' from the Hugging Face Hub: {first_line(error).rstrip('.')}. "
                "Without network, pass a local folder that holds the configurations and the weights"
            ) from error

    def load_feature_extractor(self, wanted: type | None = None) -> Any:
        """Load the checkpoint's audio feature extractor.

        Args:
            wanted: required class; None for any.

        Raises:
            ModelError: it is of another class, or there is none: the model takes no sound, or its
                preprocessor_config.json is missing.
        """
        if self.built is not None:
            return self.built[1]
        try:
            with quiet(self.source):
                extractor = AutoFeatureExtractor.from_pretrained(  # type: ignore[no-untyped-call]
                    self.source, revision=self.commit, trust_remote_code=False
                )
        except Exception as error:
            raise ModelError(
                f"'{self.name}' (model type '{self.config.model_type}') has no feature extractor: an audio "
                f"encoder needs preprocessor_config.json next to config.json ({error}); {HOW_TO_WRAP}"
            ) from error
        rate = getattr(extractor, "sampling_rate", None)
        if not isinstance(rate, int) or rate <= 0:
            stated = "no sampling_rate" if rate is None else f"the sampling_rate {rate!r}"
            raise ModelError(
                f"'{self.name}' (model type '{self.config.model_type}') is not an audio model: its "
                f"{type(extractor).__name__} has {stated}; {HOW_TO_WRAP}"
            )
        if wanted is not None and not isinstance(extractor, wanted):
            raise ModelError(
                f"'{self.name}' (model type '{self.config.model_type}') has a {type(extractor).__name__}; it "
                f"needs the class {wanted.__name__}"
            )
        return extractor

    def load_tokenizer(self, vocabulary: int) -> Any:
        """Load the checkpoint's tokenizer.

        Args:
            vocabulary: number of tokens that the text model knows.

        Raises:
            ModelError: there is none, it cannot be read, or it has more tokens than the model knows.
        """
        if self.built is not None:
            return self.built[2]
        tokenizer = self._read_tokenizer(
            f"'{self.name}' has no tokenizer, so it cannot embed text: it needs tokenizer.json or one of "
            f"{', '.join(VOCABULARIES[1:])}, next to config.json"
        )
        if len(tokenizer) > vocabulary:
            raise ModelError(
                f"the tokenizer of '{self.name}' has {len(tokenizer):,} tokens, but the text model knows "
                f"{vocabulary:,}; they do not match"
            )
        return tokenizer

    def _read_tokenizer(self, missing: str) -> Any:
        """Load the tokenizer; `missing` is the error if there is none."""
        if not any(self.find(name) is not None for name in VOCABULARIES):
            raise ModelError(missing)
        try:
            with quiet(self.source):
                return AutoTokenizer.from_pretrained(self.source, revision=self.commit, trust_remote_code=False)
        except Exception as error:
            raise ModelError(f"cannot read the tokenizer of '{self.name}': {first_line(error)}") from error

    def load_model(
        self,
        model_class: Any,
        parts: tuple[str, ...] = ("",),
        *,
        dtype: torch.dtype = torch.float32,
        device_map: Any = None,
    ) -> Any:
        """Load the model in evaluation mode, with its stored weights or its twin's weights.

        Args:
            model_class: `AutoModel` or a model class; the class of the full model, even if only a part of it is used.
            parts: prefixes of the weights that are used and must therefore be in the checkpoint.
            dtype: data type of stored weights; fresh ones are float32.
            device_map: where transformers puts stored weights; None for the CPU.

        Raises:
            ModelError: there are no safetensors weights; weights are missing, of another shape or left over; or
                the configuration describes no model.
        """
        if self.fresh_seed is not None:
            build = getattr(model_class, "from_config", None) or model_class._from_config
            # Weights are drawn on the CPU, so that they do not depend on the device.
            with torch.random.fork_rng(devices=[]), quiet(self.source):
                torch.manual_seed(self.fresh_seed)
                try:
                    return build(self.config, dtype=torch.float32).eval()
                except Exception as error:
                    raise ModelError(f"the configuration of '{self.name}' describes no model: {error}") from error
        # Checked here, because transformers' own message would be about its options.
        _ = self.files
        try:
            with quiet(self.source):
                model, info = model_class.from_pretrained(
                    self.source,
                    config=self.config,
                    revision=self.commit,
                    dtype=dtype,
                    device_map=device_map,
                    use_safetensors=True,
                    trust_remote_code=False,
                    ignore_mismatched_sizes=True,
                    output_loading_info=True,
                )
        except Exception as error:
            raise ModelError(f"cannot load the weights of '{self.name}': {error}") from error
        missing = [key for key in info["missing_keys"] if key.startswith(parts) and not key.endswith(UNUSED_WEIGHTS)]
        reshaped = [
            f"{key} (stored {tuple(stored)}, model {tuple(expected)})"
            for key, stored, expected in info["mismatched_keys"]
            if key.startswith(parts)
        ]
        # A key left over matters in the part that is used, not in a head on top of the model.
        modules = {name.split(".")[0] for name in (*model.state_dict(), *dict(model.named_children()))}
        left_over = {key: key.removeprefix(f"{model.base_model_prefix}.") for key in info["unexpected_keys"]}
        unexpected = [
            key
            for key, name in left_over.items()
            if name.split(".")[0] in modules and name.startswith(parts) and not key.endswith(UNUSED_BUFFERS)
        ]
        problems = [*weight_problems(missing, reshaped, unexpected), *(info.get("error_msgs") or ())]
        if problems:
            raise ModelError(
                f"the weights of '{self.name}' do not match a {type(model).__name__}: {'; '.join(problems)}. "
                "Weights and config.json must come from the same model"
            )
        self.change(model, parts)
        return model.eval()

    def load_part(self, model_class: Any, config: Any, computed: tuple[str, ...] = ()) -> Any:
        """Load the part in float32 and evaluation mode, with its stored weights or its twin's weights.

        Args:
            model_class: class of the part, from transformers.
            config: its configuration.
            computed: names of buffers that are computed from the configuration and need not be stored.

        Raises:
            ModelError: the weights cannot be downloaded or read, or differ from the part's in names or shapes; the
                message lists them.
        """
        if self.fresh_seed is not None:
            return replace(self, config=config).load_model(model_class)
        try:
            with quiet(self.source), initialization.no_init_weights():
                module = model_class._from_config(config, dtype=torch.float32)
        except Exception as error:
            raise ModelError(f"the configuration of '{self.name}' describes no model: {first_line(error)}") from error
        for owner in module.modules():
            for buffer in {*computed} & {*dict(owner.named_buffers(recurse=False))}:
                owner.register_buffer(buffer, owner.get_buffer(buffer), persistent=False)
        load_exactly(module, self._read(), f"'{self.name}'")
        self.change(module)
        return module.eval().requires_grad_(False)

    def _read(self) -> State:
        """Read the tensors of the part, by its names, in their stored precision."""
        rename, state = self.rename or str, dict[str, torch.Tensor]()
        if self.built is not None:
            stored = self.built[0].state_dict()
            return {new: stored[name] for name in stored if (new := rename(name)) is not None}
        for file in self.files:
            if file.suffix != ".safetensors":
                stored = read_tensors(file)
                state |= {new: stored[name] for name in stored if (new := rename(name)) is not None}
                continue
            try:
                open_file(file).close()
                with safe_open(file, "pt") as tensors:
                    names = {name: rename(name) for name in tensors.keys()}  # noqa: SIM118 (no mapping)
                    state |= {new: tensors.get_tensor(name) for name, new in names.items() if new is not None}
            except (OSError, SafetensorError) as error:
                raise ModelError(f"cannot read the weights of '{self.name}' in {file}: {error}") from error
        return state

    def _without_safetensors(self) -> ModelError:
        """Return the error about a checkpoint without safetensors, with what to do."""
        if self.commit is not None:
            where, model = f"'{self.source}' on the Hugging Face Hub", f"'{self.source}'"
            reason = "; files of PyTorch are pickles, which can run code when read, and are refused"
        else:
            where, model = f"folder '{Path(self.source).name}'", "FOLDER"
            names = sorted(path.name for path in Path(self.source).iterdir())
            misnamed = [name for name in names if name.endswith(".safetensors")]
            if misnamed:
                return ModelError(f"'{self.name}' holds {shown(misnamed)}, but neither {WEIGHTS} nor {INDEX}")
            pickles = [name for name in names if name.endswith((*PICKLES, ".pkl"))]
            reason = f"; {shown(pickles)} is a pickle, which can run code when read, and is refused" if pickles else ""
        return ModelError(
            f"{where} holds no safetensors weights{reason}. If you trust them, save them once with "
            f"AutoModel.from_pretrained({model}).save_pretrained(NEW), also its AutoFeatureExtractor, and "
            "pass the folder NEW"
        )


def open_checkpoint(
    source: str | Path,
    *,
    name: str | None = None,
    twin: Twin | None = None,
    paradigm: str | None = None,
    licence: str | None = None,
    trained_on: str | None = None,
) -> Checkpoint:
    """Read the configuration of a checkpoint.

    Args:
        source: a folder (`Path`) that holds config.json, or a Hub id (`str`).
        name: a listed name, if it differs from the Hub id or the folder's name.
        twin, paradigm, licence, trained_on: see `Checkpoint`.

    Raises:
        ModelError: there is no such repository, it cannot be reached, or its configuration cannot be read.
    """
    if isinstance(source, Path):
        identifier, commit = source.resolve().name, None
    else:
        try:
            identifier, commit = source, download_from_hub(source, "config.json").parent.name
        except Exception as error:
            folder = "a local folder" if name is None else f"{name}=FOLDER, a local folder"
            raise ModelError(
                f"cannot get '{source}' from the Hugging Face Hub: {first_line(error).rstrip('.')}. Without network, "
                f"pass {folder} that holds config.json, preprocessor_config.json and safetensors weights"
            ) from error
    try:
        with quiet(source):
            stated, _ = PretrainedConfig.get_config_dict(source, revision=commit)
            register_configuration(str(stated.get("model_type")))
            config = AutoConfig.from_pretrained(source, revision=commit, trust_remote_code=False)
    except Exception as error:
        raise ModelError(f"cannot read the configuration of '{identifier}': {error}; {HOW_TO_WRAP}") from error
    checkpoint = Checkpoint(name or identifier, str(source), commit, config, twin, paradigm, licence, trained_on)
    if trained_on is not None and commit is not None:
        return checkpoint
    # The record describes the files of a folder, even if the listing states the data.
    fresh, is_stated = checkpoint.fresh_seed is not None, STATES_RECORD in stated
    recorded = recorded_data(checkpoint.find, is_stated=is_stated, fresh=fresh)
    return replace(checkpoint, trained_on=trained_on or recorded)


@contextmanager
def quiet(source: str | Path) -> Iterator[None]:
    """Silence transformers' reports of what is checked here; the progress bars of downloads stay."""
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


def files_digest(files: Sequence[Path]) -> str:
    """Return the SHA-256 of a file; of several files, of their joined digests."""
    digests = [sha256_of_file(file) for file in files]
    if len(digests) == 1:
        return digests[0]
    return sha256_of("".join(digests).encode())


MOST_WEIGHTS = 100_000_000
"""Maximum number of weights of a network built from a configuration (0.4 GB); `train` makes a hundredth of it."""

_SHOWN = 40


def check_network(checkpoint: Checkpoint, network: Any, sizes: Sequence[str]) -> None:
    """Raise an error if a configuration describes no network, or one of implausible size.

    Args:
        checkpoint: checkpoint with the configuration.
        network: class of the network in transformers; one is built without memory for its weights.
        sizes: names of the configuration's sizes.

    Raises:
        ModelError: names the wrong size, or says why no network can be built.
    """
    for name in sizes:
        check_whole(checkpoint, name, 1, MOST_WEIGHTS)
    try:
        with quiet(checkpoint.source), torch.device("meta"):
            weights = sum(weight.numel() for weight in network(checkpoint.config).parameters())
    except Exception as error:
        raise ModelError(f"the configuration of '{checkpoint.name}' describes no model: {first_line(error)}") from error
    if weights > MOST_WEIGHTS:
        raise ModelError(
            f"the configuration of '{checkpoint.name}' describes a {network.__name__} of {weights:,} weights; at most "
            f"{MOST_WEIGHTS:,} are allowed"
        )


def check_whole(checkpoint: Checkpoint, name: str, least: int, most: int) -> None:
    """Raise an error if a value of a configuration is not a whole number in a range.

    Raises:
        ModelError: names the value and the range.
    """
    value = getattr(checkpoint.config, name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ModelError(
            f"the configuration of '{checkpoint.name}' has {name}: {shortened(repr(value), _SHOWN)}; it must be a "
            f"whole number from {least} to {most:,}"
        )
