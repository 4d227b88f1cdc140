"""The reference's embeddings for `passt-s`: PaSST of hear21passt, mode "embed_only", with seeded weights.

In an environment of its own:

    pip install torch torchaudio librosa scipy safetensors
    pip install --no-deps hear21passt==0.0.26
    python tests/references/passt_s.py
"""

import sys
from types import ModuleType

import torch
from seeded import save_fixture, seeded_clips, seeded_state

# hear21passt takes from timm the function that downloads weights, and nothing else.
for name in ("timm", "timm.models", "timm.models._hub"):
    sys.modules[name] = ModuleType(name)
sys.modules["timm.models._hub"].download_cached_file = None

from hear21passt.models.passt import get_model  # noqa: E402
from hear21passt.models.preprocess import AugmentMelSTFT  # noqa: E402
from hear21passt.wrapper import PasstBasicWrapper  # noqa: E402

SAMPLE_RATE = 32_000


def main() -> None:
    """Write the fixture."""
    # The arguments of hear21passt.base.get_basic_model, which would download the weights.
    mel = AugmentMelSTFT(
        n_mels=128, sr=SAMPLE_RATE, win_length=800, hopsize=320, n_fft=1024, freqm=48, timem=192, htk=False, fmin=0.0,
        fmax=None, norm=1, fmin_aug_range=10, fmax_aug_range=2000,
    )  # fmt: skip
    net = get_model(arch="passt_s_swa_p16_128_ap476", pretrained=False)
    shapes = {name: list(tensor.shape) for name, tensor in net.state_dict().items()}
    net.load_state_dict({name: torch.from_numpy(array) for name, array in seeded_state(shapes).items()}, strict=True)
    model = PasstBasicWrapper(mel=mel, net=net, mode="embed_only").eval()
    with torch.no_grad():
        embeddings = model.get_scene_embeddings(torch.from_numpy(seeded_clips(SAMPLE_RATE))).numpy()
    save_fixture("passt-s", "hear21passt 0.0.26", SAMPLE_RATE, shapes, embeddings)


if __name__ == "__main__":
    main()
