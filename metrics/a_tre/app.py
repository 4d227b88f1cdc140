"""The Space of A-TRE: a form that fits and scores embeddings given as text.

`python app.py` starts it. The metric is `a_tre.py` beside this file; nothing else of the project is needed.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import evaluate
import gradio as gr
import numpy as np

MAX_ROWS = 2_000
MAX_CHARACTERS = 5_000_000
"""Of both boxes together."""

MAX_DIM = 256
MAX_SOURCES = 8
"""In one scene."""

MAX_LABELS = 256
"""Different labels, of all attributes together."""

MAX_STEPS = 1_000
"""Training steps of a fit; with the largest input they take minutes on two processors."""

ELSE = ": run evaluate.load on your own machine instead."
"""What messages about these limits end with."""

MAX_MESSAGE = 500
"""Characters shown of an error, which may quote what was typed."""

MEANINGS = {
    "a_tre": "A-TRE: mean cosine of embedding and prediction over the test scenes",
    "std": "standard deviation over the test scenes",
    "n": "number of test scenes",
    "steps": "training step with the best validation score",
    "constant": "score of the mean training embedding as the prediction for every scene",
    "gain": "(A-TRE − constant) / (1 − constant)",
    "a_tre_centred": "score of a second fit, to what differs from that mean: the one to compare encoders by",
    "a_tre_centred_std": "its standard deviation over the test scenes",
    "steps_centred": "its training step with the best validation score",
    "ridge_r2": "variance that a linear regression on counts of labels explains",
    "ridge_r2_null": "the same with the scenes' labels permuted",
    "ridge_centred": "mean cosine of that regression's predictions",
    "ridge_centred_null": "the same with the scenes' labels permuted",
    "top1": "how often the own embedding is the nearest of all test scenes' to the centred prediction",
    "mrr": "mean reciprocal rank of the own embedding",
    "top1_chance": "top1 of a random order",
    "mrr_chance": "mrr of a random order",
    "collapsed": "whether the predictions hardly vary",
}

INTRODUCTION = f"""\
# A-TRE: can the embedding be rebuilt from the scene's attributes?

The Audio Tree Reconstruction Error ([arXiv 2603.13685](https://arxiv.org/abs/2603.13685)) trains a small Transformer to
rebuild the embedding of a scene from the labels of its sources. The score is the mean cosine of embedding and
prediction over held-out scenes.

Paste the embeddings of an encoder, a line for each scene, numbers separated by commas or spaces; below, line by line,
the scenes as JSON, such as `{{"split": "train", "sources": [{{"pitch_label": "low", "timbre_label": "bell"}}]}}`. The
splits are train, validation and test. At most {MAX_ROWS:,} scenes of {MAX_DIM} dimensions, {MAX_SOURCES} sources and
{MAX_LABELS} different labels, and {MAX_CHARACTERS // 1_000_000} MB of text in all; nothing is kept. For more,
`evaluate.load` runs the same code on your own machine, see the card of this Space.
"""

WARNING = """\
**A high score alone is no evidence of composition.** Embeddings that share a long mean reach 0.99 with a prediction
that is always the same: *constant* shows it. So compare encoders by *a_tre_centred*, and with the regressions on mere
counts of labels. Labels also predict how loud a scene is; of all controls only *top1* does not rise with that.
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

PROGRESS = gr.Progress(track_tqdm=True)


@cache
def load_metric() -> Any:
    """The metric of the module beside this file."""
    return evaluate.load(str(Path(__file__).with_name("a_tre.py")))


def compute(embeddings: str, scenes: str, max_steps: int = MAX_STEPS, progress: gr.Progress = PROGRESS) -> str:
    """Fit and score embeddings.

    Args:
        embeddings: a row a line.
        scenes: as many lines, each the JSON of a scene: ``split``, and ``sources``, a list of labels by attribute.
        max_steps: training steps of each of the two fits, 1 to MAX_STEPS.
        progress: where gradio shows the metric's own bars.

    Returns:
        a table in Markdown of name, value and meaning: the score, then its controls.

    Raises:
        gr.Error: the text is too long, or no embeddings or scenes, or the metric refuses them.
    """
    try:
        check_size(embeddings, scenes)
        rows = read_rows(embeddings)
        sources, splits = read_scenes(scenes)
        if not 1 <= max_steps <= MAX_STEPS:
            raise ValueError(f"There must be 1 to {MAX_STEPS:,} training steps; got {max_steps}.")
        result = load_metric().compute(embeddings=rows, scenes=sources, splits=splits, max_steps=int(max_steps))
    except (ValueError, FloatingPointError) as error:
        raise gr.Error(as_text(str(error)), print_exception=False) from None
    return result_table(result)


def result_table(result: dict[str, Any]) -> str:
    """The result in Markdown; no text of the user stands in it."""
    rows = [f"| `{name}` | {value_text(value)} | {MEANINGS[name]} |" for name, value in result.items()]
    return "\n".join(["| result | value | what it is |", "| --- | --- | --- |", *rows])


def value_text(value: float | bool | list[int]) -> str:
    """A value of the result as text; of a list, which has one entry a seed, the only one."""
    if isinstance(value, list):
        return f"{value[0]:,}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:.6f}"


def check_size(*texts: str) -> None:
    """Raise ValueError when texts are longer than MAX_CHARACTERS in all."""
    characters = sum(map(len, texts))
    if characters > MAX_CHARACTERS:
        raise ValueError(f"There are {characters:,} characters, but this form takes {MAX_CHARACTERS:,} at most{ELSE}")


def read_rows(text: str) -> list[list[float]]:
    """The embeddings in a text, a list for each line that is not blank, or ValueError."""
    rows: list[list[float]] = []
    for place, line in numbered_lines(text, "embeddings"):
        try:
            rows.append([float(word) for word in line.replace(",", " ").split()])
        except ValueError as error:
            word = str(error).removeprefix("could not convert string to float: ")
            raise ValueError(
                f"Embeddings, line {place}: {word} is no number. Give numbers separated by commas or spaces."
            ) from None
        if len(rows[-1]) != len(rows[0]):
            raise ValueError(f"Embeddings, line {place} has {len(rows[-1])} numbers, but the first row {len(rows[0])}.")
    if len(rows[0]) > MAX_DIM:
        raise ValueError(f"The embeddings have {len(rows[0]):,} dimensions, more than {MAX_DIM}{ELSE}")
    return rows


def read_scenes(text: str) -> tuple[list[list[Any]], list[str]]:
    """The lists of sources in a text and the scenes' splits, or ValueError."""
    scenes, splits = [], []
    for place, line in numbered_lines(text, "scenes"):
        try:
            scene = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"Scenes, line {place} is no JSON: {error}.") from None
        if (
            not isinstance(scene, dict)
            or set(scene) != {"split", "sources"}
            or not isinstance(scene["split"], str)
            or not isinstance(scene["sources"], list)
        ):
            raise ValueError(f'Scenes, line {place}: a scene is {{"split": "train", "sources": [{{…}}, …]}}.')
        if len(scene["sources"]) > MAX_SOURCES:
            raise ValueError(f"Scenes, line {place} has {len(scene['sources'])} sources, more than {MAX_SOURCES}{ELSE}")
        scenes.append(scene["sources"])
        splits.append(scene["split"])
    # The metric refuses what is no mapping, or no text, and says where.
    labels = {
        (name, label)
        for sources in scenes
        for source in sources
        if isinstance(source, dict)
        for name, label in source.items()
        if isinstance(label, str)
    }
    if len(labels) > MAX_LABELS:
        raise ValueError(f"The scenes have {len(labels):,} different labels, more than {MAX_LABELS}{ELSE}")
    return scenes, splits


def numbered_lines(text: str, name: str) -> Sequence[tuple[int, str]]:
    """The lines of a text that are not blank, with their numbers, or ValueError when there are none or too many."""
    lines = [(place, line) for place, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise ValueError(f"There are no {name}. Paste them, or fill in the example.")
    if len(lines) > MAX_ROWS:
        raise ValueError(f"There are {len(lines):,} {name}, more than {MAX_ROWS:,}{ELSE}")
    return lines


def as_text(message: str) -> str:
    """A message that may quote what was typed, short and safe: gradio takes messages for HTML."""
    shown = message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + "…"
    return html.escape(shown.encode("utf-8", "backslashreplace").decode())


def clear() -> str:
    """No result."""
    return ""


def example() -> tuple[str, str]:
    """Texts for both boxes: a partly additive encoder of 200 scenes, of one to three sources, in 8 dimensions."""
    rng = np.random.default_rng(0)
    labels = {"timbre_label": ("bell", "brass", "reed"), "pitch_label": ("low", "high"), "rate_label": ("slow", "fast")}
    vectors = {(name, label): rng.normal(size=8) for name, choices in labels.items() for label in choices}
    mean = rng.normal(size=8)
    rows, scenes = [], []
    for split in ["train"] * 140 + ["validation"] * 30 + ["test"] * 30:
        sources = [{name: str(rng.choice(labels[name])) for name in labels} for _ in range(rng.integers(1, 4))]
        z = mean + sum(vectors[pair] for source in sources for pair in source.items()) + rng.normal(0, 0.5, 8)
        rows.append(", ".join(f"{value:.3f}" for value in z))
        scenes.append(json.dumps({"split": split, "sources": sources}))
    return "\n".join(rows), "\n".join(scenes)


with gr.Blocks(title="A-TRE", analytics_enabled=False) as demo:
    gr.Markdown(INTRODUCTION)
    boxes = [
        gr.Textbox(label="Embeddings, a scene a line", lines=4, max_lines=8),
        gr.Textbox(label="Scenes, in JSON, a scene a line", lines=4, max_lines=8),
    ]
    steps = gr.Slider(
        100,
        MAX_STEPS,
        value=MAX_STEPS,
        step=100,
        label="Training steps",
        info="Of each of the two fits. The benchmark's are of 2,500, the metric's default; fewer show how it works.",
    )
    with gr.Row():
        fill = gr.Button("Fill in an example")
        run = gr.Button("Compute", variant="primary")
    table = gr.Markdown(min_height=100)
    gr.Markdown(WARNING)
    fill.click(example, outputs=boxes, api_visibility="private")
    # A refusal must not stand above the scores of what was there before.
    cleared = run.click(clear, outputs=table, api_visibility="private", show_progress="hidden", queue=False)
    cleared.then(compute, inputs=[*boxes, steps], outputs=table, api_name="compute")

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
