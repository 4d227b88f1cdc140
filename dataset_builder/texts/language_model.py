"""Any language model of transformers as what answers prompts: of the Hub or of a folder, greedy, in batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import sha256_of, sha256_of_file
from audio_compositionality.support.text import first_line

MOST_NEW_TOKENS = 200
"""Of an answer: three captions of thirty words as JSON, with some to spare."""

_BATCH_SIZES = {"cpu": 4}
_BATCH_SIZE = 32

_READ = (".json", ".safetensors", ".txt", ".model", ".jinja")
"""Files of a folder that decide what a model answers."""


class LanguageModel:
    """A causal language model; see `writer.TextModel`.

    A model that has a chat template is asked by it, as a user who says one thing; any other goes on from the prompt.
    The most probable token is taken each time, whatever the model's own settings of sampling. Code that comes with a
    model is never run, and only weights in safetensors are read.
    """

    def __init__(
        self,
        name: str | Path,
        *,
        revision: str | None = None,
        device: str | None = None,
        batch_size: int | None = None,
        most_new_tokens: int | None = None,
    ) -> None:
        """Load the model.

        Args:
            name: a folder, or a Hub id.
            revision: branch, tag or commit of a Hub id.
            device: as torch calls it; default CUDA where there is one, else the CPU.
            batch_size: prompts at a time; default 32, on the CPU 4.
            most_new_tokens: after which an answer is cut; default `MOST_NEW_TOKENS`.

        Raises:
            InputError: there is no such model, it is none that goes on from a text, or it needs code of its own.
        """
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._batch_size = batch_size or _BATCH_SIZES.get(self._device, _BATCH_SIZE)
        self._most_new_tokens = most_new_tokens or MOST_NEW_TOKENS
        folder = Path(name) if Path(name).is_dir() else None
        where = {"revision": revision, "trust_remote_code": False}
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(str(name), **where)
            # In half precision a processor is slower, and where it is not, it rounds as no other does.
            dtype = "auto" if torch.device(self._device).type == "cuda" else torch.float32
            model: Any = AutoModelForCausalLM.from_pretrained(str(name), dtype=dtype, use_safetensors=True, **where)
            self._model: Any = model.to(self._device).eval()
        except Exception as error:
            raise InputError(
                f"cannot load the language model {str(name)!r}: {first_line(error).rstrip('.')}. Give a folder or a "
                "Hub id of a model that transformers opens as a causal language model without code of its own, with a "
                "tokenizer and weights in safetensors"
            ) from error
        commit = getattr(self._model.config, "_commit_hash", None)
        self._revision = _digest(folder) if folder else str(commit)
        self._name = folder.resolve().name if folder else str(name)
        self._end = _end_tokens(self._model, self._tokenizer)

    @property
    def identity(self) -> Mapping[str, str]:
        """Name, revision (the commit; of a folder the digest of its files), precision, and how answers are made.

        With other batches, or on another device, rounding may decide otherwise between two words.
        """
        return {
            "model": self._name,
            "revision": self._revision,
            "precision": str(self._model.dtype).removeprefix("torch."),
            "decoding": f"greedy, at most {self._most_new_tokens} tokens, {self._batch_size} at a time",
        }

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """The answer to each prompt, without the prompt.

        Raises:
            InputError: a prompt and its answer are longer than the model reads.
        """
        answers = []
        for start in range(0, len(prompts), self._batch_size):
            answers += self._generate([self._tokens(prompt) for prompt in prompts[start : start + self._batch_size]])
        return answers

    def _tokens(self, prompt: str) -> list[int]:
        text = prompt
        chats = getattr(self._tokenizer, "chat_template", None) is not None
        if chats:
            # Models that can think aloud are told not to; others do not read it.
            text = self._tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}],
                add_generation_prompt=True,
                tokenize=False,
                enable_thinking=False,
            )
        tokens: list[int] = self._tokenizer(text, add_special_tokens=not chats)["input_ids"]
        limit = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        if isinstance(limit, int) and len(tokens) + self._most_new_tokens > limit:
            raise InputError(
                f"{self._name} reads {limit:,} tokens; a prompt has {len(tokens):,} and its answer up to "
                f"{self._most_new_tokens:,}: take a model that reads more"
            )
        return tokens

    def _generate(self, batch: Sequence[list[int]]) -> list[str]:
        import torch
        from transformers import GenerationConfig

        longest = max(map(len, batch))
        padding = self._end[0] if self._end else 0
        # Answers begin behind the prompts, so these end in one place.
        rows = [[padding] * (longest - len(tokens)) + tokens for tokens in batch]
        mask = [[0] * (longest - len(tokens)) + [1] * len(tokens) for tokens in batch]
        greedy = GenerationConfig(  # type: ignore[no-untyped-call]
            do_sample=False,
            num_beams=1,
            max_new_tokens=self._most_new_tokens,
            eos_token_id=self._end or None,
            pad_token_id=padding,
        )
        # What a configuration of generation does not say is taken from the model's, which may sample or punish words.
        self._model.generation_config = greedy
        with torch.inference_mode():
            tokens = self._model.generate(
                input_ids=torch.tensor(rows, device=self._device),
                attention_mask=torch.tensor(mask, device=self._device),
                generation_config=greedy,
            )
        answers: list[str] = self._tokenizer.batch_decode(tokens[:, longest:], skip_special_tokens=True)
        return answers


def _end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """Tokens that end an answer: the model's, else the tokenizer's, else none."""
    stated = getattr(model.generation_config, "eos_token_id", None)
    if stated is None:
        stated = tokenizer.eos_token_id
    return [] if stated is None else [stated] if isinstance(stated, int) else list(stated)


def _digest(folder: Path) -> str:
    digests = [
        f"{path.name} {sha256_of_file(path)}"
        for path in sorted(folder.iterdir())
        if path.is_file() and path.suffix in _READ
    ]
    return sha256_of("\n".join(digests).encode())
