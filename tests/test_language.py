"""Words and constructions that no text of the project may use: README, pages, docstrings, comments, messages.

`python -m tests.test_language PATH...` prints each hit below some files or folders, as FILE:LINE.
Reference pages and the appendix of validity are generated: their texts are checked in the code that they come from.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
CODE = (*sorted(PYPROJECT["tool"]["setuptools"]["package-dir"].values()), "studies", "benchmarks", "examples")
TEXTS = {".md", ".html", ".yaml", ".py"}
GENERATED = ("docs/reference/", "docs/understand/validity-appendix.md")
BY_HAND = ("docs/reference/architecture.md",)

OTHER_BARS = "".join(rf"(?<!{word}\s)" for word in ("progress", "show", r"show\sa", "tqdm", "error", "color", "colour"))

PATTERNS = {
    # Words with a usual name in the field.
    rf"{OTHER_BARS}bars?(?! charts?)": "baseline; criterion",
    r"(?<!noise\s)floors?": "chance; trivial baseline",
    r"plain descriptions?": "acoustic baseline; text baseline",
    r"models? (?:that|which) (?:hears?|answers?)": "audio model; audio language model",
    r"(?:encoders?|models?) that gives? frames": "encoder with frame outputs",
    r"hears": "evaluates; represents",
    r"the store|kept answers?": "cache; cached answers",
    r"(?:the|our) box": "the bundled model",
    r"gain from listening": "audio gain",
    r"house|rooms?": "architecture; package",
    r"further kinds|kinds of composition": "extended tasks",
    r"among all comparisons": "adjusted p",
    r"strangers?(?:'s)?": "user; submitter; third party",
    # Constructions.
    r"stands? beside|standing beside|beside each": "report with",
    r"so many": "as many as; the number of",
    r"such an?": "this; a ... like this",
    r"of which|of whom": "a main clause",
    r"(?:that|those) of": "the noun again",
    r"(?:by|of) itself|by themselves": "without",
    r"in the place of": "instead of",
    r"(?:says?|tells?) nothing": "the fact",
    r"(?:is|are|was|were|be) (?:said|told)": "an active verb",
    r"where there (?:is|are)": "if there is",
    r"what (?:\S+ ){1,3}reach(?:es)?": "the score of",
    r"(?:has|have) learnt nothing|without having learnt": "untrained",
    r"of [^.;:|\n]{1,40} the question is": "for",
    r"the same for": "repeat the verb",
    r"likewise": "also",
}
"""Regular expressions of whole words, in small letters, each with what to write instead."""

ALLOWED = {
    ("dataset_builder/sounds/timbres.yaml", "bars?"): "of a marimba",
    ("encoders/loading/checkpoints.py", "bars?"): "of progress",
    ("encoders/networks/tiny_clap_words.yaml", "hears"): "a word of captions",
    ("evaluator/figures/models.py", "bars?"): "of a figure",
    ("evaluator/figures/samples.py", "the box"): "of a figure",
    ("evaluator/report/profiles.py", "bars?"): "of a figure",
    ("evaluator/report/templates/", "bars?"): "of a figure",
    ("evaluator/submissions/making.py", "bars?"): "of progress",
    ("leaderboard/plots.py", "the box"): "of a figure",
    ("metrics/a_tre.py", "bars?"): "of progress",
    ("metrics/answers.py", "bars?"): "of music",
    ("metrics/cards/a_tre.md", "bars?"): "of progress",
    ("metrics/composition.py", "bars?"): "of progress",
    ("support/progress.py", "bars?"): "of progress",
    ("tasks/shapes/questions.py", "bars?"): "of a figure",
    ("training/", "bars?"): "of progress",
    ("dataset_builder/", "rooms?"): "of sounds, or on a disk",
    ("dataset_builder/texts/reading.yaml", "hears"): "a word that captions may contain",
    ("dataset_builder/texts/wordings.yaml", ".*"): "wordings of questions, which are data",
    ("docs/how-to/hub.md", "strangers?"): "the one who runs a block, in a comment",
    ("docs/understand/differences.md", "rooms?"): "of sounds",
    ("evaluator/figures/samples.py", "rooms?"): "space of a page",
    ("metrics/cards/", "rooms?"): "of sounds, or between numbers",
    ("support/table.py", "rooms?"): "space of a page",
    ("training/features.py", "rooms?"): "on a disk",
}
"""Hits that are right: the start of a path and the words of the hit, with the reason."""

AT_MOST: dict[str, int] = {}
"""Hits by folder, which only fall: lower a number when texts are rewritten."""

WORDS = "|".join(PATTERNS).replace(" ", r"\s+")
PATTERN = re.compile(rf"(?<![\w`])(?:{WORDS})(?![\w`])")


def texts_of_python(source: str) -> str:
    """Blank out all but comments and string literals; positions and lines stay as they are."""
    starts = [0]
    for line in source.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    kept = list(re.sub(r"\S", "\0", source))
    depth = 0  # f-strings are one token up to Python 3.11, and several from 3.12 on
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = tokenize.tok_name[token.type]
        start, end = (starts[row - 1] + column for row, column in (token.start, token.end))
        if kind in {"FSTRING_START", "FSTRING_END"}:
            depth += 1 if kind == "FSTRING_START" else -1
            kept[start:end] = " " * (end - start)
        elif kind == "COMMENT" or (kind, depth) in {("STRING", 0), ("FSTRING_MIDDLE", 1)}:
            text = re.sub(r"^\w*(?:'''|\"\"\"|['\"#])|(?:'''|\"\"\"|['\"])$", blank, source[start:end])
            if kind == "STRING" and "f" in token.string[:2].lower():
                for _ in range(2):
                    text = re.sub(r"\{[^{}]*\}", lambda match: "\0" * len(match[0]), text)
            kept[start:end] = text
    return "".join(kept)


def blank(match: re.Match[str]) -> str:
    return re.sub(r"\S", " ", match[0])


def text_files() -> Iterator[Path]:
    """All files whose texts a user or a reader of the code meets."""
    paths = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    paths += [path for folder in CODE for path in (ROOT / folder).rglob("*") if path.suffix in TEXTS]
    for path in sorted(paths):
        name = path.relative_to(ROOT).as_posix()
        if name in BY_HAND or not name.startswith(GENERATED):
            yield path


def hits(path: Path) -> Iterator[tuple[int, str]]:
    """The line and the words of each hit in a file that is not allowed."""
    source = path.read_text("utf-8")
    name = path.relative_to(ROOT).as_posix()
    if path.suffix == ".html":
        source = re.sub(r"\{[{%#].*?[%}#]\}|<[^>]*>", blank, source)
    text = (texts_of_python(source) if path.suffix == ".py" else source).lower()
    for match in PATTERN.finditer(text):
        words = " ".join(match[0].split())
        if not any(name.startswith(start) and re.fullmatch(allowed, words) for start, allowed in ALLOWED):
            yield text.count("\n", 0, match.start()) + 1, words


def folder_of(path: Path) -> str:
    """The folder by which hits are counted; of a file in the root its name."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[: 2 if parts[0] == "docs" else 1])


def test_no_folder_has_more_of_the_worst_patterns_than_before():
    found: Counter[str] = Counter()
    for path in text_files():
        found[folder_of(path)] += len(list(hits(path)))
    more = [
        f"{folder}: {count}, at most {AT_MOST.get(folder, 0)} (see: python -m tests.test_language {folder})"
        for folder, count in found.items()
        if count > AT_MOST.get(folder, 0)
    ]
    assert not more, "\n".join(more)


def test_texts_of_python_are_comments_and_strings_alone():
    source = 'floor = f"so {such_a} "  # hears\nname = (f"so "\n    f"many", """of\nwhich""")\n'
    text = texts_of_python(source)
    assert len(text) == len(source)
    assert [" ".join(match[0].split()) for match in PATTERN.finditer(text)] == ["hears", "so many", "of which"]


def main(typed: list[str]) -> None:
    """Print each hit below some paths; without any, the number of each folder."""
    chosen = [Path(name).resolve() for name in typed]
    found: Counter[str] = Counter()
    for path in text_files():
        if chosen and not any(path.is_relative_to(folder) for folder in chosen):
            continue
        for line, words in hits(path):
            found[folder_of(path)] += 1
            if chosen:
                instead = next(instead for one, instead in PATTERNS.items() if re.fullmatch(one, words))
                print(f"{path.relative_to(ROOT)}:{line}: {words!r}: {instead}")
    for folder, count in sorted(found.items()):
        print(f"{folder}: {count}")


if __name__ == "__main__":
    main(sys.argv[1:])
