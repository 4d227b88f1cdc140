"""What the leaderboard says in words: our own, as Markdown; nothing of a stranger's is put into it."""

from __future__ import annotations

import importlib.metadata
import json
from string import Template

from audio_compositionality.hub.errors import Repository
from audio_compositionality.tasks.base import TaskInfo

TITLE = "audio-compositionality leaderboard"

_PACKAGE = "audio-compositionality"

_INTRODUCTION = Template("""\
# Compositional structure in audio models

Do models that hear know the parts of a sound, and how they are put together? Results: [$results]($url).
""")

_STATUSES = """\
**verified**: recomputed from the submitted embeddings or answers by this leaderboard, which shows what it computed.
**reported**: the submitter's numbers, which nobody has recomputed. That these come from the model that is named is the
submitter's word in both, and so are parameters, paradigm, licence, options and date. *submitted by* is who
opened the pull request of a verified entry; of what maintainers put on main, such as the baselines, it is not known.
Intervals are of 95 %, from a BCa bootstrap over samples. *entries* counts all results of the same model, revision,
options and submitter; the page of the model has each of them. Entries of an older version of a task are data of their
own, marked as older: their numbers are not comparable with newer ones.
"""

_SUBMIT = Template("""\
## How to submit

```sh
$install
audio-compositionality evaluate MODEL --preset full --out results
audio-compositionality verify results
audio-compositionality submit results --org $org
```

$project

1. `evaluate` embeds every clip, or asks every question, and scores what the model gives; what is on request, `--tasks`
   names. MODEL is a name of `audio-compositionality models`, the id of a model on the Hub, or a class of your own,
   `path/to/file.py:ClassName`. Submit `--preset mini` as well if you like: each data set has a table of its own.
2. `verify` is what the leaderboard runs on a submission: run it yourself first, on the folder of the results or on
   what `submit` has written.
3. `submit` opens a pull request on [$results]($url): result, scores of all samples, and the embeddings as 16-bit
   numbers, at most 64 MB, or the answers to questions word for word, at most 16 MB. Settings are the default ones. It
   needs a token of the Hub that may open pull requests (`hf auth login`).

A pull request that only adds new entries is checked by itself. When all of it is right, the checker adds the entries to
main, and closes the pull request; else a comment says what is wrong. One without embeddings or answers is left to the
maintainers, and can only ever be *reported*. Each author has one pull request checked in a round, and two hours of
checks a day; an entry that takes longer than half an hour is left to the maintainers.

## What verified means, and what not

The scores were **computed again from the submitted embeddings or answers**, against the fingerprint of the data. What
no fit is behind agrees to 1e-6, the rest to the spread of its fits. A verified entry shows what was computed, and its
record is signed by this leaderboard. So the numbers are those of these embeddings or answers, on these data, with these
settings.

It does **not** show that they come from the model that is named, in the revision and with the options that are stated.
That is the submitter's word, like everything that is not computed from them: parameters, paradigm, licence, options,
and the date of the result. Whoever doubts it runs `audio-compositionality evaluate` on the model and compares.
Embeddings or answers that are those of another model's entry, or nearly so, are left to the maintainers, with the name
of the first owner: after a rotation, noise or other dimensions, and however answers are written. A model that states
the same weights is a reproduction, and said to be one.

## Nothing is replaced

A result is kept under a name made of its content. A new result of the same model stands beside the old one: the table
shows the newest, a verified one before a reported one, and the page of the model shows all. Results of another
submitter have rows of their own: nobody takes the place of anybody else's.
""")


def introduction(results: Repository) -> str:
    """The head of the page."""
    return _INTRODUCTION.substitute(results=results.id, url=results.url)


def caption(task: TaskInfo) -> str:
    """What has to be known to read the table of a task."""
    ranking = task.measure(task.ranks_by)
    measures = "\n".join(f"- *{measure.heading}*: {measure.meaning}" for measure in task.shown)
    return (
        f"**{task.title}**: {task.question} {task.warning} The table begins sorted by *{ranking.heading}*. The numbers:"
        f"\n\n{measures}\n\n{_STATUSES}"
    )


def how_to_submit(org: str, results: Repository) -> str:
    """The tab about submissions. `org` is the name of an organisation, checked by `check_org`."""
    return _SUBMIT.substitute(
        org=org, results=results.id, url=results.url, install=install_command(), project=_project_line()
    )


def install_command() -> str:
    """What installs the version of the package that runs here."""
    distribution = importlib.metadata.distribution(_PACKAGE)
    # Where pip has it from, if not from an index (PEP 610).
    address = json.loads(distribution.read_text("direct_url.json") or "{}").get("url", "")
    if str(address).startswith(("http://", "https://")):
        return f'pip install "{_PACKAGE} @ {address}"'
    return f"pip install {_PACKAGE}"


def _project_line() -> str:
    """Where the project is, as the package states it."""
    metadata = importlib.metadata.metadata(_PACKAGE)
    named = [line.partition(", ") for line in metadata.get_all("Project-URL") or []]
    links = ", ".join(f"[{name}]({url})" for name, _, url in named)
    return f"The project: {links}." if links else f"The project: {metadata['Summary']}"
