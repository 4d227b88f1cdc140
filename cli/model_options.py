"""Arguments about how models are run, and the models that they make."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from audio_compositionality.support.errors import InputError

from . import asking
from .arguments import names_of

if TYPE_CHECKING:
    from audio_compositionality.encoders.base import Model
    from audio_compositionality.encoders.options import EncoderOptions
    from audio_compositionality.evaluator.run.processes import Processes
    from audio_compositionality.tasks.base import Task


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add how a model is run: `encoder_options` and `loaded_models` read it."""
    model = parser.add_argument_group("how the model is run")
    model.add_argument(
        "--layer",
        metavar="N|N,N|all",
        help="take this hidden layer: 0 is the input of the first block, N the output of block N; several with commas "
        "between them, or all, each a model of its own, from one pass; default the model's output",
    )
    model.add_argument(
        "--pooling",
        metavar="NAME",
        help="mean or max over time, or cls, the class token; default the model's own embedding of a clip where it "
        "has one, else mean",
    )
    model.add_argument(
        "--precision",
        metavar="NAME",
        help="float32 (default), or bfloat16 or float16 by autocast. Results state how far that is from float32. "
        "A model that answers has its weights in it; of these the default on a GPU is bfloat16",
    )
    model.add_argument("--compile", action="store_true", help="run the model through torch.compile")


def add_twin_seeds(parser: argparse.ArgumentParser) -> None:
    """Add which draws of a twin stand beside a model: `loaded_models` reads it."""
    parser.add_argument(
        "--twin-seeds",
        metavar="N[,N...]",
        help="seeds of the weights of twins, such as untrained:MODEL, each a model of its own: 0,1,2 are three draws, "
        "all of which a model has to be above; default 0",
    )


def twin_seeds(options: argparse.Namespace) -> tuple[int, ...]:
    """The seeds of twins, each once, in their order.

    Raises:
        InputError: one is no whole number from 0 on.
    """
    # Only some commands have other seeds.
    given = names_of(options, "twin_seeds") if hasattr(options, "twin_seeds") else None
    if given is not None and not all(seed.isdecimal() for seed in given):
        raise InputError(
            f"--twin-seeds is {options.twin_seeds!r}; it is a whole number from 0 on, or several with commas between "
            "them, such as 0,1,2"
        )
    return (0,) if given is None else tuple(dict.fromkeys(map(int, given)))


def asked_layers(options: argparse.Namespace) -> tuple[int, ...] | Literal["all"] | None:
    """The layers that are asked for; None for the model's output.

    Raises:
        InputError: they are neither numbers nor all of them.
    """
    parts = names_of(options, "layer")
    if parts is None:
        return None
    if parts == ["all"]:
        return "all"
    if not all(part.isdecimal() for part in parts):
        raise InputError(
            f"--layer is {options.layer!r}; it is a number from 0 on, several with commas between them, such as 0,2,4, "
            "or all"
        )
    return tuple(dict.fromkeys(map(int, parts)))


def encoder_options(options: argparse.Namespace) -> EncoderOptions:
    """How a model is run, where one layer will do.

    Raises:
        InputError: a value is not one that there is, or several layers are asked for.
    """
    layers = asked_layers(options)
    if layers == "all" or (layers is not None and len(layers) > 1):
        raise InputError(f"--layer is {options.layer!r}; this command takes one layer")
    return replace(_without_layer(options), layer=None if layers is None else layers[0])


def check_model_options(options: argparse.Namespace) -> None:
    """Refuse values that there are not, before anything is loaded.

    Raises:
        InputError: a value is not one that there is.
    """
    asked_layers(options)
    twin_seeds(options)
    _without_layer(options)


def _without_layer(options: argparse.Namespace) -> EncoderOptions:
    from audio_compositionality.encoders.language_models.options import AUTO, LanguageOptions
    from audio_compositionality.encoders.options import DEFAULT_OPTIONS, EncoderOptions

    # Refuses what there is not.
    EncoderOptions(pooling=options.pooling, precision=options.precision or DEFAULT_OPTIONS.precision)
    return LanguageOptions(
        pooling=options.pooling,
        precision=options.precision or AUTO,
        compile=options.compile,
        # Commands that put no questions have none.
        batch_size=getattr(options, "batch_size", None),
        deadline=asking.deadline(options),
    )


def loaded_models(
    names: Sequence[str],
    options: argparse.Namespace,
    processes: Processes,
    there: Mapping[str, Model] = MappingProxyType({}),
) -> list[Model]:
    """Models by their names, each once, and once for each layer and each seed of a twin that is asked for; one process
    of each machine downloads.

    Controls of a model that answers share its weights: several times so many would hardly fit.

    Args:
        names: of models.
        options: with the arguments of `add_model_options`, and of `add_twin_seeds` and
            `arguments.add_embedding_options` where they are.
        processes: that score together.
        there: models that are loaded already, by their names.

    Raises:
        AudioCompositionalityError: one of them cannot be had.
    """
    from audio_compositionality.encoders.loading.controls import Controlled
    from audio_compositionality.encoders.loading.names import is_twin, split_control
    from audio_compositionality.encoders.loading.registry import load_layers, load_model

    layers, encoder, seeds = asked_layers(options), _without_layer(options), twin_seeds(options)
    device = processes.device(options.device)
    models: list[Model] = []

    def draws(name: str) -> list[tuple[str, int]]:
        return [(name, seed) for seed in (seeds if is_twin(name) else (0,))]

    loaded = {draws(name)[0]: model for name, model in there.items()}
    with processes.one_first():
        for name, seed in (draw for one in dict.fromkeys(names) for draw in draws(one)):
            if layers == "all":
                models += load_layers(name, device=device, options=encoder, seed=seed)
            elif layers is None or len(layers) == 1:
                at_layer = replace(encoder, layer=None if layers is None else layers[0])
                kind, inner = split_control(name)
                shared = None if kind is None else loaded.get((inner, seed))
                answers = shared is not None and "answer" in shared.abilities and "learn" not in shared.abilities
                if kind is not None and shared is not None and answers:
                    model: Model = Controlled(shared, kind)
                else:
                    model = load_model(name, device=device, options=at_layer, seed=seed)
                loaded[name, seed] = model
                models.append(model)
            else:
                models += load_layers(name, layers, device=device, options=encoder, seed=seed)
    return models


def check_kinds(models: Sequence[Model], tasks: Sequence[Task], options: argparse.Namespace, source: str) -> None:
    """Refuse models that cannot do tasks that are named; of others a warning says what they are left out of.

    Args:
        models: those that are named.
        tasks: all that are to be scored.
        options: with the arguments of `arguments.add_tasks`.
        source: of the data.

    Raises:
        TaskError: a model cannot do a task that is named.
        InputError: a model can do none.
    """
    from audio_compositionality.evaluator.run.outputs import check_model_kind, warn_of_left_out

    if options.tasks is None and options.benchmark is None:
        warn_of_left_out(models, tasks, source)
        return
    for model in models:
        for task in tasks:
            check_model_kind(task, model)


def loaded_encoders(names: Sequence[str], options: argparse.Namespace, processes: Processes) -> list[Model]:
    """Models by their names, see `loaded_models`, all of which embed clips.

    Raises:
        InputError: one does not.
        AudioCompositionalityError: one of them cannot be had.
    """
    encoders = []
    for model in loaded_models(names, options, processes):
        if "audio" not in model.abilities:
            raise InputError(f"{model.card.id!r} embeds no clips")
        encoders.append(model)
    return encoders
