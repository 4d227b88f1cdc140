"""Make the results of baselines that come with the package: ``python -m studies.shipped``, in a clone."""

from __future__ import annotations

import io
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.run.planning import planned
from audio_compositionality.evaluator.run.shipped import ARCHIVE
from audio_compositionality.support.files import read_file
from audio_compositionality.tasks.registry import first_look


def make_archive() -> bytes:
    """Score the baselines of a run without arguments and of a run with a model, with the settings of `run`.

    Returns the bytes of the archive; the same results give the same bytes.
    """
    data, tasks = open_data("mini"), first_look()
    plans = [planned([], tasks, is_named=True, is_judged=is_judged) for is_judged in (True, False)]
    names = dict.fromkeys(name for plan in plans for name in plan.baselines)
    apart = frozenset(pair for plan in plans for pair in plan.apart)
    content = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = Path(folder)
        options = RunOptions(out=out, force=True, settings={"seeds": [0]}, cache=out / "store", device="cpu")
        evaluate_models([load_model(name) for name in names], data, tasks, options, leave_out=True, apart=apart)
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for path in sorted(file for ending in ("json", "csv") for file in out.glob(f"*/*/*.{ending}")):
                name = zipfile.ZipInfo(path.relative_to(out).as_posix())
                archive.writestr(name, read_file(path), zipfile.ZIP_DEFLATED)
    return content.getvalue()


if __name__ == "__main__":
    ARCHIVE.write_bytes(make_archive())
    print(f"{ARCHIVE} has {ARCHIVE.stat().st_size:,} bytes", file=sys.stderr)
