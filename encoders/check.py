"""What a newcomer runs before anything else: is a model one, and does it hear, read and answer as its author thinks?

Every check gives whether it passed, what was measured, and, where it failed, what that usually means. The faults that
are looked for are those that wrappers of audio models have had again and again: a wrong sample rate, an embedding that
changes with the clips beside it, random crops, rows in another order, padding taken for sound, seconds that are not
heard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.table import Cell, Column, Row, Table

from .base import ModelError
from .check_answers import (
    AnswerSession,
    check_answers,
    check_answers_batch,
    check_answers_deterministic,
    check_answers_hear,
    check_answers_memory,
    check_answers_speed,
    check_letters,
)
from .check_findings import (
    SHORT_SECONDS,
    Finding,
    Session,
    Status,
    check_alike,
    check_batch,
    check_deterministic,
    check_dtype,
    check_embeds,
    check_finite,
    check_int16,
    check_level,
    check_memory,
    check_order,
    check_quiet,
    check_rate,
    check_seconds,
    check_sensitive,
    check_shape,
    check_short,
    check_speed,
    message_of,
)
from .check_sounds import memory_growth
from .check_texts import (
    check_text_batch,
    check_text_deterministic,
    check_text_dtype,
    check_text_embeds,
    check_text_order,
    check_text_sensitive,
)
from .loading.registry import load_model
from .options import DEFAULT_OPTIONS, EncoderOptions
from .protocols import AudioEncoder, AudioLanguageModel, AudioTextEncoder, Model

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Check:
    """The outcome of one check.

    Attributes:
        name: what was checked.
        status: ``info`` where nothing can fail (a measurement), or the check could not be run; ``warn`` where scores
            will have to be read with care.
        value: what was measured, or the encoder's own message.
        hint: what a failure or a warning usually means; empty otherwise.
    """

    name: str
    status: Status
    value: str
    hint: str = ""


@dataclass(frozen=True)
class _Test:
    name: str
    needs: tuple[str, ...]
    run: Callable[[Any], Finding]
    hint: str = ""


def check_model(
    model: str | Model, *, device: str | torch.device | None = None, options: EncoderOptions = DEFAULT_OPTIONS
) -> list[Check]:
    """Check a model: what it embeds, and what it answers.

    Args:
        model: what `load_model` takes, or a model that is loaded.
        device: torch device of one that is to be loaded; by default CUDA where there is one.
        options: layer, pooling, precision, compilation of one that is to be loaded.

    Returns:
        the result of every check, in a fixed order; only that of loading where the model cannot be loaded.
    """
    memory = memory_growth()
    checks = []
    if isinstance(model, str):
        try:
            loaded = load_model(model, device=device, options=options)
            if not isinstance(loaded, AudioEncoder | AudioLanguageModel):
                raise ModelError(f"'{model}' is a {type(loaded).__name__}, which neither embeds sound nor answers")
        except Exception as error:
            return [Check("loads", "fail", message_of(error), _LOADS)]
        model, card = loaded, loaded.card
        values = "answers" if card.output_dim is None else f"{card.output_dim} values"
        checks.append(Check("loads", "pass", f"{card.id}, {card.sample_rate:,} Hz, {values}, {card.revision}"))
    if isinstance(model, AudioEncoder):
        tests = (*_TESTS, *(_TEXT_TESTS if isinstance(model, AudioTextEncoder) else ()), *_COSTS)
        checks += _checks(tests, Session(model, memory))
    if isinstance(model, AudioLanguageModel):
        costs = () if isinstance(model, AudioEncoder) else (_ANSWER_MEMORY,)
        checks += _checks((*_ANSWER_TESTS, *costs), AnswerSession(model, memory))
    return checks


def _checks(tests: Iterable[_Test], session: Session | AnswerSession) -> list[Check]:
    """The result of each test; one that needs what has failed is not run."""
    checks: list[Check] = []
    blocked: set[str] = set()
    for test in tests:
        missing = next((name for name in test.needs if name in blocked), None)
        if missing is not None:
            blocked.add(test.name)
            checks.append(Check(test.name, "info", f"not run, as '{missing}' did not pass"))
            continue
        status, value = _run(test, session)
        if status == "fail":
            blocked.add(test.name)
        checks.append(Check(test.name, status, value, test.hint if status in ("fail", "warn") else ""))
    return checks


def _run(test: _Test, session: Session | AnswerSession) -> Finding:
    try:
        return test.run(session)
    except Exception as error:
        return "fail", message_of(error)


def all_passed(checks: Iterable[Check]) -> bool:
    """Whether no check failed."""
    return all(check.status != "fail" for check in checks)


def check_table(checks: Sequence[Check], name: str) -> Table:
    """The checks of a model as a table; what failures and warnings usually mean is its legend."""
    columns = (
        Column("check", "what was checked", numeric=False),
        Column("result", "fail, warn and pass; info is a measurement", numeric=False),
        Column("measured", "what was measured, or the encoder's own message", numeric=False),
    )
    rows = tuple(Row((Cell(check.name), Cell(check.status), Cell(check.value))) for check in checks)
    return Table(f"Checks of {name}", columns, rows, tuple(f"{c.name}: {c.hint}" for c in checks if c.hint))


_LOADS = (
    "A name that is not listed, files that are not there or incomplete, or an error in the class's own __init__. The "
    "message says which; `audio-compositionality models` lists the names."
)
_BASIC = ("embeds", "finite", "shape")
_STEADY = (*_BASIC, "deterministic")
_HEARING = (*_STEADY, "sensitive")

_TESTS: Sequence[_Test] = (
    _Test(
        "embeds",
        (),
        check_embeds,
        "Clips may last 10 s. A model with a shorter window must see them in pieces; one with a longer window pads "
        "them. If the message is about a shape, embed must return one row a clip: [n, output_dim].",
    ),
    _Test(
        "finite",
        ("embeds",),
        check_finite,
        "A logarithm or a division without a floor (log(0), normalisation of silence), or float16 that overflows.",
    ),
    _Test(
        "shape",
        ("embeds", "finite"),
        check_shape,
        "One row a clip, [n, output_dim]: frames are not pooled, the batch is squeezed or transposed, or output_dim is "
        "that of another layer.",
    ),
    _Test(
        "dtype",
        _BASIC,
        check_dtype,
        "Embeddings are stored and scored as float32: cast them (array.astype(numpy.float32)), pooling in float32.",
    ),
    _Test(f"clips of {SHORT_SECONDS} s", _BASIC, check_short),
    _Test(
        "deterministic",
        _BASIC,
        check_deterministic,
        "The same clips gave other embeddings the second time: dropout or batch statistics are on (call eval()), a "
        "long clip is cropped at random, noise is added (dither), or the object keeps something from call to call.",
    ),
    _Test(
        "sensitive",
        _STEADY,
        check_sensitive,
        "Different sounds gave the same embedding: weights that were not loaded, input scaled to nothing (int16 taken "
        "for float), a constant token pooled, or padding that drowns the clip.",
    ),
    _Test(
        "seconds",
        _HEARING,
        check_seconds,
        "A part of the clip is not heard: the model crops to its window, or only the first frames are pooled. Embed "
        "the clip in pieces and average them.",
    ),
    _Test(
        "quiet",
        _HEARING,
        check_quiet,
        "A quiet sound gave the embedding of silence: a threshold or a voice detector in the front end, or samples "
        "that were rounded to whole numbers.",
    ),
    _Test(
        "alike",
        _STEADY,
        check_alike,
        "Embeddings of different sounds are nearly one vector, as an untrained network's are. Scores that compare "
        "whole embeddings will be high whatever the model hears: read the centred ones, and "
        "those of untrained:MODEL where the model has an untrained twin.",
    ),
    _Test(
        "batch",
        _STEADY,
        check_batch,
        "The embedding of a clip depends on the clips beside it: normalisation over the batch, batch normalisation in "
        "training mode, or padding to the longest clip without a mask.",
    ),
    _Test(
        "order",
        _HEARING,
        check_order,
        "Row i is not clip i: clips are sorted by length or level and not put back, or shards are joined in another "
        "order.",
    ),
    _Test(
        "rate",
        _HEARING,
        check_rate,
        "The sample rate of the input is ignored: clips are not resampled to the model's own, and everything sounds "
        "higher or lower. (The baseline 'random', which only knows whether two clips are the same bits, fails here and "
        "nowhere else.)",
    ),
    _Test(
        "int16",
        _STEADY,
        check_int16,
        "16-bit samples must be divided by 32,768: the same clip as int16 and as float gave different embeddings.",
    ),
    _Test("level", _HEARING, check_level),
)

_TEXT_TESTS: Sequence[_Test] = (
    _Test(
        "texts",
        _BASIC,
        check_text_embeds,
        "embed_text takes a list of str and returns one row a text, of as many values as a clip has: both are "
        "projected to the space that they share. Its tokenizer and weights must be there.",
    ),
    _Test("texts: dtype", ("texts",), check_text_dtype, "Cast them as those of clips: array.astype(numpy.float32)."),
    _Test(
        "texts: deterministic",
        ("texts",),
        check_text_deterministic,
        "The same texts gave other embeddings the second time: dropout is on (call eval()), or the object keeps "
        "something from call to call.",
    ),
    _Test(
        "texts: batch",
        ("texts", "texts: deterministic"),
        check_text_batch,
        "The embedding of a text depends on the texts beside it: padding without a mask, the last token taken at the "
        "end of the padding, or rows in another order.",
    ),
    _Test(
        "texts: sensitive",
        ("texts", "texts: deterministic"),
        check_text_sensitive,
        "Different texts gave the same embedding: a token at the same place is taken that has not seen the others, or "
        "the tokenizer knows no words.",
    ),
    _Test(
        "texts: order",
        ("texts", "texts: sensitive"),
        check_text_order,
        "Texts of the same words are one to it, as to a bag of words: no task of order or of binding can be solved.",
    ),
)
"""Of encoders that embed text as well."""

_COSTS: Sequence[_Test] = (
    _Test("speed", _BASIC, check_speed),
    _Test("memory", _BASIC, check_memory),
)

_ANSWERS = ("answers",)

_ANSWER_TESTS: Sequence[_Test] = (
    _Test(
        "answers",
        (),
        check_answers,
        "answer(clips, prompts) takes clips with waveform and sample_rate, of different lengths, and as many prompts; "
        "it returns a list with one str for each.",
    ),
    _Test(
        "answers: letters",
        _ANSWERS,
        check_letters,
        "Options are asked for by their letter. Other words are read by rules, and what they cannot read is wrong.",
    ),
    _Test(
        "answers: deterministic",
        _ANSWERS,
        check_answers_deterministic,
        "The same question got another answer the second time: sampling is on (decode greedily), or dropout is.",
    ),
    _Test(
        "answers: batch",
        (*_ANSWERS, "answers: deterministic"),
        check_answers_batch,
        "An answer depends on the questions beside it: padding without a mask, padding on the right before text is "
        "generated, or answers in another order. Use --batch-size 1, or mend it.",
    ),
    _Test("answers: silence", _ANSWERS, check_answers_hear),
    _Test("answers: speed", _ANSWERS, check_answers_speed),
)
"""Of models that answer."""

_ANSWER_MEMORY = _Test("memory", _ANSWERS, check_answers_memory)
