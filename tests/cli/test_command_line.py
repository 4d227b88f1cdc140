import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import datasets
import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from audio_compositionality.dataset_builder import PRESETS, build_dataset, open_benchmark
from audio_compositionality.encoders import EncoderOptions, list_encoders, load_encoder
from audio_compositionality.evaluator import load_result
from audio_compositionality.cli import command_line


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    """How well A-TRE is fitted matters elsewhere."""
    monkeypatch.setattr("audio_compositionality.tasks.scoring.FEW_STEPS", 20)


@pytest.fixture(scope="module")
def folder(tiny_config, tmp_path_factory):
    return str(build_dataset(tiny_config, tmp_path_factory.mktemp("cli") / "data", progress=False))


def run(*arguments) -> int:
    return command_line.main([str(argument) for argument in arguments])


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["run"],
        ["build"],
        ["evaluate"],
        ["embed"],
        ["compare"],
        ["report"],
        ["coral"],
        ["check-encoder"],
        ["verify"],
        ["validate"],
        ["encoders"],
    ],
)
def test_help_is_there_for_every_command(command, capsys):
    with pytest.raises(SystemExit) as stop:
        run(*command, "--help")
    assert stop.value.code == 0
    assert "usage: audio-compositionality" in capsys.readouterr().out


def test_help_does_not_wait_for_torch():
    code = (
        "import sys; from audio_compositionality.cli.command_line import argument_parser; argument_parser();"
        "assert not {'torch', 'datasets', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_evaluate_writes_results_and_prints_the_tables(folder, tmp_path, capsys, cache):
    assert run("evaluate", "--encoder", "log-mel-statistics", "--data", folder, "--out", tmp_path) == 0
    out = capsys.readouterr().out
    assert f"embeddings in {cache / 'embeddings'}" in " ".join(out.split())
    assert len(list(cache.glob("embeddings/log-mel-statistics/*/*.parquet"))) == 2
    for word in ("A-COAT", "A-TRE", "log-mel", "95 %", "interval", "adjusted", "centred", "ridge", "chance"):
        assert word in out
    result, _ = load_result(next(tmp_path.rglob("a_tre.json")))
    assert result.dataset == folder
    assert result.settings["seeds"] == [0, 1, 2]
    assert run("evaluate", "--encoder", "log-mel-statistics", "--data", folder, "--out", tmp_path) == 0
    one_seed = ["--seeds", 1, "--out", tmp_path / "one"]
    assert run("evaluate", "--encoder", "log-mel-statistics", "--data", folder, *one_seed) == 0
    result, _ = load_result(next((tmp_path / "one").rglob("a_tre.json")))
    assert result.settings["seeds"] == [0]


def test_embed_writes_every_clip_once_and_evaluate_takes_them(folder, tmp_path, capsys, cache):
    out = tmp_path / "embeddings"
    assert run("embed", "--encoder", "log-mel-statistics", "--data", folder, "--out", out) == 0
    a_coat, a_tre = (Path(line) for line in capsys.readouterr().out.splitlines())
    table = pq.read_table(a_coat)
    assert table.column_names == ["id", "embedding", "error"]
    assert table["id"].to_pylist() == [f"a_coat-test-0000{i}/{name}" for i in range(2) for name in "ABCD"]
    clips = np.concatenate([batch.waveforms for batch in open_benchmark(folder).batches("a_coat", 4)])
    expected = load_encoder("log-mel-statistics").embed(clips, 32_000)
    assert np.stack(table["embedding"].to_numpy()) == pytest.approx(expected, rel=1e-6)
    assert pq.read_table(a_tre).num_rows == 24
    files = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    assert len(files) == 4
    evaluate = ["evaluate", "--encoder", "log-mel-statistics", "--data", folder, "--embeddings", out]
    assert run(*evaluate, "--seeds", 1, "--out", tmp_path / "results") == 0
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()} == files
    assert not list(cache.iterdir())


def test_layer_pooling_and_precision_reach_the_encoder(folder, tmp_path, monkeypatch, capsys):
    asked = []

    def refuse(name, *, device, options):
        asked.append(options)
        raise ValueError("enough")

    monkeypatch.setattr("audio_compositionality.encoders.load_encoder", refuse)
    chosen = ["--layer", 2, "--pooling", "max", "--precision", "bfloat16", "--compile"]
    for command in ("evaluate", "embed"):
        assert run(command, "--encoder", "x", "--out", tmp_path, *chosen) == 2
    assert asked == [EncoderOptions(layer=2, pooling="max", precision="bfloat16", compile=True)] * 2


def test_the_precision_of_run_is_for_the_encoders_given_not_for_the_baselines(monkeypatch, tmp_path):
    asked = []
    baseline = load_encoder("random")

    def load(name, *, device, options=None):
        asked.append((name, options))
        return baseline

    monkeypatch.setattr("audio_compositionality.encoders.load_encoder", load)
    monkeypatch.setattr(command_line, "_evaluate_all", lambda *_: None)
    assert run("run", "--encoder", "x", "--encoder", "random", "--precision", "float16", "--out", tmp_path) == 0
    half = EncoderOptions(precision="float16")
    assert asked == [
        *((name, None) for name in command_line.BASELINES),
        ("x", half),
        ("untrained:x", half),
    ]


def test_run_takes_each_encoder_once(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr("audio_compositionality.encoders.load_encoder", lambda name, **_: asked.append(name))
    monkeypatch.setattr(command_line, "_evaluate_all", lambda *_: None)
    names = ("x", "random", "untrained:x", "x")
    assert run("run", *(part for name in names for part in ("--encoder", name)), "--out", tmp_path) == 0
    assert asked == [*command_line.BASELINES, "x", "untrained:x"]


def test_clips_that_cannot_be_embedded_are_told_of(folder, tmp_path, capsys):
    path = tmp_path / "half.py"
    path.write_text(
        "import numpy as np\n"
        "class Half:\n"
        "    sample_rate, output_dim = 32_000, 1\n"
        "    def embed(self, waveforms, sample_rate):\n"
        "        return np.where(waveforms[:, 16_000:16_001] > 0, np.nan, 1)\n"
    )
    clips = np.concatenate([batch.waveforms for batch in open_benchmark(folder).batches("a_tre", 4)])
    refused = int((clips[:, 16_000] > 0).sum())
    assert 0 < refused < len(clips) == 24
    embed = ["embed", "--encoder", f"{path}:Half", "--data", folder, "--out", tmp_path / "out"]
    assert run(*embed) == 2
    assert "; --skip-invalid leaves such clips out" in capsys.readouterr().err
    assert run(*embed, "--skip-invalid") == 0
    assert f"note: {refused} of 24 clips of a_tre could not be embedded" in capsys.readouterr().err


def test_the_version_is_that_of_the_distribution(capsys):
    with pytest.raises(SystemExit) as stop:
        run("--version")
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"audio-compositionality {version('audio-compositionality')}\n"


def test_a_lack_of_memory_is_one_line(monkeypatch, capsys):
    def fail(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB.")

    monkeypatch.setattr("audio_compositionality.encoders.load_encoder", fail)
    assert run("evaluate", "--encoder", "x") == 2
    assert capsys.readouterr().err == "error: CUDA out of memory. Tried to allocate 1 GiB.; what is finished is kept\n"


def test_encoders_lists_every_name_with_licence_paradigm_and_source(capsys):
    assert run("encoders") == 0
    printed = " ".join(capsys.readouterr().out.split())
    for info in list_encoders():
        assert info.name in printed
        assert info.paradigm in printed
    for words in ("CC-BY-NC-4.0", "Noncommercial", "Zenodo", "microsoft/msclap", "2048", "44,100"):
        assert words in printed


EXAMPLE = f"{Path(__file__).parents[1] / 'examples' / 'band_energies.py'}:BandEnergies"


def test_check_encoder_passes_a_sound_one_and_fails_a_broken_one(tmp_path, capsys):
    assert run("check-encoder", EXAMPLE) == 0
    assert "FAIL" not in capsys.readouterr().out
    (tmp_path / "broken.py").write_text(
        "import numpy as np\n"
        "class Broken:\n"
        "    sample_rate = 16_000\n"
        "    def embed(self, waveforms, sample_rate):\n"
        "        return np.full((len(waveforms), 4), np.nan)\n"
    )
    assert run("check-encoder", f"{tmp_path / 'broken.py'}:Broken") == 1
    assert "FAIL" in capsys.readouterr().out


def test_an_encoder_of_a_file_is_run_without_a_twin(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("audio_compositionality.dataset_builder.open_benchmark", lambda source: open_benchmark(folder))
    assert run("run", "--encoder", EXAMPLE, "--seeds", 1, "--out", tmp_path / "results") == 0
    assert "BandEnergies" in capsys.readouterr().out
    assert len([path for path in (tmp_path / "results").iterdir() if path.is_dir()]) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "--encoder", "downsampel"], "did you mean 'downsample'"),
        (["run", "--encoder", "whisper-bas"], "did you mean 'whisper-base'"),
        (["evaluate", "--encoder", "random", "--preset", "ful"], "unknown preset 'ful'; did you mean 'full'"),
        (["evaluate", "--encoder", "random", "--data", "nowhere"], "no data 'nowhere'"),
        (["evaluate", "--encoder", "random", "--batch-size", "0"], "batch_size is 0"),
        (["evaluate", "--encoder", "random", "--seeds", "0"], "seeds is 0"),
        (["evaluate", "--encoder", "random", "--layer", "2"], "'random' is a baseline without a model"),
        (
            ["evaluate", "--encoder", "random", "--pooling", "men"],
            "pooling is 'men', but must be one of mean, cls, max",
        ),
        (["run", "--precision", "fp16"], "precision is 'fp16', but must be one of float32, bfloat16, float16"),
        (["build", "--preset", "minny"], "did you mean 'mini'"),
        (["build", "--audio-format", "mp3"], "unknown audio format 'mp3'"),
        (["build", "--seed", "-1"], "seed is -1"),
        (["build", "--voices", "1,2"], "give --bank FILE too"),
        (["build", "--bank", "nowhere.syx"], "nowhere.syx"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("error: ")
    assert message in error
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_an_interrupt_says_what_is_kept(monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("audio_compositionality.dataset_builder.build_dataset", interrupt)
    assert run("build") == 130
    assert "What is finished is kept" in capsys.readouterr().err


class TestBank:
    @pytest.fixture
    def bank(self, tmp_path):
        """Thirty-two named sines, packed by hand from the published layout of a bank."""
        data = b""
        for number in range(1, 33):
            for level in (0, 0, 0, 0, 0, 60 + number):
                data += bytes([99, 99, 99, 99, 99, 99, 99, 0, 39, 0, 0, 0, 7 << 3, 0, level, 1 << 1, 0])
            data += bytes([99, 99, 99, 99, 50, 50, 50, 50, 0, 1 << 3, 35, 0, 0, 0, 1, 24])
            data += f"VOICE {number}".ljust(10).encode()
        path = tmp_path / "bank.syx"
        path.write_bytes(bytes.fromhex("f04300092000") + data + bytes([-sum(data) & 127, 0xF7]))
        return path

    @pytest.mark.parametrize(
        ("voices", "message"),
        [
            ("1,2,x", "give numbers with commas"),
            ("0,1,2,3,4,5,6,7", "--voices has 0; the voices of a bank are numbered 1 to 32"),
            ("1,2,3", "3 voices for K = 8"),
        ],
    )
    def test_a_wrong_choice_is_refused(self, bank, voices, message, tmp_path, capsys):
        assert run("build", "--bank", bank, "--voices", voices, "--out", tmp_path / "x") == 2
        assert message in capsys.readouterr().err

    def test_eight_voices_of_a_bank_become_the_timbres(self, bank, tmp_path, monkeypatch):
        monkeypatch.setattr(
            "audio_compositionality.dataset_builder.synthesis.config.PRESETS",
            {**PRESETS, "mini": {"quadruples": 1, "train_scenes": 8, "validation_scenes": 1, "test_scenes": 1}},
        )
        assert run("build", "--bank", bank, "--voices", "3,1,4,5,9,2,6,8", "--out", tmp_path / "x") == 0
        rows = datasets.load_dataset(str(tmp_path / "x"), "a_tre", split="train", cache_dir=str(tmp_path / "cache"))
        labels = {source["timbre_label"] for scene in rows["metadata"] for source in scene}
        assert labels <= {f"VOICE {number}" for number in (3, 1, 4, 5, 9, 2, 6, 8)}
        assert len(labels) > 3
