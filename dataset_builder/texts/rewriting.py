"""Rows with captions and negatives of a language model, where its texts are accepted; else rows stay unchanged.

Rendering on the fly never prompts a model: `written_data` does so before, for all rows, so that the identity of the
data can include the texts. Any causal language model of transformers can write, from the Hub or a folder:
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
"""Value of the column ``writer`` in a row with a text of a model."""

TEMPLATE = "language-model"
"""Value of the column ``template`` in an item whose first two captions are a model's."""

_ROWS_AT_A_TIME = 64

_MOST_WORDS_SHOWN = 10


@dataclass
class WriterReport:
    """Counts of a model's texts and their fate.

    Attributes:
        model: its name.
        asked: number of requested texts.
        refusals: number for each reason.
        left: rows without a request, since their own captions cannot be read.
        words: for which texts were ``undecided``, with their frequency.
        shares: of each negative's words those that are also in the caption, for the writers ``template`` and
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
        """Count the words of a negative that are also in the caption."""
        one, other = Counter(bag_of_words(negative)), Counter(bag_of_words(caption))
        self.shares.setdefault(writer, []).append(2 * (one & other).total() / (one.total() + other.total()))

    @property
    def taken(self) -> int:
        """Number of accepted texts."""
        return self.asked - self.refusals.total()

    @property
    def refused(self) -> dict[Reason, int]:
        """Number of refused texts for each reason, the most frequent first."""
        return dict(self.refusals.most_common())

    @property
    def overlap(self) -> dict[str, float]:
        """Mean share of a negative's words that are also in the caption, by writer; empty without negatives."""
        return {writer: sum(shares) / len(shares) for writer, shares in sorted(self.shares.items())}

    @property
    def unlisted(self) -> dict[str, int]:
        """The words for which most texts were undecided."""
        return dict(self.words.most_common(_MOST_WORDS_SHOWN))

    def sentences(self) -> Iterator[str]:
        """The report for a person."""
        share = self.taken / self.asked if self.asked else 0.0
        yield f"Of {self.asked:,} texts requested from {self.model}, {self.taken:,} are accepted ({share:.0%})."
        if self.refusals:
            reasons = [f"{count:,} {reason!r}" for reason, count in self.refused.items()]
            yield f"Refused: {listed(reasons, len(reasons))}; the template texts stay in their place."
        if self.words:
            yield f"Words most often refused as undecided: {listed(list(self.unlisted), _MOST_WORDS_SHOWN)}."
        if self.left:
            yield f"The captions of {self.left:,} rows cannot be read; no texts were requested for them."
        if self.shares:
            shares = [f"{share:.2f} by {writer}" for writer, share in self.overlap.items()]
            yield f"Share of words that negatives have in common with the caption: {listed(shares)}."


def rewrite(
    rows: Sequence[Row], writer: LanguageModelWriter, *, progress: bool = False
) -> tuple[tuple[Row, ...], WriterReport]:
    """Rows with the accepted texts of a model.

    Each caption of a training row is paraphrased, but for the last of several, which is written from the sounds and
    their times instead; and three negatives are requested. Each accepted text replaces one by template, a negative one
    of its kind. Each caption of an item is paraphrased, the first two in the same words or not at all. The column
    ``writer`` of every row names the author.

    Args:
        rows: with ``captions``, ``events``, and for training ``negatives``.
        writer: of the texts; it decides whether the test split is rewritten.
        progress: show a progress bar.

    Returns:
        as many rows, and the report on the texts.
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
                    # All captions are about its one clip.
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
    """Whether a caption of a training row is written from the sounds and their times."""
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
    """A training row with the accepted parts of the answers."""
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
        # In the place of one by template of its kind, so that kinds stay balanced; else at the end.
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
    """An item with the accepted answers; its first two captions have the same words, or stay."""
    judgements = []
    for judge, answer in zip(judges, answers, strict=True):
        judgement = equivalent(answer, judge)
        others = (other.events for other in judges if other is not judge)
        if judgement.reading is not None and not all(is_false(judgement.reading.expression, one) for one in others):
            judgement = Judgement(reason="wrong")
        judgements.append(judgement)
    one, other = (judgement.text for judgement in judgements[:2])
    if not (one and other and sorted(words_in(one)) == sorted(words_in(other))):
        # Wording alone would distinguish the two captions.
        refused = Judgement(reason="twins")
        judgements[:2] = [refused if judgement.text else judgement for judgement in judgements[:2]]
    for judgement in judgements:
        report.count(judgement)
    taken = [judgement.text for judgement in judgements]
    captions = [text or caption for text, caption in zip(taken, row["captions"], strict=True)]
    changes = {"captions": captions, "writer": WRITER if any(taken) else row["writer"]}
    return {**row, **changes, **({"template": TEMPLATE} if taken[0] else {})}


NEGATIVES = 3
"""Negatives that are requested (arXiv 2310.08753)."""


class TextModel(Protocol):
    """A model that answers prompts; `LanguageModel` is one."""

    @property
    def identity(self) -> Mapping[str, str]:
        """``model``, ``revision`` and whatever else decides its answers."""
        ...

    def generate(self, prompts: Sequence[str]) -> Sequence[str]:
        """The answer to each prompt."""
        ...


class LanguageModelWriter:
    """Prompts a model for texts about clips.

    Attributes:
        model: to prompt.
        in_test: whether it also rewrites the test split. Models under test should not read the texts of a model of
            their kind, so this is off by default.
    """

    def __init__(self, model: TextModel, *, in_test: bool = False) -> None:
        self.model = model
        self.in_test = in_test

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that decides which texts are accepted for which rows, but for the rows, as JSON values."""
        return {**self.model.identity, "prompts": writer_digest(), "in_test": self.in_test}


def equivalent(answer: str, judge: Judge, *, most_words: int = MOST_WORDS) -> Judgement:
    """The caption of an answer."""
    texts = texts_of_answer(answer, "caption")
    if texts is None:
        return Judgement(reason="no JSON")
    return judge.equivalent(texts[0] if texts else None, most_words=most_words)


def false_texts(answer: str, judge: Judge) -> list[Judgement]:
    """The first `NEGATIVES` negatives of an answer; none of them comes twice."""
    texts = texts_of_answer(answer, "negatives")
    if texts is None:
        return [Judgement(reason="no JSON")] * NEGATIVES
    judgements: list[Judgement] = []
    for text in [*texts, *[None] * NEGATIVES][:NEGATIVES]:
        judgements.append(judge.negative(text))
        judge = judge.beside(judgements[-1].text)
    return judgements


def paraphrase_prompt(judge: Judge) -> str:
    """The prompt for a paraphrase of the caption."""
    return _prompt("paraphrase", judge, caption=judge.text)


def description_prompt(judge: Judge) -> str:
    """The prompt for a caption of less than `MOST_WORDS` words, from the sounds and their times alone, by onset."""
    lines = []
    for leaf in leaves(judge.caption.expression):
        fitting = [event for event in judge.events if event.is_of(leaf)]
        times = ", ".join(f"{event.start:.1f} to {event.stop:.1f} s" for event in fitting)
        lines.append((min((event.start for event in fitting), default=0.0), f"- {named(leaf)}: {times}"))
    return _prompt("description", judge, sounds="\n".join(line for _, line in sorted(lines)))


def _prompt(name: str, judge: Judge, **values: str) -> str:
    mention = judge.caption.mention
    # Words that join sounds, of sequences in one direction; none that is reserved from training.
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
    """SHA-256 of the prompts and of the readable words, which decide the accepted texts."""
    return sha256_of_json([_content(), reading_digest()])


def _content() -> Mapping[str, Any]:
    content: Mapping[str, Any] = packaged_yaml(__package__, "writer.yaml")
    return content


MOST_NEW_TOKENS = 200
"""Most tokens of an answer: three captions of thirty words as JSON, with some to spare."""

_BATCH_SIZES = {"cpu": 4}
_BATCH_SIZE = 32

_READ = (".json", ".safetensors", ".txt", ".model", ".jinja")
"""Files of a folder that decide a model's answers."""


class LanguageModel:
    """A causal language model; see `TextModel`.

    A model with a chat template is prompted by it, as by a user's single message; any other continues the prompt. The
    most probable token is taken each time, whatever the model's own sampling settings. Code that comes with a model is
    never run, and only weights in safetensors are read.
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
            device: as torch names it; by default CUDA where there is one, else the CPU.
            batch_size: prompts at a time; default 32, on the CPU 4.
            most_new_tokens: after which an answer is cut; by default `MOST_NEW_TOKENS`.

        Raises:
            InputError: there is no such model, it is not a causal one, or it needs code of its own.
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
            # In half precision a processor is slower, or else rounds like no other.
            dtype = "auto" if torch.device(self._device).type == "cuda" else torch.float32
            model: Any = AutoModelForCausalLM.from_pretrained(str(name), dtype=dtype, use_safetensors=True, **where)
            self._model: Any = model.to(self._device).eval()
        except Exception as error:
            raise InputError(
                f"cannot load the language model {str(name)!r}: {first_line(error).rstrip('.')}. Give a folder or a "
                "Hub id of a model that transformers opens as a causal language model without code of its own, with a "
                "tokenizer and weights in safetensors"
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
        """Name, revision (the commit; of a folder the digest of its files), precision, and the decoding.

        With other batches, or on another device, rounding may favour another word.
        """
        return {
            "model": self._name,
            "revision": self._revision,
            "precision": str(self._model.dtype).removeprefix("torch."),
            "decoding": f"greedy, at most {self._most_new_tokens} tokens, {self._batch_size} at a time",
        }

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """The answer to each prompt, without the prompt.

        Raises:
            InputError: a prompt and its answer are longer than the model reads.
        """
        import torch
        from transformers import GenerationConfig

        padding = self._end[0] if self._end else 0
        # Unset fields of a generation configuration are taken from the model's, which may sample or penalise words.
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
            # Left padding: all prompts end, and all answers begin, in one place.
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
            # Thinking is switched off in models that have it; others ignore this.
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
                f"{self._name} reads {limit:,} tokens; a prompt has {len(tokens):,} and its answer up to "
                f"{self._most_new_tokens:,}: choose a model with a longer context"
            )
        return tokens


_WRITTEN = ("captions", "negatives", "writer", "template")
"""Columns that a writer may change."""


class WrittenConfiguration(RenderedConfiguration):
    """A configuration with the rows of a writer; their sound is the same.

    Attributes:
        report: on the texts.
    """

    def __init__(
        self, rendered: RenderedConfiguration, rows: Sequence[Row], report: WriterReport, writer: Mapping[str, Any]
    ) -> None:
        """The rows are given; no model is prompted.

        Args:
            rendered: the configuration with its texts by template.
            rows: of it, rewritten.
            report: on the texts.
            writer: its identity.
        """
        super().__init__(rendered.source, rendered.recipe, rendered.settings)
        self.report = report
        self._written_rows = tuple(rows)
        texts = [[row["id"], *(row.get(name) for name in _WRITTEN)] for row in rows]
        self._writer = {**writer, "texts": hashlib.sha256(json.dumps(texts).encode()).hexdigest()}
        self.fingerprint = recipe_fingerprint(self.recipe, load_recipe(self.recipe).version, self.values)

    @property
    def rows(self) -> Sequence[Row]:
        """All rows without their audio."""
        return self._written_rows

    @property
    def values(self) -> dict[str, Any]:
        """The settings, the writer, and the digest of all texts: a model may write other ones on another machine."""
        return {**super().values, "writer": self._writer}

    @property
    def features(self) -> Features:
        """The columns, ``writer`` among them."""
        from datasets import Features, Value

        return Features({**super().features, "writer": Value("string")})

    @property
    def description(self) -> str:
        """Markdown of the card, with the counts of texts."""
        sentences = "\n".join(f"- {sentence}" for sentence in self.report.sentences())
        return f"""\
{super().description.rstrip()}

### Texts by a language model

Rows with `language-model` as `writer` have captions or negatives of {self._writer["model"]} (revision
`{self._writer["revision"]}`), each tested by the program that tests the others. They need not have the words of the
caption.

{sentences}
"""


class WrittenData(RenderedData):
    """Data some of whose configurations have the rows of a writer; see `written_data`."""

    def __init__(self, data: RenderedData, written: Mapping[str, WrittenConfiguration]) -> None:
        """Configurations without rewritten rows are those of the data."""
        super().__init__(data.source, {name: written.get(name, data.configuration(name)) for name in data.recipes})
        self._written = written

    @property
    def reports(self) -> dict[str, WriterReport]:
        """The report on the texts, by the name of the recipe."""
        return {name: configuration.report for name, configuration in self._written.items()}


def written_data(
    data: RenderedData, writer: LanguageModelWriter, *, keep_answers: bool = True, progress: bool = False
) -> WrittenData:
    """Data with the accepted texts of a language model.

    Args:
        data: with readable captions; recipes without them stay unchanged.
        writer: prompts the model.
        keep_answers: keep the model's answers in the user's cache, so that an interrupted run continues, and a repeated
            run prompts nothing.
        progress: show a progress bar.

    Raises:
        DatasetError: an answer in the cache was changed.
        InputError: no recipe has rows that this writer may write.
    """
    if keep_answers:
        writer = LanguageModelWriter(KeptAnswers(writer.model), in_test=writer.in_test)
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
            f"none of {', '.join(data.recipes)} has captions that a language model may write: they are those of rows "
            "to train with, and of rows of the split test only where it is asked for"
        )
    return WrittenData(data, written)


class KeptAnswers:
    """A model that is prompted only once for each text: its answers are kept in the user's cache. See `TextModel`.

    Each line has a digest of its own. A torn line is skipped, and its prompt repeated; a changed one is refused, since
    other texts would be other data.
    """

    def __init__(self, model: TextModel) -> None:
        """Nothing is read yet."""
        self._model = model

    @property
    def identity(self) -> Mapping[str, str]:
        """Of the model."""
        return self._model.identity

    @cached_property
    def path(self) -> Path:
        """The file of the answers, one a line."""
        name = safe_file_name(f"{self.identity['model']}-{self._digest[:12]}")
        return cache_folder() / "written" / f"{name}.jsonl"

    @cached_property
    def _digest(self) -> str:
        """Of the model's identity: the answers of another model are in another file."""
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
                    f"line {number} of {self.path} was changed after it was written: {error}. Remove the line, and "
                    "the model is asked again"
                ) from error
        if torn:
            # A file from before answers had digests has thousands.
            warnings.warn(
                f"{len(torn):,} of the lines of {self.path} are left out, and what they answer is asked again: "
                f"{torn[0]}",
                stacklevel=2,
            )
        return answers

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """The answer to each prompt; the model answers only new prompts."""
        keys = [sha256_of(prompt.encode()) for prompt in prompts]
        asked = {key: prompt for key, prompt in zip(keys, prompts, strict=True) if key not in self._answers}
        if asked:
            answers = dict(zip(asked, self._model.generate(list(asked.values())), strict=True))
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as stream:
                # A new line begins after one that was cut short.
                stream.write(b"\n" + b"".join(sealed_line([*both], self._digest) for both in answers.items()))
            self._answers.update(answers)
        return [self._answers[key] for key in keys]
