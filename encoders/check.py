"""Checks of a model before its first evaluation: does it embed, read and answer as its author expects?

Every check is a function in the list `CHECKS`, with the ability that it needs. It returns whether the model passed and
the measured value. Its docstring, after the first line, explains what a failure usually means. The checks look for the
common faults of wrappers of audio models: a wrong sample rate, an embedding that depends on the other clips of its
batch, random crops, rows in another order, padding taken for sound, ignored seconds.
"""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.table import Cell, Column, Row, Table
from audio_compositionality.support.text import first_line

from . import check_sounds
from .adapters.custom import ModelCodeError
from .adapters.custom_loading import twin_problem
from .base import ClipError, GivenClip, Model, ModelError, StagedEncoder, output_dim_of
from .inference import allowed_in_company, relative_difference
from .loading.names import parse_name
from .loading.registry import load_model
from .loading.twins import UNTRAINED
from .options import DEFAULT_OPTIONS, EncoderOptions

if TYPE_CHECKING:
    import torch

CLIP_SECONDS = 10
"""Length of the longest clips of most data here, in seconds."""

SHORT_SECONDS = 2
"""Length of the clips of most checks in seconds; short, so that these checks are fast."""

RATES = (16_000, 32_000, 44_100, 48_000)
"""Rates in Hz at which the same tones must give nearly the same embeddings."""

REPEATED = 1e-6
"""Largest relative difference between embeddings of the same clip: a few rounding errors of float32."""

DIFFERENT = 1e-5
"""Smallest relative difference between embeddings of different clips; an untrained network may come close to it."""

HEARD = 1e-3
"""Smallest effect of a burst of sound in any second, as a fraction of its largest effect."""

ALIKE = 0.99
"""Mean cosine between embeddings of different clips above which they are nearly one vector."""

QUIET = 0.01
"""Gain (-40 dB) at which a sound must still differ from silence."""

Status = Literal["pass", "fail", "warn", "info"]
Finding = tuple[Status, str]


TEXTS = (
    "a dog barks",
    "a bell rings, and then a quiet crowd begins to cheer far away",
    "rain",
    "Two people talk while a car passes!",
)
"""Texts of different lengths, one with an exclamation mark, whose token some models use for padding."""

SWAPPED = ("a dog barks before a bell rings", "a bell rings before a dog barks")
"""Two texts of the same words in different order."""


TRAINED = 16
"""Training questions for a model that learns."""

_LETTER = re.compile(r"[A-Z]")


@dataclass(frozen=True)
class ModelCheck:
    """The outcome of one check.

    Attributes:
        name: what was checked.
        status: ``info`` for a measurement that cannot fail, or if the check could not be run; ``warn`` if scores
            need care in interpretation.
        value: the measured value, or the encoder's own message.
        hint: usual meaning of a failure or a warning; else empty.
    """

    name: str
    status: Status
    value: str
    hint: str = ""


@dataclass
class Session:
    """A model under check, with its findings so far.

    Attributes:
        model: the model.
        memory: function that describes the growth of memory in words.
        seconds: length of the clips of most checks.
        embeddings: embeddings of four tones of ten seconds.
    """

    model: Model
    memory: Callable[[], str]
    seconds: float = SHORT_SECONDS
    embeddings: check_sounds.Array = field(default_factory=lambda: np.empty(0))

    @property
    def rate(self) -> int:
        """The model's sample rate in Hz."""
        return self.model.card.sample_rate

    def tones(self, rate: int | None = None) -> check_sounds.Array:
        """Four tones: see `make_tones`."""
        return check_sounds.make_tones(rate or self.rate, self.seconds)

    def noise(self) -> check_sounds.Array:
        """A clip of noise, float32 [1, samples]."""
        return np.random.default_rng(0).normal(0, 0.1, (1, round(self.seconds * self.rate))).astype(np.float32)

    def embed(self, clips: Any, rate: int | None = None) -> check_sounds.Array:
        """Embeddings of clips, by default at the model's rate."""
        return np.asarray(self.model.embed(clips, rate or self.rate))

    def embed_text(self, texts: Sequence[str]) -> check_sounds.Array:
        """Embeddings of texts."""
        return np.asarray(self.model.embed_text(list(texts)))

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Questions of each kind, about clips of different lengths."""
        return [check_sounds.question_row(number, "test") for number in range(4)]

    @cached_property
    def is_taught(self) -> bool:
        """Whether the model learns; if so, it is trained on the first access."""
        learns = "learn" in self.model.abilities
        if learns:
            rows = [check_sounds.question_row(number, "train") for number in range(TRAINED)]
            self.model.learn(rows, (self.clip(row) for row in rows))
        return learns

    def clip(self, row: dict[str, Any]) -> GivenClip:
        """Return the clip of a row at the model's sample rate; for a model that reads labels, its row."""
        return GivenClip(
            check_sounds.row_sound(row, self.rate), self.rate, row if "labels" in self.model.abilities else None
        )

    @cached_property
    def clips(self) -> list[GivenClip]:
        """The clip of each question."""
        return [self.clip(row) for row in self.rows]

    def ask(self, places: Sequence[int], clips: Sequence[GivenClip] | None = None) -> list[str]:
        """Return the answers to the questions at some indices in one call, about their own clips or others."""
        prompts = [check_sounds.prompt_of(self.rows[place]) for place in places]
        about = [self.clips[place] for place in places] if clips is None else clips
        given: Any = self.model.answer([[clip] for clip in about], prompts)
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise ModelError(f"answer() returned a {type(given).__name__}; it must return a list of texts")
        if len(given) != len(places):
            raise ModelError(f"answer() returned {len(given)} answers to {len(places)} prompts; return one per prompt")
        if not all(isinstance(answer, str) for answer in given):
            wrong = next(type(answer).__name__ for answer in given if not isinstance(answer, str))
            raise ModelError(f"answer() returned a {wrong} among its answers; each must be a text (str)")
        return list(given)


def check_model(
    model: object, *, device: str | torch.device | None = None, options: EncoderOptions = DEFAULT_OPTIONS
) -> list[ModelCheck]:
    """Check a model's embeddings and answers.

    Args:
        model: a name or an object as for `load_model`, or a loaded model.
        device: torch device to load on; by default CUDA if available.
        options: layer, pooling, precision, compilation to load with.

    Returns:
        the result of every check, in a fixed order; only the result of loading if the model cannot be loaded.
    """
    memory = check_sounds.memory_growth()
    checks = []
    if not isinstance(model, Model):
        try:
            loaded = load_model(model, device=device, options=options)
            if not loaded.abilities & {"audio", "answer"}:
                raise ModelError(
                    f"'{model}' is a {type(loaded).__name__}, which neither embeds sound nor answers questions"
                )
        except Exception as error:
            return [ModelCheck("loads", "fail", message_of(error), _why_not_loaded(model, error))]
        model, card = loaded, loaded.card
        values = "answers" if card.output_dim is None else f"{card.output_dim} values"
        checks.append(ModelCheck("loads", "pass", f"{card.id}, {card.sample_rate:,} Hz, {values}, {card.revision}"))
    if (problem := twin_problem(model, UNTRAINED)) is not None:
        checks.append(ModelCheck("untrained twin", "warn", problem, "Without it, a verdict is at best 'cannot tell'."))
    session = Session(model, memory)
    blocked: set[str] = set()
    for name, ability, after, run in CHECKS:
        if ability not in model.abilities or any(check.name == name for check in checks):
            continue
        missing = next((one for one in after if one in blocked), None)
        if missing is not None:
            blocked.add(name)
            checks.append(ModelCheck(name, "info", f"not run, as '{missing}' did not pass"))
            continue
        try:
            status, value = run(session)
        except Exception as error:
            status, value = "fail", message_of(error)
        if status == "fail":
            blocked.add(name)
        # The usual meaning of a failure: the docstring without its first paragraph, in one line.
        hint = " ".join((inspect.getdoc(run) or "").partition("\n\n")[2].split())
        checks.append(ModelCheck(name, status, value, hint if status in ("fail", "warn") else ""))
    return checks


def all_passed(checks: Iterable[ModelCheck]) -> bool:
    """Whether no check failed."""
    return all(check.status != "fail" for check in checks)


def check_table(checks: Sequence[ModelCheck], name: str) -> Table:
    """Return the checks of a model as a table, with the usual meanings of failures and warnings as its legend."""
    columns = (
        Column("check", "what was checked", numeric=False),
        Column("result", "fail, warn or pass; info is a measurement", numeric=False),
        Column("measured", "what was measured, or the encoder's own message", numeric=False),
    )
    rows = tuple(Row((Cell(check.name), Cell(check.status), Cell(check.value))) for check in checks)
    return Table(f"Checks of {name}", columns, rows, tuple(f"{c.name}: {c.hint}" for c in checks if c.hint))


_CAUSES = (
    (ImportError, "The model's code imports a package that is not installed or cannot be imported."),
    (
        FileNotFoundError,
        "The model's code reads a file that does not exist. Relative paths start at the current folder.",
    ),
    (MemoryError, "The model needs more memory than is available."),
    (ModelCodeError, "The model's code raised an error at the line that the message names."),
)
"""Usual causes of a failure to load, by the type of the error or of its cause; the first match applies."""


def _why_not_loaded(model: object, error: Exception) -> str:
    """Explain a failure to load, by the error or else by what was to be loaded."""
    errors = [error, *([] if error.__cause__ is None else [error.__cause__])]
    for kind, cause in _CAUSES:
        if any(isinstance(one, kind) for one in errors):
            return cause
    form = "file"
    if isinstance(model, str):
        try:
            form = parse_name(model).form
        except ModelError:
            form = "unknown"
    if form in ("file", "installed"):
        return (
            "The class name is not in the file, or the class lacks a method: it needs sample_rate and embed(waveforms, "
            "sample_rate), which returns [n, dim]; see docs/how-to/models.md."
        )
    if form == "endpoint":
        # The server's own message says more.
        return ""
    if form == "unknown":
        return "No model has this name; `audio-compositionality models` lists the names."
    return (
        "The files of the model are missing or incomplete, their architecture is not supported, or the model "
        "does not take these options."
    )


def _embeds(session: Session) -> Finding:
    """Embed clips of ten seconds.

    Clips may last 10 s. A model with a shorter window must embed them in pieces; one with a longer window pads them.
    If the message is about a shape, embed must return one row per clip: [n, output_dim].
    """
    clips = check_sounds.make_tones(session.rate, CLIP_SECONDS)
    try:
        session.embeddings = session.embed(clips)
    except ClipError:
        # Values that are not finite are reported by the next check.
        session.embeddings = np.full((len(clips), output_dim_of(session.model)), np.nan, np.float32)
    return "pass", f"{len(clips)} clips of {CLIP_SECONDS} s"


def _finite(session: Session) -> Finding:
    """Check that embeddings of tones and of silence are finite.

    Usual causes: a logarithm or a division by zero (log(0), normalisation of silence), or float16 that overflows.
    """
    try:
        silent = session.embed(np.zeros((1, CLIP_SECONDS * session.rate), np.float32))
    except ClipError as error:
        return "fail", f"silence: {error}"
    for what, embeddings in (("tones", session.embeddings), ("silence", silent)):
        bad = int((~np.isfinite(embeddings)).sum())
        if bad:
            return "fail", f"{what}: {bad} values are NaN or infinite"
    return "pass", "tones and silence"


def _shape(session: Session) -> Finding:
    """Check that there is one row per clip.

    embed must return one row per clip, [n, output_dim]. Usual causes: frames are not pooled, the batch is squeezed or
    transposed, or output_dim belongs to another layer.
    """
    expected, shape = (len(check_sounds.TONE_FREQUENCIES), session.model.card.output_dim), session.embeddings.shape
    return ("pass", f"{shape}") if shape == expected else ("fail", f"{shape}, but must be {expected}")


def _dtype(session: Session) -> Finding:
    """Check that embeddings are float32.

    Embeddings are cached and scored as float32: cast them (array.astype(numpy.float32)), and pool in float32.
    """
    return _is_float32(session.embeddings)


def _short(session: Session) -> Finding:
    """Find out whether the model accepts short clips."""
    try:
        session.embed(session.tones())
    except Exception as error:
        session.seconds = CLIP_SECONDS
        return "info", f"refused ({message_of(error)}); the next checks use clips of {CLIP_SECONDS} s"
    return "info", "accepted; the next checks use them"


def _deterministic(session: Session) -> Finding:
    """Check that the same clips give the same embeddings again.

    The same clips gave different embeddings the second time: dropout or batch statistics are on (call eval()), a long
    clip is cropped at random, noise is added (dither), or the object keeps state between calls.
    """
    return _again(session.embed, session.tones())


def _sensitive(session: Session) -> Finding:
    """Check that different sounds give different embeddings.

    Different sounds gave the same embedding: weights were not loaded, the input is scaled to almost nothing (int16
    taken for float), a constant token is pooled, or padding outweighs the clip.
    """
    noise = session.noise()
    return _apart(session.embed(np.concatenate([session.tones(), noise, np.zeros_like(noise)])), "six sounds")


def _seconds(session: Session) -> Finding:
    """Check that sound in every second of the clip changes the embedding.

    A part of the clip is ignored: the model crops it to its window, or pools only the first frames. Embed the clip in
    pieces and average them.
    """
    bursts = check_sounds.make_bursts(session.rate, CLIP_SECONDS)
    # A few at a time, so that this check needs no more memory than the check of clips of this length.
    embeddings = np.concatenate([session.embed(bursts[start : start + 4]) for start in range(0, len(bursts), 4)])
    effect = check_sounds.distances(embeddings[1:], embeddings[:1])[:, 0]
    # Seconds are counted from 1: the last second of ten is the tenth.
    lost = [f"{second}" for second, size in enumerate(effect, 1) if size <= HEARD * effect.max()]
    if effect.max() <= DIFFERENT * np.linalg.norm(embeddings[0]):
        lost = [f"{second}" for second in range(1, len(effect) + 1)]
    if lost:
        return "fail", f"sound in these seconds (1 to {CLIP_SECONDS}) does not change the embedding: {', '.join(lost)}"
    return (
        "pass",
        f"sound in each second changes the embedding, at least {effect.min() / effect.max():.2g} of the maximum",
    )


def _quiet(session: Session) -> Finding:
    """Check that a quiet sound is not embedded as silence.

    A quiet sound gave the embedding of silence: there is a threshold or a voice detector in the front end, or samples
    were rounded to integers.
    """
    tones = session.tones()
    embeddings = session.embed(np.concatenate([QUIET * tones, np.zeros_like(tones[:1])]))
    norm = float(np.linalg.norm(embeddings, axis=1).max())
    nearest = float(check_sounds.distances(embeddings[:-1], embeddings[-1:]).min()) / norm if norm else 0.0
    text = f"tones at -40 dB differ from silence by at least {nearest:.1e} of the norm"
    return "pass" if nearest >= DIFFERENT else "fail", text


def _alike(session: Session) -> Finding:
    """Measure the similarity of embeddings of different sounds.

    Embeddings of different sounds are nearly one vector, as in an untrained network. Scores that compare whole
    embeddings will be high whatever the model represents: read the centred scores, and compare with untrained:MODEL if
    the model has an untrained twin.
    """
    embeddings = session.embed(np.concatenate([session.tones(), session.noise()]))
    mean = float(check_sounds.cosines(embeddings)[np.triu_indices(len(embeddings), 1)].mean())
    return "warn" if mean > ALIKE else "info", f"mean cosine of embeddings of different sounds {mean:.4f}"


def _batch(session: Session) -> Finding:
    """Check that an embedding does not depend on the other clips of its batch.

    The embedding of a clip depends on its batch: normalisation over the batch, batch normalisation in
    training mode, or padding to the longest clip without a mask.
    """
    tones = session.tones()
    alone = np.concatenate([session.embed(tone[None]) for tone in tones])
    # Each row is compared with the nearest one; another check verifies the order.
    together = session.embed(tones)
    worst = relative_difference(together, alone[check_sounds.distances(together, alone).argmin(axis=1)])
    value = f"relative difference {worst:.1e} in a batch"
    if isinstance(session.model, StagedEncoder) and session.seconds < CLIP_SECONDS:
        longer = check_sounds.make_tones(session.rate, session.seconds + 1)
        mixed = session.model.embed([tones[0], longer[1], longer[2]], session.rate)
        padded = relative_difference(mixed[:1], alone[:1])
        value += f", {padded:.1e} with longer clips"
        worst = max(worst, padded)
    return _within(worst, allowed_in_company(session.model.card.options.precision)), value


def _order(session: Session) -> Finding:
    """Check that row i is clip i.

    Row i is not clip i: clips are sorted by length or level and their order is not restored, or shards are joined in
    another order.
    """
    tones = session.tones()
    count = len(tones)
    plain = session.embed(tones)
    # A cycle and an exchange generate all permutations, so that no other order of rows agrees with both.
    for order in (np.roll(np.arange(count), 1), np.array([1, 0, *range(2, count)])):
        nearest = check_sounds.distances(session.embed(tones[order]), plain).argmin(axis=1)
        if not np.array_equal(nearest, order):
            return "fail", f"clips {order.tolist()} gave the embeddings of clips {nearest.tolist()}"
    return "pass", f"{count} clips in three orders"


def _rate(session: Session) -> Finding:
    """Check that the same sounds at another rate give nearly the same embeddings.

    The sample rate of the input is ignored: clips are not resampled to the model's rate, so pitch and tempo
    change. (The baseline 'random', which only distinguishes clips by their bits, fails this check and no
    other.)
    """
    reference = session.embed(session.tones())
    other_rates = [rate for rate in RATES if rate != session.rate]
    worst = 0.0
    for rate in other_rates:
        matrix = check_sounds.distances(session.embed(session.tones(rate), rate), reference)
        for tone, row in enumerate(matrix):
            if row.argmin() != tone:
                heard = check_sounds.TONE_FREQUENCIES[int(row.argmin())]
                return "fail", (
                    f"a tone of {check_sounds.TONE_FREQUENCIES[tone]:.0f} Hz in a clip at {rate:,} Hz is closest to "
                    f"{heard:.0f} Hz at {session.rate:,} Hz"
                )
            worst = max(worst, float(row[tone] / np.delete(row, tone).min()))
    return "pass", (
        f"tones at {', '.join(f'{rate:,}' for rate in other_rates)} Hz are closest to themselves, "
        f"at {worst:.1e} of the distance to the next"
    )


def _int16(session: Session) -> Finding:
    """Check that 16-bit samples give the same embeddings as floating-point samples.

    The same clip as int16 and as float gave different embeddings: divide 16-bit samples by 32,768.
    """
    samples = np.round(session.tones()[:2] * 32_767).astype(np.int16)
    difference = relative_difference(session.embed(samples), session.embed(samples / np.float32(32_768)))
    return _within(difference, REPEATED), f"relative difference {difference:.1e}"


def _level(session: Session) -> Finding:
    """Measure the effect of half the level."""
    tones = session.tones()
    embeddings = session.embed(tones)
    softer = session.embed(0.5 * tones)
    between = _between(embeddings).mean()
    moved = np.diag(check_sounds.distances(softer, embeddings)).mean()
    return "info", f"a level 6 dB lower moves an embedding by {moved / between:.2g} of the distance between tones"


def _text_embeds(session: Session) -> Finding:
    """Check that texts give finite embeddings as long as those from clips.

    embed_text takes a list of str and returns one row per text, with as many values as a clip has: both are projected
    to a shared space. Its tokenizer and weights must be present.
    """
    embeddings = session.embed_text(TEXTS)
    expected = (len(TEXTS), output_dim_of(session.model))
    if embeddings.shape != expected:
        return "fail", f"{embeddings.shape}, but must be {expected}"
    bad = int((~np.isfinite(embeddings)).sum())
    return ("fail", f"{bad} values are NaN or infinite") if bad else ("pass", f"{len(TEXTS)} texts, {expected}")


def _text_dtype(session: Session) -> Finding:
    """Check that embeddings of texts are float32.

    Cast them as you cast embeddings of clips: array.astype(numpy.float32).
    """
    return _is_float32(session.embed_text(TEXTS[:1]))


def _text_deterministic(session: Session) -> Finding:
    """Check that the same texts give the same embeddings again.

    The same texts gave different embeddings the second time: dropout is on (call eval()), or the object keeps state
    between calls.
    """
    return _again(session.embed_text, TEXTS)


def _text_batch(session: Session) -> Finding:
    """Check that a text's embedding does not depend on the other texts of its batch, and that row i is text i.

    The embedding of a text depends on its batch: padding without a mask, the last token taken at the end
    of the padding, or rows in another order.
    """
    together = session.embed_text(TEXTS)
    alone = np.concatenate([session.embed_text([text]) for text in TEXTS])
    difference = relative_difference(together, alone)
    if difference <= allowed_in_company(session.model.card.options.precision):
        return "pass", f"relative difference {difference:.1e} in a batch"
    places = check_sounds.distances(together, alone).argmin(axis=1).tolist()
    if places != list(range(len(TEXTS))):
        return "fail", f"in a batch, rows 0 to {len(TEXTS) - 1} are nearest to texts {places}"
    return "fail", f"relative difference {difference:.1e} in a batch"


def _text_sensitive(session: Session) -> Finding:
    """Check that different texts give different embeddings.

    Different texts gave the same embedding: the pooled token does not attend to the others, or every word is
    unknown to the tokenizer.
    """
    return _apart(session.embed_text(TEXTS), f"{len(TEXTS)} texts")


def _text_order(session: Session) -> Finding:
    """Measure the effect of the order of words.

    Texts of the same words have one embedding, as in a bag of words: tasks of order and binding cannot be solved.
    """
    swapped = session.embed_text(SWAPPED)
    embeddings = session.embed_text(TEXTS)
    between = _between(embeddings).mean()
    moved = float(check_sounds.distances(swapped[:1], swapped[1:])[0, 0] / between)
    text = f"the same words in another order move an embedding by {moved:.2g} of the distance between texts"
    return "warn" if moved < DIFFERENT else "info", text


def _speed(session: Session) -> Finding:
    """Measure the speed in clips per second."""
    clips = check_sounds.make_tones(session.rate, CLIP_SECONDS)
    parts = []
    for size in (1, 4):
        session.embed(clips[:size])
        start = time.perf_counter()
        session.embed(clips[:size])
        parts.append(f"{size / (time.perf_counter() - start):.3g} clips/s in batches of {size}")
    return "info", f"{', '.join(parts)} ({CLIP_SECONDS} s each, on {session.model.device})"


def _memory(session: Session) -> Finding:
    """Report the growth of memory."""
    return "info", session.memory()


def _is_float32(embeddings: check_sounds.Array) -> Finding:
    return "pass" if embeddings.dtype == np.float32 else "fail", str(embeddings.dtype)


def _again(embed: Callable[[Any], check_sounds.Array], inputs: Any) -> Finding:
    """Check whether the same inputs give the same embeddings again, after others."""
    first = embed(inputs)
    embed(inputs[::-1][:2])
    difference = relative_difference(embed(inputs), first)
    return _within(difference, REPEATED), f"relative difference {difference:.1e}"


def _apart(embeddings: check_sounds.Array, inputs: str) -> Finding:
    """Check whether embeddings of different inputs differ; `inputs` describes them in the message."""
    norm = float(np.linalg.norm(embeddings, axis=1).mean())
    smallest = float(_between(embeddings).min()) / norm if norm else 0.0
    text = f"embeddings of {inputs} differ by at least {smallest:.1e} of their norm"
    return "pass" if smallest >= DIFFERENT else "fail", text


def _between(embeddings: check_sounds.Array) -> check_sounds.Array:
    """Return the distances of all pairs of different rows."""
    return check_sounds.distances(embeddings, embeddings)[np.triu_indices(len(embeddings), 1)]


def _within(difference: float, bound: float) -> Status:
    return "pass" if difference <= bound else "fail"


def _answers(session: Session) -> Finding:
    """Check that there is one text per prompt, about clips of different lengths.

    answer(clips, prompts) takes clips of different lengths, with waveform and sample_rate, and as many prompts; it
    returns a list with one str per prompt.
    """
    taught = f", after {TRAINED} to learn from" if session.is_taught else ""
    answers = session.ask(range(len(session.rows)))
    return "pass", f"{len(answers)} questions about clips of 3 to 5 s{taught}"


def _letters(session: Session) -> Finding:
    """Report the form of the answers.

    The prompt asks for the letter of an option. Other answers are parsed by rules; an unreadable answer is wrong.
    """
    answers = session.ask(range(len(session.rows)))
    letters = sum(_LETTER.fullmatch(answer.strip()) is not None for answer in answers)
    return "pass" if letters == len(answers) else "warn", f"{letters} of {len(answers)} are one letter: {answers}"


def _answers_deterministic(session: Session) -> Finding:
    """Check that the same questions give the same answers again.

    The same question got another answer the second time: sampling is on (decode greedily), or dropout is on.
    """
    first, again = (session.ask(range(len(session.rows))) for _ in range(2))
    return "pass" if first == again else "fail", _differing(first, again)


def _answers_batch(session: Session) -> Finding:
    """Check that an answer does not depend on the other questions of its batch, and that answer i is to prompt i.

    An answer depends on the other questions of its batch: padding without a mask, padding on the right before text is
    generated, or answers in another order. Fix it, or use --batch-size 1.
    """
    places = range(len(session.rows))
    together, alone = session.ask(places), [session.ask([place])[0] for place in places]
    backwards = session.ask(places[::-1])[::-1]
    if together != alone:
        return "fail", f"in a batch and alone: {_differing(together, alone)}"
    return (
        "pass" if backwards == alone else "fail",
        f"in a reversed batch and alone: {_differing(backwards, alone)}",
    )


def _answers_silence(session: Session) -> Finding:
    """Report how many answers change if the sound is replaced by silence."""
    if "labels" in session.model.abilities:
        return "info", "it reads labels, not sound"
    places = range(len(session.rows))
    silence = [GivenClip(np.zeros_like(clip.waveform), clip.sample_rate) for clip in session.clips]
    differing = sum(a != b for a, b in zip(session.ask(places), session.ask(places, silence), strict=True))
    return "info", f"{differing} of {len(places)} answers differ for silence"


def _answers_speed(session: Session) -> Finding:
    """Measure the speed in answers per second."""
    start = time.perf_counter()
    session.ask(range(len(session.rows)))
    speed = len(session.rows) / max(time.perf_counter() - start, 1e-9)
    return "info", f"{speed:.3g} answers/s in batches of {len(session.rows)} (on {session.model.device})"


def _differing(one: Sequence[str], other: Sequence[str]) -> str:
    count = sum(a != b for a, b in zip(one, other, strict=True))
    return f"{count} of {len(one)} answers differ"


def message_of(error: Exception) -> str:
    """Return the first line of an error; with its type, unless it is one of this package."""
    text = first_line(error)
    return text if isinstance(error, AudioCompositionalityError) else f"{type(error).__name__}: {text}"


_BASIC = ("embeds", "finite", "shape")
_STEADY = (*_BASIC, "deterministic")
_HEARING = (*_STEADY, "sensitive")

CHECKS: tuple[tuple[str, str, tuple[str, ...], Callable[[Session], Finding]], ...] = (
    ("embeds", "audio", (), _embeds),
    ("finite", "audio", ("embeds",), _finite),
    ("shape", "audio", ("embeds", "finite"), _shape),
    ("dtype", "audio", _BASIC, _dtype),
    (f"clips of {SHORT_SECONDS} s", "audio", _BASIC, _short),
    ("deterministic", "audio", _BASIC, _deterministic),
    ("sensitive", "audio", _STEADY, _sensitive),
    ("seconds", "audio", _HEARING, _seconds),
    ("quiet", "audio", _HEARING, _quiet),
    ("alike", "audio", _STEADY, _alike),
    ("batch", "audio", _STEADY, _batch),
    ("order", "audio", _HEARING, _order),
    ("rate", "audio", _HEARING, _rate),
    ("int16", "audio", _STEADY, _int16),
    ("level", "audio", _HEARING, _level),
    ("texts", "text", _BASIC, _text_embeds),
    ("texts: dtype", "text", ("texts",), _text_dtype),
    ("texts: deterministic", "text", ("texts",), _text_deterministic),
    ("texts: batch", "text", ("texts", "texts: deterministic"), _text_batch),
    ("texts: sensitive", "text", ("texts", "texts: deterministic"), _text_sensitive),
    ("texts: order", "text", ("texts", "texts: sensitive"), _text_order),
    ("speed", "audio", _BASIC, _speed),
    ("memory", "audio", _BASIC, _memory),
    ("answers", "answer", (), _answers),
    ("answers: letters", "answer", ("answers",), _letters),
    ("answers: deterministic", "answer", ("answers",), _answers_deterministic),
    ("answers: batch", "answer", ("answers", "answers: deterministic"), _answers_batch),
    ("answers: silence", "answer", ("answers",), _answers_silence),
    ("answers: speed", "answer", ("answers",), _answers_speed),
    ("memory", "answer", ("answers",), _memory),
)
"""All checks in order: name, ability that they need, names of the checks that have to pass first, and function that
returns the finding. Of two checks with one name, the first that fits a model is run."""
