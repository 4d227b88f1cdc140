"""The dataset card: README.md with the YAML that `datasets` and the Hub read, from the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from string import Template

import yaml
from datasets import Features

from .manifest import Shard
from .synthesis.config import BenchmarkConfig

_ONSET = {
    "random": "drawn uniformly within the first period",
    "locked": "always the first sample: a named variant that makes the waveform a function of the metadata",
}
_LEVEL = {
    "shared": (
        "The four clips of a quadruple share one gain, and a scene has one of its own, below 1 only where a peak would "
        "pass full scale."
    ),
    "clip": "Each clip has its own gain, below 1 only where its peak would pass full scale: a named variant.",
}
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def dataset_card(
    config: BenchmarkConfig,
    audio_format: str,
    features: Mapping[str, Features],
    splits: Mapping[str, Mapping[str, list[str]]],
    shards: Mapping[str, Shard],
) -> str:
    """The card of a built folder.

    Args:
        config: what was built.
        audio_format: ``flac`` or ``wav``.
        features: the columns of each task.
        splits: task -> split -> names of its shards.
        shards: the finished shards by name.
    """
    rows = sum(shard.rows for shard in shards.values())
    header = {
        "license": "cc-by-4.0",
        "pretty_name": "Audio compositionality",
        "size_categories": [next((label for limit, label in _SIZES if rows < limit), "n>1M")],
        "task_categories": ["feature-extraction", "audio-classification"],
        "tags": ["audio", "benchmark", "compositionality", "synthetic", "embeddings"],
        "configs": [
            {
                "config_name": task,
                **({"default": True} if task == "a_coat" else {}),
                "data_files": [{"split": split, "path": f"{task}/{split}-*.parquet"} for split in names],
            }
            for task, names in splits.items()
        ],
        "dataset_info": [_info(task, features[task], names, shards) for task, names in splits.items()],
    }
    labels = list(config.labels.values())
    classes = "\n".join(
        f"| {number} | {' | '.join(_cell(label) for label in row)} |"
        for number, row in enumerate(zip(*labels, strict=True))
    )
    body = Template(files(__package__).joinpath("card.md").read_text("utf-8")).substitute(
        {name: f"{value:,}" if isinstance(value, int) else value for name, value in config.as_dict().items()},
        seed=config.seed,
        sample_rate=config.sample_rate,
        duration=f"{config.duration:g}",
        audio_format=audio_format.upper(),
        onset=_ONSET[config.onset],
        level=_LEVEL[config.level],
        classes=classes,
        fingerprint=config.fingerprint,
    )
    return f"---\n{yaml.safe_dump(header, sort_keys=False, allow_unicode=True)}---\n\n{body}"


def _info(
    task: str, features: Features, splits: Mapping[str, list[str]], shards: Mapping[str, Shard]
) -> dict[str, object]:
    sizes = [
        {
            "name": split,
            "num_bytes": sum(shards[name].bytes for name in names),
            "num_examples": sum(shards[name].rows for name in names),
        }
        for split, names in splits.items()
    ]
    total = sum(shards[name].bytes for names in splits.values() for name in names)
    return {
        "config_name": task,
        "features": features._to_yaml_list(),
        "splits": sizes,
        "download_size": total,
        "dataset_size": total,
    }


def _cell(text: str) -> str:
    """A label as the text of a Markdown table's cell: voice names come from anybody's bank."""
    return "".join(f"\\{char}" if char in r"\`*_[]<>|&" else char for char in text)
