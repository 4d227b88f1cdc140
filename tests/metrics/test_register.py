"""Registration with `evaluate`: from an empty folder, offline, with a cache of its own."""

import importlib.util
import os
import sys
from pathlib import Path

import evaluate.config
import pytest
from evaluate.loading import CachedEvaluationModuleFactory, get_imports

from audio_compositionality import metrics
from audio_compositionality.metrics import list_metrics, metric_file, register

from .contract import run_python


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluate.config, "HF_MODULES_CACHE", tmp_path / "modules")
    return tmp_path / "modules" / "evaluate_modules"


def chosen(name, cache):
    """The module that `evaluate` would load for this name."""
    module = CachedEvaluationModuleFactory(f"evaluate-metric--{name}", dynamic_modules_path=str(cache)).get_module()
    return cache / "metrics" / f"evaluate-metric--{name}" / module.hash / f"{name}.py"


def registered(name):
    """The copy of a metric, where registration puts it."""
    return dict(zip(list_metrics(), register(), strict=True))[name]


def test_command_respects_the_modules_cache_and_says_where(tmp_path):
    environment = {"HF_HOME": str(tmp_path / "home"), "HF_MODULES_CACHE": str(tmp_path / "modules")}
    lines = run_python("-m", "audio_compositionality.metrics", cwd=tmp_path, **environment).splitlines()
    for name, line in zip(list_metrics(), lines, strict=True):
        path = Path(line.removeprefix(f'evaluate.load("{name}") now finds '))
        assert path.is_file()
        assert path.is_relative_to(tmp_path / "modules" / "evaluate_modules")


def test_importing_writes_nothing(tmp_path):
    run_python("-c", "import audio_compositionality.metrics", cwd=tmp_path, HF_HOME=str(tmp_path / "home"))
    assert not list(tmp_path.iterdir())


def test_running_again_changes_nothing(cache):
    paths = register()
    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*.py") if path.name != "__init__.py"}
    assert register() == paths
    after = {path: path.stat().st_mtime_ns for path in cache.rglob("*.py") if path.name != "__init__.py"}
    assert before == after
    assert sorted(before) == sorted(paths)
    assert [path.read_bytes() for path in paths] == [metric_file(name).read_bytes() for name in list_metrics()]


@pytest.mark.parametrize("age", [-1000, 0, 1000])
def test_own_version_is_chosen_whatever_the_date_of_another(cache, age):
    ours = registered("a_coat")
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
    path = registered("a_tre")
    path.write_text("half a fi")
    register()
    assert path.read_bytes() == metric_file("a_tre").read_bytes()


@pytest.mark.parametrize("name", list_metrics())
def test_modules_import_only_what_their_requirements_name(name):
    """As `evaluate` reads imports: one a line, none of siblings."""
    file = metric_file(name)
    imports = get_imports(str(file))
    libraries = {library for kind, library, *_ in imports if kind == "library"} - set(sys.stdlib_module_names)
    requirements = file.with_name("requirements.txt")
    assert requirements.is_file(), f"{name} lacks requirements.txt beside {file}; it imports {sorted(libraries)}"
    required = {line.partition(">")[0] for line in requirements.read_text().split()}
    # What an option alone needs is imported in its function, where `evaluate` does not look; see test_spaces.py.
    assert libraries <= required, f"{requirements} lacks what {file.name} imports"
    assert not [kind for kind, *_ in imports if kind != "library"]


def test_a_file_beside_the_folders_of_metrics_would_be_missing(tmp_path):
    """Why metric modules share code by copies: `evaluate` finds siblings in the module's own folder only."""
    (tmp_path / "shared.py").write_text("ONE = 1\n")
    script = tmp_path / "metric.py"
    script.write_text("from ..shared import ONE\n")
    assert get_imports(str(script)) == []


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"HF_HOME": "~/elsewhere"},
        {"XDG_CACHE_HOME": "/tmp/xdg"},
        {"HF_HOME": "home", "XDG_CACHE_HOME": "/tmp/xdg"},
        {"HF_MODULES_CACHE": "~/modules", "HF_HOME": "/tmp/home"},
    ],
)
def test_cache_is_where_evaluate_has_it(settings, monkeypatch):
    for name in ("HF_HOME", "XDG_CACHE_HOME", "HF_MODULES_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    spec = importlib.util.find_spec("evaluate.config")
    config = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(config)  # anew, beside the imported one
    monkeypatch.delitem(sys.modules, "evaluate.config")
    assert metrics._modules_cache() == config.HF_MODULES_CACHE
    assert config.MODULE_NAME_FOR_DYNAMIC_MODULES == "evaluate_modules"


def test_registering_is_quick_and_imports_nothing_heavy(tmp_path):
    code = (
        "import sys; from audio_compositionality.metrics import register; register(); "
        "print(sorted({'datasets', 'evaluate', 'numpy', 'torch'} & set(sys.modules)))"
    )
    assert run_python("-c", code, cwd=tmp_path, HF_HOME=str(tmp_path / "home")).strip() == "[]"


def test_unknown_metric_is_refused():
    with pytest.raises(LookupError, match=f"no metric 'a_cot'; there are {', '.join(list_metrics())}"):
        metric_file("a_cot")
