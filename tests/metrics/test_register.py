"""Registration with `evaluate`: from an empty folder, offline, with a cache of its own."""

import os
import subprocess
import sys
from pathlib import Path

import evaluate.config
import pytest
from evaluate.loading import CachedEvaluationModuleFactory, get_imports

from audio_compositionality import metrics
from audio_compositionality.metrics import METRICS, register

LOAD = """
import doctest, os, sys
import evaluate
from audio_compositionality.metrics import register

for name, path in zip(("a_coat", "a_tre"), register()):
    metric = evaluate.load(name)
    assert sys.modules[type(metric).__module__].__file__ == str(path)
    examples = doctest.DocTestParser().get_doctest(metric.inputs_description, {}, name, None, None)
    outcome = doctest.DocTestRunner().run(examples)
    assert outcome.attempted > 3 and outcome.failed == 0, outcome
assert os.listdir() == []
os.chdir(sys.argv[1])
print(*(evaluate.load(f"metrics/{name}").name for name in ("a_coat", "a_tre")))
"""


def python(*arguments, cwd, **environment):
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    offline = {"HF_EVALUATE_OFFLINE": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=inherited | offline | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluate.config, "HF_MODULES_CACHE", tmp_path / "modules")
    return tmp_path / "modules" / "evaluate_modules"


def chosen(name, cache):
    """The module that `evaluate` would load for this name."""
    module = CachedEvaluationModuleFactory(f"evaluate-metric--{name}", dynamic_modules_path=str(cache)).get_module()
    return cache / "metrics" / f"evaluate-metric--{name}" / module.hash / f"{name}.py"


def test_bare_names_load_anywhere_offline_and_a_clone_loads_by_path(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    clone = str(Path(metrics.__file__).parents[1])
    printed = python("-c", LOAD, clone, cwd=empty, HF_HOME=str(tmp_path / "home"))
    assert printed.split() == ["a_coat", "a_tre"]
    assert len(list((tmp_path / "home" / "modules").rglob("evaluate-metric--a_*/*/a_*.py"))) == 2


def test_command_respects_the_modules_cache_and_says_where(tmp_path):
    environment = {"HF_HOME": str(tmp_path / "home"), "HF_MODULES_CACHE": str(tmp_path / "modules")}
    lines = python("-m", "audio_compositionality.metrics", cwd=tmp_path, **environment).splitlines()
    for name, line in zip(METRICS, lines, strict=True):
        path = Path(line.removeprefix(f'evaluate.load("{name}") now finds '))
        assert path.is_file()
        assert path.is_relative_to(tmp_path / "modules" / "evaluate_modules")


def test_importing_writes_nothing(tmp_path):
    python("-c", "import audio_compositionality.metrics", cwd=tmp_path, HF_HOME=str(tmp_path / "home"))
    assert not list(tmp_path.iterdir())


def test_running_again_changes_nothing(cache):
    paths = register()
    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*.py") if path.name != "__init__.py"}
    assert register() == paths
    after = {path: path.stat().st_mtime_ns for path in cache.rglob("*.py") if path.name != "__init__.py"}
    assert before == after
    assert sorted(before) == sorted(paths)
    assert [path.read_bytes() for path in paths] == [
        (Path(metrics.__file__).parent / name / f"{name}.py").read_bytes() for name in METRICS
    ]


@pytest.mark.parametrize("age", [-1000, 0, 1000])
def test_own_version_is_chosen_whatever_the_date_of_another(cache, age):
    ours = register()[0]
    other = ours.parents[1] / ("0" * 64) / "a_coat.py"
    other.parent.mkdir()
    other.write_text("another version")
    date = ours.stat().st_mtime + age
    os.utime(other, (date, date))
    register()
    assert chosen("a_coat", cache) == ours


def test_upgrade_and_downgrade_take_effect(cache, tmp_path):
    source = tmp_path / "a_coat.py"
    for code in ("first", "second", "first"):
        source.write_text(code)
        metrics._install(source, cache)
        assert chosen("a_coat", cache).read_text() == code


def test_damaged_copy_is_repaired(cache):
    path = register()[1]
    path.write_text("half a fi")
    register()
    assert path.read_bytes() == (Path(metrics.__file__).parent / "a_tre" / "a_tre.py").read_bytes()


@pytest.mark.parametrize(
    ("name", "allowed"),
    [("a_coat", {"numpy", "evaluate", "datasets"}), ("a_tre", {"numpy", "torch", "evaluate", "datasets", "tqdm"})],
)
def test_modules_import_only_what_a_space_has(name, allowed):
    path = Path(metrics.__file__).parent / name / f"{name}.py"
    found = {library for kind, library, *_ in get_imports(str(path)) if kind == "library"}
    assert allowed <= found
    assert found - allowed <= set(sys.stdlib_module_names)
    assert not [kind for kind, *_ in get_imports(str(path)) if kind != "library"]
