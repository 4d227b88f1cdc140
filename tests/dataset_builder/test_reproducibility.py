"""Guards reproducibility: the figures here are our own output, frozen.

They say nothing about what is right. A failure means that a change altered the published samples: either it must
not, or GENERATOR_VERSION has to rise and these figures with it.
"""

import hashlib

from audio_compositionality.dataset_builder import RenderedBenchmark, preset_config
from audio_compositionality.dataset_builder.synthesis.config import GENERATOR_VERSION


def test_the_mini_preset_keeps_its_rows_and_samples():
    benchmark = RenderedBenchmark("mini", preset_config("mini"))
    digest = hashlib.sha256()
    for task in benchmark.tasks:
        digest.update(repr([(row["metadata"], row["onsets"]) for row in benchmark.rows(task)]).encode())
        for index in range(0, benchmark.num_rows(task), 16):
            digest.update(benchmark.clips(task, index).tobytes())
    assert GENERATOR_VERSION == 1
    assert benchmark.fingerprint == "ed8f3e8f6bfa21d2766ca3f5546b489b070250c9f0f600342c9518436f3f76fd"
    assert digest.hexdigest() == "db092a7b059350753beebd93dafd8fa1a7c9c77ea900ee7e762d9cb14562bfd5"
