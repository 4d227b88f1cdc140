"""The public names of audio-compositionality, imported as ``import audio_compositionality as ac``.

A name is loaded when it is first used. What computes belongs to the rooms below; a name is public by standing here.
The import makes `evaluate.load` find the metrics by their bare names.
"""

from typing import TYPE_CHECKING, Any

import lazy_loader

from audio_compositionality.metrics import register_on_import

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.open_data import open_data
    from audio_compositionality.encoders.loading.names import list_models
    from audio_compositionality.encoders.loading.registry import load_model
    from audio_compositionality.evaluator.run.evaluate import evaluate
    from audio_compositionality.evaluator.run.options import RunOptions
    from audio_compositionality.tasks.registry import list_tasks

    __version__: str

_load = lazy_loader.attach(
    __name__,
    submod_attrs={
        "dataset_builder.open_data": ["open_data"],
        "encoders.loading.names": ["list_models"],
        "encoders.loading.registry": ["load_model"],
        "evaluator.run.evaluate": ["evaluate"],
        "evaluator.run.options": ["RunOptions"],
        "tasks.registry": ["list_tasks"],
    },
)[0]

__all__ = ["RunOptions", "__version__", "evaluate", "list_models", "list_tasks", "load_model", "open_data"]


register_on_import()


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("audio-compositionality")
    return _load(name)
