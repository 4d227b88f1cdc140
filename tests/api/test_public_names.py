"""`import audio_compositionality as ac`: what stands there, and that nothing heavy is imported for it."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import audio_compositionality as ac

LOG_MEL = "log-mel-statistics"


def test_the_public_names_are_there():
    assert {"__version__", "load_model", "open_data", "evaluate", "list_models", "list_tasks"} <= set(dir(ac))
    assert set(ac.__all__) <= set(dir(ac))
    assert ac.__version__ == version("audio-compositionality")
    assert "a_coat" in [task.info.name for task in ac.list_tasks()]
    assert LOG_MEL in [listing.name for listing in ac.list_models()]
    assert ac.open_data("mini").source == "mini"
    assert ac.load_model(LOG_MEL).card.id == LOG_MEL


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = ac.nothing_of_the_kind


@pytest.mark.slow
def test_importing_it_imports_no_torch():
    """Nor do the names that ask for none; one after the other in one process, so that the first to be named is at
    fault."""
    uses = ("ac", "ac.__version__", "ac.list_tasks()", "ac.list_models()", "ac.open_data('mini')")
    code = f"""if True:
        import sys, audio_compositionality as ac
        for use in {uses!r}:
            eval(use)
            print(use, *sorted({{'torch', 'transformers', 'datasets', 'evaluate', 'matplotlib'}} & set(sys.modules)))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == list(uses)


@pytest.mark.slow
def test_evaluate_takes_a_name_or_an_object(tiny_data, one_thread):
    (by_name,) = ac.evaluate(LOG_MEL, tasks=["a_coat"], data=tiny_data)
    (by_object,) = ac.evaluate(ac.load_model(LOG_MEL), tasks=["a_coat"], data=tiny_data)
    assert by_name.task == "a_coat"
    assert by_name.measures == by_object.measures
