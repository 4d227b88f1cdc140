"""Basic Pitch (Bittner et al., 2022, arXiv 2203.09893), trained to write down the notes of polyphonic music.

    pip install --no-deps basic-pitch==0.4.0 && pip install onnxruntime onnx

Package and weights: Apache-2.0. Nothing of the package is imported. An embedding is the mean over frames of the hidden
layer before the notes. Windows of two seconds overlap, and the ends of each are cut, as in the package.
"""

import hashlib
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

WINDOW, CUT, HOP = 43_844, 15, 256
"""Samples at 22.05 kHz in a window; frames cut at both of its ends; samples between frames."""


class BasicPitch:
    """32 channels of 88 keys of a piano."""

    id, paradigm, licence, sample_rate = "basic-pitch", "transcription of music", "Apache-2.0", 22_050

    def __init__(self) -> None:
        import onnx
        from onnxruntime import InferenceSession

        model = onnx.load(distribution("basic-pitch").locate_file("basic_pitch/saved_models/icassp_2022/nmp.onnx"))
        self._change(model)
        # The hidden layer is the input of the convolution that ends in the notes.
        nodes = {output: node for node in model.graph.node for output in node.output}
        last = nodes[nodes[nodes["StatefulPartitionedCall:1"].input[0]].input[0]]
        model.graph.output.append(onnx.ValueInfoProto(name=last.input[0]))
        self.hidden, graph = last.input[0], model.SerializeToString()
        self.revision = hashlib.sha256(graph + Path(__file__).read_bytes()).hexdigest()
        self.network = InferenceSession(graph, providers=["CPUExecutionProvider"])

    def _change(self, model: object) -> None:
        """Leave the weights as they are."""

    def embed(self, waveforms: np.ndarray, sample_rate: int) -> np.ndarray:
        """Embed clips [n, samples] as [n, 2816]."""
        return np.stack([self._embed(clip) for clip in waveforms])

    def _embed(self, clip: np.ndarray) -> np.ndarray:
        step = WINDOW - 2 * CUT * HOP
        padded = np.pad(clip, (CUT * HOP, -len(clip) % step + WINDOW - CUT * HOP)).astype(np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::step, :, None]
        (states,) = self.network.run([self.hidden], {self.network.get_inputs()[0].name: windows})
        frames = np.concatenate(states[:, :, CUT:-CUT].swapaxes(1, 2))
        return frames[: max(1, len(clip) * 86 // 22_050)].mean(axis=0).flatten()

    def untrained(self) -> "UntrainedBasicPitch":
        """Its twin."""
        return UntrainedBasicPitch()


class UntrainedBasicPitch(BasicPitch):
    """The same graph with normal variates of the mean and deviation of each kernel and bias: its untrained twin."""

    id, paradigm, licence = "untrained:basic-pitch", "untrained", None
    untrained = None

    def _change(self, model: object) -> None:
        from onnx.numpy_helper import from_array, to_array

        rng, tensors = np.random.default_rng(0), {tensor.name: tensor for tensor in model.graph.initializer}
        # The kernels of the constant-Q transform, 256 samples long, are not trained.
        kernels = [node.input[1:] for node in model.graph.node if node.op_type == "Conv"]
        for name in (name for names in kernels if 256 not in tensors[names[0]].dims for name in names):
            values = to_array(tensors[name])
            fresh = rng.normal(values.mean(), values.std(), values.shape).astype(np.float32)
            tensors[name].CopyFrom(from_array(fresh, name))
