"""Audio language models of transformers: their files, greedy answers, and the likelihood of given answers."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
import torch
from transformers import AutoProcessor

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import read_file
from audio_compositionality.support.text import first_line

from .. import base
from ..inference import inference
from ..loading.beside_weights import TOKENIZER_FILES
from ..loading.checkpoints import Checkpoint, quiet
from ..options import EncoderOptions, LanguageOptions
from .listing import FrontEnd, LanguageFamily, ModelInputs
from .question_batches import ChatQuestion, QuestionBatches, difference_alone_and_together, log_likelihoods, tolerance

TEMPLATES = ("chat_template.jinja", "chat_template.json")
"""Files that may hold the chat template, the newer name first."""


@dataclass(frozen=True)
class LanguageCheckpoint(Checkpoint):
    """A checkpoint of an audio language model."""

    @classmethod
    def of(cls, checkpoint: Checkpoint, part: str | None = None) -> LanguageCheckpoint:
        """Return the same checkpoint; with the configuration of a part, if an attribute of it is named."""
        made = cls(**{field.name: getattr(checkpoint, field.name) for field in fields(Checkpoint)})
        inner = None if part is None else getattr(checkpoint.config, part, None)
        return made if inner is None else replace(made, config=inner)

    @property
    def settings(self) -> tuple[str, ...]:
        """See `Checkpoint`; also the files for tokens, template and the tokens that end an answer."""
        return (*super().settings, *TOKENIZER_FILES, *TEMPLATES, "generation_config.json", "tekken.json")

    @cached_property
    def chat_template(self) -> str | None:
        """The chat template from its own file; None without that file.

        Raises:
            ModelError: the file cannot be downloaded or read.
        """
        for name in TEMPLATES:
            path = self.find(name)
            if path is None:
                continue
            try:
                text = read_file(path).decode()
                template = text if path.suffix == ".jinja" else json.loads(text)["chat_template"]
            except (ValueError, KeyError, TypeError) as error:
                raise base.ModelError(f"cannot read {name}, the chat template of '{self.name}': {error!r}") from error
            return str(template)
        return None

    def load_processor(self) -> Any:
        """Load the checkpoint's processor: tokenizer, feature extractor and chat template in one.

        Raises:
            ModelError: there is none, or it cannot be read.
        """
        try:
            with quiet(self.source):
                return AutoProcessor.from_pretrained(  # type: ignore[no-untyped-call]
                    self.source, revision=self.commit, trust_remote_code=False
                )
        except Exception as error:
            raise base.ModelError(f"cannot read the processor of '{self.name}': {first_line(error)}") from error

    def load_chat_tokenizer(self) -> Any:
        """Load the checkpoint's tokenizer, with its chat template.

        Raises:
            ModelError: there is no tokenizer, it cannot be read, or there is no template.
        """
        tokenizer = self._read_tokenizer(f"'{self.name}' has no tokenizer: it needs tokenizer.json next to config.json")
        if self.chat_template is not None:
            tokenizer.chat_template = self.chat_template
        if tokenizer.chat_template is None:
            raise base.ModelError(
                f"'{self.name}' has no chat template, so the format of its prompts is unknown: it needs "
                f"{TEMPLATES[0]} next to config.json, or a template in tokenizer_config.json"
            )
        return tokenizer

    def load_language_model(self, model_class: Any, precision: str, device: torch.device, spread: bool) -> Any:
        """Load the model in evaluation mode, with its weights in a precision and on a device.

        Args:
            model_class: class of transformers.
            precision: ``float32``, ``bfloat16`` or ``float16``.
            device: where it computes.
            spread: distribute it over all devices instead.

        Raises:
            ModelError: as `Checkpoint.load_model`.
        """
        dtype: torch.dtype = getattr(torch, precision)
        if self.twin is not None:
            # Fresh and permuted weights are made on the CPU, so that they do not depend on the device.
            return self.load_model(model_class).to(device=device, dtype=dtype).requires_grad_(False)
        device_map: Any = "auto" if spread else {"": device} if device.type != "cpu" else None
        return self.load_model(model_class, dtype=dtype, device_map=device_map).requires_grad_(False)


SHORTEST_SECONDS = 0.1
"""Shortest clip in seconds: with shorter ones, some models get at most one token, and answer about something else or
fail."""

CPU_BATCH_SIZE, GPU_BATCH_SIZE = 4, 16

BATCHES_PER_CALL = 8


class TransformersLanguageModel(base.Model):
    """A model of transformers that answers questions about clips.

    Decoding is greedy: the likeliest token each time. From generation_config.json, only the tokens that end an answer
    are used; penalties for repetition would act on the letters in the prompt.

    Before the first batch of more than one question, four clips of different lengths are given to the model alone and
    together; if the answers differ by more than rounding, it continues with single questions, and warns.

    Attributes:
        card: its identity.
        device: torch device that it computes on; the first one if it is spread over several.
        options: its options, with the precision resolved.
        front_end: turns clips and prompts into its input.
    """

    def __init__(
        self, checkpoint: Checkpoint, family: LanguageFamily, device: torch.device, options: EncoderOptions
    ) -> None:
        """Load a model.

        Args:
            checkpoint: a folder or a repository.
            family: family of the model.
            device: where it runs.
            options: `LanguageOptions`, or the options of any model.

        Raises:
            ModelError: a package is missing, files are missing or damaged, or the model does not take the options.
        """
        import transformers

        wanted = base.language_options(options, checkpoint.id)
        family.check_packages()
        stated = next(name for name in checkpoint.config.architectures if name in family.architectures)
        source = LanguageCheckpoint.of(checkpoint, family.part)
        self.front_end: FrontEnd = family.front_end(source)
        precision = wanted.precision_on(device.type)
        self.options: LanguageOptions = wanted.changed(precision=precision)
        model_class = getattr(transformers, family.architectures[stated])
        self.model = source.load_language_model(model_class, precision, device, self.options.spread)
        self.device = str(self.model.device)
        # The tokens that end an answer, and the padding token; all else in generation_config.json is dropped.
        text_config, tokenizer = self.model.config.get_text_config(), self.front_end.tokenizer
        stated_ends = (self.model.generation_config, text_config, tokenizer)
        ends = (one.eos_token_id for one in stated_ends if one.eos_token_id is not None)
        self._ending: dict[str, Any] = {"eos_token_id": next(ends, None), "pad_token_id": tokenizer.pad_token_id}
        # `generate` would take missing values from here.
        self.model.generation_config = transformers.GenerationConfig(**self._ending)  # type: ignore[no-untyped-call]
        card = source.card(
            sample_rate=self.front_end.sample_rate,
            output_dim=None,
            options=EncoderOptions(precision=precision),
            modules=[],
        )
        unused = family.unused or "/"
        self.card = replace(
            card,
            id=source.id + self.options.suffix,
            parameters=sum(w.numel() for name, w in self.model.named_parameters() if not name.startswith(unused)),
            paradigm=card.paradigm or "audio–language",
        )
        automatic_size = CPU_BATCH_SIZE if device.type == "cpu" else GPU_BATCH_SIZE
        self._batches = QuestionBatches(self.front_end, self.card.id, self.options.batch_size or automatic_size)
        self.limit_seconds, self.new_tokens = self.front_end.limit_seconds, self.options.max_new_tokens
        self._checked = False

    @property
    def batch_size(self) -> int:  # type: ignore[override]
        """The number of questions per batch."""
        return self._batches.size

    @property
    def questions_per_call(self) -> int:  # type: ignore[override]
        """The number of questions wanted in a call: several batches, so that similar lengths share a batch."""
        return BATCHES_PER_CALL * self.batch_size

    def with_new_tokens(self, count: int) -> TransformersLanguageModel:
        """Return this model with shared weights and answers of at most `count` tokens; its id states the limit.

        Raises:
            InputError: the count is not a whole number of 1 or more.
        """
        model = copy.copy(self)
        model.options, model.new_tokens = self.options.changed(max_new_tokens=count), count
        plain_id = self.card.id.removesuffix(self.options.suffix)
        model.card = replace(self.card, id=plain_id + model.options.suffix)
        return model

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """Answer one prompt about each clip; see `Model.answer`.

        Returns:
            the texts that the model writes, without special tokens and otherwise unchanged: at most
            `options.max_new_tokens` tokens. If its chat template begins reasoning, the mark of reasoning comes first,
            so that unfinished reasoning is not taken for an answer.

        Raises:
            InputError: the numbers of clips and prompts differ, or a prompt is not a text.
            ClipError: a clip is too long or too short for the model, or not finite; it carries the row.
            MemoryError: a single question does not fit into memory.
        """
        return base.in_order(self.answers(base.given_questions(clips, prompts), size=len(prompts) or 1))

    def score_options(
        self,
        clips: Sequence[Sequence[Any]],
        prompts: Sequence[str],
        options: Sequence[Sequence[str]],
        by: base.By = "letters",
    ) -> list[list[float]]:
        """Return the log-likelihood of each option of each prompt; see `Model.score_options`.

        Raises:
            InputError: as `answer`; a prompt has fewer than two options, an empty option or more options than there
                are letters; or `by` is invalid.
            ModelError: two letters begin with the same token, so that they cannot be distinguished, an option has no
                tokens of its own after the prompt, or the chat template has the model reason first.
            ClipError, MemoryError: as `answer`.
        """
        return base.in_order(self.answers(base.given_questions(clips, prompts, options), by, size=len(prompts) or 1))

    def answers(
        self, questions: Iterable[base.GivenQuestion], by: base.By | None = None, *, size: int
    ) -> base.AnswerStream:
        """Yield answers, see `Model.answers`; a batch at a time, the longest questions of a call first."""
        if by not in (None, "letters", "options"):
            raise InputError(f"by is {by!r}; it must be 'letters' or 'options'")
        for _, together in groupby(questions, key=lambda question: question.index // size):
            indices, call = list[int](), list[ChatQuestion]()
            for question in together:
                try:
                    call.append(self._chat_question(question, by))
                    indices.append(question.index)
                except base.ClipError as error:
                    yield question.index, error
            if not self._checked and min(len(call), self.batch_size) > 1:
                self._check_batches()
            if by is None:
                for place, answer in self._batches.run(call, self._write, self._read):
                    yield indices[place], answer
            else:
                for place, scores in self._batches.run(call, self._score):
                    yield indices[place], (scores, {})

    def _read(self, batch: Sequence[ChatQuestion], written: Sequence[list[int]]) -> list[base.GivenAnswer]:
        """Return the texts of tokens, each with the reason why the answer ended and its number of tokens, including the
        final one."""
        ending = self._ending["eos_token_id"]
        ends = set(ending if isinstance(ending, list) else [ending])
        answers: list[base.GivenAnswer] = []
        for question, tokens in zip(batch, written, strict=True):
            count = next((place for place, token in enumerate(tokens, 1) if token in ends), None)
            facts = {"finish_reason": "length" if count is None else "stop", "tokens": count or len(tokens)}
            text = self.front_end.tokenizer.decode(tokens, skip_special_tokens=True)
            answers.append((self.front_end.opening(question.chat) + text, facts))
        return answers

    def _chat_question(self, question: base.GivenQuestion, by: base.By | None) -> ChatQuestion:
        """Validate a question and resample its clip to the model's rate."""
        prompt = question.prompt
        row = question.index
        texts = question.options
        front_end = self.front_end
        if not isinstance(prompt, str) or not prompt.strip():
            raise InputError(f"prompt {row} is {prompt!r}; it must be a text")
        if by is not None:
            if isinstance(texts, str) or len(texts) < 2:
                raise InputError(f"the options of prompt {row} are {texts!r}; pass two or more texts")
            for text in texts:
                if not isinstance(text, str) or not text.strip():
                    raise InputError(f"an option of prompt {row} is {text!r}; it must be a text")
            if by == "letters" and len(texts) > len(base.LETTERS):
                raise InputError(f"prompt {row} has {len(texts)} options, but there are {len(base.LETTERS)} letters")
        clip = self.single_clip(question.clips, row)
        rate = base.check_sample_rate(clip.sample_rate)
        try:
            given = base.check_waveforms(np.asarray(clip.waveform)[None])
        except base.ClipError as error:
            raise base.ClipError(error.reason, row) from error
        seconds, limit = given.shape[1] / rate, front_end.limit_seconds
        if seconds > limit:
            raise base.ClipError(f"it lasts {seconds:g} s, but '{self.card.id}' takes at most {limit:g} s; cut it", row)
        if seconds < SHORTEST_SECONDS:
            raise base.ClipError(f"it lasts {seconds:g} s; at least {SHORTEST_SECONDS:g} s are needed", row)
        # A resampled clip may be one sample longer than the model's limit.
        waveform = base.resample(given, rate, front_end.sample_rate)[0][: round(limit * front_end.sample_rate)]
        chat = front_end.chat(prompt)
        if by is None:
            return ChatQuestion(chat, waveform)
        if front_end.opening(chat):
            raise base.ModelError(
                f"'{self.card.id}' begins each answer with reasoning, so the likelihood of an answer in its place "
                "is meaningless; score it by its answers"
            )
        if by == "options":
            return ChatQuestion(chat, waveform, tuple(front_end.continuation(chat, text) for text in texts))
        first = [front_end.continuation(chat, letter)[:1] for letter in base.LETTERS[: len(texts)]]
        for place, token in enumerate(first):
            if token in first[:place]:
                same = base.LETTERS[first.index(token)]
                raise base.ModelError(
                    f"the answers {same} and {base.LETTERS[place]} to '{self.card.id}' begin with the same token, "
                    f"{front_end.tokenizer.convert_ids_to_tokens(token)[0]!r}: letters cannot distinguish them; score "
                    "by options"
                )
        return ChatQuestion(chat, waveform, tuple(first))

    def _check_batches(self) -> None:
        """Use batches of one question if batches change the answers."""
        self._checked = True
        difference = difference_alone_and_together(self.front_end, self._batches, self._next_token)
        allowed = tolerance(self.options.precision)
        # NaN is not within it either.
        if not difference <= allowed:
            warnings.warn(
                f"'{self.card.id}' answers differently in a batch: {difference:.2g} of the probability of the next "
                f"token changes, more than the {allowed:g} that rounding explains; it continues with one question at "
                "a time, which takes longer",
                stacklevel=4,
            )
            self._batches.size = 1

    def _write(self, batch: Sequence[ChatQuestion], inputs: ModelInputs) -> list[list[int]]:
        """Return the tokens of the answers."""
        from transformers import GenerationConfig

        greedy = GenerationConfig(  # type: ignore[no-untyped-call]
            **self._ending, max_new_tokens=self.options.max_new_tokens, do_sample=False, num_beams=1, use_cache=True
        )
        with inference(self.device), self._last_logits():
            written = self.model.generate(**self._on_device(inputs), generation_config=greedy)
        numbers: list[list[int]] = written[:, inputs["input_ids"].shape[1] :].tolist()
        return numbers

    def _score(self, batch: Sequence[ChatQuestion], inputs: ModelInputs) -> list[list[float]]:
        """Return the mean log-likelihood of the tokens of each continuation."""
        continuations = [question.continuations for question in batch]
        with inference(self.device):
            pad = self._ending["pad_token_id"]
            scores = log_likelihoods(self._forward, self._on_device(inputs), continuations, pad)
        self._check_numbers([score for row in scores for score in row])
        return scores

    def _next_token(self, batch: Sequence[ChatQuestion], inputs: ModelInputs) -> list[Any]:
        """Return the probabilities of the next token, float32 [tokens] each."""
        with inference(self.device):
            logits = self._forward(self._on_device(inputs), only_last=True).logits[:, -1]
            probabilities = list(logits.float().softmax(dim=-1).cpu())
        if len(batch) == 1:
            self._check_numbers(probabilities[0])
        return probabilities

    def _check_numbers(self, numbers: Any) -> None:
        """Raise an error on NaN: `generate` would turn it into tokens, and NaN likelihoods would count as a refusal."""
        if np.isnan(np.asarray(numbers)).any():
            raise base.ModelError(f"'{self.card.id}' returned NaN in {self.options.precision}; try another precision")

    def _forward(self, inputs: ModelInputs, *, only_last: bool) -> Any:
        """Return the output of the model; only the last token's logits if no others are needed."""
        if not only_last:
            return self.model(**inputs, use_cache=True)
        mask = inputs["attention_mask"]
        # As `generate` counts: the first token that is no padding has the position 0.
        inputs = {**inputs, "position_ids": (mask.long().cumsum(-1) - 1).masked_fill(mask == 0, 0)}
        keep = {"logits_to_keep": 1} if self.model._supports_logits_to_keep() else {}
        with self._last_logits():
            return self.model(**inputs, use_cache=True, **keep)

    @contextmanager
    def _last_logits(self) -> Iterator[None]:
        """Apply the head to the last token only, if transformers does not do so itself (Qwen2-Audio, Qwen-Omni).

        Logits of all tokens of a batch would be gigabytes, and one token's are needed.
        """
        if self.model._supports_logits_to_keep():
            yield
            return
        head = self.model.get_output_embeddings()
        hook = head.register_forward_pre_hook(lambda _, given: (given[0][:, -1:], *given[1:]))
        try:
            yield
        finally:
            hook.remove()

    def _on_device(self, inputs: ModelInputs) -> ModelInputs:
        """Return inputs on the model's device, floating-point ones in its precision."""
        return {
            name: value.to(self.model.device, self.model.dtype if value.is_floating_point() else None)
            for name, value in inputs.items()
        }
