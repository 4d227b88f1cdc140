"""Two clips: which of them has a sound or an order, and in what do they differ?"""

from __future__ import annotations

from .shapes.questions import kind_questions

TASK = kind_questions(
    "two_clips",
    "Which of two clips",
    "In which of two clips is a sound, or an order, and in what do the two differ?",
    ("which_has", "which_order", "what_differs"),
    "The four questions of a group have the same words, and each answer once: habits and words alone are at 1/4, and "
    "right in no group. A model that uses one clip alone scores 1/2 in which has and which order, and 1/4 in what "
    "differs, and is right in no group either. Groups right is the strict score.",
    ranks_by="groups_right",
    described_by=("spectrum-comparer",),  # it answers all groups of what differs correctly
    captions={"audio/0": "the first clip", "audio/1": "the second clip"},
)
