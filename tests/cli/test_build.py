"""`build`, and the timbres that it takes from a bank."""

import re

import pytest


def test_what_is_only_learnt_from_is_built_where_it_is_named(tmp_path, monkeypatch, run, capsys):
    built = []
    monkeypatch.setattr(
        "audio_compositionality.dataset_builder.build.build_dataset",
        lambda data, folder, **_: built.append(data.recipes) or folder,
    )
    for arguments in ((), ("--recipes", "comp_a_train")):
        assert run("build", *arguments, "--out", tmp_path / "data") == 0
    by_default, named = built
    assert "comp_a_train" not in by_default
    assert {"a_coat", "comp_a_order", "factors"} <= set(by_default)
    assert named == ("comp_a_train",)
    assert capsys.readouterr().out.endswith(
        f"\nNext: audio-compositionality train --data {tmp_path / 'data'} --out model\n"
    )


def test_no_row_is_drawn_before_what_is_asked_for_is_known_to_be_right(tmp_path, monkeypatch, run, capsys):
    drawn = []
    rows = "audio_compositionality.dataset_builder.scenes.mixing.DrawnRendering.rows"
    monkeypatch.setattr(rows, property(drawn.append))
    assert run("build", "--audio-format", "mp3", "--out", tmp_path / "data") == 2
    assert "unknown audio format 'mp3'" in capsys.readouterr().err
    assert not drawn


def test_without_a_folder_it_says_the_sizes_and_what_to_type(tmp_path, monkeypatch, run, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("build", "--recipes", "a_coat", "--set", "quadruples=2") == 2
    shown = capsys.readouterr()
    assert "In all 8 clips, 1 min of sound, about 2 MB of audio." in shown.out
    typed = "audio-compositionality build --recipes a_coat --set quadruples=2 --out audio-compositionality"
    assert shown.err.endswith(f"none is given. For one here: {typed}\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_sizes_come_first_and_are_those_of_what_is_written(tmp_path, run, capsys, next_of):
    assert run("build", "--recipes", "a_coat", "--set", "quadruples=8", "--out", tmp_path / "data") == 0
    shown = capsys.readouterr().out
    assert next_of(shown) == f"run --data {tmp_path / 'data'}"
    assert shown.index("In all 32 clips, 5 min of sound") < shown.index("is built")
    (said,) = re.findall(r"about (\d+) MB", shown)
    written = sum(path.stat().st_size for path in tmp_path.rglob("*.parquet")) / 1e6
    assert float(said) == pytest.approx(written, rel=0.2)


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
            ("1,2,x", "voices is '1,2,x'; it is one or more whole numbers with commas"),
            ("0,1,2,3,4,5,6,7", "voices has 0; the voices of a bank are numbered 1 to 32"),
            ("1,2,3", "3 voices for K = 8"),
        ],
    )
    def test_a_wrong_choice_is_refused(self, bank, voices, message, tmp_path, run, capsys):
        assert run("build", "--set", f"bank={bank}", "--set", f"voices={voices}", "--out", tmp_path / "x") == 2
        assert message in capsys.readouterr().err

    @pytest.mark.slow
    def test_eight_voices_of_a_bank_become_the_timbres(self, bank, tmp_path, monkeypatch, run, capsys):
        import datasets

        from audio_compositionality.dataset_builder import rendered

        few = {"quadruples": 1, "train_scenes": 8, "validation_scenes": 1, "test_scenes": 1}
        preset = rendered.rendered_preset
        monkeypatch.setattr(rendered, "rendered_preset", lambda name, **changes: preset(name, **few, **changes))
        chosen = ("--set", f"bank={bank}", "--set", "voices=3,1,4,5,9,2,6,8", "--recipes", "a_coat,a_tre")
        assert run("build", *chosen, "--out", tmp_path / "x") == 0
        assert 'load_dataset("x", "a_tre")' in capsys.readouterr().out
        rows = datasets.load_dataset(str(tmp_path / "x"), "a_tre", split="train", cache_dir=str(tmp_path / "cache"))
        labels = {source["timbre_label"] for scene in rows["metadata"] for source in scene}
        assert labels <= {f"VOICE {number}" for number in (3, 1, 4, 5, 9, 2, 6, 8)}
        assert len(labels) > 3
