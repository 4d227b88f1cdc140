"""How models are run, and the models that they make."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from audio_compositionality.support.errors import InputError

from .settings import Group, divided

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from audio_compositionality.encoders.base import Model
    from audio_compositionality.encoders.options import EncoderOptions, LanguageOptions
    from audio_compositionality.evaluator.run.processes import Processes
    from audio_compositionality.tasks.base import Task

_OF_OPTIONS = ("layer", "batch_size")
"""Fields of options of models that have an option of their own."""


def add_layer(parser: argparse.ArgumentParser) -> None:
    """Add `options.layer`."""
    parser.add_argument(
        "--layer",
        metavar="N|N,N|all",
        help="this hidden layer: 0 is the input of the first block, N the output of block N; of several, or all, each "
        "is a model of its own, from one pass; default the model's output",
    )


@dataclass(frozen=True)
class ModelSettings:
    """How models are run.

    Attributes:
        layers: that are asked for; None for the model's output.
        options: all else.
        twin_seeds: seeds of the weights of twins, each a model of its own.
    """

    layers: tuple[int, ...] | Literal["all"] | None
    options: LanguageOptions
    twin_seeds: tuple[int, ...] = (0,)

    @property
    def at_one_layer(self) -> EncoderOptions:
        """The options, where one layer will do.

        Raises:
            InputError: several layers are asked for.
        """
        if self.layers == "all" or (self.layers is not None and len(self.layers) > 1):
            asked = self.layers if self.layers == "all" else ",".join(map(str, self.layers))
            raise InputError(f"--layer is {asked!r}; this command takes one layer")
        return self.options.changed(layer=None if self.layers is None else self.layers[0])


def model_fields() -> dict[str, FieldInfo]:
    """The settings of how models are run, by name."""
    from pydantic import Field
    from pydantic.fields import FieldInfo

    from audio_compositionality.encoders.options import LanguageOptions

    seeds = FieldInfo.from_annotated_attribute(
        tuple[int, ...],
        Field((0,), description="Of the weights of twins such as untrained:MODEL: 0,1,2 are three draws of each."),
    )
    fields = {name: field for name, field in LanguageOptions.settable().items() if name not in _OF_OPTIONS}
    return {**fields, "twin_seeds": seeds}


def model_settings(options: argparse.Namespace, values: Mapping[str, Any] = MappingProxyType({})) -> ModelSettings:
    """How models are run.

    Args:
        options: with the arguments of `add_layer`.
        values: of `model_fields`, by name.

    Raises:
        InputError: a value is not one that there is.
    """
    from audio_compositionality.encoders.options import LanguageOptions

    seeds = tuple(dict.fromkeys(values.get("twin_seeds", (0,))))
    if not seeds or min(seeds) < 0:
        raise InputError(
            f"twin_seeds is {', '.join(map(str, seeds)) or 'empty'}; it is whole numbers from 0 on with commas "
            "between them, such as 0,1,2"
        )
    of_options = {name: value for name, value in values.items() if name != "twin_seeds"}
    # Commands that put no questions have none.
    batch_size = getattr(options, "batch_size", None)
    return ModelSettings(_layers(options), LanguageOptions(batch_size=batch_size, **of_options), seeds)


def read_model_settings(options: argparse.Namespace) -> ModelSettings:
    """How models are run, of a command whose settings are of nothing else."""
    (values,) = divided(options.set, [Group("models", model_fields)])
    return model_settings(options, values)


def _layers(options: argparse.Namespace) -> tuple[int, ...] | Literal["all"] | None:
    """The layers that are asked for; None for the model's output."""
    if options.layer is None:
        return None
    parts = [part.strip() for part in options.layer.split(",") if part.strip()]
    if parts == ["all"]:
        return "all"
    if not parts or not all(part.isdecimal() for part in parts):
        raise InputError(
            f"--layer is {options.layer!r}; it is a number from 0 on, several with commas between them, such as 0,2,4, "
            "or all"
        )
    return tuple(dict.fromkeys(map(int, parts)))


def loaded_models(
    names: Sequence[str],
    settings: ModelSettings,
    device: str | None,
    processes: Processes,
    there: Mapping[str, Model] = MappingProxyType({}),
) -> list[Model]:
    """Models by their names, each once, and once for each layer and each seed of a twin that is asked for; one process
    of each machine downloads.

    Controls of a model that answers share its weights: several times so many would hardly fit.

    Args:
        names: of models.
        settings: how they are run.
        device: torch device; None for CUDA where there is one.
        processes: that score together.
        there: models that are loaded already, by their names.

    Raises:
        AudioCompositionalityError: one of them cannot be had.
    """
    from audio_compositionality.encoders.controls import Controlled
    from audio_compositionality.encoders.loading.names import is_twin, split_control
    from audio_compositionality.encoders.loading.registry import load_layers, load_model

    layers, encoder, seeds = settings.layers, settings.options, settings.twin_seeds
    place = processes.device(device)
    models: list[Model] = []

    def draws(name: str) -> list[tuple[str, int]]:
        return [(name, seed) for seed in (seeds if is_twin(name) else (0,))]

    loaded = {draws(name)[0]: model for name, model in there.items()}
    with processes.one_first():
        for name, seed in (draw for one in dict.fromkeys(names) for draw in draws(one)):
            if layers == "all":
                models += load_layers(name, device=place, options=encoder, seed=seed)
            elif layers is None or len(layers) == 1:
                at_layer = encoder.changed(layer=None if layers is None else layers[0])
                kind, inner = split_control(name)
                shared = None if kind is None else loaded.get((inner, seed))
                answers = shared is not None and "answer" in shared.abilities and "learn" not in shared.abilities
                if kind is not None and shared is not None and answers:
                    model: Model = Controlled(shared, kind)
                else:
                    model = load_model(name, device=place, options=at_layer, seed=seed)
                loaded[name, seed] = model
                models.append(model)
            else:
                models += load_layers(name, layers, device=place, options=encoder, seed=seed)
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


def loaded_encoders(
    names: Sequence[str], settings: ModelSettings, device: str | None, processes: Processes
) -> list[Model]:
    """Models by their names, see `loaded_models`, all of which embed clips.

    Raises:
        InputError: one does not.
        AudioCompositionalityError: one of them cannot be had.
    """
    encoders = []
    for model in loaded_models(names, settings, device, processes):
        if "audio" not in model.abilities:
            raise InputError(f"{model.card.id!r} embeds no clips")
        encoders.append(model)
    return encoders
