"""What transformed clips are made from: which clips, which transforms, which ranges of their parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from ..recordings.protocol import Recordings
from .bases import FOLDS, most_singles
from .settings import SceneSettings
from .transforms import list_transforms, load_transform
from .transforms.base import ParameterRange, Transform

QUARTERS = 4
"""Parts of the range of a parameter, in each of which as many are drawn."""

PAPER_RANGES = (
    ("noise", ParameterRange(-30, 50)),
    ("pitch", ParameterRange(-12, 12)),
    ("reverb", ParameterRange(0.1, 3)),
    ("stretch", ParameterRange(0.5, 2)),
)
"""Those of the paper (arXiv 2505.06224, section IV): uniform; reverberation times below .1 s cannot be had there."""


@dataclass(frozen=True, kw_only=True)
class TransformSettings(SceneSettings):
    """Everything that decides the clips and their samples. Defaults are the sizes of the preset ``full``.

    Attributes:
        max_sources: N, most sources of a base that is a scene.
        bases: how many clips are transformed; of recordings at most so many.
        untransformed: how many further clips there are without copies, for probes to learn from: single sources, or
            recordings, of these at most so many.
        per_quarter: how many parameters of a transform are drawn in each quarter of its range.
        transforms: their names.
        ranges: of parameters, by the name of a transform; by default its own.
        headroom: decibels by which all clips are lowered, so that hardly any passes full scale. It is the same for all
            bases: the level of a clip still tells the amplitude of its source. (No single source of the preset
            ``full`` needs more than 10.0, none can need more than 16; 3 of 200 scenes of several need more than 12.)
        recordings: what is transformed in place of scenes. They keep their rate where all have one, and are brought to
            ``sample_rate`` where they differ; a clip is the middle of its recording, of ``duration`` at most.

    Raises:
        InputError: see `SceneSettings`; also an unknown transform, or one that is for recordings alone.
    """

    max_sources: int = 3
    bases: int = 400
    untransformed: int = 800
    per_quarter: int = 1
    transforms: tuple[str, ...] = ("gain", "noise", "lowpass", "reverb")
    ranges: tuple[tuple[str, ParameterRange], ...] = ()
    headroom: float = 12.0
    recordings: Recordings | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "transforms", tuple(self.transforms))
        object.__setattr__(self, "headroom", float(self.headroom))
        if self.recordings is None:
            self._check("bases", self.bases, 2 * FOLDS, 2 * most_singles(self))
            self._check("untransformed", self.untransformed, 0, most_singles(self) - (self.bases + 1) // 2)
        else:
            self._check("bases", self.bases, FOLDS, 10**6)
            self._check("untransformed", self.untransformed, 0, 10**6)
        self._check("per_quarter", self.per_quarter, 1, 100)
        if not 0 <= self.headroom <= 60:
            raise InputError(f"headroom is {self.headroom} dB; it must be from 0 to 60")
        self._check_transforms()

    def _check_transforms(self) -> None:
        natural = self.recordings is not None
        valid = [name for name in list_transforms() if natural or not load_transform(name).natural_only]
        if not self.transforms or len(set(self.transforms)) < len(self.transforms):
            raise InputError(f"transforms is {self.transforms}; it names some of {', '.join(valid)}, each once")
        for name in self.transforms:
            if load_transform(name).natural_only and not natural:
                raise InputError(f"the transform {name!r} is for recordings, not for scenes; {nearest(name, valid)}")
        for name, span in self.ranges:
            load_transform(name)
            if not (span.low < span.high and (span.scale == "linear" or span.low > 0)):
                raise InputError(f"the range of {name} is {span}; low is below high, and positive on the scale log")
        for transform, span in self.spans:
            if not span.low < span.high:
                raise InputError(
                    f"clips of {self.clip_rate:,} Hz allow no {transform.name} from {span.low:g} {transform.unit} on; "
                    "leave it out"
                )

    @property
    def clip_rate(self) -> int:
        """Hz of every clip."""
        return (self.recordings.sample_rate if self.recordings is not None else None) or self.sample_rate

    @property
    def spans(self) -> list[tuple[Transform, ParameterRange]]:
        """The transforms, each with the range that its parameters are drawn from."""
        stated = dict(self.ranges)
        spans = []
        for transform in map(load_transform, self.transforms):
            usual = ParameterRange(transform.low, transform.high, transform.scale)
            spans.append((transform, transform.limits(self.clip_rate, stated.get(transform.name, usual))))
        return spans

    def values(self) -> dict[str, Any]:
        """The settings as JSON values; of recordings the fingerprint, without what decides scenes alone."""
        values = super().values()
        del values["ranges"]
        values["transforms"] = [
            [transform.name, transform.version, float(span.low), float(span.high), span.scale]
            for transform, span in self.spans
        ]
        if self.recordings is None:
            del values["recordings"]
            return values
        kept = ("seed", "bases", "untransformed", "per_quarter", "transforms", "headroom", "duration")
        return {
            **{name: values[name] for name in kept},
            "sample_rate": self.clip_rate,
            "recordings": self.recordings.fingerprint,
        }
