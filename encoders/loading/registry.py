"""From a name to a model: listed names, files and installed packages, adapters, local folders, Hub ids."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..base import ModelError, StagedEncoder
from ..inference import resolve_device
from ..language_models.endpoint_name import is_endpoint, parse_endpoint
from ..language_models.listing import check_architecture, family_of
from ..language_models.options import encoder_options
from ..options import DEFAULT_OPTIONS, EncoderOptions
from ..protocols import Model
from .controls import CONTROLS, control, split_control
from .downloads import WeightsFile, check_digest
from .listing import ANY_OTHER, ModelListing, adapters, architectures, named_models, register_configurations
from .twins import TWINS, Twin, TwinKind, split_twin
from .user_classes import describe_installed, installed_classes, is_file_spec, split_file_spec

if TYPE_CHECKING:
    import torch

TOWER = "tower:"
"""Stands in front of the name of a model that hears and answers, where its audio encoder is meant."""

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
"""What an id of a repository of the Hugging Face Hub looks like."""


def list_models() -> list[ModelListing]:
    """The models that are known by name: baselines, pretrained models, and classes of installed packages.

    `load_model` takes others too: see there.
    """
    listed = named_models()
    installed = [
        ModelListing(name, None, None, "not stated", "not stated", f"installed by {describe_installed(point)}")
        for name, point in sorted(installed_classes().items())
        if name not in listed
    ]
    return [*listed.values(), *installed]


def has_twins(name: str) -> bool:
    """Whether one of `TWINS` may stand in front of a name.

    Not of a twin, a control, a baseline, or other people's code.
    """
    listing = named_models().get(name.partition("=")[0])
    if listing is not None:
        return listing.source is not None
    prefix = name.partition(":")[0]
    return not (
        is_file_spec(name)
        or is_endpoint(name)
        or name in installed_classes()
        or (":" in name and (prefix in TWINS or prefix in CONTROLS))
        or prefix in _adapter_prefixes(name)
    )


def is_twin(name: str) -> bool:
    """Whether a name asks for a twin, be it under controls: what `load_model` makes of it depends on the seed."""
    control_kind, inner = split_control(name)
    return is_twin(inner) if control_kind is not None else split_twin(name)[0] is not None


def hub_id_of(name: str) -> str | None:
    """The Hub repository of the model that a name stands for; None where there is none."""
    listing = named_models().get(name)
    if listing is not None:
        return listing.source if isinstance(listing.source, str) else None
    return name if HUB_ID.fullmatch(name) else None


def check_name(name: str) -> None:
    """Refuse a name that `load_model` would refuse whatever it holds, without importing what runs models.

    Raises:
        ModelError: nothing has that name: no listed model, file, folder, installed class or Hub id.
    """
    control_kind, name = split_control(name)
    if control_kind is not None:
        check_name(name)
        return
    kind, plain_name = _split_twin(name)
    if is_endpoint(plain_name.removeprefix(TOWER)):
        _check_endpoint(plain_name, kind)
        return
    plain_name = plain_name.removeprefix(TOWER)
    prefix = plain_name.partition(":")[0]
    if is_file_spec(prefix):
        split_file_spec(plain_name)
        return
    names = (named_models(), _adapter_prefixes(plain_name), installed_classes())
    if prefix in names[1]:
        adapters()[prefix].check(plain_name.partition(":")[2])
        return
    if plain_name.partition("=")[0] in names[0] or plain_name in names[2]:
        return
    if is_file_spec(plain_name):
        split_file_spec(plain_name)
    elif _locate(plain_name) is None:
        raise ModelError(_unknown(name, plain_name))


def load_model(
    name: str,
    *,
    device: str | torch.device | None = None,
    options: EncoderOptions = DEFAULT_OPTIONS,
    seed: int = 0,
) -> Model:
    """Load a model.

    The name is, in this order:

    - a listed name (`list_models`), or `NAME=PATH` for its weights in a local file or folder;
    - `hear:MODULE`, `hear:MODULE:WEIGHTS`, `xares:path/to/file.py:ClassName` or `mteb:NAME`: a model in the form of
      another suite, whose code is run;
    - `path/to/file.py:ClassName`: a class of one's own (`adapters.custom.Embedder` says what it needs), or the name of
      the entry point of an installed package in the group `audio_compositionality.encoders`; both run that code;
    - `endpoint:MODEL@URL`: a model that hears and answers behind an OpenAI-compatible server, which is asked what it
      runs (`language_models.endpoint`);
    - `heard-as-text:DETECTOR:MODEL`: a model that answers and reads what a detector has heard, as text;
    - a local folder with config.json, preprocessor_config.json and safetensors weights;
    - a Hub id (`org/name`) of a transformers audio model.

    A folder or a Hub id whose config.json states an architecture that hears and answers (`language_models`) is that
    model; with `tower:` in front it is its audio encoder.

    One of `TWINS` with a colon in front of any but a baseline or other people's code gives a twin of that model:
    `untrained:NAME`, the same architecture with fresh weights, for which a folder needs none, or `shuffled:NAME`, with
    the entries of each weight matrix permuted.

    One of `CONTROLS` with a colon in front of any of these, twins, baselines and other people's code too, gives that
    model under a control: `sorted-words:NAME`, `reversed-audio:NAME`, `shuffled-audio:NAME`, `padded-audio:NAME`,
    `without-audio:NAME`, `noise-audio:NAME`, `without-text:NAME`, and of one that answers `other-audio:NAME` and
    `events-as-text:NAME`.

    Args:
        name: which model.
        device: torch device of the model; by default CUDA where there is one, else the CPU.
        options: layer, pooling, precision, compilation; `LanguageOptions` says how a model that answers is run, and of
            one that embeds the same things.
        seed: seed of the weights of a twin; every other model is fixed and ignores it.

    Raises:
        ModelError: if there is no such model (with the nearest listed name), its files cannot be had or are
            incomplete, the model is of a kind that cannot be run here, or cannot be run with the options.
    """
    return _load(name, device, options, seed, hears_only=False)


def _load(
    name: str,
    device: str | torch.device | None,
    options: EncoderOptions,
    seed: int,
    hears_only: bool,
    is_told: bool = False,
) -> Model:
    """As `load_model`; of a model that answers its audio encoder, where that alone will do. One that is told as text
    what is heard need not take sound."""
    control_kind, controlled = split_control(name)
    if control_kind is not None:
        loaded = _load(controlled, device, options, seed, hears_only, control_kind.tells)
        return cast(Model, control(loaded, control_kind))
    kind, plain_name = _split_twin(name)
    if is_endpoint(plain_name.removeprefix(TOWER)):
        _check_endpoint(plain_name, kind)
        from ..language_models.endpoint import load_endpoint

        return load_endpoint(plain_name, options, hears=not is_told)
    twin = None if kind is None else Twin(kind, seed)
    listed_name, _, path = plain_name.partition("=")
    listing = named_models().get(listed_name)
    if listing is not None and (path or plain_name == listed_name):
        if not path and Path(plain_name, "config.json").is_file():
            warnings.warn(f"'{plain_name}' is the listed model; the folder here is './{plain_name}'", stacklevel=2)
        return _load_listed(listing, path, twin, device, encoder_options(options))
    if twin is not None and plain_name and not has_twins(plain_name):
        raise ModelError(f"'{name}': '{plain_name}' is made by code of its own, so nothing here can {twin.kind.deed}")
    foreign = _load_foreign(plain_name, device, options)
    if foreign is not None:
        return foreign
    source = _locate(plain_name.removeprefix(TOWER))
    if source is None:
        raise ModelError(_unknown(name, plain_name))
    listing = next((entry for entry in named_models().values() if entry.source == source), None)
    hears_only = hears_only or plain_name.startswith(TOWER)
    return _load_checkpoint(source, None, listing, twin, device, options, hears_only)


def load_layers(
    name: str,
    layers: Collection[int] | None = None,
    *,
    device: str | torch.device | None = None,
    options: EncoderOptions = DEFAULT_OPTIONS,
    seed: int = 0,
) -> list[Model]:
    """Load several layers of a model, each as a model with a card of its own; its weights are loaded once.

    Args:
        name: see `load_model`.
        layers: which; None for all, from 0, the input of the first block, to the output of the last one.
        device, options, seed: see `load_model`; the layer of the options is not used.

    Returns:
        one a layer, in ascending order.

    Raises:
        ModelError: as `load_model`, or if the model has no layers to choose from.
    """
    from ..layers import LayeredEncoder
    from ..model_encoder import ModelEncoder

    wanted = None if layers is None else sorted(set(layers))
    at_deepest = options.changed(layer=wanted[-1] if wanted else None)
    model = _load(name, device, at_deepest, seed, hears_only=True)
    numbers = range(model.num_layers + 1) if wanted is None and isinstance(model, ModelEncoder) else wanted
    if not numbers or (wanted is None and len(numbers) == 1):
        raise ModelError(f"'{name}' has no layers to choose from")
    if isinstance(model, LayeredEncoder):
        return list(model.at_layers(numbers))
    rest = [options.changed(layer=layer) for layer in numbers if layer != at_deepest.layer]
    loaded = [_load(name, device, one, seed, hears_only=True) for one in rest]
    return loaded if wanted is None else [*loaded, model]


def load_encoder(
    name: str,
    *,
    device: str | torch.device | None = None,
    options: EncoderOptions = DEFAULT_OPTIONS,
    seed: int = 0,
) -> StagedEncoder[Any]:
    """As `load_model`, where only an audio encoder will do.

    Raises:
        ModelError: as `load_model`, or if the model embeds no sound.
    """
    model = _load(name, device, options, seed, hears_only=True)
    if not isinstance(model, StagedEncoder):
        raise ModelError(
            f"'{name}' is a {type(model).__name__}, which embeds no sound; an audio encoder is needed here"
        )
    return model


def _split_twin(name: str) -> tuple[TwinKind | None, str]:
    """As `split_twin`, which knows of no controls."""
    kind, plain_name = split_twin(name)
    control_kind, controlled = split_control(plain_name)
    if kind is not None and control_kind is not None:
        raise ModelError(
            f"'{name}' is a twin of a control; ask for a control of a twin, '{control_kind.prefix}{kind.prefix}"
            f"{controlled}'"
        )
    return kind, plain_name


def _check_endpoint(name: str, kind: TwinKind | None) -> None:
    """Refuse a name that stands for no model behind a server, before any message shows the name."""
    address = parse_endpoint(name.removeprefix(TOWER))
    if kind is not None or name.startswith(TOWER):
        deed = "take a part of it" if kind is None else kind.deed
        raise ModelError(f"'{address.id}' runs on a server, so nothing here can {deed}")


def _load_listed(
    listing: ModelListing, path: str, twin: Twin | None, device: str | torch.device | None, options: EncoderOptions
) -> Model:
    name, source = listing.name, listing.source
    local = Path(path).expanduser() if path else None
    if source is None:
        if twin is not None or local is not None:
            asked = f"{twin.kind.prefix}{name}" if twin is not None else f"{name}={path}"
            raise ModelError(f"'{asked}': '{name}' is a baseline without weights, so there are none to change")
        if options != DEFAULT_OPTIONS:
            raise ModelError(f"'{name}' is a baseline without a model: it takes no layer, pooling or precision")
        assert listing.make is not None
        return listing.make()
    if isinstance(source, str):
        if local is not None and not (local / "config.json").is_file():
            raise ModelError(f"'{name}={path}': it must be a folder with config.json and safetensors weights")
        return _load_checkpoint(local or source, name, listing, twin, device, options)
    from .weights import Weights

    assert listing.make is not None
    file = None if twin is not None and twin.kind.is_fresh else _weights_path(name, path, source)
    folder = local if local is None or local.is_dir() else local.parent
    weights = Weights(name, file, twin, listing.paradigm, listing.licence, folder, listing.trained_on)
    return listing.make(weights, resolve_device(device), options)


def _weights_path(name: str, path: str, source: WeightsFile) -> Path:
    if not path:
        return source.fetch(name)
    from .weights import PICKLES

    local = Path(path).expanduser()
    if not local.is_file():
        raise ModelError(f"'{name}={path}': there is no such file; it must be {source.name} or safetensors")
    if local.suffix in PICKLES:
        check_digest(local, source.digest)
    return local


def _load_checkpoint(
    source: Path | str,
    name: str | None,
    listing: ModelListing | None,
    twin: Twin | None,
    device: str | torch.device | None,
    options: EncoderOptions,
    hears_only: bool = True,
) -> Model:
    from .checkpoints import open_checkpoint

    torch_device = resolve_device(device)
    stated = {} if listing is None else {key: getattr(listing, key) for key in ("paradigm", "licence", "trained_on")}
    register_configurations()
    checkpoint = open_checkpoint(source, name=name, twin=twin, **stated)
    makers = architectures()
    family = family_of(checkpoint.config) if name is None else None
    if family is not None and hears_only:
        checkpoint = replace(checkpoint, name=TOWER + checkpoint.name)
    elif family is not None:
        from ..language_models.base import TransformersLanguageModel

        return TransformersLanguageModel(checkpoint, family, torch_device, options)
    elif name is None and checkpoint.config.model_type not in makers:
        check_architecture(checkpoint.config, checkpoint.name)
    make = makers.get(checkpoint.config.model_type, makers[ANY_OTHER])
    return make(checkpoint, torch_device, encoder_options(options))


def _load_foreign(name: str, device: str | torch.device | None, options: EncoderOptions) -> Model | None:
    """A model that other people's code makes; None if the name does not stand for one."""
    named_device = None if device is None else resolve_device(device)
    prefix, colon, spec = name.partition(":")
    if colon and prefix in _adapter_prefixes(name):
        adapter = adapters()[prefix]
        return adapter.load(spec, named_device, options if adapter.answers else encoder_options(options))
    point = None if is_file_spec(name) else installed_classes().get(name)
    if point is None and not is_file_spec(name):
        return None
    from ..adapters.custom_loading import load_from_file, load_installed

    plain = encoder_options(options)
    return load_from_file(name, named_device, plain) if point is None else load_installed(point, named_device, plain)


def _adapter_prefixes(name: str) -> set[str]:
    """The adapters' prefixes; none, without importing them, where a name has no colon."""
    return set(adapters()) if ":" in name else set()


def _locate(name: str) -> Path | str | None:
    """The folder, or the Hub id, that a name stands for; None if it can be neither."""
    folder = Path(name).expanduser()
    if name and folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ModelError(
                f"folder '{name}' holds no config.json; pass a folder that a transformers model was saved to with "
                "save_pretrained()"
            )
        return folder
    if HUB_ID.fullmatch(name):
        return name
    if "/" in name:
        raise ModelError(f"there is no folder '{name}', and it is no Hub id (org/name) either")
    return None


def _unknown(name: str, plain_name: str) -> str:
    valid = [listing.name for listing in list_models()]
    close = difflib.get_close_matches(plain_name.partition("=")[0], valid, n=3, cutoff=0.6)
    close = close or [candidate for candidate in valid if plain_name and candidate.startswith(plain_name)][:3]
    prefix = name[: len(name) - len(plain_name)]
    if close:
        quoted = " or ".join(f"'{prefix}{suggestion}'" for suggestion in close)
        return f"unknown model '{name}'; did you mean {quoted}?"
    return (
        f"unknown model '{name}'; pass one of {', '.join(valid)}, a Hub id (org/name), an existing folder with "
        "config.json, preprocessor_config.json and safetensors weights, or a class of your own as "
        "path/to/file.py:ClassName"
    )
