"""The Space of a metric: a form that scores pasted inputs, made from the metric's own description.

``python app.py`` starts it for the metric module beside this file, ``python app.py MODULE`` for another. The boxes are
the metric's features, the table is its ``MEASURES``. Where it has them, its ``PAGE`` gives words, limits and further
boxes, and its ``example()`` fills the boxes. Nothing else of the project is needed.
"""

from __future__ import annotations

import html
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import datasets
import evaluate
import gradio as gr

MAX_ROWS = 2_000
MAX_CHARACTERS = 5_000_000
"""Limit of all boxes together."""

ELSEWHERE = ": run evaluate.load on your own machine instead."
"""The end of messages about these limits."""

MAX_MESSAGE = 500
"""Characters shown of an error, which may quote what was typed."""

LIMITS = f"""\
At most {MAX_ROWS:,} rows, and {MAX_CHARACTERS // 1_000_000} MB of text in all; nothing is kept. For more,
`evaluate.load` runs the same code on your own machine, see the card of this Space.
"""

CSS = """
td:nth-child(-n+2) { white-space: nowrap; font-variant-numeric: tabular-nums; }
@media (max-width: 640px) {
  .prose table tr { display: grid; grid-template-columns: 1fr auto; }
  .prose table th, .prose table td { border: 0; padding: 0.25rem 0.5rem; }
  .prose table th:nth-child(3), .prose table td:nth-child(3) { grid-column: 1 / -1; }
}
"""
"""A number is not broken over lines; where there is no room beside it, its description stands below it."""


# ----- texts of boxes


def read_vector(line: str) -> list[float]:
    """The numbers of a line, separated by commas or blanks, or ValueError."""
    try:
        return [float(word) for word in line.replace(",", " ").split()]
    except ValueError as error:
        word = str(error).removeprefix("could not convert string to float: ")
        raise ValueError(f"{word} is not a number. Give numbers separated by commas or spaces.") from None


def read_number(line: str) -> float:
    """The only number of a line, or ValueError."""
    numbers = read_vector(line)
    if len(numbers) != 1:
        raise ValueError(f"there are {len(numbers)} numbers, but 1 is needed.")
    return numbers[0]


def read_json(line: str) -> Any:
    """The list or object of a line, or ValueError."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is not JSON: {error}.") from None
    if not isinstance(value, list | dict):
        raise ValueError("the JSON must be a list [...] or an object {...}.")
    return value


def read_entry(line: str) -> str:
    """A line of a column of numbers or words: only all lines together decide which."""
    return line.strip()


def numbers_or_words(entries: list[str]) -> list[Any]:
    """Numbers where all entries are numbers, else the entries."""
    try:
        return [float(entry) for entry in entries]
    except ValueError:
        return entries


def write_vector(values: Iterable[float]) -> str:
    """Numbers as a line."""
    return ", ".join(map(write_number, values))


def write_number(value: float) -> str:
    """A number as text, with six digits."""
    return f"{value:.6g}"


def write_entry(value: float | str) -> str:
    """A number or a word as text."""
    return value if isinstance(value, str) else write_number(value)


def write_json(value: Any) -> str:
    """A list, an object or an array as a line."""
    return json.dumps(value, default=lambda array: array.tolist())


KINDS: Mapping[str, tuple[Callable[[str], Any], Callable[[Any], str]]] = {
    "numbers": (read_number, write_number),
    "vectors": (read_vector, write_vector),
    "lists": (read_json, write_json),
    "words": (str.strip, str),
}
"""How a line of an optional box is read and written, by the kind that the metric's page says; "numbers" by default."""


@dataclass(frozen=True)
class Box:
    """A text box of one argument of the metric, one value per line.

    Attributes:
        name: of the argument.
        label: what the page says above it.
        read: the value of a line; raises ValueError.
        write: the line of a value.
        optional: whether it may be left empty.
    """

    name: str
    label: str
    read: Callable[[str], Any]
    write: Callable[[Any], str]
    optional: bool

    @classmethod
    def of(cls, name: str, label: str, *features: Any, kind: str = "numbers") -> Box:
        """The box of a feature of the metric, of one kind or more; without kinds an optional one of `KINDS`."""
        feature = features[0] if features else None
        if len({str(kind) for kind in features}) > 1:
            return cls(name, label, read_entry, write_entry, optional=False)
        if feature is None:
            return cls(name, label, *KINDS[kind], optional=True)
        if isinstance(feature, datasets.Value):
            if feature.dtype == "string":
                return cls(name, label, str.strip, str, optional=False)
            return cls(name, label, read_number, write_number, optional=False)
        item = getattr(feature, "feature", None)
        if isinstance(item, datasets.Value) and item.dtype != "string":
            return cls(name, label, read_vector, write_vector, optional=False)
        return cls(name, label, read_json, write_json, optional=False)

    def values(self, text: str, limits: Mapping[str, int]) -> list[Any]:
        """The values of the lines that are not blank, or ValueError, which says the line."""
        lines = [(place, line) for place, line in enumerate(text.splitlines(), 1) if line.strip()]
        if not lines and not self.optional:
            raise ValueError(f"{self.name} is empty. Paste it, or fill in the example.")
        if len(lines) > MAX_ROWS:
            raise ValueError(f"{self.name} has {len(lines):,} rows, more than {MAX_ROWS:,}{ELSEWHERE}")
        values = []
        for place, line in lines:
            try:
                values.append(self.read(line))
            except ValueError as error:
                raise ValueError(f"{self.name}, line {place}: {error}") from None
            self._check_size(values, place, limits)
        count = len(set(texts_of(values))) if self.read is read_json else 0
        self._refuse_more(count, "different texts", limits.get("words"))
        return numbers_or_words(values) if self.read is read_entry else values

    def _check_size(self, values: list[Any], place: int, limits: Mapping[str, int]) -> None:
        """Raise ValueError when the last value, of line `place`, does not fit the first or is too long."""
        if self.read is read_vector:
            if len(values[-1]) != len(values[0]):
                raise ValueError(
                    f"{self.name}, line {place} has {len(values[-1])} numbers, but the first row {len(values[0])}."
                )
            self._refuse_more(len(values[-1]), "columns", limits.get("columns"))
        elif self.read is read_json:
            self._refuse_more(len(values[-1]), f"items in line {place}", limits.get("items"))

    def _refuse_more(self, count: int, things: str, most: int | None) -> None:
        if most is not None and count > most:
            raise ValueError(f"{self.name} has {count:,} {things}, more than {most:,}{ELSEWHERE}")

    def text(self, values: Iterable[Any]) -> str:
        """The text that `values` would read."""
        return "\n".join(map(self.write, values))


def texts_of(value: Any) -> Iterator[tuple[str, str]]:
    """Every text in lists and objects, with its key (empty in lists)."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        key, item = waiting.pop()
        if isinstance(item, str):
            yield key, item
        elif isinstance(item, dict):
            waiting.extend(item.items())
        elif isinstance(item, list):
            waiting.extend(("", member) for member in item)


def kinds_of(metric: Any) -> dict[str, list[Any]]:
    """The kinds that each feature of a metric can be of; `evaluate` takes the first of its alternatives that fits."""
    alternatives = metric.features if isinstance(metric.features, list) else [metric.features]
    return {name: [features[name] for features in alternatives] for name in alternatives[0]}


# ----- the form


class Form:
    """The actions of a metric's page, without the page."""

    def __init__(self, path: Path) -> None:
        """Load the metric of a module, which has ``MEASURES``, and may have ``PAGE`` and ``example``."""
        self.metric = evaluate.load(str(path))
        module = importlib.import_module(type(self.metric).__module__)
        page: Mapping[str, Any] = getattr(module, "PAGE", {})
        self.features: Mapping[str, Sequence[Any]] = kinds_of(self.metric)
        inputs = page.get("inputs", {name: name for name in self.features})
        self.measures: Mapping[str, Mapping[str, Any]] = module.MEASURES
        self.introduction: str = page.get("introduction", f"# {self.title}\n\n{self.metric.description}")
        self.warning: str = page.get("warning", "")
        self.limits: Mapping[str, int] = page.get("limits", {})
        self.options: Mapping[str, Mapping[str, Any]] = page.get("options", {})
        kinds: Mapping[str, str] = page.get("kinds", {})
        # Inputs whose length differs from the common length of the features.
        needed: Sequence[str] = page.get("needed", ())
        boxes = [
            Box.of(name, label, *self.features.get(name, ()), kind=kinds.get(name, "numbers"))
            for name, label in inputs.items()
        ]
        self.boxes = [replace(box, optional=box.optional and box.name not in needed) for box in boxes]
        self._example: Callable[[], Mapping[str, Any]] | None = getattr(module, "example", None)

    @property
    def title(self) -> str:
        """The name of the metric for people: the heading of its score."""
        return str(next(iter(self.measures.values()))["heading"])

    def compute(self, *given: Any) -> str:
        """Score the typed inputs.

        Args:
            given: the texts of the boxes, then the values of the options; further arguments are ignored.

        Returns:
            a table in Markdown of name, value and meaning: the score, then its controls.

        Raises:
            gr.Error: the text is too long or cannot be read, or the metric refuses it.
        """
        texts = dict(zip((box.name for box in self.boxes), given, strict=False))
        options = dict(zip(self.options, given[len(self.boxes) :], strict=False))
        try:
            result = self.metric.compute(**self._inputs(texts), **self._checked(options))
        except (ValueError, FloatingPointError, RecursionError) as error:
            raise gr.Error(as_text(str(error)), print_exception=False) from None
        return self._table(result)

    def _inputs(self, texts: Mapping[str, str]) -> dict[str, list[Any]]:
        characters = sum(map(len, texts.values()))
        if characters > MAX_CHARACTERS:
            raise ValueError(
                f"There are {characters:,} characters, but this form takes {MAX_CHARACTERS:,} at most{ELSEWHERE}"
            )
        inputs = {box.name: box.values(texts[box.name], self.limits) for box in self.boxes}
        return {box.name: inputs[box.name] for box in self.boxes if inputs[box.name] or not box.optional}

    def _checked(self, values: Mapping[str, Any]) -> dict[str, int]:
        for name, value in values.items():
            least, most = self.options[name]["least"], self.options[name]["most"]
            if not least <= value <= most:
                raise ValueError(f"{name} must be {least:,} to {most:,}; got {value}.")
        return {name: int(value) for name, value in values.items()}

    def _table(self, result: Mapping[str, Any]) -> str:
        """The result in Markdown; no text of the user stands in it."""
        rows = [
            f"| `{name}` | {value_text(result[name])} | {measure['meaning']} |"
            for name, measure in self.measures.items()
        ]
        return "\n".join(["| result | value | what it is |", "| --- | --- | --- |", *rows])

    def example(self) -> list[str]:
        """Texts for the boxes: those of the metric's example, empty where it has none."""
        values = {} if self._example is None else self._example()
        return [box.text(values.get(box.name, ())) for box in self.boxes]


def value_text(value: float | bool | None) -> str:
    """A value of the result as text."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:.6f}"


def as_text(message: str) -> str:
    """A message that may quote what was typed, short and safe: gradio takes messages for HTML."""
    shown = message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + "…"
    return html.escape(shown.encode("utf-8", "backslashreplace").decode())


# ----- the page


def with_arguments_named(form: Form) -> Callable[..., str]:
    """`Form.compute` with the names of its arguments, which the page's API shows, and gradio's bar for fits."""

    def compute(*given: Any) -> str:
        return form.compute(*given)

    names = [*(box.name for box in form.boxes), *form.options]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in names]
    bar = inspect.Parameter("progress", kind, default=gr.Progress(track_tqdm=True))
    compute.__signature__ = inspect.Signature([*parameters, bar])  # type: ignore[attr-defined]
    return compute


def build_page(form: Form) -> gr.Blocks:
    """The page of a metric."""
    page: gr.Blocks = gr.Blocks(title=form.title, analytics_enabled=False)
    with page:
        gr.Markdown(form.introduction + "\n" + LIMITS)
        boxes: list[Any] = []
        for start in range(0, len(form.boxes), 2):
            with gr.Row():
                boxes += [
                    gr.Textbox(label=box.label, lines=4, max_lines=8, min_width=300)
                    for box in form.boxes[start : start + 2]
                ]
        options = [
            gr.Slider(
                option["least"], option["most"], value=option["most"], step=option["least"], label=option["label"]
            )
            for option in form.options.values()
        ]
        with gr.Row():
            fill = gr.Button("Fill in an example")
            run = gr.Button("Compute", variant="primary")
        table = gr.Markdown(min_height=100)
        gr.Markdown(form.warning)
        fill.click(form.example, outputs=boxes, api_visibility="private")
        # A refusal must not stand above the scores of earlier inputs.
        cleared = run.click(str, outputs=table, api_visibility="private", show_progress="hidden", queue=False)
        cleared.then(with_arguments_named(form), inputs=[*boxes, *options], outputs=table, api_name="compute")
    return page


def metric_beside(folder: Path) -> Path:
    """The only module of a folder that describes a metric's numbers, or SystemExit."""
    modules = [path for path in folder.glob("*.py") if "\nMEASURES = " in path.read_text("utf-8")]
    if len(modules) != 1:
        raise SystemExit(f"{folder} must hold one module with MEASURES; it has {len(modules)}. Give a metric's module.")
    return modules[0]


def main() -> None:
    """Start the page."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else metric_beside(Path(__file__).parent)
    build_page(Form(path.resolve())).queue(max_size=20).launch(
        theme=gr.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]),
        css=CSS,
        # The page is made in the browser, as it is tested, not by a second server of Node.js.
        ssr_mode=False,
        # The form takes no file, and typed inputs are stored nowhere, not in the browser either.
        max_file_size=1,
        run_history=False,
        footer_links=["api", "gradio", "settings"],
    )


if __name__ == "__main__":
    main()
