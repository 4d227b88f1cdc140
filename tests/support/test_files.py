"""Files that appear only when they are whole."""

import errno
import os
import socket
import threading
from pathlib import Path

import pytest

from audio_compositionality.dataset_builder.sounds.recordings import SoundError, read_header
from audio_compositionality.support.files import permit_as_new, read_file, write_together, write_whole


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "folder" / "file"
    write_whole(path, b"one")
    write_whole(path, "zwei")
    assert path.read_bytes() == b"zwei"
    assert list(path.parent.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_files_and_none_gets_its_name_before_all_are_there(tmp_path, monkeypatch):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("old")
    there = []

    def full(descriptor):
        there.append(one.read_text())
        if len(there) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*two"):
        write_together({one: "new", two: "new"})
    assert there == ["old", "old"]
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.skipif(os.name == "nt", reason="there are no such permissions")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_a_file_of_a_library_gets_the_permissions_of_a_new_one(tmp_path, mask, mode):
    path = tmp_path / "weights"
    path.write_bytes(b"one")
    path.chmod(0o600)
    before = os.umask(mask)
    try:
        permit_as_new(path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == mode
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "folder", "link to a pipe"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, kind):
    path = tmp_path / "clip.wav"
    if kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.relpath(path))
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path = Path("/dev/zero")
    else:
        there = tmp_path / "pipe" if kind == "link to a pipe" else path
        os.mkfifo(there)
        if there != path:
            path.symlink_to(there)
    with pytest.raises(OSError, match=r"not a regular file|No such device|s a directory"):
        read_file(path)
    with pytest.raises(SoundError, match=r"not a regular file|No such device|s a directory"):
        read_header(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_is_written_into_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "a table")
    reader.join(10)
    assert received == ["a table"]
    assert pipe.is_fifo()


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full")
def test_what_cannot_be_written_into_is_named(tmp_path):
    # A link: whatever goes wrong here, the device of this machine stays.
    link = tmp_path / "full"
    link.symlink_to("/dev/full")
    with pytest.raises(OSError, match=f"No space left on device: '{link}'"):
        write_whole(link, "a table")
    assert link.is_symlink()
