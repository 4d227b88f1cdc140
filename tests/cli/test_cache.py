"""`cache`: what is kept, how large it is, and its removal."""

from __future__ import annotations

import pytest

from audio_compositionality.cli.cache import KEPT


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of two folders, with a file of somebody else beside them."""
    folder = tmp_path / "cache"
    for name, size in (("outputs", 3_000_000), ("weights", 500_000)):
        (folder / name / "deep").mkdir(parents=True)
        (folder / name / "deep" / "file").write_bytes(b"\0" * size)
    (folder / "mine.txt").write_text("mine", "utf-8")
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(folder))
    return folder


def test_each_folder_has_its_size_and_its_content(cache, run, capsys):
    assert run("cache") == 0
    printed = capsys.readouterr().out
    lines = {line.split()[0]: line.split()[1:3] for line in printed.splitlines() if line.split()[:1] and line[0] == " "}
    assert {name: lines[name] for name in KEPT} == {
        "outputs": ["3.0", "1"],
        "training-features": ["0.0", "0"],
        "weights": ["0.5", "1"],
        "written": ["0.0", "0"],
    }
    assert str(cache) in "".join(printed.split())


@pytest.mark.parametrize(
    ("what", "left"), [("outputs", {"weights"}), ("all", set()), ("written", {"outputs", "weights"})]
)
def test_only_what_is_named_is_deleted(cache, run, capsys, what, left):
    assert run("cache", "--clear", what) == 0
    assert {path.name for path in cache.iterdir()} == {"mine.txt", *left}
    freed = {"outputs": "3.0", "all": "3.5", "written": "0.0"}[what]
    *deleted, last = capsys.readouterr().out.splitlines()
    assert last == f"{freed} MB are free again."
    sizes = {"outputs": "3.0", "weights": "0.5"}
    assert deleted == [f"{cache / name}: deleted, {sizes[name]} MB" for name in sizes if name not in left]


def test_a_link_in_the_cache_is_cut_and_not_followed(cache, run, tmp_path):
    away = tmp_path / "away"
    away.mkdir()
    (away / "kept").write_text("kept", "utf-8")
    (cache / "outputs" / "link").symlink_to(away)
    assert run("cache", "--clear", "outputs") == 0
    assert (away / "kept").exists()


@pytest.mark.parametrize("what", ["weights", "all"])
def test_where_a_folder_is_a_link_nothing_is_deleted(cache, run, capsys, tmp_path, what):
    (cache / "weights").rename(tmp_path / "away")
    (cache / "weights").symlink_to(tmp_path / "away")
    assert run("cache", "--clear", what) == 2
    captured = capsys.readouterr()
    said = " ".join(captured.err.split())
    assert f"{cache / 'weights'} is a link to {tmp_path / 'away'}, so that nothing was deleted" in said
    assert captured.out == ""
    assert (tmp_path / "away" / "deep" / "file").exists()
    assert (cache / "outputs" / "deep" / "file").exists()


def test_a_file_in_place_of_a_folder_is_named(cache, run, capsys):
    (cache / "written").write_text("mine", "utf-8")
    assert run("cache", "--clear", "all") == 2
    assert f"{cache / 'written'} is a file and no folder" in " ".join(capsys.readouterr().err.split())
    assert (cache / "outputs" / "deep" / "file").exists()
