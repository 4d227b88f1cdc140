"""What a pull request may add, and the limits of time of its checks."""

from __future__ import annotations

import hashlib
import math
import os
import time
from pathlib import Path

import pytest
from board_entries import below, entry, folder, made_up

from audio_compositionality.evaluator.results.result import Result, ResultError
from audio_compositionality.evaluator.submissions.layout import MAX_ENTRIES
from audio_compositionality.hub.content import RemoteFile
from audio_compositionality.hub.errors import HubError
from audio_compositionality.leaderboard.examination import (
    DiedError,
    KnownEntry,
    OverdueError,
    as_code,
    in_own_process,
    original_of,
)
from audio_compositionality.leaderboard.pull_requests import Budget, new_entries

README = {"README.md": b"card", ".gitattributes": b"*.safetensors"}


def tree(files):
    return {
        path: RemoteFile(path, len(content), f"sha256:{hashlib.sha256(content).hexdigest()}")
        for path, content in files.items()
    }


def check(head, base=README, main=None):
    """The folders of the entries that are added to what is there, and the reasons against it."""
    base = {**README, **base}
    folders, reasons = new_entries(tree(base), tree({**base, **head}), tree({**base, **(main or {})}))
    return sorted(item.path for item in folders), reasons


def complete(encoder, number=0, embeddings=None):
    content = embeddings if embeddings is not None else f"embeddings of {encoder}".encode()
    return entry(encoder, number, embeddings=content)


def test_new_entries_are_found():
    one, two = made_up("org/one", embeddings=b"1"), made_up("org/two", 1)
    paths, reasons = check({**below(folder(one), one), **below(folder(two), two)})
    assert paths == [folder(one), folder(two)]
    assert reasons == []


def test_what_is_there_stays():
    there = complete("org/one")
    changed = {path: content + b" " for path, content in there.items() if path.endswith("result.json")}
    _, reasons = check(changed, base=there)
    assert len(reasons) == 1
    assert "it changes `results/org__one/1/a_coat-" in reasons[0]
    folders, reasons = new_entries(tree({**README, **there}), tree(README), tree({**README, **there}))
    assert folders == []
    assert len(reasons) == 3
    assert all("it deletes" in reason for reason in reasons)
    bare = entry("org/two")
    _, reasons = check({f"{next(iter(bare)).rsplit('/', 1)[0]}/embeddings.safetensors": b"x"}, base=bare)
    assert any("exists already" in reason for reason in reasons), "a file that an entry lacked is not added to it"
    _, reasons = check({"README.md": b"another card"})
    assert reasons == ["it changes `README.md`; nothing is ever replaced or deleted here"]


def test_an_entry_that_main_got_meanwhile():
    one = complete("org/one")
    paths, reasons = check(one, main=one)
    assert len(paths) == 1
    assert reasons == []
    for path in one:
        _, reasons = check(one, main={**one, path: b"other"})
        assert any("exists already" in reason for reason in reasons)


@pytest.mark.parametrize("path", ["app.py", "results/<img src=x>/1/a_coat-0123456789abcdef/result.json\n"])
def test_other_files(path):
    _, reasons = check({**complete("org/good"), path: b"{}"})
    assert any("is not a file of an entry" in reason for reason in reasons)
    assert all(reason.isprintable() for reason in reasons)


def test_nobody_else_writes_verifications_and_half_an_entry_is_none():
    files = made_up("org/one", embeddings=b"1")
    _, reasons = check({f"{folder(files, 'verified')}/verification.json": b"{}", **below(folder(files), files)})
    assert any("only the checker writes to verified/" in reason for reason in reasons)
    for name in ("result.json", "samples.csv"):
        rest = {other: content for other, content in files.items() if other != name}
        assert any(f"it has no {name}" in reason for reason in check(below(folder(files), rest))[1])


def test_sizes_are_known_before_anything_is_fetched():
    files = made_up("org/one", embeddings=b"1")
    head = tree(below(folder(files), files))
    path = f"{folder(files)}/embeddings.safetensors"
    head[path] = RemoteFile(path, 64_000_001, head[path].digest)
    _, reasons = new_entries({}, head, {})
    assert reasons == [
        f"`{folder(files)}`: `embeddings.safetensors has 64,000,001 bytes; at most 64,000,000 are allowed`"
    ]


def test_too_many_at_once_and_nothing():
    files = {path: b"1" for number in range(MAX_ENTRIES + 1) for path in complete(f"org/e{number}")}
    paths, reasons = check(files)
    assert paths == []
    assert reasons == [f"it adds {MAX_ENTRIES + 1} entries; at most {MAX_ENTRIES} can be in one pull request"]
    assert check({})[1] == ["it adds nothing"]


def test_quoted_text_neither_formats_nor_calls():
    assert as_code("a`b @everyone\n<!-- x -->") == "`a‘b @everyone <!-- x -->`"
    assert len(as_code("x" * 10_000)) < 400


def test_the_original_is_the_first_that_was_checked_with_the_same_outputs_or_weights():
    def known(name, outputs, day, date="2026-01-01T00:00:00+00:00", **model):
        result = Result.loads(made_up(name, model=model, date=date)["result.json"])
        return KnownEntry(f"results/{name}", result, outputs, f"2026-02-{day:02}T00:00:00+00:00")

    weights = {"weights_sha256": "a" * 64}
    new = known("org/new", "x", 9, **weights)
    # The submission's own date is its submitter's word.
    late = known("org/late", "x", 5, date="1999-01-01T00:00:00+00:00")
    first, same = known("org/first", "x", 2), known("org/same", "y", 3, **weights)
    assert original_of(new, [late, first, same]) == (first, "the same outputs, byte for byte")
    assert original_of(new, [same]) == (same, "the same digest of the weights")
    options = {"layer": 3, "pooling": None, "precision": "float32", "compile": False}
    other_task = Result.loads(made_up("org/new", task="a_tre", model=weights)["result.json"])
    for other in (
        known("org/other", "y", 1),
        known("untrained:org/new", "y", 1, **weights),
        known("org/layer", "y", 1, options=options, **weights),
        KnownEntry("results/x", other_task, "x", first.date),
    ):
        assert original_of(new, [other]) is None
    assert original_of(known("org/none", "z", 9), [known("org/other", "y", 1)]) is None


def _raise(error):
    raise error


@pytest.mark.slow
def test_what_a_function_returns_or_raises_arrives_and_a_process_that_dies_or_takes_too_long_is_told_of(monkeypatch):
    # The fresh process imports this module, from where it stands.
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    error = HubError("gone", 404)
    with pytest.raises(HubError, match="gone") as caught:
        in_own_process(_raise, error, seconds=120)
    assert vars(caught.value) == vars(error)
    started = time.monotonic()
    with pytest.raises(OverdueError, match="ended after 1 s"):
        in_own_process(time.sleep, 600, seconds=1)
    assert time.monotonic() - started < 300
    assert in_own_process(math.hypot, 3, 4, seconds=60) == 5
    with pytest.raises(DiedError, match="exit code 7"):
        in_own_process(os._exit, 7, seconds=60)


def test_an_author_has_so_much_time_and_no_more_even_where_a_check_fails():
    now = [0.0]
    budget = Budget(seconds=10, window=100, clock=lambda: now[0])
    assert not budget.is_spent("eve")
    with budget.spending("eve"):
        now[0] += 6
    assert not budget.is_spent("eve")

    def fails():
        with budget.spending("eve"):
            now[0] += 6
            raise ResultError("bad")

    with pytest.raises(ResultError):
        fails()
    assert budget.is_spent("eve")
    assert not budget.is_spent("bob")
    now[0] = 107
    assert not budget.is_spent("eve")
