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
    ("a_coat", 1): "4d4a4d0092e648a0aa8449120090f55fbca9c03ea7bbf8aa25614f7e4786d277",
    ("a_coat_instances", 1): "e00c1ca20da4cd2abd77e0c1635ebfcf0eab282572a2a91f2376aa55e0de4f97",
    ("a_tre", 1): "21c7e17f89e74efb1428c73a9de4bd545300a8e0d483c76c2960f087b270cb75",
    ("a_tre_held_out", 1): "1f0a61d32a6822bad006308a1d34148200b1c7c227a933d661eed4175cba46b7",
    ("audio_questions", 1): "de7a999f41b334fa7e20a3f0beba834cb1ac7372e70378f613a06615fc5176a4",
    ("audio_text_retrieval", 1): "c62d8d178c15d3bc488b7f6e44572e140cbf7d8b8162d43e3e661f786b196ab5",
    ("binding", 1): "5ab2f9a69e0f082cb59abad227bacf0a976f40359c47a4a183a4d67264499d85",
    ("comp_a", 1): "c19283eb1e442005371cfdcea23f36bc165c54b3552804754a189cb818c51dd6",
    ("composed_retrieval", 1): "97d55ef4a5aadf598ef27cd3898d99d22c87794630358a8db69f59d30cdba4b6",
    ("equivariance", 2): "84f4e203b628ae497ee0b662720607011446965cbbafb3811a133be6f28fe9b0",
    ("informativeness", 1): "6584ed66f8a7d9601bc30b9d5e68d944534ad9244908b0adc50aa1efda2a797d",
    ("negation", 1): "f140c8c25925155dcadab31e890ab8077d325b83db837681c9e145b5f990f96f",
    ("polybench", 2): "e94370d160ea9779af6608b0f630f84ea624f82eb448376b469a7dd145cbe1a5",
    ("count_instances", 1): "b44cdcce1c87d63f92057ebb3f8a390f264e82beb68fcf6e36c9a146f1667f1a",
    ("disentanglement", 2): "19c392b6b27bad5417519cae02e7fd3fac125da912fd9d05696f072dff1735fb",
    ("invariance", 2): "906da334bee633fdd527c019bbd314d3f389356c492ed6ae3cb0c2b295eb030a",
    ("when", 1): "a291a5ab1c8271bb98e69c04ea44ffd4e3c22aef3664ff222761dcdca1a7658e",
    ("zero_shot_audio", 1): "d238d37afc0cd25db701c9101e3859d6c56612b9b7d7bda327c140c058f611a8",
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
