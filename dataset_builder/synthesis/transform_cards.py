"""The card of transformed clips."""

from __future__ import annotations

from audio_compositionality.support.text import listed

from .bases import FOLDS
from .candidates import DIFFERING, SAME
from .description import CITATION, describe_sources
from .transform_settings import QUARTERS, TransformSettings
from .transforms.base import ParameterRange, Transform


def describe_transforms(settings: TransformSettings) -> str:
    """Markdown of the card."""
    draws = QUARTERS * settings.per_quarter
    transforms = "\n".join(
        f"| `{transform.name}` | {_range_text(transform, span)} | {transform.meaning} |"
        for transform, span in settings.spans
    )
    levelled = [f"`{transform.name}`" for transform, _ in settings.spans if transform.keeps_level]
    level = f" Copies by {listed(levelled)} have the root mean square of their base." if levelled else ""
    return f"""\
{_describe_bases(settings)} Each is there as it is and, {draws} times, after each of {len(settings.spans)} transforms,
after *Towards a Unified Representation Evaluation Framework Beyond Downstream Tasks*
([arXiv 2505.06224](https://arxiv.org/abs/2505.06224), IJCNN 2025): what does a representation do when one property of a
sound changes by a known amount?

| transform | parameter | what it does |
|---|---|---|
{transforms}

Parameters are drawn uniformly in each quarter of a range, on its scale ({settings.per_quarter} a quarter, seed
{settings.seed}), by random numbers of their own for each base, transform and quarter.{level} All clips are lowered by
{settings.headroom:g} dB; a base and its copies by more, and then alike, where one of them would pass full scale.
{_describe_untransformed(settings)}

{_describe_candidates(settings)}

| column | content |
|---|---|
| `id` | name of the row |
| `audio` | the clip: at most {settings.duration:g} s, mono, {settings.clip_rate} Hz, 16-bit |
| `base` | name of the clip that was transformed; its copies have its length; its own where there are none |
| `transform` | what was done; empty for a base and for candidates |
| `candidate` | empty for bases and copies; `{SAME}`, or what the clip differs from its base in |
| `parameter`, `unit` | by how much; null for the base |
| `scaled` | place of the parameter in its range, from 0 to 1; null for the base |
| `quarter` | of the range, 0 to 3; -1 for the base |
| `fold` | 0 to {FOLDS - 1}: a base and its copies are in one, and so are the recordings of a group |
| `recording`, `label`, `group` | of a recording; empty for scenes |
| `number` | the label of a recording where labels are numbers, else null |
| `metadata` | the sources: `timbre_label`, `pitch_label`, `rate_label`, `amplitude_label`; empty for recordings |
| `levels` | class of each factor, from 0, where the base is a single source; else null |
| `values` | `pitch` as a MIDI note, `rate` in Hz, `amplitude` in dB, where the base is a single source; else null |
{_describe_scenes(settings)}"""


def _range_text(transform: Transform, span: ParameterRange) -> str:
    ends = " to ".join(f"{end:,.10g}".replace("-", "−") for end in (span.low, span.high))
    return f"{ends} {transform.unit}".strip() + (", logarithmic" if span.scale == "log" else "")


def _describe_bases(settings: TransformSettings) -> str:
    if settings.recordings is not None:
        return f"At most {settings.bases:,} recordings, as evenly over their labels as these allow."
    return (
        f"{settings.bases:,} sound scenes: by turns a single source, and 2 to {settings.max_sources} sources together."
    )


def _describe_untransformed(settings: TransformSettings) -> str:
    if settings.recordings is not None:
        what = f"Other recordings, as many as there are and at most {settings.untransformed:,}, come after them"
    else:
        what = f"{settings.untransformed:,} further single sources come after them"
    return f"{what} without copies: probes learn from originals alone." if settings.untransformed else ""


def _describe_candidates(settings: TransformSettings) -> str:
    if settings.recordings is not None:
        what = (
            "the recording itself and another one (of another label where there is one, else of another group), the "
            "longer one cut to the length of the shorter. Sounds of recordings cannot be moved in time, so that these "
            "begin when they do in the base"
        )
    else:
        factors = f"{', '.join(DIFFERING[:-1])} or {DIFFERING[-1]}"
        what = f"the sources of the base at other times, and the same but for the {factors} of the first one, by turns"
    return (
        f"After the copies of each base come two **candidates**: {what}. Both have exactly one root mean square, that "
        "of the base (less where one would pass full scale), nothing above 7.2 kHz, so that they are as loud as each "
        "other at any rate from 16 kHz on, and one polarity, which is inverted for every other two "
        "bases: to which of them a copy is nearer can be told neither from its level nor, on average, from the "
        "correlation of samples."
    )


def _describe_scenes(settings: TransformSettings) -> str:
    return "" if settings.recordings is not None else f"\n{describe_sources(settings)}\n\n{CITATION}"
