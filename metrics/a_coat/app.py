"""The Space of A-COAT: a form that scores embeddings given as text.

`python app.py` starts it. The metric is `a_coat.py` beside this file; nothing else of the project is needed.
"""

from __future__ import annotations

import html
from functools import cache
from pathlib import Path
from typing import Any

import evaluate
import gradio as gr
import numpy as np

MAX_ROWS = 2_000
MAX_CHARACTERS = 5_000_000
"""Of all boxes together."""

ELSE = ": run evaluate.load on your own machine instead."
"""What messages about these limits end with."""

MAX_MESSAGE = 500
"""Characters shown of an error, which may quote what was typed."""

SCENES = {"A": "any scene", "B": "A with the sources T", "C": "another scene", "D": "C with the same sources T"}

MEANINGS = {
    "a_coat": "A-COAT: mean cosine of the steps B − A and D − C",
    "std": "standard deviation over the quadruples",
    "n": "number of quadruples",
    "degenerate": "quadruples with a step of zero, which score 0",
    "null": "the same cosine between steps of different quadruples: what any added source does",
    "matched_null": "the same, of quadruples with equally many sources in T and nearly the same level",
    "adjusted": "(A-COAT − null) / (1 − null), by the matched null where there is one",
    "centred": "the score after the mean step of the other quadruples is taken away",
    "centred_std": "its standard deviation over the quadruples",
    "top1": "how often the own step D − C is the nearest of all to B − A",
    "mrr": "mean reciprocal rank of the own step",
    "top1_chance": "top1 of a random order",
    "mrr_chance": "mrr of a random order",
}

INTRODUCTION = f"""\
# A-COAT: is adding the same sources the same step?

For scenes A, B = A + T, C and D = C + T, the Audio Compositional Object Algebra Test is the mean cosine of the
embedding steps B − A and D − C ([arXiv 2603.13685](https://arxiv.org/abs/2603.13685)). Nothing is trained.

Paste the embeddings of an encoder: a line for each quadruple, numbers separated by commas or spaces, row i of each box
belonging to quadruple i. At most {MAX_ROWS:,} rows, and {MAX_CHARACTERS // 1_000_000} MB of text in all; nothing is
kept. For more, `evaluate.load` runs the same code on your own machine, see the card of this Space.
"""

WARNING = """\
**A high score alone is no evidence of composition.** Where every added source moves the embedding along one "more
energy" direction, A-COAT reaches 1 whatever the sources are. So read it beside *null*: most of a score near it is not
about T. *adjusted* by the matched null and *top1* are those that energy does not raise. A linear encoder, such as
the waveform itself, scores 1 by construction.
"""


CSS = """
td:nth-child(-n+2) { white-space: nowrap; font-variant-numeric: tabular-nums; }
@media (max-width: 640px) {
  .prose table tr { display: grid; grid-template-columns: 1fr auto; }
  .prose table th, .prose table td { border: 0; padding: 0.25rem 0.5rem; }
  .prose table th:nth-child(3), .prose table td:nth-child(3) { grid-column: 1 / -1; }
}
"""
"""A number is not broken over lines; where there is no room beside it, what it is stands below it."""


@cache
def load_metric() -> Any:
    """The metric of the module beside this file."""
    return evaluate.load(str(Path(__file__).with_name("a_coat.py")))


def compute(a: str, b: str, c: str, d: str, t: str = "") -> str:
    """Score embeddings.

    Args:
        a: embeddings of the scenes A, a row a line; `b`, `c` and `d` likewise.
        t: nothing, or for each quadruple a line with the number of sources in T and the level of T in dB.

    Returns:
        a table in Markdown of name, value and meaning: the score, then its controls.

    Raises:
        gr.Error: the text is too long, or no numbers, or the metric refuses them.
    """
    try:
        check_size(a, b, c, d, t)
        texts = {"a": a, "b": b, "c": c, "d": d}
        inputs: dict[str, Any] = {name: read_rows(name.upper(), text) for name, text in texts.items()}
        if t.strip():
            inputs |= read_added(t)
        result = load_metric().compute(**inputs)
    except ValueError as error:
        raise gr.Error(as_text(str(error)), print_exception=False) from None
    return result_table(result)


def result_table(result: dict[str, Any]) -> str:
    """The result in Markdown; no text of the user stands in it."""
    rows = [f"| `{name}` | {number(value)} | {MEANINGS[name]} |" for name, value in result.items()]
    return "\n".join(["| result | value | what it is |", "| --- | --- | --- |", *rows])


def check_size(*texts: str) -> None:
    """Raise ValueError when texts are longer than MAX_CHARACTERS in all."""
    characters = sum(map(len, texts))
    if characters > MAX_CHARACTERS:
        raise ValueError(f"There are {characters:,} characters, but this form takes {MAX_CHARACTERS:,} at most{ELSE}")


def read_rows(name: str, text: str) -> list[list[float]]:
    """The numbers of a text, a list for each line that is not blank, or ValueError; `name` is what it calls the box."""
    rows: list[list[float]] = []
    for place, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if len(rows) == MAX_ROWS:
            raise ValueError(f"{name} has more than {MAX_ROWS:,} rows{ELSE}")
        try:
            rows.append([float(word) for word in line.replace(",", " ").split()])
        except ValueError as error:
            word = str(error).removeprefix("could not convert string to float: ")
            raise ValueError(
                f"{name}, line {place}: {word} is no number. Give numbers separated by commas or spaces."
            ) from None
        if len(rows[-1]) != len(rows[0]):
            raise ValueError(f"{name}, line {place} has {len(rows[-1])} numbers, but the first row {len(rows[0])}.")
    if not rows:
        raise ValueError(f"{name} is empty. Paste the embeddings, or fill in the example.")
    return rows


def read_added(text: str) -> dict[str, list[float]]:
    """What the metric takes of the added sources T: `t_size` and `t_level`, or ValueError."""
    rows = read_rows("T", text)
    if len(rows[0]) != 2:
        raise ValueError(f"T has {len(rows[0])} numbers a line, but needs 2: the number of sources and the level (dB).")
    return {"t_size": [size for size, _ in rows], "t_level": [level for _, level in rows]}


def number(value: float | None) -> str:
    """A value of the result as text."""
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.6f}"


def as_text(message: str) -> str:
    """A message that may quote what was typed, short and safe: gradio takes messages for HTML."""
    shown = message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + "…"
    return html.escape(shown.encode("utf-8", "backslashreplace").decode())


def clear() -> str:
    """No result."""
    return ""


def example() -> list[str]:
    """Texts for the five boxes: a partly additive encoder of 40 quadruples in 8 dimensions."""
    rng = np.random.default_rng(0)
    size, level = rng.integers(1, 4, 40), rng.uniform(-20, 0, 40)
    energy, t = rng.normal(size=8), rng.normal(size=(40, 8))
    step = t + 0.5 * size[:, None] * energy
    a, c = rng.normal(size=(2, 40, 8))
    b, d = (x + step + rng.normal(0, 0.5, (40, 8)) for x in (a, c))
    added = "\n".join(f"{sources}, {decibels:.1f}" for sources, decibels in zip(size, level, strict=True))
    return ["\n".join(", ".join(f"{value:.3f}" for value in row) for row in x) for x in (a, b, c, d)] + [added]


with gr.Blocks(title="A-COAT", analytics_enabled=False) as demo:
    gr.Markdown(INTRODUCTION)
    boxes = []
    for pair in ("AB", "CD"):
        with gr.Row():
            boxes += [gr.Textbox(label=f"{name}: {SCENES[name]}", lines=4, max_lines=8, min_width=300) for name in pair]
    boxes.append(
        gr.Textbox(
            label="T (optional)",
            info="The number of sources in T and the level of T in dB, a line for each quadruple: gives matched_null.",
            lines=2,
            max_lines=4,
        )
    )
    with gr.Row():
        fill = gr.Button("Fill in an example")
        run = gr.Button("Compute", variant="primary")
    table = gr.Markdown(min_height=100)
    gr.Markdown(WARNING)
    fill.click(example, outputs=boxes, api_visibility="private")
    # A refusal must not stand above the scores of what was there before.
    cleared = run.click(clear, outputs=table, api_visibility="private", show_progress="hidden", queue=False)
    cleared.then(compute, inputs=boxes, outputs=table, api_name="compute")

if __name__ == "__main__":
    demo.queue(max_size=20).launch(
        theme=gr.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]),
        css=CSS,
        # The page is made in the browser, as it is tested, not by a second server of Node.js.
        ssr_mode=False,
        # The form takes no file, and what is typed is kept nowhere, not in the browser either.
        max_file_size=1,
        run_history=False,
        footer_links=["api", "gradio", "settings"],
    )
