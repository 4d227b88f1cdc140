"""Counting questions: how often does a sound occur, if a quantity such as energy does not depend on the count?"""

from __future__ import annotations

from .shapes.questions import kind_questions

TASK = kind_questions(
    "count_instances_questions",
    "Counting questions",
    "Does an audio language model say how often a sound is heard?",
    ("energy", "span", "density", "activity"),
    (
        "The kinds are the held quantities, which do not depend on the count; the worst kind is what a model counts "
        "if energy, span, density or activity alone does not help. Each count of a ladder is the right option once: "
        "a constant answer, a habit of positions and the words of the question are at chance exactly. A right answer "
        "needs no more than the number of onsets."
    ),
    ranks_by="worst_kind",
)
