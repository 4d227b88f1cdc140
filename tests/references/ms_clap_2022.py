"""Embeddings of msclap's audio encoder of 2022 with seeded weights, for the comparison of `ms-clap-2022`.

In the environment that `ms_clap_2023.py` describes:

    python tests/references/ms_clap_2022.py

The encoder is called on the whole clip: the package's own `get_audio_embeddings` would first cut 5 s out of it at
random. Its configuration is the package's config_2022.yml, read from there.
"""

from importlib.metadata import version
from importlib.resources import files

import torch
import yaml
from msclap.models.clap import AudioEncoder
from seeded import save_fixture, seeded_clips, seeded_state, torchlibrosa_constants


def main() -> None:
    """Write the fixture."""
    config = yaml.safe_load(files("msclap").joinpath("configs/config_2022.yml").read_text())
    settings = [config[name] for name in ("sampling_rate", "window_size", "hop_size", "mel_bins", "fmin", "fmax")]
    rate, window, _, mels, low, high = settings
    encoder = AudioEncoder(config["audioenc_name"], config["out_emb"], config["d_proj"], *settings, 527).eval()
    about = {
        "prefix": "audio_encoder.base.", "sample_rate": rate, "n_fft": window, "mels": mels, "fmin": low, "fmax": high,
    }  # fmt: skip
    state = {f"audio_encoder.{name}": tensor for name, tensor in encoder.state_dict().items()}
    constants = torchlibrosa_constants(**about)
    for name, constant in constants.items():
        torch.testing.assert_close(state[name], torch.from_numpy(constant), rtol=0, atol=1e-6)
    shapes = {name: list(tensor.shape) for name, tensor in state.items() if name not in constants}
    seeded = {name: torch.from_numpy(array) for name, array in {**seeded_state(shapes), **constants}.items()}
    encoder.load_state_dict({name.removeprefix("audio_encoder."): tensor for name, tensor in seeded.items()})
    with torch.inference_mode():
        embeddings = encoder(torch.from_numpy(seeded_clips(rate)))[0]
    save_fixture("ms-clap-2022", f"msclap {version('msclap')}", rate, shapes, embeddings.numpy(), about)


if __name__ == "__main__":
    main()
