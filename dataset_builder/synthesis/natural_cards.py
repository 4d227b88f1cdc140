"""Cards of captioned scenes of recordings, in place of those of tones."""

from __future__ import annotations

from audio_compositionality.support.text import listed

from ..language.templates import templates
from .captioned_items import CITATION
from .natural_items import NaturalItemSettings, NaturalOrderSettings
from .natural_pool import LONGEST_SLICE, SHORTEST_SLICE
from .natural_scenes import NaturalSettings
from .natural_training import SIZES, NaturalTrainingSettings

_PAPER = """\
*CompA: Addressing the Gap in Compositional Reasoning in Audio-Language Models*
([arXiv 2310.08753](https://arxiv.org/abs/2310.08753), ICLR 2024)"""

_ITEM_COLUMNS = """\
| column | content |
|---|---|
| `id` | name of the row |
| `audio` | the clips |
| `captions` | as many; each is true of the clip in its place and false of the others |
| `events` | of each clip: `label`, `attributes`, `start`, `stop` (seconds), `file` |
| `swapped` | what the first two clips differ in |
| `mention` | of order, whether the first heard is named first (`forward`) or last (`reverse`); else empty |
| `template` | name of the template of the first two captions |
| `subset` | `seen`: the two labels meet in the training rows; `novel`: they never do |
| `pair` | the two labels or nouns, whichever is first: items of one pair are no independent samples |
| `origin`, `writer` | `recordings`, `template` |
| `domain` | what the recordings are |
| `gap`, `overlap`, `distance` | seconds between the two events, and of both at once; 0 |"""


def describe_order(settings: NaturalOrderSettings) -> str:
    """Markdown of the card of order items."""
    return f"""\
{settings.items:,} items of two labels x and y of recordings ({settings.domain_name}), after CompA-order of {_PAPER}:
the first clip is x and then y, the second y and then x, of the same slices; the two captions have the same words.
{settings.triplets:.0%} of the items are triplets: in a third clip, as long as the others, both sound at the same time.
Half of the items name the first heard first, half last.

{_ITEM_COLUMNS}

{_describe_sound(settings)}

{CITATION}"""


def describe_attributes(settings: NaturalItemSettings) -> str:
    """Markdown of the card of attribute items."""
    return f"""\
{settings.items:,} items of two recordings at the same time ({settings.domain_name}), after CompA-attribute of {_PAPER}:
who makes a sound, and how, are exchanged, such as a man speaking with a woman singing, and a man singing with a woman
speaking. The two captions have the same words; the clips are of four recordings, and as long as each other.

{_ITEM_COLUMNS}

{_describe_sound(settings)}

{CITATION}"""


def describe_training(settings: NaturalTrainingSettings) -> str:
    """Markdown of the card of training rows."""
    sizes = listed([f"{count} ({share:.0%})" for count, share in SIZES.items()])
    held_out = [template.name for of_one in templates().values() for template in of_one if template.held_out]
    return f"""\
{settings.train_rows:,} captioned clips of recordings for training ({settings.domain_name}), and up to
{settings.validation_rows:,} for validation, after the template-based creation of {_PAPER}: {sizes} events, one after
the other (`+` in `expression`) or at the same time (`*`), as often at every level. A program tests every text against
the events: parts are true of the clip, negatives are false.

| column | content |
|---|---|
| `id` | name of the row |
| `audio` | the clip |
| `captions` | what is heard, in several wordings |
| `parts` | true captions of parts |
| `negatives` | false texts near the first caption, each with its `kind` |
| `events` | `label`, `attributes`, `start`, `stop` (seconds), `file` |
| `expression` | what the captions say: equal for rows that say the same |

No file is in two splits or in the test items, and a fifth of the pairs of labels never meet here: the `novel` ones of
the test items. Neither do the templates {", ".join(held_out)} occur.

{_describe_sound(settings)}

{CITATION}"""


def _describe_sound(settings: NaturalSettings) -> str:
    return f"""\
A clip lasts {settings.duration:g} s, mono, {settings.sample_rate} Hz, 16-bit; behind what is heard it is silent. A
slice is a recording without the silence at its ends (60 dB below its loudest), of a long one a part: at most
{LONGEST_SLICE:g} s, and no more than its share of the clip; one of less than {SHORTEST_SLICE:g} s is repeated. All have
one root mean square. One after the other: a crossfade over a tenth of the shorter, of which each has half in `events`.
At the same time: as loud as each other (A-weighted, Tokozume et al., 2018), the shorter repeated with crossfades to
exactly the length of the longer; nothing is cut. Labels that meet are of different kinds of sounds. The
clips of a row share one gain. Of the files of a label two fifths are for test, a tenth for validation, whole groups."""
