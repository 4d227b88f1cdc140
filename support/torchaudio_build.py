"""A build of torchaudio that does not fit the installed torch is left out, and a line says how to mend it.

Such a build cannot be imported, and takes evaluate and transformers with it, which import torchaudio wherever it is
installed. PyPI has builds for CUDA alone.
"""

from __future__ import annotations

import re
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

INDEX = "https://download.pytorch.org/whl"
"""Where PyTorch's builds are, each kind in a folder: ``cpu``, ``cu130``."""


def leave_out_unfit_torchaudio() -> None:
    """Make this process see no torchaudio where its build does not fit, and warn. Neither package is imported."""
    if "torchaudio" in sys.modules:
        return
    torchaudio, torch = (_folder(name) for name in ("torchaudio", "torch"))
    fault = None if torchaudio is None or torch is None else misfit(torchaudio, torch)
    if fault is not None:
        # `find_spec` then finds nothing, and an import raises an ImportError.
        sys.modules["torchaudio"] = None  # type: ignore[assignment]
        # No line of code is printed under the warning, so that it stays one line.
        warnings.warn_explicit(fault, UserWarning, "torchaudio", 0)


def misfit(torchaudio: Path, torch: Path) -> str | None:
    """The reason why a torchaudio cannot be loaded beside a torch, and the remedy; None where it can.

    Libraries for CUDA need the version of CUDA that torch has; those without a stable interface (before 2.9) need the
    version of torch that they were built for.

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
        f"torchaudio {version} {fault}, and torch is {beside}: torchaudio is not used. Remedy: "
        f"pip install --force-reinstall --no-deps torchaudio --index-url {INDEX}/{kind}"
    )


def _folder(package: str) -> Path | None:
    spec = find_spec(package)
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def _stated(package: Path, name: str) -> str | None:
    """A value in a package's version.py; None where it has none."""
    try:
        text = package.joinpath("version.py").read_text("utf-8")
    except OSError:
        return None
    stated = re.search(rf"^{name}\b[^=\n]*= *['\"](.+?)['\"]", text, re.MULTILINE)
    return stated[1] if stated else None
