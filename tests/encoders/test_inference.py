"""Where a model runs: the device, and torch, which is imported only where that may be a GPU."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from audio_compositionality.encoders import inference
from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.inference import device_name, resolve_device

CPU = "__version__ = '2.9.0+cpu'\ncuda: Optional[str] = None\nhip: Optional[str] = None\n"


@pytest.fixture
def without_torch(monkeypatch, tmp_path):
    """As in a process that has not imported torch; a test writes the file of versions of its build."""
    import torch

    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(inference, "find_spec", lambda name: SimpleNamespace(origin=str(tmp_path / "__init__.py")))
    monkeypatch.setattr(inference, "resolve_device", lambda device: torch.device("cuda:3"))
    return tmp_path / "version.py"


def test_the_name_is_that_of_the_device():
    assert device_name("cpu") == "cpu"
    assert device_name(None) == str(resolve_device(None))
    with pytest.raises(ModelError, match="cannot use device 'nowhere'"):
        device_name("nowhere")


def test_a_build_without_cuda_needs_no_torch_to_be_on_the_cpu(without_torch):
    without_torch.write_text(CPU)
    assert device_name(None) == "cpu"
    assert device_name("cuda") == "cuda:3"


@pytest.mark.parametrize(
    "versions",
    [
        CPU.replace("cuda: Optional[str] = None", "cuda: Optional[str] = '12.8'"),
        CPU.replace("hip: Optional[str] = None", "hip: Optional[str] = '6.4'"),
        "cuda = None\n",
        "",
        None,
    ],
)
def test_any_other_build_is_asked(without_torch, versions):
    if versions is not None:
        without_torch.write_text(versions)
    assert device_name(None) == "cuda:3"
    assert device_name("cpu") == "cpu"


def test_the_file_of_versions_of_the_installed_build_says_what_it_was_built_with():
    import torch

    spec = find_spec("torch")
    assert spec is not None
    assert Path(str(spec.origin)).with_name("version.py").is_file()
    assert inference._is_without_cuda() == (torch.version.cuda is None and torch.version.hip is None)
