"""Negation in questions: which of two descriptions that differ in one word is true of a sound?"""

from __future__ import annotations

from .shapes.questions import kind_questions

TASK = kind_questions(
    "negation_questions",
    "Negation questions",
    "Which of two descriptions that differ in one word, such as no and some, is true of the sound?",
    ("absence", "only", "number", "order"),
    "Two questions with the same words have different answers: a model that uses the words alone, or always takes one "
    "word, is right in one of the two, and in no group. Groups right, all four questions about two clips, is the "
    "strict score. A model that ignores the word cannot tell the options apart, and is at 1/2.",
    ranks_by="groups_right",
)
