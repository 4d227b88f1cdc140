"""Arguments about how questions are put to models that answer."""

from __future__ import annotations

import argparse
import math
from typing import Any

from audio_compositionality.support.errors import InputError

NAMES = ("prompt", "orders", "scoring", "embedding_match")


def add_asking_options(parser: argparse.ArgumentParser) -> None:
    """Add how questions are put: `asking_settings`, `most_questions` and `deadline` read it."""
    group = parser.add_argument_group("tasks that ask questions of models that answer")
    group.add_argument(
        "--prompt",
        metavar="NAME",
        help="direct (default) asks for one letter only; text for the text of an option, the default of --scoring "
        "options; reason asks for an explanation first and the letter behind it, of up to 1,024 tokens, which takes "
        "much longer",
    )
    group.add_argument(
        "--orders",
        metavar="1|cyclic",
        help="1 (default) shows the options as the data have them; cyclic asks each question once an order, its "
        "options turned until each has stood at each position: two to four times as many answers, which tell a habit "
        "of letters from knowledge (consistency)",
    )
    group.add_argument(
        "--scoring",
        metavar="NAME",
        help="generate (default) reads what the model writes, as the paper does; letters takes the likeliest letter "
        "as its first token, options the likeliest text of an option: no answer is unreadable then, and nothing is "
        "written",
    )
    group.add_argument(
        "--embedding-match",
        metavar="ENCODER",
        help="also score polybench by sentence embeddings, as the paper matches: each answer counts as the option "
        "most similar to it by this encoder of sentences, a folder or a Hub id such as "
        "sentence-transformers/all-MiniLM-L6-v2; it stands beside the score, and a result that has it is not submitted",
    )
    group.add_argument(
        "--max-questions",
        type=int,
        metavar="N",
        help="refuse, before the first one, to put more questions than this to a model behind a server (endpoint:), "
        "where each may cost; answers that are kept from before do not count",
    )
    group.add_argument(
        "--deadline",
        type=float,
        metavar="SECONDS",
        help="seconds that one question to a model behind a server may take, all its tries together and without the "
        "waits between them; default 120. The command ends where there is no whole answer then; what was answered is "
        "kept",
    )


def asking_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Settings of tasks that are asked for, none where none is.

    Raises:
        InputError: a value is not one that there is, or two contradict each other.
    """
    given = {name: getattr(options, name, None) for name in NAMES}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if not settings:
        return {}
    # Imported only where something is asked for.
    from audio_compositionality.tasks.polybench import PolybenchSpec

    if settings.get("orders") == "1":
        settings["orders"] = 1
    try:
        PolybenchSpec(**settings)
    except InputError as error:
        flags = [f"--{name.replace('_', '-')} {given[name]}" for name in settings]
        raise InputError(f"{' '.join(flags)}: {error}") from error
    return settings


def most_questions(options: argparse.Namespace) -> int | None:
    """The most questions that are allowed; None for any number.

    Raises:
        InputError: it is below 0.
    """
    most: int | None = getattr(options, "max_questions", None)
    if most is not None and most < 0:
        raise InputError(f"--max-questions is {most}; it must be 0 or more")
    return most


def deadline(options: argparse.Namespace) -> float | None:
    """The seconds that a question to a server may take; None for its own number, also of commands that ask none.

    Raises:
        InputError: it is not above 0, or without end.
    """
    seconds: float | None = getattr(options, "deadline", None)
    if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
        raise InputError(f"--deadline is {seconds:g}; it must be a number of seconds above 0, such as 120")
    return seconds
