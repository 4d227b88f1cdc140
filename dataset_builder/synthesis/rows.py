"""The columns that describe the sources of a scene: labels, onsets, gains, entropy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..data import DatasetError, Row
from .scenes import ATTRIBUTES, EMPTY, Codes, Source
from .settings import SceneSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

LABELS = tuple(f"{attribute}_label" for attribute in ATTRIBUTES)


def random_generator(seed: int, stream: int, *place: int) -> np.random.Generator:
    """The random numbers of one use of a seed: a change in one use leaves those of the others alone.

    Args:
        seed: of the settings.
        stream: number of the use; no two recipes have one in common.
        place: of an item within the use that has random numbers of its own; whole numbers from 0.
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, stream], spawn_key=place)))


def sources_of(codes: Codes, settings: SceneSettings) -> tuple[Source, ...]:
    """The sources of a padded row of codes, int32 [width]."""
    return tuple(Source.from_code(int(code), settings.num_classes) for code in codes if code != EMPTY)


def codes_of(sets: Sequence[Sequence[Source]], settings: SceneSettings) -> Codes:
    """Padded codes of sets of sources, int32 [sets, max_sources]."""
    codes = np.full((len(sets), settings.max_sources), EMPTY, np.int32)
    for row, sources in zip(codes, sets, strict=True):
        row[: len(sources)] = [source.code(settings.num_classes) for source in sources]
    return codes


def draw_onsets(sources: Sequence[Source], settings: SceneSettings, rng: np.random.Generator) -> tuple[int, ...]:
    """Samples before each source's first tone, uniform within its period; 0 where onsets are locked."""
    draws = rng.random(len(sources))
    if settings.onset == "locked":
        return (0,) * len(sources)
    return tuple(int(u * settings.periods[source.rate]) for u, source in zip(draws, sources, strict=True))


def labels_of(sources: Sequence[Source], settings: SceneSettings) -> list[dict[str, str]]:
    """The column ``metadata`` of a set of sources: a label of each attribute of each source."""
    return [
        {f"{attribute}_label": settings.labels[attribute][getattr(source, attribute)] for attribute in ATTRIBUTES}
        for source in sources
    ]


def gains_of(sources: Sequence[Source], settings: SceneSettings) -> list[float]:
    """The column ``gains`` of a set of sources: the linear gain of each, before the gain of the whole clip."""
    return [settings.gains[source.amplitude] for source in sources]


def entropy_column(entropy: NDArray[np.float64]) -> dict[str, float]:
    """The column ``entropy``: [4] in the order of `ATTRIBUTES`."""
    return dict(zip(ATTRIBUTES, map(float, entropy), strict=True))


def source_features() -> dict[str, Any]:
    """What `datasets` calls the features of the columns of one set of sources, and of ``entropy``."""
    from datasets import List, Value

    return {
        "metadata": List({label: Value("string") for label in LABELS}),
        "onsets": List(Value("int32")),
        "gains": List(Value("float64")),
        "entropy": {attribute: Value("float64") for attribute in ATTRIBUTES},
    }


def check_sources(row_id: str, metadata: Any) -> None:
    """Refuse what is not the metadata of a set of sources.

    Raises:
        DatasetError: names the row and what is wrong.
    """
    if not isinstance(metadata, list) or not metadata:
        raise DatasetError(f"row {row_id}: metadata is {metadata!r}; it lists at least one source a scene")
    for source in metadata:
        if not isinstance(source, dict):
            raise DatasetError(f"row {row_id}: a source is {source!r}; a source has {', '.join(LABELS)}")
        missing = [label for label in LABELS if not isinstance(source.get(label), str)]
        if missing:
            raise DatasetError(f"row {row_id}: a source lacks {', '.join(missing)}; a source has {', '.join(LABELS)}")


class LazyRows(Sequence[Row]):
    """Rows that are made one by one, each when it is first asked for."""

    def __init__(self, count: int, row: Callable[[int], Row]) -> None:
        self._count, self._row = count, row
        self._made: dict[int, Row] = {}

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        numbers = range(self._count)[index]
        if isinstance(numbers, range):
            return [self[number] for number in numbers]
        if numbers not in self._made:
            self._made[numbers] = self._row(numbers)
        return self._made[numbers]
