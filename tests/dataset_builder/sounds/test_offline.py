"""Sounds that are made of what is installed: once, and never by halves."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from audio_compositionality.dataset_builder.sounds import makers
from audio_compositionality.dataset_builder.sounds.makers.base import Maker
from audio_compositionality.dataset_builder.sounds.offline import made_folder
from audio_compositionality.dataset_builder.sounds.opening import open_recordings
from audio_compositionality.dataset_builder.sounds.sound_files import SoundError

from .sounds import write


@dataclass(frozen=True, kw_only=True)
class Beeps(Maker):
    """Noises under two conditions; counts how often it made them."""

    name: str = "beeps"
    meaning: str = "noises"
    needs: str = "Nothing."
    licence: str = "none"
    installed: tuple[str, ...] = ("a", "b")
    release: str = "1.0"
    times: list

    def sources(self):
        return dict.fromkeys(self.installed, self.release)

    def make(self, folder, progress):
        self.times.append(folder)
        for number, label in enumerate(("low", "high")):
            for place, source in enumerate(self.installed):
                write(folder / label / source / "0.wav", seed=10 * number + place)


class Broken(Beeps):
    def make(self, folder, progress):
        super().make(folder, progress)
        raise KeyboardInterrupt


class Silent(Beeps):
    def make(self, folder, progress):
        (folder / "low").mkdir()


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(makers._registry, "_added", {})
    return makers.register_maker


def test_they_are_made_once_and_read_as_a_folder(cache, registered):
    registered(Beeps(times=(times := [])))
    for _ in range(2):
        recordings = open_recordings("beeps", progress=False)
        assert (recordings.source, recordings.suggested) == ("beeps", {"domain": "beeps"})
        assert {(e.label, e.condition) for e in recordings.entries} == {
            (label, condition) for label in ("low", "high") for condition in "ab"
        }
    assert len(times) == 1
    (folder,) = (cache / "recordings").iterdir()
    assert folder.name.startswith("beeps-1-")


def test_another_version_and_other_sources_are_made_again(cache):
    times = []
    changes = [{}, {"version": 2}, {"installed": ("a",)}, {"release": "1.1"}]
    makers_ = [Beeps(times=times, **change) for change in changes]
    assert len({made_folder(maker) for maker in makers_ * 2}) == len(times) == 4


@pytest.mark.parametrize("change", ["sound", "digests", "missing", "more", "without digests"])
def test_sounds_that_were_changed_are_made_again_and_a_line_says_so(cache, change):
    beeps = Beeps(times=[])
    folder = made_folder(beeps)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    sound, digests = folder / "low" / "a" / "0.wav", folder / "digests.json"
    path = digests if "digests" in change else sound
    if change == "more":
        write(folder / "low" / "a" / "1.wav")
    else:
        content = bytearray(path.read_bytes())
        content[-9] ^= 0x40
        path.write_bytes(content)
        if change not in ("sound", "digests"):
            path.unlink()
    with pytest.warns(UserWarning, match=r"(is damaged|is not there|was not written with the others).*are made again"):
        assert made_folder(beeps) == folder
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert made_folder(beeps) == folder
    assert len(beeps.times) == 2


def test_a_run_that_was_stopped_leaves_nothing(cache):
    with pytest.raises(KeyboardInterrupt):
        made_folder(Broken(times=[]))
    assert list((cache / "recordings").iterdir()) == []
    with pytest.raises(SoundError, match="holds no sound file"):
        made_folder(Silent(times=[]))
    assert list((cache / "recordings").iterdir()) == []


def test_what_one_that_was_killed_left_is_removed(cache, monkeypatch):
    monkeypatch.setattr("os.getpid", lambda: 2**22 + 5)
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)
    with pytest.raises(KeyboardInterrupt):
        made_folder(Broken(times=[]))
    assert len(list((cache / "recordings").iterdir())) == 1
    monkeypatch.undo()
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(cache))
    folder = made_folder(Beeps(times=[]))
    assert list((cache / "recordings").iterdir()) == [folder]


def test_another_process_may_be_first(cache, monkeypatch):
    class Slow(Beeps):
        def make(self, folder, progress):
            super().make(folder, progress)
            with monkeypatch.context() as other:
                other.setattr("os.getpid", lambda: 1)
                write(made_folder(Beeps(times=[])) / "first.wav")

    folder = made_folder(Slow(times=[]))
    assert (folder / "first.wav").is_file()


def test_a_folder_of_the_name_is_read_where_it_is_a_path(cache, registered, tmp_path, monkeypatch):
    registered(Beeps(times=(times := [])))
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "beeps" / "x" / "0.wav")
    for folder in ("./beeps", Path("beeps"), tmp_path / "beeps"):
        assert len(open_recordings(folder, progress=False).entries) == 1
    assert times == []
    note = r"'beeps' is taken as the name of sounds that are made here; \./beeps is the folder that is called so"
    with pytest.warns(UserWarning, match=note):
        assert len(open_recordings("beeps", progress=False).entries) == 4
    with pytest.raises(SoundError, match=r"'beep' is not a folder, nor the name of sounds .*'beeps'"):
        open_recordings("beep")
