"""What the card says of twins, whatever they sound like."""

from __future__ import annotations

from ..questions.base import NO_TIME, ORDER, SIMULTANEITY, time_of
from ..questions.tasks import question_tasks
from .twins import KINDS

CLIPS_OF_SET, QUESTIONS_OF_SET = 23, 25
"""Of the seven groups of a set."""

_NEEDS = {NO_TIME: "neither", SIMULTANEITY: "what sounds at one moment", ORDER: "the order in time"}
"""What a kind of question needs, in words; see `questions.base.NO_TIME`."""

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


def _time_table() -> str:
    """A row for each kind of question of a set."""
    tasks = question_tasks()
    rows = [f"| `{kind}` | {_NEEDS[time_of(kind, tasks)]} |" for kind in KINDS]
    return "\n".join(["| kind of question | needs |", "|---|---|", *rows])


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
two sounds overlap). So text alone is at chance, and so is what is measured of the sound without telling labels apart.

What of time a question needs:

{_time_table()}

Where it is neither, what there is of each sound in the whole clip tells the answer, whenever that is heard: a forest on
mean and deviation of log-mel bands, learnt from the split train, is right far above chance in all clips of a group of
`duration`. These two kinds are the paper's own; `duration/longest` and `counting/together` ask the same with time.

A group of

- `counting` has four tracks that overlap, and 1, 2, 3 and 4 labels on them;
- `duration` has three tracks of lengths like 4 : 7 : 11, on which three labels take turns;
- `duration/longest` has three tracks of the same total length, level and number of events, of which any two are heard
  together equally long; one has a much longer event than the others, and three labels take turns on them;
- `counting/together` has four labels at six times, each at three of them: twice in one voice and once in two. Two,
  three or four of them are heard at once, at most; at each time as many voices sound in all clips;
- `concurrency` has three tracks, of which two overlap and one is alone: the label that is alone and one of the others
  change places. It has two questions, one about either, so that in each state Yes is right half of the time;
- `classification` has an anchor, a sound that overlaps it, one before, one after, and a label that is not heard: four
  labels take turns;
- `detection` has four places with two sounds each, which overlap in one and follow each other in the rest.

Two sounds overlap if both are heard for half a second, and are apart if 0.2 s lie between them; nothing is asked about
what is in between. Two algorithms that have nothing in common agree on every answer."""
