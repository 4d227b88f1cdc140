"""Results of the baselines on the preset `mini`, which ship with the package, since they are equal for every user.

``python -m studies.shipped`` makes them again; a slow test compares them with a fresh run.
"""

from __future__ import annotations

import zipfile
from functools import cache
from pathlib import Path, PurePosixPath

from audio_compositionality.evaluator.results.result import Result, SampleTable, check_samples

ARCHIVE = Path(__file__).with_name("shipped.zip")
"""The results as `save_result` lays them out: a JSON file and a table of samples each."""


def shipped_result(model: str, revision: str, task: str) -> tuple[Result, SampleTable] | None:
    """Return the shipped result of a baseline and its samples; None if there is none.

    Whether it fits the data, version and settings of a run must be checked: see `differences` of `evaluate`.
    """
    text = _texts().get((model, revision, task))
    if text is None:
        return None
    result = Result.loads(text[0])
    return result, check_samples(result, text[1])


@cache
def _texts() -> dict[tuple[str, str, str], tuple[bytes, bytes]]:
    """Return the files of results and samples, by model, revision and task."""
    texts = {}
    with zipfile.ZipFile(ARCHIVE) as archive:
        for name in archive.namelist():
            path = PurePosixPath(name)
            if path.suffix == ".json":
                model, revision, _ = path.parts
                texts[model, revision, path.stem] = archive.read(name), archive.read(str(path.with_suffix(".csv")))
    return texts
