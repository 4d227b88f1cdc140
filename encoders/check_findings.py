"""The single checks of an encoder, and what they are made with; `check` says what a failure of each means."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.text import first_line

from .base import ClipError, StagedEncoder, output_dim_of
from .check_sounds import TONE_FREQUENCIES, Array, cosines, distances, make_bursts, make_tones, relative_difference
from .company import allowed_in_company
from .protocols import AudioEncoder

CLIP_SECONDS = 10
"""Length of the longest clips that most data here have, in seconds."""

SHORT_SECONDS = 2
"""Length of the clips of most checks in seconds, so that these are quick."""

RATES = (16_000, 32_000, 44_100, 48_000)
"""Rates in Hz at which the same tones must give nearly the same embeddings."""

REPEATED = 1e-6
"""Largest relative difference between embeddings of the same clip: a few roundings of float32."""

DIFFERENT = 1e-5
"""Smallest relative difference between embeddings of different clips; that of an untrained network may be small."""

HEARD = 1e-3
"""Smallest effect of a burst of sound in one second, in parts of its effect in the second where it has the most."""

ALIKE = 0.99
"""Mean cosine of embeddings of different clips above which they are nearly one."""

QUIET = 0.01
"""Gain (-40 dB) at which a sound must still not be silence."""

Status = Literal["pass", "fail", "warn", "info"]
Finding = tuple[Status, str]


@dataclass
class Session:
    """An encoder under check, and what has been learnt of it so far.

    Attributes:
        encoder: the encoder.
        memory: says how far memory has grown.
        seconds: length of the clips of most checks.
        embeddings: of four tones of ten seconds.
    """

    encoder: AudioEncoder
    memory: Callable[[], str]
    seconds: float = SHORT_SECONDS
    embeddings: Array = field(default_factory=lambda: np.empty(0))

    @property
    def rate(self) -> int:
        """The encoder's own, in Hz."""
        return self.encoder.card.sample_rate

    def tones(self, rate: int | None = None) -> Array:
        """Four tones: see `make_tones`."""
        return make_tones(rate or self.rate, self.seconds)

    def noise(self) -> Array:
        """A clip of noise, float32 [1, samples]."""
        return np.random.default_rng(0).normal(0, 0.1, (1, round(self.seconds * self.rate))).astype(np.float32)

    def embed(self, clips: Any, rate: int | None = None) -> Array:
        """Embeddings of clips, by default at the encoder's rate."""
        return np.asarray(self.encoder.embed(clips, rate or self.rate))


def check_embeds(session: Session) -> Finding:
    """Clips of ten seconds give embeddings."""
    clips = make_tones(session.rate, CLIP_SECONDS)
    try:
        session.embeddings = session.embed(clips)
    except ClipError:
        # It is about a value that is not finite, which the next check reports.
        session.embeddings = np.full((len(clips), output_dim_of(session.encoder)), np.nan, np.float32)
    return "pass", f"{len(clips)} clips of {CLIP_SECONDS} s"


def check_finite(session: Session) -> Finding:
    """Embeddings of tones and of silence are finite."""
    try:
        silent = session.embed(np.zeros((1, CLIP_SECONDS * session.rate), np.float32))
    except ClipError as error:
        return "fail", f"silence: {error}"
    for what, embeddings in (("tones", session.embeddings), ("silence", silent)):
        bad = int((~np.isfinite(embeddings)).sum())
        if bad:
            return "fail", f"{what}: {bad} values are NaN or infinite"
    return "pass", "tones and silence"


def check_shape(session: Session) -> Finding:
    """There is one row a clip."""
    expected, shape = (len(TONE_FREQUENCIES), session.encoder.card.output_dim), session.embeddings.shape
    return ("pass", f"{shape}") if shape == expected else ("fail", f"{shape}, but must be {expected}")


def check_dtype(session: Session) -> Finding:
    """Embeddings are float32."""
    dtype = session.embeddings.dtype
    return "pass" if dtype == np.float32 else "fail", str(dtype)


def check_short(session: Session) -> Finding:
    """Learn whether short clips are taken."""
    try:
        session.embed(session.tones())
    except Exception as error:
        session.seconds = CLIP_SECONDS
        return "info", f"refused ({message_of(error)}); the next checks take clips of {CLIP_SECONDS} s"
    return "info", "accepted; the next checks take them"


def check_deterministic(session: Session) -> Finding:
    """The same clips give the same embeddings again."""
    tones = session.tones()
    first = session.embed(tones)
    session.embed(tones[::-1][:2])
    difference = relative_difference(session.embed(tones), first)
    return _within(difference, REPEATED), f"relative difference {difference:.1e}"


def _within(difference: float, bound: float) -> Status:
    return "pass" if difference <= bound else "fail"


def check_sensitive(session: Session) -> Finding:
    """Different sounds give different embeddings."""
    noise = session.noise()
    embeddings = session.embed(np.concatenate([session.tones(), noise, np.zeros_like(noise)]))
    between = distances(embeddings, embeddings)[np.triu_indices(len(embeddings), 1)]
    norm = float(np.linalg.norm(embeddings, axis=1).mean())
    smallest = float(between.min()) / norm if norm else 0.0
    text = f"embeddings of six sounds differ by {smallest:.1e} of their norm at least"
    return "pass" if smallest >= DIFFERENT else "fail", text


def check_seconds(session: Session) -> Finding:
    """Sound in every second of the clip changes the embedding."""
    bursts = make_bursts(session.rate, CLIP_SECONDS)
    # A few at a time, which every machine has the memory for that has it for the check of clips of this length.
    embeddings = np.concatenate([session.embed(bursts[start : start + 4]) for start in range(0, len(bursts), 4)])
    effect = distances(embeddings[1:], embeddings[:1])[:, 0]
    # Counted from 1, as people count: the last second of ten is the tenth.
    deaf = [f"{second}" for second, size in enumerate(effect, 1) if size <= HEARD * effect.max()]
    if effect.max() <= DIFFERENT * np.linalg.norm(embeddings[0]):
        deaf = [f"{second}" for second in range(1, len(effect) + 1)]
    if deaf:
        return "fail", f"sound in these seconds, 1 to {CLIP_SECONDS}, changes nothing: {', '.join(deaf)}"
    return "pass", f"sound in each changes the embedding, at least {effect.min() / effect.max():.2g} of the most"


def check_quiet(session: Session) -> Finding:
    """A quiet sound is not silence."""
    tones = session.tones()
    embeddings = session.embed(np.concatenate([QUIET * tones, np.zeros_like(tones[:1])]))
    norm = float(np.linalg.norm(embeddings, axis=1).max())
    nearest = float(distances(embeddings[:-1], embeddings[-1:]).min()) / norm if norm else 0.0
    text = f"tones at -40 dB differ from silence by {nearest:.1e} of the norm at least"
    return "pass" if nearest >= DIFFERENT else "fail", text


def check_alike(session: Session) -> Finding:
    """Measure how much alike embeddings of different sounds are."""
    embeddings = session.embed(np.concatenate([session.tones(), session.noise()]))
    mean = float(cosines(embeddings)[np.triu_indices(len(embeddings), 1)].mean())
    return "warn" if mean > ALIKE else "info", f"mean cosine of embeddings of different sounds {mean:.4f}"


def check_batch(session: Session) -> Finding:
    """An embedding does not depend on the clips beside it."""
    tones = session.tones()
    alone = np.concatenate([session.embed(tone[None]) for tone in tones])
    # A row is compared with the nearest one: whether it is in its place is another check.
    worst = _to_nearest(session.embed(tones), alone)
    value = f"relative difference {worst:.1e} in a batch"
    if isinstance(session.encoder, StagedEncoder) and session.seconds < CLIP_SECONDS:
        longer = make_tones(session.rate, session.seconds + 1)
        mixed = session.encoder.embed([tones[0], longer[1], longer[2]], session.rate)
        padded = relative_difference(mixed[:1], alone[:1])
        value += f", {padded:.1e} beside longer clips"
        worst = max(worst, padded)
    return _within(worst, allowed_in_company(session.encoder.card.options.precision)), value


def _to_nearest(rows: Array, reference: Array) -> float:
    nearest = distances(rows, reference).argmin(axis=1)
    return relative_difference(rows, reference[nearest])


def check_order(session: Session) -> Finding:
    """Row i is clip i."""
    tones = session.tones()
    count = len(tones)
    plain = session.embed(tones)
    # A cycle and an exchange generate every permutation, so that no other order of rows agrees with both.
    for order in (np.roll(np.arange(count), 1), np.array([1, 0, *range(2, count)])):
        nearest = distances(session.embed(tones[order]), plain).argmin(axis=1)
        if not np.array_equal(nearest, order):
            return "fail", f"clips {order.tolist()} gave the embeddings of clips {nearest.tolist()}"
    return "pass", f"{count} clips in three orders"


def check_rate(session: Session) -> Finding:
    """The same sounds at another rate give nearly the same embeddings."""
    reference = session.embed(session.tones())
    other_rates = [rate for rate in RATES if rate != session.rate]
    worst = 0.0
    for rate in other_rates:
        matrix = distances(session.embed(session.tones(rate), rate), reference)
        for tone, row in enumerate(matrix):
            if row.argmin() != tone:
                heard = TONE_FREQUENCIES[int(row.argmin())]
                return "fail", (
                    f"a tone of {TONE_FREQUENCIES[tone]:.0f} Hz in a clip at {rate:,} Hz is closest to {heard:.0f} Hz "
                    f"at {session.rate:,} Hz"
                )
            worst = max(worst, float(row[tone] / np.delete(row, tone).min()))
    return "pass", (
        f"tones at {', '.join(f'{rate:,}' for rate in other_rates)} Hz are closest to themselves, "
        f"at {worst:.1e} of the distance to the next"
    )


def check_int16(session: Session) -> Finding:
    """16-bit samples give the same embeddings as floating ones."""
    samples = np.round(session.tones()[:2] * 32_767).astype(np.int16)
    difference = relative_difference(session.embed(samples), session.embed(samples / np.float32(32_768)))
    return _within(difference, REPEATED), f"relative difference {difference:.1e}"


def check_level(session: Session) -> Finding:
    """Measure what half the level changes."""
    tones = session.tones()
    embeddings = session.embed(tones)
    softer = session.embed(0.5 * tones)
    between = distances(embeddings, embeddings)[np.triu_indices(len(tones), 1)].mean()
    moved = np.diag(distances(softer, embeddings)).mean()
    return "info", f"6 dB less moves an embedding by {moved / between:.2g} of the distance between tones"


def check_speed(session: Session) -> Finding:
    """Measure clips a second."""
    clips = make_tones(session.rate, CLIP_SECONDS)
    parts = []
    for size in (1, 4):
        session.embed(clips[:size])
        start = time.perf_counter()
        session.embed(clips[:size])
        parts.append(f"{size / (time.perf_counter() - start):.3g} clips/s in batches of {size}")
    return "info", f"{', '.join(parts)} ({CLIP_SECONDS} s each, on {session.encoder.device})"


def check_memory(session: Session) -> Finding:
    """Say how far memory has grown."""
    return "info", session.memory()


def message_of(error: Exception) -> str:
    """The first line of an error of ours; of any other with its type."""
    text = first_line(error)
    return text if isinstance(error, AudioCompositionalityError) else f"{type(error).__name__}: {text}"
