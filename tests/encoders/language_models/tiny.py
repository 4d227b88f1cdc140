"""Tiny models that hear and answer, of random weights, written as transformers writes them; nothing is fetched."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

CORPUS = """Which of these is heard longest in total? How many different kinds of sound can be heard?
While the dog is audible, is any other kind of sound audible? In which interval do two different sounds first occur?
A. dog B. rain C. siren D. car horn E. church bell. Yes No one two three four. Answer with one letter only.
You are a helpful assistant. system user assistant Audio 1: """

QWEN_AUDIO = ("<|audio_bos|>", "<|AUDIO|>", "<|audio_eos|>")
"""What stands around a clip, and for it, in the chats of Qwen2-Audio and Qwen2.5-Omni."""

OMNI_TEMPLATE = (
    "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% for part in message['content'] %}"
    "{% if part['type'] == 'audio' %}AUDIO{% else %}{{ part['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""A chat template in the manner of Qwen's, AUDIO for what stands for a clip."""

FLAMINGO_TEMPLATE = OMNI_TEMPLATE.replace(
    "{% for part in message['content'] %}",
    "{% for part in message['content'] | sort(attribute='type') %}",
).replace("AUDIO", "<sound>")
"""As that of Audio Flamingo 3 a clip stands before the words, wherever a conversation has it."""


@dataclass(frozen=True)
class Sound:
    """A clip as models that answer are given it."""

    waveform: np.ndarray
    sample_rate: int


def sounds(lengths: tuple[float, ...] = (0.7, 3.0, 1.6), sample_rate: int = 16_000) -> list[Sound]:
    """Clips of these lengths in seconds, all different; of 16 bits, so that every way to a file keeps them."""
    clips = []
    for place, seconds in enumerate(lengths):
        t = np.arange(round(seconds * sample_rate)) / sample_rate
        noise = np.random.default_rng(place).normal(0, 0.05, t.size)
        clip = noise + 0.3 * np.sin(2 * np.pi * 300 * (place + 1) * t)
        clips.append(Sound((np.round(clip * 32_768) / 32_768).astype(np.float32), sample_rate))
    return clips


PROMPTS = [
    "Which of these is heard longest in total?\nA. dog\nB. rain\nC. siren\nAnswer with one letter only.",
    "Is any other sound heard?\nA. Yes\nB. No\nAnswer with one letter only.",
    "How many different kinds of sound can be heard?\nA. one\nB. two\nC. three\nD. four\nAnswer with one letter only.",
]
"""As many as `sounds` gives."""

OPTIONS = [["dog", "rain", "siren"], ["Yes", "No"], ["one", "two", "three", "four"]]
"""Of each of the prompts."""


def tokenizer(specials: Mapping[str, str], chat_template: str | None = None, more: tuple[str, ...] = ()) -> Any:
    """A byte-level tokenizer trained in place.

    Args:
        specials: special tokens by the attribute that the tokenizer gives them.
        chat_template: its template.
        more: special tokens without an attribute.
    """
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *specials.values(), *more]
    trainer = trainers.BpeTrainer(
        vocab_size=256 + 60 + len(names),
        special_tokens=names,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(CORPUS.splitlines(), trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        pad_token="<|endoftext|>",
        eos_token="<|im_end|>",
        extra_special_tokens=dict(specials),
        chat_template=chat_template,
    )


def text_config(words: Any, **more: Any) -> dict[str, Any]:
    """Sizes of a tiny text model for a tokenizer."""
    return {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 48, "vocab_size": len(words), "max_position_embeddings": 4096,
        "bos_token_id": None, "eos_token_id": words.eos_token_id, "pad_token_id": words.pad_token_id, **more,
    }  # fmt: skip


WINDOW = 6
"""Seconds that a front end fills up; published ones have 30, which takes five times as long."""

WHISPER = {
    "d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 48, "num_mel_bins": 128,
    "max_source_positions": 50 * WINDOW,
}  # fmt: skip
"""A tiny audio encoder behind a front end of 128 bands."""


def strengthened(model: Any, words: float = 1.0) -> Any:
    """A model whose answers depend on what it hears: all weights random, none near zero; `words` is those of tokens."""
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        for name, weight in model.named_parameters():
            if weight.ndim > 1:
                weight.normal_(0, 1.2 / weight[0].numel() ** 0.5 if "embed" not in name else words)
            elif "norm" in name and name.endswith("weight"):
                weight.uniform_(0.5, 1.5)
            else:
                weight.normal_(0, 0.1)
    return model.eval()


def extractor(seconds: int = WINDOW) -> Any:
    return transformers.WhisperFeatureExtractor(feature_size=128, chunk_length=seconds, return_attention_mask=True)


def save_qwen2_audio(folder: Path) -> None:
    names = dict(zip(("audio_bos_token", "audio_token", "audio_eos_token"), QWEN_AUDIO, strict=True))
    words = tokenizer(names)
    config = transformers.Qwen2AudioConfig(
        audio_config={**WHISPER, "model_type": "qwen2_audio_encoder"},
        text_config=text_config(words, model_type="qwen2"),
        audio_token_index=words.audio_token_id,
    )
    strengthened(transformers.Qwen2AudioForConditionalGeneration(config)).save_pretrained(folder)
    transformers.Qwen2AudioProcessor(extractor(), words).save_pretrained(folder)


def save_flamingo(folder: Path, music: bool = False) -> None:
    prefix = "MusicFlamingo" if music else "AudioFlamingo3"
    more = ("<|sound_bos|>", "<|sound_eos|>") if music else ()
    words = tokenizer({"audio_token": "<sound>"}, more=more)
    tower = {**WHISPER, "num_attention_heads": 4, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    ids = {"audio_token_id": words.audio_token_id}
    if music:
        bos, eos = words.convert_tokens_to_ids(list(more))
        ids |= {"audio_bos_token_id": bos, "audio_eos_token_id": eos}
    config = getattr(transformers, f"{prefix}Config")(
        audio_config={**tower, "model_type": "audioflamingo3_encoder"},
        text_config=text_config(words, model_type="qwen2"),
        **ids,
    )
    strengthened(getattr(transformers, f"{prefix}ForConditionalGeneration")(config)).save_pretrained(folder)
    processor = getattr(transformers, f"{prefix}Processor")(
        extractor(), words, chat_template=FLAMINGO_TEMPLATE, max_audio_len=60
    )
    processor.save_pretrained(folder)


def omni25_model(words: Any) -> Any:
    vision = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 32,
              "fullatt_block_indexes": [0], "patch_size": 2, "window_size": 8}  # fmt: skip
    rope = {"rope_theta": 10_000.0, "rope_type": "default", "mrope_section": [2, 1, 1]}
    config = transformers.Qwen2_5OmniThinkerConfig(
        audio_config={**WHISPER, "output_dim": 32, "n_window": 50},
        vision_config=vision,
        text_config=text_config(words, rope_parameters=rope),
        audio_token_index=words.audio_token_id,
        audio_token_id=words.audio_token_id,
        image_token_index=len(words) - 1,
        video_token_index=len(words) - 2,
        vision_start_token_id=len(words) - 3,
    )
    return strengthened(transformers.Qwen2_5OmniThinkerForConditionalGeneration(config))


def omni_tokenizer() -> Any:
    names = dict(zip(("audio_bos_token", "audio_token", "audio_eos_token"), QWEN_AUDIO, strict=True))
    return tokenizer(names, OMNI_TEMPLATE.replace("AUDIO", "".join(QWEN_AUDIO)))


def save_omni25(folder: Path) -> None:
    words = omni_tokenizer()
    omni25_model(words).save_pretrained(folder)
    words.save_pretrained(folder)
    extractor(60).save_pretrained(folder)


def save_omni3(folder: Path) -> None:
    words = omni_tokenizer()
    rope = {"rope_theta": 10_000.0, "rope_type": "default", "mrope_section": [2, 1, 1], "mrope_interleaved": True}
    config = transformers.Qwen3OmniMoeThinkerConfig(
        audio_config={**WHISPER, "output_dim": 32, "n_window": 50, "n_window_infer": 400, "downsample_hidden_size": 16},
        vision_config={"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 32,
                       "patch_size": 2, "deepstack_visual_indexes": [0], "num_position_embeddings": 16},
        text_config=text_config(words, rope_parameters=rope, head_dim=8, num_experts=4, num_experts_per_tok=2,
                                moe_intermediate_size=16),
        audio_token_id=words.audio_token_id,
        image_token_id=len(words) - 1,
        video_token_id=len(words) - 2,
        vision_start_token_id=len(words) - 3,
    )  # fmt: skip
    strengthened(transformers.Qwen3OmniMoeThinkerForConditionalGeneration(config)).save_pretrained(folder)
    words.save_pretrained(folder)
    extractor(60).save_pretrained(folder)


def save_voxtral(folder: Path) -> None:
    """Needs mistral-common, whose vocabulary is cut to its first tokens."""
    import mistral_common
    from mistral_common.tokens.tokenizers.base import SpecialTokens
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    named = {one["rank"]: one["token_str"] for one in Tekkenizer.DEPRECATED_SPECIAL_TOKENS}
    named |= {24: SpecialTokens.audio.value, 25: SpecialTokens.begin_audio.value, 34: SpecialTokens.transcribe.value}
    count, specials = 600, 40
    content = json.loads((Path(mistral_common.__file__).parent / "data" / "tekken_240911.json").read_text("utf-8"))
    content = {
        "config": {**content["config"], "version": "v7", "num_vocab_tokens": count,
                   "default_vocab_size": count + specials, "default_num_special_tokens": specials},
        "vocab": content["vocab"][:count],
        "special_tokens": [
            {"rank": rank, "token_str": named.get(rank, f"<SPECIAL_{rank}>"), "is_control": True}
            for rank in range(specials)
        ],
        "audio": {"sampling_rate": 16_000, "frame_rate": 12.5, "chunk_length_s": 30.0,
                  "audio_encoding_config": {"num_mel_bins": 128, "hop_length": 160, "window_size": 400}},
    }  # fmt: skip
    folder.mkdir(parents=True)
    (folder / "tekken.json").write_text(json.dumps(content), "utf-8")
    text = {
        "model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 8,
        "num_key_value_heads": 2, "intermediate_size": 48, "vocab_size": count + specials, "bos_token_id": 1,
        "eos_token_id": 2, "pad_token_id": 11, "max_position_embeddings": 4096,
    }  # fmt: skip
    sizes = {"num_attention_heads": 4, "hidden_size": 32, "intermediate_size": 128, "num_hidden_layers": 2}
    config = transformers.VoxtralConfig(
        audio_config={**sizes, "model_type": "voxtral_encoder", "num_mel_bins": 128, "max_source_positions": 1500},
        text_config=text,
        audio_token_id=24,
    )
    strengthened(transformers.VoxtralForConditionalGeneration(config)).save_pretrained(folder)
    transformers.WhisperFeatureExtractor(feature_size=128).save_pretrained(folder)


def save_gemma4(folder: Path) -> None:
    names = {"boa_token": "<boa>", "audio_token": "<audio>", "eoa_token": "<eoa>"}
    words = tokenizer(names, OMNI_TEMPLATE.replace("AUDIO", "<audio>"))
    begin, sound, end = words.convert_tokens_to_ids(list(names.values()))
    text = text_config(
        words, head_dim=8, global_head_dim=16, num_hidden_layers=4, sliding_window=24, hidden_size_per_layer_input=8,
        vocab_size_per_layer_input=len(words), num_kv_shared_layers=2, final_logit_softcapping=30.0,
        layer_types=["sliding_attention", "full_attention"] * 2,
    )  # fmt: skip
    config = transformers.Gemma4Config(
        audio_config={"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "output_proj_dims": 24,
                      "subsampling_conv_channels": [128, 4]},
        vision_config={"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
                       "num_key_value_heads": 2, "head_dim": 8, "position_embedding_size": 16},
        text_config=text,
        audio_token_id=sound, boa_token_id=begin, eoa_token_id=end, eoa_token_index=end,
        image_token_id=len(words) - 1, video_token_id=len(words) - 2, boi_token_id=len(words) - 3,
        eoi_token_id=len(words) - 4,
    )  # fmt: skip
    strengthened(transformers.Gemma4ForConditionalGeneration(config), words=0.3).save_pretrained(folder)
    words.save_pretrained(folder)
    transformers.Gemma4AudioFeatureExtractor().save_pretrained(folder)


NEEDS = {"voxtral": "mistral_common"}
"""What has to be installed for the tiny model of a family."""


SAVERS: Mapping[str, Callable[[Path], None]] = {
    "qwen2-audio": save_qwen2_audio,
    "audio-flamingo-3": save_flamingo,
    "music-flamingo": lambda folder: save_flamingo(folder, music=True),
    "qwen2.5-omni": save_omni25,
    "qwen3-omni": save_omni3,
    "gemma-4": save_gemma4,
    "voxtral": save_voxtral,
}
"""Writes a tiny model of each family into a folder."""
