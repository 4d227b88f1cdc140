"""Run the real X-ARES with our adapter: our encoders through its checker and a whole task, one of its encoders as ours.

X-ARES asks for torchaudio, whose builds on PyPI need CUDA; without their libraries what is used of them runs in plain
torch:

    pip install -c constraints.txt .
    pip install --no-deps xares==0.1.3 pytorch-ignite==0.5.5 webdataset==1.0.2 torchmetrics==1.9.0 torchaudio==2.11.0 \\
        lightning-utilities loguru jiwer rapidfuzz braceexpand
    rm -f "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"/torchaudio/lib/*.so
    python tests/references/xares_suite.py

Exits with 1 if anything is not as it should be. Files are read by soundfile here, where torchaudio needs FFmpeg.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
from tiny_whisper import save_tiny_whisper

from audio_compositionality.encoders.loading.registry import load_model

OURS = """
from audio_compositionality.encoders.adapters import xares


class {name}(xares.XaresEncoder):
    model_name = {id!r}
"""

THEIRS = """
import torch


class BandsEncoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.sampling_rate, self.output_dim, self.hop_size_in_ms = 16_000, 16, 40

    def forward(self, audio):
        spectrum = torch.fft.rfft(audio.unfold(-1, 640, 640)).abs()[..., :320]
        return spectrum.unflatten(-1, (16, 20)).mean(-1).add(1e-6).log()
"""

FREQUENCIES = (180, 700, 1_400)
RATE = 22_050


def read_by_soundfile() -> None:
    torchaudio = importlib.import_module("torchaudio")

    def load(path: str) -> tuple[torch.Tensor, int]:
        audio, rate = soundfile.read(path, dtype="float32", always_2d=True)
        return torch.from_numpy(audio.T.copy()), rate

    torchaudio.load = load


def write_data(folder: Path) -> None:
    """A data set of X-ARES: three classes of noisy tones, a tar a split, with a .wav and a .json a clip."""
    folder.mkdir(parents=True)
    generator = np.random.default_rng(0)
    time = np.arange(RATE) / RATE
    for split, count in (("train", 24), ("valid", 9), ("test", 12)):
        with tarfile.open(folder / f"{split}-000.tar", "w") as tar:
            for clip in range(count):
                label = clip % len(FREQUENCIES)
                frequency = FREQUENCIES[label] * generator.uniform(0.95, 1.05)
                audio = 0.3 * np.sin(2 * np.pi * frequency * time) + generator.normal(0, 0.02, len(time))
                wav = io.BytesIO()
                soundfile.write(wav, audio, RATE, format="WAV")
                for suffix, content in (("wav", wav.getvalue()), ("json", json.dumps({"label": label}).encode())):
                    member = tarfile.TarInfo(f"{split}{clip:03d}.{suffix}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
    (folder / ".audio_tar_ready").touch()


def run_task(encoder: Any, root: Path) -> tuple[float, float]:
    """MLP and kNN accuracy of an encoder on a task, by X-ARES itself."""
    task = importlib.import_module("xares.task")
    config = task.TaskConfig(
        name="tones",
        env_root=root,
        encoder=encoder,
        label_processor=lambda row: row["label"],
        output_dim=len(FREQUENCIES),
        num_encoder_workers=0,
        torch_num_threads=1,
        epochs=30,
        learning_rate=1e-2,
        private=True,
    )
    task = task.XaresTask(config)
    task.make_encoded_tar()
    return task.run_mlp()[0], task.run_knn()[0]


def ours_in_theirs(folder: Path) -> None:
    checker = importlib.import_module("xares.audio_encoder_checker")
    utils = importlib.import_module("xares.utils")
    write_data(folder / "tones")
    encoders = []
    for name, id in (
        ("LogMelEncoder", "log-mel-statistics"),
        ("WhisperEncoder", save_tiny_whisper(str(folder / "whisper"), 5)),
    ):
        (folder / f"our_{name.lower()}.py").write_text(OURS.format(name=name, id=id))
        # As its command line does: the file must hold one name that ends in "Encoder".
        encoder = utils.attr_from_py_path(f"our_{name.lower()}.py", endswith="Encoder")()
        assert checker.check_audio_encoder(encoder), name
        encoders.append(encoder)
    mlp, knn = run_task(encoders[0], folder)
    assert mlp == knn == 1.0, f"MLP {mlp}, kNN {knn}, where three tones should be told apart"


def theirs_in_ours(folder: Path) -> None:
    (folder / "bands_encoder.py").write_text(THEIRS)
    checker = importlib.import_module("xares.audio_encoder_checker")
    utils = importlib.import_module("xares.utils")
    trainer = importlib.import_module("xares.trainer")
    theirs = utils.attr_from_py_path("bands_encoder.py", endswith="Encoder")()
    assert checker.check_audio_encoder(theirs)
    clips = np.random.default_rng(0).normal(0, 0.1, (3, 16_000)).astype(np.float32)
    frames = theirs(torch.from_numpy(clips)).transpose(1, 2)
    # What X-ARES trains a clip's label on.
    pooled = trainer.masked_mean(frames, torch.full((3,), frames.shape[-1])).numpy()
    ours = load_model(f"xares:{folder / 'bands_encoder.py'}:BandsEncoder", device="cpu")
    np.testing.assert_allclose(ours.embed(clips, 16_000), pooled, rtol=1e-5, atol=1e-5)


def main() -> None:
    read_by_soundfile()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        sys.path.insert(0, name)
        ours_in_theirs(Path(name))
        theirs_in_ours(Path(name))
        os.chdir("/")
    print("X-ARES 0.1.3: our encoders pass its checker and run a task of its own; its encoder runs as ours")


if __name__ == "__main__":
    main()
