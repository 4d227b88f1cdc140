"""`submit`: submit results to a leaderboard."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import listed

from . import arguments
from .arguments import GO_ON, Command

_DESCRIPTION = """\
Submit results to the leaderboard of an organisation, by a pull request on ORG/audio-compositionality-results. It has
each result, the scores of its samples, and its embeddings or its answers to questions, so that anybody can compute the
scores again. Embeddings and answers are read from the cache; no model is run.

Embeddings are rounded to 16 bits before they are sent. The submitted score is computed from the rounded embeddings;
both scores are printed. Answers are sent word for word. The leaderboard checks the pull request with the code of
`audio-compositionality verify`, adds the entries that agree and closes the pull request.
"""

_EXAMPLES = """\
  audio-compositionality evaluate whisper-base --preset full --out results-full
  audio-compositionality submit results-full --check
      whether each result can be submitted, without a network
  audio-compositionality submit results-full --org my-lab --dry-run
      what would be sent
  audio-compositionality submit results-full --org my-lab --model-card
      also a pull request on openai/whisper-base, which shows the scores on the model's page
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "results", nargs="+", type=Path, metavar="RESULT", help="JSON files of results, or folders that contain them"
    )
    parser.add_argument(
        "--org", metavar="ORG", help="organisation or user on the Hub that the leaderboard belongs to; not for --check"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="only check whether each result can be submitted, and print what is missing; needs no network",
    )
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="NAME",
        help="submit the results of this model only; may be repeated; default: all models except the baselines and "
        "untrained networks that come with the package",
    )
    arguments.add_data_of_results(parser)
    arguments.add_cache(parser)
    parser.add_argument(
        "--scores-only",
        action="store_true",
        help="send neither embeddings nor answers; the scores cannot be verified and stay self-reported",
    )
    parser.add_argument(
        "--paradigm",
        metavar="TEXT",
        help='how the model was trained, such as "self-supervised"; known for named models',
    )
    parser.add_argument("--licence", metavar="TEXT", help="licence of its weights; known for named models")
    parser.add_argument(
        "--model-card",
        action="store_true",
        help="also open a pull request on the model's own repository, which shows the scores on its page",
    )
    arguments.add_device(parser)
    arguments.add_dry_run(parser)


def run(options: argparse.Namespace) -> int | None:
    """Submit and print what was sent; the exit status of a check is 1 if a result cannot be submitted."""
    arguments.check_results(options.results)
    arguments.check_output(options.cache, "--cache")
    if options.org is None and not options.check:
        raise InputError("submit needs --org ORG, the owner of the leaderboard; --check works without")
    # Imported after the arguments are checked: it takes seconds.
    from audio_compositionality.push_scripts.submit import chosen_results, submission_check, submit_results

    paths, left_out = chosen_results(options.results, options.model)
    if left_out:
        print(f"Models of the package need no submission: {listed(left_out)}. --model NAME submits one all the same.")
    making = {
        "cache": options.cache,
        "with_outputs": not options.scores_only,
        "paradigm": options.paradigm,
        "licence": options.licence,
        "device": options.device,
        "progress": True,
    }
    if options.check:
        lines, is_ready = submission_check(paths, data=options.data, **making)
        text = "\n".join(lines)
        if options.data is not None:
            text = text.replace(" --data DATA ", f" --data {shlex.quote(options.data)} ")
        print(text)
        if "audio-compositionality evaluate " in text and options.results != [Path("results")]:
            # OUT/MODEL/REVISION/TASK.json
            folders = {path.parents[2] for path in paths}
            out = options.results[0] if folders == {options.results[0].absolute()} else "DIR"
            meaning = "; DIR is the folder of your results" if out == "DIR" else ""
            print(f"Add {shlex.join(['--out', str(out)])} to `evaluate`{meaning}.")
        return 0 if is_ready else 1
    from audio_compositionality.push_scripts.reports import submission_lines

    submitted = submit_results(
        paths,
        options.org,
        data=options.data,
        model_card=options.model_card,
        dry_run=options.dry_run,
        **making,
    )
    print("\n".join(submission_lines(submitted)))
    return None


COMMAND = Command(
    summary="submit results to a leaderboard",
    description=_DESCRIPTION,
    add_arguments=add_arguments,
    run=run,
    examples=_EXAMPLES,
    resume=GO_ON,
    place=100,
)
