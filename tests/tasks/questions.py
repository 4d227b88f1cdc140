"""Questions of PolyBench made by hand, as its recipe gives them, and who answers them in a known way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from audio_compositionality.tasks.base import Outputs, Scores
from audio_compositionality.tasks.registry import load_task
from audio_compositionality.tasks.shapes.asking import read_prompt

LABELS = ("organ", "reed", "brass", "bell", "bass", "pad")

Row = dict[str, Any]
Answerer = Callable[[Row], str]

NOTHING: Mapping[str, Any] = MappingProxyType({})


def event(label: str, onset: float, offset: float) -> dict[str, Any]:
    return {"label": label, "onset": onset, "offset": offset}


def question_row(id: str, task: str, question: str, options: Sequence[str], answer: str, **changes: Any) -> Row:
    """A question about a clip in which an organ and a reed overlap for two seconds, then a bell is alone."""
    row = {
        "id": id,
        "split": "test",
        "question": question,
        "options": list(options),
        "answer": answer,
        "task": task,
        "variant": "first" if task == "detection" else "kinds" if task == "counting" else "plain",
        "anchor": "",
        "polarity": "",
        "template": f"{task}/1",
        "group": id.rpartition("-")[0],
        "unit": id.rpartition("-")[0],
        "recording": id,
        "source": "scenes",
        "start": 0.0,
        "duration": 10.0,
        "resolution": 0.01,
        "polyphony": 2,
        "overlap": 2.0,
        "gap": None,
        "level_difference": 0.0,
        "events": [event("organ", 1.0, 4.0), event("reed", 2.0, 5.0), event("bell", 6.0, 9.0)],
    }
    return row | changes


def turned(options: Sequence[str], turns: int) -> list[str]:
    """Options in another order."""
    place = turns % len(options)
    return [*options[place:], *options[:place]]


def twin_rows(sets: int = 1, split: str = "test") -> list[Row]:
    """Twins of all five tasks, 19 questions a set: the answer is each option once, and at each place equally often."""
    rows: list[Row] = []
    for number in range(sets):
        a, b, c, d, e, _ = turned(LABELS, number)
        name = f"{split}-{number}"
        overlap = {"overlap": 0.5 + number % 4, "polyphony": 2 + number % 3}
        windows = ["0.5–1.5 s", "2.5–3.5 s", "4.5–5.5 s", "7.0–8.0 s"]
        for place, answer in enumerate(["1", "2", "3", "4"]):
            options = ["1", "2", "3", "4"]
            rows.append(question_row(f"{name}-n-{place}", "counting", "How many?", options, answer, **overlap))
        for place, answer in enumerate([a, b, c]):
            options = turned([a, b, c], number)
            rows.append(question_row(f"{name}-l-{place}", "duration", "Which is heard longest?", options, answer))
        for place, (polarity, state) in enumerate((p, s) for p in ("overlap", "alone") for s in ("overlap", "alone")):
            question = f"Is anything else heard with the {e}?" if polarity == "overlap" else f"Is the {e} always alone?"
            rows.append(
                question_row(
                    f"{name}-c-{place}",
                    "concurrency",
                    question,
                    turned(["Yes", "No"], number + place // 2),
                    "Yes" if polarity == state else "No",
                    polarity=polarity,
                    anchor=e,
                    **overlap,
                )
            )
        for place, answer in enumerate([a, b, c, d]):
            options = turned([a, b, c, d], number)
            question = f"Which overlaps the {e}?"
            rows.append(question_row(f"{name}-w-{place}", "classification", question, options, answer, anchor=e))
        for place, answer in enumerate(windows):
            row = question_row(f"{name}-t-{place}", "detection", "When do two first sound?", windows, answer, **overlap)
            rows.append(row)
    return [row | {"split": split} for row in rows]


def answered(rows: Sequence[Row], who: Answerer, settings: Mapping[str, Any] = NOTHING) -> list[str]:
    """The answers to the questions that are asked, in the order in which a model is asked; who answers knows the row,
    with what the prompt says in place of its own options."""
    task, answers = load_task("polybench"), []
    for row in rows:
        for prompt in task.inputs(row, settings).prompts:
            question, options = read_prompt(prompt)
            answers.append(who({**row, "question": question, "options": options}))
    return answers


def scored(rows: Sequence[Row], who: Answerer, requested: Mapping[str, Any] = NOTHING) -> Scores:
    task = load_task("polybench")
    settings = task.settings(rows, requested)
    return task.score(rows, Outputs(answers=answered(rows, who, settings)), settings, "cpu", False)


def always_yes(row: Row) -> str:
    return "Yes" if "Yes" in row["options"] else "A"


def first(row: Row) -> str:
    return "A"


def refusing(row: Row) -> str:
    return "I'm sorry, I cannot hear the audio."


def knowing(row: Row) -> str:
    return f"{'ABCD'[row['options'].index(row['answer'])]}. {row['answer']}"


def mumbling(row: Row) -> str:
    return "Hm."
