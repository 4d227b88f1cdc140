"""A DX7 bank of other voices with the package's names and nouns: timbres that no training has used.

python examples/other_voices.py other.syx
audio-compositionality build --set bank=other.syx --recipes comp_a_order,comp_a_attribute --out other

Four of each, voices 1-8, 9-16, 17-24 and 25-32. The level of every audible operator moves up or down by 4.5 dB
(`--steps 6`, and up to two more or fewer); rates and detune move a little; modulators also get high or broken ratios.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from audio_compositionality.dataset_builder.sounds.dx7_engine import ALGORITHMS
from audio_compositionality.dataset_builder.sounds.dx7_voice import Operator, Voice, save_bank
from audio_compositionality.dataset_builder.sounds.tones import default_voices


def moved(value: int, step: int, low: int, high: int) -> int:
    """Return a value moved by a step; in the other direction if its range ends."""
    return value + step if low <= value + step <= high else max(low, min(high, value - step))


def other_operator(operator: Operator, is_carrier: bool, steps: int, rng: np.random.Generator) -> Operator:
    """Return an operator with another level, envelope and detune; a modulator with a high ratio gets another ratio."""
    level = int(rng.integers(steps - 2, steps + 3) * rng.choice((-1, 1)))
    rates = tuple(moved(rate, int(rng.integers(-4, 5)), 0, 99) for rate in operator.rates)
    detune = moved(operator.detune, int(rng.integers(-2, 3)), -7, 7)
    coarse, fine = (int(sign) for sign in rng.choice((-1, 1), 2))
    if is_carrier or operator.coarse < 7:
        coarse = 0
    if is_carrier or operator.fine == 0:
        fine = 0
    frequency = {"coarse": operator.coarse + coarse, "fine": moved(operator.fine, 3 * fine, 0, 99), "detune": detune}
    return replace(operator, output_level=moved(operator.output_level, level, 0, 99), rates=rates, **frequency)


def other_voice(voice: Voice, steps: int, rng: np.random.Generator) -> Voice:
    """Return another voice of the same name; silent operators stay unchanged."""
    carriers = ALGORITHMS[voice.algorithm - 1].carriers
    operators = tuple(
        other_operator(operator, number in carriers, steps, rng) if operator.output_level else operator
        for number, operator in enumerate(voice.operators, 1)
    )
    feedback = moved(voice.feedback, int(rng.choice((-1, 1))), 1, 7) if voice.feedback else 0
    return replace(voice, operators=operators, feedback=feedback)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bank", type=Path)
    parser.add_argument("--steps", type=int, default=6, help="of 0.75 dB; default 6")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    generator = np.random.default_rng(options.seed)
    save_bank(options.bank, [other_voice(voice, options.steps, generator) for voice in default_voices() * 4])
