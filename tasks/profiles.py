"""What is told of a model by itself: its score by kinds of samples, what its errors are, what it answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Asked:
    """A question with options, as people read it.

    Attributes:
        question: one line.
        options: in the order in which they were shown.
        answer: the one that is right.
    """

    question: str
    options: tuple[str, ...]
    answer: str


@dataclass(frozen=True)
class Tally:
    """A table of measures, such as of counts: what was right in its rows, what was said in its columns.

    Attributes:
        title: what is counted.
        of_rows: what the headings of rows are.
        columns: headings.
        rows: by their headings, for each column the name of a measure.
        needs: name of a measure without which nothing is told; empty where anything that is there is.
        right: of rows of counts, which are told with their shares of the row, the place of the column that is right.
    """

    title: str
    of_rows: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[str, ...]]
    right: Mapping[str, int] = field(default_factory=dict)
    needs: str = ""


@dataclass(frozen=True)
class Profile:
    """What is told of each model by itself, beside all tables.

    Attributes:
        measure: name of the measure, a mean over all samples, that is told of groups of samples.
        groupings: those of `Samples.groups` that are drawn, in their order.
        shares: of measures that count, and of the measure that counts what they are shares of, the names; the first
            counts all answers without a choice.
        tallies: tables of measures.
        choices: name of the column of the samples that has the place of the option that was taken, from 0; empty where
            nothing is chosen.
        no_choice: what its negative numbers stand for, in words.
        heard_from: name of the grouping of which every group has samples to listen to; empty means all together.
        parts: names of the measures of single kinds of samples; a result that lacks one had no sample of that kind.
    """

    measure: str
    groupings: tuple[str, ...]
    shares: tuple[tuple[str, str], ...] = ()
    tallies: tuple[Tally, ...] = ()
    choices: str = ""
    no_choice: Mapping[int, str] = field(default_factory=dict)
    heard_from: str = ""
    parts: tuple[str, ...] = ()
