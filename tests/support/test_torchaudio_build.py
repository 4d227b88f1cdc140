"""A torchaudio whose build does not fit torch is left out, and said in a line with the command that mends it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from audio_compositionality.support.torchaudio_build import leave_out_unfit_torchaudio, misfit

CPU = "__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\n"
CUDA = "__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\n"


def package(folder: Path, version: str, *libraries: str) -> Path:
    folder.joinpath("lib").mkdir(parents=True)
    folder.joinpath("__init__.py").write_text("raise OSError('Could not load this library')\n")
    folder.joinpath("version.py").write_text(version)
    for name in libraries:
        folder.joinpath("lib", name).touch()
    return folder


@pytest.mark.parametrize(
    ("torchaudio", "library", "torch", "fault"),
    [
        ("2.11.0+cu130", "_torchaudio.abi3.so", CPU, "needs CUDA 13.0, but torch is 2.13.0+cpu"),
        ("2.11.0+cu126", "_torchaudio.abi3.so", CUDA, "needs CUDA 12.6, but torch is 2.13.0+cu130"),
        ("2.8.0+cu130", "_torchaudio.so", CUDA, "needs torch 2.8, but torch is 2.13.0+cu130"),
        ("2.8.0", "_torchaudio.so", CPU, "needs torch 2.8, but torch is 2.13.0+cpu"),
        ("2.11.0+cu130", "_torchaudio.abi3.so", CUDA, None),
        ("2.11.0+cpu", "_torchaudio.abi3.so", CPU, None),
        ("2.11.0", "libtorchaudio.abi3.so", CUDA, None),
        ("2.13.0", "_torchaudio.so", CPU, None),
    ],
)
def test_what_a_build_needs(torchaudio, library, torch, fault, tmp_path):
    packages = package(tmp_path / "torchaudio", f"__version__ = '{torchaudio}'\n", library), tmp_path / "torch"
    package(packages[1], torch)
    told = misfit(*packages)
    if fault is None:
        assert told is None
        return
    assert told is not None
    kind = torch.partition("+")[2].partition("'")[0]
    assert told.startswith(f"torchaudio {torchaudio} {fault}: torchaudio is not used. ")
    assert told.endswith(
        f" pip install --force-reinstall --no-deps torchaudio --index-url https://download.pytorch.org/whl/{kind}"
    )
    # Without its libraries it is plain Python, which fits every torch.
    packages[0].joinpath("lib", library).unlink()
    assert misfit(*packages) is None


def test_versions_that_are_not_stated_are_no_fault(tmp_path):
    torchaudio = package(tmp_path / "torchaudio", "", "_torchaudio.abi3.so")
    assert misfit(torchaudio, package(tmp_path / "torch", CPU)) is None
    assert misfit(tmp_path / "nowhere", tmp_path / "torch") is None


def test_one_that_is_imported_is_left_alone(monkeypatch):
    there = type(sys)("torchaudio")
    monkeypatch.setitem(sys.modules, "torchaudio", there)
    leave_out_unfit_torchaudio()
    assert sys.modules["torchaudio"] is there


@pytest.mark.slow
def test_a_clone_works_beside_a_build_that_does_not_fit_and_says_so_in_one_line(tmp_path):
    """In a process of its own, where both come from a folder before all others; transformers would import it."""
    package(tmp_path / "torchaudio", "__version__ = '2.11.0+cu999'\n", "_torchaudio.abi3.so")
    code = """if True:
        import audio_compositionality, evaluate, torch
        from audio_compositionality.encoders.front_ends.kaldi import FilterBank
        print(*FilterBank(40, "povey")(torch.zeros(1, 560)).shape)"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    finished = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert finished.stdout == "1 2 40\n"
    (line,) = finished.stderr.splitlines()
    assert "torchaudio 2.11.0+cu999 needs CUDA 99.9, but torch is " in line
    assert "torchaudio is not used. To fix it: pip install " in line
