"""Run the real lmms-eval with our tasks: its command, with its model `dummy`, which gives one answer to everything.

    pip install -c constraints.txt . lmms-eval==0.7.3
    python tests/references/lmms_eval_suite.py

Exits with 1 if anything is not as it should be. The scores are those of our own run of the same answers.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hashed import ours

from audio_compositionality.bridges.lmms_eval.utils import ANSWERS_RIGHT
from audio_compositionality.evaluator.answer_logs import read_logs
from audio_compositionality.evaluator.rescore import rescore

PREFIX = "audio_compositionality_"


def run(out: Path, tasks: list[str], response: str, *arguments: str) -> dict[str, Any]:
    """The results that lmms-eval writes, by task."""
    written = [sys.executable, "-m", "audio_compositionality.bridges.lmms_eval", *arguments]
    folder = subprocess.run(written, check=True, capture_output=True, text=True).stdout.strip()
    names = ",".join(f"{PREFIX}{task}" for task in tasks)
    subprocess.run(
        [sys.executable, "-m", "lmms_eval", "--model", "dummy", "--model_args", f"response={response}",
         "--include_path", folder, "--tasks", names, "--output_path", str(out), "--log_samples"],
        check=True,
    )  # fmt: skip
    (path,) = out.glob("*_results.json")
    return json.loads(path.read_text("utf-8"))["results"]


def check(theirs: dict[str, Any], expected: dict[str, Any]) -> int:
    """Every measure that they have is the one expected, to the last digit; their number."""
    values = {name.removesuffix(",none"): value for name, value in theirs.items() if name.endswith(",none")}
    of_task = {name: value for name, value in values.items() if name in expected}
    assert len(of_task) > 3, theirs
    different = {
        name: (expected[name], value)
        for name, value in of_task.items()
        if expected[name] != value and not (expected[name] is None and math.isnan(value))
    }
    assert not different, different
    by_question = expected.get("accuracy_micro", values[ANSWERS_RIGHT])
    assert abs(values[ANSWERS_RIGHT] - by_question) < 1e-12, (values, by_question)
    assert 0 < values[f"{ANSWERS_RIGHT}_stderr_clustered"] < 0.2, values
    return len(of_task)


def main() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    count = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["AUDIO_COMPOSITIONALITY_CACHE"] = str(folder / "cache")
        os.environ["LMMS_EVAL_DATASETS_CACHE"] = str(folder / "datasets")
        tasks = ["polybench", "polybench_apart", "polybench_atoms"]
        results = run(folder / "presets", tasks, "A")
        for task in tasks:
            count += check(results[f"{PREFIX}{task}"], ours("first", task, "mini"))
        # Single answers, too, are read as `rescore` reads them.
        (log,) = (folder / "presets").glob("*_polybench.jsonl")
        read = rescore(read_logs(log)[0])
        assert len(read.scored) == 300
        assert not read.differences
        sys.path.insert(0, str(Path(__file__).parents[1] / "tasks"))
        (folder / "questions").mkdir()
        table = str(importlib.import_module("listeners").write_questions(folder / "questions", 60))
        given = (table, "--control", "without-audio", "--orders", "cyclic")
        results = run(folder / "table", ["audio_questions"], "B", *given)
        expected = ours(":AlwaysB", "audio_questions", table, "without-audio", orders="cyclic")
        count += check(results[f"{PREFIX}audio_questions"], expected)
    print(f"lmms-eval 0.7.3: {count} measures of four tasks, answered by its dummy, are ours to the last digit")


if __name__ == "__main__":
    main()
