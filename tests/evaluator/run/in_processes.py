"""What each of several processes runs in `test_processes.py`: from Python clips, then questions; then the command line.

torchrun --nproc_per_node 2 --module tests.evaluator.run.in_processes DATA FOLDER ARGUMENTS
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from audio_compositionality.cli.main import main
from audio_compositionality.encoders.base import ModelCard
from audio_compositionality.encoders.model_encoder import Hidden, ModelEncoder
from audio_compositionality.evaluator.run.evaluate import evaluate, evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.run.processes import join_processes

from .toys import Likely, Orders, Questions

QUESTIONS = 40


class Network(ModelEncoder[torch.Tensor]):
    """Two layers with random weights on the band energies of a clip."""

    def __init__(self) -> None:
        super().__init__(ModelCard("network", "v1", 32_000, 32), num_layers=1, device=torch.device("cpu"))
        random = np.random.default_rng(0)
        self._layers = [torch.from_numpy(random.normal(size=size).astype(np.float32)) for size in ((100, 64), (64, 32))]

    def _extract_features(self, clips):
        blocks = clips[:, : clips.shape[1] // 100 * 100].reshape(len(clips), 100, -1)
        return torch.from_numpy(np.log1p((blocks**2).mean(axis=2)).astype(np.float32))

    def _encode(self, features):
        hidden = torch.nn.functional.gelu(features @ self._layers[0]) @ self._layers[1]
        return Hidden(hidden[:, None], frame_seconds=1.0)


def run(data: str, folder: Path) -> tuple[list[str], dict[str, int]]:
    """The results of a network; and how many questions were asked here by each scoring."""
    options = RunOptions(out=folder, cache=folder / "store", device="cpu")
    results = evaluate(Network(), data, options=options)
    asked = {}
    for scoring in ("generate", "letters"):
        model, place = Likely(), folder / scoring
        how = options.changed(out=place / "out", cache=place / "store", settings={"scoring": scoring})
        results += evaluate_models([model], Questions(asked=QUESTIONS), [Orders()], how)
        asked[scoring] = sum(count for by, count in model.calls if by == scoring)
    return [result.dumps() for result in results], asked


if __name__ == "__main__":
    torch.set_num_threads(1)
    data, folder = sys.argv[1], Path(sys.argv[2])
    processes = join_processes()
    returned = [processes.count, processes.rank, *run(data, folder)]
    (folder / f"returned-{processes.rank}.json").write_text(json.dumps(returned))
    sys.exit(main(sys.argv[3:]))
