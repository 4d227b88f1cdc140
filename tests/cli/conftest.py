"""What the tests of commands share: the command line as a function, and a folder with a data set."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from audio_compositionality.cli.main import main

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.rendered import RenderedData

Run = Callable[..., int]


@pytest.fixture(autouse=True)
def _quick(one_thread: None) -> None:
    """Fits of a few samples are slower in several threads."""


@pytest.fixture
def run() -> Run:
    """The command line in this process: returns the exit status."""
    return lambda *arguments: main([str(argument) for argument in arguments])


@pytest.fixture
def next_of(run: Run) -> Callable[[str], str]:
    """Function of what a command printed: the command that it names at the end, which is run without scoring."""

    def next_of(printed: str) -> str:
        command = printed.rstrip().splitlines()[-1].removeprefix("Next: audio-compositionality ")
        assert run(*shlex.split(command), "--dry-run") == 0
        return command

    return next_of


@pytest.fixture
def refused(run: Run, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A command that is refused: returns the one line that it ends with; it leaves nothing in the working directory."""

    def command(*words: str) -> str:
        before = sorted(Path().rglob("*"))
        assert run(*words) == 2
        line, newline, rest = capsys.readouterr().err.partition("\n")
        assert line.startswith("error: ")
        assert (newline, rest) == ("\n", "")
        assert sorted(Path().rglob("*")) == before
        return line

    return command


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """What a command hands to the evaluator, which does nothing: names of models and tasks, data and options."""
    from audio_compositionality.dataset_builder.recipes import load_recipe
    from audio_compositionality.encoders.base import ENCODER
    from audio_compositionality.evaluator.compare.model_verdicts import Verdicts

    # Rows of the presets are drawn, and not looked at: a few are enough.
    scenes = {"scene_candidates": 2_000, "train_scenes": 40, "validation_scenes": 8, "test_scenes": 8}
    few = {"a_coat": {"quadruple_candidates": 500, "quadruples": 12}, "a_tre": scenes}
    for name, sizes in few.items():
        recipe = load_recipe(name)
        small = {preset: spec.changed(**sizes) for preset, spec in recipe.presets.items()}
        monkeypatch.setitem(recipe.__dict__, "presets", small)
    calls: list[SimpleNamespace] = []

    def evaluate_models(models, data, tasks, options, *, on_result=None, leave_out=False, apart=(), shipped=False):
        names = {"models": [model.name for model in models], "tasks": [task.info.name for task in tasks]}
        calls.append(SimpleNamespace(**names, data=data, options=options, settings=options.settings))
        return []

    monkeypatch.setattr("audio_compositionality.evaluator.run.evaluate.evaluate_models", evaluate_models)
    monkeypatch.setattr(
        "audio_compositionality.encoders.loading.registry.load_model",
        lambda name, *, device, options, seed: SimpleNamespace(
            name=name, abilities=ENCODER, card=SimpleNamespace(id=name), device=device
        ),
    )
    for command in ("run", "evaluate"):
        monkeypatch.setattr(f"audio_compositionality.cli.{command}.print_end", lambda *_: Verdicts((), ()))
    monkeypatch.setattr("audio_compositionality.cli.scoring.check_kinds", lambda *_: None)
    return calls


@pytest.fixture(scope="module")
def folder(tiny_data: RenderedData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built data set of a few rows."""
    from audio_compositionality.dataset_builder.build import build_dataset

    return build_dataset(tiny_data, tmp_path_factory.mktemp("cli") / "data", progress=False)


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Whisper of two blocks with random weights."""
    import torch
    import transformers

    folder = tmp_path_factory.mktemp("models") / "small-whisper"
    config = transformers.WhisperConfig(
        d_model=16, encoder_layers=2, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=16, decoder_ffn_dim=16, vocab_size=12, max_source_positions=500, num_mel_bins=16,
        bos_token_id=1, eos_token_id=1, pad_token_id=1, decoder_start_token_id=1, suppress_tokens=None,
        begin_suppress_tokens=None,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.WhisperForConditionalGeneration(config).save_pretrained(folder)
    transformers.WhisperFeatureExtractor(feature_size=16, chunk_length=10).save_pretrained(folder)
    return folder
