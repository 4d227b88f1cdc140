"""Archives of strangers, of which nothing is written and nothing grows beyond its claims; readers by their names."""

import os
import stat
import struct
import zipfile

import pytest

from audio_compositionality.dataset_builder.data import DatasetError, HeldData
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.sounds import published as containers
from audio_compositionality.dataset_builder.sounds.published import (
    FolderFiles,
    ReadConfiguration,
    ZippedFiles,
    list_readers,
    reader_of,
    register_reader,
    table_text,
)


def archive(path, *entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as stream:
        for name, content, *kind in entries:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (kind[0] if kind else stat.S_IFREG) << 16
            stream.writestr(info, content)
    return path


class TestArchives:
    def test_give_plain_files_alone_that_are_not_too_large(self, tmp_path, monkeypatch):
        path = archive(
            tmp_path / "x.zip",
            ("a/b.wav", b"sound"),
            ("a.csv", bytes(2_000)),
            ("b.csv", bytes(500)),
            ("../out.wav", b"x"),
            ("a/../../out.wav", b"x"),
            ("/etc/out.wav", b"x"),
            ("a\\..\\out.wav", b"x"),
            ("link.wav", b"/etc/passwd", stat.S_IFLNK),
            ("__MACOSX/a/._b.wav", b"x"),
            ("a/.hidden.wav", b"x"),
        )
        files = ZippedFiles(path)
        assert files.names == ("a.csv", "a/b.wav", "b.csv")
        assert files.file("a/b.wav").getvalue() == b"sound"
        assert sorted(tmp_path.rglob("*")) == [path]
        monkeypatch.setattr(containers, "LARGEST_FILE", 1_000)
        monkeypatch.setattr(containers, "LARGEST_TABLE", 400)
        with pytest.raises(DatasetError, match="declares 2,000 bytes; the limit is 1,000"):
            files.file("a.csv")
        with pytest.raises(DatasetError, match=r"x\.zip: b\.csv has 500 bytes; the limit is 400"):
            table_text(files, "b.csv")
        monkeypatch.setattr(containers, "MOST_FILES", 9)
        with pytest.raises(DatasetError, match="contains 10 files; the limit is 9"):
            ZippedFiles(path)

    def test_that_hold_more_than_they_claim_or_are_damaged_are_refused(self, tmp_path):
        path = archive(tmp_path / "x.zip", ("a.wav", bytes(3_000_000)))
        content = bytearray(path.read_bytes())
        # The size before packing, in the header of the file and in the list of files.
        for signature, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
            struct.pack_into("<I", content, content.index(signature) + place, 1_000)
        path.write_bytes(content)
        with pytest.raises(DatasetError, match=r"cannot be unpacked|but declares 1,000"):
            ZippedFiles(path).file("a.wav")
        content = bytearray(archive(path, ("a.wav", os.urandom(5_000))).read_bytes())
        content[2_000] ^= 255
        path.write_bytes(content)
        with pytest.raises(DatasetError, match="cannot be unpacked"):
            ZippedFiles(path).file("a.wav")


def test_folders_give_no_links_and_nothing_hidden(tmp_path):
    (tmp_path / "outside.wav").write_bytes(b"x")
    folder = tmp_path / "it"
    for name in ("a/b.wav", "__MACOSX/._b.wav", ".git/c.wav", "a/.d.wav"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    (folder / "link.wav").symlink_to(tmp_path / "outside.wav")
    (folder / "links").symlink_to(tmp_path)
    assert FolderFiles(folder).names == ("a/b.wav",)


class Toy:
    name = "toy"
    meaning = "nothing"

    def open(self, path):
        return HeldData(f"toy:{path}", {"toys": ReadConfiguration("toys", "toy", [{"id": "a", "split": "test"}], [[]])})


def test_a_new_one_is_opened_by_its_name_and_a_path(monkeypatch):
    monkeypatch.setattr(containers._registry, "_added", {})
    register_reader(Toy())
    assert list_readers()[-1] == "toy"
    data = open_data("toy:C:/x")
    assert (data.source, data.recipes) == ("toy:C:/x", ("toys",))
    assert len(data.configuration("toys").fingerprint) == 64
    with pytest.raises(DatasetError, match="has no data of 'toy'; did you mean 'toys'"):
        data.configuration("toy")
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("USERPROFILE", "/home/somebody")
    assert open_data("toy:~/x").source == "toy:/home/somebody/x"
    with pytest.raises(DatasetError, match="'toy:' has no path; give toy:PATH, nothing"):
        open_data("toy:")
    assert reader_of("mini") is reader_of("C:/x") is None
    assert all(reader_of(f"{reader}:x")[0].meaning for reader in list_readers())
    with pytest.raises(DatasetError, match=r"no data 'compas:x': .*compa:PATH"):
        open_data("compas:x")
