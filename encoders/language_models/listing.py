"""Families of audio language models: their declarations, their lookup, and shared front ends.

A front end turns clips and prompts into the input of a model: chat template, tokens, features of the sound.
"""

from __future__ import annotations

import importlib.util
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.discovery import Registry
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import listed, shortened

from ..base import FloatArray, ModelError

if TYPE_CHECKING:
    import torch

    from .transformers_model import LanguageCheckpoint


ModelInputs = dict[str, "torch.Tensor"]
"""The input of a model, on the CPU: `input_ids` and `attention_mask`, [n, tokens], padded on the left, and the features
of the sound under the model's names."""


_THOUGHT = re.compile(r"<think>\s*\Z")


class FrontEnd(ABC):
    """Turns questions about clips into a model's input. A subclass sets the attributes and encodes sound.

    Attributes:
        tokenizer: tokenizer of transformers.
        sample_rate: sample rate of its clips in Hz.
        limit_seconds: longest clip; a longer one would be cut without a warning.
        placeholder: token that represents the clip in a chat.
    """

    tokenizer: Any
    sample_rate: int
    limit_seconds: float
    placeholder: str

    def chat(self, prompt: str) -> str:
        """Return the conversation up to the model's answer: the clip, then the prompt, without further words.

        Raises:
            InputError: the prompt holds the token that represents a clip.
            ModelError: the chat template does not place the clip exactly once.
        """
        content = [{"type": "audio", "audio": "clip.wav"}, {"type": "text", "text": prompt}]
        text = self._render([{"role": "user", "content": content}])
        if text.count(self.placeholder) != 1:
            if self.placeholder in prompt:
                raise InputError(
                    f"the prompt {shortened(prompt, 80)!r} holds {self.placeholder}, the token of a clip; remove it"
                )
            raise ModelError(
                f"the chat template contains {self.placeholder} {text.count(self.placeholder)} times; "
                "a template for sound must contain it once"
            )
        return text

    def opening(self, chat: str) -> str:
        """Return the mark at the end of a chat that begins reasoning, as in models that always reason; else empty."""
        mark = _THOUGHT.search(chat)
        return mark[0] if mark else ""

    def tokens(self, text: str) -> list[int]:
        """Return the token numbers of a text that contains all special tokens, such as a chat."""
        numbers: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return numbers

    def continuation(self, chat: str, text: str) -> list[int]:
        """Return the token numbers by which a chat with an answer extends the chat alone.

        Raises:
            ModelError: the answer changes tokens of the chat, so that its own cannot be separated.
        """
        before, both = self.tokens(chat), self.tokens(chat + text)
        if both[: len(before)] != before or len(both) == len(before):
            raise ModelError(
                f"the answer {shortened(text, 80)!r} has no tokens of its own behind {chat[-20:]!r}: its likelihood "
                "cannot be separated from the prompt"
            )
        return both[len(before) :]

    def kind(self, samples: int) -> int:
        """Return the number of the range of lengths to which a clip belongs; all clips of a batch share it."""
        return 0

    @abstractmethod
    def encode(self, chats: Sequence[str], clips: Sequence[FloatArray]) -> ModelInputs:
        """Return the input of a model for chats and as many clips, [samples] each at `sample_rate`."""

    def _render(self, conversation: list[dict[str, Any]]) -> str:
        """Return a conversation as text."""
        text: str = self.tokenizer.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False)
        return text


class ProcessorFrontEnd(FrontEnd):
    """The processor of transformers, called as documented; clips that it would cut are refused first."""

    def __init__(self, checkpoint: LanguageCheckpoint, limit_seconds: float | None = None) -> None:
        """Read the processor of a checkpoint.

        Args:
            checkpoint: checkpoint whose processor has a feature extractor, a tokenizer and an audio token.
            limit_seconds: see `FrontEnd`; None for one window of the feature extractor.

        Raises:
            ModelError: there is no processor, or it cannot be read.
        """
        self.processor = checkpoint.load_processor()
        if getattr(self.processor, "chat_template", None) is None:
            raise ModelError(f"'{checkpoint.name}' has no chat template, so the format of its prompts is unknown")
        self.tokenizer = with_padding(self.processor.tokenizer)
        extractor = self.processor.feature_extractor
        self.sample_rate = int(extractor.sampling_rate)
        self.placeholder = self.processor.audio_token
        window = extractor.n_samples / extractor.sampling_rate if limit_seconds is None else limit_seconds
        self.limit_seconds = float(window)

    def encode(self, chats: Sequence[str], clips: Sequence[FloatArray]) -> ModelInputs:
        """See `FrontEnd.encode`."""
        # `padding=True` would also reach the feature extractor, whose window would then be as long as the
        # longest clip: the encoder of Audio Flamingo 3 fails on it.
        inputs = self.processor(
            text=list(chats),
            audio=list(clips),
            text_kwargs={"padding": True, "padding_side": "left", "add_special_tokens": False},
            audio_kwargs={"sampling_rate": self.sample_rate},
            return_tensors="pt",
        )
        unused = set(getattr(self.processor, "unused_input_names", ()))
        return {name: value for name, value in inputs.items() if name not in unused}

    def _render(self, conversation: list[dict[str, Any]]) -> str:
        text: str = self.processor.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False)
        return text


class TokenFrontEnd(FrontEnd):
    """A tokenizer and a feature extractor, without the processor, which would need packages for pictures.

    A subclass computes the features of a clip, and the number of its tokens.
    """

    tokenizer: Any

    def encode(self, chats: Sequence[str], clips: Sequence[FloatArray]) -> ModelInputs:
        """See `FrontEnd.encode`."""
        import torch

        features, counts = self._features(clips)
        expanded = [
            chat.replace(self.placeholder, self._stand_in(count)) for chat, count in zip(chats, counts, strict=True)
        ]
        numbers = [self.tokens(text) for text in expanded]
        longest = max(map(len, numbers))
        ids = torch.full((len(numbers), longest), self.tokenizer.pad_token_id)
        mask = torch.zeros_like(ids)
        for row, tokens in enumerate(numbers):
            ids[row, longest - len(tokens) :] = torch.tensor(tokens)
            mask[row, longest - len(tokens) :] = 1
        return {"input_ids": ids, "attention_mask": mask, **features}

    def _stand_in(self, count: int) -> str:
        """Return the placeholder in the text for a clip of `count` tokens."""
        return self.placeholder * count

    @abstractmethod
    def _features(self, clips: Sequence[FloatArray]) -> tuple[ModelInputs, list[int]]:
        """Return the features of clips by the model's names, and the number of tokens of each clip."""


class LogMelFrontEnd(TokenFrontEnd):
    """A tokenizer and Whisper's log-mel spectrogram, one clip at a time: no clip changes the frames of another.

    Clips of different lengths are padded after their frames; `feature_attention_mask` marks the frames.

    Attributes:
        silence: number of silent samples after each clip if the model's own processor pads to a fixed length: enough
            for every frame that overlaps the clip to equal the processor's; else 0.
    """

    def __init__(self, checkpoint: LanguageCheckpoint, *, limit_seconds: float | None, pads: bool) -> None:
        """Read tokenizer and feature extractor of a checkpoint.

        Args:
            checkpoint: checkpoint of a model whose configuration has `audio_token_id`.
            limit_seconds: see `FrontEnd`; None for the window of the feature extractor.
            pads: whether the model's own processor pads clips with silence to a fixed length.

        Raises:
            ModelError: one of them is missing, or cannot be read.
        """
        from transformers import WhisperFeatureExtractor

        self.tokenizer = with_padding(checkpoint.load_chat_tokenizer())
        self._extractor = checkpoint.load_feature_extractor(WhisperFeatureExtractor)
        self.sample_rate = int(self._extractor.sampling_rate)
        window = self._extractor.n_samples / self._extractor.sampling_rate
        self.limit_seconds = float(window if limit_seconds is None else limit_seconds)
        self.placeholder = self.tokenizer.convert_ids_to_tokens(checkpoint.config.audio_token_id)
        self.silence = self._extractor.n_fft + 2 * self._extractor.hop_length if pads else 0

    def _features(self, clips: Sequence[FloatArray]) -> tuple[ModelInputs, list[int]]:
        import numpy as np
        import torch

        frames = []
        for clip in clips:
            padded = np.pad(clip, (0, self.silence))
            log_mel = self._extractor(
                padded, sampling_rate=self.sample_rate, padding="do_not_pad", truncation=False, return_tensors="pt"
            )["input_features"][0]
            # As many as the processor's mask has, even if the last hop is incomplete.
            count = len(clip) // self._extractor.hop_length
            whole = -(-len(clip) // self._extractor.hop_length)
            frames.append(log_mel[:, : whole if self.silence else count])
        lengths = torch.tensor([one.shape[1] for one in frames])
        longest = int(lengths.max())
        features = torch.stack([torch.nn.functional.pad(one, (0, longest - one.shape[1])) for one in frames])
        mask = (torch.arange(longest) < lengths[:, None]).long()
        counts = [self.token_count(int(length)) for length in lengths]
        return {"input_features": features, "feature_attention_mask": mask}, counts

    @abstractmethod
    def token_count(self, frames: int) -> int:
        """Return the number of tokens for a clip of `frames` frames of the spectrogram."""


def with_padding(tokenizer: Any) -> Any:
    """Return a tokenizer that pads on the left, with its padding token or else its end-of-text token."""
    tokenizer.padding_side = "left"
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


@dataclass(frozen=True)
class LanguageFamily:
    """How the models of a family are loaded. A family's module declares it as `FAMILY`.

    Attributes:
        name: name for messages.
        architectures: class of transformers to run, by the name in `architectures` of a config.json.
        front_end: makes the front end, which turns clips and prompts into the model's input.
        part: attribute of the configuration for the class; None if it takes the full configuration.
        packages: packages needed in addition to this package's dependencies: pip's name by the imported name.
        unused: prefixes of weights that process no sound, which are not counted.
    """

    name: str
    architectures: Mapping[str, str]
    front_end: Callable[[LanguageCheckpoint], FrontEnd]
    part: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    unused: tuple[str, ...] = ()

    def check_packages(self) -> None:
        """Raise an error if packages are missing that the family needs.

        Raises:
            ModelError: names all missing packages, and how to install them.
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
    "Phi4MultimodalForCausalLM": "its audio input needs an adapter in a folder of its own, loaded by the package peft",
    "GraniteSpeechForConditionalGeneration": "it needs torchaudio for its sound and peft for its adapter",
    "GraniteSpeechPlusForConditionalGeneration": "it needs torchaudio for its sound",
    "Gemma3nForConditionalGeneration": "it cannot be built without timm and torchvision",
}
"""Reasons why some models of transformers are not supported; none of them could be tested."""

_families: Registry[LanguageFamily] = Registry(
    f"{__package__.rpartition('.')[0]}.families",
    "FAMILY",
    "audio_compositionality.language_models",
    lambda family: family.name,
    further=lambda family: family.architectures,
)


def families() -> dict[str, LanguageFamily]:
    """Return the families by name."""
    return _families.all()


def family_of(config: Any) -> LanguageFamily | None:
    """Return the family of a configuration of transformers; None if it has none."""
    stated = _stated(config)
    return next(filter(None, map(_families.find, sorted(stated))), None)


def check_architecture(config: Any, name: str) -> None:
    """Raise an error for an audio language model without a family.

    Args:
        config: configuration from transformers for which `family_of` returns None.
        name: name of the model.

    Raises:
        ModelError: names all supported architectures.
    """
    stated = _stated(config)
    reasons = [LEFT_OUT[one] for one in stated & LEFT_OUT.keys()]
    has_audio_and_text = hasattr(config, "audio_config") and hasattr(config, "text_config")
    unlisted = sorted(one for one in stated if one.endswith(("ForConditionalGeneration", "ForCausalLM")))
    if reasons or (has_audio_and_text and unlisted):
        listed_here = sorted({one for family in families().values() for one in family.architectures})
        why = f" ({reasons[0]})" if reasons else ""
        raise ModelError(
            f"'{name}' is a {unlisted[0]}, an unsupported architecture{why}; supported are "
            f"{', '.join(listed_here)}. Your own class with `answer(clips, prompts)` can be passed as "
            "path/to/file.py:ClassName"
        )


def _stated(config: Any) -> set[str]:
    stated = getattr(config, "architectures", None)
    # A file may hold any value.
    return {one for one in stated if isinstance(one, str)} if isinstance(stated, list | tuple) else set()
