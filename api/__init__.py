"""The public names of audio-compositionality, imported as ``import audio_compositionality as ac``.

A name is loaded on first use. Computation belongs to the packages below; a name is public if it is listed here.
The import makes `evaluate.load` find the metrics by their bare names, and leaves out a torchaudio that cannot
be loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from audio_compositionality.metrics import register_on_import
from audio_compositionality.support.torchaudio_build import leave_out_unfit_torchaudio

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.open_data import open_data
    from audio_compositionality.encoders.adapters.custom import wrap
    from audio_compositionality.encoders.loading.names import list_models
    from audio_compositionality.encoders.loading.registry import load_model
    from audio_compositionality.evaluator.compare.compared import compare
    from audio_compositionality.evaluator.figures.summary import plot
    from audio_compositionality.evaluator.report.page import report
    from audio_compositionality.evaluator.run.evaluate import evaluate
    from audio_compositionality.evaluator.run.options import RunOptions
    from audio_compositionality.tasks.registry import list_tasks

    __version__: str

_MODULES = {
    "RunOptions": "evaluator.run.options",
    "compare": "evaluator.compare.compared",
    "evaluate": "evaluator.run.evaluate",
    "list_models": "encoders.loading.names",
    "list_tasks": "tasks.registry",
    "load_model": "encoders.loading.registry",
    "open_data": "dataset_builder.open_data",
    "plot": "evaluator.figures.summary",
    "report": "evaluator.report.page",
    "wrap": "encoders.adapters.custom",
}

__all__ = [
    "RunOptions",
    "__version__",
    "compare",
    "evaluate",
    "list_models",
    "list_tasks",
    "load_model",
    "open_data",
    "plot",
    "report",
    "wrap",
]


leave_out_unfit_torchaudio()
register_on_import()


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("audio-compositionality")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    public = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    # From here on Python finds it without this function.
    globals()[name] = public
    return public
