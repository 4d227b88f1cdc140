"""The reference's embeddings for `beats-iter3`: BEATs of speechbrain with seeded weights in the published format.

In an environment of its own:

    pip install torch==2.13.0 torchaudio speechbrain==1.1.2 numpy scipy librosa safetensors
    python tests/references/beats_iter3.py

The published checkpoint holds the table of position biases once for each block, though all share it: only that of the
first block is seeded, the copies are made here.

The reference is run in double precision: in single precision its filter bank fills the bands around a pure tone with
rounding errors, which move the embedding by 1e-4 and differ between machines.
"""

import tempfile
from pathlib import Path

import speechbrain
import torch
import torchaudio
from seeded import save_fixture, seeded_clips, seeded_state
from speechbrain.lobes.models.beats import BEATs

SAMPLE_RATE = 16_000
CONFIGURATION = {
    "input_patch_size": 16,
    "embed_dim": 512,
    "conv_bias": False,
    "encoder_layers": 12,
    "encoder_embed_dim": 768,
    "encoder_ffn_embed_dim": 3072,
    "encoder_attention_heads": 12,
    "activation_fn": "gelu",
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "encoder_layerdrop": 0.05,
    "dropout_input": 0.0,
    "layer_norm_first": False,
    "deep_norm": True,
    "conv_pos": 128,
    "conv_pos_groups": 16,
    "relative_position_embedding": True,
    "num_buckets": 320,
    "max_distance": 800,
    "gru_rel_pos": True,
    "layer_wise_gradient_decay_ratio": 0.6,
    "finetuned_model": False,
}
"""As stored in BEATs_iter3_plus_AS2M.pt."""

TABLE = "encoder.layers.{}.self_attn.relative_attention_bias.weight"


def main() -> None:
    """Write the fixture."""
    shapes = published_shapes()
    state = {name: torch.from_numpy(array) for name, array in seeded_state(shapes).items()}
    tables = {TABLE.format(block): state[TABLE.format(0)] for block in range(12)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "BEATs_iter3_plus_AS2M.pt"
        torch.save({"cfg": CONFIGURATION, "model": {**state, **tables}}, path)
        # Loads strictly.
        model = BEATs(ckp_path=str(path)).double()
    clips = torch.from_numpy(seeded_clips(SAMPLE_RATE)).double()
    patches = model(clips, torch.ones(len(clips)))[0]
    versions = f"speechbrain {speechbrain.__version__}, torchaudio {torchaudio.__version__.split('+')[0]}"
    save_fixture("beats-iter3", versions, SAMPLE_RATE, shapes, patches.mean(dim=1).numpy())


def published_shapes() -> dict[str, list[int]]:
    """Shapes by the names of the published checkpoint, but for the copies of the table."""
    shapes = {
        "patch_embedding.weight": [512, 1, 16, 16],
        "layer_norm.weight": [512],
        "layer_norm.bias": [512],
        "post_extract_proj.weight": [768, 512],
        "post_extract_proj.bias": [768],
        "encoder.pos_conv.0.bias": [768],
        "encoder.pos_conv.0.weight_g": [1, 1, 128],
        "encoder.pos_conv.0.weight_v": [768, 48, 128],
        "encoder.layer_norm.weight": [768],
        "encoder.layer_norm.bias": [768],
        TABLE.format(0): [320, 12],
    }
    linear = {f"self_attn.{part}_proj": [768, 768] for part in ("q", "k", "v", "out")}
    linear |= {"self_attn.grep_linear": [8, 64], "fc1": [3072, 768], "fc2": [768, 3072]}
    for block in range(12):
        prefix = f"encoder.layers.{block}."
        for name, shape in linear.items():
            shapes |= {f"{prefix}{name}.weight": shape, f"{prefix}{name}.bias": shape[:1]}
        for name in ("self_attn_layer_norm", "final_layer_norm"):
            shapes |= {f"{prefix}{name}.weight": [768], f"{prefix}{name}.bias": [768]}
        shapes[f"{prefix}self_attn.grep_a"] = [1, 12, 1, 1]
    return shapes


if __name__ == "__main__":
    main()
