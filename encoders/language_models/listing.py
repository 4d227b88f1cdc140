"""What a family of models that answer declares, and where the families are found."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.discovery import Registry
from audio_compositionality.support.text import listed

from ..base import ModelError

if TYPE_CHECKING:
    from .front_end import FrontEnd
    from .transformers_model import LanguageCheckpoint


@dataclass(frozen=True)
class LanguageFamily:
    """How the models of a family are loaded. A family's module has its own as `FAMILY`.

    Attributes:
        name: for messages.
        architectures: the class of transformers that is run, by the name that a config.json states in `architectures`.
        front_end: makes what turns clips and prompts into the model's input.
        part: attribute of the configuration that is that of the class, where it is not the whole; None where it is.
        packages: what has to be installed beside the dependencies of this package: how pip names it, by the name that
            is imported.
        unused: prefixes of weights that sound does not pass, which are not counted.
    """

    name: str
    architectures: Mapping[str, str]
    front_end: Callable[[LanguageCheckpoint], FrontEnd]
    part: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    unused: tuple[str, ...] = ()

    def check_packages(self) -> None:
        """Refuse to go on without the packages that the family needs.

        Raises:
            ModelError: with all that are missing, and how they are installed.
        """
        missing = [name for name in self.packages if importlib.util.find_spec(name) is None]
        if missing:
            wanted = " ".join(f"'{self.packages[name]}'" for name in missing)
            verb = "is" if len(missing) == 1 else "are"
            raise ModelError(
                f"models of the family {self.name} need {listed(missing)}, which {verb} not installed: pip install "
                f"{wanted}"
            )


LEFT_OUT = {
    "Phi4MultimodalForCausalLM": "it hears by an adapter in a folder of its own, which the package peft loads",
    "GraniteSpeechForConditionalGeneration": "it needs torchaudio for its sound and peft for its adapter",
    "GraniteSpeechPlusForConditionalGeneration": "it needs torchaudio for its sound",
    "Gemma3nForConditionalGeneration": "it cannot be built without timm and torchvision",
}
"""Why there is no runner for models that transformers has: none could be tried where this was written."""

_families: Registry[LanguageFamily] = Registry(
    f"{__package__}.families", "FAMILY", "audio_compositionality.language_models", lambda family: family.name
)


def families() -> dict[str, LanguageFamily]:
    """The families by name."""
    return _families.all()


def family_of(config: Any) -> LanguageFamily | None:
    """The family that a configuration of transformers belongs to; None of any other model."""
    stated = _stated(config)
    return next((family for family in families().values() if stated & set(family.architectures)), None)


def check_architecture(config: Any, name: str) -> None:
    """Refuse a model that hears and answers, but is of no family that is listed here.

    Args:
        config: of transformers, of a model for which `family_of` has nothing.
        name: of the model.

    Raises:
        ModelError: with all architectures that are run here.
    """
    stated = _stated(config)
    reasons = [LEFT_OUT[one] for one in stated & LEFT_OUT.keys()]
    hears_and_writes = hasattr(config, "audio_config") and hasattr(config, "text_config")
    unlisted = sorted(one for one in stated if one.endswith(("ForConditionalGeneration", "ForCausalLM")))
    if reasons or (hears_and_writes and unlisted):
        listed_here = sorted({one for family in families().values() for one in family.architectures})
        why = f" ({reasons[0]})" if reasons else ""
        raise ModelError(
            f"'{name}' is a {unlisted[0]}, and there is no runner for that architecture here{why}; there are those of "
            f"{', '.join(listed_here)}. A class of your own with `answer(clips, prompts)` can be passed as "
            "path/to/file.py:ClassName"
        )


def _stated(config: Any) -> set[str]:
    stated = getattr(config, "architectures", None)
    # A file may say anything.
    return {one for one in stated if isinstance(one, str)} if isinstance(stated, list | tuple) else set()
