"""Check a run without arguments: a verdict on a model that has learnt something, on a machine without network.

audio-compositionality run | tee printed.txt
python first_run.py results printed.txt
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.model_verdicts import verdicts_of
from audio_compositionality.evaluator.compare.task_verdicts import Standing


def main(results: str, printed: str) -> None:
    """Raise AssertionError where the run did not end as it should."""
    verdicts = verdicts_of(compare_results([results]))
    assert {comparison.info.name for comparison in verdicts.comparisons} == {"a_coat", "a_tre", "comp_a_order"}
    assert [model.label for model in verdicts.models] == ["compa-clap-tiny"] * 2
    standings = {task.comparison.info.name: task.standing for model in verdicts.models for task in model.tasks}
    assert Standing.UNKNOWN not in standings.values(), "a result is missing that the run could have scored"
    assert standings["comp_a_order"] is Standing.ABOVE
    text = Path(printed).read_text("utf-8")
    *before, last = text.splitlines()
    assert re.fullmatch(r"The report is .*report\.html: open it in a browser\. audio-compositionality compare .*", last)
    said = " ".join(" ".join(before).split())
    assert said.endswith(" ".join(verdicts.text.split())), "the verdict comes last, above the path of the report"
    assert "compa-clap-tiny (trained on data from our generator)" in said
    assert len(text.splitlines()) <= 30
    assert "mean cosine" not in text, "definitions are for --explain"


if __name__ == "__main__":
    main(*sys.argv[1:])
