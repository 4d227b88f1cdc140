"""Stored answers of anybody: results of this project, logs of lmms-eval and inspect_ai, tables of ids and answers.

The format is found by looking at the file. Nothing in a log is trusted or run: sizes are limited, and a value of
another type than expected counts as missing.

Shapes, as their hosts write them: lmms-eval 0.7.3 with ``--log_samples``, a line of JSON a question, by
`save_results_samples` of its ``loggers/evaluation_tracker.py``; inspect_ai 0.3.285, a zip of JSON compressed by
Zstandard (``.eval``) or one file of JSON, by `EvalLog` of its ``log/_log.py``.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audio_compositionality.dataset_builder.data import DatasetError, Row
from audio_compositionality.dataset_builder.sounds.published import LARGEST_FILE, LARGEST_TABLE, ZippedFiles, text_of
from audio_compositionality.dataset_builder.sounds.recordings import delimiter_of
from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.text import first_line, shown
from audio_compositionality.tasks.registry import task_names

from .results.result import is_result_file
from .results.strict import ResultError

MOST_ANSWERS = 1_000_000
"""Answers of a log; of one with more, nothing is scored."""


class LogError(AudioCompositionalityError):
    """A log of answers that cannot be read: names the file and the remedy."""


@dataclass(frozen=True)
class LoggedAnswer:
    """An answer as a log has it.

    Attributes:
        id: of the question, in the log's words; empty where it only counts questions.
        text: the answer, word for word; None where the log states that the model failed.
        number: of the answer among those to its question, in the log's words: an order of options, an epoch.
        place: of the question in the data, from 0; None where the log does not say.
        prompt: the words that were put to the model; empty where they are not stored.
        options: as they were shown, without letters; empty where none are stored.
        reference: the right answer in the log's words: a letter or a text; empty where it is not stored.
        stated: the score that the log gives the answer, from 0 to 1; None where it gives none.
    """

    id: str
    text: str | None
    number: str = ""
    place: int | None = None
    prompt: str = ""
    options: tuple[str, ...] = ()
    reference: str = ""
    stated: float | None = None


@dataclass(frozen=True)
class AnswerLog:
    """A log of answers.

    Attributes:
        title: its file, or a model and a task.
        format: in words.
        answers: in the order of the log.
        rows: the questions, where the log is a result of this project; else None.
    """

    title: str
    format: str
    answers: tuple[LoggedAnswer, ...]
    rows: tuple[Row, ...] | None = None


def read_logs(path: Path, *, data: str | None = None, store: Path | None = None) -> list[AnswerLog]:
    """The logs at a path: one, or several results of this project.

    Args:
        path: a file; or a folder of results or submissions of this project.
        data: of results of this project, where they are no preset's.
        store: root of the store with the answers of local results; default `store_root`.

    Raises:
        LogError: it is no log of a known format, is damaged, or too large.
        AudioCompositionalityError: see `evaluator.submissions`.
    """
    if path.is_dir() or is_result_file(path, task_names()):
        return [_of_result(result, data, store) for result in _results_at(path)]
    try:
        with path.open("rb") as stream:
            head = stream.read(4)
        if head.startswith(b"PK\x03\x04"):
            format, answers = "an inspect_ai log", list(_of_archive(path))
        else:
            format, answers = _of_text(path)
    except (DatasetError, OSError) as error:
        raise LogError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from error
    if not answers:
        raise LogError(f"{path} is {format} without a single answer")
    return [AnswerLog(str(path), format, tuple(answers))]


# ----- results of this project


def _results_at(path: Path) -> list[Path]:
    from .submissions.verification import find_results

    try:
        return find_results(path)
    except ResultError as error:
        raise LogError(
            f"{error}; the log of another program is given as a file: JSON, JSON Lines, CSV, TSV, or .eval"
        ) from error


def _of_result(path: Path, data: str | None, store: Path | None) -> AnswerLog:
    """The answers behind a result, each with the options in the order in which they were shown."""
    from .results.result import load_result
    from .submissions.making import stored_answers
    from .submissions.submission import open_result_task, read_submission

    submission = read_submission(path) if path.is_dir() else None
    result = submission.result if submission else load_result(path)[0]
    opened = open_result_task(result, data)
    if not opened.prompts:
        raise LogError(f"{path} is a result of {result.task}, which has embeddings and no answers")
    if not all(opened.options):
        raise LogError(f"{path} is a result of {result.task}, whose answers are free: they choose no option")
    if submission is None:
        texts: Sequence[str] = stored_answers(result, opened, store)
    elif submission.answers is None:
        raise LogError(f"{path} was submitted without its answers")
    else:
        texts = submission.answers.texts
    asked = [
        (row, str(number) if len(one.prompts) > 1 else "")
        for row, one in zip(opened.rows, opened.inputs, strict=True)
        for number in range(len(one.prompts))
    ]
    answers = tuple(
        LoggedAnswer(row["id"], text, number, prompt=prompt, options=options)
        for (row, number), text, prompt, options in zip(asked, texts, opened.prompts, opened.options, strict=True)
    )
    return AnswerLog(f"{result.model.id}, {result.task}", "a result of this project", answers, opened.rows)


# ----- files of text


def _of_text(path: Path) -> tuple[str, list[LoggedAnswer]]:
    """The format of a file of text, and its answers."""
    with path.open("rb") as stream:
        first = stream.readline(LARGEST_TABLE)
    if first.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return "a table of answers", list(_of_rows(path, _table(path)))
    names = _names_in(first)
    if names and not {"eval", "samples"} <= names:
        # A log with clips in it has gigabytes: it is read line by line.
        rows = _lines(path)
        if {"doc_id", "target"} <= names:
            return "an lmms-eval log", [answer for row in rows for answer in _of_lmms(row)]
        return "JSON Lines", list(_of_rows(path, rows))
    if path.stat().st_size > LARGEST_FILE:
        raise LogError(f"{path} has {path.stat().st_size:,} bytes; JSON is read up to {LARGEST_FILE:,}")
    value = _parsed(path.read_bytes(), str(path))
    if isinstance(value, dict) and isinstance(value.get("samples"), list) and "eval" in value:
        return "an inspect_ai log", [_of_inspect(sample) for sample in value["samples"] if isinstance(sample, dict)]
    if isinstance(value, list):
        return "a list in JSON", list(_of_rows(path, value))
    held = shown([*map(str, value)]) if isinstance(value, dict) else "no rows"
    raise LogError(
        f"{path} is JSON with {held}: it is no list of answers, and no inspect_ai log with samples "
        "(of lmms-eval, give the file *_samples_*.jsonl that --log_samples writes)"
    )


def _names_in(line: bytes) -> set[str]:
    """The names in a line that is all of an object in JSON; empty for any other."""
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return set()
    return set(value) if isinstance(value, dict) else set()


def _parsed(content: bytes, where: str) -> Any:
    try:
        return json.loads(content.decode("utf-8-sig"))
    except RecursionError:
        raise LogError(f"{where} is nested too deep") from None
    except ValueError as error:
        raise LogError(f"{where} is no JSON: {first_line(error)}") from error


def _lines(path: Path) -> Iterator[Any]:
    with path.open("rb") as stream:
        for number in range(1, MOST_ANSWERS + 2):
            line = stream.readline(LARGEST_TABLE + 1)
            if not line:
                return
            if len(line) > LARGEST_TABLE or number > MOST_ANSWERS:
                raise LogError(f"{path} has more than {MOST_ANSWERS:,} lines, or {LARGEST_TABLE:,} bytes in one")
            if line.strip():
                yield _parsed(line, f"{path}, line {number:,},")


def _table(path: Path) -> Iterator[Mapping[str, Any]]:
    if path.stat().st_size > LARGEST_TABLE:
        raise LogError(f"{path} has {path.stat().st_size:,} bytes; a table is read up to {LARGEST_TABLE:,}")
    text = text_of(path.read_bytes())
    try:
        yield from csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter_of(text.partition("\n")[0]))
    except csv.Error as error:
        raise LogError(f"{path} is no table: {first_line(error)}") from error


# ----- tables of answers

GIVEN = (
    *("response", "model_response", "model_output", "model_answer", "model_prediction", "prediction", "pred"),
    *("output", "completion", "generated_text", "generation", "answer"),
)
"""Headings of answers of a model. Beside one of the others, ``answer`` is the right one."""

_ID = ("id", "question_id", "qid", "uid", "sample_id", "index")
_NUMBER = ("order", "epoch", "run", "trial", "attempt")
_REFERENCE = ("answer", "reference", "target", "ground_truth", "correct_answer", "gold", "label")
_OPTIONS = ("options", "choices")
_QUESTION = ("question", "prompt", "instruction", "input")
_STATED = ("score", "correct", "is_correct")


def _of_rows(path: Path, rows: Iterable[Any]) -> Iterator[LoggedAnswer]:
    """The answers of rows with headings, some of which every row has."""
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise LogError(f"{path}: row {number:,} is no object with names and values")
        values = {re.sub(r"\W+", "_", str(name).strip().lower()): value for name, value in row.items()}
        given = next((name for name in GIVEN if name in values), None)
        if given is None:
            raise LogError(
                f"{path}: row {number:,} has {shown([*values]) or 'nothing'}, and no answer; name its column one of "
                f"{', '.join(GIVEN)}"
            )
        del (rest := dict(values))[given]
        reference, stated = _first(rest, _REFERENCE), _first(rest, _STATED)
        yield LoggedAnswer(
            id=_text(_first(rest, _ID)),
            text=None if values[given] is None else _text(values[given]),
            number=_text(_first(rest, _NUMBER)),
            place=number - 1,
            prompt=_text(_first(rest, _QUESTION)),
            options=options_of(_first(rest, _OPTIONS)) or lettered_options(_text(_first(rest, _QUESTION))),
            reference=_text(reference),
            stated=_score(stated),
        )


def _first(values: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((values[name] for name in names if name in values), None)


def _text(value: Any) -> str:
    """A value as text: of a list its only one; empty for what is no text and no number."""
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    return str(value) if isinstance(value, str | int | float) else ""


_TRUTHS = {"c": 1.0, "true": 1.0, "yes": 1.0, "p": 0.5, "i": 0.0, "n": 0.0, "false": 0.0, "no": 0.0}
"""Scores in words; inspect_ai's are correct, partial, incorrect and no answer."""


def _score(value: Any) -> float | None:
    """A score of an answer, from 0 to 1; None for anything else."""
    if isinstance(value, Mapping):
        value = _first(value, ("score", "overall", "accuracy", "correct", "value"))
    text = _text(value).strip().lower()
    try:
        score = _TRUTHS[text] if text in _TRUTHS else float(text)
    except ValueError:
        return None
    return score if 0 <= score <= 1 else None


_LETTERED = re.compile(r"\s*\(?([A-Z])[).:\]]\)?\s*(\S.*?)\s*")


def options_of(value: Any) -> tuple[str, ...]:
    """The options in a list, or in JSON of one, without letters in front where all have theirs in order."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return ()
    if not isinstance(value, list) or not all(isinstance(text, str | int | float) for text in value):
        return ()
    texts = tuple(str(text) for text in value)
    return lettered_options("\n".join(" ".join(text.split()) for text in texts), len(texts)) or texts


def lettered_options(prompt: str, count: int = 0) -> tuple[str, ...]:
    """The options in a prompt: the last lines that begin with A, B and so on, such as ``A. dog`` or ``(A) dog``.

    >>> lettered_options("What is heard? Answer A or B.\\nA) dog\\n\\nB) rain\\nAnswer:")
    ('dog', 'rain')

    Args:
        prompt: its words.
        count: number that there must be; 0 for 2 or more.

    Returns:
        the texts behind the letters; empty where there are no such lines.
    """
    run: list[str] = []
    last: list[str] = []
    for line in filter(str.strip, prompt.splitlines()):
        match = _LETTERED.fullmatch(line)
        place = -1 if match is None else ord(match[1]) - ord("A")
        run = [*run, match[2]] if match and place == len(run) else [match[2]] if match and place == 0 else []
        last = run if len(run) > 1 else last
    return tuple(last) if not count or len(last) == count else ()


# ----- lmms-eval

_OF_HOST = frozenset(
    ("doc_id", "target", "resps", "filtered_resps", "token_counts", "doc_hash", "input_media", "input", "doc")
)
"""Names that lmms-eval itself writes; the others are measures of the task, each with what the task makes of a row."""


def _of_lmms(row: Any) -> Iterator[LoggedAnswer]:
    """The answers of a line of lmms-eval, before the filters of its task: several where a question was put again."""
    values = row if isinstance(row, dict) else {}
    # Likelihoods of options are numbers, and no text.
    texts: list[str | None] = [*_texts_in(values.get("resps", values.get("filtered_resps")))] or [None]
    measures = [value for name, value in values.items() if name not in _OF_HOST]
    named = [value["id"] for value in measures if isinstance(value, dict) and value.get("id")]
    scores = [score for score in map(_score, measures) if score is not None]
    place, prompt = values.get("doc_id"), _text(values.get("input"))
    for number, text in enumerate(texts):
        yield LoggedAnswer(
            id=_text(named[0]) if named else "",
            text=text,
            number=str(number) if len(texts) > 1 else "",
            place=place if isinstance(place, int) else None,
            prompt=prompt,
            options=lettered_options(prompt),
            reference=_text(values.get("target")),
            stated=scores[0] if scores else None,
        )


def _texts_in(value: Any) -> Iterator[str]:
    """The texts in lists of lists."""
    left = [value]
    while left:
        last = left.pop()
        if isinstance(last, str):
            yield last
        elif isinstance(last, list):
            left += reversed(last)


# ----- inspect_ai


def _of_archive(path: Path) -> Iterator[LoggedAnswer]:
    """The answers of the zip ``.eval``: a file of JSON a sample and epoch, in ``samples``."""
    archive = ZippedFiles(path)
    names = [name for name in archive.names if name.startswith("samples/") and name.endswith(".json")]
    if not names:
        raise LogError(f"{path} holds {shown(archive.names) or 'nothing'}, and no samples of inspect_ai")
    for name in names:
        try:
            content = archive.file(name).getvalue()
        except DatasetError as error:
            raise LogError(f"{path}: {name} {error}") from error
        sample = _parsed(content, f"{path}: {name}")
        yield _of_inspect(sample if isinstance(sample, dict) else {})


def _of_inspect(sample: Mapping[str, Any]) -> LoggedAnswer:
    output, scores = sample.get("output"), sample.get("scores")
    prompt = _prompt_of(sample.get("messages") or sample.get("input"))
    stated = [_score(score) for score in scores.values()] if isinstance(scores, dict) else []
    text = output.get("completion") if isinstance(output, dict) else None
    return LoggedAnswer(
        id=_text(sample.get("id")),
        text=text if isinstance(text, str) and not sample.get("error") else None,
        number=_text(sample.get("epoch")),
        prompt=prompt,
        options=options_of(sample.get("choices")) or lettered_options(prompt),
        reference=_text(sample.get("target")),
        stated=next((score for score in stated if score is not None), None),
    )


def _prompt_of(messages: Any) -> str:
    """The words of what was put to a model, in a text or in messages of parts."""
    if isinstance(messages, str):
        return messages
    parts: list[Any] = []
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and message.get("role") != "assistant":
            content = message.get("content")
            parts += content if isinstance(content, list) else [{"text": content}]
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))
