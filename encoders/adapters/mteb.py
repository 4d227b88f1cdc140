"""Models of mteb as encoders, and every encoder as a model of mteb (MAEB is its audio benchmark).

The encoder protocol of mteb 2: ``encode(inputs, *, task_metadata, hf_split, hf_subset, prompt_type=None, **kwargs)``
takes a torch `DataLoader`, whose batches hold under "audio" a list of {"array", "sampling_rate"}, and returns
[n, dim]; `similarity`, `similarity_pairwise` and `mteb_model_meta` complete it.

    import mteb
    from audio_compositionality.encoders.adapters.mteb import MtebModel

    mteb.evaluate(MtebModel("whisper-base"), mteb.get_tasks(["ESC50"]))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from importlib.metadata import version
from typing import Any
from uuid import uuid4

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from .. import base
from ..inference import inference
from ..loading.listing import Adapter
from ..loading.registry import load_encoder
from ..options import DEFAULT_OPTIONS, EncoderOptions
from .custom import count_parameters, device_of, to_array, user_code, weights_digest

PREFIX = "mteb"

USUAL_RATE = 32_000
"""Rate in Hz of the clips for a model that states none; it resamples them itself."""


class MtebEncoder(base.WaveformEncoder):
    """A model of mteb run as an encoder."""

    def __init__(self, model: Any, name: str, revision: str) -> None:
        """Wrap a model and embed a second of noise, to find the length of its embeddings.

        Args:
            model: anything with mteb's `encode` that takes audio. If it has a `sampling_rate`, clips are resampled
                to it; else it gets clips at 32 kHz, as mteb's models resample their input.
            name: name of the model.
            revision: revision of the model.

        Raises:
            ModelError: mteb is not installed, or the model returns no embeddings.
        """
        self._model = model
        self._metadata = _task_metadata()
        self._name = f"{PREFIX}:{name}"
        self.device = device_of(model)
        rate = int(getattr(model, "sampling_rate", USUAL_RATE))
        noise = np.random.default_rng(0).normal(0, 0.1, (1, rate)).astype(np.float32)
        shape = self._encode(noise, rate).shape
        if len(shape) != 2:
            raise base.ModelError(f"'{self._name}' returned shape {shape} for one clip, but must return [1, dim]")
        self.card = base.ModelCard(
            id=self._name,
            revision=revision,
            sample_rate=rate,
            output_dim=int(shape[1]),
            weights_sha256=weights_digest(model),
            parameters=count_parameters(model),
        )

    def _encode(self, clips: base.FloatArray, rate: int) -> np.ndarray[Any, Any]:
        return self._encode_rows("audio", [{"array": clip, "sampling_rate": rate} for clip in clips])

    def _encode_rows(self, kind: str, values: Sequence[Any]) -> np.ndarray[Any, Any]:
        # Pass all rows as one batch, so that their embeddings depend on no other call and no worker process is started.
        loader: DataLoader[dict[str, Any]] = DataLoader(
            _Rows(kind, values), batch_size=len(values), collate_fn=lambda rows: {kind: [row[kind] for row in rows]}
        )
        with inference(self.device), user_code(self._name):
            output = self._model.encode(
                loader,
                task_metadata=self._metadata,
                hf_split="test",
                hf_subset="default",
                prompt_type=None,
                batch_size=len(values),
                show_progress_bar=False,
            )
        return to_array(output, self._name)

    def _run_model(self, features: base.FloatArray) -> base.FloatArray:
        return base.check_embeddings(self._encode(features, self.card.sample_rate), self, len(features))


class MtebAudioTextEncoder(MtebEncoder):
    """A model of mteb that embeds texts and sound."""

    def embed_text(self, texts: Sequence[str]) -> base.FloatArray:
        """See `Model.embed_text`."""
        listed = base.check_texts(texts)
        return base.check_text_embeddings(self._encode_rows("text", listed), self, listed)


def as_encoder(model: Any, meta: Any = None, name: str | None = None) -> MtebEncoder:
    """Wrap a loaded model of mteb as an encoder, also of texts if its metadata say so.

    Args:
        model: model of mteb.
        meta: its metadata; by default the model's own.
        name: name for its id; by default from the metadata.

    Raises:
        ModelError: it takes no audio, or returns no embeddings.
    """
    meta = meta or model.mteb_model_meta
    name = name or meta.name
    _check_takes_audio(meta, name)
    kind = MtebAudioTextEncoder if "text" in meta.modalities else MtebEncoder
    return kind(model, name, f"{meta.revision}-mteb-{version('mteb')}")


def _check_takes_audio(meta: Any, name: str) -> None:
    if "audio" not in meta.modalities:
        raise base.ModelError(f"'{PREFIX}:{name}' takes {', '.join(meta.modalities)}, but not audio")


class _Rows(Dataset[dict[str, Any]]):
    """Clips or texts as rows of mteb; its models look for the kind in `features`."""

    def __init__(self, kind: str, values: Sequence[Any]) -> None:
        self.features = (kind,)
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, row: int) -> dict[str, Any]:
        return {self.features[0]: self._values[row]}


def load_mteb_encoder(name: str, device: torch.device | None, options: EncoderOptions) -> MtebEncoder:
    """Load the encoder of a model that mteb knows by name. mteb's own code loads it, from wherever mteb stores it.

    Raises:
        ModelError: mteb or what it needs for audio is not installed, it knows no such model (with the nearest) or
            cannot load it, the model takes no audio or needs code of its Hub repository, or options are not the
            defaults.
    """
    if options != DEFAULT_OPTIONS:
        raise base.ModelError(f"'{PREFIX}:{name}' runs mteb's code: it takes no layer, pooling or precision")
    mteb = import_mteb()
    try:
        meta = mteb.get_model_meta(name, fetch_from_hf=False)
    except KeyError as error:
        raise base.ModelError(f"'{PREFIX}:{name}': {error.args[0]}") from error
    _check_takes_audio(meta, name)
    if meta.loader_kwargs.get("trust_remote_code"):
        raise base.ModelError(f"'{PREFIX}:{name}' needs code from its Hub repository, which this package does not run")
    try:
        model = meta.load_model(device=None if device is None else str(device))
        return as_encoder(model, meta, name)
    except (ImportError, OSError) as error:
        raise base.ModelError(f"mteb cannot load '{name}': {error}") from error


class MtebModel:
    """An encoder as a model for ``mteb.evaluate``, and as the loader of a ``ModelMeta``.

    Clips of one task may have any rates and lengths: each is resampled by the encoder, none is padded to another's
    length.
    """

    def __init__(
        self,
        model_name: object,
        revision: str | None = None,
        *,
        device: str | None = None,
        options: EncoderOptions = DEFAULT_OPTIONS,
        max_seconds: float | None = None,
        **_: Any,
    ) -> None:
        """Load an encoder.

        Args:
            model_name: its name, or an object, as `load_model` takes them.
            revision: required revision; None for any.
            device: torch device; by default CUDA if available.
            options: layer, pooling, precision.
            max_seconds: cut longer clips to this length, for an encoder that refuses them.

        Raises:
            ModelError: there is no such encoder, or it has another revision.
        """
        self.encoder = load_encoder(model_name, device=device, options=options)
        self.name = model_name if isinstance(model_name, str) else None
        self.max_seconds = max_seconds
        if revision is not None and revision != self.encoder.card.revision:
            card = self.encoder.card
            raise base.ModelError(
                f"'{self.name or card.id}' has the revision {card.revision}, but {revision} was requested"
            )

    @cached_property
    def mteb_model_meta(self) -> Any:
        """The `ModelMeta` under which mteb files results; the organisation is "audio-compositionality". mteb reuses
        results of equal name and revision, so a card that is not reusable gets a unique revision."""
        import_mteb()
        once = "" if self.encoder.card.is_reusable else f"-{uuid4().hex[:8]}"
        return import_module("mteb.models").ModelMeta(
            loader=None,
            name="audio-compositionality/" + re.sub(r"[^\w.=@+-]+", "__", self.encoder.card.id),
            revision=self.encoder.card.revision + once,
            release_date=None,
            languages=None,
            n_parameters=self.encoder.card.parameters,
            memory_usage_mb=None,
            max_tokens=None,
            embed_dim=self.encoder.card.output_dim,
            license=None,
            open_weights=None,
            public_training_code=None,
            public_training_data=None,
            framework=["PyTorch"],
            similarity_fn_name="cosine",
            use_instructions=False,
            training_datasets=None,
            modalities=["audio", "text"] if self._reads else ["audio"],
        )

    @property
    def _reads(self) -> bool:
        return "text" in self.encoder.abilities

    @property
    def sampling_rate(self) -> int:
        """Hz; clips at this rate are not resampled."""
        return self.encoder.card.sample_rate

    def encode(
        self,
        inputs: Iterable[Mapping[str, Any]],
        *,
        task_metadata: Any = None,
        hf_split: str = "",
        hf_subset: str = "",
        prompt_type: Any = None,
        **_: Any,
    ) -> base.FloatArray:
        """Embed the audio or the texts of a `DataLoader`, whatever the task.

        Args:
            inputs: batches, which hold under "audio" a list of {"array": [samples] or [channels, samples],
                "sampling_rate": Hz}, whose channels are averaged; or under "text" a list of texts.
            task_metadata: not used.
            hf_split: not used.
            hf_subset: not used.
            prompt_type: not used.

        Returns:
            float32 [n, dim].

        Raises:
            ModelError: a batch holds neither or both, the encoder embeds no texts, or it cannot take a clip.
        """
        embeddings = []
        for batch in inputs:
            if "audio" in batch and "text" not in batch:
                embeddings.append(self._embed(batch["audio"]))
            elif "text" in batch and "audio" not in batch and self._reads:
                embeddings.append(self.encoder.embed_text(batch["text"]))
            else:
                needs = "'audio' or 'text'" if self._reads else "'audio'"
                raise base.ModelError(f"a batch holds {', '.join(batch) or 'nothing'}; this encoder needs {needs}")
        return np.concatenate(embeddings)

    def _embed(self, items: list[Mapping[str, Any]]) -> base.FloatArray:
        rates = [int(item["sampling_rate"]) for item in items]
        clips = [self._clip(item["array"], rate) for item, rate in zip(items, rates, strict=True)]
        embeddings = np.empty((len(items), base.output_dim_of(self.encoder)), np.float32)
        for rate in sorted(set(rates)):
            rows = [row for row, item_rate in enumerate(rates) if item_rate == rate]
            embeddings[rows] = self.encoder.embed([clips[row] for row in rows], rate)
        return embeddings

    def _clip(self, array: Any, rate: int) -> base.FloatArray:
        samples = np.asarray(array, dtype=np.float32)
        mono = samples.mean(axis=0) if samples.ndim > 1 else samples
        return mono if self.max_seconds is None else mono[: round(self.max_seconds * rate)]

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the cosine of every embedding of one with every embedding of the other: [n, dim], [m, dim] -> [n,
        m]."""
        return import_module("mteb.similarity_functions").cos_sim(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the cosine of corresponding embeddings: [n, dim], [n, dim] -> [n]."""
        return import_module("mteb.similarity_functions").pairwise_cos_sim(embeddings1, embeddings2)


def _task_metadata() -> Any:
    """Return the task's metadata for mteb: some of its models look up a prompt by it."""
    import_mteb()
    return import_module("mteb.abstasks.task_metadata").TaskMetadata(
        name="AudioCompositionality",
        description="Compositional structure in audio embeddings.",
        reference="https://arxiv.org/abs/2603.13685",
        dataset={"path": "audio-compositionality", "revision": "main"},
        type="AudioClassification",
        modalities=["audio"],
        category="a2c",
        eval_langs=["zxx-Zxxx"],
        main_score="accuracy",
    )


def import_mteb() -> Any:
    """Import the package mteb.

    Raises:
        ModelError: it is not installed.
    """
    try:
        return import_module("mteb")
    except ModuleNotFoundError as error:
        if error.name != "mteb":
            raise
        raise base.ModelError("models of mteb need the package mteb: pip install 'mteb[audio]>=2.26'") from error


ADAPTER = Adapter(PREFIX, load_mteb_encoder)
