"""Files that state their own digest."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save, save_file

from audio_compositionality.support.checked_files import (
    DIGEST,
    NO_DIGEST,
    DamagedError,
    TornError,
    check_sealed_file,
    is_sealed,
    parsed_line,
    parsed_sealed_json,
    sealed,
    sealed_json,
    sealed_line,
    write_sealed_file,
)

STATED = {"stated": json.dumps({DIGEST: NO_DIGEST, "more": 1})}
TENSORS = {"a": np.arange(6.0), "b": np.ones((2, 3), np.float32)}


def flipped(content):
    """The bytes with each bit changed, one at a time."""
    for place in range(len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            yield bytes(changed)


SEALED = [sealed(save({"a": np.arange(3)}, STATED)), sealed_json({"a": [1.5, "é"], "b": None})]


@pytest.mark.parametrize("content", SEALED)
def test_each_bit_counts(content):
    assert is_sealed(content)
    assert not any(map(is_sealed, flipped(content)))
    assert not is_sealed(b"")
    assert not is_sealed(content[:-1])


def test_a_digest_of_other_things_behind_it_does_not_matter():
    values = {"digest_of_weights": "a" * 64, "digest": "b" * 64}
    content = sealed_json({"files": values})
    assert is_sealed(content)
    assert parsed_sealed_json(content, None) == {"files": values}
    assert json.loads(content)[DIGEST] not in (NO_DIGEST, "a" * 64)


def test_a_large_file_is_sealed_and_checked_in_one_pass(tmp_path):
    path, before = tmp_path / "state.safetensors", tmp_path / "before.safetensors"
    write_sealed_file(path, lambda partial: save_file(TENSORS, partial, STATED), before=before)
    check_sealed_file(path)
    first = path.read_bytes()
    assert is_sealed(first)
    assert first == sealed(first.replace(json.loads(load_stated(first))[DIGEST].encode(), NO_DIGEST.encode()))
    assert load_file(path)["b"].shape == (2, 3)
    assert not before.exists()
    write_sealed_file(path, lambda partial: save_file({"a": np.zeros(2)}, partial, STATED), before=before)
    assert before.read_bytes() == first
    assert sorted(one.name for one in tmp_path.iterdir()) == ["before.safetensors", "state.safetensors"]
    for number, changed in enumerate(flipped(first)):
        if number % 7 == 0:
            path.write_bytes(changed)
            with pytest.raises(DamagedError, match=r"state\.safetensors is damaged: it differs from what was written"):
                check_sealed_file(path)


def load_stated(content):
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length])["__metadata__"]["stated"]


def test_of_a_file_without_a_digest_it_is_said_that_versions_before_wrote_such(tmp_path):
    path = tmp_path / "training.json"
    path.write_bytes(b'{"version": 1}')
    for read in (check_sealed_file, lambda path: parsed_sealed_json(path.read_bytes(), path)):
        with pytest.raises(DamagedError, match=r"is damaged: .*it contains no SHA-256"):
            read(path)


def test_a_file_that_cannot_be_written_leaves_the_one_before(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"whole")

    def full(partial):
        partial.write_bytes(b"half")
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        write_sealed_file(path, full, before=tmp_path / "before")
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [b"whole"]


def test_lines_are_torn_changed_or_of_something_else():
    line = sealed_line([1, "a", {"b": None}], "mine")
    assert parsed_line(line, "mine") == [1, "a", {"b": None}]
    with pytest.raises(DamagedError, match="its digest does not match its text"):
        parsed_line(line, "yours")
    for torn in (line[:-5], b"[]", b"{}", b'["a", 1]', b'{"prompt": "a", "answer": "b"}', b"[" * 20_000):
        with pytest.raises(TornError, match="this line cannot be read"):
            parsed_line(torn, "mine")
    text = sealed_line("\ud83d\ude00", "mine")
    for changed in [*flipped(line[:-1]), *flipped(text[:-1])]:
        try:
            assert parsed_line(changed, "mine") in ([1, "a", {"b": None}], "\U0001f600")
        except DamagedError:
            continue
