"""The account of what was read: every file of a folder and every row of a table, with a reason if it was left out."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from audio_compositionality.support.text import listed, shown

_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|[\w./ -]{0,200}:\d+|\d[\d.,]*")
"""Parts of a reason that differ between files: names, places and numbers."""

_SHOWN = 8
"""Most labels, groups or conditions that a line names."""


@dataclass(frozen=True)
class Account:
    """A record of what was done with everything in a folder or table.

    Attributes:
        source: the data.
        found: files, and rows whose file is missing.
        read: names of everything that was read.
        left_out: reason by name, for everything that was left out.
        labels, groups, conditions: number of recordings of each.
        columns: for each heading of a table, the field that the column is used as; empty if it is not used.
        unit: what is counted.
        one_group: labels whose recordings all belong to one group, so that no split can have them in training and test.
    """

    source: str
    found: int
    read: tuple[str, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, int] = field(default_factory=dict)
    conditions: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    unit: str = "files"
    one_group: tuple[str, ...] = ()

    def reasons(self) -> dict[str, list[str]]:
        """Return names of what was left out, by reason; reasons that differ only in names and numbers are merged."""
        alike: dict[str, str] = {}
        names: dict[str, list[str]] = defaultdict(list)
        for name, why in self.left_out.items():
            names[alike.setdefault(_PARTICULAR.sub("…", why), why)].append(name)
        return dict(sorted(names.items(), key=lambda pair: -len(pair[1])))

    def lines(self) -> list[str]:
        """Return the account as sentences: totals, then a line for each reason, and lines for labels and columns."""
        counts = f"{self.found:,} found, {len(self.read):,} read, {len(self.left_out):,} left out"
        lines = [f"{self.unit.capitalize()} of {self.source}: {counts}."]
        for why, (first, *more) in self.reasons().items():
            lines.append(f"  left out {1 + len(more):,}: {first} {why}" + (f" (and {shown(more, 3)})" if more else ""))
        for what, of_what in (("labels", self.labels), ("groups", self.groups), ("conditions", self.conditions)):
            if of_what:
                said = [f"{name or '(none)'} {count:,}" for name, count in of_what.items()]
                lines.append(f"  {what} {len(of_what):,}: {shown(said, _SHOWN)}")
        if self.one_group:
            lines.append(
                f"  labels with a single group, so in training or test, not both: {shown(self.one_group, _SHOWN)}"
            )
        used = [f"{heading} (as {use})" if heading != use else heading for heading, use in self.columns.items() if use]
        unused = [heading for heading, use in self.columns.items() if not use]
        if self.columns:
            lines.append(f"  columns used: {listed(used, 20) or 'none'}; not used: {listed(unused, 20) or 'none'}")
        return lines

    def values(self) -> dict[str, Any]:
        """Return the account as JSON values."""
        return {
            "source": self.source,
            "unit": self.unit,
            "found": self.found,
            "read": len(self.read),
            "left_out": [{"reason": why, "count": len(names), "names": names} for why, names in self.reasons().items()],
            "labels": dict(self.labels),
            "groups": dict(self.groups),
            "conditions": dict(self.conditions),
            "columns": dict(self.columns),
            "one_group": list(self.one_group),
        }


def counts_of(names: Iterable[str]) -> dict[str, int]:
    """Return the count of each name, most frequent first; empty if all names are empty."""
    counts = Counter(names)
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))) if any(counts) else {}
