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
    ("a_coat", 1): "3b19c109341f6dc89cd9561cd911a4349eaca6a401d1d6131aac91cb151649a4",
    ("a_coat_instances", 1): "84b06c256e15cdb8cb9283ae31166a90eb3f37ebc1f2c6b7cecb347ef250df25",
    ("a_tre", 1): "3337b797fc4bbf17bc56e90ba9e67d4c833563171734ab6706695fd4f5e7e7c8",
    ("a_tre_held_out", 1): "60783b153dc96151ef58d7b9daf17fb0320c453625f66447de331629f4a72c64",
    ("audio_text_retrieval", 1): "2f001baef1646ea0e647d9fac15913afdba04841385410f2fab0a77dbc841685",
    ("binding", 1): "5ab2f9a69e0f082cb59abad227bacf0a976f40359c47a4a183a4d67264499d85",
    ("comp_a", 1): "2f0bc09a5168db909d574cd242e96ac10e5873b54f7c2bd7ab49032a0879e2fa",
    ("equivariance", 2): "0961b798e95ebb88e49d2de7adcea6918b60e372fe4a33b7320cb3274a9245ac",
    ("informativeness", 1): "ffe89e73da84ba9e8a8c6e1b8751de7f1c0912dc37617ae678a046a29d838cbc",
    ("polybench", 2): "25f3db187af92a3fbaba87313e5d96048ceb53f87a31d71f31e95ca386a0177d",
    ("disentanglement", 2): "632e060f90aded72a38d391f30b71791c8718504839cd367ecdc1cc0629795bf",
    ("invariance", 2): "dae50165e7ca6d8c1f69e07051faa819f2714f84ebe369a43d2ec47171feb729",
    ("zero_shot_audio", 1): "391f646a9dcadffaf56e34db2b22242e495e287d9e3a5101431db42ebd13c5d1",
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


SHARED = "def half(x):\n    return x / TWO\nTWO = 2\ndef unused(x):\n    return x\n"


@pytest.mark.parametrize(
    ("change", "same"),
    [(("TWO = 2", "TWO = 3"), False), (("x / TWO", "x * TWO"), False), (("return x\n", "return -x\n"), True)],
)
def test_digest_is_of_what_siblings_have_for_the_metric(change: tuple[str, str], same: bool) -> None:
    text = "from .shared import half\ndef f(x):\n    return half(x) + 1\n"
    assert change[0] in SHARED
    assert (digest_of(text, [SHARED]) == digest_of(text, [SHARED.replace(*change)])) == same
    assert digest_of(text, [SHARED]) != digest_of(text.replace("half(x)", "x"), [SHARED])


@pytest.mark.parametrize("name", ["audio_text_retrieval", "comp_a", "disentanglement", "polybench"])
def test_measures_that_code_makes_need_numpy_alone(name: str) -> None:
    code = (
        "import sys; from audio_compositionality.tasks.metric_files import describe_metric\n"
        f"describe_metric({name!r})\n"
        f"print('audio_compositionality.metrics.{name}' in sys.modules)\n"
        "print(*sorted({'datasets', 'evaluate', 'scipy', 'sklearn', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]
