"""Two clips: in which of them is it, and in what do they differ?"""

from __future__ import annotations

from .shapes.questions import kind_questions

TASK = kind_questions(
    "two_clips",
    "Which of two clips",
    "In which of two clips is a sound, or an order, and in what do the two differ?",
    ("which_has", "which_order", "what_differs"),
    "The four questions of a group have the same words, and each answer once: habits and words alone are at 1/4, and "
    "right in no group. A model that hears one clip alone reaches 1/2 in which has and which order, and 1/4 in what "
    "differs, and no group either. Groups right is the strict score.",
    ranks_by="groups_right",
    described_by=("spectrum-comparer",),  # it is right in all groups of what differs
    captions={"audio/0": "the clip that is heard first", "audio/1": "the clip that is heard second"},
)
