import json
import subprocess
import sys

import datasets
import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from audio_compositionality.dataset_builder import PRESETS, build_dataset
from audio_compositionality.evaluator import command_line, load_result


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def folder(tiny_config, tmp_path_factory):
    return str(build_dataset(tiny_config, tmp_path_factory.mktemp("cli") / "data", progress=False))


def run(*arguments) -> int:
    return command_line.main([str(argument) for argument in arguments])


@pytest.mark.parametrize("command", [[], ["run"], ["build"], ["evaluate"], ["embed"], ["encoders"]])
def test_help_is_there_for_every_command(command, capsys):
    with pytest.raises(SystemExit) as stop:
        run(*command, "--help")
    assert stop.value.code == 0
    assert "usage: audio-compositionality" in capsys.readouterr().out


def test_help_does_not_wait_for_torch():
    code = (
        "import sys; from audio_compositionality.evaluator.command_line import _parser; _parser();"
        "assert not {'torch', 'datasets', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_evaluate_writes_results_and_prints_the_tables(folder, tmp_path, capsys):
    assert run("evaluate", "--encoder", "log-mel-statistics", "--data", folder, "--out", tmp_path) == 0
    out = capsys.readouterr().out
    for word in ("A-COAT", "A-TRE", "log-mel", "95 %", "interval", "adjusted", "centred", "ridge", "chance"):
        assert word in out
    result, _ = load_result(next(tmp_path.rglob("a_tre.json")))
    assert result.dataset == folder
    assert run("evaluate", "--encoder", "log-mel-statistics", "--data", folder, "--out", tmp_path) == 0


def test_embed_writes_every_clip_and_refuses_another_folder(folder, tmp_path, capsys):
    out = tmp_path / "embeddings"
    assert run("embed", "--encoder", "downsample", "--data", folder, "--out", out) == 0
    table = pq.read_table(out / "a_coat.parquet")
    assert table.num_rows == 8
    assert table["id"][1].as_py() == "a_coat-test-00000/B"
    vectors = np.stack(table["embedding"].to_numpy()).reshape(2, 4, 768)
    assert vectors[:, 1] - vectors[:, 0] == pytest.approx(vectors[:, 3] - vectors[:, 2], abs=1e-6)
    key = json.loads((out / "embeddings.json").read_text())
    assert key["encoder_id"] == "downsample"
    modified = (out / "a_coat.parquet").stat().st_mtime_ns
    assert run("embed", "--encoder", "downsample", "--data", folder, "--out", out) == 0
    assert (out / "a_coat.parquet").stat().st_mtime_ns == modified
    assert run("embed", "--encoder", "random", "--data", folder, "--out", out) == 2
    assert "holds something other than embeddings of random" in capsys.readouterr().err
    assert run("embed", "--encoder", "random", "--data", folder, "--out", out, "--force") == 0
    assert json.loads((out / "embeddings.json").read_text())["encoder_id"] == "random"


def test_encoders_lists_the_baselines(capsys):
    assert run("encoders") == 0
    out = capsys.readouterr().out
    assert all(name in out for name in command_line.BASELINES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "--encoder", "downsampel"], "did you mean 'downsample'"),
        (["run", "--encoder", "whisper-bas"], "did you mean 'openai/whisper-base'"),
        (["evaluate", "--encoder", "random", "--preset", "ful"], "unknown preset 'ful'; did you mean 'full'"),
        (["evaluate", "--encoder", "random", "--data", "nowhere"], "no data 'nowhere'"),
        (["evaluate", "--encoder", "random", "--batch-size", "0"], "batch_size is 0"),
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
            "audio_compositionality.dataset_builder.config.PRESETS",
            {**PRESETS, "mini": {"quadruples": 1, "train_scenes": 8, "validation_scenes": 1, "test_scenes": 1}},
        )
        assert run("build", "--bank", bank, "--voices", "3,1,4,5,9,2,6,8", "--out", tmp_path / "x") == 0
        rows = datasets.load_dataset(str(tmp_path / "x"), "a_tre", split="train", cache_dir=str(tmp_path / "cache"))
        labels = {source["timbre_label"] for scene in rows["metadata"] for source in scene}
        assert labels <= {f"VOICE {number}" for number in (3, 1, 4, 5, 9, 2, 6, 8)}
        assert len(labels) > 3
