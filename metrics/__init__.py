"""The metrics A-COAT and A-TRE (arXiv 2603.13685), one folder each.

Each folder holds one self-contained module that `evaluate` can load: from a clone with
`evaluate.load("metrics/a_coat")`, from the Hub, or, once `register` has run, with
`evaluate.load("a_coat")` from anywhere and offline. Importing this package changes nothing on disk.
"""

import hashlib
import os
import time
from pathlib import Path

METRICS = ("a_coat", "a_tre")
"""The names of the metrics: `<name>/<name>.py` below this folder."""


def register() -> list[Path]:
    """Make `evaluate.load("a_coat")` and `evaluate.load("a_tre")` work from anywhere, offline.

    `evaluate` looks for a bare name first below the working directory, then on the Hub as
    `evaluate-metric/<name>`, then in its module cache, where it takes the file that was modified last.
    This copies the modules into that cache (`HF_MODULES_CACHE`, else `modules` below `HF_HOME`) and
    dates them after any other version there, so that an upgrade takes effect. Running it again is harmless.

    Returns the paths of the cached modules, in the order of `METRICS`. Raises OSError when the cache
    cannot be written.
    """
    from evaluate.config import HF_MODULES_CACHE, MODULE_NAME_FOR_DYNAMIC_MODULES

    root = Path(HF_MODULES_CACHE) / MODULE_NAME_FOR_DYNAMIC_MODULES
    return [_install(Path(__file__).parent / name / f"{name}.py", root) for name in METRICS]


def _install(source: Path, root: Path) -> Path:
    """Copy one metric module into the cache at `root` and make it the newest version there."""
    code = source.read_bytes()
    # The names of the folders, 64 hexadecimal digits included, are what `evaluate` 0.4.6 expects.
    versions = root / "metrics" / f"evaluate-metric--{source.stem}"
    target = versions / hashlib.sha256(code).hexdigest() / source.name
    target.parent.mkdir(parents=True, exist_ok=True)
    for package in (root.parent, root, root / "metrics", versions, target.parent):
        (package / "__init__.py").touch()
    if not target.is_file() or target.read_bytes() != code:
        # Written aside and moved, so that a process loading the metric never sees half a file.
        partial = target.with_name(f"{source.stem}.{os.getpid()}.partial")
        partial.write_bytes(code)
        partial.replace(target)
    others = [path.stat().st_mtime for path in versions.glob(f"*/{source.name}") if path != target]
    if others and target.stat().st_mtime <= max(others):
        newest = max(time.time(), max(others) + 1)
        os.utime(target, (newest, newest))
    return target
