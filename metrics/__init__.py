"""The metrics, a folder each: ``NAME/NAME.py``, which `evaluate` loads, its card and its requirements.

A metric knows arrays, and nothing of models, data sets or tasks. Its module imports nothing of this project, because it
is also published alone: with ``app.py``, the one page of all metrics, it makes a Space. Importing this package imports
no metric, and changes nothing on disk.
"""

import hashlib
import os
import sys
import time
from pathlib import Path

_FOLDER = Path(__file__).parent


def list_metrics() -> list[str]:
    """Return the names of the metrics in order: those of the folders that hold a module of their own name."""
    return sorted(folder.name for folder in _FOLDER.iterdir() if (folder / f"{folder.name}.py").is_file())


def metric_file(name: str) -> Path:
    """Return the path of a metric's module. Raises LookupError when there is no such metric."""
    if name not in list_metrics():
        raise LookupError(f"There is no metric {name!r}; there are {', '.join(list_metrics())}.")
    return _FOLDER / name / f"{name}.py"


def register() -> list[Path]:
    """Make `evaluate.load` work with the bare name of each metric, such as "a_coat", from anywhere and offline.

    `evaluate` looks for a bare name first below the working directory, then on the Hub as
    `evaluate-metric/<name>`, then in its module cache, where it takes the file that was modified last.
    This copies the modules into that cache (`HF_MODULES_CACHE`, else `modules` below `HF_HOME`) and
    dates them after any other version there, so that an upgrade takes effect. Running it again is harmless and
    takes a few milliseconds; `evaluate` is not imported.

    Returns the paths of the cached modules, in the order of `list_metrics`. Raises OSError when the cache
    cannot be written.
    """
    root = _modules_cache() / "evaluate_modules"
    return [_install(metric_file(name), root) for name in list_metrics()]


def _modules_cache() -> Path:
    """The folder that `evaluate.config` calls HF_MODULES_CACHE, by the same rules where that is not imported yet."""
    config = sys.modules.get("evaluate.config")
    if config is not None:
        return Path(config.HF_MODULES_CACHE)
    home = os.getenv("HF_HOME", os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "huggingface"))
    return Path(os.getenv("HF_MODULES_CACHE", os.path.join(os.path.expanduser(home), "modules")))


def _install(source: Path, root: Path) -> Path:
    """Copy one metric module into the cache at `root` and make it the newest version there."""
    code = source.read_bytes()
    # The names of the folders, 64 hexadecimal digits included, are what `evaluate` 0.4.6 expects.
    versions = root / "metrics" / f"evaluate-metric--{source.stem}"
    target = versions / hashlib.sha256(code).hexdigest() / source.name
    if not target.is_file() or target.read_bytes() != code:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Written aside and moved, so that a process loading the metric never sees half a file.
        partial = target.with_name(f"{source.stem}.{os.getpid()}.partial")
        partial.write_bytes(code)
        partial.replace(target)
    for package in (root.parent, root, root / "metrics", versions, target.parent):
        if not (package / "__init__.py").exists():
            (package / "__init__.py").touch()
    dates = [path.stat().st_mtime for path in versions.glob(f"*/{source.name}") if path != target]
    if dates and target.stat().st_mtime <= max(dates):
        newest = max(time.time(), max(dates) + 1)
        os.utime(target, (newest, newest))
    return target
