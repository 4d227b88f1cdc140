"""Files that appear only when they are whole."""

import os
import threading
from pathlib import Path

import pytest

from audio_compositionality.support.files import write_whole


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "folder" / "file"
    write_whole(path, b"one")
    write_whole(path, "zwei")
    assert path.read_bytes() == b"zwei"
    assert list(path.parent.iterdir()) == [path]


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
