"""When is it heard, by frames: do an encoder's frames say when one sound among several is heard?"""

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
        question="Do an encoder's frames say when one sound among several is heard?",
        benchmark="extended",
        recipe="when",
        needs=FRAME_ENCODER,
        samples="clips",
        measures=METRIC.measures,
        ranks_by="iou",
        trusted={"iou": "iou_prior"},
        warning=(
            "A probe learns labels from other clips, of sounds that it is not tested on where each label has several "
            "(column fold). A log-mel spectrogram is high too: compare with it, with the untrained twin, and with "
            "label-blind, who hears when sounds are heard and not which is which."
        ),
        citation=METRIC.citation,
        captions={"audio": "the clip with the sound that is looked for"},
        on_request=True,
        controls=("shuffled-audio:",),
        # Frames of energy alone say when sounds are heard, and not which: that is the trivial baseline of the measure
        # itself.
        trivial=BEST_CONSTANT,
        described_by=("log-mel-statistics", "modulation-statistics"),  # the baselines that have frames
        is_level_matched=True,
    )
)
