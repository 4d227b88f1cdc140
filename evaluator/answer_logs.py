"""Stored answers of anybody: results of this project, logs of lmms-eval and inspect_ai, tables of ids and answers.

The format is found by looking at the file. Nothing in a log is trusted or run: sizes are limited, and a value of
another type than expected counts as missing. Which column of a table holds the model's answers is decided in
`rescore`, where the right answers are known: an answer has the values of all columns that could.

Shapes, as their hosts write them: lmms-eval 0.7.3 with ``--log_samples``, a line of JSON a question, by
`save_results_samples` of its ``loggers/evaluation_tracker.py``; inspect_ai 0.3.285, a zip of JSON compressed by
Zstandard (``.eval``) or one file of JSON, by `EvalLog` of its ``log/_log.py``. Tables: the files that the scripts of
MMAU (``model_output``), MMAR (``answer_prediction``) and MMSU (``response``) score; AudioBench's logs (rows below
``details``); VLMEvalKit's predictions (``index``, ``A``, ``B`` …, ``prediction``) as a workbook, TSV or JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from audio_compositionality.dataset_builder.data import DatasetError, Row
from audio_compositionality.dataset_builder.sounds.published import LARGEST_FILE, LARGEST_TABLE, ZippedFiles
from audio_compositionality.dataset_builder.sounds.published.question_tables import (
    lettered_options,
    numbered_headings,
    options_of,
)
from audio_compositionality.dataset_builder.tables import open_table, workbook_rows
from audio_compositionality.metrics.answers import ANSWER_FIELDS, is_thought
from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.files import open_file, read_file
from audio_compositionality.support.text import first_line, nearest, parse_json, shown
from audio_compositionality.tasks.registry import task_names

from .results.result import is_result_file
from .results.strict import ResultError

LOG = "log"
"""Name of the scores that a log states."""

MOST_ANSWERS = 1_000_000
"""Answers of a log; of one with more, nothing is scored."""

LARGEST_LOG = 16 * LARGEST_FILE
"""Bytes of all samples in an archive together."""

LONGEST_VALUE = 2**20
"""Characters of a value in a table; a longer one is a clip, and no answer."""


class LogError(AudioCompositionalityError):
    """A log of answers that cannot be read: names the file and the remedy."""


@dataclass(frozen=True)
class StoredAnswer:
    """An answer as a log has it; `rescore` gives it its question, its text and further scores.

    Attributes:
        values: the log's content under each heading that may hold the model's answers: a text, lists or parts of it;
            None where the log states that the model failed. All answers of a log have the same headings.
        id: of the question in the data, or else in the log's words; empty where that only counts questions.
        number: of the answer among those to its question, in the log's words: an order of options, an epoch.
        place: of the question in the data, from 0; None where the log does not say.
        question: its words, or the prompt; empty where neither is known.
        options: as they were shown, without letters; empty where none are known.
        reference: the right answer in the log's words, a letter or a text, or, where it was rescored, the right option;
            empty where it is not known.
        by: scores from 0 to 1, by the name of the scoring; the log's own is `LOG`.
        text: the answer; empty if there is none.
        group: of questions that are not independent.
        taken: the option that the matcher reads; None where the answer names none.
        how: the rule of `match_answer` that decided.
        problem: why the answer has no further score; empty where it has.
    """

    values: Mapping[str, Any]
    id: str = ""
    number: str = ""
    place: int | None = None
    question: str = ""
    options: tuple[str, ...] = ()
    reference: str = ""
    by: Mapping[str, float] = field(default_factory=dict)
    text: str = ""
    group: str = ""
    taken: str | None = None
    how: str = ""
    problem: str = ""

    @property
    def differs(self) -> bool:
        """Whether two scorings disagree."""
        return len(set(self.by.values())) > 1


@dataclass(frozen=True)
class AnswerLog:
    """A log of answers.

    Attributes:
        title: its file, or a model and a task.
        answers: in the order of the log.
        format: in words.
        fields: where ids, options and right answers stand, in words.
        why: the `StoredAnswer.values` could be answers: the "format" says so, or the user, who "named" the only
            heading; they have a "heading" of answers; the first, ``answer``, is the "only" text beside ids and
            questions; empty where nothing speaks for any of them.
        rows: the questions, where the log is a result of this project; else None.
    """

    title: str
    answers: tuple[StoredAnswer, ...]
    format: str
    fields: Mapping[str, str] = field(default_factory=dict)
    why: str = "format"
    rows: tuple[Row, ...] | None = None


def read_logs(
    path: Path, *, data: str | None = None, cache: Path | None = None, column: str | None = None
) -> list[AnswerLog]:
    """The logs at a path: one, or several results of this project.

    Args:
        path: a file; or a folder of results or submissions of this project.
        data: of results of this project, where they are no preset's.
        cache: folder with the cached answers of local results; default `cached_outputs_folder`.
        column: heading of the answers in a table; by default told from the headings.

    Raises:
        LogError: it is no log of a known format, is damaged, or too large; or it has no such column.
        AudioCompositionalityError: see `evaluator.submissions`.
    """
    if path.is_dir() or is_result_file(path, task_names()):
        from .submissions.verification import find_results

        try:
            logs = [_of_result(result, data, cache) for result in find_results(path)]
        except ResultError as error:
            raise LogError(
                f"{error}; the log of another program is given as a file: JSON, JSON Lines, CSV, TSV, or .eval"
            ) from error
    else:
        try:
            with open_file(path) as stream:
                is_archive = stream.read(4) == b"PK\x03\x04"
            logs = [_of_archive(path, column) if is_archive else _of_text(path, column)]
        except (DatasetError, OSError) as error:
            raise LogError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from error
    if not logs[0].answers:
        raise LogError(f"{path} is {logs[0].format} without a single answer")
    if column is not None and logs[0].why == "format":
        raise LogError(f"{path} is {logs[0].format}, which has no columns: --answers names one of a table")
    return logs


# ----- results of this project


def _of_result(path: Path, data: str | None, cache: Path | None) -> AnswerLog:
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
        texts: Sequence[str] = stored_answers(result, opened, cache)
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
        StoredAnswer({"the cache": text}, row["id"], number, question=prompt, options=options)
        for (row, number), text, prompt, options in zip(asked, texts, opened.prompts, opened.options, strict=True)
    )
    return AnswerLog(f"{result.model.id}, {result.task}", answers, "a result of this project", rows=opened.rows)


# ----- files of text


def _of_text(path: Path, column: str | None) -> AnswerLog:
    """The log in a file of text: a table, JSON Lines, or JSON."""
    with open_file(path) as stream:
        first = stream.readline(LARGEST_TABLE)
        has_more = bool(stream.readline(LARGEST_TABLE).strip())
    try:
        row = json.loads(first.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        row = None
    is_lines = isinstance(row, dict) and (has_more or path.suffix in (".jsonl", ".ndjson"))
    if is_lines and {"doc_id", "target"} <= row.keys():
        # With clips in it, it has gigabytes: it is read line by line.
        return AnswerLog(str(path), tuple(map(_of_lmms, _lines(path))), *LMMS_EVAL)
    is_json = first.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
    size, limit = path.stat().st_size, LARGEST_LOG if is_lines else LARGEST_FILE if is_json else LARGEST_TABLE
    if size > limit:
        raise LogError(
            f"{path} has {size:,} bytes; JSON is read up to {LARGEST_FILE:,}, a table up to {LARGEST_TABLE:,}"
        )
    if not is_json:
        rows = open_table(path, otherwise="cp1252", ragged="cut")
        return _of_table(path, "a table", rows.records(), column)
    if is_lines:
        return _of_table(path, "JSON Lines", _lines(path), column)
    value = _parsed(read_file(path), str(path))
    if isinstance(value, dict) and isinstance(value.get("samples"), list) and "eval" in value:
        return AnswerLog(str(path), tuple(map(_of_inspect, value["samples"])), *INSPECT_AI)
    return _of_table(path, *_rows_in(path, value), column)


def _rows_in(path: Path, value: Any) -> tuple[str, Sequence[Any]]:
    """The rows in JSON, with their form in words: a list, one below a name, or answers or objects by id.

    Raises:
        LogError: there are none, or several lists.
    """
    if isinstance(value, list):
        return "a list in JSON", value
    names = ("details", "results", "predictions", "answers", "responses", "outputs", "data", "samples")
    held = value if isinstance(value, dict) else {}
    # Results of a run stand below a name, beside its settings and scores: in a list, or else by id.
    if not any(isinstance(held.get(name), list) for name in names):
        held = next((held[name] for name in names if isinstance(held.get(name), dict) and held[name]), held)
    lists = [name for name, rows in held.items() if isinstance(rows, list) and dict in map(type, rows)]
    if len(lists) == 1:
        return f"a list in JSON below {lists[0]!r}", held[lists[0]]
    if held and {_plain(name) for name in held} & set(_ROLES["ids"]):
        return "one row in JSON", [held]
    if held and set(map(type, held.values())) == {dict} and set.intersection(*map(set, held.values())):
        return "rows by id in JSON", [{"id": id, **row} for id, row in held.items()]
    if held and all(map(texts_of, held.values())):
        return "answers by id in JSON", [{"id": id, "response": answer} for id, answer in held.items()]
    what = f"several lists: {shown(lists)}" if lists else shown([*map(str, held)]) or "no rows"
    raise LogError(
        f"{path} is JSON with {what}: it is no list of answers, and no inspect_ai log with samples; give the list as a "
        "file of its own (of lmms-eval, the file *_samples_*.jsonl that --log_samples writes)"
    )


def _parsed(content: bytes, where: str) -> Any:
    try:
        return parse_json(content.decode("utf-8-sig"))
    except RecursionError:
        raise LogError(f"{where} is nested too deep") from None
    except ValueError as error:
        raise LogError(f"{where} is no JSON: {first_line(error)}") from error


def _lines(path: Path) -> Iterator[Any]:
    with open_file(path) as stream:
        for number in range(1, MOST_ANSWERS + 2):
            line = stream.readline(LARGEST_TABLE + 1)
            if not line:
                return
            if len(line) > LARGEST_TABLE or number > MOST_ANSWERS:
                raise LogError(f"{path} has more than {MOST_ANSWERS:,} lines, or {LARGEST_TABLE:,} bytes in one")
            if line.strip():
                yield _parsed(line, f"{path}, line {number:,},")


# ----- tables of answers

_ROLES = {
    role: tuple(names.split())
    for role, names in {
        "right answers": "correct_answer right_answer answer_gt gt_answer true_answer ground_truth reference target "
        "gold gt answer_text correct_choice correct_option label true_letter answer_label answer_index answer",
        "options": "options choices choice choices_list candidates",
        "ids": "id question_id qid uid sample_id example_id index idx",
        "numbers": "order epoch run trial attempt chain_id",
        "questions": "question prompt instruction input",
        "scores": "score rate_score correct is_correct hit accuracy",
    }.items()
}
"""Headings of the other columns; the first one found is used. In lower case, with _ for all but letters."""

_ANSWERS, _BESIDE, _DESCRIBING = (
    frozenset(words.split())
    for words in (
        # A heading of answers has words of these two alone, and one of the first: model_output, answer_prediction.
        "response responses output outputs prediction predictions predicted pred preds completion generation generated "
        "hypothesis reply final raw llm",
        "model answer answers text full parsed extracted choice option letter letters label",
        # Whole headings that say more of a question, and hold no answers.
        "audio audio_id audio_path audio_file file file_name filename path wav clip url split dataset source task "
        "category sub_category type kind difficulty modality language group speaker seed time date unnamed_0",
    )
)


def _plain(heading: Any) -> str:
    return re.sub(r"\W+", "_", str(heading).strip().lower())


def _of_table(path: Path, format: str, rows: Iterable[Any], column: str | None) -> AnswerLog:
    """The log in rows with headings."""
    kept: list[dict[Any, Any]] = []
    names: dict[str, str] = {}
    for line, row in enumerate(rows, 1):
        # A list of texts has one column.
        values = {"response": row} if isinstance(row, str) else row
        if not isinstance(values, Mapping) or line > MOST_ANSWERS:
            raise LogError(f"{path}: row {line:,} is no object with names and values, or more than {MOST_ANSWERS:,}")
        is_clip = {name: isinstance(value, str) and len(value) > LONGEST_VALUE for name, value in values.items()}
        kept.append({name: value for name, value in values.items() if name and not is_clip[name]})
        names |= {plain: name for name in kept[-1] if (plain := _plain(name)) not in names}
    if column is not None and _plain(column) not in names:
        raise LogError(f"{path} has no column {column!r}; {nearest(column, names.values())}")
    words = {name: set(plain.split("_")) for plain, name in names.items()}
    answering = [name for name, said in words.items() if said <= _ANSWERS | _BESIDE and said & _ANSWERS]
    candidates, why = (answering, "heading") if column is None else ([names[_plain(column)]], "named")
    heads: dict[str, str] = {}
    for role, known in _ROLES.items():
        there = [names[plain] for plain in known if plain in names and names[plain] not in candidates]
        heads |= {role: there[0]} if there else {}
    lettered = [] if {"options", "choices"} & names.keys() else numbered_headings(names, "options")
    of_options = [names[plain] for plain in lettered] if len(lettered) > 1 else []
    options = [[row.get(name) for name in of_options] or row.get(heads.get("options")) for row in kept]
    if not candidates:
        # The only text beside ids and questions is the model's; beside options or anything else it may be the key.
        answer, right = names.get("answer"), heads.get("right answers")
        beside = {*of_options, *(heads.get(role) for role in ("ids", "numbers", "questions", "scores"))}
        has_options = any(len(options_of(value)) > 1 for value in options)
        beside |= {heads.get("options") if has_options else None}
        candidates = [name for plain, name in names.items() if name not in beside and plain not in _DESCRIBING]
        is_only = answer is not None and {*candidates} <= {answer, right}
        why = "only" if is_only and not (has_options and right == answer) else ""
        candidates.sort(key=lambda name: name == answer, reverse=why == "only")
        if why == "only" and right == answer:
            del heads["right answers"]
    if kept and not candidates:
        raise LogError(f"{path} has {shown([*names.values()], 20) or 'no names'}, and no column of answers")
    answers = []
    for place, row in enumerate(kept):
        of_role = {role: row.get(heads.get(role)) for role in _ROLES} | {"options": options[place], "place": place}
        answers.append(_stored({name: row.get(name) for name in candidates}, of_role))
    fields = {role: repr(head) for role, head in heads.items()}
    if any(answer.options for answer in answers):
        fields["options"] = ", ".join(map(repr, of_options)) or fields.get("options") or "the questions' texts"
    return AnswerLog(str(path), tuple(answers), format, fields, why)


def _stored(values: Mapping[str, Any], of_role: Mapping[str, Any]) -> StoredAnswer:
    """An answer with what its log has in each role; a value of another type than expected counts as missing."""
    roles = ("ids", "numbers", "questions", "right answers")
    id, number, prompt, reference = (_text(of_role.get(role)) for role in roles)
    options = options_of(of_role.get("options")) or lettered_options(prompt)
    place, scores = of_role.get("place"), of_role["scores"]
    by = [{LOG: one} for one in map(_score, scores if isinstance(scores, list) else [scores]) if one is not None]
    place = place if isinstance(place, int) else None
    return StoredAnswer(values, id, number, place, prompt, options, reference, by[0] if by else {})


def texts_of(value: Any, depth: int = 5) -> list[str]:
    """The answers in a stored value: a text or number; of a list each text, or its parts as one; of an object its text.

    >>> texts_of([{"type": "text", "text": "a dog"}]), texts_of({"content": "rain"}), texts_of(["dog", "car"])
    (['a dog'], ['rain'], ['dog', 'car'])
    """
    if isinstance(value, str | int | float):
        return [str(value)]
    if isinstance(value, dict) and depth:
        return next((texts for name in ANSWER_FIELDS if (texts := texts_of(value.get(name), depth - 1))), [])
    if not isinstance(value, list) or not depth:
        return []
    if any(isinstance(part, dict) for part in value):
        # Parts of a message are one answer; what a model thought is none.
        texts = [text for part in value if not is_thought(part) for text in texts_of(part, depth - 1)]
        return ["\n".join(texts)] if texts else []
    parts = [part for part in value if isinstance(part, str | list)]
    # Numbers beside texts are scores, and several without a text likelihoods.
    parts = parts or (value if len(value) == 1 else [])
    return [text for part in parts for text in texts_of(part, depth - 1)]


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
        names = ("score", "overall", "accuracy", "correct", "value")
        value = next((value[name] for name in names if name in value), None)
    text = _text(value).strip().lower()
    try:
        score = _TRUTHS[text] if text in _TRUTHS else float(text)
    except ValueError:
        return None
    return score if 0 <= score <= 1 else None


# ----- lmms-eval

LMMS_EVAL = ("an lmms-eval log", {"right answers": "target", "options": "input"})
_OF_HOST = frozenset(
    ("doc_id", "target", "resps", "filtered_resps", "token_counts", "doc_hash", "input_media", "input", "doc")
)
"""Names that lmms-eval itself writes; the others are measures of the task, each with what the task makes of a row."""


def _of_lmms(row: Any) -> StoredAnswer:
    """A line of lmms-eval, with its answers before the filters of its task: several where a question was put again."""
    values = row if isinstance(row, dict) else {}
    stored = values.get("resps", values.get("filtered_resps"))
    measures = [value for name, value in values.items() if name not in _OF_HOST]
    ids = [value["id"] for value in measures if isinstance(value, dict) and value.get("id")]
    given = {"resps": stored if isinstance(stored, str | list) else None}
    of_role = {"ids": ids[:1], "place": values.get("doc_id"), "questions": values.get("input"), "scores": measures}
    return _stored(given, of_role | {"right answers": values.get("target")})


# ----- inspect_ai


INSPECT_AI = ("an inspect_ai log", {"right answers": "target", "options": "choices, or the prompt"})


def _of_archive(path: Path, column: str | None) -> AnswerLog:
    """The log in the zip ``.eval``, a file of JSON a sample and epoch, in ``samples``; or in a workbook."""
    archive = ZippedFiles(path)
    if "[Content_Types].xml" in archive.names:
        return _of_table(path, "a workbook", workbook_rows(archive), column)
    names = [name for name in archive.names if name.startswith("samples/") and name.endswith(".json")]
    if not names:
        raise LogError(f"{path} holds {shown(archive.names) or 'nothing'}, and no samples of inspect_ai")
    size, answers = 0, []
    for name in names:
        try:
            content = archive.file(name).getvalue()
        except DatasetError as error:
            raise LogError(f"{path}: {name} {error}") from error
        size += len(content)
        if size > LARGEST_LOG:
            raise LogError(f"{path} has samples of more than {LARGEST_LOG:,} bytes")
        answers.append(_of_inspect(_parsed(content, f"{path}: {name}")))
    return AnswerLog(str(path), tuple(answers), *INSPECT_AI)


def _of_inspect(sample: Any) -> StoredAnswer:
    """A sample of inspect_ai."""
    values = sample if isinstance(sample, dict) else {}
    output, scores = values.get("output"), values.get("scores")
    text = output.get("completion") if isinstance(output, dict) else None
    # The words that were put to a model: a text, or messages of parts.
    messages = values.get("messages") or values.get("input")
    asked = [
        message.get("content")
        for message in (messages if isinstance(messages, list) else [{"content": messages}])
        if isinstance(message, dict) and message.get("role") != "assistant"
    ]
    prompt = "\n".join(text for content in asked for text in texts_of(content))
    given = {"output.completion": text if isinstance(text, str) and not values.get("error") else None}
    scores = list(scores.values()) if isinstance(scores, dict) else []
    of_role = {"ids": values.get("id"), "numbers": values.get("epoch"), "questions": prompt, "scores": scores}
    return _stored(given, of_role | {"options": values.get("choices"), "right answers": values.get("target")})
