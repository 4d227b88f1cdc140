"""Registration with `evaluate`: from an empty folder, offline, with a cache of its own."""

import importlib.util
import json
import os
import pickle
import sys

import evaluate.config
import pytest
from evaluate.loading import CachedEvaluationModuleFactory, get_imports

from audio_compositionality import metrics
from audio_compositionality.metrics import list_metrics, metric_file, module_files, register, register_on_import

from .contract import example_of, run_python


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


LOADED = """
import json, os, pickle, sys
import audio_compositionality
from audio_compositionality.metrics import metric_file

assert not {"datasets", "evaluate", "numpy", "torch"} & set(sys.modules)
import evaluate

results = {}
for name, arguments in pickle.load(open(sys.argv[1], "rb")).items():
    metric = evaluate.load(name)
    assert metric.name == evaluate.load(str(metric_file(name))).name == name
    results[name] = metric.compute(**arguments)
assert os.listdir() == []
print(json.dumps(results, default=repr))
"""


@pytest.mark.slow
def test_every_metric_loads_by_its_name_and_its_path_after_the_import_alone(tmp_path):
    """In one process of its own, offline, from an empty folder."""
    empty, home = tmp_path / "empty", tmp_path / "hf"
    empty.mkdir()
    quick = {"a_tre": {"progress": False, "device": "cpu", "max_steps": 3}}
    arguments = {name: example_of(name) | quick.get(name, {}) for name in list_metrics()}
    (tmp_path / "arguments").write_bytes(pickle.dumps(arguments))
    printed = json.loads(
        run_python("-c", LOADED, tmp_path / "arguments", cwd=empty, HF_HOME=str(home)).splitlines()[-1]
    )
    for name, given in arguments.items():
        module = importlib.import_module(f"audio_compositionality.metrics.{name}")
        assert printed[name] == json.loads(json.dumps(getattr(module, name)(**given), default=repr)), name
        for file, content in module_files(metric_file(name)).items():
            (copy,) = (home / "modules").rglob(f"evaluate-metric--{name}/*/{file}")
            assert copy.read_bytes() == content


@pytest.mark.parametrize("place", ["home", "home/modules/evaluate_modules/metrics/evaluate-metric--a_coat"])
def test_the_import_is_silent_where_the_cache_cannot_be_written(tmp_path, place):
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_text("a file in the way")
    code = "import audio_compositionality as ac; print(ac.__version__)"
    environment = {"HF_HOME": str(tmp_path / "home"), "PYTHONWARNINGS": "error"}
    assert len(run_python("-c", code, cwd=tmp_path, **environment).splitlines()) == 1


def test_the_import_has_nothing_to_do_twice(cache, monkeypatch):
    register_on_import()
    copies = {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}
    assert not [path for path in copies if path.name.endswith(".partial")]
    with monkeypatch.context() as context:
        context.setattr(metrics, "_install", lambda *_, **__: pytest.fail("a metric was installed again"))
        register_on_import()
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()} == copies
    (gone, *_) = cache.rglob("evaluate-metric--binding/*/binding.py")
    gone.unlink()
    register_on_import()
    assert gone.is_file()


def test_another_installation_is_told_by_its_files(cache, monkeypatch, tmp_path):
    register_on_import()
    for path in metrics._FOLDER.glob("*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    with (tmp_path / "a_coat.py").open("a") as file:
        file.write("# other\n")
    monkeypatch.setattr(metrics, "_FOLDER", tmp_path)
    register_on_import()
    assert chosen("a_coat", cache).read_bytes() == (tmp_path / "a_coat.py").read_bytes()


def other_version(ours, code, age=1000):
    """A copy of another version, by its date so many seconds newer."""
    other = ours.parents[1] / ("0" * 64) / ours.name
    other.parent.mkdir()
    other.write_text(code)
    os.utime(other, (ours.stat().st_mtime + age,) * 2)
    return other


def test_a_newer_version_stays_in_force_unless_told(cache):
    ours = registered("a_coat")
    other = other_version(ours, "VERSION = 99\n")
    assert register(over_newer=False)[0] == other
    assert chosen("a_coat", cache) == other
    register()
    assert chosen("a_coat", cache) == ours


@pytest.mark.parametrize(("code", "age"), [("VERSION = 0\n", 1000), ("VERSION = 1\n", 0), ("no version", 1000)])
def test_another_version_that_is_no_newer_is_replaced_whatever_its_date(cache, code, age):
    ours = registered("a_coat")
    other_version(ours, code, age)
    register(over_newer=False)
    assert chosen("a_coat", cache) == ours


@pytest.mark.parametrize("file", ["a_tre.py", "composition.py", "__init__.py"])
def test_damaged_copy_is_repaired(cache, file):
    path = registered("a_tre").with_name(file)
    path.write_text("half a fi")
    register()
    assert path.read_bytes() == module_files(metric_file("a_tre")).get(file, b"")
    with pytest.raises(LookupError, match=f"Unknown metric 'a_cot'. Choose one of: {', '.join(list_metrics())}"):
        metric_file("a_cot")


@pytest.mark.parametrize("name", list_metrics())
def test_a_module_names_every_sibling_that_it_needs(name):
    """As `evaluate` reads imports: those of the metric's own module, one a line, and not those of its siblings."""
    file = metric_file(name)
    imports = get_imports(str(file))
    named = {place for kind, _, place, _ in imports if kind == "internal"}
    assert {f"{sibling}.py" for sibling in named} | {file.name} == set(module_files(file))
    assert {kind for kind, *_ in imports} == {"internal", "library"}
    assert name not in named
    for sibling in named:
        further = get_imports(str(file.with_name(f"{sibling}.py")))
        needed = {place for kind, _, place, _ in further if kind == "internal"}
        assert needed <= named, f"{sibling} needs {needed - named}, which {file.name} must name as well"


@pytest.mark.parametrize(
    "settings",
    [
        {},
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
