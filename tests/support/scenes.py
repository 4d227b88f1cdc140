"""What users do twice, in small: the second time, what was written the first time is read back.

Each scene writes into a folder, and reads from it; what it gives is everything that a user would take from it, so that
two readings of the same files are equal, and one of other numbers is not. The cache is in the folder, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from audio_compositionality import metrics
from audio_compositionality.dataset_builder import build
from audio_compositionality.dataset_builder.build import BEGUN_NAME, build_dataset
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recorded import open_recordings
from audio_compositionality.dataset_builder.rendered import RenderedData, rendered_preset
from audio_compositionality.dataset_builder.sounds.tones import default_voices
from audio_compositionality.dataset_builder.texts.rewriting import KeptAnswers
from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.compare.loading import load_results
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.submissions.making import make_submission
from audio_compositionality.evaluator.submissions.verification import verify_paths
from audio_compositionality.push_scripts.dataset import check_built_folder
from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.tasks.registry import load_task
from audio_compositionality.training.data import TrainingData
from audio_compositionality.training.features import prepare_features
from audio_compositionality.training.loop import BEST, Trainer
from audio_compositionality.training.model import open_towers
from audio_compositionality.training.run_folder import read_record
from audio_compositionality.training.running import finish
from studies.sounds.maker import make_folder

from ..dataset_builder.recipes.toy import Toys, registered
from ..dataset_builder.texts.scripted import Scripted
from ..evaluator.run.toys import BandEnergies, Captions, ManyTexts, Orders, Questions, Tells, TextEncoder
from ..studies.test_sounds_folder import Beeps
from ..training.made_data import MadeConfiguration
from ..training.small_training import small_data, small_settings

QUIET = RunOptions(progress=False, device="cpu")


@dataclass(frozen=True)
class Scene:
    """Something that is done twice.

    Attributes:
        name: what is done.
        write: the first time; scenes with the same one share what it writes.
        read: the second time; gives a digest of what a user takes from it.
    """

    name: str
    write: Callable[[Path], None]
    read: Callable[[Path], str]


def digest(*values: Any) -> str:
    """SHA-256 of the texts of values, and of the bytes of arrays."""
    state = hashlib.sha256()
    for value in values:
        state.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
    return state.hexdigest()


# ----- built data


def build_toys(folder: Path) -> None:
    with registered(Toys()):
        build_dataset("tiny", folder / "built", progress=False, workers=1)


def open_toys(folder: Path) -> str:
    with registered(Toys()):
        data = open_data(folder / "built").configuration("toys")
        clips = [(clip.id, clip.sample_rate, clip.waveform.tobytes()) for clip in data.clips()]
        return digest(data.fingerprint, list(data.rows), clips)


def check_toys(folder: Path) -> str:
    """As a push does."""
    with registered(Toys()):
        return digest(check_built_folder(folder / "built", progress=False))


def build_toys_and_stop(folder: Path) -> None:
    def stop(*arguments: Any) -> Any:
        if (folder / "built" / "toys" / BEGUN_NAME).exists():
            raise StoppedError
        return write_shard(*arguments)

    write_shard = build._write_shard
    try:
        with patch.object(build, "_write_shard", stop):
            build_toys(folder)
    except StoppedError:
        return
    raise AssertionError("it was to be stopped")


def build_toys_again(folder: Path) -> str:
    build_toys(folder)
    return open_toys(folder)


# ----- scores and submissions


@cache
def quadruples() -> RenderedData:
    changes = {"num_classes": 3, "voices": default_voices()[:3], "quadruple_candidates": 500, "quadruples": 6}
    return rendered_preset("mini", recipes=["a_coat"], sample_rate=8_000, **changes)


class Toy(BandEnergies):
    """Its id is one that can be submitted."""

    def __init__(self) -> None:
        super().__init__(id="org/toy", revision="1", sample_rate=8_000)


def evaluate(folder: Path) -> None:
    options = QUIET.changed(out=folder / "results", store=folder / "store")
    evaluate_models([Toy()], quadruples(), [load_task("a_coat")], options)


def evaluate_again(folder: Path) -> str:
    """The scores of what is in the store; what is there twice is not computed."""
    options = QUIET.changed(out=folder / "again", store=folder / "store")
    (result,) = evaluate_models([Toy()], quadruples(), [load_task("a_coat")], options)
    return digest(result.measures, result.intervals, result.samples_sha256)


def pass_over(folder: Path) -> str:
    """The same command: a result that is there is read."""
    options = QUIET.changed(out=folder / "results", store=folder / "store")
    (result,) = evaluate_models([Toy()], quadruples(), [load_task("a_coat")], options)
    return digest(result.dumps())


def compare(folder: Path) -> str:
    loaded = load_results([folder / "results"])
    return digest([(one.result.dumps(), one.samples.dumps()) for one in loaded])


def verified(outcomes: Iterable[Any]) -> str:
    said = []
    for outcome in outcomes:
        if outcome.table is None:
            raise AudioCompositionalityError(outcome.error)
        said.append((outcome.verified, outcome.table.rows))
    return digest(said)


def verify_here(folder: Path) -> str:
    return verified(verify_paths([folder / "results"], data=built_quadruples(), store=folder / "store", device="cpu"))


def evaluate_and_submit(folder: Path) -> None:
    evaluate(folder)
    (path,) = (folder / "results").rglob("a_coat.json")
    made = make_submission(path, quadruples(), store=folder / "store", device="cpu", progress=False)
    place = folder / "repository" / made.folder
    place.mkdir(parents=True)
    for name, content in made.files.items():
        (place / name).write_bytes(content)


def submit(folder: Path) -> str:
    (path,) = (folder / "results").rglob("a_coat.json")
    made = make_submission(path, quadruples(), store=folder / "store", device="cpu", progress=False)
    return digest(made.folder, made.files)


def verify_submission(folder: Path) -> str:
    return verified(verify_paths([folder / "repository"], data=built_quadruples(), device="cpu"))


_places: dict[str, Path] = {}


def built_quadruples() -> Path:
    """The data as a folder, beside the scenes: they are another's scene."""
    folder = _places["beside"] / "quadruples"
    if not (folder / "manifest.json").exists():
        build_dataset(quadruples(), folder, progress=False, workers=1)
    return folder


# ----- texts and answers


def _texts(folder: Path) -> str:
    task = Captions()
    (result,) = evaluate_models([TextEncoder()], ManyTexts(70), [task], QUIET.changed(store=folder / "store"))
    return digest(task.seen.texts, task.seen.clips, result.measures)


def embed_texts(folder: Path) -> None:
    _texts(folder)


def _answers(folder: Path, model: Tells) -> str:
    task = Orders()
    evaluate_models([model], Questions(asked=40), [task], QUIET.changed(store=folder / "store"))
    return digest(task.answers)


def ask(folder: Path) -> None:
    _answers(folder, Tells())


def ask_and_stop(folder: Path) -> None:
    try:
        _answers(folder, Tells(breaks_at=23))
    except ModelError:
        return
    raise AssertionError("it was to be stopped")


def ask_on(folder: Path) -> str:
    return _answers(folder, Tells())


def written(folder: Path) -> None:
    KeptAnswers(Scripted(lambda prompt: f"caption of {prompt}")).generate([f"prompt {n}" for n in range(9)])


def written_again(folder: Path) -> str:
    model = KeptAnswers(Scripted(lambda prompt: f"caption of {prompt}"))
    return digest(model.generate([f"prompt {n}" for n in range(9)]))


# ----- sounds and modules


def make_sounds(folder: Path) -> None:
    make_folder(Beeps(times=[]), folder / "beeps", progress=False)


def open_sounds(folder: Path) -> str:
    make_sounds(folder)
    recordings = open_recordings(folder / "beeps", progress=False)
    return digest(recordings.fingerprint, [(entry.label, entry.condition) for entry in recordings.entries])


def install_metrics(folder: Path) -> None:
    metrics._install(metrics.metric_file("a_coat"), folder / "modules")


def installed_metrics(folder: Path) -> str:
    path = metrics._install(metrics.metric_file("a_coat"), folder / "modules")
    return digest(path.read_bytes())


# ----- trainings


class FrontEnd:
    """Features of noise, another for each clip."""

    sample_rate, shape, settings = 8_000, (1, 251, 64), {"front_end": "made"}

    def __call__(self, waveform):
        seed = int.from_bytes(hashlib.sha256(waveform).digest()[:8], "little")
        return np.random.default_rng(seed).normal(-40, 15, self.shape).astype(np.float32)


class StoppedError(Exception):
    """A training was stopped."""


def _trainer(folder: Path, on_step: Callable[[int], None] | None = None) -> Trainer:
    data = small_data()
    made = MadeConfiguration(12)
    configuration: Any = SimpleNamespace(
        source="small", recipe="small", fingerprint="0" * 64, clip_ids=made.clip_ids, clips=made.clips
    )
    data = TrainingData(configuration, "train", data.rows)
    settings = small_settings(stages="contrastive:2,hard:4", neighbours=2, evaluate_every=3, checkpoint_every=1)
    return Trainer(
        open_towers("tiny", seed=0),
        data,
        prepare_features(data, FrontEnd(), workers=1),
        settings,
        folder / "run",
        validate=lambda model, step: {"score": -abs(step - 3)},
        on_step=on_step,
    )


def train_and_stop(folder: Path) -> None:
    def on_step(number: int) -> None:
        if number == 5:
            raise StoppedError

    try:
        _trainer(folder, on_step).run()
    except StoppedError:
        return
    raise AssertionError("it was to be stopped")


def train_on(folder: Path) -> str:
    """The model and all that the record says of it, but for times and versions."""
    trainer = _trainer(folder)
    trainer.run()
    finish(trainer)
    record = read_record(folder / "run") or {}
    state = [tensor.numpy() for tensor in trainer.towers.state_dict().values()]
    return digest(*state, [record[name] for name in ("settings", "stages", "best", "evaluations", "losses", "steps")])


def train(folder: Path) -> None:
    train_on(folder)


def _opened(folder: Path) -> str:
    model: Any = load_model(str(folder), device="cpu")
    sound = np.random.default_rng(0).normal(0, 0.1, (1, 32_000)).astype(np.float32)
    return digest(model.embed(sound, 16_000), model.embed_text(["a bell then an organ"]), model.card.trained_on)


def open_model(folder: Path) -> str:
    return _opened(folder / "run")


def open_best(folder: Path) -> str:
    return _opened(folder / "run" / BEST)


def begin_with_model(folder: Path) -> str:
    towers = open_towers(str(folder / "run"))
    return digest(*[tensor.numpy() for tensor in towers.state_dict().values()])


def read_run(folder: Path) -> str:
    """As `train` of a folder that is finished does, and a push."""
    return digest(read_record(folder / "run"))


SCENES = (
    Scene("open built data", build_toys, open_toys),
    Scene("check built data for a push", build_toys, check_toys),
    Scene("build again", build_toys, build_toys_again),
    Scene("build on", build_toys_and_stop, build_toys_again),
    Scene("evaluate from the store", evaluate, evaluate_again),
    Scene("evaluate again", evaluate, pass_over),
    Scene("compare results", evaluate, compare),
    Scene("verify results", evaluate, verify_here),
    Scene("submit a result", evaluate, submit),
    Scene("verify a submission", evaluate_and_submit, verify_submission),
    Scene("texts from the store", embed_texts, _texts),
    Scene("answers from the store", ask, ask_on),
    Scene("answers of a run that was stopped", ask_and_stop, ask_on),
    Scene("captions that a model wrote", written, written_again),
    Scene("sounds that were made", make_sounds, open_sounds),
    Scene("modules of metrics", install_metrics, installed_metrics),
    Scene("go on with a training", train_and_stop, train_on),
    Scene("open a trained model", train, open_model),
    Scene("open the best model", train, open_best),
    Scene("begin with a trained model", train, begin_with_model),
    Scene("read a finished training", train, read_run),
)
