"""The reference's embeddings for `panns-cnn14`: Cnn14 of panns-inference with seeded weights.

In an environment of its own (the package fetches AudioSet's list of classes when it is imported):

    pip install torch panns-inference==0.1.1 torchlibrosa==0.1.0 librosa matplotlib scipy safetensors
    python tests/references/panns_cnn14.py
"""

import torch
from panns_inference.models import Cnn14
from seeded import save_fixture, seeded_clips, seeded_state, torchlibrosa_constants

SAMPLE_RATE = 32_000
CONSTANTS = {"prefix": "", "sample_rate": SAMPLE_RATE, "n_fft": 1024, "mels": 64, "fmin": 50, "fmax": 14_000}


def main() -> None:
    """Write the fixture."""
    model = Cnn14(
        sample_rate=SAMPLE_RATE, window_size=1024, hop_size=320, mel_bins=64, fmin=50, fmax=14_000, classes_num=527
    )
    constants = torchlibrosa_constants(**CONSTANTS)
    for name, constant in constants.items():
        torch.testing.assert_close(model.state_dict()[name], torch.from_numpy(constant), rtol=0, atol=1e-6)
    shapes = {name: list(tensor.shape) for name, tensor in model.state_dict().items() if name not in constants}
    state = {name: torch.from_numpy(array) for name, array in {**seeded_state(shapes), **constants}.items()}
    model.load_state_dict(state, strict=True)
    with torch.no_grad():
        embeddings = model.eval()(torch.from_numpy(seeded_clips(SAMPLE_RATE)))["embedding"].numpy()
    save_fixture("panns-cnn14", "panns-inference 0.1.1", SAMPLE_RATE, shapes, embeddings, CONSTANTS)


if __name__ == "__main__":
    main()
