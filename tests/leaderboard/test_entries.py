from dataclasses import replace

from audio_compositionality.leaderboard.board import Board, DataKey, is_older

OLD, NEW = "2026-01-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00"


def shown(entries, version=1):
    return {(row.entry.id, row.count) for row in Board("c", tuple(entries), ()).rows("a_coat", key(version))}


def key(version=1, fingerprint="ab" * 32):
    return DataKey(fingerprint, version)


def test_the_newest_is_shown_and_the_others_are_kept(make_entry):
    old, new = make_entry("org/one", 0, date=OLD), make_entry("org/one", 1, date=NEW)
    assert shown([old, new]) == shown([new, old]) == {(new.id, 2)}
    board = Board("c", (old, new), ())
    assert [entry.id for entry in board.of_model("org/one")] == [new.id, old.id]
    assert board.in_table == {new.id}


def test_a_reported_one_never_takes_the_place_of_a_verified_one(make_entry):
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


def test_status_is_what_the_checker_says(make_entry):
    entry = make_entry("org/one")
    assert entry.status == "reported"
    assert replace(entry, verified_on=NEW).status == "verified"
