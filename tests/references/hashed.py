"""A model that answers by a digest of the prompt and of the sound: equal scores mean that both were the same."""

from __future__ import annotations

import zlib

import numpy as np

FORMS = ("{}", "{}.", "The answer is {}.", "I cannot tell.")


def hashed_answer(prompt: str, samples: bytes) -> str:
    """An answer, mostly a letter in some words, sometimes none.

    Args:
        prompt: with options, a line each.
        samples: 16 bits each.
    """
    digest = zlib.crc32(samples, zlib.crc32(prompt.encode()))
    letters = [line[0] for line in prompt.split("\n") if line[1:3] == ". "]
    return FORMS[digest // 100 % len(FORMS)].format(letters[digest % len(letters)])


class Hashed:
    """The same as a model here; clips arrive at the rate of the presets."""

    sample_rate = 32_000

    def answer(self, clips: object, prompts: list[str]) -> list[str]:
        samples = [np.clip(np.rint(clip.waveform * 32768), -32768, 32767).astype("<i2").tobytes() for clip in clips]
        return [hashed_answer(*pair) for pair in zip(prompts, samples, strict=True)]
