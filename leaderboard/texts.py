"""What the leaderboard says in words: our own, as Markdown; nothing of a stranger's is put into it."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template

from audio_compositionality.hub import Repository

TITLE = "audio-compositionality leaderboard"

_INTRODUCTION = Template("""\
# Compositional structure in audio embeddings

How much is an audio encoder's embedding of a scene made of its sources? **A-COAT**: is adding the same sources to two
scenes the same step? **A-TRE**: can a small model rebuild the embedding from the scene's attributes? ([arXiv
2603.13685](https://arxiv.org/abs/2603.13685)) Results: [$results]($url).
""")

_CAPTIONS: Mapping[str, str] = {
    "a_coat": """\
**Read the score with its controls.** An encoder that has learned nothing can score high: `downsample`, which is
linear, has 1 by construction, and untrained networks (`untrained:…`) often score as high as trained ones. *null* is
the same cosine between steps that have nothing to do with each other, *matched* that of steps with as many sources at
nearly the same level; *adjusted* is (score − null) / (1 − null), by the matched null where there is one; *centred* is
the score after the mean step is taken away; *top-1* how often an encoder's own step is the nearest of all.
""",
    "a_tre": """\
**Read the score with its controls.** Most of a raw A-TRE is what all embeddings share: *constant* is what the mean
training embedding scores for every scene. *gain* is (score − constant) / (1 − constant); *centred* is the score of a
second fit, to what differs from that mean; *seed sd* is the spread of several fits; *ridge R²* is the variance that
counts of attributes alone explain, *null* the same with metadata permuted; *top-1* is how often a scene's own
embedding is the nearest to its prediction. The table begins sorted by *centred*: a constant that is added to all
embeddings brings a raw A-TRE as near to 1 as one likes. Compare each encoder with its untrained twin (`untrained:…`)
and with `log-mel-statistics`.
""",
}

_STATUSES = """\
**verified**: recomputed from the submitted embeddings by this leaderboard, which shows what it computed.
**reported**: the submitter's numbers, which nobody has recomputed. That embeddings come from the encoder that is
named is the submitter's word in both, and so are parameters, paradigm, licence, options and date. *submitted by* is
who opened the pull request of a verified entry. Intervals are of 95 %: *BCa* from a bootstrap over samples, *t,
reported* as the submitter states it. *entries* counts all results of the same encoder, revision, options and
submitter; the page of the encoder has each of them.
"""

_SUBMIT = Template("""\
## How to submit

```sh
audio-compositionality evaluate --encoder ENCODER --preset full --out results
audio-compositionality verify results
audio-compositionality submit results --org $org
```

1. `evaluate` embeds every clip and scores the embeddings. ENCODER is a name of `audio-compositionality encoders`, the
   id of a model on the Hub, or a class of your own, `path/to/file.py:ClassName`. Submit `--preset mini` as well if
   you like: each data set has a table of its own.
2. `verify` is what the leaderboard runs on a submission: run it yourself first, on the folder of the results or on
   what `submit` has written.
3. `submit` opens a pull request on [$results]($url): result, scores of all samples, and the embeddings as 16-bit
   numbers, at most 64 MB. It needs a token of the Hub that may open pull requests (`hf auth login`).

A pull request that only adds new entries is checked by itself. When all of it is right, the checker adds the entries
to main, and closes the pull request; else a comment says what is wrong. One without embeddings is left to the
maintainers, and can only ever be *reported*.

## What verified means, and what not

The score was **computed again from the submitted embeddings**, against the fingerprint of the data: A-COAT and its
controls agree to 1e-6, A-TRE to the spread of its fits. A verified entry shows what was computed. So the numbers are
those of these embeddings, on these data, with these settings.

It does **not** show that the embeddings come from the encoder that is named, in the revision and with the options
that are stated. That is the submitter's word, like everything that is not computed from embeddings: parameters,
paradigm, licence, options, and the date of the result. Whoever doubts it runs `audio-compositionality evaluate` on the
encoder and compares. The same embeddings under two names are noticed where they are equal byte for byte, and left to
the maintainers.

## Nothing is replaced

A result is kept under a name made of its content. A new result of the same encoder stands beside the old one: the
table shows the newest, a verified one before a reported one, and the page of the encoder shows all. Results of another
submitter have rows of their own: nobody takes the place of anybody else's.
""")


def introduction(results: Repository) -> str:
    """The head of the page."""
    return _INTRODUCTION.substitute(results=results.id, url=results.url)


def caption(task: str) -> str:
    """What has to be known to read the table of a task."""
    return f"{_CAPTIONS[task]}\n{_STATUSES}"


def how_to_submit(org: str, results: Repository) -> str:
    """The tab about submissions. `org` is the name of an organisation, checked by `check_org`."""
    return _SUBMIT.substitute(org=org, results=results.id, url=results.url)
