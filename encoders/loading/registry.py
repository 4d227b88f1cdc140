"""Load a model by its name: a listed name, file, installed package, adapter, local folder or Hub id."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..base import Model, ModelError
from ..controls import Controlled
from ..inference import resolve_device
from ..language_models.listing import check_architecture, family_of
from ..options import DEFAULT_OPTIONS, EncoderOptions, encoder_options
from .downloads import WeightsFile, check_digest
from .listing import ANY_OTHER, architecture_of, find_adapter, model_of
from .names import TOWER, ModelName, parse_name
from .twins import TWINS, UNTRAINED, Twin

if TYPE_CHECKING:
    import torch


def has_twins(name: str, prefix: str = UNTRAINED, loaded: Sequence[Model] = ()) -> bool:
    """Whether the prefix of one of `TWINS` may precede a name; `loaded` holds its models if they are already loaded.

    Twins, controls, baselines, models on servers and those in the form of another suite have no twins. A user's class
    has twins if it declares them or has a network (`adapters.custom_loading`); for a class in a file, this runs the
    file. What a function in a file returns is known only from the loaded model.
    """
    try:
        parsed = parse_name(name)
    except ModelError:
        return False
    if parsed.controls or parsed.twin is not None:
        return False
    if parsed.listing is not None:
        return parsed.listing.source is not None
    if parsed.form in ("file", "installed"):
        from ..adapters.custom_loading import class_has_twins

        return class_has_twins(parsed.model, TWINS[prefix.removesuffix(":")], loaded)
    return parsed.form not in ("endpoint", "adapter")


def load_model(
    name: object,
    *,
    device: str | torch.device | None = None,
    options: EncoderOptions = DEFAULT_OPTIONS,
    seed: int = 0,
) -> Model:
    """Load a model.

    The name is one of these, tried in this order:

    - a listed name (`list_models`), or `NAME=PATH` for its weights in a local file or folder;
    - `hear:MODULE`, `hear:MODULE:WEIGHTS`, `xares:path/to/file.py:ClassName` or `mteb:NAME`: a model in the form of
      another suite, whose code is run;
    - `path/to/file.py:ClassName`: a user's class (for its interface see `adapters.custom.Embedder`), or the name of
      the entry point of an installed package in the group `audio_compositionality.encoders`; both run that code;
    - `endpoint:MODEL@URL`: an audio language model on an OpenAI-compatible server, which is asked for its model
      (`language_models.endpoint`);
    - `detected-as-text:DETECTOR:MODEL`: a language model that reads the events of a detector as text;
    - a local folder with config.json, preprocessor_config.json and safetensors weights;
    - a Hub id (`org/name`) of a transformers audio model.

    A folder or a Hub id whose config.json states the architecture of an audio language model (`language_models`) is
    that model; with the prefix `tower:` it is the model's audio encoder.

    One of `TWINS` as a prefix, with a colon, gives a twin of any model except a baseline, a model on a server or one in
    another suite's form: `untrained:NAME`, the same architecture with fresh weights, for which a folder needs none, or
    `shuffled:NAME`, with the entries of each weight matrix permuted. For a user's class see `adapters.custom_loading`.

    One of `CONTROLS` as a prefix, with a colon, to any of these, including twins, baselines and users' code, gives that
    model under a control: `sorted-words:NAME`, `reversed-audio:NAME`, `shuffled-audio:NAME`, `padded-audio:NAME`,
    `without-audio:NAME`, `noise-audio:NAME`, `without-text:NAME`, and for an audio language model `other-audio:NAME`
    and `events-as-text:NAME`.

    Instead of a name, an object: a `Model`, one with `sample_rate` and `embed` (`adapters.custom.Embedder`), or a torch
    module in `adapters.custom.wrap`. An object that is no `Model` and has no `revision` gets one that begins with
    ``object-``: its results are never read from a cache or a folder of earlier results, nor kept in one.

    Args:
        name: name of the model, or an object.
        device: torch device of the model; by default CUDA if available, else the CPU. An object stays on its device.
        options: layer, pooling, precision, compilation; `LanguageOptions` for an audio language model, also accepted
            for an encoder.
        seed: seed of the weights of a twin; every other model is fixed and ignores it.

    Raises:
        ModelError: there is no such model (the message has the nearest listed name), its files are missing or cannot
            be downloaded, its architecture is not supported, or it does not take the options.
    """
    return _load(name, device, options, seed)


def _load(
    given: object, device: str | torch.device | None, options: EncoderOptions, seed: int, *, audio_only: bool = False
) -> Model:
    """Load a model from a name, with one branch for each form, or from an object; `audio_only` takes the audio encoder
    of an audio language model."""
    if not isinstance(given, (str, ModelName)):
        from ..adapters.custom_loading import load_object

        return load_object(given, None if device is None else resolve_device(device), encoder_options(options))
    name = given if isinstance(given, ModelName) else parse_name(given)
    name.check()
    plain, form, listing, path = name.model, name.form, name.listing, name.path
    twin = None if name.twin is None else Twin(name.twin, seed)
    local = Path(path).expanduser() if path else None
    if listing is not None and not path and Path(plain, "config.json").is_file():
        warnings.warn(f"'{plain}' loads the listed model; for the folder, pass './{plain}'", stacklevel=3)
    if form == "endpoint":
        from ..language_models.endpoint import load_endpoint

        # A model that reads the events as text need not take sound.
        model: Model = load_endpoint(plain, options, takes_audio=not any(kind.tells for kind in name.controls))
    elif form == "adapter":
        if twin is not None:
            raise ModelError(
                f"'{name.uncontrolled}': '{plain}' is made by its own code, so this package cannot {twin.kind.deed}"
            )
        adapter = find_adapter(name.prefix)
        assert adapter is not None
        named_device = None if device is None else resolve_device(device)
        model = adapter.load(name.rest, named_device, options if adapter.answers else encoder_options(options))
    elif form in ("file", "installed"):
        from ..adapters.custom_loading import load_custom

        named_device = None if device is None else resolve_device(device)
        model = load_custom(plain, named_device, encoder_options(options), twin)
    elif listing is not None and listing.source is None:
        if twin is not None or local is not None:
            asked = f"{twin.kind.prefix}{plain}" if twin is not None else plain
            raise ModelError(f"'{asked}': '{listing.name}' has no weights, so it takes no twin and no path")
        if encoder_options(options) != DEFAULT_OPTIONS:
            raise ModelError(f"'{plain}' is a baseline without weights: it takes no layer, pooling or precision")
        assert listing.make is not None
        model = listing.make()
    elif listing is not None and isinstance(listing.source, WeightsFile):
        from .weights import PICKLES, Weights

        # Checked before anything is downloaded.
        used_device = resolve_device(device)
        file = None
        if twin is None or not twin.kind.is_fresh:
            file = local or listing.source.fetch(plain)
            if not file.is_file():
                raise ModelError(f"'{plain}': there is no such file; pass {listing.source.name} or safetensors")
            if local is not None and local.suffix in PICKLES:
                check_digest(local, listing.source.digest)
        folder = local if local is None or local.is_dir() else local.parent
        weights = Weights(listing.name, file, twin, listing.paradigm, listing.licence, folder, listing.trained_on)
        assert listing.make is not None
        model = listing.make(weights, used_device, encoder_options(options))
    else:
        if local is not None and not (local / "config.json").is_file():
            raise ModelError(f"'{plain}': pass a folder with config.json and safetensors weights")
        # Checked before anything is read from the Hub.
        used_device = resolve_device(device)
        # A checkpoint of transformers; its architecture decides.
        from .checkpoints import open_checkpoint

        source: str | Path
        if form == "folder":
            source = Path(plain).expanduser()
        elif local is not None:
            source = local
        elif listing is not None:
            assert isinstance(listing.source, str | Path)
            source = listing.source
        else:
            source = plain
        known = listing or (model_of(plain) if form == "hub" else None)
        facts = {} if known is None else {key: getattr(known, key) for key in ("paradigm", "licence", "trained_on")}
        checkpoint = open_checkpoint(source, name=None if listing is None else listing.name, twin=twin, **facts)
        make = architecture_of(checkpoint.config.model_type)
        family = family_of(checkpoint.config) if listing is None else None
        if family is not None and not (audio_only or name.is_tower):
            from ..language_models.transformers_model import TransformersLanguageModel

            model = TransformersLanguageModel(checkpoint, family, used_device, options)
        else:
            if family is not None:
                checkpoint = replace(checkpoint, name=TOWER + checkpoint.name)
            elif listing is None and make is None:
                check_architecture(checkpoint.config, checkpoint.name)
            make = make or architecture_of(ANY_OTHER)
            assert make is not None
            model = make(checkpoint, used_device, encoder_options(options))
    for kind in reversed(name.controls):
        model = Controlled(model, kind)
    return model


def load_layers(
    name: str,
    layers: Collection[int] | None = None,
    *,
    device: str | torch.device | None = None,
    options: EncoderOptions = DEFAULT_OPTIONS,
    seed: int = 0,
) -> list[Model]:
    """Load several layers of a model, each as a model with its own card; the weights are loaded once.

    Args:
        name: see `load_model`.
        layers: layers to load; None for all, from 0, the input of the first block, to the output of the last one.
        device, options, seed: see `load_model`; the layer of the options is not used.

    Returns:
        one model per layer, in ascending order.

    Raises:
        ModelError: as `load_model`, or the model has no layers to choose from.
    """
    from ..model_encoder import LayeredEncoder, ModelEncoder

    wanted = None if layers is None else sorted(set(layers))
    at_deepest = options.changed(layer=wanted[-1] if wanted else None)
    parsed = parse_name(name)
    model = _load(parsed, device, at_deepest, seed, audio_only=True)
    if wanted is None and callable(getattr(getattr(model, "made", None), "embed_layers", None)):
        from ..adapters.custom_loading import CustomLayers

        model = CustomLayers(model, name)
    numbers = range(model.num_layers + 1) if wanted is None and isinstance(model, ModelEncoder) else wanted
    if not numbers or (wanted is None and len(numbers) == 1):
        raise ModelError(f"'{name}' has no layers to choose from")
    if isinstance(model, LayeredEncoder):
        return list(model.at_layers(numbers))
    rest = [options.changed(layer=layer) for layer in numbers if layer != at_deepest.layer]
    loaded = [_load(parsed, device, one, seed, audio_only=True) for one in rest]
    return loaded if wanted is None else [*loaded, model]


def load_encoder(
    name: object,
    *,
    device: str | torch.device | None = None,
    options: EncoderOptions = DEFAULT_OPTIONS,
    seed: int = 0,
) -> Model:
    """Load a model as `load_model` does, if it is an audio encoder.

    Raises:
        ModelError: as `load_model`, or the model embeds no sound.
    """
    model = _load(name, device, options, seed, audio_only=True)
    if "audio" not in model.abilities:
        shown = name if isinstance(name, str) else model.card.id
        raise ModelError(f"'{shown}' embeds no sound; this needs an audio encoder")
    return model
