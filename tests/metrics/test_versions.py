"""A change of a metric's code or constants needs a new version, and what metrics share stays the same in all."""

from __future__ import annotations

import ast
import hashlib

import pytest

from audio_compositionality.metrics import list_metrics, metric_file
from audio_compositionality.tasks.metric_files import describe_metric

DIGESTS = {
    ("a_coat", 1): "301ae275a9420351184f7ca6b31b6a301d636f95cf0a6f9834c0130f21d7dc98",
    ("a_coat_instances", 1): "e34d835844f3bc44657d787c758317da4bca18ed6723355c0d6acdd2f5de9afe",
    ("a_tre", 1): "370ec691e21335131e7b09d6ffcdce582c875fcd957ba7a2756723e68a729e5e",
    ("a_tre_held_out", 1): "7a9dd214b10e4d19de1ff52f5bfe310d904d9582cf893cfbf7ac7a110d970938",
    ("audio_text_retrieval", 1): "7f6679bf3195c287ecc7899eb6606bcf398c33fb22852b39206153eca20060a0",
    ("binding", 1): "8133b471c96bfeae76f6c980a564f3ef975a4ff18a565c53d22c5304a339b629",
    ("comp_a", 1): "91307c55333453a29bdaf7312438985714cff58a6dd3e15239194e6fe12a70ec",
    ("equivariance", 2): "21662391e1090887faf5bd4eff9a98ff7cf528083716267679992889ef2f8939",
    ("informativeness", 1): "8bc34a3483653984df030868fcadaf386c823e152b28b70791a501ac75588caa",
    ("polybench", 2): "f288c9a0f137e4d8574956f04517aef2e53d446a42c771d3bcab52d737df93b2",
    ("disentanglement", 2): "e029cf763f4c3511c7a0d4ed445f5c6653c694f62cdc7bf01109dce5ebdf88ed",
    ("invariance", 2): "9a6a30df38e8642d021150ac0a1f5fc09cfcacf832b8757bbed372b5f82b3976",
    ("zero_shot_audio", 1): "3b18af468ef6ba3c1c64845793afd43d7135a4d81cc60bd142a87a2fb3600d19",
}
"""Of the code of each metric, as `digest_of` computes it."""

WORDS = {"VERSION", "MEASURES", "PAGE", "_DESCRIPTION", "_CITATION", "_INPUTS", "example"}
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


def digest_of(text: str) -> str:
    return hashlib.sha256(repr([canonical(node) for node in statements(text)]).encode()).hexdigest()


def test_every_metric_has_its_digest() -> None:
    versions = {(name, describe_metric(name).version) for name in list_metrics()}
    assert not {name for name, _ in DIGESTS} - set(list_metrics()), "DIGESTS has metrics that are there no longer"
    lines = [f'    ("{name}", {n}): "{digest_of(metric_file(name).read_text("utf-8"))}",'
             for name, n in sorted(versions - set(DIGESTS))]  # fmt: skip
    assert not lines, "Let DIGESTS in this test hold, in place of older versions:\n" + "\n".join(lines)
    assert set(DIGESTS) == versions, "DIGESTS has versions of metrics that are there no longer"


@pytest.mark.parametrize("name", list_metrics())
def test_code_is_that_of_its_version(name: str) -> None:
    version = describe_metric(name).version
    digest = digest_of(metric_file(name).read_text("utf-8"))
    if not any(name == metric for metric, _ in DIGESTS):
        pytest.fail(f'{name} is new: add this line to DIGESTS in this test:\n    ("{name}", {version}): "{digest}",')
    assert digest == DIGESTS.get((name, version)), (
        f"The code of {name} has changed. If any number that it gives can change, raise VERSION in {name}.py, and say "
        f'in the changelog what changes. Then let DIGESTS in this test hold ("{name}", VERSION): "{digest}".'
    )


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (("1  # one", "1"), True),
        (('"""Sum."""', '"""Another text."""'), True),
        (('"bad x"', 'f"bad {x}"'), True),
        (('{"s": {}}', '{"s": {"digits": 2}}'), True),
        (("return x + ONE", "return x - ONE"), False),
        (("ONE = 1", "ONE = 2"), False),
        (("x is None", "x is not None"), False),
    ],
)
def test_digest_is_of_code_and_constants_alone(change: tuple[str, str], same: bool) -> None:
    text = (
        'ONE = 1  # one\nMEASURES = {"s": {}}\ndef f(x):\n    """Sum."""\n'
        '    if x is None:\n        raise ValueError("bad x")\n    return x + ONE\n'
    )
    assert change[0] in text
    assert (digest_of(text) == digest_of(text.replace(*change))) == same


def test_what_modules_share_is_the_same() -> None:
    """`evaluate` copies a module's siblings only from its own folder: a file for all metrics would be missing there."""
    definitions: dict[str, dict[str, str]] = {}
    for name in list_metrics():
        for node in statements(metric_file(name).read_text("utf-8")):
            for defined in names_of(node):
                definitions.setdefault(defined, {})[name] = ast.dump(node)
    shared = {defined: nodes for defined, nodes in definitions.items() if len(nodes) > 1}
    assert {"_matrix", "_retrieval", "_std", "_unit_rows", "TIE"} <= set(shared)
    different = {defined: sorted(nodes) for defined, nodes in shared.items() if len(set(nodes.values())) > 1}
    assert not different, (
        "Of one name, but not the same in these metrics; copy it word for word, or call it something else."
    )
