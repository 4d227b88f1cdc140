"""What users do twice, in small: a bit that has changed in between in a file is never read as other data.

Each scene writes into a folder, and reads from it; what it gives is everything that a user would take from it. Scores,
submissions and trainings have tests of their own.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from audio_compositionality import metrics
from audio_compositionality.dataset_builder import build
from audio_compositionality.dataset_builder.build import BEGUN_NAME, build_dataset
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.texts.rewriting import CachedAnswers
from audio_compositionality.encoders.base import ModelError
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.push_scripts.dataset import check_built_folder
from audio_compositionality.support.errors import AudioCompositionalityError

from ..dataset_builder.recipes.toy import Toys, registered
from ..dataset_builder.texts.scripted import Scripted
from ..evaluator.run.toys import Captions, ManyTexts, Orders, Questions, Tells, TextEncoder

QUIET = RunOptions(progress=False, device="cpu")


class StoppedError(Exception):
    """The first time was stopped."""


def digest(*values: Any) -> str:
    """SHA-256 of the texts of values, and of the bytes of arrays."""
    state = hashlib.sha256()
    for value in values:
        state.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
    return state.hexdigest()


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
        return digest(check_built_folder(folder / "built"))


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


def _texts(folder: Path) -> str:
    task = Captions()
    (result,) = evaluate_models([TextEncoder()], ManyTexts(70), [task], QUIET.changed(cache=folder / "store"))
    return digest(task.seen.texts, task.seen.clips, result.measures)


def _answers(folder: Path, model: Tells) -> str:
    task = Orders()
    evaluate_models([model], Questions(asked=40), [task], QUIET.changed(cache=folder / "store"))
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
    CachedAnswers(Scripted(lambda prompt: f"caption of {prompt}")).generate([f"prompt {n}" for n in range(9)])


def written_again(folder: Path) -> str:
    model = CachedAnswers(Scripted(lambda prompt: f"caption of {prompt}"))
    return digest(model.generate([f"prompt {n}" for n in range(9)]))


def install_metrics(folder: Path) -> None:
    metrics._install(metrics.metric_file("a_coat"), folder / "modules")


def installed_metrics(folder: Path) -> str:
    path = metrics._install(metrics.metric_file("a_coat"), folder / "modules")
    return digest(path.read_bytes())


SCENES: dict[str, tuple[Callable[[Path], Any], Callable[[Path], str]]] = {
    "open built data": (build_toys, open_toys),
    "check built data for a push": (build_toys, check_toys),
    "build again": (build_toys, build_toys_again),
    "build on": (build_toys_and_stop, build_toys_again),
    "texts from the store": (_texts, _texts),
    "answers from the store": (ask, ask_on),
    "answers of a run that was stopped": (ask_and_stop, ask_on),
    "captions that a model wrote": (written, written_again),
    "modules of metrics": (install_metrics, installed_metrics),
}
"""What is done the first time, and the second time, which gives a digest of what a user takes from it."""


def flip(path: Path, rng: np.random.Generator) -> str:
    """Change one bit of a file, any, or one of the exponent of a number; says which."""
    content = bytearray(path.read_bytes())
    if path.suffix == ".safetensors" and rng.random() < 0.5:
        start = 8 + int.from_bytes(content[:8], "little")
        place, bit = start + 4 * int(rng.integers((len(content) - start) // 4)) + 3, 6
    else:
        place, bit = int(rng.integers(len(content))), int(rng.integers(8))
    content[place] ^= 1 << bit
    path.write_bytes(content)
    return f"bit {bit} of byte {place:,} of {len(content):,}"


@pytest.mark.parametrize("name", SCENES)
def test_no_changed_bit_is_read_as_other_data(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error that names the file, or its folder; or the same result, with a line where it was made anew."""
    write, read = SCENES[name]
    # Always at the same place: some files say where others lie.
    folder, kept = tmp_path / "folder", tmp_path / "kept"
    folder.mkdir()
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(folder / "cache"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write(folder)
        shutil.copytree(folder, kept)
        expected = read(folder)
    kinds: defaultdict[str, list[Path]] = defaultdict(list)
    for path in sorted(path for path in kept.rglob("*") if path.is_file() and path.stat().st_size):
        relative = path.relative_to(kept)
        kinds[re.sub(r"[0-9a-f]{12,}|\d+", "#", relative.as_posix())].append(relative)
    assert kinds
    rng = np.random.default_rng(0)
    for files in [*kinds.values()] * 2:
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)
        path = folder / files[int(rng.integers(len(files)))]
        where = f"{path}, {flip(path, rng)}"
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            try:
                given = read(folder)
            except AudioCompositionalityError as error:
                given, said = expected, str(error)
            else:
                said = path.name
        assert given == expected, where
        assert path.name in said or path.parent.name in said, (where, said)
