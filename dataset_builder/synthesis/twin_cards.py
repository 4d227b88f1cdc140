"""What the card says of twins, whatever they sound like."""

from __future__ import annotations

CLIPS_OF_SET, QUESTIONS_OF_SET = 17, 19
"""Of the five groups of a set."""

CITATION = """\
```bibtex
@misc{polybench_2026,
  title         = {PolyBench: multiple-choice questions about polyphonic sound for audio language models},
  year          = {2026},
  eprint        = {2603.05128},
  archivePrefix = {arXiv}
}
```
"""
"""Of the paper that the questions are after."""

COLUMNS = """\
| column | content |
|---|---|
| `id` | name of the row |
| `audio` | the clip |
| `question`, `options`, `answer` | what is asked, what is chosen from in this order, and what is right |
| `task`, `variant` | what it is about: `counting`, `duration`, `concurrency`, `classification`, `detection`, and how |
| `anchor` | the label that is asked about; empty where the whole clip is |
| `polarity` | of Yes and No, what Yes says: `overlap` or `alone`; else empty |
| `template` | name of the wording |
| `group` | what clips of one origin have in common: samples of one group are no independent ones |
| `unit` | questions with the same words and options that are balanced with each other |
| `recording`, `source` | the clip, and the data set that it is of |
| `start`, `duration`, `resolution` | seconds: where the clip begins, how long it is, how exact its labels are |
| `polyphony` | most labels that are heard at the same time |
| `overlap` | seconds in which two labels or more are heard |
| `gap` | seconds of silence between what is asked about and what is apart from it, where that is dealt; else missing |
| `level_difference` | dB between the loudest and the softest track, where that is exact; else missing |
| `events` | when which label is heard: `onset`, `offset` (seconds), `label` |"""
"""The columns of all questions."""


def describe_twins(train_sets: int, test_sets: int) -> str:
    """Markdown of what twins are.

    Args:
        train_sets, test_sets: sets of groups of the splits.
    """
    clips, questions = (
        [f"{count * sets:,}" for sets in (train_sets, test_sets)] for count in (CLIPS_OF_SET, QUESTIONS_OF_SET)
    )
    return f"""\
{questions[1]} multiple-choice questions about {clips[1]} clips in which sounds overlap, and {questions[0]} about
{clips[0]} to learn from, after *PolyBench* ([arXiv 2603.05128](https://arxiv.org/abs/2603.05128)). The paper's data are
unpublished; tasks and rules are its own made exact, clips and wordings are ours.

The clips are twins. A group has two to four, with one question and one list of options, and the answer is another in
each: the sounds are at the same places, and only which label is where differs (of detection, in which of four places
two sounds overlap). So text alone is at chance, and so is what is measured of the sound without telling labels apart;
who is right in all clips of a group has heard it. What tells them apart a little says a little: the spectrum of the
whole clip is broader the more kinds of sound there are, and has more of what lasts longer.

A group of

- `counting` has four tracks that overlap, and 1, 2, 3 and 4 labels on them;
- `duration` has three tracks of lengths like 4 : 7 : 11, on which three labels take turns;
- `concurrency` has three tracks, of which two overlap and one is alone: the label that is alone and one of the others
  change places. It has two questions, one about either, so that in each state Yes is right half of the time;
- `classification` has an anchor, a sound that overlaps it, one before, one after, and a label that is not heard: four
  labels take turns;
- `detection` has four places with two sounds each, which overlap in one and follow each other in the rest.

Two sounds overlap if both are heard for half a second, and are apart if 0.2 s lie between them; nothing is asked about
what is in between. Two algorithms that have nothing in common agree on every answer."""
