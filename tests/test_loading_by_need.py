"""What is asked for by name is loaded with the files that it needs, and no others."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable

import pytest

from audio_compositionality.dataset_builder import recipes
from audio_compositionality.dataset_builder.sounds import published
from audio_compositionality.encoders.language_models import listing as language_models
from audio_compositionality.encoders.loading import listing
from audio_compositionality.metrics import list_metrics
from audio_compositionality.support.discovery import Registry
from audio_compositionality.tasks import registry

PACKAGE = "audio_compositionality"

TASKS, RECIPES, FAMILIES, METRICS = "tasks", "dataset_builder.recipes", "encoders.families", "metrics"

USES = {
    # The package, the folder of metrics, which `evaluate.load` is told of, and the check of torchaudio's build.
    "import audio_compositionality": 4,
    # The command's parser, and a file a command, whose line is printed.
    "main(['--help'])": 36,
    # The parser, the command, its arguments.
    "main(['evaluate', '--help'])": 19,
    # The metric, the siblings that it names.
    "import audio_compositionality.metrics.a_coat": 8,
    # A family, the base of models, and the grammar of their names with controls and twins.
    "load_model('log-mel-statistics')": 29,
    # The recipe, the base of recipes, its scenes, the tones.
    "load_recipe('a_coat')": 25,
    # The task, its shape, the base of tasks, and the base of models, whose abilities it names.
    "load_task('a_coat')": 24,
}
"""Uses in the order in which they are tried, and how many modules of ours each may load: counted, and one or two more.
A change that needs more of them for one task brings them to all of its shape."""

CODE = """
import contextlib, io, json, sys

def loaded():
    return [name for name in sys.modules if name.partition(".")[0] == "audio_compositionality"]

def main(arguments):
    from audio_compositionality.cli.main import main
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        main(arguments)

def load_model(name):
    from audio_compositionality.encoders.loading.registry import load_model
    load_model(name)

def load_recipe(name):
    from audio_compositionality.dataset_builder.recipes import load_recipe
    load_recipe(name)

def load_task(name):
    from audio_compositionality.tasks.registry import load_task
    load_task(name)

for use in json.loads(sys.argv[1]):
    for name in loaded():
        del sys.modules[name]
    exec(use)
    heavy = {"pydantic", "scipy", "torch", "transformers", "datasets", "evaluate", "matplotlib", "pandas"}
    print(json.dumps([loaded(), sorted(heavy & set(sys.modules))]))
"""


@pytest.fixture(scope="module")
def loaded() -> dict[str, tuple[set[str], set[str]]]:
    """The modules of ours that each use loads, and the slow packages that are imported once it is done."""
    command = [sys.executable, "-c", CODE, json.dumps(list(USES))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        use: ({name.removeprefix(PACKAGE).lstrip(".") for name in ours}, set(heavy))
        for use, (ours, heavy) in zip(USES, lines, strict=True)
    }


@pytest.mark.parametrize("use", USES)
def test_no_more_modules_are_loaded_than_a_use_needs(loaded, use):
    ours, _ = loaded[use]
    assert len(ours) <= USES[use], sorted(ours)


def modules_of(room: str, names: Iterable[str]) -> set[str]:
    return {f"{room}.{name}" for name in names}


@pytest.mark.parametrize(
    ("use", "own"),
    [
        ("main(['--help'])", None),
        ("main(['evaluate', '--help'])", None),
        ("import audio_compositionality.metrics.a_coat", "metrics.a_coat"),
        ("load_model('log-mel-statistics')", "encoders.families.baselines"),
        ("load_recipe('a_coat')", "dataset_builder.recipes.a_coat"),
        ("load_task('a_coat')", "tasks.a_coat"),
    ],
)
def test_no_other_thing_that_has_a_name_is_loaded(loaded, use, own):
    named = (
        modules_of(TASKS, registry.task_names())
        | modules_of(RECIPES, recipes.list_recipes())
        | modules_of(FAMILIES, listing._models._modules)
        | modules_of(METRICS, list_metrics())
    )
    assert loaded[use][0] & named == ({own} if own else set())


def test_packages_that_take_long_to_import_are_imported_where_they_are_needed(loaded):
    for use in ("import audio_compositionality", "main(['--help'])", "main(['evaluate', '--help'])"):
        assert not loaded[use][1], use
    assert loaded["load_task('a_coat')"][1] == {"pydantic"}


@pytest.mark.parametrize(
    "things",
    [
        registry._TASKS,
        recipes._registry,
        published._registry,
        listing._models,
        listing._architectures,
        listing._configurations,
        listing._adapters,
        language_models._families,
    ],
    ids=lambda things: things._attribute,
)
def test_each_name_is_found_in_the_file_of_what_has_it(things: Registry[object]):
    assert tuple(things.all()) == things.names()
    for name, thing in things.all().items():
        assert all(things.find(one) is thing for one in (name, *things._further(thing)))
    assert things.find("nothing-of-the-kind") is None


def test_each_preset_and_each_source_of_weights_is_found_in_the_file_of_what_has_it():
    presets = {preset for name in recipes.list_recipes() for preset in recipes.load_recipe(name).presets}
    assert all(map(recipes.has_preset, presets))
    assert not recipes.has_preset("nothing-of-the-kind")
    for one in listing.named_models().values():
        if isinstance(one.source, str):
            assert listing.model_of(one.source) == one


@pytest.mark.slow
def test_a_baseline_is_scored_without_packages_that_take_seconds_to_import(tmp_path):
    code = """
import sys
from audio_compositionality.cli.main import main

assert main(sys.argv[1:]) == 0
print(*sorted({"torch", "transformers", "datasets", "evaluate", "matplotlib", "pandas"} & set(sys.modules)))
"""
    command = ["evaluate", "log-mel-statistics", "--tasks", "a_coat", "--preset", "mini", "--device", "cpu"]
    command += ["--out", str(tmp_path / "results"), "--cache", str(tmp_path / "store")]
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""
