"""What decides a training: its stages, model, data and numbers, as one record that is a YAML file too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from audio_compositionality.encoders.loading.names import split_twin
from audio_compositionality.support.text import first_line, nearest

from .errors import TrainingError

CONTRASTIVE, HARD, MODULAR = KINDS = ("contrastive", "hard", "modular")
"""What a stage can minimise; see `losses`."""

TINY, TINY_CLAP = FRESH = ("tiny", "tiny-clap")
"""The model that is begun with where nothing has been learnt yet: a small CLAP with fresh weights."""

ALIGN = "align:"
"""In front of the name of an encoder of sound: fresh weights are begun with beside its frozen embeddings."""

TRAINED = ("all", "last", "projection")
"""Which weights can be trained; see `TrainingSettings`."""

FORMS = ("own", "paper", "release")
"""Of the loss of the modular stage."""

PRECISIONS = ("auto", "no", "bf16", "fp16")
LOGS = ("tensorboard", "trackio")
"""Programs that a log can be written for, beside the table that always is."""

FREE = ("checkpoint_every", "chunk", "log_to")
"""Settings that a run may go on with others of: the weights do not depend on them, but for rounding."""

VALIDATION_ITEMS = 100
"""Items, or rows, of a task for validation where nothing is said: some take a tenth of a second each to draw."""

LARGEST_FILE = 2**20
"""Bytes of a file of settings; one has a thousand."""

DEEPEST = 2
"""Lists and mappings in one another that a setting is made of: of stages there is a list of mappings."""

STAGES = "contrastive:450,hard:450"
"""Where nothing is said. It ends with `HARD`: 200 steps of `MODULAR` more took order group from .647 to .637, and R@1
from audio to text from .86 to .14, as captions of parts come near to every clip of which they are true."""


class StageDefaults(NamedTuple):
    """What a stage takes where nothing is said.

    Attributes:
        fresh: learning rate of fresh weights.
        trained: learning rate of weights that have learnt before.
        warm_up: steps in which the learning rate rises from 0; of a short stage no more than a third.
    """

    fresh: float
    trained: float
    warm_up: int


STAGE_DEFAULTS: Mapping[str, StageDefaults] = {
    CONTRASTIVE: StageDefaults(1e-3, 1e-4, 100),
    HARD: StageDefaults(1e-3, 1e-5, 100),
    MODULAR: StageDefaults(1e-3, 1e-5, 100),
}


@dataclass(frozen=True)
class Stage:
    """A stage of training, with a warm-up and a learning rate of its own.

    Attributes:
        kind: one of `KINDS`.
        steps: of the optimizer.
        learning_rate: the highest; it is reached in `warm_up` steps, and then falls to a tenth of it as a cosine.
        warm_up: steps.
    """

    kind: str
    steps: int
    learning_rate: float
    warm_up: int

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise TrainingError(f"there is no stage {self.kind!r}; {nearest(self.kind, KINDS)}")
        _check_whole(f"steps of the stage {self.kind}", self.steps, 1)
        _check_whole(f"warm_up of the stage {self.kind}", self.warm_up, 0)
        _check_number(f"learning_rate of the stage {self.kind}", self.learning_rate)
        if self.warm_up > self.steps:
            raise TrainingError(f"the stage {self.kind} has {self.steps} steps, but warm_up is {self.warm_up}")


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """What decides a training.

    Attributes:
        stages: one after the other.
        init: what is begun with: one of `FRESH`, a folder, a Hub id, or `ALIGN` and an encoder.
        train: ``all`` weights; ``last``, the last stage of the audio tower, the last layer of the text tower, the
            projections and the scale; or ``projection``, the projections and the scale.
        data: where rows come from, as the user named it: a recipe, rendered on the fly, a folder, or a Hub id.
        preset: size of a recipe.
        recipe: the one to learn from, of data with several.
        rows: that are learnt from; None for all that the data have.
        validation_items: of each task, that models are compared by while they are trained; 0 for none.
        batch_size: rows of a batch over all processes together.
        chunk: most rows, with their texts, that go through the towers at once; None for all of the batch.
        accumulate: batches of a step; each is told from its own rows only.
        weight_decay: of weights; biases, norms and the scale have none.
        negatives: most false texts of a row in the stage ``hard``.
        modular_negatives: most false texts of a row in the stage ``modular``.
        positives: most true parts of a row in the stage ``modular``.
        form: of the modular loss, one of `FORMS`.
        text_to_audio: weight of the half of each loss in which captions look for clips, α1 of equations 4 and 6.
        audio_to_text: weight of the other half, α2; the paper gives neither, and its authors' code has 1 and 1.
        modular_weight: of the form ``own``, beside the loss with false texts that it is added to.
        neighbours: 0, or of how many nearest clips each row's batch has one.
        precision: ``no`` (float32), ``bf16``, ``fp16``, or ``auto``: bf16 on a GPU that has it, else float32.
        seed: of fresh weights and of every draw.
        evaluate_every: steps from one evaluation to the next; 0 for the end of each stage alone.
        patience: a stage ends after so many evaluations without a better one; 0 for never.
        checkpoint_every: steps that a killed run loses at most.
        log_to: programs that a log is written for, of `LOGS`.
    """

    stages: tuple[Stage, ...]
    data: str
    preset: str = "mini"
    recipe: str | None = None
    rows: int | None = None
    validation_items: int = VALIDATION_ITEMS
    init: str = TINY
    train: str = "all"
    batch_size: int = 48
    chunk: int | None = None
    accumulate: int = 1
    weight_decay: float = 0.01
    negatives: int = 3
    modular_negatives: int = 7
    positives: int = 7
    form: str = "own"
    text_to_audio: float = 1.0
    audio_to_text: float = 1.0
    modular_weight: float = 0.5
    neighbours: int = 0
    precision: str = "auto"
    seed: int = 0
    evaluate_every: int = 0
    patience: int = 0
    checkpoint_every: int = 100
    log_to: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.stages:
            raise TrainingError("there is no stage; give some, such as contrastive:700,hard:900")
        for name, valid in (("train", TRAINED), ("form", FORMS), ("precision", PRECISIONS)):
            if getattr(self, name) not in valid:
                raise TrainingError(f"{name} is {getattr(self, name)!r}; {nearest(str(getattr(self, name)), valid)}")
        for program in self.log_to:
            if program not in LOGS:
                raise TrainingError(f"log_to has {program!r}; {nearest(str(program), LOGS)}")
        for name in ("data", "preset", "init", *(() if self.recipe is None else ("recipe",))):
            if not isinstance(getattr(self, name), str):
                raise TrainingError(f"{name} is {getattr(self, name)!r}; it must be a text")
        _check_whole("batch_size", self.batch_size, 2)
        for name in ("accumulate", "negatives", "modular_negatives", "positives", "checkpoint_every"):
            _check_whole(name, getattr(self, name), 1)
        for name in ("neighbours", "seed", "evaluate_every", "patience", "validation_items"):
            _check_whole(name, getattr(self, name), 0)
        for name in ("chunk", "rows"):
            if getattr(self, name) is not None:
                _check_whole(name, getattr(self, name), 1)
        for name in ("weight_decay", "text_to_audio", "audio_to_text"):
            _check_number(name, getattr(self, name), may_be_zero=True)
        _check_number("modular_weight", self.modular_weight)
        if not self.text_to_audio + self.audio_to_text:
            raise TrainingError("text_to_audio and audio_to_text are both 0; one of them must be above 0")
        if self.seed >= 2**63:
            raise TrainingError(f"seed is {self.seed}; it must be less than 2^63")
        if self.validation_items == 1:
            raise TrainingError("validation_items is 1; it must be 0, for none, or 2 or more")
        if self.patience and not self.evaluate_every:
            raise TrainingError(f"patience is {self.patience} evaluations, so evaluate_every must be 1 step or more")
        if self.patience and not self.validation_items:
            raise TrainingError(f"patience is {self.patience} evaluations, so validation_items must be 2 or more")

    @property
    def steps(self) -> int:
        """Of all stages together."""
        return sum(stage.steps for stage in self.stages)

    def values(self) -> dict[str, Any]:
        """All of it as plain values, from which `settings_of` makes it again."""
        return {**asdict(self), "stages": [asdict(stage) for stage in self.stages], "log_to": list(self.log_to)}

    def to_yaml(self) -> str:
        """All of it as a file that `read_settings` takes."""
        return yaml.safe_dump(self.values(), sort_keys=False, allow_unicode=True, width=120)


def is_fresh(init: str) -> bool:
    """Whether weights are fresh: those of `FRESH`, of ``untrained:`` and a name, of `ALIGN` and a name."""
    kind, _ = split_twin(init)
    return init in FRESH or init.startswith(ALIGN) or (kind is not None and kind.is_fresh)


NUMBERS = ("weight_decay", "text_to_audio", "audio_to_text", "modular_weight")
"""Settings that are numbers, which YAML 1.1 may take for texts."""

STAGE_OPTIONS = ("learning_rate", "warm_up")
"""Values of a stage that may also be given for all, or as a list of one a stage."""


def settings_of(values: Mapping[str, Any]) -> TrainingSettings:
    """Settings from plain values.

    Args:
        values: by the names of `TrainingSettings`; ``stages``, by default `STAGES`, as `parse_stages` takes them or as
            a list of mappings of `Stage`, in which only ``kind`` and ``steps`` are needed; and `STAGE_OPTIONS`, which
            come before what the stages say.

    Raises:
        TrainingError: a name that there is not, with the nearest one, or a value that cannot be used.
    """
    names = [field.name for field in fields(TrainingSettings)]
    for name in values:
        if name not in (*names, *STAGE_OPTIONS):
            raise TrainingError(f"there is no setting {name!r}; {nearest(str(name), [*names, *STAGE_OPTIONS])}")
    values = {"stages": STAGES, **values}
    needed = [field.name for field in fields(TrainingSettings) if field.default is MISSING]
    for name in needed:
        if values.get(name) in (None, "", [], ()):
            raise TrainingError(f"there is no {name}; give --{name}, or `{name}:` in the file of --settings")
    plain = {name: value for name, value in values.items() if name not in STAGE_OPTIONS}
    fresh = is_fresh(str(plain.get("init", TINY)))
    stages = _stages_of(values["stages"], {name: values.get(name) for name in STAGE_OPTIONS}, fresh)
    programs = plain.get("log_to") or ()
    programs = programs.split(",") if isinstance(programs, str) else programs
    if not isinstance(programs, list | tuple):
        raise TrainingError(f"log_to is {programs!r}; it must be a list of {' and '.join(LOGS)}")
    plain |= {"stages": stages, "log_to": tuple(programs)}
    plain |= {name: _number(name, plain[name]) for name in NUMBERS if name in plain}
    return TrainingSettings(**plain)


def read_settings(path: Path) -> dict[str, Any]:
    """The values in a YAML file, for `settings_of`.

    Raises:
        TrainingError: it cannot be read, or is no mapping of values as settings have them.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_FILE + 1)
        values = yaml.safe_load(content.decode()) if len(content) <= LARGEST_FILE else None
    except OSError as error:
        raise TrainingError(f"cannot read the settings in {path}: {error.strerror or error}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise TrainingError(f"{path} is no YAML: {getattr(error, 'problem', None) or first_line(error)}") from error
    if len(content) > LARGEST_FILE:
        raise TrainingError(f"{path} has more than {LARGEST_FILE:,} bytes, too many for a file of settings")
    if not isinstance(values, dict):
        raise TrainingError(f"{path} must have lines such as 'init: tiny', but is a {type(values).__name__}")
    check_depth(values, path)
    return values


def check_depth(values: Mapping[str, Any], path: Path) -> None:
    """Refuse settings that no training has: a file may name one list many times, and be endless when it is shown.

    Raises:
        TrainingError: names the setting.
    """
    for name, value in values.items():
        if _is_deeper(value, DEEPEST):
            raise TrainingError(f"{path}: {name!r} has lists in one another, more than any setting has")


def _is_deeper(value: Any, most: int) -> bool:
    if not isinstance(value, dict | list | tuple | set):
        return False
    parts = value.values() if isinstance(value, dict) else value
    return most == 0 or any(_is_deeper(part, most - 1) for part in parts)


def parse_stages(text: str) -> list[dict[str, Any]]:
    """Stages as they are typed: ``contrastive:700,hard:900``.

    Raises:
        TrainingError: it is not of that form.
    """
    stages = []
    for part in text.split(","):
        kind, _, steps = part.strip().partition(":")
        if not (steps.strip().isascii() and steps.strip().isdigit()):
            raise TrainingError(
                f"the stage {part.strip()!r} must be KIND:STEPS, such as contrastive:700; kinds are {', '.join(KINDS)}"
            )
        stages.append({"kind": kind.strip(), "steps": int(steps)})
    return stages


def _stages_of(given: Any, options: Mapping[str, Any], fresh: bool) -> tuple[Stage, ...]:
    listed = parse_stages(given) if isinstance(given, str) else given
    if not isinstance(listed, Sequence) or not all(isinstance(one, Mapping) for one in listed):
        raise TrainingError("stages must be a text such as contrastive:700,hard:900, or a list of kind and steps")
    names = [field.name for field in fields(Stage)]
    stages = []
    for place, one in enumerate(listed):
        for name in one:
            if name not in names:
                raise TrainingError(f"a stage has no {name!r}; {nearest(str(name), names)}")
        for name in ("kind", "steps"):
            if name not in one:
                raise TrainingError(f"stage {place + 1} has no {name}")
        over = {name: _of_stage(name, value, place, len(listed)) for name, value in options.items()}
        stages.append(_stage({**one, **{name: value for name, value in over.items() if value is not None}}, fresh))
    return tuple(stages)


def _of_stage(name: str, value: Any, place: int, count: int) -> Any:
    """The value for one stage, of one for all or of a list."""
    if not isinstance(value, list | tuple):
        return value
    if len(value) != count:
        raise TrainingError(
            f"{name} has {len(value)} values, and the stages are {count}; give one for all, or one a stage"
        )
    return value[place]


def _stage(values: Mapping[str, Any], fresh: bool) -> Stage:
    kind, steps = values["kind"], values["steps"]
    defaults = STAGE_DEFAULTS.get(str(kind))
    if defaults is None:
        raise TrainingError(f"there is no stage {kind!r}; {nearest(str(kind), KINDS)}")
    _check_whole(f"steps of the stage {kind}", steps, 1)
    rate = _number("learning_rate", values.get("learning_rate"))
    warm_up = values.get("warm_up")
    return Stage(
        kind=str(kind),
        steps=steps,
        learning_rate=(defaults.fresh if fresh else defaults.trained) if rate is None else rate,
        warm_up=min(defaults.warm_up, steps // 3) if warm_up is None else warm_up,
    )


def differences(stored: Mapping[str, Any], asked: Mapping[str, Any], *, free: Sequence[str] = FREE) -> list[str]:
    """In what two records of settings differ, a phrase each; names in `free` may.

    Args:
        stored, asked: as `TrainingSettings.values` has them.
        free: names that are passed over.
    """
    first, second = _flat(stored), _flat(asked)
    names = [name for name in dict.fromkeys((*first, *second)) if name.split(".")[0] not in free]
    return [
        f"{name} is {second.get(name, 'nothing')} where it was {first.get(name, 'nothing')}"
        for name in names
        if first.get(name) != second.get(name)
    ]


def _flat(values: Any, name: str = "") -> dict[str, Any]:
    if isinstance(values, Mapping):
        parts = [(str(key) if not name else f"{name}.{key}", value) for key, value in values.items()]
    elif isinstance(values, list | tuple):
        parts = [(f"{name}.{place + 1}", value) for place, value in enumerate(values)]
    else:
        return {name: values}
    return {key: leaf for part, value in parts for key, leaf in _flat(value, part).items()}


def _check_whole(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise TrainingError(f"{name} is {value!r}; it must be a whole number, {least} or more")


def _check_number(name: str, value: Any, *, may_be_zero: bool = False) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value < float("inf") or (value == 0 and not may_be_zero):
        raise TrainingError(f"{name} is {value!r}; it must be a number {'from 0' if may_be_zero else 'above 0'}")


def _number(name: str, value: Any) -> Any:
    """The number that a text says: YAML 1.1 takes 1e-3, without a point, for a text."""
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        raise TrainingError(f"{name} is {value!r}; it must be a number above 0, such as 1e-3") from None
