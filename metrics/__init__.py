"""Metrics, one module each: `evaluate` loads ``NAME.py`` together with the sibling modules that it imports.

A metric works on arrays and is independent of models, data sets and tasks. Its module imports nothing of this project
but its siblings, because it is also published alone, as a Space with its siblings and its card. `evaluate` fetches the
siblings named in the metric's own module, each in a line ``from .SIBLING import …``, but not the siblings of siblings.
Importing this package imports no metric and changes nothing on disk.
"""

import contextlib
import logging
import os
import re
import sys
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent

_SIBLING = re.compile(rb"^from \.(\w+) import ", re.M)
_VERSION = re.compile(rb"^VERSION = (\d+)$", re.M)


@cache
def list_metrics() -> tuple[str, ...]:
    """Return the names of all metrics, sorted: the modules that define VERSION."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.py") if _VERSION.search(path.read_bytes())))


def metric_file(name: str) -> Path:
    """Return the path of a metric's module. Raises LookupError if there is no such metric."""
    if name not in list_metrics():
        raise LookupError(f"Unknown metric {name!r}. Choose one of: {', '.join(list_metrics())}.")
    return _FOLDER / f"{name}.py"


def module_files(module: Path) -> dict[str, bytes]:
    """Return the contents of a metric's module and of the siblings that it names, by file name, the module first.

    Raises OSError if one is missing.
    """
    code = module.read_bytes()
    siblings = sorted({name.decode() for name in _SIBLING.findall(code)})
    return {module.name: code} | {f"{name}.py": (module.parent / f"{name}.py").read_bytes() for name in siblings}


def register(*, over_newer: bool = True) -> list[Path]:
    """Make `evaluate.load` work offline and from any folder with the bare name of each metric, such as "a_coat".

    `evaluate` looks for a bare name first below the working directory, then on the Hub as
    `evaluate-metric/<name>`, then in its module cache, where it takes the file that was modified last.
    This copies the modules into that cache (`HF_MODULES_CACHE`, else `modules` below `HF_HOME`) and
    dates them after any other version there, so that an upgrade takes effect. Running it again is harmless and
    takes some milliseconds; `evaluate` is not imported. `import audio_compositionality` does it too.

    Args:
        over_newer: whether to replace copies with a higher VERSION too, which another installation left.

    Returns the paths of the cached modules, in the order of `list_metrics`; if a newer copy is kept, its path. Raises
    OSError when the cache cannot be written.
    """
    root = _modules_cache() / "evaluate_modules"
    return [_install(metric_file(name), root, over_newer=over_newer) for name in list_metrics()]


def register_on_import() -> None:
    """Register like `register`, but ignore failures and never replace a newer version.

    A note in the cache lists the copied files with their sizes and dates, and the paths of the copies. If it still
    matches, no module is read.
    """
    logging.getLogger("evaluate.loading").addFilter(_is_no_news_of_ours)
    with contextlib.suppress(OSError):
        folder = _modules_cache() / "evaluate_modules" / "metrics"
        sources = sorted((entry.name, entry.stat()) for entry in os.scandir(_FOLDER) if entry.name.endswith(".py"))
        key = "".join(f"{name} {status.st_size} {status.st_mtime_ns}\n" for name, status in sources)
        note = folder / ".audio_compositionality"
        noted, _, copies = note.read_text("utf-8").partition("\n\n") if note.is_file() else ("", "", "")
        if noted == key.strip() and all(map(os.path.exists, copies.splitlines())):
            return
        copied = "\n".join(map(str, register(over_newer=False)))
        partial = folder / f"{note.name}.{os.getpid()}.partial"
        partial.write_text(f"{key}\n{copied}", "utf-8")
        partial.replace(note)


def _is_no_news_of_ours(record: logging.LogRecord) -> bool:
    """Return whether to keep a log record of `evaluate`.

    Only the expected note that a metric of ours was found in its cache alone is dropped.
    """
    name = re.search(r"couldn't be found locally at evaluate-metric--(\w+)", record.getMessage())
    return name is None or name[1] not in list_metrics()


def _modules_cache() -> Path:
    """Return the folder that `evaluate.config` calls HF_MODULES_CACHE, by its rules if it is not imported yet."""
    config = sys.modules.get("evaluate.config")
    if config is not None:
        return Path(config.HF_MODULES_CACHE)
    home = os.getenv("HF_HOME", os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "huggingface"))
    return Path(os.getenv("HF_MODULES_CACHE", os.path.join(os.path.expanduser(home), "modules")))


def _install(source: Path, root: Path, *, over_newer: bool = True) -> Path:
    """Copy a metric's module and its siblings into the cache at `root` as its newest version."""
    import hashlib

    files = module_files(source)
    # `evaluate` 0.4.6 expects these folder names, including the 64 hexadecimal digits.
    versions = root / "metrics" / f"evaluate-metric--{source.stem}"
    target = versions / hashlib.sha256(b"\0".join(files.values())).hexdigest() / source.name
    besides = [path for path in versions.glob(f"*/{source.name}") if path != target]
    newer = [path for path in besides if _version(path.read_bytes()) > _version(files[source.name])]
    if newer and not over_newer:
        return newer[0]
    for package in (root.parent, root, root / "metrics", versions):
        if not (package / "__init__.py").exists():
            package.mkdir(parents=True, exist_ok=True)
            (package / "__init__.py").touch()
    _write(target.parent, {"__init__.py": b""} | files)
    dates = [path.stat().st_mtime for path in besides]
    if dates and target.stat().st_mtime <= max(dates):
        newest = max(time.time(), max(dates) + 1)
        os.utime(target, (newest, newest))
    return target


def _version(code: bytes) -> int:
    """Return the VERSION of a metric's module; 0 if it has none."""
    match = _VERSION.search(code)
    return int(match[1]) if match else 0


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Replace a folder's contents with these files; a new folder appears at once, so no process loads a partial one."""
    if not folder.is_dir():
        partial = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
        partial.mkdir(exist_ok=True)
        for name, content in files.items():
            (partial / name).write_bytes(content)
        with contextlib.suppress(OSError):  # another process has written it
            partial.replace(folder)
        import shutil

        shutil.rmtree(partial, ignore_errors=True)
    for name, content in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            partial = folder / f"{name}.{os.getpid()}.partial"
            partial.write_bytes(content)
            partial.replace(path)
