"""Submissions for tests, made without the code that is tested where that is what is tested."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from audio_compositionality.encoders.base import Model, ModelCard

FILES = ("embeddings.safetensors", "result.json", "samples.csv")


class ShortEncoder(Model):
    """Twelve energies of a clip, with a long part in common: what it answers is known and costs nothing."""

    card = ModelCard("org/short", "1", 32_000, 12, paradigm="made up", licence="apache-2.0")
    device = "cpu"

    def embed(self, waveforms: np.ndarray, sample_rate: int) -> np.ndarray:
        parts = np.array_split(np.asarray(waveforms).astype(np.float64), 12, axis=1)
        energies = np.stack([np.sqrt((part**2).mean(axis=1)) for part in parts], axis=1)
        return (100 + energies).astype(np.float32)


def sha256sum(files: Mapping[str, bytes]) -> str:
    """What `sha256sum *` prints."""
    return "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))


def place(root: Path, files: Mapping[str, bytes], encoder: str = "org__short", task: str = "a_coat") -> Path:
    """Write the files of a submission to the folder that their hashes give."""
    folder = root / "results" / encoder / "1" / f"{task}-{hashlib.sha256(sha256sum(files).encode()).hexdigest()[:16]}"
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def written(values: Mapping[str, Any]) -> bytes:
    """The values of a result as its file, with the digest that belongs to them."""
    facts = {name: value for name, value in values.items() if name != "digest"}
    canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    return (json.dumps({**facts, "digest": digest}, indent=1) + "\n").encode()


def with_json(files: Mapping[str, bytes], model: Mapping[str, Any] | None = None, **changes: Any) -> dict[str, bytes]:
    """The same submission with other fields in its result, or in the card of its model."""
    values = json.loads(files["result.json"]) | changes
    values["model"] = values["model"] | dict(model or {})
    return {**files, "result.json": written(values)}


def read_samples(files: Mapping[str, bytes]) -> dict[str, Any]:
    """The columns of samples by name: ids as a list, all others float64 [n]."""
    header, *lines = csv.reader(io.StringIO(files["samples.csv"].decode()))
    columns = dict(zip(header, zip(*lines, strict=True), strict=True))
    return {name: list(texts) if name == "id" else np.array(texts, np.float64) for name, texts in columns.items()}


def with_samples(files: Mapping[str, bytes], **columns: Any) -> dict[str, bytes]:
    """The same submission with other columns of samples, which its result speaks of; None drops one."""
    table = {name: values for name, values in (read_samples(files) | columns).items() if values is not None}
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*(np.asarray(values).tolist() for values in table.values()), strict=True))
    return with_sample_bytes(files, stream.getvalue().encode())


def with_sample_bytes(files: Mapping[str, bytes], content: bytes) -> dict[str, bytes]:
    """The same submission with another file of samples, which its result speaks of."""
    digest = hashlib.sha256(content).hexdigest()
    return {**with_json(files, samples_sha256=digest), "samples.csv": content}


def read_embeddings(files: Mapping[str, bytes]) -> dict[str, np.ndarray]:
    """The tensors of the embeddings."""
    return load(files["embeddings.safetensors"])


def with_embeddings(files: Mapping[str, bytes], **tensors: np.ndarray | None) -> dict[str, bytes]:
    """The same submission with other tensors in its embeddings; None drops one."""
    changed = {name: tensor for name, tensor in {**read_embeddings(files), **tensors}.items() if tensor is not None}
    return {**files, "embeddings.safetensors": bytes(save(changed))}
