"""Encoders of other people: a class in a Python file, or one that an installed package offers.

A class needs `sample_rate` and `embed(waveforms, sample_rate)`, no more; `CustomEncoder` does the rest. Loading one
runs its code, as importing any Python module does.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from audio_compositionality.encoders.base import FloatArray, StagedEncoder, check_embeddings, check_sample_rate
from audio_compositionality.encoders.inference import inference
from audio_compositionality.encoders.options import DEFAULT_OPTIONS, EncoderOptions

GROUP = "audio_compositionality.encoders"
"""Entry points of this group are encoders: NAME = "module:Class"."""

SUFFIX = ".py"


class Embedder(Protocol):
    """What a class must have to be run as an encoder.

    It may also have `id` (default: the name of the class), `revision` (default: of a file its digest, of a package
    its version, either with the digest of the weights of its torch modules), `output_dim` (default: learnt from a
    second of noise), `device`, and `to(device)`, which is called when a device is asked for. What it says in `paradigm`
    (how it was trained) and `licence` (of its weights) stands in its results.

    Attributes:
        sample_rate: rate in Hz of the clips that `embed` is given; they are resampled to it before.
    """

    sample_rate: int

    def embed(self, waveforms: FloatArray, sample_rate: int) -> Any:
        """Embed clips, float32 [n, samples] at `sample_rate`, which is the class's own.

        Returns:
            floating [n, output_dim], a NumPy array or a torch tensor on any device.
        """
        ...


class CustomEncoder(StagedEncoder[FloatArray]):
    """An `Embedder` run as an encoder: its clips are checked and brought to its own rate, its output is checked."""

    def __init__(self, embedder: Embedder, *, name: str, source: str) -> None:
        """Read what the embedder says of itself, and embed a second of noise.

        Args:
            embedder: the object.
            name: what messages call it.
            source: the revision where it has none: what code it is.

        Raises:
            ValueError: if it lacks `sample_rate` or `embed`, or `embed` returns no embeddings.
        """
        self._name = name
        self._embedder = embedder
        for attribute in ("sample_rate", "embed"):
            if not hasattr(embedder, attribute):
                raise ValueError(f"'{name}' has no {attribute}; an encoder needs sample_rate and embed")
        if not callable(embedder.embed):
            raise ValueError(f"'{name}': embed is no method; it must be embed(waveforms, sample_rate)")
        try:
            self.sample_rate = check_sample_rate(embedder.sample_rate)
        except (TypeError, ValueError):
            raise ValueError(
                f"'{name}': sample_rate is {embedder.sample_rate!r}, but must be a positive whole number of Hz"
            ) from None
        self.id = str(getattr(embedder, "id", type(embedder).__name__))
        self.device = device_of(embedder)
        self.output_dim = self._find_output_dim()
        self.weights_sha256 = weights_digest(embedder)
        self.num_parameters = count_parameters(embedder)
        self.paradigm = getattr(embedder, "paradigm", None)
        self.licence = getattr(embedder, "licence", None)
        self.revision = str(getattr(embedder, "revision", source_revision(source, self.weights_sha256)))

    def _find_output_dim(self) -> int:
        noise = np.random.default_rng(0).normal(0, 0.1, (1, self.sample_rate)).astype(np.float32)
        stated = getattr(self._embedder, "output_dim", None)
        if stated is not None:
            return int(stated)
        array = self._embed(noise)
        if array.ndim != 2 or len(array) != 1:
            raise ValueError(
                f"'{self._name}': embed returned shape {array.shape} for one clip, but must return [1, dim]"
            )
        return int(array.shape[1])

    def _embed(self, clips: FloatArray) -> np.ndarray[Any, Any]:
        with inference(self.device):
            return to_array(self._embedder.embed(clips, self.sample_rate), self._name)

    def _extract_features(self, clips: FloatArray) -> FloatArray:
        return clips

    def _run_model(self, features: FloatArray) -> FloatArray:
        return check_embeddings(self._embed(features), self, len(features))


def load_from_file(spec: str, device: str | torch.device | None, options: EncoderOptions) -> StagedEncoder[Any]:
    """The encoder that the class of ``path/to/file.py:ClassName`` makes; it is called without arguments.

    A `StagedEncoder` is used as it is, any other object through `CustomEncoder`.

    Raises:
        ValueError: if there is no such file or class, the class needs arguments or is no encoder, or on options.
        Exception: whatever the file raises when it is run, with a note that says so.
    """
    path, attribute = split_file_spec(spec)
    _refuse_options(spec, options)
    made = call_without_arguments(load_attribute(path, attribute), spec)
    return _as_encoder(made, spec, source_digest(path), device)


def installed_encoders() -> dict[str, EntryPoint]:
    """The entry points of installed packages that are encoders, by name; none of them is imported."""
    return {point.name: point for point in entry_points(group=GROUP)}


def describe_installed(point: EntryPoint) -> str:
    """Which distribution an entry point belongs to, and its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown distribution"


def load_installed(point: EntryPoint, device: str | torch.device | None, options: EncoderOptions) -> StagedEncoder[Any]:
    """The encoder that an entry point makes; see `load_from_file`.

    Raises:
        ValueError: if it cannot be imported, needs arguments or is no encoder, or on options.
    """
    _refuse_options(point.name, options)
    try:
        factory = point.load()
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"encoder '{point.name}' of {describe_installed(point)} is '{point.value}', which cannot be imported: "
            f"{error}"
        ) from error
    version = point.dist.version if point.dist is not None else "unknown"
    return _as_encoder(call_without_arguments(factory, point.name), point.name, version, device)


def _as_encoder(made: Any, name: str, source: str, device: str | torch.device | None) -> StagedEncoder[Any]:
    if device is not None and callable(getattr(made, "to", None)):
        made.to(device)
    if isinstance(made, StagedEncoder):
        missing = [key for key in ("id", "sample_rate", "output_dim", "revision") if not hasattr(made, key)]
        if missing:
            raise ValueError(f"'{name}' has no {', '.join(missing)}; a StagedEncoder sets its attributes itself")
        return made
    return CustomEncoder(made, name=name, source=source)


def _refuse_options(name: str, options: EncoderOptions) -> None:
    if options != DEFAULT_OPTIONS:
        raise ValueError(
            f"'{name}' embeds by its own code: it takes no layer, pooling, precision or compilation; set them there"
        )


def split_file_spec(spec: str) -> tuple[Path, str]:
    """Path and class of ``path/to/file.py:ClassName``.

    Raises:
        ValueError: if there is no class, or no such file.
    """
    file, colon, attribute = spec.rpartition(":") if not spec.endswith(SUFFIX) else (spec, "", "")
    path = Path(file).expanduser()
    if not path.is_file():
        raise ValueError(f"'{spec}': there is no file '{file}'")
    if not colon or not attribute:
        raise ValueError(f"'{spec}' names no class of the file; give {path.name}:ClassName")
    return path, attribute


def is_file_spec(spec: str) -> bool:
    """Whether an encoder's id stands for a class in a file."""
    return spec.endswith(SUFFIX) or spec.rpartition(":")[0].endswith(SUFFIX)


def load_attribute(path: Path, attribute: str) -> Any:
    """An attribute of a Python file, which is run as a module of a name of its own.

    The file's folder is the first place where its imports are looked for, and the last one for all later ones.

    Raises:
        ValueError: if the file has no such attribute; the nearest class is named.
        Exception: whatever running the file raises.
    """
    path = path.resolve()
    name = f"_audio_compositionality_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickles look their module up.
    sys.modules[name] = module
    folder = str(path.parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        error.add_note(f"while running '{path.name}' to load an encoder")
        raise
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)
    if not hasattr(module, attribute):
        classes = [key for key, value in vars(module).items() if inspect.isclass(value) and value.__module__ == name]
        close = difflib.get_close_matches(attribute, classes, n=1, cutoff=0.5)
        hint = f"did you mean '{close[0]}'?" if close else f"its classes are {', '.join(classes) or 'none'}"
        raise ValueError(f"'{path.name}' has no class '{attribute}'; {hint}")
    return getattr(module, attribute)


def call_without_arguments(factory: Callable[[], Any], name: str) -> Any:
    """What a class or function makes when it is called without arguments.

    Raises:
        ValueError: if it cannot be called, or needs arguments, which are named.
        Exception: whatever it raises, with a note that says where.
    """
    if not callable(factory):
        raise ValueError(f"'{name}' is a {type(factory).__name__}; it must be a class, or a function that makes one")
    needed = [
        parameter.name
        for parameter in inspect.signature(factory).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        raise ValueError(
            f"'{name}' needs the arguments {', '.join(needed)}, but is called without any: give them defaults, or "
            "write a class that fills them in"
        )
    try:
        return factory()
    except Exception as error:
        error.add_note(f"while making the encoder '{name}'")
        raise


def check_module(model: Any, attributes: Sequence[str], name: str, suite: str) -> Any:
    """The model, known to be a torch module with some attributes.

    Raises:
        ValueError: if it is none, or lacks one.
    """
    if not isinstance(model, torch.nn.Module):
        raise ValueError(
            f"'{name}' makes a {type(model).__name__}; an encoder of {suite} must be a torch.nn.Module here, "
            "so none of TensorFlow"
        )
    for attribute in attributes:
        if not hasattr(model, attribute):
            raise ValueError(f"the model of '{name}' has no {attribute}, which {suite} asks for")
    return model


def to_array(output: Any, name: str) -> np.ndarray[Any, Any]:
    """What a model returned as a NumPy array; a torch tensor of any device is taken, bfloat16 becomes float32.

    Raises:
        ValueError: if it is neither.
    """
    if isinstance(output, torch.Tensor):
        tensor = output.detach().cpu()
        array: np.ndarray[Any, Any] = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
        return array
    if isinstance(output, np.ndarray):
        return output
    raise ValueError(f"'{name}' returned a {type(output).__name__}, but must return a NumPy array or a torch tensor")


def device_of(embedder: Any) -> str:
    """Where an object computes: its `device`, else that of the first weight of a torch module, else the CPU."""
    device = getattr(embedder, "device", None)
    if device is None and isinstance(embedder, torch.nn.Module):
        device = next((parameter.device for parameter in embedder.parameters()), None)
    return str(device) if device is not None else "cpu"


def weights_digest(embedder: Any) -> str | None:
    """SHA-256 of the names, shapes, types and values in a torch module, or in those that are an object's attributes.

    Returns:
        hexadecimal digits; None where there is no weight.
    """
    digest, found = hashlib.sha256(), False
    for prefix, module in sorted(_torch_modules(embedder).items()):
        for key, value in sorted(module.state_dict().items()):
            if isinstance(value, torch.Tensor):
                found = True
                digest.update(f"{prefix}.{key} {value.dtype} {tuple(value.shape)}\n".encode())
                digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest() if found else None


def count_parameters(embedder: Any) -> int | None:
    """Number of weights of a torch module, or of those that are an object's attributes, shared ones counted once.

    Returns:
        None where there is no weight.
    """
    modules = _torch_modules(embedder).values()
    weights = {id(weight): weight.numel() for module in modules for weight in module.parameters()}
    return sum(weights.values()) or None


def _torch_modules(embedder: Any) -> dict[str, torch.nn.Module]:
    """The object itself if it is a torch module, else those of its attributes that are, by name."""
    if isinstance(embedder, torch.nn.Module):
        return {"": embedder}
    attributes = getattr(embedder, "__dict__", {})
    return {name: value for name, value in attributes.items() if isinstance(value, torch.nn.Module)}


def source_digest(path: Path) -> str:
    """``source-`` and the first 16 hexadecimal digits of the SHA-256 of a file."""
    return f"source-{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"


def source_revision(source: str, weights_sha256: str | None) -> str:
    """A revision of code and weights: other weights under the same code are another revision."""
    return source if weights_sha256 is None else f"{source}-weights-{weights_sha256[:16]}"
