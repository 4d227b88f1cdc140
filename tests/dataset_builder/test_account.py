"""The account of what was read: nothing that lies in a folder or stands in a table is absent from it."""

import json
import shutil

import numpy as np
import pytest
import soundfile

from audio_compositionality.cli.main import main
from audio_compositionality.dataset_builder import open_data
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.data_spec import DataSpec, recognised
from audio_compositionality.dataset_builder.open_data import open_recordings, opened_data
from audio_compositionality.dataset_builder.sounds.recordings import SoundError, read_header

from .sounds.sounds import RATE, noise, write


def damaged(path, seed):
    write(path, seed=seed)
    path.write_bytes(path.read_bytes()[:9_000])


FAULTS = {
    "damaged": damaged,
    "short": lambda path, seed: write(path, seconds=0.1, seed=seed),
    "silent": lambda path, seed: write(path, samples=np.zeros(RATE)),
    "no sound": lambda path, seed: path.write_text("no sound"),
    "ending": lambda path, seed: path.with_suffix(".xyz").write_bytes(b"x"),
    "no ending": lambda path, seed: path.with_suffix("").write_bytes(b"x"),
    "hidden": lambda path, seed: path.with_name(f".{path.name}").write_bytes(b"x"),
    "link out": lambda path, seed: path.symlink_to("/etc/hostname"),
    "link to nothing": lambda path, seed: path.symlink_to("nothing.wav"),
    "link to a folder above": lambda path, seed: path.symlink_to("."),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("has_table", [False, True])
def test_found_is_read_and_left_out_for_random_folders_with_random_faults(tmp_path, seed, has_table):
    random = np.random.default_rng(seed)
    folder, good, bad = tmp_path / "sounds", [], []
    for number in range(12):
        path = folder / ("dog", "cat")[number % 2] / f"{number}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        if number < 4 or random.random() < 0.4:
            write(path, seed=number)
            good.append(path.relative_to(folder).as_posix())
        else:
            FAULTS[list(FAULTS)[random.integers(len(FAULTS))]](path, number)
            bad.append(number)
    rows = 0
    if has_table:
        # Some files have no row, and some rows have no file.
        named = [name for number, name in enumerate(good) if number < 2 or random.random() < 0.7]
        absent = [f"dog/absent{number}.wav" for number in range(random.integers(3))]
        lines = [f"{name},{name[:3]}" for name in (*named, *absent)]
        (folder / "metadata.csv").write_text("\n".join(["file,label", *lines]) + "\n")
        good, rows = named, len(absent)
    account = open_recordings(folder, skip_invalid=True, progress=False).account
    files = [path for path in folder.rglob("*") if path.is_symlink() or path.is_file()]
    assert sorted(account.read) == sorted(good)
    assert account.found == len(files) + rows
    assert account.found == len(account.read) + len(account.left_out)
    assert set(account.read).isdisjoint(account.left_out)
    assert sum(map(len, account.reasons().values())) == len(account.left_out)
    assert sum(account.labels.values()) == len(good)


def test_links_inside_the_folder_are_followed_and_those_out_of_it_where_asked(tmp_path):
    store = tmp_path / "sounds" / ".store"
    for number in range(4):
        write(store / f"{number}.wav", seed=number)
    write(tmp_path / "elsewhere" / "cat" / "9.wav", seed=9)
    (tmp_path / "sounds" / "dog").mkdir()
    for number in range(2):
        (tmp_path / "sounds" / "dog" / f"{number}.wav").symlink_to(f"../.store/{number}.wav")
    (tmp_path / "sounds" / "cow").symlink_to(".store")
    (tmp_path / "sounds" / "cat").symlink_to(tmp_path / "elsewhere" / "cat")
    shutil.rmtree(tmp_path / "sounds" / "dog")
    account = open_recordings(tmp_path / "sounds", progress=False).account
    assert (account.labels, account.left_out["cat"]) == (
        {"cow": 4},
        "is a link out of the folder; allow it with --set follow_links=true",
    )
    account = open_recordings(tmp_path / "sounds", follow_links=True, progress=False).account
    assert (account.labels, account.one_group) == ({"cow": 4, "cat": 1}, ("cat",))


@pytest.mark.parametrize(
    ("name", "format", "subtype"),
    [
        ("a.wav", "WAV", "PCM_16"),
        ("a.wav", "WAVEX", "FLOAT"),
        ("a.wav", "WAV", "MS_ADPCM"),
        ("a.aiff", "AIFF", "PCM_16"),
        ("a.w64", "W64", "PCM_16"),
        ("a.caf", "CAF", "PCM_16"),
        ("a.au", "AU", "PCM_16"),
    ],
)
def test_a_file_that_ends_before_its_header_says_is_damaged(tmp_path, name, format, subtype):
    rate = 48_000 if subtype == "OPUS" else 44_100
    path = tmp_path / name
    soundfile.write(path, np.resize(noise(seed=3), 3 * rate), rate, format=format, subtype=subtype)
    whole = path.read_bytes()
    assert read_header(path).frames >= 3 * rate
    for share in (0.3, 0.9):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(SoundError, match=r"is damaged: it ends|malformed|cannot be read"):
            read_header(path)


@pytest.mark.parametrize(("format", "subtype"), [("OGG", "VORBIS"), ("OGG", "OPUS"), ("AIFF", "PCM_16")])
def test_a_file_that_was_cut_is_damaged_however_long_its_tags_are(tmp_path, format, subtype):
    path = tmp_path / f"a.{format}"
    with soundfile.SoundFile(path, "w", 48_000, 1, subtype, format=format) as stream:
        stream.comment = "a long remark " * 300
        stream.write(np.resize(noise(seed=3), 3 * 48_000))
    whole = path.read_bytes()
    assert read_header(path).frames >= 3 * 48_000
    # An Ogg file also before and within its last page.
    places = [whole.rfind(b"OggS"), len(whole) - 20] if format == "OGG" else []
    for place in (*places, len(whole) * 9 // 10):
        path.write_bytes(whole[:place])
        with pytest.raises(SoundError, match="is damaged: it ends"):
            read_header(path)


def test_other_endings_are_read_by_ffmpeg_where_it_is_installed_and_named_where_not(tmp_path, monkeypatch):
    for number in range(4):
        write(tmp_path / "s" / "dog" / f"{number}.wav", seed=number)
    (tmp_path / "s" / "dog" / "3.wav").rename(tmp_path / "s" / "dog" / "3.m4a")
    monkeypatch.setenv("PATH", "/nowhere")
    account = open_recordings(tmp_path / "s", progress=False).account
    assert account.left_out == {"dog/3.m4a": "ends in .m4a, which needs FFmpeg to be installed"}
    # A program in its place that gives the file as it is, and fails on any other.
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "ffmpeg"
    program.write_text(
        '#!/bin/sh\nfor word; do case "$word" in file:*) name="${word#file:}";; esac; done\n'
        # Its command line, as it is.
        f'echo "$@" > {tmp_path}/words\n'
        'case "$name" in *bad*) echo "[aac @ 0x5] bad file" >&2; exit 1;; esac\n'
        'case "$name" in *cut*) echo "File ended prematurely" >&2;; esac\nexec /bin/cat "$name"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "s" / "dog" / "bad.m4a").write_bytes(b"x")
    shutil.copy(tmp_path / "s" / "dog" / "3.m4a", tmp_path / "s" / "dog" / "cut.webm")
    account = open_recordings(tmp_path / "s", skip_invalid=True, progress=False).account
    assert (len(account.read), account.left_out) == (
        4,
        {
            "dog/bad.m4a": "cannot be decoded by FFmpeg: bad file",
            "dog/cut.webm": "cannot be decoded by FFmpeg: File ended prematurely",
        },
    )
    # No playlist, which would lead to another file, and no network.
    words = (tmp_path / "words").read_text().split()
    formats = words[words.index("-format_whitelist") + 1].split(",")
    assert "mov" in formats
    assert not {"hls", "concat", "dash", "image2", "lavfi", "sdp"}.intersection(formats)
    assert words[words.index("-protocol_whitelist") + 1] == "file,pipe"
    assert words.index("-format_whitelist") < words.index("-i")
    for path in (tmp_path / "s" / "dog").glob("*.wav"):
        path.unlink()
    assert recognised(tmp_path / "s").kind == "recordings"


def test_a_length_that_the_writer_did_not_know_is_no_damage(tmp_path):
    write(tmp_path / "a.wav", seed=1)
    content = bytearray((tmp_path / "a.wav").read_bytes())
    place = content.index(b"data") + 4
    content[4:8] = content[place : place + 4] = b"\xff\xff\xff\xff"
    (tmp_path / "a.wav").write_bytes(content)
    assert read_header(tmp_path / "a.wav").frames == RATE


def test_columns_are_named_with_their_use_and_those_without_one(tmp_path):
    for number in range(4):
        write(tmp_path / "s" / f"{number}.wav", seed=number)
    lines = [f"{number}.wav,dog,anna,x,a dog,y" for number in range(4)]
    text = "\n".join(["File, Label ,GROUP,note,Caption_1,Speaker", *lines])
    (tmp_path / "s" / "metadata.csv").write_text(text + "\n")
    account = open_recordings(tmp_path / "s", progress=False).account
    assert account.columns == {
        "File": "file",
        "Label": "label",
        "GROUP": "group",
        "note": "",
        "Caption_1": "captions",
        "Speaker": "",
    }
    assert account.groups == {"anna": 4}
    assert account.one_group == ("dog",)
    assert "  labels with a single group, so in training or test, not both: dog" in account.lines()
    assert "columns used: File (as file)" in account.lines()[-1]
    assert "not used: note and Speaker" in account.lines()[-1]


def test_strong_labels_count_files_without_labels_and_labels_without_files(tmp_path, capsys):
    for number in range(4):
        write(tmp_path / "s" / f"{number}.wav", seconds=3, seed=number)
    write(tmp_path / "s" / "other.wav", seconds=3, seed=8)
    lines = [f"{number}.wav,0.5,1.5,dog" for number in (*range(4), 7)]
    (tmp_path / "s" / "labels.csv").write_text("\n".join(["file,start,stop,label", *lines]) + "\n")
    spec = DataSpec(data=str(tmp_path / "s"), labels=(str(tmp_path / "s" / "labels.csv"),))
    account = open_recordings(spec, progress=False).account
    assert (account.found, len(account.read)) == (7, 4)
    assert account.left_out == {
        "recording 7": "is in the labels, but has no file in the folder",
        "other.wav": "has no labels",
        "labels.csv": "contains the labels",
    }
    # As recordings with labels, the file that is missing is an error, which names the way.
    with pytest.raises(
        DatasetError, match=r"1 of 5 recordings have no file in the folder \(7\).*--skip-invalid leaves"
    ):
        opened_data(DataSpec(data=str(tmp_path / "s" / "labels.csv"), audio=str(tmp_path / "s")))
    main(["data", str(tmp_path / "s"), "--set", f"labels={tmp_path / 's' / 'labels.csv'}", "--json"])
    values = json.loads(capsys.readouterr().out)
    assert (values["found"], values["read"], values["labels"]) == (7, 4, {"dog": 4})
    assert {one["reason"]: one["names"] for one in values["left_out"]}["has no labels"] == ["other.wav"]


def test_results_of_a_folder_with_a_faulty_file_find_their_data_again(tmp_path, monkeypatch):
    """`submit` and `verify` have no option for faults: the fingerprint tells whether these are the same data."""
    (tmp_path / "a").mkdir()
    write(tmp_path / "a" / "0.wav", seed=0)
    (tmp_path / "a" / "empty.wav").write_bytes(b"")
    monkeypatch.setattr(open_data, "open_data", lambda data, skip_invalid=False: skip_invalid)
    assert open_data.reopened_data(str(tmp_path))
