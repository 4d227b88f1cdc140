import hashlib
import json
import re

import pytest
from board_entries import SECRET, below, entry, folder, made_up, verification
from submissions import written

from audio_compositionality.hub.content import RemoteFile
from audio_compositionality.hub.errors import HubError, Repository
from audio_compositionality.leaderboard.board import Board, BoardReader

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
        board, _, _ = read({"README.md": b"", ".gitattributes": b"", **below(folder(files), files)})
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

    def test_nothing_is_there(self, read):
        board, _, _ = read({"README.md": b"", ".gitattributes": b""})
        assert (board.entries, board.rejected) == ((), ())


class TestFetching:
    def test_only_json_is_fetched_and_only_what_is_new(self, read):
        first = made_up("org/one", embeddings=EMBEDDINGS)
        board, hub, reader = read({**below(folder(first), first), **verification(first)})
        assert hub.asked.count("head") == hub.asked.count("files") == 1
        fetched = [path for path in hub.asked if "/" in path]
        assert len(fetched) == 3
        assert all(path.endswith(".json") for path in fetched)
        hub.asked.clear()
        assert reader() is board
        assert hub.asked == ["head"]
        second = made_up("org/two", 1)
        hub.contents |= below(folder(second), second)
        hub.asked.clear()
        assert {entry.model for entry in reader().entries} == {"org/one", "org/two"}
        assert hub.asked == ["head", "files", f"{folder(second)}/result.json"]

    def test_a_hub_in_trouble_is_no_fault_of_a_file(self, read):
        files = entry("org/one")
        _, hub, reader = read(files)
        other = entry("org/two", 1)
        hub.contents |= other
        hub.broken = {next(path for path in other if path.endswith("json")): HubError("no answer", 503)}
        with pytest.raises(HubError):
            reader()
        hub.broken.clear()
        assert len(reader().entries) == 2

    def test_what_was_fetched_before_a_rate_limit_is_not_fetched_again(self, read):
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
        assert sorted(path for path in hub.asked if "/" in path) == sorted(wanted[20:])

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


def _measured(value):
    return entry("org/bad", measures={"a_coat": value})


BAD = {
    "no JSON": (_other_json(b"{"), "not JSON"),
    "nested deep": (_other_json(b"[" * 100_000), "nested too deep"),
    "not UTF-8": (_other_json(b"\xff\xfe"), "utf-8"),
    "too large": (_other_json(b" " * 100_001), r"100,001 bytes; at most 100,000"),
    "a name twice": (_other_json(b'{"n": 1, "n": 2}'), "a name stands twice"),
    "NaN": (_measured(float("nan")), "NaN"),
    "text for a number": (_measured("high"), "measures.a_coat"),
    "a field more": (entry("org/bad", verified=True), "verified"),
    "hostile name": (entry("<img src=x onerror=alert(1)>"), "model.id is .<img src=x"),
    "hidden characters": (entry("org/bad", model={"paradigm": "a\u202eb"}), "cannot be printed"),
    "no date": (entry("org/bad", date="9999-99-99T99:99:99+00:00"), "its date is 9999-99-99T"),
    "a date of other digits": (entry("org/bad", date="２026-01-01T00:00:00+00:00"), "date"),
    "a date to come": (entry("org/bad", date="9999-12-31T23:59:59+00:00"), "still to come"),
    "long text": (entry("org/bad", model={"licence": "x" * 501}), "500"),
    "clips left out": (entry("org/bad", skipped=[{"id": "q/A", "reason": "hard"}]), "leaves out 1 clips"),
    "edited numbers": (_other_json(made_up("org/bad")["result.json"].replace(b"python", b"python3")), "digest"),
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
    "a file too much": ({f"{folder(made_up('org/bad'))}/run.py": b"", **entry("org/bad")}, "no file of a result"),
    "in another place": ({"results/../../etc/passwd": b"", "other/result.json": b"{}"}, "in no place for one"),
    "a verification of nothing": (verification(made_up("org/bad", embeddings=EMBEDDINGS)), "entry that is not there"),
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


class TestForgedVerifications:
    """None of them makes an entry a verified one."""

    @pytest.fixture
    def files(self):
        return made_up("org/one", embeddings=EMBEDDINGS)

    def check(self, read, files, forged, reason):
        board, _, _ = read({**below(folder(files), files), **forged})
        assert only(board.entries).status == "reported"
        assert reason in only(board.rejected).reason
        assert only(board.rejected).reason.startswith("the entry counts as reported")

    def test_nobody_signed_it(self, read, files):
        self.check(read, files, verification(files, secret=None), "nobody signed it")

    def test_somebody_else_signed_it(self, read, files):
        self.check(read, files, verification(files, secret="another secret, of as many words"), "not the checker's")

    def test_no_secret_is_known_here(self, read, files):
        board, _, _ = read({**below(folder(files), files), **verification(files)}, secret=None)
        assert only(board.entries).status == "reported"
        assert "its signature cannot be checked" in only(board.rejected).reason

    def test_a_record_that_contradicts_the_claim(self, read, files):
        self.check(read, files, verification(files, score=0.9), "it verifies nothing, since a_coat is")

    def test_a_changed_record(self, read, files):
        place = f"{folder(files, 'verified')}/verification.json"
        forged = verification(files, submitter="eve")
        forged[place] = forged[place].replace(b'"eve"', b'"bob"')
        self.check(read, files, forged, "not the checker's")

    def test_another_score_beside_the_record(self, read, files):
        forged = verification(files)
        place = f"{folder(files, 'verified')}/result.json"
        values = json.loads(forged[place])
        values["measures"]["a_coat"] = 0.99
        forged[place] = written(values)
        self.check(read, files, forged, "another file than verification.json speaks of")

    def test_the_verification_of_another_entry(self, read, files):
        other = made_up("org/one", 3, embeddings=b"others")
        forged = below(
            folder(files, "verified"),
            {path.rsplit("/", 1)[1]: content for path, content in verification(other).items()},
        )
        self.check(read, files, forged, "the record of other files")

    def test_no_json(self, read, files):
        forged = verification(files) | {f"{folder(files, 'verified')}/verification.json": b"verified!"}
        self.check(read, files, forged, "not JSON")

    def test_without_its_result(self, read, files):
        forged = verification(files)
        del forged[f"{folder(files, 'verified')}/result.json"]
        self.check(read, files, forged, "has no result.json")

    def test_of_an_entry_without_embeddings(self, read, files):
        bare = {name: content for name, content in files.items() if name != "embeddings.safetensors"}
        forged = below(
            folder(bare, "verified"),
            {path.rsplit("/", 1)[1]: content for path, content in verification(files).items()},
        )
        self.check(read, bare, forged, "the record of other files")


def test_of_very_many_bad_files_some_are_listed(read):
    board, _, _ = read({f"spam/{number}": b"" for number in range(700)})
    assert len(board.rejected) == 501
    assert board.rejected[-1].reason == "and 200 more"
