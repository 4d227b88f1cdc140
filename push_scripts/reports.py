"""The effect of a push or a submission, or of its dry run, as lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from audio_compositionality.evaluator.submissions.layout import ANSWERS
from audio_compositionality.hub.content import Commit, Push, size_of
from audio_compositionality.support.text import number_text, plain
from audio_compositionality.tasks.registry import load_task

from .baselines import MissingBaselines
from .dataset import DatasetPush
from .submit import Submitted


def dataset_lines(push: DatasetPush) -> list[str]:
    """Lines about `push_dataset`."""
    lines, name = _push_lines([push]), push.repository.id
    if push.replaced:
        stored = ", ".join(f"{recipe} {fingerprint[:12]}" for recipe, fingerprint in push.replaced.items())
        note = (
            f"note: {name} holds other data, fingerprint {stored}; they stay in its history, and results on them "
            "cannot be compared with results on the new data"
        )
        lines = [note, *lines]
    if _is_on_main(push.commit):
        lines += [f'load_dataset("{name}", "{recipe}") reads it, and so does --data.' for recipe in push.recipes]
    return lines


def metric_lines(pushes: Sequence[Push]) -> list[str]:
    """Lines about `push_metrics`."""
    lines = _push_lines(pushes)
    return lines + [f'evaluate.load("{push.repository.id}") loads it.' for push in pushes if _is_on_main(push.commit)]


def leaderboard_lines(pushes: Sequence[Push]) -> list[str]:
    """Lines about `push_leaderboard`."""
    lines = _push_lines(pushes)
    if all(push.commit is None for push in pushes):
        return lines
    results, space = pushes
    return [
        *lines,
        "The Space needs two secrets to check pull requests: HF_TOKEN, a token with the right to write to "
        f"{results.repository.id}, and AUDIO_COMPOSITIONALITY_SECRET, random text of 32 characters or more, with which "
        f"it signs its records; set both at {space.repository.url}/settings",
    ]


def submission_lines(submitted: Submitted) -> list[str]:
    """Lines about `submit_results`."""
    lines = []
    for made in submitted.submissions:
        sent = made.result
        local = made.local or sent
        how = "characters that cannot be sent were replaced" if ANSWERS in made.files else "rounding to 16 bits"
        before = "" if local.score == sent.score else f" ({number_text(local.score, 6)} before {how})"
        title = load_task(sent.task).info.title
        lines.append(f"{plain(sent.model.id)}, {title}: {number_text(sent.score, 6)}{before}")
        if submitted.dry_run:
            lines += _listed({f"{made.folder}/{name}": size_of(content) for name, content in made.files.items()})
    if submitted.dry_run:
        lines.append(f"Nothing was sent. Without --dry-run this opens a pull request on {submitted.repository.id}.")
        if submitted.models:
            lines.append(f"--model-card opens others on {', '.join(model.id for model in submitted.models)}.")
    elif submitted.commit is None:
        lines.append(f"Already submitted: {submitted.url}")
    elif _is_on_main(submitted.commit):
        how = "as reported until its Space has recomputed them" if submitted.commit.changes else "as before"
        lines.append(f"On the leaderboard, {how}: {submitted.url}")
    else:
        lines.append(f"Submitted: {submitted.url}")
    return lines + [
        f"On the page of {model.id}, once its owners merge it: {commit.url}"
        for model, commit in submitted.models.items()
        if commit is not None
    ]


def baseline_lines(missing: MissingBaselines) -> list[str]:
    """Lines about `missing_baselines` in a dry run: the results to score and send."""
    name, sizes = f"{missing.repository}, baselines on {missing.preset}", missing.sizes
    if not missing:
        return [f"{name}: nothing to send, no result is missing"]
    sent = f"{len(sizes)} results to score and send, with embeddings of {size_text(sum(sizes.values()))}"
    return [f"{name}: {sent}", *_listed(sizes)]


def _is_on_main(commit: Commit | None) -> bool:
    return commit is not None and commit.pull_request is None


def _push_lines(pushes: Iterable[Push]) -> list[str]:
    lines = []
    for push in pushes:
        changes, commit = push.changes, push.commit
        sent = f"{len(changes.send)} files to send, {size_text(sum(changes.send.values()))}"
        if commit is None:
            lines += [f"{push.repository}: {sent}", *_listed(changes.send)]
            lines += [f"  {'deleted':>10}  {plain(path)}" for path in changes.delete]
            lines += [f"  {len(changes.same)} files unchanged"] if changes.same else []
        elif changes:
            gone = f", {len(changes.delete)} deleted" if changes.delete else ""
            there = f", {len(changes.same)} unchanged" if changes.same else ""
            lines.append(f"{push.repository}: {sent.replace('to send', 'sent')}{there}{gone}: {commit.url}")
        else:
            same = f"nothing to send, all {len(changes.same)} files are up to date ({commit.url})"
            lines.append(f"{push.repository}: {same}")
    return lines


def _listed(files: Mapping[str, int]) -> list[str]:
    return [f"  {size_text(size):>10}  {path}" for path, size in files.items()]


def size_text(size: float) -> str:
    """A size in bytes for people, in powers of 1,000."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
