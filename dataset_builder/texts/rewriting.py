"""Captions and negatives by a language model: accepted texts replace template texts; other rows are unchanged.

Rendering on the fly never prompts a model. `written_data` does so before, for all rows, so that the fingerprint of the
data can include the texts. Any causal language model of transformers can be used, from the Hub or a folder; it decodes
greedily, in batches.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Protocol

from tqdm import tqdm

from audio_compositionality.support.checked_files import DamagedError, TornError, parsed_line, sealed_line
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import (
    cache_folder,
    packaged_yaml,
    read_file,
    safe_file_name,
    sha256_of,
    sha256_of_file,
    sha256_of_json,
)
from audio_compositionality.support.text import first_line, listed

from ..data import DatasetError, Row, recipe_fingerprint
from ..recipes import load_recipe
from ..rendered import RenderedConfiguration, RenderedData
from ..scenes.captioned import leaves
from .caption_reading import (
    MOST_WORDS,
    Judge,
    Judgement,
    Reason,
    UnreadableError,
    cues_of,
    negative_kind,
    reading_digest,
    texts_of_answer,
    words_in,
)
from .captions import bag_of_words, named
from .truth import HeardEvent, is_false

if TYPE_CHECKING:
    from datasets import Features


WRITER = "language-model"
"""Value of the column ``writer`` in a row with a text by a model."""

TEMPLATE = "language-model"
"""Value of the column ``template`` in an item whose first two captions were written by a model."""

_ROWS_AT_A_TIME = 64

_MOST_WORDS_SHOWN = 10


@dataclass
class WriterReport:
    """Counts of a model's accepted and refused texts.

    Attributes:
        model: its name.
        asked: number of requested texts.
        refusals: number of refused texts for each reason.
        left: number of rows for which no text was requested, because their own captions cannot be read.
        words: words that made texts ``undecided``, with their frequency.
        shares: share of each negative's words that also occur in the caption, for the writers ``template`` and
            ``language-model``.
    """

    model: str
    asked: int = 0
    refusals: Counter[Reason] = field(default_factory=Counter)
    left: int = 0
    words: Counter[str] = field(default_factory=Counter)
    shares: dict[str, list[float]] = field(default_factory=dict)

    def count(self, judgement: Judgement) -> None:
        """Count a text."""
        self.asked += 1
        if judgement.reason is not None:
            self.refusals[judgement.reason] += 1
        if judgement.word:
            self.words[judgement.word] += 1

    def compare(self, writer: str, negative: str, caption: str) -> None:
        """Count the words of a negative that also occur in the caption."""
        one, other = Counter(bag_of_words(negative)), Counter(bag_of_words(caption))
        self.shares.setdefault(writer, []).append(2 * (one & other).total() / (one.total() + other.total()))

    @property
    def taken(self) -> int:
        """Return the number of accepted texts."""
        return self.asked - self.refusals.total()

    @property
    def refused(self) -> dict[Reason, int]:
        """Return the number of refused texts for each reason, most frequent first."""
        return dict(self.refusals.most_common())

    @property
    def overlap(self) -> dict[str, float]:
        """Return the mean share of a negative's words that are in the caption, by writer; empty without any."""
        return {writer: sum(shares) / len(shares) for writer, shares in sorted(self.shares.items())}

    @property
    def unlisted(self) -> dict[str, int]:
        """Return the words for which most texts were undecided."""
        return dict(self.words.most_common(_MOST_WORDS_SHOWN))

    def sentences(self) -> Iterator[str]:
        """Yield the report as sentences."""
        share = self.taken / self.asked if self.asked else 0.0
        yield f"Of {self.asked:,} texts requested from {self.model}, {self.taken:,} are accepted ({share:.0%})."
        if self.refusals:
            reasons = [f"{count:,} {reason!r}" for reason, count in self.refused.items()]
            yield f"Refused: {listed(reasons, len(reasons))}; the template texts are kept instead."
        if self.words:
            yield f"Words most often refused as undecided: {listed(list(self.unlisted), _MOST_WORDS_SHOWN)}."
        if self.left:
            yield f"No texts were requested for {self.left:,} rows whose captions cannot be read."
        if self.shares:
            shares = [f"{share:.2f} by {writer}" for writer, share in self.overlap.items()]
            yield f"Mean share of words in negatives that also occur in the caption: {listed(shares)}."


def rewrite(
    rows: Sequence[Row], writer: LanguageModelWriter, *, progress: bool = False
) -> tuple[tuple[Row, ...], WriterReport]:
    """Return rows with the accepted texts of a model, and a report.

    Each caption of a training row is paraphrased, except the last of several, which is written from the sounds and
    their times instead; three negatives are also requested. An accepted text replaces a template text, a negative one
    of its kind. All captions of an item are paraphrased, the first two in the same words or not at all. The column
    ``writer`` of every row names the author.

    Args:
        rows: rows with ``captions``, ``events``, and for training ``negatives``.
        writer: writes the texts; it decides whether the test split is rewritten.
        progress: show a progress bar.

    Returns:
        The same number of rows, and the report on the texts.
    """
    report = WriterReport(writer.model.identity["model"])
    result: list[Row] = []
    with tqdm(total=len(rows), unit="row", desc="texts", disable=None if progress else True) as bar:
        for start in range(0, len(rows), _ROWS_AT_A_TIME):
            part = rows[start : start + _ROWS_AT_A_TIME]
            judges, prompts = [], []
            for row in part:
                judged: list[Judge] = []
                is_of_training = "negatives" in row
                texts, events = row["captions"], row["events"]
                if is_of_training:
                    texts = (*texts, *row["parts"], *(negative["text"] for negative in row["negatives"]))
                    # All captions describe the row's only clip.
                    events = [events] * len(row["captions"])
                if row["split"] != "test" or writer.in_test:
                    training = is_of_training or row["split"] != "test"
                    try:
                        for caption, of_clip in zip(row["captions"], events, strict=True):
                            heard = [HeardEvent.of(event) for event in of_clip]
                            judged.append(Judge.of(caption, heard, texts=texts, training=training))
                    except UnreadableError:
                        judged = []
                        report.left += 1
                judges.append(judged)
                prompts.append(_prompts(row, judged))
            answers = iter(writer.model.generate([prompt for of_row in prompts for prompt in of_row]))
            for row, of_row, asked in zip(part, judges, prompts, strict=True):
                answered = [next(answers) for _ in asked]
                if not of_row:
                    result.append({**row, "writer": row.get("writer", "template")})
                else:
                    rewritten = _rewritten_training if "negatives" in row else _rewritten_item
                    result.append(rewritten(row, of_row, answered, report))
            bar.update(len(part))
    return tuple(result), report


def _is_described(place: int, judges: Sequence[Judge]) -> bool:
    """Return whether a caption of a training row is written from the sounds and their times."""
    return place > 0 and place == len(judges) - 1


def _prompts(row: Row, judges: Sequence[Judge]) -> list[str]:
    if "negatives" not in row:
        return [paraphrase_prompt(judge) for judge in judges]
    asked = [
        description_prompt(judge) if _is_described(place, judges) else paraphrase_prompt(judge)
        for place, judge in enumerate(judges)
    ]
    # A single sound has no other order.
    if judges and len(leaves(judges[0].caption.expression)) > 1:
        asked.append(_prompt("negatives", judges[0], caption=judges[0].text, count=str(NEGATIVES)))
    return asked


def _rewritten_training(row: Row, judges: Sequence[Judge], answers: Sequence[str], report: WriterReport) -> Row:
    """Return a training row with the accepted parts of the answers."""
    captions, written = [], set[str]()
    for place, (caption, judge) in enumerate(zip(row["captions"], judges, strict=True)):
        most_words = MOST_WORDS - 1 if _is_described(place, judges) else MOST_WORDS
        judgement = equivalent(answers[place], judge.beside(*written), most_words=most_words)
        report.count(judgement)
        captions.append(judgement.text or caption)
        written.add(judgement.text)
    negatives = [dict(negative) for negative in row["negatives"]]
    of_template = [*negatives]
    for judgement in false_texts(answers[-1], judges[0].beside(*written)) if len(answers) > len(judges) else ():
        report.count(judgement)
        written.add(judgement.text)
        if judgement.reading is None:
            continue
        # Replace a template text of the same kind, so that kinds stay balanced; otherwise append.
        new = {"text": judgement.text, "kind": negative_kind(judgement.reading, judges[0].caption)}
        replaced = next((one for one in of_template if one["kind"] == new["kind"]), None)
        if replaced is None:
            negatives.append(new)
        else:
            of_template.remove(replaced)
            negatives[next(place for place, one in enumerate(negatives) if one is replaced)] = new
    for negative in negatives:
        author = "template" if any(negative is one for one in of_template) else WRITER
        report.compare(author, negative["text"], row["captions"][0])
    return {**row, "captions": captions, "negatives": negatives, "writer": WRITER if any(written) else "template"}


def _rewritten_item(row: Row, judges: Sequence[Judge], answers: Sequence[str], report: WriterReport) -> Row:
    """Return an item with the accepted answers; its first two captions have the same words, or are unchanged."""
    judgements = []
    for judge, answer in zip(judges, answers, strict=True):
        judgement = equivalent(answer, judge)
        others = (other.events for other in judges if other is not judge)
        if judgement.reading is not None and not all(is_false(judgement.reading.expression, one) for one in others):
            judgement = Judgement(reason="wrong")
        judgements.append(judgement)
    one, other = (judgement.text for judgement in judgements[:2])
    if not (one and other and sorted(words_in(one)) == sorted(words_in(other))):
        # Otherwise the wording alone would distinguish the two captions.
        refused = Judgement(reason="counterparts")
        judgements[:2] = [refused if judgement.text else judgement for judgement in judgements[:2]]
    for judgement in judgements:
        report.count(judgement)
    taken = [judgement.text for judgement in judgements]
    captions = [text or caption for text, caption in zip(taken, row["captions"], strict=True)]
    changes = {"captions": captions, "writer": WRITER if any(taken) else row["writer"]}
    return {**row, **changes, **({"template": TEMPLATE} if taken[0] else {})}


NEGATIVES = 3
"""Number of requested negatives (arXiv 2310.08753)."""


class TextModel(Protocol):
    """A model for text prompts, e.g. `LanguageModel`."""

    @property
    def identity(self) -> Mapping[str, str]:
        """Return ``model``, ``revision`` and everything else that determines its answers."""
        ...

    def generate(self, prompts: Sequence[str]) -> Sequence[str]:
        """Return the answer to each prompt."""
        ...


class LanguageModelWriter:
    """Prompts a model for texts about clips.

    Attributes:
        model: the model to prompt.
        in_test: whether it also rewrites the test split. Off by default, since models should not be tested on texts
            by a model of the same kind.
    """

    def __init__(self, model: TextModel, *, in_test: bool = False) -> None:
        self.model = model
        self.in_test = in_test

    @property
    def identity(self) -> dict[str, Any]:
        """Return everything but the rows that determines which texts are accepted, as JSON values."""
        return {**self.model.identity, "prompts": writer_digest(), "in_test": self.in_test}


def equivalent(answer: str, judge: Judge, *, most_words: int = MOST_WORDS) -> Judgement:
    """Return the judgement of an answer's caption."""
    texts = texts_of_answer(answer, "caption")
    if texts is None:
        return Judgement(reason="no JSON")
    return judge.equivalent(texts[0] if texts else None, most_words=most_words)


def false_texts(answer: str, judge: Judge) -> list[Judgement]:
    """Return the judgements of the first `NEGATIVES` negatives of an answer, without duplicates."""
    texts = texts_of_answer(answer, "negatives")
    if texts is None:
        return [Judgement(reason="no JSON")] * NEGATIVES
    judgements: list[Judgement] = []
    for text in [*texts, *[None] * NEGATIVES][:NEGATIVES]:
        judgements.append(judge.negative(text))
        judge = judge.beside(judgements[-1].text)
    return judgements


def paraphrase_prompt(judge: Judge) -> str:
    """Return the prompt for a paraphrase of the caption."""
    return _prompt("paraphrase", judge, caption=judge.text)


def description_prompt(judge: Judge) -> str:
    """Return the prompt for a caption of fewer than `MOST_WORDS` words, from the sounds and their times, by onset."""
    lines = []
    for leaf in leaves(judge.caption.expression):
        fitting = [event for event in judge.events if event.is_of(leaf)]
        times = ", ".join(f"{event.start:.1f} to {event.stop:.1f} s" for event in fitting)
        lines.append((min((event.start for event in fitting), default=0.0), f"- {named(leaf)}: {times}"))
    return _prompt("description", judge, sounds="\n".join(line for _, line in sorted(lines)))


def _prompt(name: str, judge: Judge, **values: str) -> str:
    mention = judge.caption.mention
    # Phrases that join sounds, with sequences in one direction; no phrase that is reserved for test.
    sequence = cues_of("reverse" if mention == "reverse" else "forward")
    joining = dict.fromkeys((*sequence, *cues_of("with", "together", "throughout")))
    return Template(_content()[name]).substitute(
        values,
        order=_content()["order"][mention],
        joining=", ".join(joining),
        verbs=", ".join(_content()["verbs"]),
    )


@cache
def writer_digest() -> str:
    """Return the SHA-256 of the prompts and the readable words, which determine the accepted texts."""
    return sha256_of_json([_content(), reading_digest()])


def _content() -> Mapping[str, Any]:
    content: Mapping[str, Any] = packaged_yaml(__package__, "writer.yaml")
    return content


MOST_NEW_TOKENS = 200
"""Most tokens of an answer: three captions of thirty words as JSON, with some margin."""

_BATCH_SIZES = {"cpu": 4}
_BATCH_SIZE = 32

_READ = (".json", ".safetensors", ".txt", ".model", ".jinja")
"""Files in a folder that determine a model's answers."""


class LanguageModel:
    """A causal language model; see `TextModel`.

    A model with a chat template gets the prompt as a user's only message; any other model continues the prompt. The
    most probable token is chosen each time, whatever the model's own sampling settings. Code that comes with a model is
    never executed, and only safetensors weights are read.
    """

    def __init__(
        self,
        name: str | Path,
        *,
        revision: str | None = None,
        device: str | None = None,
        batch_size: int | None = None,
        most_new_tokens: int | None = None,
    ) -> None:
        """Load the model.

        Args:
            name: a folder, or a Hub id.
            revision: branch, tag or commit of a Hub id.
            device: as torch names it; by default CUDA if available, else the CPU.
            batch_size: prompts at a time; by default 32, or 4 on the CPU.
            most_new_tokens: most tokens of an answer; by default `MOST_NEW_TOKENS`.

        Raises:
            InputError: the model does not exist, is not causal, or needs its own code.
        """
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._batch_size = batch_size or _BATCH_SIZES.get(self._device, _BATCH_SIZE)
        self._most_new_tokens = most_new_tokens or MOST_NEW_TOKENS
        folder = Path(name) if Path(name).is_dir() else None
        where = {"revision": revision, "trust_remote_code": False}
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(str(name), **where)
            # On a CPU, half precision is slower, or rounds differently.
            dtype = "auto" if torch.device(self._device).type == "cuda" else torch.float32
            model: Any = AutoModelForCausalLM.from_pretrained(str(name), dtype=dtype, use_safetensors=True, **where)
            self._model: Any = model.to(self._device).eval()
        except Exception as error:
            raise InputError(
                f"cannot load the language model {str(name)!r}: {first_line(error).rstrip('.')}. Give the folder or "
                "Hub id of a causal language model that transformers can open without the model's own code, with a "
                "tokenizer and safetensors weights"
            ) from error
        if folder:
            read = sorted(path for path in folder.iterdir() if path.is_file() and path.suffix in _READ)
            digests = [f"{path.name} {sha256_of_file(path)}" for path in read]
            self._name, self._revision = folder.resolve().name, sha256_of("\n".join(digests).encode())
        else:
            self._name, self._revision = str(name), str(getattr(self._model.config, "_commit_hash", None))
        # Tokens that end an answer: the model's, else the tokenizer's, else none.
        end = getattr(self._model.generation_config, "eos_token_id", None)
        end = self._tokenizer.eos_token_id if end is None else end
        self._end: list[int] = [] if end is None else [end] if isinstance(end, int) else list(end)

    @property
    def identity(self) -> Mapping[str, str]:
        """Return name, revision (the commit; for a folder the digest of its files), precision and decoding.

        With other batches, or on another device, rounding may favour another word.
        """
        return {
            "model": self._name,
            "revision": self._revision,
            "precision": str(self._model.dtype).removeprefix("torch."),
            "decoding": f"greedy, at most {self._most_new_tokens} tokens, {self._batch_size} at a time",
        }

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """Return the answer to each prompt, without the prompt.

        Raises:
            InputError: a prompt and its answer are longer than the model's context.
        """
        import torch
        from transformers import GenerationConfig

        padding = self._end[0] if self._end else 0
        # Fields that are not set here are taken from the model's generation configuration, which may sample or
        # penalise.
        greedy = self._model.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]
            do_sample=False,
            num_beams=1,
            max_new_tokens=self._most_new_tokens,
            eos_token_id=self._end or None,
            pad_token_id=padding,
        )
        answers: list[str] = []
        for start in range(0, len(prompts), self._batch_size):
            batch = [self._tokens(prompt) for prompt in prompts[start : start + self._batch_size]]
            longest = max(map(len, batch))
            # Left padding: all prompts end, and all answers begin, at the same position.
            rows = [[padding] * (longest - len(tokens)) + tokens for tokens in batch]
            mask = [[0] * (longest - len(tokens)) + [1] * len(tokens) for tokens in batch]
            with torch.inference_mode():
                tokens = self._model.generate(
                    input_ids=torch.tensor(rows, device=self._device),
                    attention_mask=torch.tensor(mask, device=self._device),
                    generation_config=greedy,
                )
            answers += self._tokenizer.batch_decode(tokens[:, longest:], skip_special_tokens=True)
        return answers

    def _tokens(self, prompt: str) -> list[int]:
        text = prompt
        chats = getattr(self._tokenizer, "chat_template", None) is not None
        if chats:
            # Thinking is switched off in models that have it; other models ignore this.
            text = self._tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}],
                add_generation_prompt=True,
                tokenize=False,
                enable_thinking=False,
            )
        tokens: list[int] = self._tokenizer(text, add_special_tokens=not chats)["input_ids"]
        limit = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        if isinstance(limit, int) and len(tokens) + self._most_new_tokens > limit:
            raise InputError(
                f"{self._name} reads at most {limit:,} tokens, but a prompt has {len(tokens):,} and its answer up to "
                f"{self._most_new_tokens:,}; choose a model with a longer context"
            )
        return tokens


_WRITTEN = ("captions", "negatives", "writer", "template")
"""Columns that a writer may change."""


class WrittenConfiguration(RenderedConfiguration):
    """A configuration with rows by a writer; their sound is the same.

    Attributes:
        report: report on the texts.
    """

    def __init__(
        self, rendered: RenderedConfiguration, rows: Sequence[Row], report: WriterReport, writer: Mapping[str, Any]
    ) -> None:
        """Use the given rows; no model is prompted.

        Args:
            rendered: the configuration with its template texts.
            rows: its rows, rewritten.
            report: report on the texts.
            writer: identity of the writer.
        """
        super().__init__(rendered.source, rendered.recipe, rendered.settings)
        self.report = report
        self._written_rows = tuple(rows)
        texts = [[row["id"], *(row.get(name) for name in _WRITTEN)] for row in rows]
        self._writer = {**writer, "texts": hashlib.sha256(json.dumps(texts).encode()).hexdigest()}
        self.fingerprint = recipe_fingerprint(self.recipe, load_recipe(self.recipe).version, self.values)

    @property
    def rows(self) -> Sequence[Row]:
        """Return all rows without their audio."""
        return self._written_rows

    @property
    def values(self) -> dict[str, Any]:
        """Return the settings, the writer and the digest of all texts, which can differ between machines."""
        return {**super().values, "writer": self._writer}

    @property
    def features(self) -> Features:
        """Return the columns, including ``writer``."""
        from datasets import Features, Value

        return Features({**super().features, "writer": Value("string")})

    @property
    def description(self) -> str:
        """Return Markdown for the card, with the counts of texts."""
        sentences = "\n".join(f"- {sentence}" for sentence in self.report.sentences())
        return f"""\
{super().description.rstrip()}

### Texts by a language model

Rows with `language-model` as `writer` have captions or negatives by {self._writer["model"]} (revision
`{self._writer["revision"]}`), tested by the same program as the others. They need not contain the words of the
caption.

{sentences}
"""


class WrittenData(RenderedData):
    """Data in which some configurations have rows by a writer; see `written_data`."""

    def __init__(self, data: RenderedData, written: Mapping[str, WrittenConfiguration]) -> None:
        """Use the data's own configurations unless their rows were rewritten."""
        super().__init__(data.source, {name: written.get(name, data.configuration(name)) for name in data.recipes})
        self._written = written

    @property
    def reports(self) -> dict[str, WriterReport]:
        """Return the report on the texts, by the name of the recipe."""
        return {name: configuration.report for name, configuration in self._written.items()}


def written_data(
    data: RenderedData, writer: LanguageModelWriter, *, keep_answers: bool = True, progress: bool = False
) -> WrittenData:
    """Return data with the accepted texts of a language model.

    Args:
        data: data with readable captions; other recipes are unchanged.
        writer: prompts the model.
        keep_answers: store the model's answers in the user's cache, so that an interrupted run continues, and a
            repeated run sends no prompts.
        progress: show a progress bar.

    Raises:
        DatasetError: an answer in the cache was changed.
        InputError: no recipe has rows that this writer may rewrite.
    """
    if keep_answers:
        writer = LanguageModelWriter(CachedAnswers(writer.model), in_test=writer.in_test)
    written = {}
    for name in data.recipes:
        configuration = data.configuration(name)
        if any(
            {"captions", "events"} <= row.keys() and (row["split"] != "test" or writer.in_test)
            for row in configuration.rows
        ):
            rows, report = rewrite(configuration.rows, writer, progress=progress)
            written[name] = WrittenConfiguration(configuration, rows, report, writer.identity)
    if not written:
        raise InputError(
            f"none of {', '.join(data.recipes)} has captions that a language model may rewrite: captions of "
            "training rows, "
            "and of test rows only if requested"
        )
    return WrittenData(data, written)


class CachedAnswers:
    """A model that is prompted only once for each text; its answers are stored in the user's cache. See `TextModel`.

    Each line has its own digest. An incomplete line is skipped, and its prompt repeated; a changed line is refused,
    since other texts would be other data.
    """

    def __init__(self, model: TextModel) -> None:
        """Read nothing yet."""
        self._model = model

    @property
    def identity(self) -> Mapping[str, str]:
        """Return the model's identity."""
        return self._model.identity

    @cached_property
    def path(self) -> Path:
        """Return the file of the answers, one per line."""
        name = safe_file_name(f"{self.identity['model']}-{self._digest[:12]}")
        return cache_folder() / "written" / f"{name}.jsonl"

    @cached_property
    def _digest(self) -> str:
        """Return the SHA-256 of the model's identity: answers of other models are in other files."""
        return sha256_of_json(dict(self.identity))

    @cached_property
    def _answers(self) -> dict[str, str]:
        answers: dict[str, str] = {}
        torn: list[str] = []
        for number, line in enumerate(read_file(self.path).split(b"\n") if self.path.exists() else [], 1):
            # Each write begins with a line end, to close a line that was cut short.
            if not line:
                continue
            try:
                prompt, answer = parsed_line(line, self._digest)
                answers[prompt] = answer
            except TornError as error:
                torn.append(f"{error} (line {number})")
            except DamagedError as error:
                raise DatasetError(
                    f"line {number} of {self.path} was changed after it was written: {error}. Remove the line; "
                    "the model is then prompted again"
                ) from error
        if torn:
            # A file written before answers had digests can have thousands.
            warnings.warn(
                f"{len(torn):,} lines of {self.path} are skipped, and their prompts repeated: {torn[0]}",
                stacklevel=2,
            )
        return answers

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """Return the answer to each prompt; only new prompts are sent to the model."""
        keys = [sha256_of(prompt.encode()) for prompt in prompts]
        asked = {key: prompt for key, prompt in zip(keys, prompts, strict=True) if key not in self._answers}
        if asked:
            answers = dict(zip(asked, self._model.generate(list(asked.values())), strict=True))
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as stream:
                # Begin a new line if the last one was cut short.
                stream.write(b"\n" + b"".join(sealed_line([*both], self._digest) for both in answers.items()))
            self._answers.update(answers)
        return [self._answers[key] for key in keys]
