"""`push`: publish the data set, the metrics or the leaderboard on the Hub."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from audio_compositionality.support.errors import InputError

from . import arguments
from .arguments import GO_ON, Command
from .scoring import print_result

_DESCRIPTION = """\
Update repositories on the Hub to this version. Unchanged files are not sent again: the same command resumes an
interrupted push, and without differences nothing is committed.

The token is HF_TOKEN, or the one saved by `hf auth login`. It needs the role write, or, if fine-grained, write access
to the repositories of ORG.

--rehearse publishes nothing: it goes through the steps of a first publication, and prints what each would do or why it
would fail. docs/how-to/hub.md describes the steps.
"""

_EXAMPLES = """\
  audio-compositionality push --rehearse --org my-lab
      what a first publication would do, step by step, and its next command
  audio-compositionality push dataset audio-compositionality --org my-lab --dry-run
      what would be sent to my-lab/audio-compositionality, and how large it is
  audio-compositionality push metrics --org my-lab
      one Space per metric, for evaluate.load("my-lab/METRIC")
  audio-compositionality push leaderboard --org my-lab
      the Space my-lab/audio-compositionality-leaderboard, my-lab/audio-compositionality-results, and the baselines'
      results, so that the board is not empty
  audio-compositionality push leaderboard --org my-lab --benchmark axes
      with the results of the baselines that a verdict on the four axes needs
"""

_FOLDER = Path("audio-compositionality")

_TIMES = {"mini": "five to thirty minutes", "full": "twenty minutes to two hours"}
"""Time for scoring the baselines twice on two cores, quiet or busy: a submission is of rounded embeddings."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the kinds of pushes, each with its arguments."""
    parser.add_argument(
        "--rehearse",
        nargs="?",
        type=Path,
        const=_FOLDER,
        metavar="DIR",
        help="instead of WHAT: go through all steps of publishing the built folder DIR to --org, and send "
        "nothing; default audio-compositionality",
    )
    parser.add_argument("--org", metavar="ORG", help="organisation or user on the Hub, for --rehearse")
    whats = parser.add_subparsers(title="what to push", metavar="WHAT", dest="what")
    dataset = whats.add_parser(
        "dataset",
        help="a built folder, to the data set ORG/audio-compositionality",
        description="Check a built folder against its fingerprint, and update the data set "
        "ORG/audio-compositionality to it.",
    )
    dataset.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=_FOLDER,
        metavar="DIR",
        help="a folder that `build` has written; default audio-compositionality",
    )
    metrics = whats.add_parser(
        "metrics",
        help="the metrics, one Space each",
        description="Update each metric's Space: module, page, card and requirements.",
    )
    leaderboard = whats.add_parser(
        "leaderboard",
        help="the leaderboard's Space and the repository of its results",
        description="Update the Space ORG/audio-compositionality-leaderboard to this version, create the results "
        "repository ORG/audio-compositionality-results, and add the results of the baselines that it lacks. Existing "
        "results are never changed.",
    )
    group = leaderboard.add_argument_group("first results")
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--results", nargs="+", type=Path, metavar="RESULT", help="add these results instead of the baselines'"
    )
    which.add_argument("--no-baselines", action="store_true", help="add no results")
    group.add_argument(
        "--presets",
        default="mini",
        metavar="NAME,NAME",
        help="presets that the baselines are scored on; default mini, in five to thirty minutes; mini,full takes an "
        "hour or two",
    )
    arguments.add_tasks(group)
    group.add_argument(
        "--out",
        type=Path,
        default=Path("results-baselines"),
        metavar="DIR",
        help="the baselines' results, a folder for each preset; existing ones are used; default results-baselines",
    )
    arguments.add_cache(group)
    arguments.add_device(group)
    for subparser in (dataset, metrics, leaderboard):
        arguments.add_org(subparser)
        subparser.add_argument(
            "--create-pr", action="store_true", help="open a pull request instead of committing to main"
        )
        subparser.add_argument("--private", action="store_true", help="create new repositories as private")
        arguments.add_dry_run(subparser)
        arguments.add_traceback(subparser)


def run(options: argparse.Namespace) -> int | None:
    """Push, and print what was sent; the exit status of a rehearsal is 1 where a step would not go.

    Raises:
        InputError: neither or both of WHAT and ``--rehearse``, or the latter without ``--org``.
    """
    if options.rehearse is not None:
        if options.what is not None:
            raise InputError(f"--rehearse goes through all steps: leave out {options.what}")
        if options.org is None:
            raise InputError("--rehearse needs --org ORG")
        from audio_compositionality.push_scripts.rehearsal import goes, rehearsal_lines, rehearse

        steps = rehearse(options.rehearse, options.org)
        print("\n".join(rehearsal_lines(steps)))
        return 0 if goes(steps) else 1
    if options.what is None:
        raise InputError("push needs WHAT: dataset, metrics or leaderboard, or --rehearse; --help shows an example")
    how: dict[str, Any] = {"private": options.private, "pull_request": options.create_pr, "dry_run": options.dry_run}
    if options.what == "leaderboard":
        _push_leaderboard(options, how)
        return None
    from audio_compositionality.push_scripts import reports
    from audio_compositionality.push_scripts.dataset import push_dataset
    from audio_compositionality.push_scripts.spaces import push_metrics

    if options.what == "dataset":
        lines = reports.dataset_lines(push_dataset(options.folder, options.org, **how))
    else:
        lines = reports.metric_lines(push_metrics(options.org, **how))
    print("\n".join(lines))
    return None


def _push_leaderboard(options: argparse.Namespace, how: dict[str, Any]) -> None:
    """Push the leaderboard with its first results: given ones, or the results of baselines that it lacks."""
    arguments.check_output(options.out, "--out")
    arguments.check_output(options.cache, "--cache")
    presets: list[str] = []
    if not options.results and not options.no_baselines:
        from audio_compositionality.dataset_builder.rendered import rendered_preset

        presets = list(dict.fromkeys(arguments.names_of(options, "presets") or ()))
        for preset in presets:
            # A name that is none is refused before anything is sent.
            rendered_preset(preset)
    tasks = arguments.chosen_tasks(options)
    if tasks is not None and not presets:
        raise InputError(
            "--tasks and --benchmark only affect the scoring of baselines, and none are scored: leave them out"
        )
    if options.results:
        arguments.check_results(options.results)
    from audio_compositionality.push_scripts import reports
    from audio_compositionality.push_scripts.baselines import missing_baselines, publish_baselines
    from audio_compositionality.push_scripts.spaces import push_leaderboard
    from audio_compositionality.push_scripts.submit import submit_results

    print("\n".join(reports.leaderboard_lines(push_leaderboard(options.org, **how))), flush=True)
    sending: dict[str, Any] = {"cache": options.cache, "device": options.device, "progress": True}
    sending["pull_request"] = options.create_pr
    if options.results:
        submitted = submit_results(options.results, options.org, dry_run=options.dry_run, **sending)
        print("\n".join(reports.submission_lines(submitted)))
    for preset in presets:
        missing = missing_baselines(options.org, preset, tasks, device=options.device)
        if options.dry_run or not missing:
            print("\n".join(reports.baseline_lines(missing)))
            continue
        names, out = ", ".join(model.card.id for model in missing.tasks), options.out / preset
        time = f", which takes {_TIMES[preset]} on two cores" if preset in _TIMES else ""
        print(
            f"Scoring {names} on the preset {preset} for the leaderboard{time}: once as computed, and once rounded to "
            f"16 bits, as they are sent. Results go to {out}; existing ones are used. --no-baselines skips this.",
            flush=True,
        )
        submissions = publish_baselines(options.org, missing, out, on_result=print_result, **sending)
        print("\n".join(line for one in submissions for line in reports.submission_lines(one)), flush=True)


COMMAND = Command(
    summary="publish the data set, the metrics or the leaderboard on the Hub",
    description=_DESCRIPTION,
    add_arguments=add_arguments,
    run=run,
    examples=_EXAMPLES,
    resume=GO_ON,
    place=110,
)
