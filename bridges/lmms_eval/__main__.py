"""Print a folder of tasks for lmms-eval, a YAML a recipe of the data:

lmms_eval --include_path $(python -m audio_compositionality.bridges.lmms_eval) --tasks audio_compositionality_TASK ...
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.support.errors import AudioCompositionalityError, InputError
from audio_compositionality.support.files import cache_folder, sha256_of_json, write_whole
from audio_compositionality.tasks.shapes.asking import CYCLIC, DIRECT, ONE_ORDER, PROMPTS

from ..questions import pose, tasks_of_questions
from .utils import ANSWERS_RIGHT

_CALLED = f"!function {__package__}.utils"

_YAML = """\
task: audio_compositionality_{info.name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {info.name}.jsonl}}}}
test_split: test
output_type: generate_until
doc_to_visual: {called}.doc_to_audio
doc_to_text: prompt
doc_to_target: answer
process_results: {called}.process_results
generation_kwargs: {{max_new_tokens: {tokens}, temperature: 0, do_sample: false, until: []}}
cluster_key: group
metric_list:
{metrics}
metadata: {{version: {info.version}}}
"""


def write_tasks(data: str, **settings: Any) -> Path:
    """Write the tasks of all questions of data; the folder.

    Args:
        data: see `pose`.
        settings: control, prompt and orders; see `pose`.

    Raises:
        AudioCompositionalityError: the data hold no questions, or as `pose` raises.
    """
    held = open_data(data).recipes
    tasks = [task.info for task in tasks_of_questions() if task.info.recipe in held]
    if not tasks:
        raise InputError(f"{data!r} has no questions, but {', '.join(held)}")
    folder = cache_folder() / "lmms_eval" / sha256_of_json({"data": data, **settings})[:16]
    folder.mkdir(parents=True, exist_ok=True)
    for info in tasks:
        arguments = {"name": info.name, "data": data, **settings}
        posed = pose(**arguments)
        functions = {ANSWERS_RIGHT: "mean_score", **dict.fromkeys(posed.measures, "task_measure")}
        lines = [
            f"- {{metric: {name}, aggregation: {_CALLED}.{function}, higher_is_better: {_rises(info, name)}}}"
            for name, function in functions.items()
        ]
        text = _YAML.format(info=info, called=_CALLED, tokens=posed.new_tokens, metrics="\n".join(lines))
        stated = {"posed": json.dumps(arguments)}
        docs = [
            {"id": id, "prompt": one.prompt, "answer": one.answer, "group": one.group, **stated}
            for id, one in posed.questions.items()
        ]
        write_whole(folder / f"{info.name}.jsonl", "".join(f"{json.dumps(doc)}\n" for doc in docs))
        write_whole(folder / f"{info.name}.yaml", text)
    return folder


def _rises(info: Any, name: str) -> str:
    """Whether more of a measure is better; ``null`` of chance levels, counts and shares that are neither."""
    measure = info.judge if name == ANSWERS_RIGHT else info.measure(name)
    return "null" if measure.column is None else json.dumps(not measure.less_is_better)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tasks and print their folder."""
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}", description=__doc__)
    parser.add_argument("data", nargs="?", default="mini", help="a preset, questions.csv, a built folder ...")
    parser.add_argument("--control", default="", metavar="NAME", help="a change of the sound, such as without-audio")
    parser.add_argument("--prompt", default=DIRECT, choices=list(PROMPTS), help="how an answer is asked for")
    parser.add_argument("--orders", default=ONE_ORDER, choices=[CYCLIC], help="put each question in all cyclic orders")
    try:
        print(write_tasks(**vars(parser.parse_args(arguments))))
    except AudioCompositionalityError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
