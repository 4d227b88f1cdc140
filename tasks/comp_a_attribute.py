"""CompA-attribute: is it told which of two sounds is the slow, the high or the soft one, by the same words?"""

from __future__ import annotations

from .caption_pairs import CaptionPairs, pair_info

TASK = CaptionPairs(
    pair_info(
        "comp_a_attribute",
        "CompA attribute",
        "Is it told which of two sounds is the slow, the high or the soft one, by captions of the same words?",
        "comp_a_attribute",
        ("sorted-words:",),
    )
)
