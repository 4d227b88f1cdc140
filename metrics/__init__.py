"""The metrics, one module each: ``NAME.py``, which `evaluate` loads, beside siblings that several share.

A metric knows arrays, and nothing of models, data sets or tasks. Its module imports nothing of this project but its
siblings, because it is also published alone: with these and its card it makes a Space.
`evaluate` fetches only the siblings named in the metric's own module, each by a line ``from .SIBLING import …``, not
the imports of siblings. Importing this package imports no metric, and changes nothing on disk.
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
    """Return the names of the metrics in order: those of the modules that have a VERSION."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.py") if _VERSION.search(path.read_bytes())))


def metric_file(name: str) -> Path:
    """Return the path of a metric's module. Raises LookupError when there is no such metric."""
    if name not in list_metrics():
        raise LookupError(f"There is no metric {name!r}; there are {', '.join(list_metrics())}.")
    return _FOLDER / f"{name}.py"


def module_files(module: Path) -> dict[str, bytes]:
    """Return a metric's module and the siblings that it names, by file name, the module first.

    Raises OSError where one is missing.
    """
    code = module.read_bytes()
    siblings = sorted({name.decode() for name in _SIBLING.findall(code)})
    return {module.name: code} | {f"{name}.py": (module.parent / f"{name}.py").read_bytes() for name in siblings}


def register(*, over_newer: bool = True) -> list[Path]:
    """Make `evaluate.load` work with the bare name of each metric, such as "a_coat", from anywhere and offline.

    `evaluate` looks for a bare name first below the working directory, then on the Hub as
    `evaluate-metric/<name>`, then in its module cache, where it takes the file that was modified last.
    This copies the modules into that cache (`HF_MODULES_CACHE`, else `modules` below `HF_HOME`) and
    dates them after any other version there, so that an upgrade takes effect. Running it again is harmless and
    takes some milliseconds; `evaluate` is not imported. `import audio_compositionality` does it too.

    Args:
        over_newer: whether to replace copies of a higher VERSION too, which another installation left.

    Returns the paths of the cached modules, in the order of `list_metrics`; where a newer one stays in force, its path.
    Raises OSError when the cache cannot be written.
    """
    root = _modules_cache() / "evaluate_modules"
    return [_install(metric_file(name), root, over_newer=over_newer) for name in list_metrics()]


def register_on_import() -> None:
    """Register as `register` does, silently where that fails, and never over a newer version.

    An up-to-date cache is recognised without reading a module: a note in it lists the copied files, by sizes and dates,
    and the places of the copies.
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
    """Whether a line of `evaluate` is another than that it found a metric of ours in its cache alone, as it should."""
    name = re.search(r"couldn't be found locally at evaluate-metric--(\w+)", record.getMessage())
    return name is None or name[1] not in list_metrics()


def _modules_cache() -> Path:
    """The folder that `evaluate.config` calls HF_MODULES_CACHE, by the same rules where that is not imported yet."""
    config = sys.modules.get("evaluate.config")
    if config is not None:
        return Path(config.HF_MODULES_CACHE)
    home = os.getenv("HF_HOME", os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "huggingface"))
    return Path(os.getenv("HF_MODULES_CACHE", os.path.join(os.path.expanduser(home), "modules")))


def _install(source: Path, root: Path, *, over_newer: bool = True) -> Path:
    """Copy a metric's module and its siblings into the cache at `root`, and make them the newest version there."""
    import hashlib

    files = module_files(source)
    # The names of the folders, 64 hexadecimal digits included, are what `evaluate` 0.4.6 expects.
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
    """The VERSION of a metric's module; 0 where it has none."""
    match = _VERSION.search(code)
    return int(match[1]) if match else 0


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Bring a folder to these files; no process ever loads a partial folder, since a new one appears at once."""
    if not folder.is_dir():
        partial = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
        partial.mkdir(exist_ok=True)
        for name, content in files.items():
            (partial / name).write_bytes(content)
        with contextlib.suppress(OSError):  # another process was first
            partial.replace(folder)
        import shutil

        shutil.rmtree(partial, ignore_errors=True)
    for name, content in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            partial = folder / f"{name}.{os.getpid()}.partial"
            partial.write_bytes(content)
            partial.replace(path)
