"""Predictive validity: does a score predict how well an embedding serves other tasks, on sounds that no score uses?

    python -m studies.downstream --out results/downstream --weights whisper-tiny.en=FOLDER whisper-base=FOLDER

`DECLARED` fixes the design before anything is measured: the scores, the tasks, and the criterion for predicting. The
command embeds the clips of scores and tasks with each model of `MODELS` at all its layers, writes one file per
representation, and resumes where it stopped. It prints the tables of docs/understand/downstream.md as Markdown;
`--tables` embeds nothing, `--figure FILE.svg` draws them. It needs the packages of examples/README.md and the programs
that make the sounds (docs/how-to/data.md). A model without its package or weights is left out and named.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import soxr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from scipy.spatial.distance import pdist
from scipy.stats import rankdata, spearmanr
from sklearn.linear_model import RidgeCV
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import StandardScaler

from audio_compositionality.dataset_builder.data import Data
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.encoders.base import Model
from audio_compositionality.encoders.loading.registry import load_layers, load_model
from audio_compositionality.encoders.model_encoder import LayeredEncoder, deepest, embed_layers
from audio_compositionality.evaluator.figures.style import figure_style, figure_svg
from audio_compositionality.evaluator.run.embeddings import embed_at_layers
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.metrics.arrays import unit_rows
from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.files import write_together, write_whole
from audio_compositionality.support.table import Column, Table, rows_of, to_markdown
from audio_compositionality.tasks.registry import load_tasks

from .sounds.maker import read_sound
from .tables import EXAMPLES, make, number

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Score:
    """A candidate predictor: title of the score, the task of this package that computes it, and the measure."""

    title: str
    task: str
    measure: str


@dataclass(frozen=True)
class Declaration:
    """The design of the study, fixed before it is run.

    Attributes:
        scores: the scores. They are computed on tones of our generator or on spoken words.
        others: predictors that are not scores: description by title.
        tasks: the downstream tasks: meaning of their number by title. All use drums, creatures and instruments.
        control: title of the score that the partial correlation controls for.
        second_control: what a second partial correlation controls for; it does not affect the decision.
        confidence: confidence of the intervals, which resample models with all their layers.
        resamples: number of bootstrap resamples.
        least_tasks: a score predicts beyond recognition if the interval of its partial correlation lies above 0 in at
            least this number of tasks. `control` itself is judged by its plain correlation.
    """

    scores: tuple[Score, ...]
    others: Mapping[str, str]
    tasks: Mapping[str, str]
    control: str
    second_control: str
    confidence: float = 0.95
    resamples: int = 4000
    least_tasks: int = 2


DECLARED = Declaration(
    scores=(
        Score("A-COAT", "a_coat", "a_coat"),
        Score("A-COAT adjusted", "a_coat", "adjusted"),
        Score("A-COAT top-1", "a_coat", "top1"),
        # The closed form of the centred score: 60 fits of the transformer would cost more than all the embeddings.
        Score("A-TRE centred (ridge)", "a_tre", "ridge_centred"),
        Score("Instances: alone", "a_coat_instances", "alone_top1"),
        Score("Instances: part", "a_coat_instances", "part_top1"),
        Score("Instances: scene", "a_coat_instances", "top1"),
        Score("Instances: kept", "a_coat_instances", "kept"),
        Score("Informativeness", "informativeness", "informativeness"),
        Score("Equivariance", "equivariance", "r_equivariance"),
        Score("Invariance", "invariance", "abx"),
        Score("Disentanglement", "disentanglement", "unseen"),
    ),
    others={
        "Closeness to log-mel": "Spearman's rho of the distances between the clips of A-COAT with those in log-mel "
        "statistics",
        "Parameters": "number of weights of the network, 0 without one",
    },
    tasks={
        "tagging": "mean average precision of the labels of mixtures of 1 to 4 recordings, by a linear probe",
        "counting": "Spearman's rho of the number of sources in these mixtures with the prediction of a linear probe",
        "few-shot": "accuracy of the nearest class mean for a recording under an interfering sound at 0 dB",
        "retrieval": "mean average precision of the mixtures that contain a recording, ranked by their cosine with it",
    },
    control="Instances: alone",
    second_control="accuracy of the nearest class mean for single downstream recordings, without interference",
)

TONES: Mapping[str, Any] = {
    "num_classes": 4,
    "duration": 2,
    "rate_range": (1.0, 6.0),
    "quadruples": 32,
    "quadruple_candidates": 4_000,
    "scene_candidates": 8_000,
    "train_scenes": 112,
    "validation_scenes": 16,
    "test_scenes": 32,
    "stars": 5,
    "crossed_levels": (4, 3, 3, 3),
    "transforms": ("noise", "reverb"),
    "bases": 10,
    "untransformed": 4,
}
"""Settings of A-COAT, A-TRE and the axes, on tones."""

SETTINGS: Mapping[str, Any] = {"max_steps": 1, "probes": ("ridge",)}
"""Settings of the tasks on tones: the fits whose scores are not used are cut short, and probes are linear."""

WORDS: Mapping[str, Any] = {"duration": 2, "blocks": 8, "classes": 6}
"""Settings of the instances, on words."""

CLASSES: Mapping[str, tuple[str, ...]] = {
    "drums": ("closed-hat", "crash", "kick", "open-hat", "ride", "snare"),
    "creatures": ("dwarf", "gryphon", "wolf", "zombie"),
    "instruments": ("clarinet", "grand-piano", "harp", "marimba", "trumpet", "violin"),
}
"""Downstream classes, by the name of their sounds; recordings of all other labels interfere."""

TRAIN, TEST = 4, 3
"""Recordings of a class; no kit or soundfont has recordings of one class in both parts."""

INTERFERED = 2
"""Clips with another interfering sound for each recording in the test part."""

MIXTURES: Mapping[str, int] = {"train": 144, "test": 96}
"""Mixtures, with as many of each number of sources from 1 to 4."""

SECONDS, RATE, SPREAD = 2.0, 32_000, 3.0
"""Length and rate of a downstream clip; SPREAD is the greatest deviation of a source's level in dB."""


# ----- models


@dataclass(frozen=True)
class Listed:
    """A model of the study; a twin with another seed is another model.

    Attributes:
        name: as `load_model` takes it.
        architecture: shared by a model and its twins.
        seed: seed of a twin.
        needs_weights: whether `--weights` must name a folder, a copy of a Whisper.
    """

    name: str
    architecture: str
    seed: int = 0
    needs_weights: bool = False

    @property
    def label(self) -> str:
        """Name of the model in files and tables."""
        prefix = "untrained-" if self.name.startswith("untrained:") or ":Untrained" in self.name else ""
        return f"{prefix}{self.architecture}" + (f"-{self.seed}" if self.seed else "")


PLAIN = (
    *("log-mel-statistics", "modulation-statistics", "mfcc-statistics", "level-statistics", "rms"),
    *("downsample", "random"),
)
"""Acoustic baselines without weights."""


def _with_twins(name: str, architecture: str, twins: int, *, needs_weights: bool = False) -> list[Listed]:
    model = Listed(name, architecture, needs_weights=needs_weights)
    return [model, *(replace(model, name=f"untrained:{name}", seed=seed) for seed in range(twins))]


MODELS = (
    *(Listed(name, name) for name in PLAIN),
    *_with_twins("compa-clap-tiny", "compa-clap-tiny", 3),
    *_with_twins("whisper-tiny.en", "whisper-tiny.en", 1, needs_weights=True),
    *_with_twins(f"{EXAMPLES / 'ge2e.py'}:GE2E", "ge2e", 1),
    *_with_twins(f"{EXAMPLES / 'pesto.py'}:Pesto", "pesto", 1),
    *_with_twins(f"{EXAMPLES / 'yamnet.py'}:YAMNet", "yamnet", 1),
    *_with_twins(f"{EXAMPLES / 'musicnn.py'}:Musicnn", "musicnn", 1),
    *_with_twins("whisper-base", "whisper-base", 1, needs_weights=True),
    *_with_twins(f"{EXAMPLES / 'crepe.py'}:Crepe", "crepe-tiny", 1),
    *_with_twins(f"{EXAMPLES / 'sound_effects.py'}:AiSfx", "aisfx", 1),
    *_with_twins(f"{EXAMPLES / 'speech_embedding.py'}:SpeechEmbedding", "speech-embedding", 1),
    *_with_twins(f"{EXAMPLES / 'basic_pitch.py'}:BasicPitch", "basic-pitch", 1),
)
"""The models of the study, cheap ones first."""


def with_short_window(weights: Path, folder: Path) -> None:
    """Write a copy of a Whisper whose window lasts `SECONDS` instead of 30 s: the first of its positions."""
    if (folder / "config.json").exists():
        return
    positions = round(SECONDS * 50)
    config, extractor = (
        json.loads((weights / f"{n}.json").read_text("utf-8")) for n in ("config", "preprocessor_config")
    )
    config["max_source_positions"] = positions
    extractor |= {"chunk_length": round(SECONDS), "n_samples": 320 * positions, "nb_max_frames": 2 * positions}
    tensors = load_file(weights / "model.safetensors")
    name = next(name for name in tensors if name.endswith("encoder.embed_positions.weight"))
    tensors[name] = tensors[name][:positions]
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, folder / "model.safetensors")
    (folder / "preprocessor_config.json").write_text(json.dumps(extractor), "utf-8")
    (folder / "config.json").write_text(json.dumps(config), "utf-8")


# ----- downstream tasks


@dataclass(frozen=True)
class Material:
    """The clips of the downstream tasks.

    Attributes:
        clips: float32 [n, samples] at `RATE`, all with one root mean square.
        parts: which of them are ``single train``, ``single test``, ``mixture train``, ``mixture test`` and
            ``interfered``, the recordings of ``single test`` under an interfering one.
        classes: class of each recording in ``single train`` and ``single test``.
        present: bool [mixtures, classes], the classes in each of ``mixture train`` and ``mixture test``.
        contained: bool [single test, mixture test], whether the mixture contains the recording.
    """

    clips: NDArray[np.float32]
    parts: Mapping[str, slice]
    classes: Mapping[str, NDArray[np.int64]]
    present: Mapping[str, NDArray[np.bool_]]
    contained: NDArray[np.bool_]


def draw_material(sounds: Path, seed: int = 0) -> Material:
    """Draw the clips of the downstream tasks from the folders of `studies.sounds`, equal for equal seeds."""
    rng = np.random.default_rng(seed)
    samples = round(SECONDS * RATE)

    def read(path: Path) -> Floats:
        """Read the beginning of a recording, at a root mean square of 1."""
        heard, rate = read_sound(path)
        heard = soxr.resample(heard, rate, RATE)[: 3 * samples // 4]
        fade = min(len(heard), RATE // 100)
        heard[-fade:] *= np.linspace(1, 0, fade)
        normalised: Floats = heard / np.sqrt(np.mean(heard**2))
        return normalised

    def placed(heard: Floats) -> Floats:
        """Place a recording at a random time and level in a clip of silence."""
        start = rng.integers(samples - len(heard) + 1)
        return np.pad(heard, (start, samples - len(heard) - start)) * 10 ** (rng.uniform(-SPREAD, SPREAD) / 20)

    recordings: dict[str, list[Floats]] = {"train": [], "test": []}
    classes: dict[str, list[int]] = {"train": [], "test": []}
    others: list[Path] = []
    names = [(kind, label) for kind, labels in CLASSES.items() for label in labels]
    for kind in CLASSES:
        for folder in sorted(path for path in (sounds / kind).iterdir() if path.is_dir()):
            paths = sorted(folder.rglob("*.wav"))
            if (kind, folder.name) not in names:
                others += paths
                continue
            # A kit or a soundfont, or a recording of its own.
            groups = sorted({path.relative_to(folder).parts[0] for path in paths})
            chosen: dict[str, list[Path]] = {"train": [], "test": []}
            for group in rng.permutation(groups):
                part = "train" if len(chosen["train"]) < TRAIN else "test"
                chosen[part] += [path for path in paths if path.relative_to(folder).parts[0] == group]
            for part, count in (("train", TRAIN), ("test", TEST)):
                recordings[part] += [read(chosen[part][n]) for n in rng.permutation(len(chosen[part]))[:count]]
                classes[part] += [names.index((kind, folder.name))] * count
    clips = {f"single {part}": [placed(heard) for heard in recordings[part]] for part in recordings}
    contained = np.zeros((len(recordings["test"]), MIXTURES["test"]), dtype=bool)
    present = {}
    for part, count in MIXTURES.items():
        present[part] = np.zeros((count, len(names)), dtype=bool)
        clips[f"mixture {part}"] = []
        per_class = len(recordings[part]) // len(names)
        of_class = np.argsort(classes[part], kind="stable").reshape(len(names), per_class)
        for n in range(count):
            heard_classes = rng.choice(len(names), 1 + n % 4, replace=False)
            indices = [of_class[one, rng.integers(per_class)] for one in heard_classes]
            clips[f"mixture {part}"].append(np.sum([placed(recordings[part][index]) for index in indices], axis=0))
            present[part][n, heard_classes] = True
            if part == "test":
                contained[indices, n] = True
    clips["interfered"] = []
    for heard in recordings["test"]:
        for _ in range(INTERFERED):
            both = placed(heard), np.resize(read(others[rng.integers(len(others))]), samples)
            clips["interfered"].append(np.sum([one / np.sqrt(np.mean(one**2)) for one in both], axis=0))
    every: list[Floats] = []
    parts: dict[str, slice] = {}
    for name, some in clips.items():
        parts[name] = slice(len(every), len(every) + len(some))
        every += [clip * min(0.05 / np.sqrt(np.mean(clip**2)), 0.99 / np.abs(clip).max()) for clip in some]
    numbers = {part: np.array(some) for part, some in classes.items()}
    return Material(np.array(every, dtype=np.float32), parts, numbers, present, contained)


def score_downstream(embeddings: Floats, material: Material) -> dict[str, float]:
    """Return the number of each downstream task, and of single recordings without interference (``single``).

    Embeddings are standardised with the means and deviations of the clips from which the task learns: the mixtures of
    ``train``, the single recordings of ``train``, or for retrieval the mixtures among which it searches.
    """

    def standardised(fitted: str, *others: str) -> list[Floats]:
        scaler = StandardScaler().fit(embeddings[material.parts[fitted]])
        return [scaler.transform(embeddings[material.parts[name]]) for name in (fitted, *others)]

    present, penalties = material.present, np.logspace(0, 6, 13)
    train, test = standardised("mixture train", "mixture test")
    tags = RidgeCV(penalties).fit(train, present["train"].astype(float)).predict(test)
    counts = RidgeCV(penalties).fit(train, present["train"].sum(axis=1)).predict(test)
    # A constant prediction has no rank correlation.
    counted = float(spearmanr(counts, present["test"].sum(axis=1)).statistic) if np.ptp(counts) > 0 else 0.0
    support, clean, interfered = map(unit_rows, standardised("single train", "single test", "interfered"))
    labels = np.arange(present["test"].shape[1])
    means = unit_rows(np.stack([support[material.classes["train"] == label].mean(axis=0) for label in labels]))
    named = [(z @ means.T).argmax(axis=1) for z in (clean, interfered)]
    right = [float(np.mean(n == np.repeat(material.classes["test"], len(n) // len(clean)))) for n in named]
    gallery, queries = map(unit_rows, standardised("mixture test", "single test"))
    is_asked = material.contained.any(axis=1)
    found = map(average_precision_score, material.contained[is_asked], (queries @ gallery.T)[is_asked])
    return {
        "tagging": float(average_precision_score(present["test"], tags, average="macro")),
        "counting": counted,
        "few-shot": right[1],
        "retrieval": float(np.mean(list(found))),
        "single": right[0],
    }


# ----- measuring


def measure(models: Sequence[Model], listed: Listed, tones: Data, words: Data, material: Material, out: Path) -> None:
    """Score the layers of one model, and write a file for each."""
    started = time.process_time()
    options = RunOptions(cache=out / "cache", out=out / "scores" / listed.label, settings=SETTINGS, progress=False)
    tasks = dict.fromkeys(score.task for score in DECLARED.scores)
    on_words = [name for name in tasks if load_tasks([name])[0].info.recipe == "a_coat_instances"]
    on_tones = [name for name in tasks if name not in on_words]
    results = [
        *evaluate_models(models, tones, load_tasks(on_tones), options),
        *evaluate_models(models, words, load_tasks(on_words), options.changed(settings={})),
    ]
    numbers = {(result.model.id, result.task): result.measures for result in results}
    quadruples = tones.configuration("a_coat")
    stores = [embed_at_layers(some, quadruples, options) for some in (models, [load_model("log-mel-statistics")])]
    embedded = [store.load().embeddings.astype(np.float64) for some in stores for store in some]
    *distances, plain = [pdist(z - z.mean(axis=0)) for z in embedded]
    batches = []
    for start in range(0, len(material.clips), 8):
        some = material.clips[start : start + 8]
        layered = [model for model in models if isinstance(model, LayeredEncoder)]
        if layered:
            batches.append(embed_layers(layered, deepest(layered).prepare(some, RATE)))
        else:
            batches.append([models[0].embed(some, RATE)])
    seconds = (time.process_time() - started) / len(models)
    files = {}
    for n, model in enumerate(models):
        embeddings = np.concatenate([batch[n] for batch in batches]).astype(np.float64)
        # None if a score is not defined: `kept` needs sources that are recognised alone.
        scores: dict[str, Any] = {s.title: numbers[model.card.id, s.task][s.measure] for s in DECLARED.scores}
        scores["Closeness to log-mel"] = (
            float(spearmanr(distances[n], plain).statistic) if np.ptp(distances[n]) else 0.0
        )
        scores["Parameters"] = model.card.parameters or 0
        layer = f"@{model.card.options.layer}" if len(models) > 1 else ""
        found = {
            "representation": f"{listed.label}{layer}",
            "model": listed.label,
            "architecture": listed.architecture,
            "scores": scores,
            "tasks": score_downstream(embeddings, material),
            "seconds": seconds,
        }
        files[out / "representations" / f"{listed.label}{layer}.json"] = json.dumps(found, indent=1)
    (out / "representations").mkdir(exist_ok=True)
    write_together(files)


def measure_all(out: Path, weights: Mapping[str, str]) -> None:
    """Measure all models that have no files yet, and print the names of models that cannot be loaded."""
    sounds = out / "sounds"
    for name in ("words", *CLASSES):
        make(name, sounds / name)
    recipes = dict.fromkeys(load_tasks([score.task])[0].info.recipe for score in DECLARED.scores)
    of_tones = [recipe for recipe in recipes if recipe != "a_coat_instances"]
    voices = load_recipe("a_coat").presets["mini"].voices
    tones = open_data("mini", recipes=of_tones, voices=voices[:: len(voices) // TONES["num_classes"]], **TONES)
    words = open_data(sounds / "words", recipes=["a_coat_instances"], **WORDS)
    material = draw_material(sounds)
    for place, listed in enumerate(MODELS, 1):
        began = time.monotonic()
        told = f"{place} of {len(MODELS)}: {listed.label}"
        if any(path.stem.partition("@")[0] == listed.label for path in (out / "representations").glob("*.json")):
            print(f"{told}, done before", flush=True)
            continue
        name = listed.name
        if listed.needs_weights:
            if listed.architecture not in weights:
                print(f"{told}, left out: it needs --weights {listed.architecture}=FOLDER", flush=True)
                continue
            folder = out / "weights" / listed.architecture
            with_short_window(Path(weights[listed.architecture]), folder)
            name = f"{name}={folder}"
        try:
            model = load_model(name, seed=listed.seed)
            has_layers = isinstance(model, LayeredEncoder) or hasattr(getattr(model, "made", None), "embed_layers")
            layers = load_layers(name, seed=listed.seed) if has_layers else [model]
            measure(layers, listed, tones, words, material, out)
        except (AudioCompositionalityError, ImportError) as error:
            print(f"{told}, left out: {error}", flush=True)
            continue
        print(f"{told}, {len(layers)} representations, {(time.monotonic() - began) / 60:.1f} min", flush=True)


# ----- what predicts

FEWEST_MODELS = 8
"""With fewer models, a bootstrap over models has too few different resamples for an interval."""


@dataclass(frozen=True)
class Correlation:
    """A rank correlation of a predictor with a task: the value and its interval; NaN where they are not defined."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Such as ``.45 [.12, .70]``."""
        if np.isnan(self.value):
            return "–"
        value, low, high = (number(one) for one in (self.value, self.low, self.high))
        return value if np.isnan(self.low) else f"{value} [{low}, {high}]"


@dataclass(frozen=True)
class Prediction:
    """The correlations of one predictor with the tasks.

    Attributes:
        title: title of the predictor.
        representations, models: number of each for which it is defined.
        plain, partial, second: by task, Spearman's rho, and the partial ones given `Declaration.control` and
            `Declaration.second_control`.
    """

    title: str
    representations: int
    models: int
    plain: Mapping[str, Correlation]
    partial: Mapping[str, Correlation]
    second: Mapping[str, Correlation]

    def tasks_above(self, which: str = "partial") -> int:
        """Return the number of tasks with an interval above 0."""
        return sum(one.low > 0 for one in getattr(self, which).values())

    @property
    def predicts(self) -> bool:
        """Whether it predicts by the rule of `DECLARED`."""
        return self.tasks_above("plain" if self.title == DECLARED.control else "partial") >= DECLARED.least_tasks


def rank_correlations(values: Floats) -> Floats:
    """Return Spearman's rho of all pairs of columns of [n, k] as [k, k]; NaN for a constant column."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.corrcoef(rankdata(values, axis=0), rowvar=False))


def partial_correlation(matrices: Floats, x: int, y: int, held: int) -> Floats:
    """Return the partial correlation of x and y given a third variable, from matrices of correlations [..., k, k]."""
    of_x, of_y = matrices[..., x, held], matrices[..., y, held]
    unexplained = (1 - of_x**2) * (1 - of_y**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        partial = (matrices[..., x, y] - of_x * of_y) / np.sqrt(unexplained)
    return np.where(unexplained > 1e-12, partial, np.nan)


def resampled_rows(models: Sequence[str] | NDArray[np.str_], resamples: int, seed: int = 0) -> list[NDArray[np.int64]]:
    """Return the rows of each resample: models drawn with replacement, each with all its rows."""
    names, numbers = np.unique(np.array(models), return_inverse=True)
    rows = [np.flatnonzero(numbers == number) for number in range(len(names))]
    draws = np.random.default_rng(seed).integers(len(names), size=(resamples, len(names)))
    return [np.concatenate([rows[number] for number in draw]) for draw in draws]


def predictions(found: Sequence[Mapping[str, Any]], unit: str = "model") -> list[Prediction]:
    """Return the correlations of each predictor with the tasks.

    Args:
        found: the contents of the files of representations.
        unit: what the bootstrap resamples, `model` or `architecture`.
    """
    titles = [*(score.title for score in DECLARED.scores), *DECLARED.others]
    rows = [
        [*map(one["scores"].get, titles), one["tasks"]["single"], *map(one["tasks"].get, DECLARED.tasks)]
        for one in found
    ]
    values, units = np.array(rows, dtype=np.float64), np.array([one[unit] for one in found])
    helds, ends = (titles.index(DECLARED.control), len(titles)), 50 * (1 + DECLARED.confidence * np.array([-1, 1]))
    matrices: dict[bytes, Floats] = {}
    every = []
    for x, title in enumerate(titles):
        # Few scores lack values; the others share the resamples.
        is_defined = np.isfinite(values[:, x])
        some, key = values[is_defined], is_defined.tobytes()
        if key not in matrices:
            drawn = resampled_rows(units[is_defined], DECLARED.resamples)
            matrices[key] = np.stack([rank_correlations(some), *(rank_correlations(some[draw]) for draw in drawn)])
        models = {one["model"] for one, there in zip(found, is_defined, strict=True) if there}
        kinds: list[dict[str, Correlation]] = [{}, {}, {}]
        for y, task in enumerate(DECLARED.tasks, len(titles) + 1):
            for kind, held in zip(kinds, (None, *helds), strict=True):
                both = matrices[key][:, x, y] if held is None else partial_correlation(matrices[key], x, y, held)
                has_interval = np.isfinite(both[0]) and len(models) >= FEWEST_MODELS
                low, high = np.nanpercentile(both[1:], ends) if has_interval else (np.nan, np.nan)
                kind[task] = Correlation(float(both[0]), float(low), float(high))
        every.append(Prediction(title, len(some), len(models), *kinds))
    return every


def table_of(by_model: Sequence[Prediction], *others: Sequence[Prediction]) -> Table:
    """Return a row per predictor: in each task rho and the partial rho with its interval, then the number of tasks with
    an interval above 0: as declared, with other resamples or representations, and given the second control."""
    rows = []
    for one, *rest in zip(by_model, *others, strict=True):
        kind = "plain" if one.title == DECLARED.control else "partial"
        shown = getattr(one, kind)
        cells = [f"{number(one.plain[task].value)}; {shown[task]}" for task in DECLARED.tasks]
        counts = [str(some.tasks_above(kind)) for some in (one, *rest)] + [str(one.tasks_above("second"))]
        sizes, verdict = f"{one.representations}, {one.models}", "yes" if one.predicts else "no"
        rows.append([one.title, sizes, *cells, ", ".join(counts), verdict])
    headings = ("predictor", "n, models", *DECLARED.tasks, "tasks above 0", "predicts")
    return Table("Rank correlations", tuple(Column(name, numeric=False) for name in headings), rows_of(rows))


def figure_of(found: Sequence[Prediction]) -> Figure:
    """Return the predictors by the tasks: partial rho with its interval, filled if that is above 0, and plain rho."""
    with figure_style():
        figure = Figure(figsize=(7.5, 5.0), layout="constrained")
        panels = figure.subplots(1, len(DECLARED.tasks), sharey=True)
        for panel, task in zip(panels, DECLARED.tasks, strict=True):
            panel.axvline(0, color="#8a929c", linewidth=0.8)
            for y, one in enumerate(found):
                shown = one.plain[task] if one.title == DECLARED.control else one.partial[task]
                colour = "#2a788e" if shown.low > 0 else "#8a929c"
                panel.plot([shown.low, shown.high], [y, y], color=colour, linewidth=2)
                panel.plot(shown.value, y, "o", color=colour, markersize=5)
                panel.plot(one.plain[task].value, y, "|", color="#3c444e", markersize=9)
            panel.set(title=task, xlim=(-1, 1), xticks=(-1, 0, 1))
            panel.grid(visible=False)
        titles = [f"{one.title} (plain)" if one.title == DECLARED.control else one.title for one in found]
        panels[0].set_yticks(range(len(found)), titles, fontsize=9)
        panels[0].invert_yaxis()
        figure.supxlabel(
            "Spearman's rho: given recognition of single words (dot, 95 % interval), and plain (line)", fontsize=9
        )
    return figure


def main(typed: Sequence[str] | None = None) -> None:
    """Measure what is missing, then print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.downstream", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/downstream"), help="a folder for sounds and results")
    parser.add_argument("--weights", nargs="+", default=[], metavar="NAME=FOLDER", help="copies of Whisper")
    parser.add_argument("--tables", action="store_true", help="measure nothing; tables of what is in the folder")
    parser.add_argument("--figure", type=Path, metavar="FILE.svg", help="draw the correlations")
    options = parser.parse_args(typed)
    if not options.tables:
        measure_all(options.out, dict(pair.split("=", 1) for pair in options.weights))
    found = [json.loads(path.read_text("utf-8")) for path in sorted(options.out.glob("representations/*.json"))]
    if len({one["model"] for one in found}) < 3:
        parser.exit(1, f"error: {options.out} has {len(found)} representations; correlations need at least 3 models\n")
    by_model = predictions(found)
    networks = [one for one in found if one["architecture"] not in PLAIN]
    print(to_markdown(table_of(by_model, predictions(found, "architecture"), predictions(networks))))
    hours = sum(one["seconds"] for one in found) / 3600
    units = [len({one[unit] for one in found}) for unit in ("model", "architecture")]
    print(f"{len(found)} representations of {units[0]} models, {units[1]} architectures; {hours:.2f} hours of a core")
    if options.figure is not None:
        write_whole(options.figure, figure_svg(figure_of(by_model)))


if __name__ == "__main__":
    main()
