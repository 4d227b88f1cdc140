"""Users' models: a class in a Python file or an installed package, or an object.

A class of encoders needs `sample_rate` and `embed(waveforms, sample_rate)`, and optionally `embed_text(texts)`. An
audio language model needs `answer(clips, prompts)`, with one clip per prompt; a class may have both. `CustomModel` does
the rest, and `wrap` makes an object for it from a bare torch module.
Loading a class runs its code, as importing any Python module does.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.files import sha256_of, sha256_of_file
from audio_compositionality.support.text import first_line, nearest, with_article

from .. import base
from ..inference import inference

if TYPE_CHECKING:
    import torch


class ModelCodeError(base.ModelError):
    """An error in a user's own code, with its line and file."""


class Embedder(Protocol):
    """The interface of a user's class that is run as an encoder.

    With `embed_text(texts)`, which takes a list of str and returns floating-point [n, output_dim], it embeds texts and
    clips into one space. With `embed_frames(waveforms, sample_rate)`, which takes the arguments of `embed` and returns
    floating-point [n, frames, dim] and the seconds between frames, it embeds frames; see `Model.embed_frames`.

    With `embed_layers(waveforms, sample_rate)`, which takes the arguments of `embed` and returns floating-point
    [n, dim] for each layer, from 0, the input of the first block, a class can be loaded at a layer; lengths may differ.

    It may also have `id` (default: the name of the class), `revision` (default: a file's digest, a package's
    version, or for an object see `object_source`, each with the digest of the weights of its torch modules),
    `output_dim` (default: measured on a second of noise), ``pooling = "mean"`` if `embed` returns frames
    [n, frames, output_dim] that are to be averaged, `device`, and `to(device)`, which is called if a device is
    requested. Its `paradigm` (how it was trained), `trained_on` (the data) and `licence` (of its weights) appear in its
    results. For `network` and `untrained()` see `custom_loading`.

    Attributes:
        sample_rate: rate in Hz of the clips that `embed` takes; clips are resampled to it first.
    """

    sample_rate: int

    def embed(self, waveforms: base.FloatArray, sample_rate: int) -> Any:
        """Embed clips, float32 [n, samples] at `sample_rate`, the rate that the class states.

        Returns:
            floating-point [n, output_dim], a NumPy array or a torch tensor on any device.
        """
        ...


MEAN = "mean"
"""The pooling of frames that an object may request."""


class CustomModel(base.WaveformEncoder):
    """A user's object run as a model with the object's abilities.

    Its clips are checked and resampled to its own rate, its embeddings are checked, and errors in its code are reported
    with file and line. Its card is made from its attributes; see `Embedder`.

    Attributes:
        made: the object.
    """

    def __init__(self, made: Any, *, name: str, source: str | None) -> None:
        """Read the object's attributes; if it embeds, embed a second of noise.

        Args:
            made: the object.
            name: name for messages.
            source: identity of its code, used as revision if it states none; None for an object that was not made from
                a name.

        Raises:
            ModelError: it lacks `sample_rate`, or neither embeds nor answers, or `embed` returns no embeddings.
            ModelCodeError: `embed` raises an error.
        """
        self._name, self.made = name, made
        # The abilities that need answering count only if it answers.
        methods = {word: method for word, (method, _) in base.ABILITIES.items() if method}
        able = {word for word, method in methods.items() if callable(getattr(made, method, None))}
        if callable(getattr(made, "answer_from_labels", None)):
            # It reads labels instead of sound, so it cannot score options by likelihood.
            able = able - {"score"} | {"answer", "labels"}
        self._abilities = frozenset(able if "answer" in able else able & {"audio", "frames", "text", "events"})
        embeds = hasattr(made, "embed") or "answer" not in self._abilities
        needs = (
            "an encoder needs sample_rate and embed"
            if embeds
            else "an audio language model needs sample_rate and answer"
        )
        for attribute in ("sample_rate", "embed") if embeds else ("sample_rate",):
            if not hasattr(made, attribute):
                bare = "; a bare torch.nn.Module becomes an encoder with ac.wrap(module, sample_rate=16_000)"
                raise base.ModelError(f"'{name}' has no {attribute}; {needs}{bare if _torch_modules(made) else ''}")
        if embeds and not callable(made.embed):
            raise base.ModelError(f"'{name}': embed is not a method; define embed(waveforms, sample_rate)")
        self.device = device_of(made)
        self.card = stated_card(made, name, object_source(made) if source is None else source)
        if embeds:
            output_dim = getattr(made, "output_dim", None)
            if output_dim is None:
                rate = self.card.sample_rate
                probe = f"a second of noise, [1, {rate}], to find the length of its embeddings"
                try:
                    embedding = self._embed(np.random.default_rng(0).normal(0, 0.1, (1, rate)).astype(np.float32))
                except ModelCodeError as error:
                    raise ModelCodeError(
                        f"{error}; embed was called with {probe}. If the encoder takes only clips of one length, set "
                        "output_dim to skip this"
                    ) from error.__cause__
                if embedding.ndim != 2 or len(embedding) != 1 or not embedding.size:
                    raise base.ModelError(
                        f"'{name}': embed returned shape {embedding.shape} for one clip, but must return [1, dim]; it "
                        f"was called with {probe}"
                    )
                output_dim = embedding.shape[1]
                if source is None and not hasattr(made, "revision"):
                    revision = source_revision(object_source(made, embedding), self.card.weights_sha256)
                    self.card = replace(self.card, revision=revision)
            self.card = replace(self.card, output_dim=int(output_dim))

    @property
    def abilities(self) -> frozenset[str]:
        """The object's abilities, by its methods."""
        return self._abilities

    def prepare(self, waveforms: ArrayLike, sample_rate: int) -> base.FloatArray:
        """Prepare clips as `StagedEncoder.prepare` does, for an object that embeds."""
        self.require("audio")
        return super().prepare(waveforms, sample_rate)

    def embed_frames(self, waveforms: ArrayLike, sample_rate: int) -> tuple[base.FloatArray, float]:
        """Return the object's frames of clips at its rate; see `Model.embed_frames`.

        Raises:
            ModelError: `embed_frames` does not return frames of each clip and the distance between them.
            ModelCodeError: it raises an error.
        """
        self.require("frames")
        clips = super().prepare(waveforms, sample_rate)
        with inference(self.device), user_code(self._name):
            frames, step = self.made.embed_frames(clips, self.card.sample_rate)
        array = to_array(frames, self._name)
        if array.ndim != 3 or len(array) != len(clips) or not step > 0:
            raise base.ModelError(
                f"'{self._name}': embed_frames returned shape {array.shape} and {step!r} s per frame; it must return "
                f"[{len(clips)}, frames, dim] and the seconds between frames"
            )
        return array.astype(np.float32, copy=False), float(step)

    def embed_text(self, texts: Sequence[str]) -> base.FloatArray:
        """Embed texts; see `Model.embed_text`.

        Raises:
            InputError: it is not a list of texts.
            ModelError: `embed_text` does not return embeddings as long as those from clips.
            ModelCodeError: it raises an error.
        """
        self.require("text")
        listed = base.check_texts(texts)
        with inference(self.device), user_code(self._name):
            embeddings = to_array(self.made.embed_text(listed), self._name)
        return base.check_text_embeddings(embeddings, self, listed)

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """Return the object's answers about clips at its rate, one per prompt; from the rows if it reads labels.

        Raises:
            ModelError: a prompt is about several clips.
            ModelCodeError: its code raises an error.
        """
        self.require("answer")
        if "labels" in self.abilities:
            rows = self.rows_of(clips)
            with user_code(self._name):
                told: list[str] = self.made.answer_from_labels(rows, prompts)
                return told
        with inference(self.device), user_code(self._name):
            answers: list[str] = self.made.answer(self._brought(self.single_clips(clips)), prompts)
            return answers

    def score_options(
        self, clips: Sequence[Sequence[Any]], prompts: Sequence[str], options: Sequence[Sequence[str]], by: base.By
    ) -> list[list[float]]:
        """Return the object's scores about clips at its rate; raises as `answer`."""
        self.require("score")
        with inference(self.device), user_code(self._name):
            brought = self._brought(self.single_clips(clips))
            scores: list[list[float]] = self.made.score_options(brought, prompts, options, by)
            return scores

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """Train the object on clips at its rate."""
        self.require("learn")
        with user_code(self._name):
            self.made.learn(rows, (one for clip in clips for one in self._brought([clip])))

    def detect_events(self, clips: Sequence[Any]) -> list[list[base.EventDict]]:
        """Return the events that the object detects in clips at its rate."""
        self.require("events")
        with inference(self.device), user_code(self._name):
            events: list[list[base.EventDict]] = self.made.detect_events(self._brought(clips))
            return events

    def _brought(self, clips: Sequence[Any]) -> list[base.GivenClip]:
        rate = self.card.sample_rate
        return [base.GivenClip(base.resample(clip.waveform[None], clip.sample_rate, rate)[0], rate) for clip in clips]

    def _embed(self, clips: base.FloatArray) -> np.ndarray[Any, Any]:
        with inference(self.device), user_code(self._name):
            array = to_array(self.made.embed(clips, self.card.sample_rate), self._name)
        if array.ndim != 3:
            return array
        if getattr(self.made, "pooling", None) != MEAN or 0 in array.shape:
            raise base.ModelError(
                f"'{self._name}': embed returned shape {array.shape}, but must return [{len(clips)}, dim]; to average "
                f'frames, [{len(clips)}, frames, dim], set pooling = "{MEAN}" in the class or in ac.wrap'
            )
        pooled: base.FloatArray = array.mean(axis=1, dtype=np.float32)
        return pooled

    def _run_model(self, features: base.FloatArray) -> base.FloatArray:
        return base.check_embeddings(self._embed(features), self, len(features))


class WrappedModule:
    """A torch module as an encoder, made by `wrap`; for its attributes see `Embedder`."""

    network = "module"

    def __init__(self, module: torch.nn.Module, sample_rate: int, pooling: str | None) -> None:
        """Store the arguments of `wrap`, which checks them."""
        self.module, self.sample_rate, self.pooling = module, sample_rate, pooling
        self.id = type(module).__name__

    @property
    def device(self) -> str:
        """The device of the module's first weight."""
        return device_of(self.module)

    def to(self, device: torch.device) -> None:
        """Move the module."""
        self.module.to(device)

    def embed(self, waveforms: base.FloatArray, sample_rate: int) -> torch.Tensor:
        """Return the module's output in evaluation mode; afterwards each part is in its former mode."""
        import torch

        modes = {part: part.training for part in self.module.modules()}
        self.module.eval()
        try:
            output = self.module(torch.from_numpy(waveforms).to(self.device))
        finally:
            for part, mode in modes.items():
                part.training = mode
        if not isinstance(output, torch.Tensor):
            raise base.ModelError(
                f"forward of {self.id} returned a {type(output).__name__}, but must return a tensor, [batch, dim] or "
                "[batch, frames, dim]; wrap a module that returns only the tensor"
            )
        return output


def wrap(module: object, *, sample_rate: int, pooling: str | None = None) -> WrappedModule:
    """Wrap a bare torch module as an encoder, for `load_model` and `evaluate`, or to return from a function in a file,
    which is then loaded as ``path/to/file.py:function``.

    Its untrained twin draws new weights by the ``reset_parameters()`` of the module's layers. A module with a layer
    that lacks this method needs a class of its own with ``def untrained(self)`` instead of `wrap`.

    Args:
        module: its ``forward`` takes clips, float32 [batch, samples] at `sample_rate` on the module's device, and
            returns [batch, dim] or [batch, frames, dim].
        sample_rate: Hz; clips are resampled to it.
        pooling: ``mean`` averages frames; None for a module that returns none.

    Raises:
        ModelError: it is not a torch module, or an argument is invalid.
    """
    import torch

    if not isinstance(module, torch.nn.Module):
        got = f"the class {module.__name__}" if isinstance(module, type) else with_article(type(module).__name__)
        raise base.ModelError(f"wrap was given {got}; it takes a torch.nn.Module, that is, an object of its class")
    if pooling not in (None, MEAN):
        raise base.ModelError(
            f"pooling is {pooling!r}; it must be '{MEAN}' for a module that returns frames, else None"
        )
    return WrappedModule(module, base.check_sample_rate(sample_rate), pooling)


def stated_card(made: Any, name: str, source: str) -> base.ModelCard:
    """Make the card of a user's object from its attributes and weights, without the length of its embeddings. `name` is
    for messages; `source` is the revision if the object states none.

    Raises:
        ModelError: its sample rate is not a positive whole number.
    """
    try:
        rate = base.check_sample_rate(made.sample_rate)
    except (TypeError, ValueError):
        raise base.ModelError(
            f"'{name}': sample_rate is {made.sample_rate!r}, but must be a positive whole number of Hz"
        ) from None
    sha256 = weights_digest(made)
    return base.ModelCard(
        id=str(getattr(made, "id", type(made).__name__)),
        revision=str(getattr(made, "revision", source_revision(source, sha256))),
        sample_rate=rate,
        output_dim=None,
        weights_sha256=sha256,
        parameters=count_parameters(made),
        paradigm=getattr(made, "paradigm", None),
        licence=getattr(made, "licence", None),
        trained_on=getattr(made, "trained_on", None),
    )


@contextmanager
def user_code(name: str) -> Iterator[None]:
    """Add the location to an error in a user's code; errors of this package and about memory pass unchanged.

    Raises:
        ModelCodeError: instead of any other error.
    """
    try:
        yield
    except (AudioCompositionalityError, MemoryError):
        raise
    except Exception as error:
        if "out of memory" in str(error):
            raise
        # Innermost first, without the files of installed packages and of this folder.
        frames = []
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            path = Path(frame.filename)
            is_file = not path.name.startswith("<") and path.parent != Path(__file__).parent
            if is_file and not {"site-packages", "dist-packages", "importlib"} & set(path.parts):
                frames.append(frame)
        if isinstance(error, SyntaxError) and error.filename is not None:
            frames.insert(0, traceback.FrameSummary(error.filename, error.lineno, ""))
        place = f"{Path(frames[0].filename).name}, line {frames[0].lineno}" if frames else "an unknown line"
        raise ModelCodeError(f"'{name}': {type(error).__name__} in {place}: {first_line(error)}") from error


class _UncachedLoader(SourceFileLoader):
    """Compile a file whenever it is run. Python recognises a cached module by size and time in seconds, so it could run
    an old version after a change within the same second. This also leaves no cache in a user's folder."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def load_attribute(path: Path, attribute: str) -> Any:
    """Return an attribute of a Python file, which is run as a module with its own name.

    Imports of the file are searched in its folder first; later imports of other modules search that folder last.

    Raises:
        ModelError: the file has no such attribute; the nearest class is named.
        ModelCodeError: running the file raises an error.
    """
    path = path.resolve()
    name = f"_audio_compositionality_{path.stem}_{sha256_of(str(path).encode())[:12]}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_UncachedLoader(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickles look up their module.
    sys.modules[name] = module
    folder = str(path.parent)
    sys.path.insert(0, folder)
    try:
        with user_code(path.name):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)
    if not hasattr(module, attribute):
        classes = [key for key, value in vars(module).items() if inspect.isclass(value) and value.__module__ == name]
        raise base.ModelError(f"'{path.name}' has no class '{attribute}': {nearest(attribute, classes)}")
    return getattr(module, attribute)


def call_without_arguments(factory: Callable[[], Any], name: str) -> Any:
    """Call a class or function without arguments and return the result.

    Raises:
        ModelError: it cannot be called, or needs arguments, which are named.
        ModelCodeError: it raises an error.
    """
    if not callable(factory):
        raise base.ModelError(
            f"'{name}' is a {type(factory).__name__}; it must be a class, or a function that makes one"
        )
    needed = [
        parameter.name
        for parameter in inspect.signature(factory).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        raise base.ModelError(
            f"'{name}' needs the arguments {', '.join(needed)}, but is called without any: give them defaults, or "
            "write a class that fills them in"
        )
    with user_code(name):
        return factory()


def check_module(model: Any, attributes: Sequence[str], name: str, suite: str) -> Any:
    """Return the model if it is a torch module with the given attributes.

    Raises:
        ModelError: it is not, or lacks one.
    """
    import torch

    if not isinstance(model, torch.nn.Module):
        raise base.ModelError(
            f"'{name}' makes a {type(model).__name__}; an encoder of {suite} must be a torch.nn.Module; "
            "TensorFlow is not supported"
        )
    for attribute in attributes:
        if not hasattr(model, attribute):
            raise base.ModelError(f"the model of '{name}' has no {attribute}, which {suite} requires")
    return model


def to_array(output: Any, name: str) -> np.ndarray[Any, Any]:
    """Return a model's output as a NumPy array; torch tensors on any device are converted, bfloat16 to float32.

    Raises:
        ModelError: it is neither.
    """
    import torch

    if isinstance(output, torch.Tensor):
        tensor = output.detach().cpu()
        array: np.ndarray[Any, Any] = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
        return array
    if isinstance(output, np.ndarray):
        return output
    raise base.ModelError(
        f"'{name}' returned a {type(output).__name__}, but must return a NumPy array or a torch tensor"
    )


def device_of(embedder: Any) -> str:
    """Return the device of an object: its `device`, else of the first weight of a torch module, else the CPU."""
    import torch

    device = getattr(embedder, "device", None)
    if device is None and isinstance(embedder, torch.nn.Module):
        device = next((parameter.device for parameter in embedder.parameters()), None)
    return str(device) if device is not None else "cpu"


def weights_digest(embedder: Any) -> str | None:
    """Return the SHA-256 of the names, shapes, types and values in a torch module, or in an object's torch modules.

    Returns:
        hexadecimal digits; None without any weight.
    """
    import torch

    digest, is_empty = hashlib.sha256(), True
    for prefix, module in sorted(_torch_modules(embedder).items()):
        for key, value in sorted(module.state_dict().items()):
            if isinstance(value, torch.Tensor):
                is_empty = False
                digest.update(f"{prefix}.{key} {value.dtype} {tuple(value.shape)}\n".encode())
                digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return None if is_empty else digest.hexdigest()


def count_parameters(embedder: Any) -> int | None:
    """Count the weights of a torch module, or of an object's torch modules; shared ones count once.

    Returns:
        None without any weight.
    """
    modules = _torch_modules(embedder).values()
    weights = {id(weight): weight.numel() for module in modules for weight in module.parameters()}
    return sum(weights.values()) or None


def _torch_modules(embedder: Any) -> dict[str, torch.nn.Module]:
    """Return the object itself if it is a torch module, else its attributes that are torch modules, by name."""
    import torch

    if isinstance(embedder, torch.nn.Module):
        return {"": embedder}
    attributes = getattr(embedder, "__dict__", {})
    return {name: value for name, value in attributes.items() if isinstance(value, torch.nn.Module)}


def source_digest(path: Path) -> str:
    """Return ``source-`` and the first 16 hexadecimal digits of the SHA-256 of a file."""
    return f"source-{sha256_of_file(path)[:16]}"


def object_source(made: Any, embedding: np.ndarray[Any, Any] | None = None) -> str:
    """Return `OBJECT` and 16 hexadecimal digits that distinguish objects: a digest of the source of its class, its
    numbers and texts, those in its torch modules, and its embedding of the probe. It serves only as a name, since it
    ignores functions that the object calls: results under this revision are never reused.
    """
    digest = hashlib.sha256(b"" if embedding is None else embedding.tobytes())
    modules = _torch_modules(made).values()
    for one in (made, *modules):
        # A class typed at a prompt may have no source.
        with suppress(OSError, TypeError):
            digest.update(inspect.getsource(type(one)).encode())
    for part in (made, *(part for module in modules for part in module.modules())):
        attributes = getattr(part, "__dict__", {}).items()
        plain = [(name, value) for name, value in attributes if isinstance(value, (int, float, str, tuple))]
        digest.update(repr([pair for pair in plain if pair[0] != "training"]).encode())
    return f"{base.OBJECT}{digest.hexdigest()[:16]}"


def source_revision(source: str, weights_sha256: str | None) -> str:
    """Return a revision that changes with the code and with the weights."""
    return source if weights_sha256 is None else f"{source}-weights-{weights_sha256[:16]}"
