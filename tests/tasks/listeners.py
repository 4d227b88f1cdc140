"""A made-up set of questions, of which 40 % are answered by their words, 30 % by any quarter of their sound and 30 %
by all of it alone; and models that can do exactly one of these."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import soundfile

from audio_compositionality.encoders.base import LETTERS, Model, ModelCard
from audio_compositionality.tasks.answerers.chooser import drawn
from audio_compositionality.tasks.shapes.asking import read_prompt

RATE = 8_000
QUARTER = 2_000
TONES = (440, 880, 1320, 1760)
LEAK = "certainly"
NAMES = ("low", "middle", "high", "shrill")
WORDS, ANY_QUARTER, WHOLE = "words", "any quarter", "whole"
KINDS = (*(WORDS,) * 4, *(ANY_QUARTER,) * 3, *(WHOLE,) * 3)
ASKED = {WORDS: "Which of these fits?", ANY_QUARTER: "Which tone is heard?", WHOLE: "Which is the sum of all tones?"}


def write_questions(folder: Path, count: int = 200) -> Path:
    """Write questions.csv and its sounds, of one second each; the path of the table."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        tones = rng.integers(4, size=4)
        if kind == ANY_QUARTER:
            tones[:] = tones[0]
        sum_of = int(tones.sum() % 4)
        right = {WORDS: int(rng.integers(4)), ANY_QUARTER: int(tones[0]), WHOLE: sum_of}[kind]
        phase = np.arange(QUARTER) / RATE * 2 * np.pi
        sound = np.concatenate([np.sin(TONES[tone] * phase) * rng.uniform(0.1, 0.5) for tone in tones])
        soundfile.write(folder / f"{number:03d}.wav", sound, RATE, subtype="PCM_16")
        order = rng.permutation(4)
        options = [NAMES[place] for place in order]
        if kind == WORDS:
            options = [
                f"{LEAK} {name}" if place == right else f"perhaps {name}"
                for name, place in zip(options, order, strict=True)
            ]
        answer = options[order.tolist().index(right)]
        # The number in the question keeps texts of other questions apart.
        rows.append([f"q{number:03d}", f"{number:03d}.wav", ASKED[kind], *options, answer, kind])
    path = folder / "questions.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([["id", "audio", "question", *"ABCD", "answer", "kind"], *rows])
    return path


def tones_in(waveform: np.ndarray, rate: int) -> list[int]:
    """The tone of each quarter of a second."""
    tones = []
    for start in range(0, len(waveform) - QUARTER // 2, QUARTER):
        part = waveform[start : start + QUARTER]
        power = [abs(np.exp(-2j * np.pi * tone / rate * np.arange(len(part))) @ part) for tone in TONES]
        tones.append(int(np.argmax(power)) if max(power) > 1 else -1)
    return tones


class Listener(Model):
    """Answers what it can of some kinds of question, and draws the rest."""

    def __init__(self, id: str, kinds: tuple[str, ...]) -> None:
        self.card = ModelCard(id, "1", RATE, None)
        self.kinds = kinds

    def answer(self, clips, prompts):
        return [self._letter(*clip, prompt) for clip, prompt in zip(clips, prompts, strict=True)]

    def _letter(self, clip, prompt: str) -> str:
        question, options = read_prompt(prompt)
        tones = tones_in(np.asarray(clip.waveform), clip.sample_rate)
        kind = next(kind for kind, asked in ASKED.items() if asked == question)
        name = ""
        if kind in self.kinds and kind == WORDS:
            name = next(option for option in options if LEAK in option)
        elif kind in self.kinds and kind == ANY_QUARTER and tones[0] >= 0:
            name = NAMES[tones[0]]
        elif kind in self.kinds and kind == WHOLE and len(tones) == 4 and min(tones) >= 0:
            name = NAMES[sum(tones) % 4]
        place = options.index(name) if name in options else drawn(4, prompt, self.card.id, str(tones))
        return LETTERS[place]


READER = Listener("reader", (WORDS,))
QUICK = Listener("quick", (WORDS, ANY_QUARTER))
PATIENT = Listener("patient", (WORDS, ANY_QUARTER, WHOLE))
EARS = Listener("ears", (ANY_QUARTER, WHOLE))
