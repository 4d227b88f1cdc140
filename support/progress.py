"""One bar over all of a command's work, with an honest estimate of the time left.

The work is known before it begins, as parts: clips for a model, questions to another, a fit. Only what is still to be
done counts, so that stored outputs do not make the rest look fast. A part is expected to take

1. as long an item as it took so far, once it has run for a while; its first items are left out, since a model warms up
   and clips are read ahead of them;
2. else as long as others of its kind did in this command, by their sizes;
3. else as long as was foreseen, as measured on a few items beforehand or by a rule, times what parts took in this
   command for each second foreseen, as far as these are enough to tell: a machine that is busier than at the beginning
   takes longer for everything.

What is left is the sum over the parts. Where nothing is known of a part, it counts as nothing and the estimate says
"more than". It assumes that a part's items are alike, that the machine stays as busy as it is, and that parts run one
after the other.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, Any

from .text import plain

LINE_SECONDS = 60.0
"""Seconds between two lines where the output is no terminal."""

REDRAWN_SECONDS = 1.0
"""Seconds between two looks at the clock, so that the time left goes on during a long item."""

PACE_SECONDS = 3.0
"""Seconds of work foreseen that count as taken as foreseen, beside those that are done: parts of a few hundredths of a
second say little about others."""

PACE_HALVES = 60.0
"""Seconds after which a part that ended counts half in the pace."""

WARM_SECONDS, WARM_SHARE = 2.0, 0.1
"""Seconds after its first items, and the share of its items, from which a part's own rate is taken rather than the
expected one."""


@dataclass(frozen=True)
class Part:
    """A part of a command's work.

    Attributes:
        name: as shown, such as a model and its task.
        unit: an item, in the singular.
        items: number of items to be done; those that were stored already are not among them.
        kind: items of the same kind take a time in proportion to `size`; None for a kind of its own.
        size: of an item, in any unit.
        seconds: an item's, foreseen; None where nothing is known of it.
    """

    name: str
    unit: str
    items: float
    kind: Hashable = None
    size: float = 1.0
    seconds: float | None = None


@dataclass
class _State:
    """How far a part is; times are those of the clock."""

    part: Part
    done: float = 0.0
    began: float | None = None
    first: tuple[float, float] | None = None
    taken: float | None = None

    @property
    def left(self) -> float:
        return 0.0 if self.taken is not None else max(self.part.items - self.done, 0.0)


@dataclass(frozen=True)
class Left:
    """The time left.

    Attributes:
        seconds: the sum over the parts of which something is known.
        is_all: whether these are all parts.
    """

    seconds: float
    is_all: bool

    def __str__(self) -> str:
        if self.is_all:
            return f"{duration_text(self.seconds)} left"
        return "time left unknown" if self.seconds < 1 else f"more than {duration_text(self.seconds)} left"


@dataclass
class Estimate:
    """The parts of a command's work, how far they are, and how long the rest will take.

    Attributes:
        parts: by any key.
        clock: seconds, as `time.monotonic`.
    """

    parts: Mapping[Hashable, Part]
    clock: Callable[[], float] = time.monotonic
    _states: dict[Hashable, _State] = field(init=False)
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._states = {key: _State(part) for key, part in self.parts.items()}
        self._began = self.clock()

    @property
    def elapsed(self) -> float:
        """Seconds since the work began."""
        return self.clock() - self._began

    def begin(self, key: Hashable, part: Part | None = None) -> None:
        """Begin a part.

        Args:
            key: of the part.
            part: what is really to be done, where that is known; of a foreseen part its kind, size and seconds stay.
        """
        state = self._states.get(key, _State(part or Part("", "item", 0)))
        if part is not None and (state.taken is None or part.items):
            foreseen = state.part
            state = _State(replace(part, kind=foreseen.kind, size=foreseen.size, seconds=foreseen.seconds))
        state.began = self.clock()
        # Another thread, which draws the bar, may be going through the old ones.
        self._states = {**self._states, key: state}

    def advance(self, key: Hashable, count: float = 1.0) -> None:
        """Count items as done."""
        state = self._states[key]
        state.done += count
        if state.first is None:
            state.first = (self.clock(), state.done)

    def finish(self, key: Hashable, *, is_whole: bool = True) -> None:
        """End a part, whatever is left of it.

        Only items that were counted make a rate; a part of one item counts it by its end, unless not `is_whole`.
        """
        state, now = self._states[key], self.clock()
        state.taken = now - (now if state.began is None else state.began)
        if is_whole and state.part.items <= 1:
            state.done = state.part.items

    def left(self) -> Left:
        """The time left."""
        seconds, is_all = 0.0, True
        for state in self._states.values():
            if not state.left:
                continue
            measured = self._measured(state)
            each = self._expected(state) if measured is None else measured
            if each is None:
                is_all = False
            elif not state.done and state.began is not None:
                # Of what takes that long nothing is done yet: the time since it began counts.
                seconds += max(each * state.part.items - (self.clock() - state.began), 0.0)
            else:
                seconds += each * state.left
        return Left(seconds, is_all)

    def share(self) -> float:
        """The share of the work that is done, 0 to 1: of the time where all is known, else of the parts."""
        left, elapsed = self.left(), self.elapsed
        if left.is_all and left.seconds + elapsed > 0:
            return elapsed / (elapsed + left.seconds)
        states = self._states.values()
        shares = [1.0 if not state.left else state.done / state.part.items for state in states]
        return sum(shares) / max(len(shares), 1)

    def _measured(self, state: _State) -> float | None:
        """Seconds an item since the first ones; None where that is too short a time to tell."""
        if state.first is None:
            return None
        since, before = state.first
        elapsed, done = self.clock() - since, state.done - before
        if not done or (not self._is_warm(state) and self._expected(state) is not None):
            return None
        return elapsed / done

    def _is_warm(self, state: _State) -> bool:
        """Whether a part has run for long enough for its own rate."""
        elapsed = 0.0 if state.first is None else self.clock() - state.first[0]
        return elapsed >= WARM_SECONDS and state.done >= WARM_SHARE * state.part.items

    def _expected(self, state: _State) -> float | None:
        """Seconds an item as others of its kind took, else as measured beforehand; None where neither is known."""
        kind, now = state.part.kind, self.clock()
        alike = [] if kind is None else [one for one in self._states.values() if one.part.kind == kind]
        timed = [
            (now - one.began if one.taken is None else one.taken, one.done * one.part.size)
            for one in alike
            if one is not state and one.done and one.began is not None
        ]
        amount = sum(sized for _, sized in timed)
        if amount:
            return sum(taken for taken, _ in timed) / amount * state.part.size
        return None if state.part.seconds is None else state.part.seconds * self._pace()

    def _pace(self) -> float:
        """Seconds that the work took for each second foreseen, over the parts that are done or that tell by now; the
        older a part, the less it says of the machine's load now."""
        taken = foreseen = PACE_SECONDS
        now = self.clock()
        for state in self._states.values():
            if not state.part.seconds or not state.done or state.began is None:
                continue
            if state.taken is None and not self._is_warm(state):
                continue
            lasted = now - state.began if state.taken is None else state.taken
            weight = 0.5 ** ((now - state.began - lasted) / PACE_HALVES)
            taken += weight * lasted
            foreseen += weight * state.done * state.part.seconds
        return taken / foreseen

    def name(self, key: Hashable) -> str:
        """The name of a part."""
        return self._states[key].part.name

    def position(self, key: Hashable) -> str:
        """The name of a part, and how far it is, in words."""
        state = self._states[key]
        part = state.part
        if part.items <= 1:
            return part.name
        return f"{part.name}, {part.unit} {min(state.done, part.items):,.0f} of {part.items:,.0f}"


class Progress:
    """A bar in a terminal or a notebook; elsewhere a line a minute, without carriage returns."""

    def __init__(
        self,
        parts: Mapping[Hashable, Part],
        *,
        shown: bool = True,
        clock: Callable[[], float] = time.monotonic,
        file: IO[str] | None = None,
    ) -> None:
        """Begin.

        Args:
            parts: the work to be done, by keys.
            shown: whether anything is printed.
            clock: seconds.
            file: for the output; by default the standard error.
        """
        from tqdm.auto import tqdm

        self.estimate = Estimate(parts, clock)
        self._key: Hashable = None
        self._clock, self._file, self._said = clock, file, clock()
        form = "{percentage:3.0f}%|{bar:20}| {elapsed}{postfix}"
        # tqdm hides itself where the output is no terminal; then lines take its place.
        hidden = None if shown else True
        self._bar: Any = tqdm(total=100, disable=hidden, bar_format=form, leave=None, file=file, **_room(file))
        self._has_lines = shown and bool(self._bar.disable)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        if shown and clock is time.monotonic:
            threading.Thread(target=self._look, name="progress", daemon=True).start()

    def _look(self) -> None:
        while not self._ended.wait(REDRAWN_SECONDS):
            self.refresh()

    @contextmanager
    def during(self, key: Hashable, part: Part | None = None) -> Iterator[Callable[[float], None]]:
        """A part while it is worked on; gives the function that counts items as done."""
        with self._lock:
            self.estimate.begin(key, part)
        before, self._key = self._key, key
        is_whole = False
        self.refresh()
        try:
            yield partial(self.advance, key)
            is_whole = True
        finally:
            self.refresh()
            with self._lock:
                self.estimate.finish(key, is_whole=is_whole)
            self._key = before

    def advance(self, key: Hashable, count: float = 1.0) -> None:
        """Count items of a part as done."""
        with self._lock:
            self.estimate.advance(key, count)
        if self._has_lines:
            self.refresh()

    def refresh(self) -> None:
        """Draw the bar again, or print a line where the last one is a minute old."""
        if self._ended.is_set():
            return
        if self._has_lines:
            if self._clock() - self._said >= LINE_SECONDS:
                self._said = self._clock()
                self.say(self.line())
        elif not self._bar.disable:
            self._bar.n = min(100.0, 100 * self.estimate.share())
            self._bar.set_postfix_str(self._words(), refresh=False)
            self._bar.refresh()

    def line(self) -> str:
        """How far the work is and how long the rest will take, as one line."""
        return f"{100 * self.estimate.share():.0f} % after {duration_text(self.estimate.elapsed)}, {self._words()}"

    def _words(self) -> str:
        return f"{self.estimate.left()}{'' if self._key is None else f': {plain(self.where())}'}"

    @property
    def name(self) -> str:
        """The name of the part that is worked on."""
        return "" if self._key is None else self.estimate.name(self._key)

    def where(self) -> str:
        """The part that is worked on, and how far it is, in words."""
        return self.estimate.position(self._key)

    def say(self, text: str) -> None:
        """Print a line, where lines take the place of a bar."""
        if self._has_lines:
            print(text, file=self._file or sys.stderr, flush=True)

    def close(self) -> None:
        """Remove the bar."""
        if not self._ended.is_set():
            self._ended.set()
            self._bar.leave = False
            self._bar.close()


def _room(file: IO[str] | None) -> dict[str, Any]:
    """The size of a bar for tqdm: as that of the terminal, or 80 columns where the terminal does not tell it, since in
    none a bar would not be drawn."""
    try:
        columns, lines = os.get_terminal_size((file or sys.stderr).fileno())
    except (OSError, ValueError, AttributeError):
        return {"dynamic_ncols": True}
    return {"dynamic_ncols": True} if columns and lines else {"ncols": columns or 80, "nrows": lines or 24}


_CURRENT: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def progress_of(parts: Mapping[Hashable, Part], *, shown: bool) -> Iterator[Progress]:
    """The progress of a command; within it `during` counts in its bar.

    Args:
        parts: see `Progress`.
        shown: whether anything is printed.
    """
    progress = Progress(parts, shown=shown)
    token = _CURRENT.set(progress)
    try:
        yield progress
    finally:
        _CURRENT.reset(token)
        progress.close()


@contextmanager
def during(key: Hashable, part: Part, *, shown: bool) -> Iterator[Callable[[float], None]]:
    """A part of the command's bar while it is worked on; with a bar of its own where the command has none.

    Args:
        key: of the part in the command's bar.
        part: what is to be done.
        shown: whether a bar of its own is printed.

    Yields:
        the function that counts items as done.
    """
    progress = _CURRENT.get()
    if progress is not None:
        with progress.during(key, part) as advance:
            yield advance
    elif not part.items:
        yield _ignored
    else:
        with progress_of({key: part}, shown=shown) as progress, progress.during(key) as advance:
            yield advance


def _ignored(count: float = 1.0) -> None:
    """Count items where there is nothing to do."""


def duration_text(seconds: float) -> str:
    """A duration, rounded to its largest unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
