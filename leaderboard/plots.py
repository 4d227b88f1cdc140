"""Box plot and diversity plot of the entries that a visitor picks."""

from __future__ import annotations

import io
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from matplotlib.figure import Figure

from audio_compositionality.evaluator.compare.comparison import OpenedData, compare_loaded
from audio_compositionality.evaluator.compare.loading import ComparedResult
from audio_compositionality.evaluator.figures.samples import diversity_panels, score_boxes
from audio_compositionality.evaluator.figures.style import FigureError, figure_style
from audio_compositionality.evaluator.results.result import ResultError
from audio_compositionality.evaluator.submissions.submission import read_sample_table
from audio_compositionality.hub.errors import HubError
from audio_compositionality.support.text import shortened

from .board import Entry, sample_facts

MOST_PLOTTED = 12
"""Most entries in one plot."""

DPI = 220
"""Resolution of the images: a column of 3.4 inches fills half of a wide screen."""

_SAMPLES_KEPT, _DRAWINGS_KEPT = 200, 40

KeptKey = TypeVar("KeptKey")
KeptValue = TypeVar("KeptValue")


@dataclass(frozen=True)
class EntryPlots:
    """The plots of some entries.

    Attributes:
        boxes: the box plot, a PNG file; None if it cannot be drawn.
        diversity: the plot against diversity, a PNG file; None if it cannot be drawn.
        notes: entries that are not drawn, with reasons, and limits of comparability.
        lacks_files: an entry is missing since the Hub did not give its file.
    """

    boxes: bytes | None
    diversity: bytes | None
    notes: tuple[str, ...]
    lacks_files: bool = False


class Plots:
    """Draws entries; files and plots for one visitor are kept for the next."""

    def __init__(self, fetch: Callable[[str, Entry], bytes]) -> None:
        """Nothing is fetched yet.

        Args:
            fetch: gives the file of an entry's samples at a commit.
        """
        self._fetch = fetch
        # Matplotlib's settings belong to the process. Nothing is fetched while one holds it.
        self._drawing = threading.Lock()
        self._samples: _Kept[tuple[str, str], ComparedResult] = _Kept(_SAMPLES_KEPT)
        self._drawings: _Kept[tuple[str, frozenset[tuple[str, str]]], EntryPlots] = _Kept(_DRAWINGS_KEPT)

    def draw(self, commit: str, entries: Sequence[Entry], measure: str) -> EntryPlots:
        """The plots of entries of one version of a task and data; none for no entries.

        Args:
            commit: of the repository at which they were read.
            entries: at most `MOST_PLOTTED`; further ones are left out, with a note.
            measure: name of a mean over samples.
        """
        if not entries:
            return EntryPlots(None, None, ())
        key = (measure, frozenset((entry.id, entry.status) for entry in entries))
        drawing = self._drawings.get(key, lambda: self._draw(commit, entries, measure))
        if drawing.lacks_files:
            # The next visitor may have more luck with the Hub.
            self._drawings.drop(key)
        return drawing

    def _draw(self, commit: str, entries: Sequence[Entry], measure: str) -> EntryPlots:
        notes = [] if len(entries) <= MOST_PLOTTED else [f"Only the first {MOST_PLOTTED} of {len(entries)} are drawn."]
        data = sample_facts(entries[0].result)
        loaded, troubles, trouble = self._loaded(commit, entries[:MOST_PLOTTED], data)
        notes += troubles
        if not loaded:
            return EntryPlots(None, None, tuple(notes), trouble)
        try:
            comparison = compare_loaded(loaded, data)
        except ResultError as error:
            return EntryPlots(None, None, (*notes, f"Not drawn: {shortened(str(error), 300)}"), trouble)
        notes += [f"Note: {shortened(note, 300)}." for note in comparison.notes]
        images: list[bytes | None] = []
        for draw in (score_boxes, diversity_panels):
            try:
                with self._drawing:
                    images.append(_png(draw(comparison, measure)))
            except (FigureError, ResultError) as error:
                images.append(None)
                notes.append(f"Not drawn: {shortened(str(error), 300)}.")
        return EntryPlots(images[0], images[1], tuple(notes), trouble)

    def _loaded(
        self, commit: str, entries: Sequence[Entry], data: OpenedData
    ) -> tuple[list[ComparedResult], list[str], bool]:
        """Entries with their samples, reasons for the missing ones, and whether the Hub did not give some of them."""
        ids = None if data.samples is None else set(data.samples.ids)
        loaded, notes, trouble = [], [], False
        for entry, label in zip(entries, labels(entries), strict=True):
            try:
                one = self._samples.get((entry.id, entry.status), partial(self._load, commit, entry))
                if ids is not None and not ids.issuperset(one.ids):
                    raise ResultError("it has samples that the data do not have")
            except (HubError, OSError, ResultError) as error:
                trouble = trouble or not isinstance(error, ResultError)
                notes.append(f"Not drawn: {shortened(label, 200)}: {shortened(str(error), 300)}")
                continue
            loaded.append(replace(one, label=label))
        return loaded, notes, trouble

    def _load(self, commit: str, entry: Entry) -> ComparedResult:
        table = read_sample_table(self._fetch(commit, entry), entry.result)
        return ComparedResult(entry.id, entry.result, Path(entry.samples), table)


def labels(entries: Sequence[Entry]) -> list[str]:
    """The model's id and status of each entry, with the differences between entries that share the id."""
    names = [entry.model for entry in entries]
    revisions = [f"{entry.result.model.revision[:8]}, " for entry in entries]
    ids = [f"{entry.id[-16:][:8]}, " for entry in entries]
    shared, again = Counter(names), Counter(zip(names, revisions, strict=True))
    return [
        f"{name} ({revision if shared[name] > 1 else ''}{id if again[name, revision] > 1 else ''}{entry.status})"
        for name, revision, id, entry in zip(names, revisions, ids, entries, strict=True)
    ]


def _png(figure: Figure) -> bytes:
    file = io.BytesIO()
    with figure_style():
        figure.savefig(file, format="png", dpi=DPI)
    return file.getvalue()


class _Kept(Generic[KeptKey, KeptValue]):
    """A cache of limited size, least recently used first out, for any number of threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._values: OrderedDict[KeptKey, KeptValue] = OrderedDict()

    def get(self, key: KeptKey, make: Callable[[], KeptValue]) -> KeptValue:
        """The value of a key, made where it is missing; no thread waits for a value that another one makes."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        made = make()
        with self._lock:
            value = self._values.setdefault(key, made)
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
            return value

    def drop(self, key: KeptKey) -> None:
        """Remove a value."""
        with self._lock:
            self._values.pop(key, None)
