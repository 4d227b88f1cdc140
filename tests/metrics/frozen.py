"""Digests of the code of all metrics, beside their versions, in ``frozen.json``.

``python -m tests.metrics.frozen`` writes the file anew, after a change of code that changes no number, or a new
version.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from audio_compositionality.metrics import list_metrics, metric_file, module_files
from audio_compositionality.tasks.metric_files import describe_metric

FILE = Path(__file__).with_suffix(".json")

WORDS = {"VERSION", "MEASURES", "_CITATION"}
"""What changes no number."""


def names_of(node: ast.stmt) -> set[str]:
    """What a statement at the top of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def canonical(node: object) -> object:
    """Code without texts for people: no docstrings, comments or messages of errors; the same in each Python."""
    if isinstance(node, ast.Raise):
        return "raise"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return None
    if isinstance(node, ast.AST):
        passed_over = {"ctx", "kind", "type_comment", "type_params"}
        fields = [(name, canonical(value)) for name, value in ast.iter_fields(node) if name not in passed_over]
        return (type(node).__name__, *fields)
    if isinstance(node, list):
        return tuple(part for part in map(canonical, node) if part is not None)
    return repr(node)


def statements(text: str) -> list[ast.stmt]:
    return [node for node in ast.parse(text).body if not names_of(node) & WORDS]


def digest_of(text: str, siblings: Iterable[str] = ()) -> str:
    """Of the statements of a module, and of those of its siblings that they need, in whatever file these stand."""
    own = statements(text)
    shared = {name: node for sibling in siblings for node in statements(sibling) for name in names_of(node)}
    needed: dict[str, ast.stmt] = {}
    waiting = list(own)
    while waiting:
        for part in ast.walk(waiting.pop()):
            name = part.id if isinstance(part, ast.Name) else ""
            if name in shared and name not in needed:
                needed[name] = shared[name]
                waiting.append(shared[name])
    code = [node for node in own if not isinstance(node, ast.Import | ast.ImportFrom)]
    code += [needed[name] for name in sorted(needed)]
    return hashlib.sha256(repr([canonical(node) for node in code]).encode()).hexdigest()


def digest_of_metric(name: str) -> str:
    own, *siblings = (content.decode() for content in module_files(metric_file(name)).values())
    return digest_of(own, siblings)


def current() -> dict[str, dict[str, int | str]]:
    """Version and digest of each metric, as the code is now."""
    return {
        name: {"version": describe_metric(name).version, "digest": digest_of_metric(name)} for name in list_metrics()
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(current(), indent=2) + "\n", "utf-8")
