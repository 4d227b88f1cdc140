"""The board: the entries that it shows, how it reads a repository of strangers' files, the thread that reads it."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time

import numpy as np
import pytest
from board_entries import SECRET, below, entry, folder, made_up, verification
from submissions import written

from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.task_verdicts import Standing, task_verdicts
from audio_compositionality.evaluator.results.result import Result, SampleTable, save_result
from audio_compositionality.hub.content import RemoteFile
from audio_compositionality.hub.errors import HubError, Repository
from audio_compositionality.leaderboard import board as module
from audio_compositionality.leaderboard.board import Board, DataKey, is_older
from audio_compositionality.leaderboard.reading import EMPTY_BOARD, BoardReader, BoardSource
from audio_compositionality.leaderboard.standings import (
    data_names,
    model_conclusion,
    standing_columns,
    standing_html,
    standing_rows,
)

OLD, NEW = "2026-01-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00"


def shown(entries, version=1):
    return {(row.entry.id, row.count) for row in Board("c", tuple(entries), ()).rows("a_coat", key(version))}


def key(version=1, fingerprint="ab" * 32, rows_digest="ab" * 32):
    return DataKey(fingerprint, version, rows_digest)


def test_the_newest_is_shown_and_the_others_are_kept(make_entry):
    old, new = make_entry("org/one", 0, date=OLD), make_entry("org/one", 1, date=NEW)
    assert shown([old, new]) == shown([new, old]) == {(new.id, 2)}
    board = Board("c", (old, new), ())
    assert [entry.id for entry in board.of_model("org/one")] == [new.id, old.id]
    assert board.in_table == {new.id}


def test_entries_of_rows_that_were_drawn_otherwise_are_not_ranked_together(make_entry):
    mini = open_data("mini").configuration("a_coat")
    of_mini = {"fingerprint": mini.fingerprint, "ids": [row["id"] for row in mini.rows]}
    now = make_entry("org/one", 0, rows_digest=mini.rows_digest, **of_mini)
    other, third = (make_entry(f"org/{one}", 1, rows_digest=one * 64, **of_mini) for one in "ab")
    board = Board("c", (now, other, third), ())
    assert [len(board.rows("a_coat", data)) for data in board.data["a_coat"]] == [1, 1, 1]
    assert len({str(data) for data in board.data["a_coat"]}) == 3
    # Only the preset's own rows have its name, and its facts about samples.
    of_others = {f"mini (data {mini.fingerprint[:8]}-{one * 8})" for one in "ab"}
    assert set(board.data_names.values()) == {"mini", *of_others}
    assert [module.sample_facts(one.result).samples is None for one in (now, other)] == [False, True]


def test_a_reported_one_never_takes_the_place_of_a_verified_one(make_entry):
    assert [make_entry("org/one", verified_on=on).status for on in (None, OLD)] == ["reported", "verified"]
    verified = make_entry("org/one", 0, verified_on=OLD, date=OLD)
    later = make_entry("org/one", 1, date="9999-12-31T23:59:59+00:00")
    assert shown([verified, later]) == {(verified.id, 2)}
    again = make_entry("org/one", 2, verified_on=NEW, date=OLD)
    assert shown([verified, later, again]) == {(again.id, 3)}


def test_nobody_takes_the_place_of_another_s_entry(make_entry):
    eve = make_entry("org/one", 0, verified_on=OLD, submitter="eve")
    bob = make_entry("org/one", 1, verified_on=NEW, submitter="bob")
    again = make_entry("org/one", 2, verified_on=NEW, submitter="eve")
    reported = make_entry("org/one", 3, date=NEW)
    assert shown([eve, bob, again, reported]) == {(again.id, 2), (bob.id, 1), (reported.id, 1)}


def test_other_revisions_options_tasks_and_data_have_rows_of_their_own(make_entry):
    one = make_entry("org/one")
    options = {"layer": 3, "pooling": None, "precision": "float32", "compile": False}
    others = [
        make_entry("org/one", model={"revision": "2"}),
        make_entry("org/one", model={"options": options}),
        make_entry("org/two"),
    ]
    elsewhere = [make_entry("org/one", task="a_tre"), make_entry("org/one", fingerprint="cd" * 32)]
    entries = [one, *others, *elsewhere]
    assert shown(entries) == {(entry.id, 1) for entry in (one, *others)}
    board = Board("c", tuple(entries), ())
    assert board.data == {"a_coat": (key(), key(fingerprint="cd" * 32)), "a_tre": (elsewhere[0].data,)}
    assert board.models == ("org/one", "org/two")
    assert len(board.of_model("org/one")) == 5
    assert board.in_table == {entry.id for entry in entries}


def test_another_version_of_a_task_is_shown_apart_and_after_the_installed_one(make_entry):
    now = make_entry("org/one", 1)
    older = [make_entry("org/one", number, task_version=now.result.task_version + 1) for number in (2, 3)]
    board = Board("c", (now, *older), ())
    installed, other = board.data["a_coat"]
    assert (installed, is_older("a_coat", installed)) == (now.data, False)
    assert (other, is_older("a_coat", other)) == (older[0].data, True)
    assert [row.entry.id for row in board.rows("a_coat", installed)] == [now.id]
    assert [row.count for row in board.rows("a_coat", other)] == [2]


EMBEDDINGS = b"of all clips"


class MemoryHub:
    """A repository in memory: content by path, and what was asked of it."""

    def __init__(self, folder, files):
        self.folder = folder
        self.contents = dict(files)
        self.asked = []
        self.broken = {}

    def head(self, repository, revision="main"):
        self.asked.append("head")
        return hashlib.sha1(repr(sorted(self.contents.items())).encode()).hexdigest()

    def files(self, repository, revision="main"):
        self.asked.append("files")
        return {
            path: RemoteFile(
                path,
                len(content),
                f"sha256:{hashlib.sha256(content).hexdigest()}"
                if path.endswith(".safetensors")
                else f"git:{hashlib.sha1(b'blob %d' % len(content) + bytes(1) + content).hexdigest()}",
            )
            for path, content in self.contents.items()
        }

    def download(self, repository, path, revision="main", *, limit):
        self.asked.append(path)
        if path in self.broken:
            raise self.broken[path]
        assert len(self.contents[path]) <= limit
        place = self.folder / hashlib.sha256(path.encode()).hexdigest()
        place.write_bytes(self.contents[path])
        return place


@pytest.fixture
def read(tmp_path):
    """`read(files)` -> the board of a repository with these files, and its Hub and reader."""

    def read(files, secret=SECRET) -> tuple[Board, MemoryHub, BoardReader]:
        hub = MemoryHub(tmp_path, files)
        reader = BoardReader(hub, Repository("dataset", "lab/results"), secret)
        return reader(), hub, reader

    return read


def only(items):
    assert len(items) == 1
    return items[0]


class TestGood:
    def test_a_reported_entry(self, read):
        files = made_up("org/one", embeddings=EMBEDDINGS)
        page = {"README.md": b"", ".gitattributes": b""}
        board, _, _ = read(page)
        assert (board.entries, board.rejected) == ((), ())
        board, _, _ = read({**page, **below(folder(files), files)})
        shown = only(board.entries)
        stated = json.loads(files["result.json"])
        assert (shown.folder, shown.status, shown.is_verifiable) == (folder(files), "reported", True)
        assert shown.result.score == stated["measures"]["a_coat"]
        assert shown.scores["a_coat"].interval == tuple(stated["intervals"]["a_coat"])
        assert shown.submitter is None
        assert shown.samples == f"{folder(files)}/samples.csv"
        assert board.rejected == ()

    def test_a_verified_entry_shows_what_the_checker_computed(self, read):
        files = made_up("org/one", embeddings=EMBEDDINGS)
        reported = json.loads(files["result.json"])["measures"]["a_coat"]
        computed = reported + 1e-7
        board, _, _ = read({**below(folder(files), files), **verification(files, score=computed, submitter="eve")})
        shown = only(board.entries)
        assert (shown.status, shown.submitter) == ("verified", "eve")
        assert (shown.result.score, shown.reported.score) == (computed, reported)
        assert shown.samples == f"{folder(files, 'verified')}/samples.csv"
        assert board.rejected == ()

    def test_an_older_version_of_a_task_stays_verified(self, read):
        # What another version may differ by is not known, but the record is signed.
        files = made_up("org/one", embeddings=EMBEDDINGS, task_version=99)
        board, _, _ = read({**below(folder(files), files), **verification(files)})
        shown = only(board.entries)
        assert (shown.status, shown.data.version, board.rejected) == ("verified", 99, ())


class TestFetching:
    def test_only_json_and_the_shown_samples_are_fetched_and_only_what_is_new(self, read):
        first = made_up("org/one", embeddings=EMBEDDINGS)
        board, hub, reader = read({**below(folder(first), first), **verification(first)})
        assert hub.asked.count("head") == hub.asked.count("files") == 1
        fetched = [path for path in hub.asked if "/" in path]
        assert len(fetched) == 4
        samples = f"{folder(first, 'verified')}/samples.csv"
        assert [path for path in fetched if not path.endswith(".json")] == [samples]
        hub.asked.clear()
        assert reader() is board
        assert hub.asked == ["head"]
        second = made_up("org/two", 1)
        hub.contents |= below(folder(second), second)
        hub.asked.clear()
        assert {entry.model for entry in reader().entries} == {"org/one", "org/two"}
        fetched = [f"{folder(second)}/{name}" for name in ("result.json", "samples.csv")]
        assert hub.asked == ["head", "files", *fetched]

    def test_what_was_fetched_before_a_rate_limit_is_not_fetched_again(self, read):
        """Trouble of the Hub is no fault of a file."""
        files = {path: content for number in range(40) for path, content in entry(f"org/e{number}", number).items()}
        _, hub, reader = read({})
        wanted = [path for path in files if path.endswith("json")]
        hub.contents |= files
        hub.broken = {path: HubError("too many requests", 429) for path in wanted[20:]}
        hub.asked.clear()
        with pytest.raises(HubError):
            reader()
        # Those that were under way when the first was refused were asked for; no more are.
        assert set(wanted[:20]) <= set(hub.asked)
        assert len(set(wanted[20:]) & set(hub.asked)) <= 8
        hub.broken.clear()
        hub.asked.clear()
        assert len(reader().entries) == 40
        assert sorted(path for path in hub.asked if path.endswith(".json")) == sorted(wanted[20:])

    def test_a_file_that_the_hub_does_not_give(self, read):
        _, hub, reader = read(entry("org/one"))
        other = entry("org/two", 1)
        path = next(path for path in other if path.endswith("json"))
        hub.contents |= other
        hub.broken = {path: HubError("there is no such thing", 404)}
        board = reader()
        assert len(board.entries) == 1
        assert "cannot be fetched" in only(board.rejected).reason
        hub.broken.clear()
        hub.contents["README.md"] = b"another commit"
        assert len(reader().entries) == 2


def _other_json(content):
    files = made_up("org/bad")
    changed = {**files, "result.json": content}
    return below(folder(files).replace("org__bad", "org__worse"), changed)


def _of_task(name):
    files = made_up("org/bad")
    files["result.json"] = written(json.loads(files["result.json"]) | {"task": name})
    return below(folder(files), files)


def _changed(name, content):
    files = made_up("org/bad", embeddings=EMBEDDINGS)
    return below(folder(files), {**files, name: content})


BAD = {
    "no JSON": (_other_json(b"{"), "not JSON"),
    "too large": (_other_json(b" " * 100_001), r"100,001 bytes; at most 100,000"),
    "hidden characters": (entry("org/bad", model={"paradigm": "a\u202eb"}), "cannot be printed"),
    "a task that is not installed": (_of_task("b_coat"), "unknown task 'b_coat'; did you mean 'a_coat'"),
    "another's folder": (
        below(folder(made_up("org/bad")).replace("org__bad", "openai__whisper"), made_up("org/bad")),
        "belongs to results/org__bad/1",
    ),
    "changed later": (_changed("embeddings.safetensors", b"others"), "belongs to"),
    "no samples": (
        {path: content for path, content in entry("org/bad").items() if path.endswith("json")},
        r"has no samples.csv",
    ),
    "a file too much": ({f"{folder(made_up('org/bad'))}/run.py": b"", **entry("org/bad")}, "not a file of a result"),
    "in another place": ({"results/../../etc/passwd": b"", "other/result.json": b"{}"}, "in the wrong place"),
    "a verification of nothing": (verification(made_up("org/bad", embeddings=EMBEDDINGS)), "entry that does not exist"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_listed_and_the_rest_is_shown(read, name):
    files, reason = BAD[name]
    board, _, _ = read({**entry("org/good"), **files})
    assert "org/good" in {entry.model for entry in board.entries}
    assert any(re.search(reason, item.reason) for item in board.rejected), board.rejected
    assert all(item.reason.isprintable() and item.path.isprintable() for item in board.rejected)
    if name != "a file too much":
        assert len(board.entries) == 1


def _replaced(files, name, change):
    place = f"{folder(files, 'verified')}/{name}"
    forged = verification(files, submitter="eve")
    return forged | {place: change(forged[place])}


def _with_score(content):
    values = json.loads(content)
    values["measures"]["a_coat"] = 0.99
    return written(values)


def _moved(files, other):
    """The verification of other files, in the place of these."""
    return below(
        folder(files, "verified"),
        {path.rsplit("/", 1)[1]: content for path, content in verification(other).items()},
    )


def _without_result(files):
    return {path: content for path, content in verification(files).items() if not path.endswith("result.json")}


FORGED = {
    "nobody signed it": (lambda files: verification(files, secret=None), "it has no signature"),
    "somebody else signed it": (
        lambda files: verification(files, secret="another secret, of as many words"),
        "not the checker's",
    ),
    "a changed record": (
        lambda files: _replaced(files, "verification.json", lambda content: content.replace(b'"eve"', b'"bob"')),
        "not the checker's",
    ),
    "another score beside the record": (
        lambda files: _replaced(files, "result.json", _with_score),
        "not the file named in verification.json",
    ),
    "the verification of another entry": (
        lambda files: _moved(files, made_up("org/one", 3, embeddings=b"others")),
        "the record of other files",
    ),
    "without its result": (_without_result, "has no result.json"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_verification_makes_no_entry_a_verified_one(read, name):
    files = made_up("org/one", embeddings=EMBEDDINGS)
    forge, reason = FORGED[name]
    board, _, _ = read({**below(folder(files), files), **forge(files)})
    assert only(board.entries).status == "reported"
    assert reason in only(board.rejected).reason
    assert only(board.rejected).reason.startswith("the entry counts as reported")


def test_without_embeddings_or_without_the_secret_nothing_is_verified(read):
    files = made_up("org/one", embeddings=EMBEDDINGS)
    bare = {name: content for name, content in files.items() if name != "embeddings.safetensors"}
    board, _, _ = read({**below(folder(bare), bare), **_moved(bare, files)})
    assert only(board.entries).status == "reported"
    assert "the record of other files" in only(board.rejected).reason
    board, _, _ = read({**below(folder(files), files), **verification(files)}, secret=None)
    assert only(board.entries).status == "reported"
    assert "its signature cannot be checked" in only(board.rejected).reason


def test_of_very_many_bad_files_some_are_listed(read):
    board, _, _ = read({f"spam/{number}": b"" for number in range(700)})
    assert len(board.rejected) == 501
    assert board.rejected[-1].reason == "and 200 more"


BOARD, NEXT = Board("1", (), ()), Board("2", (), ())


class Answers:
    """Gives one after the other, or raises it, then the last for ever; and when it was asked."""

    def __init__(self, *given):
        self.left = list(given)
        self.asked = []

    def __call__(self):
        self.asked.append(time.monotonic())
        answer = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def started():
    """`started(read, max_age, min_age)` -> a source whose thread runs until the test is over."""
    sources = []

    def start(*arguments):
        source = BoardSource(*arguments)
        sources.append(source)
        source.start()
        return source

    yield start
    for source in sources:
        source.stop()


def soon(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def test_visitors_see_what_there_is_before_and_while_it_is_read(started):
    begun, done = threading.Semaphore(0), threading.Semaphore(0)
    boards = [BOARD, NEXT]

    def read():
        begun.release()
        assert done.acquire(timeout=30)
        return boards.pop(0)

    source = BoardSource(read)
    assert source.last.board is EMPTY_BOARD
    assert source.pending
    source = started(read, 600, 0)
    assert begun.acquire(timeout=30)
    assert (source.last.board, source.last.at) == (EMPTY_BOARD, None)
    assert source.pending
    done.release()
    soon(lambda: not source.pending)
    assert source.last.board is BOARD
    source.expire()
    assert begun.acquire(timeout=30)
    assert source.last.board is BOARD
    assert source.pending
    done.release()
    soon(lambda: not source.pending)
    assert source.last.board is NEXT


def test_it_is_read_again_when_it_is_old(started):
    read = Answers(BOARD, NEXT)
    source = started(read, 0.2, 0.1)
    soon(lambda: len(read.asked) >= 4)
    assert source.last.board is NEXT
    assert min(second - first for first, second in zip(read.asked, read.asked[1:], strict=False)) >= 0.19


def test_whoever_asks_does_not_wait_for_that_but_cannot_hammer(started):
    read = Answers(BOARD, NEXT)
    source = started(read, 600, 0.3)
    soon(lambda: source.last.board is BOARD)
    time.sleep(0.2)
    assert len(read.asked) == 1, "it is read again before it is old"
    for _ in range(10):
        source.expire()
    assert source.pending
    soon(lambda: source.last.board is NEXT)
    assert read.asked[1] - read.asked[0] >= 0.29
    time.sleep(0.4)
    assert len(read.asked) == 2
    assert not source.pending


def test_what_is_added_while_it_is_read_is_read_next(started):
    def read():
        if not boards:
            return NEXT
        source.expire()
        return boards.pop()

    boards = [BOARD]
    source = BoardSource(read, 600, 0)
    assert source.update().board is BOARD
    assert source.pending
    assert source.update().board is NEXT
    assert not source.pending


@pytest.mark.parametrize("error", [HubError("no answer"), RuntimeError("a mistake")])
def test_trouble_leaves_the_last_board_with_a_note_of_since_when(error):
    source = BoardSource(Answers(BOARD, error, error, NEXT))
    first, second, third, healed = (source.update() for _ in range(4))
    assert second.board is BOARD
    assert second.at == first.at
    assert ("no answer" in second.trouble) == isinstance(error, HubError)
    assert "a mistake" not in second.trouble
    assert third.since == second.since
    assert (healed.board, healed.trouble, healed.since) == (NEXT, None, None)
    source = BoardSource(Answers(error, BOARD))
    assert (source.update().board, source.last.at) == (EMPTY_BOARD, None)
    assert source.update().board is BOARD


HARD = 0.5 + 0.2 * np.random.default_rng(0).normal(size=60).clip(-2, 2)
GROUPS = np.repeat(np.arange(12), 5)


class TestPaired:
    @pytest.fixture
    def told(self, tmp_path):
        """Files of a model, its twin and a plain description, and the verdict of a report on them."""
        names = {"org/one": None, "untrained:org/one": "untrained"}
        names |= dict.fromkeys(("log-mel-statistics", "modulation-statistics"), "baseline")
        entries = [
            made_up(
                name,
                values=HARD - gap + 0.004 * np.random.default_rng(k).normal(size=60),
                clusters=GROUPS,
                model={"paradigm": paradigm},
                measures={"top1_chance": 0.01},
            )
            for k, ((name, paradigm), gap) in enumerate(zip(names.items(), (0, 0.055, 0.056, 0.056), strict=True))
        ]
        for files in entries:
            result = Result.loads(files["result.json"])
            save_result(tmp_path / "results", result, SampleTable.loads(files["samples.csv"]))
        (report,) = task_verdicts(only(compare_results([tmp_path / "results"])))
        return entries, report

    def test_board_and_report_say_the_same(self, read, told):
        entries, report = told
        board, _, _ = read({path: content for files in entries for path, content in _placed(files).items()})
        assert board.rejected == ()
        row = next(row for row in board.rows("a_coat", board.entries[0].data) if row.verdict)
        assert row.verdict.standings["twin"] is Standing.ABOVE
        assert row.verdict.rows == report.rows

    def test_where_the_samples_of_the_twin_cannot_be_read_nothing_can_be_told(self, read, told):
        entries, report = told
        _, hub, reader = read({})
        hub.contents |= {path: content for files in entries for path, content in _placed(files).items()}
        samples = f"{folder(entries[1])}/samples.csv"
        hub.broken = {samples: HubError("there is no such thing", 404)}
        board = reader()
        row = next(row for row in board.rows("a_coat", board.entries[0].data) if row.verdict)
        assert row.verdict.standings["twin"] is Standing.UNKNOWN
        assert row.verdict.standings["description"] is report.standings["description"]
        assert only(board.rejected).path == samples
        assert "there is no verdict with the entry" in only(board.rejected).reason
        assert "the samples of untrained:org/one cannot be read, or are others" in model_conclusion(board, "org/one")
        # It is asked for again, and the verdict is the report's then.
        hub.broken.clear()
        hub.contents["README.md"] = b"another commit"
        board = reader()
        row = next(row for row in board.rows("a_coat", board.entries[0].data) if row.verdict)
        assert row.verdict.rows == report.rows
        assert board.rejected == ()

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda samples: samples.replace(b"q0,", b"q0,1", 1), "SHA-256"),
            (lambda samples: samples + b"q99" + b",0.5" * 10 + b"\n" * 4_000_000, "at most 4,000,000 are read"),
        ],
    )
    def test_damaged_or_huge_samples_are_no_test_and_take_nothing_down(self, read, change, reason):
        files = made_up("org/one", values=HARD)
        place = f"{folder(files)}/samples.csv"
        board, _, _ = read({**_placed(files), place: change(files["samples.csv"])})
        assert only(board.entries).result.samples is None
        assert reason in only(board.rejected).reason

    def test_samples_of_other_means_than_the_stated_are_no_test(self, read):
        files = made_up("org/one", values=HARD, measures={"top1": 0.9})
        board, _, _ = read(_placed(files))
        assert only(board.entries).result.samples is None
        assert "is not the top1 of the result" in only(board.rejected).reason

    def test_each_model_is_tested_once_a_reading_and_by_no_visitor(self, read, monkeypatch):
        tested = []

        def counted(info, result, *others):
            tested.append(result.model.id)
            return judge(info, result, *others)

        judge = module.verdict_among
        monkeypatch.setattr(module, "verdict_among", counted)
        files = [made_up(name, values=HARD - gap) for name, gap in (("org/one", 0.0), ("untrained:org/one", 0.1))]
        _, hub, reader = read({path: content for one in files for path, content in _placed(one).items()})
        assert tested == []
        close = HARD + 0.01 * np.random.default_rng(2).normal(size=60)
        hub.contents |= _placed(made_up("org/two", values=close))
        board = reader()
        board.judge()
        assert len([row for row in board.rows("a_coat", board.entries[0].data) if row.verdict]) == 2
        said = only(board.order("a_coat", board.entries[0].data).sentences)
        assert re.match(r"org/(one and org/two|two and org/one) do not differ significantly: [+−]0\.00", said)
        shown = standing_columns(board, only(data_names(board)), "")
        assert f'<p class="orders">A-COAT: {said}</p>' in standing_html(shown, standing_rows(shown))
        assert sorted(tested) == ["org/one", "org/two"]


def _placed(files):
    return below(folder(files), files)
