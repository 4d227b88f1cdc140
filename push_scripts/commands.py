"""The commands that write to the Hub: call the library, say what was done."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping

from audio_compositionality.evaluator.compare.table import TITLES, number, plain
from audio_compositionality.hub import Changes, Commit
from audio_compositionality.hub.names import leaderboard_of, results_of

from .dataset import push_dataset
from .spaces import SpacePush, push_leaderboard, push_metrics
from .submit import submit_results


def run_push_dataset(options: argparse.Namespace) -> None:
    """`push dataset`."""
    pushed = push_dataset(
        options.folder,
        options.org,
        private=options.private,
        pull_request=options.create_pr,
        dry_run=options.dry_run,
    )
    if pushed.replaced is not None:
        print(
            f"note: {pushed.repository} has other data, fingerprint {pushed.replaced[:12]}; they stay in its history, "
            "and results on them are not results on these"
        )
    _tell(f"dataset {pushed.repository}", pushed.changes, pushed.commit)
    if not (options.dry_run or options.create_pr):
        print(f'load_dataset("{pushed.repository}", "a_coat", split="test") reads it, and so does --data.')


def run_push_metrics(options: argparse.Namespace) -> None:
    """`push metrics`."""
    pushed = push_metrics(options.org, private=options.private, pull_request=options.create_pr, dry_run=options.dry_run)
    _tell_all(pushed)
    if not (options.dry_run or options.create_pr):
        for push in pushed:
            print(f'evaluate.load("{push.repository.id}") loads it.')


def run_push_leaderboard(options: argparse.Namespace) -> None:
    """`push leaderboard`."""
    _tell_all(
        push_leaderboard(options.org, private=options.private, pull_request=options.create_pr, dry_run=options.dry_run)
    )
    if options.dry_run:
        return
    print(
        f"The Space checks pull requests where its secret HF_TOKEN is a token that may write to "
        f"{results_of(options.org).id}: set it at {leaderboard_of(options.org).url}/settings"
    )


def run_submit(options: argparse.Namespace) -> None:
    """`submit`."""
    submitted = submit_results(
        options.results,
        options.org,
        data=options.data,
        embeddings=options.embeddings,
        with_embeddings=not options.without_embeddings,
        paradigm=options.paradigm,
        licence=options.licence,
        model_card=options.model_card,
        device=options.device,
        dry_run=options.dry_run,
    )
    for made in submitted.submissions:
        sent = made.result
        local = made.local or sent
        changed = "" if local.score == sent.score else f" ({number(local.score, 6)} before rounding to 16 bits)"
        print(f"{plain(sent.encoder_id)}, {TITLES[sent.task]}: {number(sent.score, 6)}{changed}")
        if options.dry_run:
            _list({f"{made.folder}/{name}": len(content) for name, content in made.files.items()})
    if options.dry_run:
        print(f"Nothing was sent. Without --dry-run this becomes a pull request on {submitted.repository.id}.")
        if options.model_card:
            print(f"--model-card opens others on {', '.join(model.id for model in submitted.models)}.")
    elif submitted.commit is None:
        print(f"These results are submitted already: {submitted.url}")
    else:
        print(f"Submitted: {submitted.url}")
    for model, commit in submitted.models.items():
        if commit is not None:
            print(f"On the page of {model.id}, once its owners merge it: {commit.url}")


def _tell_all(pushes: Iterable[SpacePush]) -> None:
    for push in pushes:
        _tell(str(push.repository), push.changes, push.commit)


def _tell(name: str, changes: Changes, commit: Commit | None) -> None:
    if commit is None:
        print(f"{name}: {len(changes.send)} files to send, {_size(sum(changes.send.values()))}")
        _list(changes.send)
        for path in changes.delete:
            print(f"  {'deleted':>10}  {plain(path)}")
        if changes.same:
            print(f"  {len(changes.same)} files are there already")
        return
    if not changes:
        print(f"{name}: nothing to send, all {len(changes.same)} files are there already ({commit.url})")
        return
    gone = f", {len(changes.delete)} deleted" if changes.delete else ""
    there = f", {len(changes.same)} were there already" if changes.same else ""
    print(f"{name}: {len(changes.send)} files sent, {_size(sum(changes.send.values()))}{there}{gone}: {commit.url}")


def _list(files: Mapping[str, int]) -> None:
    for path, size in files.items():
        print(f"  {_size(size):>10}  {path}")


def _size(size: float) -> str:
    """A size in bytes as people read it, in powers of 1,000."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
