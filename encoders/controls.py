"""Models under changed input: controls, and the text cascade.

A kind of control is a line of `CONTROLS`. Its name, with a colon, is a prefix to the name of any model, including a
user's class and twins: it changes the input, not the weights. A model that scores as well under a control does not
need the information that the control removes.

The text cascade is a language model that reads the events of a detector instead of hearing the sound:

    detector -> events as text -> language model -> answer

Any model that detects events can be combined with any audio language model. One that takes prompts without a clip, such
as a text model on a server, is given the text alone; any other is given silence with the text. A wrong answer of the
cascade may come from the detector, from the text between the two, or from the language model.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from audio_compositionality.support.text import plain

from . import base

NOISE_LEVEL = 0.1
"""Root mean square of the noise that replaces clips: 20 dB below full scale."""

STRETCH = 0.25
"""Length in seconds of the segments of a clip that are shuffled."""

PADDED_SECONDS = 10
"""Length of padded clips: the window of CLAP, which repeats shorter clips up to it."""


def reversed_clips(clips: base.FloatArray, sample_rate: int) -> base.FloatArray:
    """Return clips [n, samples] reversed in time."""
    return clips[:, ::-1]


def padded_clips(clips: base.FloatArray, sample_rate: int) -> base.FloatArray:
    """Return clips [n, samples] followed by silence up to `PADDED_SECONDS`."""
    missing = max(0, PADDED_SECONDS * sample_rate - clips.shape[1])
    return np.pad(clips, ((0, 0), (0, missing)))


def silence_clips(clips: base.FloatArray, sample_rate: int) -> base.FloatArray:
    """Return a single silent clip [1, samples], used in place of every input clip."""
    return np.zeros_like(clips[:1])


def noise_clips(clips: base.FloatArray, sample_rate: int) -> base.FloatArray:
    """Return white noise of a fixed level for each clip [n, samples]; it depends on the clip, not on its batch."""
    noise = np.stack([_generator_of(clip).standard_normal(len(clip), np.float32) for clip in clips])
    limited: base.FloatArray = np.clip(np.float32(NOISE_LEVEL) * noise, -1, 1)
    return limited


def shuffled_clips(clips: base.FloatArray, sample_rate: int) -> base.FloatArray:
    """Shuffle the segments of `STRETCH` of clips [n, samples]; the order depends on the clip, not on its batch. A last,
    incomplete segment stays last.

    Segments are joined without fades, which would remove sound at the edges; all clips have the clicks.
    """
    length = max(1, round(STRETCH * sample_rate))
    whole = clips.shape[1] // length * length
    shuffled = []
    for clip in clips:
        stretches = clip[:whole].reshape(-1, length)
        order = _generator_of(clip).permutation(len(stretches))
        shuffled.append(np.concatenate([stretches[order].ravel(), clip[whole:]]))
    return np.stack(shuffled)


FRAGMENT = 4
"""A fragment is 1 / FRAGMENT of a clip."""

_STEPS = 16
"""Number of candidate positions of the loudest fragment, evenly spaced over the clip."""


def first_fragments(clips: base.FloatArray, sample_rate: int) -> base.FloatArray:
    """Return the first quarter of each clip [n, samples]."""
    return clips[:, : _fragment(clips)]


def random_fragments(clips: base.FloatArray, sample_rate: int) -> base.FloatArray:
    """Return a quarter of each clip [n, samples] at a random position, which depends on the clip, not on its batch."""
    size = _fragment(clips)
    starts = [int(_generator_of(clip).integers(clips.shape[1] - size + 1)) for clip in clips]
    return np.stack([clip[start : start + size] for clip, start in zip(clips, starts, strict=True)])


def loudest_fragments(clips: base.FloatArray, sample_rate: int) -> base.FloatArray:
    """Return the quarter with the most energy of each clip [n, samples]; the first of equal ones."""
    size = _fragment(clips)
    starts = np.linspace(0, clips.shape[1] - size, _STEPS).round().astype(int)
    sums = np.cumsum(np.pad(clips.astype(np.float64) ** 2, ((0, 0), (1, 0))), axis=1)
    best = starts[(sums[:, starts + size] - sums[:, starts]).argmax(axis=1)]
    return np.stack([clip[start : start + size] for clip, start in zip(clips, best, strict=True)])


def changed_clips(clips: base.FloatArray, sample_rate: int) -> base.FloatArray:
    """Return clips [n, samples] at 0.97 of their speed without a change of pitch, in 8 bits of µ-law (ITU-T G.711).

    All samples change but the audible content stays, so that answers memorised for the exact clip are lost.
    """
    import librosa

    slower = librosa.effects.time_stretch(clips, rate=0.97, n_fft=min(2048, clips.shape[1]))
    codes = np.rint(127 * np.sign(slower) * np.log1p(255 * np.abs(slower)) / math.log(256)).clip(-127, 127) / 127
    decoded: base.FloatArray = (np.sign(codes) * np.expm1(np.abs(codes) * math.log(256)) / 255).astype(np.float32)
    return decoded


def _fragment(clips: base.FloatArray) -> int:
    return max(1, int(clips.shape[1]) // FRAGMENT)


def _generator_of(clip: base.FloatArray) -> np.random.Generator:
    """Return a generator seeded by the 16-bit samples of a clip."""
    samples = np.clip(np.rint(clip * base.INT16_SCALE), -base.INT16_SCALE, base.INT16_SCALE - 1).astype("<i2")
    seed = int.from_bytes(hashlib.blake2b(samples.tobytes(), digest_size=16).digest(), "little")
    return np.random.Generator(np.random.Philox(seed))


TEXT_VERSION = 1
"""Version of the text of events; raise it when the text of the same events changes."""

DETECTED_AS_TEXT = "detected-as-text"
"""The prefix of the names of cascades, up to the colon: ``detected-as-text:DETECTOR:MODEL``."""

_HEAD = "These sounds were detected in a recording, with the seconds in which they are heard:"
_NONE = "No sounds were detected in a recording."


class EventTextModel(base.Wrapper):
    """A language model and a detector: questions about clips are answered from the detected events.

    Attributes:
        card: its id is ``detected-as-text:DETECTOR:MODEL``; its revision combines the revisions of both models and of
            the text.
        device: device of the language model.
        model: the language model.
        detector: the detector of events.
    """

    def __init__(self, detector: base.Model, model: base.Model) -> None:
        """Combine a detector and a language model.

        Args:
            detector: detector of events; if it learns, the cascade learns.
            model: a language model. One that answers prompts without a clip gets no sound; any other gets silence as
                long as the clip.
        """
        self.detector = detector
        super().__init__(model)

    def make_card(self) -> base.ModelCard:
        """Make the card of a cascade from the cards of its parts."""
        detector, model = self.detector.card, self.model.card
        return base.ModelCard(
            id=f"{DETECTED_AS_TEXT}:{detector.id}:{model.id}",
            revision=f"{detector.revision}+{model.revision}+text-{TEXT_VERSION}",
            sample_rate=detector.sample_rate,
            output_dim=None,
            paradigm="text cascade (a detector's events, read by a language model)",
            trained_on=detector.trained_on,
            front_end_version=detector.front_end_version,
        )

    @property
    def abilities(self) -> frozenset[str]:
        """It answers, scores if the language model does, and learns if the detector does."""
        return self.model.abilities & {"answer", "score"} | self.detector.abilities & {"learn"}

    @property
    def limit_seconds(self) -> float | None:  # type: ignore[override]
        """The language model's limit if it is given silence; else None."""
        return None if "read" in self.model.abilities else self.model.limit_seconds

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """Train the detector."""
        self.detector.learn(rows, clips)

    def changed(self, questions: Iterable[base.GivenQuestion], size: int) -> Iterator[base.GivenQuestion]:
        """Yield the questions with the events of their clips, about silence as long as each clip, or without a clip.

        Raises:
            ModelError: the detector's events cannot be put into text.
        """
        for _, together in groupby(questions, key=lambda question: question.index // size):
            batch = list(together)
            single = [self.single_clip(question.clips, question.index) for question in batch]
            # Several questions are asked about one clip; the detector runs on it once.
            different = list({id(clip): clip for clip in single}.values())
            events = self.detector.detect_events(different)
            if len(events) != len(different):
                raise base.ModelError(
                    f"the detector of '{self.card.id}' returned events of {len(events)} clips for {len(different)}; "
                    "it must return one list per clip"
                )
            events_of = {id(clip): listed for clip, listed in zip(different, events, strict=True)}
            for question, clip in zip(batch, single, strict=True):
                prompt = prompt_with_events(events_of[id(clip)], question.prompt)
                silence = silence_for(self.model, len(clip.waveform), clip.sample_rate)
                yield replace(question, clips=silence, prompt=prompt)


def silence_for(model: base.Model, length: int, sample_rate: int) -> list[base.GivenClip]:
    """Return the clips for a text-only question: `length` samples of silence, or none if the model takes prompts
    without a clip."""
    return [] if "read" in model.abilities else [base.GivenClip(np.zeros(length, np.float32), sample_rate)]


def prompt_with_events(events: Sequence[base.EventDict], prompt: str) -> str:
    """Put events in front of a prompt, one line each, in the order of their onsets: ``0.00-2.35 s: bell``.

    Args:
        events: from a detector or from the labels; see `EventDict`.
        prompt: the question.

    Raises:
        ModelError: an event has no label, or its onset and offset are missing or out of order.
    """
    lines = [_line(event) for event in sorted(events, key=_place)]
    return "\n".join([_HEAD, *lines] if lines else [_NONE]) + f"\n\n{prompt}"


def _place(event: base.EventDict) -> tuple[float, float, str]:
    try:
        onset, offset, label = float(event["onset"]), float(event["offset"]), event["label"]
    except (KeyError, TypeError, ValueError):
        raise base.ModelError(f"{event!r} is not an event: it must have onset, offset (seconds) and label") from None
    if not (isinstance(label, str) and label.strip() and math.isfinite(offset) and 0 <= onset <= offset):
        raise base.ModelError(f"{event!r} is not an event: 0 <= onset <= offset must hold, and label must be a text")
    return onset, offset, label


def _line(event: base.EventDict) -> str:
    onset, offset, label = _place(event)
    return f"{onset:.2f}-{offset:.2f} s: {plain(label.strip())}"


PLAIN_TEXT = "a sound"
"""The text that replaces all texts under the control without text."""

EVENTS_AS_TEXT = "events-as-text"
"""The control that gives a model the events as text."""


@dataclass(frozen=True)
class ControlKind:
    """A way to change the input of a model.

    Attributes:
        name: prefix to the model's name, up to the colon.
        meaning: the change in words, for lists and cards.
        clips: function that changes clips, float32 [n, samples], at a sample rate in Hz; None if they stay. It may
            return a single clip, used in place of every clip.
        texts: function that changes texts; None if they stay. It may return a single text, used in place of every text.
        moves: whether questions are asked about the clips of other questions; the caller chooses them.
        tells: whether the model reads the events as text and gets no sound.
    """

    name: str
    meaning: str
    clips: Callable[[base.FloatArray, int], base.FloatArray] | None = None
    texts: Callable[[list[str]], list[str]] | None = None
    moves: bool = False
    tells: bool = False

    @property
    def prefix(self) -> str:
        """The prefix to the model's name."""
        return f"{self.name}:"


CONTROLS = {
    kind.name: kind
    for kind in (
        ControlKind(
            "sorted-words",
            "the words of every text sorted, without case and punctuation, so that texts of the same words are one",
            # A text without words (only punctuation) stays.
            texts=lambda texts: [" ".join(sorted(base.words_of(text))) or text for text in texts],
        ),
        ControlKind("reversed-audio", "every clip played backwards", clips=reversed_clips),
        ControlKind(
            "shuffled-audio",
            f"the stretches of {1000 * STRETCH:.0f} ms of every clip shuffled, which keeps their content and "
            "removes its order",
            clips=shuffled_clips,
        ),
        ControlKind(
            "padded-audio",
            f"every clip followed by silence up to {PADDED_SECONDS} s, so that a model that repeats short clips "
            "takes each once",
            clips=padded_clips,
        ),
        ControlKind("without-audio", "silence for every clip", clips=silence_clips),
        ControlKind("noise-audio", "white noise of one level for every clip", clips=noise_clips),
        ControlKind("fragment-audio", "a quarter of every clip, at a random place", clips=random_fragments),
        ControlKind("first-fragment-audio", "the first quarter of every clip", clips=first_fragments),
        ControlKind("loudest-fragment-audio", "the loudest quarter of every clip", clips=loudest_fragments),
        ControlKind(
            "changed-audio",
            "every clip slower by 3 % and in 8 bits, which changes all its samples and not what is heard",
            clips=changed_clips,
        ),
        ControlKind(
            "other-audio",
            "every question asked about a clip of another group, as long and as loud as its own, so that question and "
            "sound are unrelated; for audio language models",
            moves=True,
        ),
        ControlKind(
            EVENTS_AS_TEXT,
            "every question asked about silence, preceded by a list of the labelled events; for audio language models",
            tells=True,
        ),
        ControlKind("without-text", f"'{PLAIN_TEXT}' for every text", texts=lambda texts: [PLAIN_TEXT]),
    )
}
"""All controls by name."""


def clips_id(id: str) -> str:
    """Return the id under which the clips of a model are cached: a control that changes texts alone shares the cache of
    the model itself, see `Controlled.clips_card`."""
    name, colon, rest = id.partition(":")
    kind = CONTROLS.get(name) if colon else None
    return id if kind is None or kind.clips is not None else clips_id(rest)


class Controlled(base.Wrapper, base.StagedEncoder[Any]):
    """A model under a control: its input is changed.

    Its card is the model's card, except for the id, which begins with the control's name, and the paradigm.

    Attributes:
        model: the model under the control.
        kind: the control.
    """

    def __init__(self, model: base.Model, kind: ControlKind) -> None:
        """Apply a control to a loaded model.

        Raises:
            ModelError: the control applies to none of its abilities.
        """
        self.kind = kind
        self._abilities = abilities_under(model, kind)
        super().__init__(model)

    def make_card(self) -> base.ModelCard:
        """Make the card from the model's, with the control in its id and paradigm."""
        card, kind = self.model.card, self.kind
        revision = f"{card.revision}+text-{TEXT_VERSION}" if kind.tells else card.revision
        return replace(card, id=kind.prefix + card.id, revision=revision, paradigm=f"control ({kind.meaning})")

    @property
    def abilities(self) -> frozenset[str]:
        """The abilities of the model to which the control applies."""
        return self._abilities

    @property
    def clips_card(self) -> base.ModelCard:
        """The model's card if clips are unchanged, else the control's."""
        return self.card if self.kind.clips is not None else self.model.clips_card

    @property
    def asks_about_others(self) -> bool:  # type: ignore[override]
        """Whether the caller has to pass the clips of other questions."""
        return self.kind.moves or self.model.asks_about_others

    @property
    def limit_seconds(self) -> float | None:  # type: ignore[override]
        """The model's limit; None if it gets text alone."""
        words_alone = self.kind.tells and "read" in self.model.abilities
        return None if words_alone else self.model.limit_seconds

    def _extract_features(self, clips: base.FloatArray) -> Any:
        changed = self._changed(clips, self.card.sample_rate)
        return self.model.prepare(changed, self.card.sample_rate), len(clips)

    def _run_model(self, features: Any) -> base.FloatArray:
        inputs, count = features
        return _as_many(self.model.forward(inputs), count)

    def prepare(self, waveforms: ArrayLike, sample_rate: int) -> Any:
        """Prepare the changed clips."""
        self.require("audio")
        return super().prepare(waveforms, sample_rate)

    def embed_frames(self, waveforms: ArrayLike, sample_rate: int) -> tuple[base.FloatArray, float]:
        """Embed the frames of the changed clips."""
        self.require("frames")
        rate = self.card.sample_rate
        clips = base.resample(base.check_waveforms(waveforms), base.check_sample_rate(sample_rate), rate)
        frames, seconds = self.model.embed_frames(self._changed(clips, rate), rate)
        return _as_many(frames, len(clips)), seconds

    def embed_text(self, texts: Sequence[str]) -> base.FloatArray:
        """Embed the changed texts."""
        self.require("text")
        listed = base.check_texts(texts)
        changed = listed if self.kind.texts is None else self.kind.texts(listed)
        return _as_many(self.model.embed_text(changed), len(listed))

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """Train the model on unchanged clips."""
        self.require("learn")
        self.model.learn(rows, clips)

    def _changed(self, clips: base.FloatArray, sample_rate: int) -> base.FloatArray:
        return clips if self.kind.clips is None else self.kind.clips(clips, sample_rate)

    def changed(self, questions: Iterable[base.GivenQuestion], size: int) -> Iterator[base.GivenQuestion]:
        """Yield the questions about changed clips; or with the events in front of the prompt, about silence as long as
        each clip, or without a clip if the model reads text alone.

        Raises:
            ModelError: a row lacks its events or the duration of its clip.
        """
        for question in questions:
            if not self.kind.tells:
                clips = [
                    base.GivenClip(self._changed(clip.waveform[None], clip.sample_rate)[0], clip.sample_rate)
                    for clip in question.clips
                ]
                yield replace(question, clips=clips)
                continue
            (row,) = self.rows_of([question.clips])
            for column in ("events", "duration"):
                if row.get(column) is None:
                    raise base.ModelError(
                        f"row {row.get('id')!r} has no {column}, which the control events-as-text needs"
                    )
            rate = self.card.sample_rate
            silence = silence_for(self.model, round(float(row["duration"]) * rate), rate)
            yield replace(question, clips=silence, prompt=prompt_with_events(row["events"], question.prompt))


def _as_many(embeddings: base.FloatArray, count: int) -> base.FloatArray:
    """Return `count` rows: a single row is repeated, so that all are equal to the last bit."""
    return embeddings if len(embeddings) == count else np.repeat(embeddings, count, axis=0)


def abilities_under(model: base.Model, kind: ControlKind) -> frozenset[str]:
    """Return the abilities of a model to which a control applies.

    Raises:
        ModelError: the control applies to none of them.
    """
    name = f"'{kind.prefix}{model.card.id}': '{model.card.id}'"
    able = model.abilities
    if "labels" in able:
        raise base.ModelError(f"{name} reads labels, not sound, so there is no input to change")
    if kind.texts is not None:
        if "text" not in able:
            raise base.ModelError(f"{name} embeds no text, so there is no text to change")
        return able & {"audio", "text"}
    if kind.tells:
        if "answer" not in able:
            raise base.ModelError(f"{name} answers no questions, so it cannot be given events as text")
        if "learn" in able:
            raise base.ModelError(
                f"{name} learns from questions without events as text, so its questions cannot have them"
            )
        if isinstance(model, EventTextModel):
            raise base.ModelError(
                f"{name} already reads a detector's events; put '{EVENTS_AS_TEXT}:' in front of its language model"
            )
        if isinstance(model, Controlled):
            raise base.ModelError(f"{name} changes the sound, which events as text replace; use one of the two")
        return able & {"answer", "score"} | {"labels"}
    if kind.moves and "answer" not in able:
        raise base.ModelError(f"{name} answers no questions, so other-audio does not apply")
    embeds = set() if kind.moves else {"audio", "frames", "text"}
    left = able & {*embeds, "answer", "score", "learn"}
    if not left:
        raise base.ModelError(f"{name} neither embeds nor answers questions")
    return left


def can_control(model: base.Model, kind: ControlKind) -> bool:
    """Whether a control applies to any ability of a model; see `abilities_under`."""
    try:
        abilities_under(model, kind)
    except base.ModelError:
        return False
    return True
