"""A recipe as another package could bring it: pairs of clips of different length, and a list of clips a row."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import numpy as np
import pyarrow.parquet as pq
from datasets import Audio, Features, List, Value

from audio_compositionality.dataset_builder import recipes
from audio_compositionality.dataset_builder.data import DatasetError, Rendering
from audio_compositionality.dataset_builder.manifest import FINGERPRINT_KEY, MANIFEST_NAME
from audio_compositionality.dataset_builder.recipes.base import Recipe
from audio_compositionality.support.spec import Spec


def as_others_have_it(folder):
    """Make data that somebody else wrote of a built folder: no manifest, no word of our fingerprint in shards."""
    (folder / MANIFEST_NAME).unlink(missing_ok=True)
    for path in folder.glob("*/*.parquet"):
        table = pq.read_table(path)
        kept = {name: value for name, value in table.schema.metadata.items() if name != FINGERPRINT_KEY}
        pq.write_table(table.replace_schema_metadata(kept), path)


class ToySettings(Spec):
    count: int = 20
    sample_rate: int = 8_000


class RenderedToys(Rendering):
    def __init__(self, settings):
        self.settings = settings
        self.sample_rate = settings.sample_rate

    @cached_property
    def rows(self):
        splits = ["train"] * (self.settings.count - 3) + ["test"] * 3
        return [
            {"id": f"toy-{index}", "split": split, "text": f"toy {index}", "parts": index % 3}
            for index, split in enumerate(splits)
        ]

    def clips(self, index):
        lengths = (100 + index, 50, *[30 + part for part in range(index % 3)])
        return [np.arange(1, length + 1, dtype=np.int16) + index for length in lengths]


class Toys(Recipe):
    name = "toys"
    version = 3
    splits = ("train", "test")
    one_length = False
    presets = {"mini": ToySettings(), "tiny": ToySettings(count=5)}  # noqa: RUF012

    def features(self, settings):
        audio = Audio(sampling_rate=settings.sample_rate)
        return Features(
            {
                "id": Value("string"),
                "long": audio,
                "short": audio,
                "more": List(audio),
                "text": Value("string"),
                "parts": Value("int32"),
            }
        )

    def clip_names(self, row):
        return ("long", "short", *[f"more/{number}" for number in range(row["parts"])])

    def render(self, settings):
        return RenderedToys(settings)

    def check_row(self, row):
        if not row["text"].startswith("toy"):
            raise DatasetError(f"row {row['id']}: the text is {row['text']!r}; it begins with toy")

    def describe(self, settings):
        return f"{settings.count} toys for $5 at {settings.sample_rate} Hz."


@contextmanager
def registered(recipe) -> Iterator[None]:
    """A recipe that is known for a while."""
    before = dict(recipes._registry._added)
    recipes.register_recipe(recipe)
    try:
        yield
    finally:
        recipes._registry._added = before
