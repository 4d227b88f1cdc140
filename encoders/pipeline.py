"""Embedding of a whole dataset: order kept, the input made ready ahead of the model."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from .base import ClipError, Encoder, FloatArray, StagedEncoder, check_embeddings

AHEAD = 2
"""Batches that may wait for the model: enough to hide a slow one, few enough to cost little memory."""


class ClipBatch(Protocol):
    """Some clips of a dataset, as any object with these attributes."""

    @property
    def ids(self) -> Sequence[str]:
        """A name for each clip, for messages."""

    @property
    def waveforms(self) -> NDArray[Any]:
        """[n, samples]; see `Encoder.embed`."""

    @property
    def sample_rate(self) -> int:
        """Rate of the waveforms in Hz."""


@dataclass(frozen=True)
class _Prepared:
    ids: Sequence[str]
    features: Any


@dataclass(frozen=True)
class _End:
    error: BaseException | None = None


def embed_dataset(
    encoder: Encoder,
    batches: Iterable[ClipBatch],
    *,
    total: int | None = None,
    description: str | None = None,
    progress: bool = True,
) -> FloatArray:
    """Embed all clips of a dataset in their order.

    A second thread takes the batches from their iterable and runs the first stage of the encoder
    (`StagedEncoder.prepare`) while the model works on earlier ones, two batches ahead at most.

    Args:
        encoder: any `Encoder`; one without stages is given whole batches.
        batches: clips, in batches of any sizes; see `ClipBatch`.
        total: number of clips, for the progress bar.
        description: what the progress bar says; by default the encoder's id.
        progress: whether to show a progress bar.

    Returns:
        float32 [clips, output_dim].

    Raises:
        ClipError: if a clip is not finite or its embedding is not; the message holds the clip's id.
        ValueError: if there is no clip, or a batch is malformed.
        Exception: whatever the iterable, or the encoder on a batch, raises; it names the batch where it is known.
    """
    embeddings = []
    with (
        _Feeder(encoder, batches) as feeder,
        tqdm(total=total, desc=description or encoder.id, unit="clip", disable=not progress) as bar,
    ):
        for prepared in feeder:
            with _blame(prepared.ids):
                embeddings.append(_second_stage(encoder, prepared))
            bar.update(len(prepared.ids))
    if not embeddings:
        raise ValueError("the dataset holds no clip; at least one is needed")
    return np.concatenate(embeddings)


def _first_stage(encoder: Encoder, batch: ClipBatch) -> Any:
    rows = len(batch.waveforms)
    if len(batch.ids) != rows:
        raise ValueError(f"a batch has {len(batch.ids)} ids for {rows} waveforms; there must be one each")
    if isinstance(encoder, StagedEncoder):
        return encoder.prepare(batch.waveforms, batch.sample_rate)
    return batch.waveforms, batch.sample_rate


def _second_stage(encoder: Encoder, prepared: _Prepared) -> FloatArray:
    if isinstance(encoder, StagedEncoder):
        embeddings = encoder.forward(prepared.features)
    else:
        embeddings = encoder.embed(*prepared.features)
    return check_embeddings(embeddings, encoder, len(prepared.ids))


@contextmanager
def _blame(ids: Sequence[str]) -> Iterator[None]:
    """Tell which clip, or which batch, an error is about."""
    try:
        yield
    except ClipError as error:
        if error.row >= len(ids):
            raise
        raise ClipError(f"clip '{ids[error.row]}': {error}", error.row) from error
    except Exception as error:
        if len(ids):
            error.add_note(f"while embedding clips '{ids[0]}' to '{ids[-1]}'")
        raise


class _Feeder:
    """Prepared batches, made by a thread of its own that ends when the `with` block is left, however it is left."""

    def __init__(self, encoder: Encoder, batches: Iterable[ClipBatch]) -> None:
        self._encoder = encoder
        self._batches = batches
        self._ready: queue.Queue[_Prepared | _End] = queue.Queue(AHEAD)
        self._stopped = threading.Event()
        # A daemon: a batch that takes forever must not keep the interpreter from leaving on Ctrl-C.
        self._thread = threading.Thread(target=self._work, name="embed_dataset", daemon=True)

    def __enter__(self) -> _Feeder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(timeout=5)

    def __iter__(self) -> Iterator[_Prepared]:
        while True:
            item = self._ready.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item

    def _work(self) -> None:
        error = None
        iterator: Iterator[ClipBatch] = iter(())
        try:
            iterator = iter(self._batches)
            for batch in iterator:
                if self._stopped.is_set():
                    break
                with _blame(batch.ids):
                    features = _first_stage(self._encoder, batch)
                self._put(_Prepared(batch.ids, features))
        except BaseException as caught:
            error = caught
        finally:
            # A generator's cleanup must run in the thread that ran it.
            getattr(iterator, "close", lambda: None)()
        self._put(_End(error))

    def _put(self, item: _Prepared | _End) -> None:
        while not self._stopped.is_set():
            try:
                self._ready.put(item, timeout=0.1)
            except queue.Full:
                continue
            return
