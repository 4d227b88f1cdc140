"""Load a user's class as a model, or as one of its two twins, `untrained:` and `shuffled:`.

Both twins work without further code if the class is a `torch.nn.Module`, or holds one with weights in a single
attribute; if several attributes hold one, the class names the network: ``network = "encoder"``. Fresh weights are drawn
by its modules' ``reset_parameters()``; a model of transformers gets the weights of a new one with the same
configuration. Any other class provides its untrained twin: ``def untrained(self)`` or ``def untrained(self, seed)``
returns it.
"""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from audio_compositionality.support.files import sha256_of
from audio_compositionality.support.text import shown

from ..base import FloatArray, Model, ModelCard, ModelError
from ..inference import inference
from ..loading.names import describe_installed, installed_classes, is_file, split_file
from ..loading.twins import UNTRAINED, Twin, TwinKind, untrained_card
from ..model_encoder import Hidden, LayeredEncoder
from ..options import DEFAULT_OPTIONS, EncoderOptions
from . import custom

if TYPE_CHECKING:
    import torch


_OWN_WAY = "untrained"
"""The method that returns the untrained twin."""

_NAMES_NETWORK = "network"
"""The class attribute that names the attribute with the network."""


def twin_problem(model: Model, prefix: str) -> str | None:
    """Explain why a loaded model has no twin although its class seems to have one; None if it may have one.

    Args:
        model: any model; only users' classes can differ from their declaration.
        prefix: prefix of the twin.
    """
    import torch

    made = model.made if isinstance(model, custom.CustomModel) else model
    _, network = _named_network(made)
    is_drawn = prefix == UNTRAINED and not callable(getattr(made, _OWN_WAY, None))
    left = _undrawn(network) if is_drawn and isinstance(network, torch.nn.Module) else []
    return _of_undrawn(model.card.id, left) if left else None


def _twin_of(made: Any, name: str, twin: Twin) -> Any:
    """Return the twin of a user's object; its network is changed in place.

    The random numbers of torch, NumPy and Python start from the seed of the twin in ``untrained()``, which gets the
    seed if it takes one. If its modules draw fresh weights, torch's random numbers start from the seed.

    Args:
        made: the object, on any device.
        name: name for messages.
        twin: kind and seed.

    Raises:
        ModelError: it has neither a network nor ``untrained()``, its ``untrained()`` returns the same weights, or
            some weights of the network cannot be drawn.
        ModelCodeError: its code raises an error.
    """
    import torch

    kind = twin.kind
    if kind.is_fresh and callable(getattr(made, _OWN_WAY, None)):
        before = _identity(made, name)
        with _seeded(twin.seed), custom.user_code(name):
            try:
                takes_seed = "seed" in inspect.signature(made.untrained).parameters
            except (TypeError, ValueError):
                # A method that is not written in Python may have no signature.
                takes_seed = False
            other = made.untrained(**({"seed": twin.seed} if takes_seed else {}))
        if not any(callable(getattr(other, method, None)) for method in ("embed", "answer")):
            raise ModelError(
                f"'{name}': untrained() returned a {type(other).__name__}, but must return the twin, which embeds or "
                "answers as the model does"
            )
        if before is not None and _identity(other, name) == before:
            raise ModelError(
                f"'{name}': untrained() returned the same weights; it must return the same architecture "
                "with untrained weights"
            )
        return other
    attribute, network = _named_network(made)
    if not isinstance(network, torch.nn.Module) and attribute is not None:
        raise ModelError(
            f"'{name}': {_NAMES_NETWORK} is {attribute!r}, and its attribute {attribute} is a "
            f"{type(network).__name__}; it must be a torch.nn.Module"
        )
    if not isinstance(network, torch.nn.Module):
        networks = _networks(made)
        of_class = f"holds torch modules in {shown(networks)}" if networks else "holds no torch module with weights"
        method = f", or write def {_OWN_WAY}(self), which returns the twin" if kind.is_fresh else ""
        raise ModelError(
            f"'{kind.prefix}{name}': cannot {kind.deed}: '{name}' {of_class}. Name the attribute of "
            f'the network in the class: {_NAMES_NETWORK} = "{networks[0] if networks else "net"}"{method}'
        )
    # Numbers drawn on the CPU are the same on every machine.
    device = next((weight.device for weight in network.parameters()), torch.device("cpu"))
    network.to("cpu")
    if kind.change is not None:
        kind.change(network, twin.seed, ("",))
    else:
        with torch.no_grad(), torch.random.fork_rng(devices=[]), custom.user_code(name):
            torch.manual_seed(twin.seed)
            for weight in network.parameters():
                if weight.is_floating_point():
                    # A weight that is still NaN afterwards was not drawn.
                    weight.fill_(float("nan"))
            _reset(network)
        left = [key for key, weight in network.named_parameters() if bool(torch.isnan(weight).any())]
        if left:
            raise ModelError(_of_undrawn(name, left))
    network.to(device)
    return made


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the global random numbers of torch, NumPy and Python; afterwards restore their states."""
    import torch

    of_python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            random.seed(seed)
            # A user's code may draw from the global generator. Seeds of NumPy have 32 bits.
            np.random.seed(seed % 2**32)  # noqa: NPY002
            yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)  # noqa: NPY002


def _identity(made: Any, name: str) -> str | None:
    """Return a digest of an object's weights or, without torch modules, of its embedding of a second of noise; None if
    it has neither, or does not take that clip."""
    digest = custom.weights_digest(made)
    if digest is not None or not callable(getattr(made, "embed", None)):
        return digest
    rate = int(getattr(made, "sample_rate", 0)) or made.card.sample_rate
    noise = np.random.default_rng(0).normal(0, 0.1, (1, rate)).astype(np.float32)
    with suppress(custom.ModelCodeError), custom.user_code(name):
        return sha256_of(custom.to_array(made.embed(noise, rate), name).tobytes())
    return None


def _named_network(made: Any) -> tuple[str | None, Any]:
    """Return the attribute that an object's class names as its network, and its value; if it names none, its only
    attribute that is a torch module with weights; otherwise None and the object itself."""
    attribute = getattr(type(made), _NAMES_NETWORK, None)
    if not isinstance(attribute, str):
        networks = _networks(made)
        if len(networks) != 1 or not isinstance(getattr(made, networks[0]), sys.modules["torch"].nn.Module):
            return None, made
        (attribute,) = networks
    return attribute, getattr(made, attribute, None)


def _networks(made: Any) -> list[str]:
    """Return the attributes of an object that hold torch modules with weights, one per network; none for an object that
    is a module itself."""
    torch = sys.modules.get("torch")
    if torch is None or isinstance(made, torch.nn.Module):
        return []
    weights: dict[str, set[int]] = {}
    for name, value in getattr(made, "__dict__", {}).items():
        # Modules in a list or behind another object are networks too, which a twin would have to draw.
        inside = getattr(value, "__dict__", {}) if not isinstance(value, torch.nn.Module) else {}
        parts = [*value] if isinstance(value, (list, tuple)) else [*inside.values()]
        parts = [*value.values()] if isinstance(value, dict) else parts
        modules = [one for one in (value, *parts) if isinstance(one, torch.nn.Module)]
        # Some modules, such as torchaudio's spectrogram, have no weights.
        if found := {id(weight) for module in modules for weight in module.parameters()}:
            weights[name] = found
    # A part of a network has its own name, or the network has two.
    names = [name for name, of in weights.items() if not any(of < other for other in weights.values())]
    return [name for place, name in enumerate(names) if weights[name] not in [weights[one] for one in names[:place]]]


def _reset(module: torch.nn.Module) -> None:
    """Draw the weights of a module: first its parts, then its own."""
    if _is_of_transformers(module):
        # It draws the weights of all its parts.
        make: Any = type(module)
        module.load_state_dict(make._from_config(module.config).state_dict())
        return
    for part in module.children():
        _reset(part)
    if (reset := _way_of(module)) is not None:
        reset()


def _undrawn(module: torch.nn.Module, prefix: str = "") -> list[str]:
    """Return the names of the weights of a module for which no way to draw fresh values is known."""
    if _is_of_transformers(module):
        return []
    names = [] if _way_of(module) else [f"{prefix}{name}" for name, _ in module.named_parameters(recurse=False)]
    return names + [key for name, part in module.named_children() for key in _undrawn(part, f"{prefix}{name}.")]


def _is_of_transformers(module: torch.nn.Module) -> bool:
    return hasattr(type(module), "_from_config") and hasattr(module, "config")


def _way_of(module: torch.nn.Module) -> Callable[[], object] | None:
    ways = (getattr(module, method, None) for method in ("reset_parameters", "_reset_parameters"))
    return next((way for way in ways if callable(way)), None)


def _of_undrawn(name: str, weights: Sequence[str]) -> str:
    return (
        f"'{name}': cannot draw fresh values for these weights: {shown(weights)}. Give their module "
        f"reset_parameters(), or the class def {_OWN_WAY}(self), which returns the twin"
    )


def load_custom(spec: str, device: torch.device | None, options: EncoderOptions, twin: Twin | None = None) -> Model:
    """Load the model that a class makes when called without arguments.

    A `Model` is used as it is, any other object through `CustomModel`.

    Args:
        spec: ``path/to/file.py:ClassName``, or the name of an entry point of an installed package.
        device: device that the user named; None if none.
        options: must be the defaults, since the class decides how it runs; only a class with ``embed_layers`` takes a
            layer.
        twin: twin to make; None for the model itself.

    Raises:
        ModelError: there is no such file or class, it cannot be imported or needs arguments, it is no model or has no
            such twin, or options are not the defaults.
        ModelCodeError: the file or the class raises an error.
    """
    made = None
    if options == DEFAULT_OPTIONS.changed(layer=options.layer):
        made = _with_card(custom.call_without_arguments(_class_of(spec), spec), spec)
    if made is None or not (options == DEFAULT_OPTIONS or callable(getattr(made, "embed_layers", None))):
        raise ModelError(
            f"'{spec}' runs its own code: it takes no layer, pooling, precision or compilation; set them in the code, "
            "or define embed_layers(waveforms, sample_rate)"
        )
    if is_file(spec):
        source = custom.source_digest(split_file(spec)[0])
    else:
        package = installed_classes()[spec].dist
        source = package.version if package is not None else "unknown"
    card: ModelCard | None = None
    if twin is not None:
        card = made.card if isinstance(made, Model) else custom.stated_card(made, spec, source)
        made = _twin_of(made, spec, twin)
    model = _model_of(made, spec, source, device)
    if twin is not None and card is not None:
        twin_card = replace(
            model.card,
            id=twin.kind.prefix + card.id,
            revision=f"seed-{twin.seed}-{card.revision}",
            weights_sha256=None,
            licence=card.licence,
        )
        model.card = untrained_card(twin_card, twin)
    return model if options.layer is None else CustomLayers(model, spec).at_layers([options.layer])[0]


class CustomLayers(LayeredEncoder[FloatArray]):
    """A user's object with ``embed_layers``, as an encoder at one of its layers; see `custom.Embedder`.

    Attributes:
        made: the object.
    """

    def __init__(self, model: Model, name: str) -> None:
        """Embed a second of noise by all layers, for their number and lengths.

        Args:
            model: the object as a model, or as a twin.
            name: name for messages.
        """
        import torch

        super().__init__(model.card, num_layers=0, device=torch.device(model.device))
        self.made: Any = getattr(model, "made", model)
        self._name = name
        noise = np.random.default_rng(0).normal(0, 0.1, (1, model.card.sample_rate)).astype(np.float32)
        self._dims: list[int] = [layer.shape[1] for layer in self._embed_layers(noise)]
        self.num_layers = len(self._dims) - 1

    @property
    def abilities(self) -> frozenset[str]:
        """Only to embed clips."""
        return frozenset({"audio"})

    def _dim_at(self, layer: int) -> int:
        return self._dims[layer]

    def _extract_features(self, clips: FloatArray) -> FloatArray:
        return clips

    def _embed_layers(self, clips: FloatArray) -> list[np.ndarray[Any, Any]]:
        with inference(self.device), custom.user_code(self._name):
            layers = self.made.embed_layers(clips, self.card.sample_rate)
            arrays = [custom.to_array(layer, self._name) for layer in layers]
        if not arrays or any(array.ndim != 2 or len(array) != len(clips) for array in arrays):
            raise ModelError(
                f"'{self._name}': embed_layers returned the shapes {[array.shape for array in arrays]}; it must return "
                f"[{len(clips)}, dim] for each layer"
            )
        return arrays

    def _encode_at(self, features: FloatArray, layers: Sequence[int | None]) -> list[Hidden]:
        import torch

        arrays = self._embed_layers(features)
        return [Hidden(torch.from_numpy(arrays[layer or 0])[:, None], 1.0) for layer in layers]


def load_object(made: Any, device: torch.device | None, options: EncoderOptions) -> Model:
    """Return the model of an object; a `Model` is used as it is.

    Args:
        made: the object, which is moved to the device.
        device: device that the user named; None if none.
        options: must be the defaults, since the object decides how it runs.

    Raises:
        ModelError: it is no model, or options are not the defaults.
        ModelCodeError: its code raises an error.
    """
    if isinstance(made, type):
        raise ModelError(f"{made.__name__} is a class; pass an object, such as {made.__name__}()")
    name = str(getattr(made, "id", type(made).__name__))
    if options != DEFAULT_OPTIONS:
        raise ModelError(
            f"'{name}' runs its own code: it takes no layer, pooling, precision or compilation; set them in the code"
        )
    return _model_of(_with_card(made, name), name, None, device)


def _with_card(made: Any, name: str) -> Any:
    """Return the object; raise an error if it is a `Model` without a card."""
    if isinstance(made, Model) and not hasattr(made, "card"):
        raise ModelError(f"'{name}' has no card; a Model must set `card`, a ModelCard")
    return made


def _model_of(made: Any, name: str, source: str | None, device: torch.device | None) -> Model:
    """Return an object as a model on a device; see `custom.CustomModel`."""
    if device is not None and callable(getattr(made, "to", None)):
        with custom.user_code(name):
            made.to(device)
    return made if isinstance(made, Model) else custom.CustomModel(made, name=name, source=source)


def class_has_twins(spec: str, kind: TwinKind, loaded: Sequence[Model] = ()) -> bool:
    """Whether a class declares twins of a kind, or the model made by a function has them. Nothing is made, but the file
    is run or the package imported.

    Args:
        spec: see `load_custom`; a function that makes the object declares nothing before it is called.
        kind: kind of twin.
        loaded: the models, if they are already loaded.
    """
    try:
        factory = _class_of(spec)
    except ModelError:
        # Loading it raises the reason.
        return False
    # No class is derived from a module that has not been imported.
    torch = sys.modules.get("torch")
    made = [model.made if isinstance(model, custom.CustomModel) else model for model in loaded]
    if any(_networks(one) for one in made):
        return True
    classes = [factory] if isinstance(factory, type) else [type(one) for one in made]
    has_network = any(
        isinstance(getattr(one, _NAMES_NETWORK, None), str) or (torch is not None and issubclass(one, torch.nn.Module))
        for one in classes
    )
    return has_network or (kind.is_fresh and any(callable(getattr(one, _OWN_WAY, None)) for one in [factory, *classes]))


def _class_of(spec: str) -> Any:
    """Return the class to which a name refers; see `load_custom`."""
    if is_file(spec):
        return custom.load_attribute(*split_file(spec))
    point = installed_classes()[spec]
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise ModelError(
            f"model '{spec}' of {describe_installed(point)} is '{point.value}', which cannot be imported: {error}"
        ) from error
