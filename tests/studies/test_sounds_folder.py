"""Sounds that are made of what is installed: once, never by halves, and read as a folder like any other."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from audio_compositionality.dataset_builder.open_data import open_recordings
from audio_compositionality.dataset_builder.recorded import recorded
from audio_compositionality.dataset_builder.sounds.recordings import SoundError
from studies import sounds
from studies.sounds.__main__ import main
from studies.sounds.maker import Maker, make_folder

from ..dataset_builder.sounds.sounds import write


@dataclass(frozen=True, kw_only=True)
class Beeps(Maker):
    """Noises under some conditions; counts how often it made them."""

    name: str = "beeps"
    meaning: str = "noises"
    needs: str = "Nothing."
    licence: str = "none"
    installed: tuple[str, ...] = ("a", "b")
    labels: int = 2
    release: str = "1.0"
    times: list

    def sources(self):
        return dict.fromkeys(self.installed, self.release)

    def make(self, folder, progress):
        self.times.append(folder)
        for number in range(self.labels):
            for place, source in enumerate(self.installed):
                write(folder / f"label {number}" / source / "0.wav", seed=10 * number + place)


class Broken(Beeps):
    def make(self, folder, progress):
        super().make(folder, progress)
        raise KeyboardInterrupt


class Silent(Beeps):
    def make(self, folder, progress):
        (folder / "low").mkdir()


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_they_are_made_once_and_read_as_a_folder(tmp_path):
    beeps, folder = Beeps(times=[]), tmp_path / "here" / "my beeps"
    assert [make_folder(beeps, folder) for _ in range(3)] == [True, False, False]
    recordings = open_recordings(folder, progress=False)
    assert (recordings.source, recordings.suggested) == (str(folder), {"domain": "beeps"})
    assert {(e.label, e.condition) for e in recordings.entries} == {
        (f"label {number}", condition) for number in range(2) for condition in "ab"
    }
    assert len(beeps.times) == 1
    assert list(folder.parent.iterdir()) == [folder]


def test_rows_have_the_domain_wherever_the_folder_lies(tmp_path):
    beeps = Beeps(times=[], installed=("a", "b", "c"), labels=6)
    rows = []
    for name in ("one", "two"):
        make_folder(beeps, tmp_path / name)
        recordings = open_recordings(tmp_path / name, progress=False)
        data = recorded(recordings, recipes=["a_coat_instances"], classes=3, context_sources=1, blocks=2)
        rows.append([*data.configuration("a_coat_instances").rows])
    assert rows[0] == rows[1]
    assert {row["domain"] for row in rows[0]} == {"beeps"}


@pytest.mark.parametrize("change", [{"version": 2}, {"installed": ("a",)}, {"release": "1.1"}, {"name": "else"}])
def test_what_was_made_of_other_sources_or_by_others_is_left_alone(change, tmp_path):
    make_folder(Beeps(times=[]), tmp_path / "beeps")
    write(tmp_path / "mine" / "mine.wav")
    before = files(tmp_path)
    for folder in ("beeps", "mine"):
        with pytest.raises(SoundError, match="holds other files, or sounds made from other sources; remove it"):
            make_folder(Beeps(times=[], **change), tmp_path / folder)
    assert files(tmp_path) == before


def test_a_run_that_was_stopped_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        make_folder(Broken(times=[]), tmp_path / "beeps")
    with pytest.raises(SoundError, match="contains no sound file"):
        make_folder(Silent(times=[]), tmp_path / "beeps")
    assert list(tmp_path.iterdir()) == []


class TestCommand:
    @pytest.fixture
    def beeps(self, monkeypatch):
        beeps = Beeps(times=[])
        monkeypatch.setattr(sounds, "MAKERS", {"beeps": beeps})
        monkeypatch.setattr("studies.sounds.__main__.MAKERS", {"beeps": beeps})
        return beeps

    def test_makes_a_folder_and_says_under_which_licence(self, beeps, tmp_path, capsys):
        folder = tmp_path / "x"
        assert main(["beeps", "--out", str(folder)]) == 0
        assert capsys.readouterr() == (f"{folder}: made\n", "note: beeps: noises. none\n")
        assert main(["beeps", "--out", str(folder)]) == 0
        assert capsys.readouterr().out == f"{folder}: made before, and complete\n"

    def test_lists_what_there_is_and_what_it_needs(self, beeps, capsys):
        assert main([]) == 0
        assert capsys.readouterr().out == "sounds:\n  beeps: noises.\n      Needs: Nothing.\n"
        with pytest.raises(SystemExit, match="0"):
            main(["--help"])
        assert "  beeps: noises." in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["beep", "--out", "x"], "error: unknown sounds 'beep'; did you mean 'beeps'"),
            (["beeps"], "error: give the folder for the sounds: beeps --out FOLDER"),
        ],
    )
    def test_what_is_wrong_is_one_line(self, beeps, arguments, message, capsys):
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert error.startswith(message)
        assert error.count("\n") == 1

    def test_a_full_folder_is_refused(self, beeps, tmp_path, capsys):
        write(tmp_path / "0.wav")
        assert main(["beeps", "--out", str(tmp_path)]) == 2
        assert "holds other files" in capsys.readouterr().err


@pytest.mark.slow
def test_a_clone_runs_it_as_a_module():
    command = [sys.executable, "-m", "studies.sounds"]
    listed = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True).stdout
    assert all(f"\n  {name}: " in listed for name in sounds.MAKERS)
