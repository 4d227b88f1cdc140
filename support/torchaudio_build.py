"""Hide a torchaudio that does not fit the installed torch, with a warning that says how to fix it.

Such builds cannot be imported, and neither can evaluate and transformers, which import torchaudio if it is installed.
PyPI has builds for CUDA only.
"""

from __future__ import annotations

import re
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

INDEX = "https://download.pytorch.org/whl"
"""Index of PyTorch's builds, with a folder for each kind: ``cpu``, ``cu130``."""


def leave_out_unfit_torchaudio() -> None:
    """Hide torchaudio from this process if its build does not fit torch, and warn; neither package is imported."""
    if "torchaudio" in sys.modules:
        return
    torchaudio, torch = (_folder(name) for name in ("torchaudio", "torch"))
    fault = None if torchaudio is None or torch is None else misfit(torchaudio, torch)
    if fault is not None:
        # `find_spec` then finds nothing, and an import raises an ImportError.
        sys.modules["torchaudio"] = None  # type: ignore[assignment]
        # Without a line of code, the warning stays on one line.
        warnings.warn_explicit(fault, UserWarning, "torchaudio", 0)


def misfit(torchaudio: Path, torch: Path) -> str | None:
    """Return why a torchaudio cannot be loaded with a torch, and the remedy; None if it can.

    Libraries for CUDA need torch's version of CUDA; libraries without a stable interface (before 2.9) need the version
    of torch that they were built for.

    Args:
        torchaudio, torch: the packages' folders.
    """
    libraries = [path.name for path in torchaudio.joinpath("lib").glob("*torchaudio*") if path.is_file()]
    version, beside = _stated(torchaudio, "__version__"), _stated(torch, "__version__")
    if not libraries or version is None or beside is None:
        return None
    cuda, stable = re.search(r"\+cu(\d+)(\d)$", version), any(".abi3." in name for name in libraries)
    if cuda and f"{cuda[1]}.{cuda[2]}" != _stated(torch, "cuda"):
        fault = f"needs CUDA {cuda[1]}.{cuda[2]}"
    elif not stable and version.split(".")[:2] != beside.split(".")[:2]:
        fault = f"needs torch {'.'.join(version.split('.')[:2])}"
    else:
        return None
    kind = beside.partition("+")[2] or "cpu"
    return (
        f"torchaudio {version} {fault}, but torch is {beside}: torchaudio is not used. To fix it: "
        f"pip install --force-reinstall --no-deps torchaudio --index-url {INDEX}/{kind}"
    )


def _folder(package: str) -> Path | None:
    spec = find_spec(package)
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def _stated(package: Path, name: str) -> str | None:
    """Return a value in a package's version.py; None if there is none."""
    try:
        text = package.joinpath("version.py").read_text("utf-8")
    except OSError:
        return None
    stated = re.search(rf"^{name}\b[^=\n]*= *['\"](.+?)['\"]", text, re.MULTILINE)
    return stated[1] if stated else None
