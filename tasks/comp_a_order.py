"""CompA-order: is it told which of two sounds came first, where captions have the same words?"""

from __future__ import annotations

from .caption_pairs import CaptionPairs, pair_info

TASK = CaptionPairs(
    pair_info(
        "comp_a_order",
        "CompA order",
        "Is it told which of two sounds came first, by captions of the same words?",
        "comp_a_order",
        ("sorted-words:", "reversed-audio:"),
    )
)
