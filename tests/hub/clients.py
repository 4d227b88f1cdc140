"""Pointing the real clients (`huggingface_hub`, `datasets`, `evaluate`) at a loopback Hub.

The clients read their settings from the environment when they are imported. So there are two ways:

- A fresh process with `client_environment`: nothing else is needed. This is what a user does, and what a whole
  script, a command line or something that is killed is tested with. Importing `evaluate` there takes seconds.
- The process of the tests, where other tests have imported the clients long before: `connect` sets the environment,
  runs the clients' modules of settings anew beside the imported ones, and copies what came out different, so that no
  list of names here can fall behind theirs. Then it forgets what they keep between calls: the pool of connections,
  file systems, modules that `evaluate` has imported. `monkeypatch` takes all of it back.

Some modules have copies of those settings: `_COPIES` lists them, and a test in `test_isolation.py` looks through
every loaded module of the clients for further ones.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import huggingface_hub
import pytest

from .guard import sitecustomize as guard

SETTINGS = ("huggingface_hub.constants", "datasets.config", "evaluate.config")
"""The modules that read the environment, each after those that it reads."""

_NO_CERTIFICATES = Path(__file__).parent
"""A folder without any."""

_COPIES = {
    "huggingface_hub.utils._cache_manager": {"HF_HUB_CACHE": "huggingface_hub.constants"},
    "huggingface_hub.utils._cache_assets": {"HF_ASSETS_CACHE": "huggingface_hub.constants"},
    "huggingface_hub.utils._git_credential": {"ENDPOINT": "huggingface_hub.constants"},
    "huggingface_hub.utils.tqdm": {"HF_HUB_DISABLE_PROGRESS_BARS": "huggingface_hub.constants"},
    "evaluate.inspect": {"HF_LIST_ENDPOINT": "evaluate.config"},
}
"""Module -> the settings that it imported by name, and where from."""


def client_environment(url: str, home: Path, token: str | None = None) -> dict[str, str]:
    """The environment in which the clients know this Hub alone."""
    return {
        "HF_ENDPOINT": url,
        "HF_HOME": str(home),
        **({"HF_TOKEN": token} if token else {}),
        # With Xet, uploads go past Python to a storage that nobody can imitate: large file storage instead.
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "HF_UPDATE_DOWNLOAD_COUNTS": "0",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }


def process_environment(url: str, home: Path, log: Path, token: str | None = None) -> dict[str, str]:
    """The environment of a fresh process that knows this Hub alone and reaches no other machine."""
    inherited = {name: value for name, value in os.environ.items() if not _is_setting(name)}
    paths = [str(Path(guard.__file__).parent), *filter(None, [inherited.get("PYTHONPATH")])]
    return {
        **inherited,
        **client_environment(url, home, token),
        "PYTHONPATH": os.pathsep.join(paths),
        guard.LOG: str(log),
    }


def connect(monkeypatch: pytest.MonkeyPatch, url: str, home: Path, token: str | None = None) -> None:
    """Make the clients of this process know this Hub alone, until `monkeypatch` takes it back."""
    for name in list(filter(_is_setting, os.environ)):
        monkeypatch.delenv(name)
    # A new client reads the certificates of this machine, 30 ms a time; here nobody encrypts, and none is trusted.
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(_NO_CERTIFICATES))
    for name, value in client_environment(url, home, token).items():
        monkeypatch.setenv(name, value)
    for name in SETTINGS:
        _adopt(monkeypatch, importlib.import_module(name), _run_anew(name))
    for name, copies in _COPIES.items():
        for copy, source in copies.items():
            monkeypatch.setattr(importlib.import_module(name), copy, getattr(importlib.import_module(source), copy))
    # The functions of `huggingface_hub` are the methods of this object.
    api = importlib.import_module("huggingface_hub.hf_api").api
    monkeypatch.setattr(api, "endpoint", url)
    monkeypatch.setattr(api, "_whoami_cache", {})
    # `evaluate` imports a metric by the name of its package in the cache, found where `sys.path` has it first.
    monkeypatch.setattr(sys, "path", [path for path in sys.path if not (Path(path) / "evaluate_modules").is_dir()])
    for name in _metric_modules():
        monkeypatch.delitem(sys.modules, name)
    forget()


def forget() -> None:
    """Drop what the clients keep of a Hub between calls: connections, file systems, modules of metrics."""
    huggingface_hub.close_session()
    huggingface_hub.HfFileSystem.clear_instance_cache()
    for name in _metric_modules():
        del sys.modules[name]


def _metric_modules() -> list[str]:
    return [name for name in sys.modules if name.split(".")[0] == "evaluate_modules"]


def _is_setting(name: str) -> bool:
    return name.startswith(("HF_", "HUGGING")) or name == "TRANSFORMERS_OFFLINE"


def _run_anew(name: str) -> ModuleType:
    """A module as an import would make it now, without putting it in the place of the one that is there."""
    specification = importlib.util.find_spec(name)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def _adopt(monkeypatch: pytest.MonkeyPatch, module: ModuleType, fresh: ModuleType) -> None:
    """Give a module the settings of its double."""
    for name, value in vars(fresh).items():
        if isinstance(value, (str, int, float, Path, frozenset, type(None))) and not name.startswith("__"):
            monkeypatch.setattr(module, name, value)
