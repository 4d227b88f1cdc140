"""A change of a metric's code or constants needs a new version, also of those that it shares with others."""

from __future__ import annotations

import ast
import hashlib
import subprocess
import sys
from collections.abc import Iterable

import pytest

from audio_compositionality.metrics import list_metrics, metric_file, module_files
from audio_compositionality.tasks.metric_files import describe_metric

DIGESTS = {
    ("a_coat", 1): "142bcdd3d00db1b01e5dd60cfe1566672dfa94cb3f4a6df2cdc8a579914c0424",
    ("a_coat_instances", 1): "49ad0e2a96a0f557afe175645d946c83001c730a8c2ba3dd4165869c4aba6653",
    ("a_tre", 1): "575308666a1e564528dd6314517b9ee65a2869b9b7f0280dcb9ca2ff7ef2c501",
    ("a_tre_held_out", 1): "f7e6e700fda80d9a051ee87d6d8b31b281e7a3c2a10f5f6cad4d6e1b202a85e9",
    ("audio_questions", 1): "ef9a2d7eabb33992a98cc93d1d253ff65b1fc17bbfab4a1702dfb389a4a88978",
    ("audio_text_retrieval", 1): "4c45e5e6d6f3446255944deadf80d888e256dc046c85b7dcf7c6a2a51130dbbe",
    ("binding", 1): "ee08ab3582d3f54b151e697fc7e6251019dae516c5dbe31a40f4e10f35e1fd84",
    ("comp_a", 1): "6fb9403e07d319bb76ce476181c9b10d5190739ccd26d6ee176256aa8bc116e9",
    ("composed_retrieval", 1): "f304f84c3da94977b2d92a8b323251f348f7022b5d861dab8f494b4726daa327",
    ("equivariance", 2): "f6b12a12fc2c29ccb4d6902d36a9ade6212ce4b63419cbe96addcc87eeff98dd",
    ("informativeness", 1): "ae306dfd3e541fd57fd568e73cf9e3063b716d60334dc08c33b82613b061afa4",
    ("negation", 1): "e32ad101f48b1327cf3f99c2898cd34bbc5bd9f9abc155c65223ea4d6ecdc5a9",
    ("polybench", 2): "aea83f655c723fc05ea8f269cb0668aea76321d066e5c95ca34f18e7cd5e9f40",
    ("count_instances", 1): "45cc31c604247e3983b30b964cdb32711a10bc3f6ed688df2c55048bb721a61c",
    ("disentanglement", 2): "fbc6a63f071c3ed24454e3ab18dddc8a8b4d40b58a4a83959f5b523026b18181",
    ("invariance", 2): "9d46ef33f28d5948ab83b8db13be8fa877a726aa252a558bccff75f4926c4d58",
    ("when", 1): "20a3f4b41546a35142e76e070609262e2c18df735153f4689d1c27ede446bc49",
    ("zero_shot_audio", 1): "01a03015ff2343df89cdc0d0ff2007b26a91ba9404e5ab6dc8d320e4fbf7d01c",
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


def test_every_metric_has_its_digest() -> None:
    versions = {(name, describe_metric(name).version) for name in list_metrics()}
    assert not {name for name, _ in DIGESTS} - set(list_metrics()), "DIGESTS has metrics that are there no longer"
    lines = [f'    ("{name}", {n}): "{digest_of_metric(name)}",'
             for name, n in sorted(versions - set(DIGESTS))]  # fmt: skip
    assert not lines, "Let DIGESTS in this test hold, in place of older versions:\n" + "\n".join(lines)
    assert set(DIGESTS) == versions, "DIGESTS has versions of metrics that are there no longer"


@pytest.mark.parametrize("name", list_metrics())
def test_code_is_that_of_its_version(name: str) -> None:
    version = describe_metric(name).version
    digest = digest_of_metric(name)
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


def test_measures_that_code_makes_need_numpy_alone() -> None:
    names = ["audio_text_retrieval", "comp_a", "disentanglement", "polybench"]
    code = (
        "import sys; from audio_compositionality.tasks.metric_files import describe_metric\n"
        f"for name in {names}:\n"
        "    describe_metric(name)\n"
        "    assert f'audio_compositionality.metrics.{name}' in sys.modules\n"
        "print(*sorted({'datasets', 'evaluate', 'scipy', 'sklearn', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
