"""Qwen2-Audio (Chu et al., 2024, arXiv 2407.10759), and models trained on from it such as R1-AQA (arXiv 2503.11197).

R1-AQA's card names the same class, processor and template. Clips of more than 30 s, which the processor cuts without a
word, are refused.
"""

from __future__ import annotations

from ..front_end import ProcessorFrontEnd
from ..listing import LanguageFamily

FAMILY = LanguageFamily(
    "Qwen2-Audio",
    {"Qwen2AudioForConditionalGeneration": "Qwen2AudioForConditionalGeneration"},
    ProcessorFrontEnd,
)
