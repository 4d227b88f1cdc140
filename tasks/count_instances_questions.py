"""Questions of counting: how many times is a sound heard, by what tells nothing of it?"""

from __future__ import annotations

from .shapes.questions import kind_questions

TASK = kind_questions(
    "count_instances_questions",
    "Questions of counting",
    "Does an audio language model say how often a sound is heard?",
    ("energy", "span", "density", "activity"),
    (
        "The kinds are what is held, so that it tells nothing of the count; the worst of them is what a model counts "
        "where energy, span, density or activity alone does not help. Each count of a ladder is the right option once: "
        "a constant answer, a habit of positions and the words of the question are at chance exactly. A right answer "
        "needs no more than the number of onsets."
    ),
    ranks_by="worst_kind",
)
