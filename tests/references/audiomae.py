"""Run timm's vision transformer with seeded weights in AudioMAE's checkpoint format on the seeded clips.

In an environment of its own (timm needs a torchvision that fits torch):

    pip install torch==2.13.0 torchvision==0.28.0 torchaudio timm==1.0.31 numpy scipy librosa safetensors
    python tests/references/audiomae.py

The model is the one that the card of ``gaunernst/vit_base_patch16_1024_128.audiomae_as2m`` makes, the front end its
recipe. The embedding is the mean of the normalised patches that begin within the clip: of 998 frames in patches of 16,
the first 63 columns.
"""

import numpy as np
import timm
import torch
import torchaudio
from seeded import save_fixture, seeded_clips, seeded_state
from timm.models.vision_transformer import VisionTransformer
from torchaudio.compliance import kaldi

RATE = 16_000
MEAN, STD = -4.2677393, 4.5689974


def main() -> None:
    """Write the fixture."""
    model = VisionTransformer(img_size=(1024, 128), in_chans=1, num_classes=0, global_pool="token").eval()
    shapes = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    state = {name: torch.from_numpy(array) for name, array in seeded_state(shapes).items()}
    model.load_state_dict(state, strict=True)
    embeddings = []
    for clip in seeded_clips(RATE):
        log_mel = kaldi.fbank(torch.from_numpy(clip)[None], htk_compat=True, window_type="hanning", num_mel_bins=128)
        columns = int(np.ceil(len(log_mel) / 16))
        padded = torch.nn.functional.pad(log_mel, (0, 0, 0, 1024 - len(log_mel)))
        with torch.no_grad():
            tokens = model.forward_features(((padded - MEAN) / (2 * STD))[None, None])[0]
        embeddings.append(tokens[1:].reshape(64, 8, 768)[:columns].mean(dim=(0, 1)).numpy())
    versions = f"timm {timm.__version__}, torchaudio {torchaudio.__version__.split('+')[0]}"
    save_fixture("audiomae", versions, RATE, shapes, np.stack(embeddings))


if __name__ == "__main__":
    main()
