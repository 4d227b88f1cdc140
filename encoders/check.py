"""What a newcomer runs before anything else: is an encoder one, and does it do what its author thinks?

Every check gives whether it passed, what was measured, and, where it failed, what that usually means. The faults that
are looked for are those that wrappers of audio models have had again and again: a wrong sample rate, an embedding that
changes with the clips beside it, random crops, rows in another order, padding taken for sound.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from rich import box
from rich.console import Console
from rich.table import Table

from . import ClipError, Encoder, EncoderOptions, StagedEncoder, load_encoder

from .check_measures import (TONE_FREQUENCIES, Array, distances, make_tones, memory_growth, relative_difference)
from audio_compositionality.evaluator.compare.table import PIPED_WIDTH

CLIP_SECONDS = 10
"""Length of the benchmark's clips."""

SHORT_SECONDS = 2
"""Length of the clips of most checks, so that these are quick."""

RATES = (16_000, 32_000, 44_100, 48_000)
"""Rates in Hz at which the same tones must give nearly the same embeddings."""

REPEATED = 1e-6
"""Largest relative difference between embeddings of the same clip: a few roundings of float32."""

BATCHED = 1e-4
"""Largest relative difference that other clips in the batch may make; kernels for other sizes round otherwise."""

DIFFERENT = 1e-5
"""Smallest relative difference between embeddings of different clips; that of an untrained network may be small."""


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check.

    Attributes:
        name: what was checked.
        passed: None where nothing can fail (a measurement), or the check could not be run.
        value: what was measured, or the encoder's own message.
        hint: what a failure usually means; empty where there is none.
    """

    name: str
    passed: bool | None
    value: str
    hint: str = ""


Outcome = tuple[bool | None, str]


@dataclass
class _Session:
    """An encoder under check, and what has been learnt of it so far."""

    encoder: Encoder
    memory: Callable[[], str]
    seconds: float = SHORT_SECONDS
    embeddings: Array = field(default_factory=lambda: np.empty(0))

    def tones(self, rate: int | None = None) -> Array:
        return make_tones(rate or self.encoder.sample_rate, self.seconds)

    def embed(self, clips: Any, rate: int | None = None) -> Array:
        return np.asarray(self.encoder.embed(clips, rate or self.encoder.sample_rate))


@dataclass(frozen=True)
class _Check:
    name: str
    needs: tuple[str, ...]
    run: Callable[[_Session], Outcome]
    hint: str = ""


def check_encoder(
    encoder_id: str, *, device: str | torch.device | None = None, options: EncoderOptions | None = None
) -> Iterator[CheckResult]:
    """Load an encoder and check it; results come as they are found.

    Args:
        encoder_id: what `load_encoder` takes.
        device: torch device; by default CUDA where there is one.
        options: layer, pooling, precision, compilation.

    Yields:
        the result of every check, in a fixed order.
    """
    memory = memory_growth()
    try:
        encoder = load_encoder(encoder_id, device=device, options=options or EncoderOptions())
    except Exception as error:
        yield CheckResult("loads", False, _message(error), _LOADS)
        return
    yield CheckResult(
        "loads", True, f"{encoder.id}, {encoder.sample_rate:,} Hz, {encoder.output_dim} values, {encoder.revision}"
    )
    yield from check_loaded(encoder, memory)


def check_loaded(encoder: Encoder, memory: Callable[[], str] | None = None) -> Iterator[CheckResult]:
    """Check an encoder that is loaded; see `check_encoder`.

    Args:
        encoder: any.
        memory: says how far memory has grown; by default from now on.
    """
    session = _Session(encoder, memory or memory_growth())
    blocked: set[str] = set()
    for check in _CHECKS:
        missing = next((name for name in check.needs if name in blocked), None)
        if missing is not None:
            blocked.add(check.name)
            yield CheckResult(check.name, None, f"not run, as '{missing}' did not pass")
            continue
        try:
            passed, value = check.run(session)
        except Exception as error:
            passed, value = False, _message(error)
        if passed is False:
            blocked.add(check.name)
        yield CheckResult(check.name, passed, value, check.hint if passed is False else "")


def all_passed(results: Iterable[CheckResult]) -> bool:
    """Whether no check failed."""
    return all(result.passed is not False for result in results)


def print_checks(results: Iterable[CheckResult], console: Console | None = None) -> bool:
    """Print results as they come, then what each failure usually means.

    Returns:
        whether no check failed.
    """
    console = console or Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    marks = {True: "[green]pass", False: "[bold red]FAIL", None: "[dim]info"}
    done = []
    for result in results:
        done.append(result)
        row = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
        row.add_column(width=4)
        row.add_column(width=max(len(check.name) for check in _CHECKS))
        row.add_column(overflow="fold")
        row.add_row(marks[result.passed], result.name, _escape(result.value))
        console.print(row)
    failed = [result for result in done if result.passed is False]
    if failed:
        table = Table("failed", "what it usually means", box=box.SIMPLE_HEAD, pad_edge=False)
        for result in failed:
            table.add_row(result.name, _escape(result.hint))
        console.print(table)
    return not failed


def _escape(text: str) -> str:
    return text.replace("[", r"\[")


def _embeds(session: _Session) -> Outcome:
    clips = make_tones(session.encoder.sample_rate, CLIP_SECONDS)
    try:
        session.embeddings = session.embed(clips)
    except ClipError:
        # It is about a value that is not finite, which the next check reports.
        session.embeddings = np.full((len(clips), session.encoder.output_dim), np.nan, np.float32)
    return True, f"{len(clips)} clips of {CLIP_SECONDS} s"


def _finite(session: _Session) -> Outcome:
    silence = np.zeros((1, CLIP_SECONDS * session.encoder.sample_rate), np.float32)
    try:
        silent = session.embed(silence)
    except ClipError as error:
        return False, f"silence: {error}"
    for what, embeddings in (("tones", session.embeddings), ("silence", silent)):
        bad = int((~np.isfinite(embeddings)).sum())
        if bad:
            return False, f"{what}: {bad} values are NaN or infinite"
    return True, "tones and silence"


def _shape(session: _Session) -> Outcome:
    expected = (len(TONE_FREQUENCIES), session.encoder.output_dim)
    shape = session.embeddings.shape
    return shape == expected, f"{shape}" if shape == expected else f"{shape}, but must be {expected}"


def _dtype(session: _Session) -> Outcome:
    return session.embeddings.dtype == np.float32, str(session.embeddings.dtype)


def _short(session: _Session) -> Outcome:
    try:
        session.embed(session.tones())
    except Exception as error:
        session.seconds = CLIP_SECONDS
        return None, f"refused ({_message(error)}); the next checks take clips of {CLIP_SECONDS} s"
    return None, "accepted; the next checks take them"


def _deterministic(session: _Session) -> Outcome:
    tones = session.tones()
    first = session.embed(tones)
    session.embed(tones[::-1][:2])
    difference = relative_difference(session.embed(tones), first)
    return difference <= REPEATED, f"relative difference {difference:.1e}"


def _sensitive(session: _Session) -> Outcome:
    tones = session.tones()
    noise = np.random.default_rng(0).normal(0, 0.1, tones[:1].shape).astype(np.float32)
    embeddings = session.embed(np.concatenate([tones, noise, np.zeros_like(noise)]))
    between = distances(embeddings, embeddings)[np.triu_indices(len(embeddings), 1)]
    norm = float(np.linalg.norm(embeddings, axis=1).mean())
    smallest = float(between.min()) / norm if norm else 0.0
    return smallest >= DIFFERENT, f"embeddings of six sounds differ by {smallest:.1e} of their norm at least"


def _batch(session: _Session) -> Outcome:
    tones = session.tones()
    alone = np.concatenate([session.embed(tone[None]) for tone in tones])
    # A row is compared with the nearest one: whether it is in its place is another check.
    worst = _to_nearest(session.embed(tones), alone)
    value = f"relative difference {worst:.1e} in a batch"
    if isinstance(session.encoder, StagedEncoder) and session.seconds < CLIP_SECONDS:
        longer = make_tones(session.encoder.sample_rate, session.seconds + 1)
        mixed = session.encoder.embed([tones[0], longer[1], longer[2]], session.encoder.sample_rate)
        padded = relative_difference(mixed[:1], alone[:1])
        value += f", {padded:.1e} beside longer clips"
        worst = max(worst, padded)
    return worst <= BATCHED, value


def _to_nearest(rows: Array, reference: Array) -> float:
    nearest = distances(rows, reference).argmin(axis=1)
    return relative_difference(rows, reference[nearest])


def _order(session: _Session) -> Outcome:
    tones = session.tones()
    count = len(tones)
    plain = session.embed(tones)
    # A cycle and an exchange generate every permutation, so that no other order of rows agrees with both.
    for order in (np.roll(np.arange(count), 1), np.array([1, 0, *range(2, count)])):
        found = distances(session.embed(tones[order]), plain).argmin(axis=1)
        if not np.array_equal(found, order):
            return False, f"clips {order.tolist()} gave the embeddings of clips {found.tolist()}"
    return True, f"{count} clips in three orders"


def _rate(session: _Session) -> Outcome:
    own = session.encoder.sample_rate
    reference = session.embed(session.tones())
    others = [rate for rate in RATES if rate != own]
    worst = 0.0
    for rate in others:
        matrix = distances(session.embed(session.tones(rate), rate), reference)
        for tone, row in enumerate(matrix):
            if row.argmin() != tone:
                heard = TONE_FREQUENCIES[int(row.argmin())]
                return False, (
                    f"a tone of {TONE_FREQUENCIES[tone]:.0f} Hz in a clip at {rate:,} Hz is closest to {heard:.0f} Hz "
                    f"at {own:,} Hz"
                )
            worst = max(worst, float(row[tone] / np.delete(row, tone).min()))
    return True, (
        f"tones at {', '.join(f'{rate:,}' for rate in others)} Hz are closest to themselves, "
        f"at {worst:.1e} of the distance to the next"
    )


def _int16(session: _Session) -> Outcome:
    samples = np.round(session.tones()[:2] * 32_767).astype(np.int16)
    difference = relative_difference(session.embed(samples), session.embed(samples / np.float32(32_768)))
    return difference <= REPEATED, f"relative difference {difference:.1e}"


def _level(session: _Session) -> Outcome:
    tones = session.tones()
    embeddings = session.embed(tones)
    softer = session.embed(0.5 * tones)
    between = distances(embeddings, embeddings)[np.triu_indices(len(tones), 1)].mean()
    moved = np.diag(distances(softer, embeddings)).mean()
    return None, f"6 dB less moves an embedding by {moved / between:.2g} of the distance between tones"


def _speed(session: _Session) -> Outcome:
    clips = make_tones(session.encoder.sample_rate, CLIP_SECONDS)
    parts = []
    for size in (1, 4):
        session.embed(clips[:size])
        start = time.perf_counter()
        session.embed(clips[:size])
        parts.append(f"{size / (time.perf_counter() - start):.3g} clips/s in batches of {size}")
    device = getattr(session.encoder, "device", "cpu")
    return None, f"{', '.join(parts)} ({CLIP_SECONDS} s each, on {device})"


def _memory(session: _Session) -> Outcome:
    return None, session.memory()


def _message(error: Exception) -> str:
    text = (str(error).strip().splitlines() or [""])[0]
    return text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}"


_LOADS = (
    "A name that is not known, files that are not there or incomplete, or an error in the class's own __init__. The "
    "message says which; `audio-compositionality encoders` lists the names."
)
_BASIC = ("embeds", "finite", "shape")
_STEADY = (*_BASIC, "deterministic")

_CHECKS: Sequence[_Check] = (
    _Check(
        "embeds",
        (),
        _embeds,
        "The benchmark consists of clips of 10 s. A model with a shorter window must see them in pieces; one with a "
        "longer window pads them. If the message is about a shape, embed must return one row a clip: [n, output_dim].",
    ),
    _Check(
        "finite",
        ("embeds",),
        _finite,
        "A logarithm or a division without a floor (log(0), normalisation of silence), or float16 that overflows.",
    ),
    _Check(
        "shape",
        ("embeds", "finite"),
        _shape,
        "One row a clip, [n, output_dim]: frames are not pooled, the batch is squeezed or transposed, or output_dim is "
        "that of another layer.",
    ),
    _Check(
        "dtype",
        _BASIC,
        _dtype,
        "Embeddings are stored and scored as float32: cast them (array.astype(numpy.float32)), pooling in float32.",
    ),
    _Check(f"clips of {SHORT_SECONDS} s", _BASIC, _short),
    _Check(
        "deterministic",
        _BASIC,
        _deterministic,
        "The same clips gave other embeddings the second time: dropout or batch statistics are on (call eval()), a "
        "long clip is cropped at random, noise is added (dither), or the object keeps something from call to call.",
    ),
    _Check(
        "sensitive",
        _STEADY,
        _sensitive,
        "Different sounds gave the same embedding: weights that were not loaded, input scaled to nothing (int16 taken "
        "for float), a constant token pooled, or padding that drowns the clip.",
    ),
    _Check(
        "batch",
        _STEADY,
        _batch,
        "The embedding of a clip depends on the clips beside it: normalisation over the batch, batch normalisation in "
        "training mode, or padding to the longest clip without a mask.",
    ),
    _Check(
        "order",
        (*_STEADY, "sensitive"),
        _order,
        "Row i is not clip i: clips are sorted by length or level and not put back, or shards are joined in another "
        "order.",
    ),
    _Check(
        "rate",
        (*_STEADY, "sensitive"),
        _rate,
        "The sample rate of the input is ignored: clips are not resampled to the model's own, and everything sounds "
        "higher or lower. (The baseline 'random', which only knows whether two clips are the same bits, fails here and "
        "nowhere else.)",
    ),
    _Check(
        "int16",
        _STEADY,
        _int16,
        "16-bit samples must be divided by 32,768: the same clip as int16 and as float gave different embeddings.",
    ),
    _Check("level", (*_STEADY, "sensitive"), _level),
    _Check("speed", _BASIC, _speed),
    _Check("memory", _BASIC, _memory),
)
