"""Embedding of batches of clips: order is kept, and input is prepared ahead of the model."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError

from .base import ClipError, FloatArray, Model, check_embeddings, output_dim_of
from .model_encoder import LayeredEncoder, deepest, embed_layers

Worked = TypeVar("Worked")

AHEAD = 2
"""Maximum number of batches that wait for the model: enough to hide a slow one, few enough to save memory."""


class GivenBatch(Protocol):
    """Some clips of a dataset; any object with these attributes."""

    @property
    def ids(self) -> Sequence[str]:
        """A name for each clip, for messages."""

    @property
    def waveforms(self) -> NDArray[Any]:
        """[n, samples]; see `Model.embed`."""

    @property
    def sample_rate(self) -> int:
        """Rate of the waveforms in Hz."""

    @property
    def errors(self) -> Mapping[int, str]:
        """Why a clip cannot be used, by its index in the batch; its waveform is then ignored."""


@dataclass(frozen=True)
class EmbeddedBatch:
    """A batch of clips and their embeddings.

    Attributes:
        ids: ids of the clips.
        embeddings: float32 [n, output_dim]; NaN for a clip without one.
        errors: why a clip could not be embedded, by index in the batch.
    """

    ids: Sequence[str]
    embeddings: FloatArray
    errors: Mapping[int, str]


@dataclass
class _Prepared:
    """A batch whose features are ready.

    Attributes:
        ids: ids of the clips.
        features: input of the second stage; None if no clip is left to embed.
        batch: the clips, if some may have to be left out.
        errors: why clips are left out.
    """

    ids: Sequence[str]
    features: Any
    batch: GivenBatch | None
    errors: dict[int, str]


def embed_batches(
    encoder: Model, batches: Iterable[GivenBatch], *, skip_invalid: bool = False
) -> Generator[EmbeddedBatch]:
    """Embed batches of clips, one after the other.

    A second thread takes the batches from their iterable and runs the first stage of the encoder
    (`StagedEncoder.prepare`) while the model works on earlier ones, at most two batches ahead. It ends before the
    generator does, so close a generator that is not read to its end (`contextlib.closing`).

    Args:
        encoder: any `Model`; one without stages gets whole batches.
        batches: clips, in batches of any sizes; see `GivenBatch`.
        skip_invalid: leave out clips that cannot be embedded instead of raising an error. A valid clip replaces each of
            them in the batch, so that the embeddings of the others do not change by a bit.

    Raises:
        ClipError: a clip or its embedding is not finite; the message holds the clip's id.
        InputError: a batch is malformed.
        Exception: as raised by the iterable, or by the encoder on a batch; it names the batch if known.
    """
    with _Feeder(encoder, batches, skip_invalid) as feeder:
        for prepared in feeder:
            with _blame(prepared.ids):
                embeddings = _second_stage(encoder, prepared)
            yield _embedded(prepared, embeddings)


def embed_batches_at_layers(
    encoders: Sequence[LayeredEncoder[Any]], batches: Iterable[GivenBatch], *, skip_invalid: bool = False
) -> Generator[list[EmbeddedBatch]]:
    """Embed batches as `embed_batches` does, by several encoders that share one model, in one pass; see
    `LayeredEncoder.at_layers`.

    Returns:
        for each batch the output of `embed_batches` for each encoder.
    """
    with _Feeder(deepest(encoders), batches, skip_invalid) as feeder:
        for prepared in feeder:
            with _blame(prepared.ids):
                arrays = _in_one_pass(encoders, prepared)
                if arrays is not None:
                    embedded = [_embedded(prepared, array) for array in arrays]
                else:
                    # A clip without an embedding at one layer may have one at others: go layer by layer.
                    each = [replace(prepared, errors=dict(prepared.errors)) for _ in encoders]
                    pairs = zip(encoders, each, strict=True)
                    embedded = [_embedded(mine, _second_stage(encoder, mine)) for encoder, mine in pairs]
            yield embedded


def _in_one_pass(encoders: Sequence[LayeredEncoder[Any]], prepared: _Prepared) -> list[FloatArray] | None:
    """Return the embeddings at each layer; None if a clip may have to be left out."""
    if prepared.features is None:
        return None
    try:
        arrays = embed_layers(encoders, prepared.features)
    except ClipError:
        if prepared.batch is None:
            raise
        return None
    rows = len(prepared.ids)
    return [check_embeddings(array, encoder, rows) for array, encoder in zip(arrays, encoders, strict=True)]


def _embedded(prepared: _Prepared, embeddings: FloatArray) -> EmbeddedBatch:
    """Return a batch with its embeddings; NaN for a clip that is left out."""
    if prepared.errors:
        embeddings = embeddings.copy()
        embeddings[list(prepared.errors)] = np.nan
    return EmbeddedBatch(prepared.ids, embeddings, prepared.errors)


def _second_stage(encoder: Model, prepared: _Prepared) -> FloatArray:
    rows = len(prepared.ids)
    batch = prepared.batch
    if batch is None:
        return check_embeddings(encoder.forward(prepared.features), encoder, rows)
    if prepared.features is not None:
        try:
            return check_embeddings(encoder.forward(prepared.features), encoder, rows)
        except ClipError as error:
            _note_error(error, prepared.errors, rows)

        def embed(clips: NDArray[Any]) -> FloatArray:
            return check_embeddings(encoder.forward(encoder.prepare(clips, batch.sample_rate)), encoder, rows)

        # Another clip must replace this one, starting from its waveform.
        embeddings = _leave_out(batch, prepared.errors, embed)
        if embeddings is not None:
            return embeddings
    return np.full((rows, output_dim_of(encoder)), np.nan, np.float32)


def _leave_out(batch: GivenBatch, errors: dict[int, str], work: Callable[[NDArray[Any]], Worked]) -> Worked | None:
    """Do `work` on the waveforms of a batch, with a valid clip instead of each invalid one.

    Clips found to be invalid are added to `errors`. Returns None if no clip is valid.
    """
    rows = len(batch.ids)
    while len(errors) < rows:
        waveforms = np.asarray(batch.waveforms)
        if errors:
            waveforms = waveforms.copy()
            waveforms[list(errors)] = waveforms[_first_valid(errors, rows)]
        try:
            return work(waveforms)
        except ClipError as error:
            _note_error(error, errors, rows)
    return None


def _note_error(error: ClipError, errors: dict[int, str], rows: int) -> None:
    if error.row >= rows:
        raise error
    # A position filled by another clip fails when that clip does.
    row = _first_valid(errors, rows) if error.row in errors else error.row
    errors[row] = error.reason


def _first_valid(errors: Mapping[int, str], rows: int) -> int:
    return next(row for row in range(rows) if row not in errors)


@contextmanager
def _blame(ids: Sequence[str]) -> Iterator[None]:
    """Name the clip, or the batch, in an error."""
    try:
        yield
    except ClipError as error:
        if error.row >= len(ids):
            raise
        raise ClipError(error.reason, error.row, ids[error.row]) from error
    except Exception as error:
        if len(ids):
            error.add_note(f"while embedding clips '{ids[0]}' to '{ids[-1]}'")
        raise


class _Feeder:
    """Prepared batches from a thread that ends when the `with` block is left, for whatever reason."""

    def __init__(self, encoder: Model, batches: Iterable[GivenBatch], skip_invalid: bool) -> None:
        self._encoder = encoder
        self._batches = batches
        self._skip_invalid = skip_invalid
        self._ready: queue.Queue[_Prepared | BaseException | None] = queue.Queue(AHEAD)
        self._stopped = threading.Event()
        # A daemon, so that an endless batch does not keep the interpreter from exiting on Ctrl-C.
        self._thread = threading.Thread(target=self._work, name="embed_batches", daemon=True)

    def __enter__(self) -> _Feeder:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stopped.set()
        # After an error, work may go on with smaller batches and must not meet this thread. On Ctrl-C, however, do not
        # wait long.
        self._thread.join(timeout=None if kind is None or issubclass(kind, Exception) else 5)

    def __iter__(self) -> Iterator[_Prepared]:
        while True:
            item = self._ready.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item

    def _work(self) -> None:
        """Prepare the batches; the last item is the error that stopped it, or None."""
        encoder = self._encoder
        error: BaseException | None = None
        iterator: Iterator[GivenBatch] = iter(())
        try:
            iterator = iter(self._batches)
            for batch in iterator:
                if self._stopped.is_set():
                    break
                rate, rows, errors = batch.sample_rate, len(batch.waveforms), dict(batch.errors)
                with _blame(batch.ids):
                    if len(batch.ids) != rows:
                        raise InputError(
                            f"a batch has {len(batch.ids)} ids for {rows} waveforms; the numbers must be equal"
                        )
                    if self._skip_invalid:

                        def prepare(clips: NDArray[Any], rate: int = rate) -> Any:
                            return encoder.prepare(clips, rate)

                        features = _leave_out(batch, errors, prepare)
                        prepared = _Prepared(batch.ids, features, batch, errors)
                    else:
                        prepared = _Prepared(batch.ids, encoder.prepare(batch.waveforms, rate), None, {})
                self._put(prepared)
        except BaseException as caught:
            error = caught
        finally:
            # A generator's cleanup must run in the thread that ran it.
            getattr(iterator, "close", lambda: None)()
        self._put(error)

    def _put(self, item: _Prepared | BaseException | None) -> None:
        while not self._stopped.is_set():
            try:
                self._ready.put(item, timeout=0.1)
            except queue.Full:
                continue
            return
