"""When, by frames: do an encoder's frames show when one sound among several occurs?"""

from __future__ import annotations

from audio_compositionality.encoders.base import FRAME_ENCODER

from .base import BEST_CONSTANT, TaskInfo
from .metric_files import describe_metric
from .shapes.moments import MomentFrameTask

METRIC = describe_metric("when")


TASK = MomentFrameTask(
    TaskInfo(
        name="when_frames",
        version=METRIC.version,
        title="When, by frames",
        question="Do an encoder's frames show when one sound among several occurs?",
        benchmark="extended",
        recipe="when",
        needs=FRAME_ENCODER,
        samples="clips",
        measures=METRIC.measures,
        ranks_by="iou",
        trusted={"iou": "iou_prior"},
        warning=(
            "A probe learns labels from other clips; if a label has several sounds, the tested ones are not among the "
            "training sounds (column fold). A log-mel spectrogram scores high too: compare with it, with the untrained "
            "twin, and with label-blind, which knows when sounds occur but not which is which."
        ),
        citation=METRIC.citation,
        captions={"audio": "the clip with the sound in question"},
        on_request=True,
        controls=("shuffled-audio:",),
        # Frames of energy alone show when sounds occur, but not which sound: the measure's own trivial baseline.
        trivial=BEST_CONSTANT,
        described_by=("log-mel-statistics", "modulation-statistics"),  # the baselines with frames
        is_level_matched=True,
    )
)
