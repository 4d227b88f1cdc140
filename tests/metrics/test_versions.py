"""A change of a metric's code or constants needs a new version, also of those that it shares with others."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from audio_compositionality.metrics import list_metrics

from .frozen import FILE, current, digest_of


def test_code_is_that_of_its_version() -> None:
    frozen, now = json.loads(FILE.read_text("utf-8")), current()
    changed = [name for name in sorted(now | frozen) if now.get(name) != frozen.get(name)]
    assert not changed, (
        f"The code or the version of {', '.join(changed)} is not that of {FILE.name}. If any number that a metric "
        "gives can change, raise its VERSION, and say in the changelog what changes. Then run: "
        "python -m tests.metrics.frozen"
    )


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (('"""Sum."""', '"""Another text."""'), True),
        (('"bad x"', 'f"bad {x}"'), True),
        (('{"s": {}}', '{"s": {"digits": 2}}'), True),
        (("return x + ONE", "return x - ONE"), False),
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
    code = (
        "import sys; from audio_compositionality.tasks.metric_files import describe_metric\n"
        f"for name in {list_metrics()}:\n"
        "    describe_metric(name)\n"
        "assert any(name.startswith('audio_compositionality.metrics.') for name in sys.modules)\n"
        "print(*sorted({'datasets', 'evaluate', 'scipy', 'sklearn', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
