"""Two sources at once whose rates are exchanged, so that all that is loud stays as it is: who has which?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import combinations, permutations, product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError

from ..data import DatasetError, Pcm16, Row
from ..scenes.rendering import SharedRendering
from ..scenes.sources import random_generator
from ..sounds.dx7.voice import Voice
from ..sounds.tones import default_voices

if TYPE_CHECKING:
    from datasets import Features

_TONES, _PHASES = 78, 79
"""The random streams."""

LOW, HIGH = REGISTERS = ("low", "high")

_PEAK = 0.9


@dataclass(frozen=True, kw_only=True)
class RateBindingSettings:
    """Everything that decides the clips and their samples. Defaults are those of the preset ``mini``.

    Attributes:
        seed: of every random choice, from 0 to 2^63 - 1.
        sample_rate: Hz.
        duration: seconds of a clip.
        velocity: MIDI velocity of every note, 1..127.
        low_notes, high_notes: MIDI notes of the lower and of the higher source.
        swells: how often a source swells in a clip, two or more whole numbers.
        depth: dB between the loudest and the softest of a swell.
        voices: two a group: those of one group sound together, and no others.

    Raises:
        InputError: a value out of its range.
    """

    seed: int = 0
    sample_rate: int = 32_000
    duration: float = 5.0
    velocity: int = 100
    low_notes: tuple[int, ...] = (57, 63)
    high_notes: tuple[int, ...] = (75, 81)
    swells: tuple[int, ...] = (5, 10, 20, 40)
    depth: float = 30.0
    voices: tuple[Voice, ...] = field(default_factory=default_voices, repr=False)

    def __post_init__(self) -> None:
        for name, low, high in (
            ("seed", 0, 2**63 - 1),
            ("sample_rate", 8_000, 192_000),
            ("duration", 1, 60),
            ("velocity", 1, 127),
            ("depth", 1, 60),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise InputError(f"{name} is {value}; it must be from {low} to {high:,}")
        for name, least in (("low_notes", 1), ("high_notes", 1), ("swells", 2)):
            values = getattr(self, name)
            if len(values) < least or len(set(values)) < len(values) or min(values) < 1:
                raise InputError(f"{name} is {values}; it has {least} or more different whole numbers from 1 on")
        if max(self.low_notes) >= min(self.high_notes):
            raise InputError(f"low_notes go up to {max(self.low_notes)}; all have to be below {min(self.high_notes)}")
        if len(self.voices) < 2:
            raise InputError(f"{len(self.voices)} voices; two or more are needed")

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the voices that sound together, two and two; of an odd number the last group has three."""
        firsts = range(0, len(self.voices) - 1, 2)
        ends = [*firsts[1:], len(self.voices)]
        return tuple(tuple(range(first, end)) for first, end in zip(firsts, ends, strict=True))

    def values(self) -> dict[str, Any]:
        """The settings as JSON values; voices as the hexadecimal of their 155 bytes."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        values |= {name: list(values[name]) for name in ("low_notes", "high_notes", "swells")}
        return {**values, "voices": [voice.to_vced().hex() for voice in self.voices]}


@dataclass(frozen=True)
class Exchange:
    """Two clips, in which two sources have each other's rate.

    Attributes:
        number: of the pair of clips.
        group: number of the voices' group.
        voices, notes: of the lower source and of the higher.
        swells: of the slower one and of the faster.
        phases: of these swells, shares of a swell in [0, 1).
    """

    number: int
    group: int
    voices: tuple[int, int]
    notes: tuple[int, int]
    swells: tuple[int, int]
    phases: tuple[float, float]


class RenderedRateBinding(SharedRendering[RateBindingSettings]):
    """The clips of some settings and their sound; see `Rendering`."""

    @cached_property
    def exchanges(self) -> tuple[Exchange, ...]:
        """The pairs of clips, in the order of `rows`: in the first of a pair the higher source is the faster."""
        return tuple(draw_exchanges(self.settings))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Rows without their audio."""
        return tuple(_row(one, faster, self.settings) for one in self.exchanges for faster in (HIGH, LOW))

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The clip, int16 [samples]; the two of a pair share one gain."""
        from ..scenes.tone_bank import FULL_SCALE

        pair = self._mixed(self.exchanges[index // 2])
        gain = _PEAK / max(float(np.abs(clip).max()) for clip in pair)
        return (np.rint(pair[index % 2] * (gain * FULL_SCALE)).astype(np.int16),)

    def _mixed(self, one: Exchange) -> list[NDArray[np.float64]]:
        settings = self.settings
        samples = round(settings.duration * settings.sample_rate)
        shares = np.arange(samples) / samples
        slow, fast = (
            # A cosine in dB: how loud it is how often does not depend on the rate.
            10 ** (settings.depth / 40 * (np.cos(2 * np.pi * (count * shares + phase)) - 1))
            for count, phase in zip(one.swells, one.phases, strict=True)
        )
        low, high = (np.resize(self._tones[key], samples) for key in zip(one.voices, one.notes, strict=True))
        return [low * slow + high * fast, low * fast + high * slow]

    @cached_property
    def _tones(self) -> dict[tuple[int, int], NDArray[np.float64]]:
        """A second of each voice at each note."""
        # Importing it imports the synthesiser, which only who asks for sound has to wait for.
        from ..sounds.tones import steady_tone

        given = self.settings
        every = product(range(len(given.voices)), (*given.low_notes, *given.high_notes))
        return {
            (voice, note): steady_tone(
                given.voices[voice],
                note,
                given.velocity,
                given.sample_rate,
                random_generator(given.seed, _TONES, voice, note),
            )
            for voice, note in every
        }


def draw_exchanges(settings: RateBindingSettings) -> Iterator[Exchange]:
    """All pairs of clips: every two voices of a group in either register, at all notes, with every two rates."""
    places = (
        (group, voices, notes, swells)
        for group, members in enumerate(settings.groups)
        for voices in permutations(members, 2)
        for notes in product(settings.low_notes, settings.high_notes)
        for swells in combinations(sorted(settings.swells), 2)
    )
    for number, (group, voices, notes, swells) in enumerate(places):
        first, second = random_generator(settings.seed, _PHASES, number).random(2)
        yield Exchange(number, group, voices, notes, swells, (float(first), float(second)))


def _row(one: Exchange, faster: str, settings: RateBindingSettings) -> Row:
    slow_first = faster == HIGH
    rates = [count / settings.duration for count in (one.swells if slow_first else one.swells[::-1])]
    return {
        "id": f"{RECIPE.name}-{one.number:05d}-{faster}",
        "split": "test",
        "faster": faster,
        "group": one.group,
        "timbres": [settings.voices[voice].name for voice in one.voices],
        "notes": list(one.notes),
        "rates": rates,
        "phases": list(one.phases if slow_first else one.phases[::-1]),
    }


class _RateBinding:
    """The recipe; see `Recipe`."""

    name = "rate_binding"
    version = 1
    splits = ("test",)
    one_length = True

    @cached_property
    def presets(self) -> Mapping[str, RateBindingSettings]:
        """Settings by the name of a preset; those of ``paper-`` are the same, since the paper has no such clips."""
        mini = RateBindingSettings()
        full = RateBindingSettings(low_notes=(55, 57, 60, 63), high_notes=(75, 78, 81, 84))
        return {"mini": mini, "full": full, "paper-mini": mini, "paper-full": full}

    def features(self, settings: RateBindingSettings) -> Features:
        """Of lists the first is of the lower source, the second of the higher."""
        from datasets import Audio, Features, List, Value

        return Features(
            {
                "id": Value("string"),
                "audio": Audio(sampling_rate=settings.sample_rate),
                "faster": Value("string"),
                "group": Value("int32"),
                "timbres": List(Value("string")),
                "notes": List(Value("int32")),
                "rates": List(Value("float64")),
                "phases": List(Value("float64")),
            }
        )

    def clip_names(self, row: Row) -> Sequence[str]:
        """The one clip, ``audio``."""
        return ("audio",)

    def render(self, settings: RateBindingSettings) -> RenderedRateBinding:
        """Draw the rows; nothing is written."""
        return RenderedRateBinding.of(settings)

    def check_row(self, row: Row) -> None:
        """Refuse a row that does not say which source is the faster, and of what timbres and notes they are."""
        name = row["id"]
        if row.get("faster") not in REGISTERS:
            raise DatasetError(f"row {name}: faster is {row.get('faster')!r}; it is low or high")
        if not isinstance(row.get("group"), int):
            raise DatasetError(f"row {name}: group is {row.get('group')!r}; it is the number of a group of timbres")
        for column, kind in (("timbres", str), ("notes", int), ("rates", float)):
            values = row.get(column)
            if not isinstance(values, list) or len(values) != 2 or not all(isinstance(one, kind) for one in values):
                raise DatasetError(f"row {name}: {column} is {values!r}; it has one for the lower source and one more")

    def describe(self, settings: RateBindingSettings) -> str:
        """Markdown of the card."""
        groups = "; ".join(" and ".join(settings.voices[voice].name for voice in group) for group in settings.groups)
        rates = ", ".join(f"{count / settings.duration:g}" for count in settings.swells)
        return f"""\
Two sources at once, a low one (MIDI {", ".join(map(str, settings.low_notes))}) and a high one (MIDI
{", ".join(map(str, settings.high_notes))}), which swell and fade at two of the rates {rates} Hz. Clips come in pairs:
in the second the sources have each other's rate, and nothing else is changed. Which is the faster?

How loud it is does not tell: both sources have one level, their swells are the same (a cosine in dB,
{settings.depth:g} dB deep, a whole number of them in a clip), and a rate begins in the same phase whoever has it, so
that the clips of a pair differ in level by no more than the fine structure of their partials. Nor does it tell how loud
a band is on average, or how much that varies: a cosine in dB is as often at each level, whatever its rate.

A source is an FM voice (nothing was recorded) of which the partials of one second are held: nothing decays. These
voices sound together: {groups}. Probes are tested on groups that they have not heard.

| column | content |
|---|---|
| `id` | name of the row; those of a pair differ in the last word |
| `audio` | the clip: {settings.duration:g} s, mono, {settings.sample_rate} Hz, 16-bit |
| `faster` | `low` or `high` |
| `group` | number of the group of timbres |
| `timbres`, `notes` | of the lower source and of the higher: the voice, the MIDI note |
| `rates`, `phases` | likewise: swells a second, and where in a swell it begins, a share |
"""


RECIPE = _RateBinding()
