"""Classes of users that answer, and say what they are as those that embed do: see `custom`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from ..base import GivenClip, ModelError, resample
from ..inference import inference
from .custom import CustomEncoder, device_of, stated_card, user_code


class CustomAnswerer:
    """An object with `sample_rate` and `answer(clips, prompts)`, run as a model that answers.

    Its clips are brought to its rate. Its card is made of what it says of itself; see `custom.Embedder`.
    """

    def __init__(self, made: Any, *, name: str, source: str) -> None:
        """Read what the object says of itself.

        Args:
            made: the object.
            name: what messages call it.
            source: the revision where it has none: what code it is.

        Raises:
            ModelError: it lacks `sample_rate`.
        """
        if not hasattr(made, "sample_rate"):
            raise ModelError(f"'{name}' has no sample_rate; a model that answers needs sample_rate and answer")
        self._made, self._name = made, name
        self.device = device_of(made)
        self.card = stated_card(made, name, source)

    def answer(self, clips: Sequence[Any], prompts: Sequence[str]) -> list[str]:
        """As the object's, about clips at its rate; see `AudioLanguageModel.answer`.

        Raises:
            ModelCodeError: its code raises an error.
        """
        with inference(self.device), user_code(self._name):
            answers: list[str] = self._made.answer([self._brought(clip) for clip in clips], prompts)
            return answers

    def _brought(self, clip: Any) -> GivenClip:
        rate = self.card.sample_rate
        return GivenClip(resample(clip.waveform[None], clip.sample_rate, rate)[0], rate)


class CustomLearner(CustomAnswerer):
    """One that learns before."""

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """As the object's, from clips at its rate; see `Learner.learn`."""
        with user_code(self._name):
            self._made.learn(rows, map(self._brought, clips))


class CustomLabelReader(CustomAnswerer):
    """One that is told labels."""

    def answer_from_labels(self, rows: Sequence[Mapping[str, Any]], prompts: Sequence[str]) -> list[str]:
        """As the object's; see `LabelReader.answer_from_labels`."""
        with user_code(self._name):
            answers: list[str] = self._made.answer_from_labels(rows, prompts)
            return answers


class CustomScorer(CustomAnswerer):
    """One that says how likely each of some given answers is."""

    def score_options(
        self,
        clips: Sequence[Any],
        prompts: Sequence[str],
        options: Sequence[Sequence[str]],
        by: Literal["letters", "options"],
    ) -> list[list[float]]:
        """As the object's, about clips at its rate; see `OptionScorer.score_options`."""
        with inference(self.device), user_code(self._name):
            scores: list[list[float]] = self._made.score_options(
                [self._brought(clip) for clip in clips], prompts, options, by
            )
            return scores


_ABILITIES: Mapping[str, type[CustomAnswerer]] = {
    "learn": CustomLearner,
    "answer_from_labels": CustomLabelReader,
    "score_options": CustomScorer,
}
"""What an object may do beside answering, by the name of the method."""


def custom_answerer(made: Any, *, name: str, source: str) -> CustomAnswerer:
    """An object that answers as a model, which can do what the object can; see `CustomAnswerer`."""
    bases = _able(made)
    kind: type[CustomAnswerer] = type("CustomModel", bases, {}) if len(bases) > 1 else bases[0]
    return kind(made, name=name, source=source)


def custom_encoder_that_answers(made: Any, encoder: type[CustomEncoder], *, name: str, source: str) -> CustomEncoder:
    """An object that embeds and answers as one model: tasks that ask are answered, all others embedded.

    Args:
        made: the object.
        encoder: what it is run through where it embeds.
        name: what messages call it.
        source: see `CustomAnswerer`.
    """
    kind: type[CustomEncoder] = type("CustomModel", (encoder, *_able(made)), {"_made": made})
    return kind(made, name=name, source=source)


def _able(made: Any) -> tuple[type[CustomAnswerer], ...]:
    """What an object that answers is run through, by what else it can."""
    return tuple(kind for method, kind in _ABILITIES.items() if callable(getattr(made, method, None))) or (
        CustomAnswerer,
    )
