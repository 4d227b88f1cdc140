"""Results of the baselines on the preset `mini`, which are the same for everybody: they come with the package.

``python -m audio_compositionality.evaluator.run.shipped`` in a clone makes them anew; a slow test compares them with a
fresh run.
"""

from __future__ import annotations

import io
import sys
import tempfile
import warnings
import zipfile
from functools import cache
from pathlib import Path, PurePosixPath

from audio_compositionality.evaluator.results.result import Result, SampleTable, check_samples
from audio_compositionality.support.files import read_file

ARCHIVE = Path(__file__).with_name("shipped.zip")
"""The results as `save_result` lays them out: a JSON file and a table of samples each."""


def shipped_result(model: str, revision: str, task: str) -> tuple[Result, SampleTable] | None:
    """Return the shipped result of a baseline and its samples; None where there is none.

    It is of the data, version and settings that it states: see `differences` of `evaluate`.
    """
    text = _texts().get((model, revision, task))
    if text is None:
        return None
    result = Result.loads(text[0])
    return result, check_samples(result, text[1])


@cache
def _texts() -> dict[tuple[str, str, str], tuple[bytes, bytes]]:
    """The files of results and samples, by model, revision and task."""
    texts = {}
    with zipfile.ZipFile(ARCHIVE) as archive:
        for name in archive.namelist():
            path = PurePosixPath(name)
            if path.suffix == ".json":
                model, revision, _ = path.parts
                texts[model, revision, path.stem] = archive.read(name), archive.read(str(path.with_suffix(".csv")))
    return texts


def make_archive() -> bytes:
    """Score the baselines of a run without arguments and of a run with a model, with the settings of `run`.

    Returns the bytes of the archive; the same results give the same bytes.
    """
    from audio_compositionality.dataset_builder.open_data import open_data
    from audio_compositionality.encoders.loading.registry import load_model
    from audio_compositionality.tasks.registry import first_look

    from .evaluate import evaluate_models
    from .options import RunOptions
    from .planning import planned

    data, tasks = open_data("mini"), first_look()
    names = dict.fromkeys(
        name for is_judged in (True, False) for name in planned([], tasks, is_named=True, is_judged=is_judged).baselines
    )
    content = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = Path(folder)
        options = RunOptions(out=out, force=True, settings={"seeds": [0]}, store=out / "store", device="cpu")
        evaluate_models([load_model(name) for name in names], data, tasks, options, leave_out=True)
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for path in sorted(file for ending in ("json", "csv") for file in out.glob(f"*/*/*.{ending}")):
                name = zipfile.ZipInfo(path.relative_to(out).as_posix())
                archive.writestr(name, read_file(path), zipfile.ZIP_DEFLATED)
    return content.getvalue()


if __name__ == "__main__":
    ARCHIVE.write_bytes(make_archive())
    print(f"{ARCHIVE} has {ARCHIVE.stat().st_size:,} bytes", file=sys.stderr)
