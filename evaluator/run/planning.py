"""What is scored beside what: decided from what models can do and what tasks want beside them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from audio_compositionality.encoders.adapters.custom_loading import twin_problem
from audio_compositionality.encoders.base import ENCODER, LANGUAGE_MODEL, Model
from audio_compositionality.encoders.controls import CONTROLS, can_control
from audio_compositionality.encoders.loading.names import list_models, parse_name, split_control
from audio_compositionality.encoders.loading.registry import has_twins
from audio_compositionality.encoders.loading.twins import UNTRAINED
from audio_compositionality.tasks.base import Task

from .outputs import can_do

_OF_INPUT = tuple(kind.prefix for kind in CONTROLS.values())


@dataclass(frozen=True)
class Named:
    """A model that a user names, as far as it is known.

    Attributes:
        name: as it was typed.
        loaded: the models that it became, one a layer; empty where it is not loaded. What is neither loaded nor listed
            is taken for an audio encoder.
    """

    name: str
    loaded: tuple[Model, ...] = ()

    def does(self, task: Task) -> bool:
        """Whether it can do what a task needs."""
        if self.loaded:
            return any(can_do(task, model) for model in self.loaded)
        parsed = parse_name(self.name)
        if parsed.form == "endpoint" or parsed.prefix == "heard-as-text":
            return task.info.needs <= LANGUAGE_MODEL
        return task.info.needs <= ENCODER if parsed.listing is None else parsed.listing.can_do(task.info.needs)

    def takes(self, prefix: str) -> bool:
        """Whether a twin or a control of it says anything: who has learnt to answer by sound, or reads labels, is not
        told what is heard."""
        if prefix not in _OF_INPUT:
            return has_twins(self.name, prefix) and not self._lacks(prefix)
        kind, _ = split_control(f"{prefix}{self.name}")
        is_control = self.name.startswith(_OF_INPUT) or kind is None
        return not is_control and all(can_control(model, kind) for model in self.loaded if kind is not None)

    def _lacks(self, prefix: str) -> bool:
        """Whether nothing says how weights of a twin are drawn, of which a warning tells."""
        problem = next(filter(None, (twin_problem(model, prefix) for model in self.loaded)), None)
        if problem is not None:
            warnings.warn(f"{prefix}{self.name} is left out: {problem}", stacklevel=4)
        return problem is not None


@dataclass(frozen=True)
class Plan:
    """What is scored beside what.

    Attributes:
        tasks: that are scored.
        baselines: names of models without which scores say little.
        beside: for each model that is named, its twins and controls.
    """

    tasks: tuple[Task, ...]
    baselines: tuple[str, ...]
    beside: Mapping[str, tuple[str, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """Of all models, each beside its own."""
        named = [one for name, controls in self.beside.items() for one in (name, *controls)]
        return (*self.baselines, *named)


def planned(given: Sequence[Named], tasks: Sequence[Task], *, is_named: bool, is_judged: bool) -> Plan:
    """Plan an evaluation.

    Args:
        given: the models.
        tasks: that are named, or that the data allow.
        is_named: whether the tasks were named; else those that none of the models can do are left out.
        is_judged: whether everything that a task wants stands beside each model; else its untrained twin alone.
    """
    scored = [task for task in tasks if is_named or not given or any(one.does(task) for one in given)]
    baselines = [one.name for one in list_models() if one.is_baseline and any(map(one.can_do, _needs(scored)))]
    wanted = [control for task in scored for control in task.info.controls] if is_judged else []
    baselines += [name for name in dict.fromkeys(wanted) if not name.endswith(":") and name not in baselines]
    names = {one.name for one in given}
    beside = {
        one.name: tuple(
            f"{prefix}{one.name}"
            for prefix in _prefixes([task for task in scored if one.does(task)], is_judged)
            if f"{prefix}{one.name}" not in names and one.takes(prefix)
        )
        for one in given
        if one.name not in baselines
    }
    return Plan(tuple(scored), tuple(baselines), beside)


def _needs(tasks: Sequence[Task]) -> set[frozenset[str]]:
    return {task.info.needs for task in tasks}


def _prefixes(tasks: Sequence[Task], is_judged: bool) -> list[str]:
    """What stands in front of the names of twins and controls that tasks want, twins first."""
    if not is_judged:
        return [UNTRAINED]
    # Tasks say beside which twin a model is judged: one that has to read the question says nothing untrained.
    judged = {task.info.twin[0] for task in tasks} or {UNTRAINED}
    wanted = [control for task in tasks for control in task.info.controls if control.endswith(":")]
    every = dict.fromkeys([*([UNTRAINED] if UNTRAINED in judged else []), *wanted])
    return sorted(every, key=lambda prefix: prefix in _OF_INPUT)
