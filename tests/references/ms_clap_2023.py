"""Embeddings of msclap's audio encoder with seeded weights, for the comparison of `ms-clap-2023`.

In an environment of its own, in which the package's pinned versions need not be followed:

    pip install torch torchlibrosa transformers librosa scipy safetensors huggingface_hub pyyaml
    pip install --no-deps msclap==1.3.4
    pip install torchaudio                      # imported by the package, not used here
    python tests/references/ms_clap_2023.py

The encoder is called on the whole clip: the package's own `get_audio_embeddings` would first cut 7 s out of it at
random. The filters are those of the published configuration (44.1 kHz, 50-8000 Hz), not the ones that the package
builds before it loads a checkpoint, so that the comparison notices filters that are not the stored ones.
"""

from importlib.metadata import version

import numpy as np
import torch
from msclap.models.clap import AudioEncoder
from seeded import save_fixture, seeded_clips, seeded_state, torchlibrosa_constants

RATE = 44_100
CONSTANTS = {
    "prefix": "audio_encoder.base.htsat.", "sample_rate": RATE, "n_fft": 1024, "mels": 64, "fmin": 50, "fmax": 8000,
}  # fmt: skip
COMPUTED = ("relative_position_index", "attn_mask")
"""Buffers of the checkpoint that follow from the architecture."""


def main() -> None:
    encoder = AudioEncoder("HTSAT", 768, 1024, RATE, 1024, 320, 64, 50, 8000, 527).eval()
    state = {f"audio_encoder.{name}": tensor for name, tensor in encoder.state_dict().items()}
    constants = torchlibrosa_constants(**CONSTANTS)
    shapes = {
        name: list(tensor.shape)
        for name, tensor in state.items()
        if name not in constants and not name.endswith(COMPUTED)
    }
    seeded = {name: torch.from_numpy(np.asarray(a)) for name, a in {**seeded_state(shapes), **constants}.items()}
    encoder.load_state_dict(
        {name.removeprefix("audio_encoder."): tensor for name, tensor in {**state, **seeded}.items()}
    )
    with torch.inference_mode():
        embeddings = torch.cat([encoder(torch.from_numpy(clip[None]))[0] for clip in seeded_clips(RATE)])
    save_fixture("ms-clap-2023", f"msclap {version('msclap')}", RATE, shapes, embeddings.numpy(), CONSTANTS)


if __name__ == "__main__":
    main()
