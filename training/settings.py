"""The settings of a training: its stages, model, data and numbers, as one record that is also a YAML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import Field, field_validator, model_validator

from audio_compositionality.encoders.loading.names import split_twin
from audio_compositionality.support.errors import AudioCompositionalityError, InputError
from audio_compositionality.support.spec import Spec, TypedAs


class TrainingError(AudioCompositionalityError):
    """A training that cannot be run or resumed."""


StageKind = Literal["contrastive", "hard", "modular"]
"""The kinds of stages: captions against other captions; against similar false texts; with parts as positives."""

KINDS: tuple[StageKind, ...] = get_args(StageKind)
CONTRASTIVE: Literal["contrastive"] = "contrastive"
HARD: Literal["hard"] = "hard"
MODULAR: Literal["modular"] = "modular"
"""The losses of a stage; see `losses`."""

TINY, TINY_CLAP = FRESH = ("tiny", "tiny-clap")
"""The initial models without training: small CLAPs with fresh weights."""

ALIGN = "align:"
"""The prefix to the name of an audio encoder whose frozen embeddings are aligned by fresh weights."""

Trained = Literal["all", "last", "projection"]
TRAINED: tuple[Trained, ...] = get_args(Trained)
"""Which weights can be trained; see `TrainingSettings`."""

Tracker = Literal["aim", "clearml", "comet_ml", "dvclive", "mlflow", "swanlab", "tensorboard", "trackio", "wandb"]
"""Names of the experiment trackers of accelerate."""

FREE = ("checkpoint_every", "chunk", "log_to")
"""Settings that may differ when a run resumes: the weights do not depend on them, except by rounding."""

VALIDATION_ITEMS = 100
"""Default number of validation items, or rows, of a task: some take a tenth of a second each to draw."""

STAGES = "contrastive:450,hard:450"
"""The default stages. They end with `HARD`: 200 steps of `MODULAR` more changed order group from .647 to .637, and R@1
from audio to text from .86 to .14, as captions of parts come near to every clip that they describe."""


class StageDefaults(NamedTuple):
    """The defaults of a stage.

    Attributes:
        fresh: learning rate of fresh weights.
        trained: learning rate of pretrained weights.
        warm_up: steps in which the learning rate rises from 0; at most a third of a short stage.
    """

    fresh: float
    trained: float
    warm_up: int


STAGE_DEFAULTS: Mapping[str, StageDefaults] = {
    CONTRASTIVE: StageDefaults(1e-3, 1e-4, 100),
    HARD: StageDefaults(1e-3, 1e-5, 100),
    MODULAR: StageDefaults(1e-3, 1e-5, 100),
}


class Stage(Spec):
    """A stage of training, with its own warm-up and learning rate."""

    kind: StageKind = Field(description="Kind of loss.")
    steps: int = Field(ge=1, description="Steps of the optimizer.")
    learning_rate: float = Field(
        gt=0, description="Peak, reached after the warm-up; it then falls to a tenth as a cosine."
    )
    warm_up: int = Field(ge=0, description="Steps.")

    @model_validator(mode="after")
    def _is_long_enough(self) -> Stage:
        if self.warm_up > self.steps:
            raise InputError(f"the stage {self.kind} has {self.steps} steps, but warm_up is {self.warm_up}")
        return self


class MachineSpec(Spec):
    """The settings of a training that do not affect its model."""

    workers: int | None = Field(None, ge=1, description="Threads that prepare log-mels; by default one per core.")


class TrainingSettings(Spec):
    """The settings of a training; read from YAML, from ``NAME=VALUE``, and written next to the model."""

    stages: Annotated[tuple[Stage, ...], TypedAs("KIND:STEPS with commas between them")] = Field(
        STAGES,  # type: ignore[arg-type]  # a text, which is read below
        min_length=1,
        description=f"Stages in order; kinds are {', '.join(KINDS)}. In YAML also a list of stages with a "
        "learning_rate and a warm_up each.",
    )
    learning_rate: tuple[float, ...] | None = Field(
        None,
        exclude=True,
        description="Peak, of all stages or one per stage; it rises over the warm-up and falls as a cosine. "
        f"None for {STAGE_DEFAULTS[HARD].fresh:g} of fresh weights, {STAGE_DEFAULTS[HARD].trained:g} of others and "
        f"{STAGE_DEFAULTS[CONTRASTIVE].trained:g} in the stage contrastive.",
    )
    warm_up: tuple[int, ...] | None = Field(
        None,
        exclude=True,
        description="Steps in which the learning rate rises, of all stages or one per stage; none for "
        f"{STAGE_DEFAULTS[HARD].warm_up}, or a third of a short stage.",
    )
    data: str = Field(min_length=1, description="Training rows: a recipe, rendered on the fly, a folder, or a Hub id.")
    preset: str = Field("mini", description="Size of a recipe.")
    recipe: str | None = Field(None, description="The training recipe, of data with several.")
    rows: int | None = Field(None, ge=1, description="Number of training rows; none for all.")
    validation_items: int = Field(
        VALIDATION_ITEMS,
        ge=0,
        description="Validation items per task, which choose the best model; 0 for none, else 2 or more.",
    )
    init: str = Field(
        TINY,
        description=f"Initial weights: {TINY} or {TINY_CLAP}, small towers with fresh weights; a folder; a Hub id;"
        f"or {ALIGN} and an encoder of sound.",
    )
    train: Trained = Field(
        "all",
        description="Weights that are trained: all; last, the last stage of the audio tower, the last layer of the "
        "text tower, the projections and the scale; or projection, the projections and the scale.",
    )
    batch_size: int = Field(48, ge=2, description="Rows per batch, over all processes.")
    chunk: int | None = Field(
        None,
        ge=1,
        description="Maximum number of rows, with their texts, per pass through the towers; none for the batch.",
    )
    accumulate: int = Field(1, ge=1, description="Batches per step; rows are contrasted within their batch alone.")
    weight_decay: float = Field(0.01, ge=0, description="Decay of the weights; biases, norms and the scale have none.")
    negatives: int = Field(3, ge=1, description="Maximum number of negative texts per row in the stage hard.")
    modular_negatives: int = Field(
        7, ge=1, description="Maximum number of negative texts per row in the stage modular."
    )
    positives: int = Field(7, ge=1, description="Maximum number of positive texts per row in the stage modular.")
    form: Literal["own", "paper", "release"] = Field("own", description="Form of the modular loss.")
    # α1 and α2 of equations 4 and 6; the paper states neither, and its authors' code has 1 and 1.
    text_to_audio: float = Field(1.0, ge=0, description="Weight of the text-to-audio half of each loss, α1.")
    audio_to_text: float = Field(1.0, ge=0, description="Weight of the audio-to-text half of each loss, α2.")
    modular_weight: float = Field(
        0.5, gt=0, description="Weight of the modular term in the form own, which is added to the loss with negatives."
    )
    neighbours: int = Field(
        0, ge=0, description="Number of nearest clips from which each row's batch gets one; 0 for none."
    )
    precision: Literal["auto", "no", "bf16", "fp16"] = Field(
        "auto", description="no is float32; auto is bf16 on a GPU that has it, else float32."
    )
    seed: int = Field(0, ge=0, le=2**63 - 1, description="Seed of fresh weights and of every random draw.")
    evaluate_every: int = Field(
        0, ge=0, description="Steps between evaluations; 0 to evaluate only at the end of each stage."
    )
    patience: int = Field(
        0, ge=0, description="Evaluations without a better score after which a stage ends; 0 for never."
    )
    checkpoint_every: int = Field(
        100, ge=1, description="Steps between saved states: the most that a killed run loses."
    )
    log_to: tuple[Tracker, ...] = Field(
        (), description="Experiment trackers of accelerate to log to; tables are always written as well."
    )

    @model_validator(mode="before")
    @classmethod
    def _with_whole_stages(cls, values: Any) -> Any:
        given = values.get("stages", STAGES)
        stages = parse_stages(given) if isinstance(given, str) else given
        if not isinstance(stages, list | tuple) or not all(isinstance(one, Mapping | Stage) for one in stages):
            raise InputError("stages must be a text such as contrastive:700,hard:900, or a list of kind and steps")
        options: dict[str, Sequence[Any]] = {}
        for name in STAGE_OPTIONS:
            value, count = values.get(name), len(stages)
            of_stages = value if isinstance(value, list | tuple) else [value]
            if len(of_stages) not in (1, count):
                raise InputError(
                    f"{name} has {len(of_stages)} values for {count} stages; give one value for all, or one per stage"
                )
            options[name] = of_stages if len(of_stages) == count else [of_stages[0]] * count
        fresh = is_fresh(str(values.get("init", TINY)))
        whole = tuple(
            _stage(place, one, {name: of_stages[place] for name, of_stages in options.items()}, fresh)
            for place, one in enumerate(stages)
        )
        return {**{name: value for name, value in values.items() if name not in STAGE_OPTIONS}, "stages": whole}

    @field_validator("validation_items")
    @classmethod
    def _can_be_compared(cls, count: int) -> int:
        if count == 1:
            raise InputError("validation_items is 1; it must be 0, for none, or 2 or more")
        return count

    @model_validator(mode="after")
    def _go_together(self) -> TrainingSettings:
        if not self.text_to_audio + self.audio_to_text:
            raise InputError("text_to_audio and audio_to_text are both 0; one of them must be above 0")
        if self.patience and not self.evaluate_every:
            raise InputError(f"patience is {self.patience} evaluations, so evaluate_every must be 1 step or more")
        if self.patience and not self.validation_items:
            raise InputError(f"patience is {self.patience} evaluations, so validation_items must be 2 or more")
        return self

    @property
    def steps(self) -> int:
        """Number of steps of all stages together."""
        return sum(stage.steps for stage in self.stages)


STAGE_OPTIONS = ("learning_rate", "warm_up")
"""Values of a stage that may also be given for all stages, or as a list; they override those in the stages."""


def is_fresh(init: str) -> bool:
    """Whether weights are fresh: `FRESH`, ``untrained:`` and a name, or `ALIGN` and a name."""
    kind, _ = split_twin(init)
    return init in FRESH or init.startswith(ALIGN) or (kind is not None and kind.is_fresh)


def parse_stages(text: str) -> list[dict[str, Any]]:
    """Parse stages as they are typed: ``contrastive:700,hard:900``.

    Raises:
        InputError: they have another form.
    """
    stages = []
    for part in text.split(","):
        kind, _, steps = part.strip().partition(":")
        if not (steps.strip().isascii() and steps.strip().isdigit()):
            raise InputError(
                f"the stage {part.strip()!r} must be KIND:STEPS, such as contrastive:700; kinds are {', '.join(KINDS)}"
            )
        stages.append({"kind": kind.strip(), "steps": int(steps)})
    return stages


def _stage(place: int, given: Mapping[str, Any] | Stage, options: Mapping[str, Any], fresh: bool) -> Stage:
    """Return a stage with the defaults of its kind."""
    stated = given.values() if isinstance(given, Stage) else dict(given)
    given_for_all = {name: value for name, value in options.items() if value is not None}
    stated = {name: value for name, value in {**stated, **given_for_all}.items() if value is not None}
    defaults, steps = STAGE_DEFAULTS.get(str(stated.get("kind"))), stated.get("steps")
    usual: dict[str, Any] = {}
    if defaults is not None:
        rate, third = defaults.fresh if fresh else defaults.trained, steps // 3 if isinstance(steps, int) else 0
        usual = {"learning_rate": rate, "warm_up": max(0, min(defaults.warm_up, third))}
    try:
        return Stage(**{**usual, **stated})
    except InputError as error:
        raise InputError(f"stage {place + 1}: {error}") from error


def setting_differences(
    stored: Mapping[str, Any], asked: Mapping[str, Any], *, free: Sequence[str] = FREE
) -> list[str]:
    """Describe the differences of two records of settings, one phrase each.

    Args:
        stored, asked: as from `TrainingSettings.values`.
        free: names that may differ.
    """
    first, second = _flat(stored), _flat(asked)
    names = [name for name in dict.fromkeys((*first, *second)) if name.split(".")[0] not in free]
    return [
        f"{name} is {second.get(name, 'nothing')} instead of {first.get(name, 'nothing')}"
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
