"""Options of models: layer, pooling and arithmetic; for an audio language model, the length of an answer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from audio_compositionality.support.spec import Spec

Pooling = Literal["mean", "cls", "max"]
Precision = Literal["float32", "bfloat16", "float16"]


class EncoderOptions(Spec):
    """How a model is run, and how its output becomes one vector per clip."""

    layer: int | None = Field(
        None,
        ge=0,
        description="Hidden layer, counted as transformers does: 0 is the input of the first block, k the output of "
        "block k. None is the model's output.",
    )
    pooling: Pooling | None = Field(
        None,
        description="Mean or max over the frames of a clip, or the class token. None is the model's own embedding "
        "of a clip (PANNs, PaSST, CLAP), or the mean if it defines none.",
    )
    precision: Precision = Field(
        "float32", description="Precision of the arithmetic (16 bits by autocast); pooling is always float32."
    )
    compile: bool = Field(
        False, description="Run the model through `torch.compile`; embeddings change only by rounding."
    )

    @property
    def suffix(self) -> str:
        """Suffix of an encoder's id, so that results with different options are never confused."""
        parts = []
        if self.layer is not None:
            parts.append(f"layer={self.layer}")
        if self.pooling is not None:
            parts.append(f"pooling={self.pooling}")
        if self.precision != "float32":
            parts.append(self.precision)
        return f"@{'+'.join(parts)}" if parts else ""


DEFAULT_OPTIONS = EncoderOptions()


AUTO: Literal["auto"] = "auto"
"""The device's own precision: float32 on a CPU, else bfloat16."""

DIRECT_TOKENS = 16
"""Maximum number of tokens of an answer if a letter or a few words are requested."""

REASON_TOKENS = 1024
"""Maximum number of tokens of an answer if the model is asked to reason first."""


class LanguageOptions(EncoderOptions):
    """How an audio language model is run; `load_model` takes it instead of `EncoderOptions`.

    It may also be passed for an encoder, see `of_encoder`, so that a command need not know the kind of model. An audio
    language model takes only the defaults of layer, pooling and compilation. Another number of tokens than
    `DIRECT_TOKENS` is part of the model's id.
    """

    precision: Literal["auto", "float32", "bfloat16", "float16"] = Field(  # type: ignore[assignment]
        AUTO, description="Type of the weights and of the arithmetic; auto is float32 on a CPU, else bfloat16."
    )
    max_new_tokens: int = Field(
        DIRECT_TOKENS,
        ge=1,
        description=f"Maximum number of tokens of an answer: {DIRECT_TOKENS} for a letter, {REASON_TOKENS:,} with "
        "reasoning before it.",
    )
    batch_size: int | None = Field(
        None,
        ge=1,
        description="Questions per batch; None for 4 on a CPU and 16 elsewhere. Halved when memory runs out.",
    )
    spread: bool = Field(
        False,
        description="Spread the layers of one large model over all GPUs, and the rest into main memory "
        ' (`device_map="auto"` of accelerate).',
    )
    deadline: float | None = Field(
        None,
        gt=0,
        description="Seconds allowed for a question to a model on a server, including all retries; None for its own "
        "number.",
    )
    token_limit_name: Literal["max_tokens", "max_completion_tokens"] | None = Field(
        "max_tokens",
        description="Field that limits the tokens of an answer, in questions to a model on a server; none sends no "
        "limit.",
    )
    temperature: float | None = Field(
        0,
        ge=0,
        description="Temperature in questions to a model on a server; none leaves it to the server, whose answers "
        "may then differ from run to run.",
    )
    audio_form: Literal["base64", "data_url", "audio_url"] = Field(
        "base64",
        description="Form of the sound in questions to a model on a server: input_audio with base64 (OpenAI, vLLM, "
        "llama.cpp, Gemini), input_audio with a data URL (DashScope), or audio_url with a data URL.",
    )

    @property
    def of_encoder(self) -> EncoderOptions:
        """Return the same options for an encoder, whose default precision is float32 on any device."""
        precision = DEFAULT_OPTIONS.precision if self.precision == AUTO else self.precision
        return EncoderOptions(layer=self.layer, pooling=self.pooling, precision=precision, compile=self.compile)

    def precision_on(self, device_type: str) -> str:
        """Return the precision on a type of device (``cpu``, ``cuda``): the requested one, or the device's own."""
        if self.precision != AUTO:
            return self.precision
        return "float32" if device_type == "cpu" else "bfloat16"

    @property
    def suffix(self) -> str:
        """Suffix of a model's id, so that results with different options are never confused."""
        parts: list[str] = [] if self.precision in (AUTO, "float32") else [self.precision]
        if self.max_new_tokens != DIRECT_TOKENS:
            parts.append(f"tokens={self.max_new_tokens}")
        return f"@{'+'.join(parts)}" if parts else ""


def encoder_options(options: EncoderOptions) -> EncoderOptions:
    """Return the options of an encoder, taken from the options of any model; see `LanguageOptions.of_encoder`."""
    return options.of_encoder if isinstance(options, LanguageOptions) else options
