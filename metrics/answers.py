"""Reading answers in free text: which option of a question an answer names, or why none."""

import dataclasses
import functools
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .answer_judgements import ADVERBS, GUESSING, NEGATORS, JudgedAnswer, says_alone
from .answer_mentions import (
    ALTERNATIVES,
    ANSWER,
    CHOICE,
    COPULAS,
    SO,
    Mention,
    Span,
    word_set,
)
from .answer_words import (
    ARTICLES,
    CONTENT,
    LONE_LETTER,
    LONGEST,
    READ_WORDS,
    SCANNED,
    PreparedOptions,
    final_part,
    folded_words,
    form_of,
    number_value,
)
from .arrays import Floats

POLARITIES = ("overlap", "alone")
"""The meaning of "Yes" in a question of concurrency: something overlaps the sound in question, or nothing does."""

REFUSED = ("refusal",)
UNPARSED = ("empty", "echo", "no such letter", "conflict", "none of them", "refusal", "several", "nothing")
"""Rules of `match_answer` after which an answer is unparsed; those of REFUSED are refusals."""


# ----- matching an answer
@dataclass(frozen=True)
class Match:
    """The reading of an answer.

    Attributes:
        option: position of the option named; None where the answer is unparsed.
        rule: name of the rule that decided; where none names an option, one of UNPARSED.
    """

    option: int | None
    rule: str


def match_answer(text: str, options: Sequence[str], polarity: str = "overlap") -> Match:
    """Read an answer: its last conclusion counts, and two options in one conclusion are a conflict.

    1. The part that is read: the text after the last thinking and after the last ``<answer>``, and the content of the
       last ``\\boxed{}``; nothing of thinking that does not end. Of a text of more than READ_CHARACTERS, or READ_WORDS
       words, beginning and end are read. Options that are repeated as a list ("A. dog B. rain") and questions are
       skipped: *echo* where nothing is left.
    2. Mentions of options are found: a letter, a text, "the second option", a number that counts sounds, two times, Yes
       or No. A letter beside a text ("B. dog", "the dog (B)") is one mention, of two options where they differ;
       mentions side by side ("A and C", "dog or rain") are a group. A mention is *denied* by a word before it in its
       clause (not, neither, than, rather than, without), or by its predicate ("is incorrect", "A) No").
    3. Sentence by sentence, conclusions are looked for: after "answer is", "choose" and so on, or with "is correct"
       (*answer is*); a letter alone on its line (*letter*), or in front of all (*letter first*); after "so",
       "therefore", "must be" and so on (*conclusion*); in a review of letter after letter, the only one that is called
       right (*option by option*). A later conclusion replaces an earlier one; an explanation replaces no answer. "Wait"
       and "actually" withdraw the conclusions before; without them, too, the later of two lines "Answer: …" counts. A
       supposition ("if", "suppose", "let's say") concludes nothing.
    4. Without a conclusion: "none of the …" (*none of them*); an apology, or a statement that nothing can be heard or
       decided (*refusal*); else the only option that is mentioned and not denied (*mention*); of several the only one
       in a last sentence, or clause after "but", that compares them (*last sentence*); else *several*, or *nothing*. A
       text that breaks off in the middle of a phrase has no such mention.

    Unparsed are also *conflict*, and *no such letter*: a lone letter beyond the options. A short answer may name an
    option by its head noun ("brass" for "brass section"). "There is no other sound" and "only the bell is heard" mean
    No, "the sounds overlap" and "something else is heard" Yes; or the other way round where Yes says that the sound is
    alone. A guess counts: "I would say B, but I can't hear the audio" is B.

    Args:
        text: what the model said.
        options: 2 to 26 texts, in the order shown.
        polarity: the meaning of "Yes" where the options are Yes and No: one of POLARITIES; empty for questions that are
            not about overlap, where statements about other sounds mean neither.

    >>> match_answer("B. rain", ["rain", "dog"])
    Match(option=None, rule='conflict')
    >>> match_answer("<think>Rain, I guess.</think> It is the car horn.", ["car", "rain", "car horn"])
    Match(option=2, rule='mention')
    >>> match_answer("A. The dog stops early. So the answer is B, not A.", ["dog", "rain"])
    Match(option=1, rule='answer is')
    """
    form = form_of(tuple(options))
    answer = final_part(text)
    exact = _exact(answer, form)
    return exact or _Reading(answer, form, polarity == "alone" if polarity else None).match()


def _exact(answer: str, form: PreparedOptions) -> Match | None:
    """The match of a lone letter, an option's own text or an empty answer, without further reading."""
    if not any(unicodedata.category(character)[0] in "LN" for character in answer):
        return Match(None, "empty")
    lone = LONE_LETTER.fullmatch(answer)
    if lone is not None:
        option, texts = form.letter(lone[1]), [text.casefold() for text in form.texts]
        if lone[1].casefold() in texts and texts.index(lone[1].casefold()) != option:
            return Match(None, "conflict")
        return Match(option, "no such letter" if option is None else "letter")
    if form.texts.count(answer) == 1:
        return Match(form.texts.index(answer), "text")
    words = folded_words(answer)
    return Match(form.folded.index(words), "text") if words and form.folded.count(words) == 1 else None


def embedding_match(
    texts: Sequence[str], options: Sequence[Sequence[str]], embed: Callable[[Sequence[str]], Floats]
) -> list[int]:
    """Return the position of the option that is most similar to each complete answer, by sentence embeddings.

    This is how arXiv 2603.05128 matches, by NV-Embed-v2. It never abstains: a refusal, a lone letter or an empty text
    gets the nearest option too, of equal ones the first. So it is not a score here, but may stand beside one:
    `polybench` with ``parsed=True`` takes the positions.

    Args:
        texts: m answers, as the model gave them.
        options: m lists of texts.
        embed: n different texts to vectors [n, d] of any length; cosines are compared, and a cosine with zeros is 0.

    >>> def embed(texts):
    ...     return np.array([[text.count("dog"), text.count("rain")] for text in texts], float)
    >>> embedding_match(["The dog, by far.", "I hear rain"], [["rain", "dog"]] * 2, embed)
    [1, 0]
    """
    places = {text: place for place, text in enumerate(dict.fromkeys([*texts, *itertools.chain(*options)]))}
    vectors = np.asarray(embed(list(places)), np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors / np.where(lengths > 0, lengths, 1)
    return [
        int(np.argmax(vectors[[places[option] for option in listed]] @ vectors[places[text]]))
        for text, listed in zip(texts, options, strict=True)
    ]


_CORRECT = word_set("correct right best final my appropriate suitable likely accurate true likeliest")
_ACTIVE = word_set(
    "choose chose select selected pick picked wähle elijo choisis scelgo escolho выбираю meant lean leaning prefer"
)
_UNSPACED_CUES = ("答案", "回答", "正解", "答え", "答えは", "正确答案", "정답", "답은", "选", "選", "应选", "故选")
_NOT_SO = word_set("far that loud on much many as long quiet short called soft")
_REASONS = word_set("because since as which while given due based where when although though whereas weil car porque")
_FIRST_THOUGHT = word_set("first initially thought originally seemed")
_SEEMING = word_set("might may seem seems seemed appears appeared looks initially originally thought")
_CONTRAST = word_set("but however yet although though aber mais pero")
_COMPARES = word_set(
    "longest longer most overlap overlaps overlapping together simultaneously same dominates during only concurrently",
    "concurrent first leaves one simultaneous throughout while with more main",
)
_CUT = word_set(
    "the a an and or of at about it is are was with to in from for so as but that which by on its this there than then",
    "since because while when if be has have option answer both between until i another need",
)
"""Words with which no sentence ends."""

_HEDGES = word_set("may might could")
_QUESTION = word_set("which what how is are does do did in while can whenever for when at from over")
_CORRECTING = (
    *(("wait",), ("actually",), ("hmm",), ("correction",), ("sorry",), ("apologies",), ("i", "meant"), ("no", "wait")),
    *(
        ("or", "rather"),
        ("on", "second", "thought"),
        ("let", "me", "reconsider"),
        ("let", "me", "check"),
        ("let", "me", "correct"),
    ),
    *(
        ("then", "again"),
        ("on", "reflection"),
        ("upon", "reflection"),
        ("scratch", "that"),
        ("i", "was", "wrong"),
        ("oops",),
        ("moment",),
        ("my", "mistake"),
    ),
)
_HEDGED = word_set(
    "if whether may might maybe perhaps possibly possible unless except until then first initially later before after",
    "earlier afterwards would should unclear unsure uncertain unlikely doubt doubtful sometimes false once",
    "question task means check checks checking listen listened asked asks tell determine detect define",
)
"""Words of sentences that leave open whether sounds overlap, or say only when."""
_SURE = re.compile(
    r"\b(?:there (?:is |can be )?)?(?:no|without(?: a| any)?|beyond(?: a| any)?) (?:doubt|question)"
    r"(?: (?:about it|that))?\b"
    r"|\b(?:1 )?after (?:the other|another|each other)\b"
)
"""Phrases that retract nothing: "no doubt", "one after the other"."""
_UNTRUE = re.compile(
    r"\b(?:not|isn't|hardly) (?:true|the case|correct|clear|certain|sure|obvious|evident)\b"
    r"|\b(?:untrue|incorrect|wrong)\b"
)
_CLAUSES = re.compile(r" ?[,;:] | (?:but|however|although|though|yet|because|since|and so|so|or) ")
_BESIDES = re.compile(r"^\W{0,3}(?:besides|apart from|aside from|in addition to|other than) ")
_NOTHING_BUT = re.compile(r"\b(?:nothing|no sound|no other sound) (?:\w+ ){0,2}(?:but|other than|besides|apart from)\b")

_NONE = re.compile(
    r"\b(?:not|isn't)\s+(?:one\s+of|among)\s+(?:the|these)\s+(?:options|choices|answers)\b"
    r"|\bnone\s+of\s+(?:the(?!\s+others?\b)|these|them|those|above)\b|以上都不|都不是",
    re.I,
)
_ALL = re.compile(r"\ball\s+of\s+(?:the\s+above|the\s+options|them|these)\b", re.I)
_REFUSALS = re.compile(
    r"\b(?:i\s?(?:'m|am)|we(?:'re|\s+are))\s+(?:\w+\s+)?"
    r"(?:sorry|unable|not\s+able|not\s+(?:\w+\s+)?sure|unsure|uncertain|not\s+certain)\b"
    r"|^\W{0,9}(?:sorry|apologies)\b(?!\W{1,3}(?:i\s+meant|it|[a-z]\b))|\bi\s+apologi[sz]e\b"
    r"|\bas\s+an?\s+(?:[\w-]+\s+){0,2}(?:ai|model)\b"
    r"|\b(?:i|we)\s?"
    r"(?:cannot|can\s+not|can't|could\s+not|couldn't|am\s+not\s+able\s+to|do\s+not|don't|won't|will\s+not)\s+(?:\w+\s+)?"
    r"(?:determine|identify|tell|know|say|answer|assist|help|provide|process|access|analy[sz]e|play|perceive|listen|"
    r"have\s+(?:access|enough|sufficient|the\s+(?:ability|capability|audio)|any\s+(?:audio|information)|audio|information)|"
    r"(?:hear|see|find)\s+(?:(?:the|any|this|your|an|that)\s+)?(?:audio|recording|clip|file|attachment|it\b|sounds?\b(?!\s+other)))"
    r"|\bunable\s+to\s+(?:determine|identify|answer|hear|listen|process|access|tell|say|analy[sz]e|provide)\b"
    r"|\b(?:cannot|can't|can\s+not|could\s+not)\s+be\s+(?:determined|answered|identified|told)\b"
    r"|\b(?:impossible|not\s+possible)\s+to\s+(?:determine|tell|say|answer|identify|know)\b"
    r"|\b(?:difficult|hard)\s+to\s+(?:determine|tell|say|answer|identify|know)\b"
    r"|\b(?:insufficient|not\s+enough)\s+(?:information|context|data|detail)|\bno\s+answer\b"
    r"|\bno\s+(?:audio|sound\s+file|recording|clip)\s+(?:\w+\s+)?"
    r"(?:provided|attached|available|given|uploaded|input)\b"
    r"|\b(?:please|could\s+you)\s+(?:\w+\s+)?(?:provide|upload|share|attach|send|describe)\b|\bno\s+idea\b"
    r"|无法|抱歉|对不起|我不知道|不能(?:确定|回答|听|判断)|わかりません|分かりません|申し訳|すみません|죄송"
    r"|\bне\s+могу\b|\bизвините\b|\bне\s+знаю\b|\blo\s+siento\b|\bno\s+puedo\b|\bdésolée?\b"
    r"|\bje\s+ne\s+(?:peux|sais)\b|\btut\s+mir\s+leid\b"
    r"|\bkann\s+(?:\w+\s+)?(?:nicht|keine?n?)\s+(?:\w+\s+)?(?:beantworten|sagen|hören|bestimmen)\b",
    re.I,
)
_OFFERS = re.compile(
    r"^\W{0,9}(?:\w{1,9}\W{1,3}){1,4}(?:i|we)(?:\s?'(?:d|ll|m)|\s+(?:can|could|would|will|am))\s+"
    r"(?:(?:be\s+)?(?:\w+\s+)?to\s+|certainly\s+|gladly\s+)?(?:help|assist)\b"
    r"|^\W{0,9}yes\W{1,3}i\s+(?:do\s+)?(?:understand|see)\W{0,3}$"
    r"|\b(?:please|could\s+you|can\s+you)\s+(?:\w+\s+)?(?:provide|upload|share|attach|send)\s+"
    r"(?:(?:me|us)\s+)?(?:the|your|an?|that|this)?\s*(?:\w+\s+)?(?:audio|recording|clip|file|sound)\b",
    re.I,
)
"""A "Yes" to the request rather than to the question."""
_BUT = re.compile(r"\b(?:but|however|though|maybe|probably|perhaps(?!\s+you)|aber|mais|pero)\b|但", re.I)


# ----- matching: groups of mentions, and their predicates
class _Reading(JudgedAnswer):
    """An answer, read sentence by sentence; see `match_answer`."""

    def match(self, spare: int = sum(READ_WORDS)) -> Match:
        """The reading of the answer; without lists of options at most so many words and marks are read anew."""
        echo = self._echo()
        if echo:
            if len(self.tokens) - sum(last - first for first, last in echo) > spare:
                # A removed list may leave another one: a text made of lists holds nothing else.
                return Match(None, "echo")
            kept, end = [], 0
            for first, last in echo:
                kept.append(self.text[end : self.tokens[first].start])
                end = self.tokens[last - 1].end
            rest = "\n".join([*kept, self.text[end:]]).strip()
            left = _exact(rest, self.form)
            if left is not None:
                return Match(None, "echo") if left.rule == "empty" else left
            anew = _Reading(rest, self.form, self.is_alone)
            return anew.match(spare - len(anew.tokens))
        concluded = self._conclusion()
        if concluded is not None and concluded.rule == "yes or no" and _OFFERS.search(self.text):
            return Match(None, "refusal")
        return concluded or self._without_conclusion()

    # ----- conclusions

    def _conclusion(self) -> Match | None:
        """The last conclusion."""
        current: _Verdict | None = None
        listed = self._listed()
        for number, span in enumerate(self.sentences):
            mentions = self._of(span)
            corrected = self._corrects(span)
            doubted = current if corrected is not None and self._only_doubts(corrected, span) else None
            if corrected is not None:
                current, self.withdrawn = None, corrected
            if not mentions or self._asks(span):
                continue
            verdict = self._verdict(number, span, mentions, listed, corrected)
            if verdict is None and current is not None:
                weighed = self._weighed(current, span, mentions)
                current = dataclasses.replace(current, options=current.options | weighed)
            if verdict is None:
                continue
            if doubted is not None:
                verdict = dataclasses.replace(verdict, options=verdict.options | doubted.options)
            if current is None or verdict.strength >= current.strength or (verdict.strength == 2 and verdict.is_plain):
                if current is not None and current.listed and verdict.listed and current.options != verdict.options:
                    verdict = dataclasses.replace(verdict, options=current.options | verdict.options)
                current = verdict
        if current is None:
            return None
        if current.strength == 2 and self._breaks_off():
            unfinished = current.place >= self.sentences[-1][0] and self.tokens[-1].fold in _CUT | {","}
            if unfinished and not current.is_plain:
                return None
            later = [mention for mention in self.mentions if mention.start > current.place and not mention.denier]
            if any(mention.options != current.options for mention in later):
                return None
        if len(current.options) != 1:
            return Match(None, "conflict" if current.options else "nothing")
        return Match(min(current.options), current.rule)

    def _of(self, span: Span) -> list[Mention]:
        return [mention for mention in self._by_sentence.get(span[0], ())]

    @functools.cached_property
    def _by_sentence(self) -> dict[int, list[Mention]]:
        table: dict[int, list[Mention]] = {}
        mentions, place = self.mentions, 0
        for start, end in self.sentences:
            while place < len(mentions) and mentions[place].start < end:
                table.setdefault(start, []).append(mentions[place])
                place += 1
        return table

    def _asks(self, span: Span) -> bool:
        """Whether a sentence is a question, rather than a guess."""
        words = self.words_of(*span)
        return self.fold(span[1] - 1) == "?" and len(words) > 3 and words[0] in _QUESTION

    def _corrects(self, span: Span) -> int | None:
        """The token from which a sentence, or a clause of it, retracts earlier statements; None where none does."""
        corrected = None
        for place in range(*span):
            if self.kind(place) in CONTENT and self.fold(place) in _CORRECTING_STARTS:
                clause = place == span[0] or self.kind(place - 1) in ("mark", "line")
                if clause or self.fold(place - 1) in ("but", "and", "so", "oh"):
                    words = tuple(self.next_words(place, 4))
                    if words[0] == "no" and self.fold(place + 1) in (",", ":") and place > 0 and not self.form.yes_no:
                        corrected = place + 1
                    for phrase in _CORRECTING:
                        if words[: len(phrase)] == phrase:
                            corrected = place + len(phrase)
        return corrected

    def _only_doubts(self, corrected: int, span: Span) -> bool:
        """Whether a sentence weighs another option against the earlier one: "then again, it may be C"."""
        again = self.words_before(corrected, 2) == ["again", "then"]
        return again and not _HEDGES.isdisjoint(self.words_of(corrected, span[1]))

    def _weighed(self, current: "_Verdict", span: Span, mentions: Sequence[Mention]) -> frozenset[int]:
        """A possibility as likely as the one before: "it could be B. But it could be C"."""
        if self.fold(span[0]) not in _CONTRAST or _HEDGES.isdisjoint(self.words_before(current.place, 5)):
            return frozenset()
        weighed = [m for m in mentions if not m.denier and not _HEDGES.isdisjoint(self.words_before(m.start, 5))]
        return frozenset[int]().union(*(mention.options for mention in weighed))

    def _listed(self) -> bool:
        """Whether the options are gone through by their letters, rather than one being given and explained."""
        labels = [
            mentions[0]
            for span in self.sentences
            if (mentions := self._of(span)) and mentions[0].led and self.is_start(mentions[0].start)
        ]
        options = [mention.options for mention in labels if not (mention.kind == "letter" and self._is_alone(mention))]
        if len(set(options)) < 2:
            return False
        return options[0] == frozenset([0]) and options.count(options[0]) == 1

    def _is_alone(self, mention: Mention) -> bool:
        """Whether a letter has its line for itself."""
        after = mention.end
        while self.kind(after) == "mark":
            after += 1
        return self.kind(after) in ("", "line") and self.is_start(mention.start)

    def _verdict(
        self, number: int, span: Span, mentions: Sequence[Mention], listed: bool, corrected: int | None
    ) -> "_Verdict | None":
        """The conclusion of a sentence."""
        if corrected is not None:
            mentions = [mention for mention in mentions if mention.start >= corrected]
            if not mentions:
                return None
        if self.fold(span[0]) == "if" and GUESSING.isdisjoint(self.words_of(*span)):
            return None
        strong = self._answered(span)
        if strong is not None:
            return self._settled(strong, 3, "answer is")
        praised = [mention for mention in mentions if mention.praised]
        if praised:
            options = frozenset[int]().union(*(mention.options for mention in praised))
            return _Verdict(options, 3, "option by option" if listed else "answer is", praised[-1].start, False, True)
        first = mentions[0]
        words = self.words_of(*span)
        alone = not words_outside(words, self.words_of(first.start, first.end))
        if first.led and len(mentions) == 1 and alone and not first.denier and (first.kind == "letter" or not listed):
            return self._settled(first, 3, "letter" if first.kind == "letter" else "letter first")
        # "A is heard at the end" tells of A, and gives no answer.
        tells = first.kind == "letter" and self.kind(first.end) in CONTENT and self.fold(first.end) not in _REASONS
        if first.led and not (listed or first.denier or tells) and self._is_first(number, span, first):
            return self._settled(first, 3, "letter first")
        if corrected is not None:
            after = [mention for mention in mentions if not mention.denier]
            named = frozenset[int]().union(*(mention.options for mention in after))
            if (
                after
                and len(named) == 1
                and (after[0].kind != "text" or self.fold_before(after[0]) in COPULAS | {"it", "that"})
            ):
                return self._settled(after[0], 3, "conclusion")
        if any(mention.kind == "yes or no" for mention in mentions):
            said = [mention for mention in mentions if mention.kind == "yes or no"]
            strength = 3 if self._is_first(number, span, said[0]) else 2
            return _Verdict(
                frozenset[int]().union(*(m.options for m in said)), strength, "yes or no", said[0].start, True
            )
        return self._turned(number, span, mentions) or self._so(span, mentions)

    def _turned(self, number: int, span: Span, mentions: Sequence[Mention]) -> "_Verdict | None":
        """The fact after the appearance: "it might be A, but it's really B"."""
        turn = next((place for place in range(*span) if self.fold(place) in _CONTRAST), None)
        if turn is None:
            return None
        begin = span[0] if turn > span[0] or number == 0 else self.sentences[number - 1][0]
        seemed = self.words_of(begin, turn)
        at_first = ("first", "guess") in itertools.pairwise(seemed) or ("at", "first") in itertools.pairwise(seemed)
        first = [mention for mention in mentions if mention.start < turn]
        if _SEEMING.isdisjoint(seemed) and not at_first:
            return None
        after = [mention for mention in mentions if mention.start > turn and not mention.denier]
        named = frozenset[int]().union(*(mention.options for mention in after))
        is_cued = bool(after) and self._is_told(turn, after[0])
        if len(named) != 1 or not is_cued or any(mention.group == after[0].group for mention in first):
            return None
        return _Verdict(named, 2, "conclusion", after[0].start, True)

    def _is_told(self, turn: int, mention: Mention) -> bool:
        """Whether "it is" or the like stands right before a mention, rather than "it is louder than"."""
        told = [word for word in self.words_before(mention.start, 5) if word not in ARTICLES and word not in ADVERBS]
        told = [word for word in told if word not in ("really", "actually", "in", "option", "rather")]
        if not _HEDGES.isdisjoint(told):
            return False
        return mention.start - turn <= SCANNED and told[:1] in (["is"], ["was"], ["be"], ["it"])

    def _is_first(self, number: int, span: Span, mention: Mention) -> bool:
        """Whether a mention stands in front of all other words."""
        if any(not self._asks(earlier) for earlier in self.sentences[:number]):
            return False
        small = CHOICE | ARTICLES | word_set("definitely certainly clearly")
        return all(word in small for word in self.words_of(span[0], mention.start))

    def _settled(self, mention: Mention, strength: int, rule: str) -> "_Verdict":
        """A conclusion with all undenied options of its mention's group."""
        is_plain = mention.kind != "text" or mention.led
        return _Verdict(self._by_group[mention.group], strength, rule, mention.start, is_plain)

    @functools.cached_property
    def _by_group(self) -> dict[int, frozenset[int]]:
        """The undenied options, group by group."""
        table: dict[int, frozenset[int]] = {}
        for mention in self.mentions:
            if not mention.denier:
                table[mention.group] = table.get(mention.group, frozenset()) | mention.options
        return table

    def _answered(self, span: Span) -> Mention | None:
        """The last mention in a sentence that follows "answer is", "I choose" and so on, and is not denied."""
        answered = None
        for place in range(*span):
            cue = self._cue_end(place)
            if cue is None:
                continue
            mention = self._first_from(cue[0], span, needs_copula=cue[1])
            if mention is not None and not mention.denier:
                answered = mention
        # "Answer", with the option on the line above or below.
        return answered if answered is not None else self._answered_above(span)

    def _cue_end(self, place: int) -> tuple[int, bool] | None:
        """The end of words that introduce the answer, and whether "is" has to follow them."""
        if self.kind(place) not in CONTENT:
            return None
        word, before = self.fold(place), self.fold(place - 1)
        if word in ANSWER and before != "no":
            # Hindi has its copula at the end.
            return place + 1, word != "उत्तर"
        if word in CHOICE or word in ("sound", "one", "1", "interval"):
            return (place + 1, True) if before in _CORRECT and before not in ("likely", "final", "my") else None
        if word in ("match", "fit", "guess"):
            return (place + 1, True) if before in ("best", "closest", "likeliest") else None
        if word in _ACTIVE:
            return place + 1, False
        if word in ("go", "going") and self.fold(place + 1) == "with":
            return place + 2, False
        if self.kind(place) == "unspaced":
            ahead = "".join(self.fold(position) for position in range(place, min(place + 4, len(self.tokens))))
            for cue in _UNSPACED_CUES:
                if ahead.startswith(cue):
                    return place + len(cue), False
        return None

    def _first_from(self, place: int, span: Span, *, needs_copula: bool) -> Mention | None:
        following = next((mention for mention in self._of(span) if mention.start >= place), None)
        if following is None:
            return None
        between = self.tokens[place : following.start]
        if len(between) > 25 or any(token.fold in _REASONS for token in between):
            return None
        words = [token.fold for token in between if token.kind in CONTENT]
        if len(words) > 12 or (words and needs_copula and COPULAS.isdisjoint(token.fold for token in between)):
            return None
        return following

    def _answered_above(self, span: Span) -> Mention | None:
        """The mention a sentence begins with, where the one before it is "answer", "the answer is" or the like."""
        number = self._number_of[span[0]]
        if number == 0:
            return None
        above, mentions = self.sentences[number - 1], self._of(span)
        words = self.words_of(*above)
        asked = self.fold(above[1] - 1) in ("?", "\n", ":") or self.fold(above[1] - 1) in COPULAS
        if not words or len(words) > 8 or not asked or not mentions or mentions[0].denier:
            return None
        tail = [word for word in words[-3:] if word not in COPULAS]
        if not tail or (tail[-1] not in ANSWER and not (tail[-1] in CHOICE and _CORRECT & set(words))):
            return None
        return mentions[0] if len(self.words_of(span[0], mentions[0].start)) <= 3 else None

    @functools.cached_property
    def _number_of(self) -> dict[int, int]:
        return {span[0]: number for number, span in enumerate(self.sentences)}

    def _so(self, span: Span, mentions: Sequence[Mention]) -> "_Verdict | None":
        """The conclusion after "so", "therefore", "must be", "I think" and so on."""
        cue, last = None, max((mention.start for mention in mentions if not mention.denier), default=-1)
        for place in range(span[0], min(last, span[1])):
            if self.kind(place) in CONTENT and self._leads(place, self.fold(place)):
                cue = place + 1
        if cue is None:
            return None
        named: list[Mention] = []
        for mention in mentions:
            if mention.start < cue or mention.denier:
                continue
            if named and any(token.fold in _REASONS for token in self.tokens[named[-1].end : mention.start]):
                break
            named.append(mention)
        if not named:
            return None
        compares = not _COMPARES.isdisjoint(self.words_of(cue, span[1]))
        ends = self.kind(named[0].end) in ("", "line", "mark")
        if named[0].kind == "text" and not named[0].led and not compares and not ends:
            return None
        options = frozenset[int]().union(*(mention.options for mention in named))
        is_plain = named[0].kind != "text" or named[0].led
        return _Verdict(options, 2, "conclusion", named[0].start, is_plain)

    def _leads(self, place: int, word: str) -> bool:
        """Whether a word leads to a conclusion."""
        before, after = self.fold(place - 1), self.fold(place + 1)
        if word in ("total", "altogether", "overall"):
            return self.form.counts
        if word == "conclude":
            return before in ("i", "we", "can", "must", "would", "to", "'d") and "cannot" not in self.words_before(
                place, 3
            )
        if word == "conclusion":
            return before == "in"
        if word in SO:
            return after not in _NOT_SO and not (
                word == "so" and before in ("think", "guess", "believe", "or", "and", "not")
            )
        if word in ("think", "believe", "guess", "suppose", "say", "bet"):
            return before in ("i", "would", "i'd", "we", "my", "still", "to", "'d")
        if word in ("likely", "probably"):
            return before in ("most", "more", ",")
        if word == "be":
            return before in ("must", "has", "to", "should")
        return False

    # ----- without a conclusion

    def _breaks_off(self) -> bool:
        """Whether the text stops in the middle of something."""
        if not self.content:
            return False
        last = self.tokens[-1]
        if last.kind == "mark":
            return last.fold in ",:;-("
        return last.fold in _CUT or len(self.content) > 25 or (len(self.sentences) > 1 and len(self.content) > 8)

    def _without_conclusion(self) -> Match:
        if _NONE.search(self.text):
            return Match(None, "none of them")
        if _ALL.search(self.text):
            return Match(None, "several")
        since = 0
        refusals = list(_REFUSALS.finditer(self.text))
        if refusals:
            turn = _BUT.search(self.text, refusals[-1].end())
            if turn is None:
                return Match(None, "refusal")
            since = turn.end()
        spoken = [
            mention
            for mention in self.mentions
            if self.tokens[mention.start].start >= since
            and mention.start >= self.withdrawn
            and not self._in_question(mention)
        ]
        affirmed = [mention for mention in spoken if not mention.denier and not self._only_at_first(mention)]
        named = frozenset[int]().union(*(mention.options for mention in affirmed))
        last = {option: mention.start for mention in affirmed for option in mention.options}
        denied = frozenset(
            option
            for mention in spoken
            if mention.denier and mention.denier not in _COMPARING
            for option in mention.options
            if last.get(option, -1) < mention.start
        )
        if len(named) > 1 and len(named - denied) == 1:
            named -= denied
            # Of a letter beside another option's text, "B. dog", one may be denied later.
            affirmed = [mention for mention in affirmed if mention.options <= named] or [
                mention for mention in affirmed if mention.options & named
            ]
        if len(named) == 1:
            told = affirmed[-1].end >= len(self.tokens) or not self._breaks_off()
            return Match(min(named), "mention") if told else Match(None, "nothing")
        if named:
            if any(len(mention.options) > 1 for mention in affirmed) and len(affirmed) == 1:
                return Match(None, "conflict")
            told_last = self._last_sentence(affirmed)
            told_last = self._most(affirmed) if told_last is None else told_last
            return Match(None, "several") if told_last is None else Match(told_last, "last sentence")
        return self._hinted()

    def _in_question(self, mention: Mention) -> bool:
        return any(span[0] <= mention.start < span[1] and self._asks(span) for span in self._asking)

    @functools.cached_property
    def _asking(self) -> list[Span]:
        return [span for span in self.sentences if self._asks(span)][:LONGEST]

    def _only_at_first(self, mention: Mention) -> bool:
        """Whether a mention is only a first thought, before a "but"."""
        before = self.words_before(mention.start, 12)
        if _FIRST_THOUGHT.isdisjoint(before) or {"but", "however"} & set(before):
            return False
        at_first = ("first", "at") in itertools.pairwise(before)
        if not at_first and not {"thought", "seemed", "seems", "initially", "originally"} & set(before):
            return False
        return not _CONTRAST.isdisjoint(self.next_words(mention.end, 14))

    def _last_sentence(self, affirmed: Sequence[Mention]) -> int | None:
        """The only option of a last sentence, or clause after "but", that compares."""
        if self._breaks_off():
            return None
        start, end = self.sentences[-1]
        turns = [
            place for place in range(start, end) if self.fold(place) in _CONTRAST and self.fold(place + 1) != "also"
        ]
        begin = turns[-1] if turns else start
        last = [mention for mention in affirmed if mention.start >= begin]
        if any(mention.start < begin and mention.group == last[0].group for mention in affirmed if last):
            return None
        named = frozenset[int]().union(*(mention.options for mention in last))
        words = self.words_of(begin, end)
        if begin == start and last and last[0].led and self.is_start(last[0].start) and self._listed():
            return None
        compares = not _COMPARES.isdisjoint(words) or "likely" in words
        compares |= len(words) <= 3 and not self.form.counts
        if last and "it" in words[:2]:
            # "It is the bell." as the entire sentence.
            small = _CONTRAST | ADVERBS | ARTICLES | word_set("it is was must be really actually that in")
            compares |= small.issuperset(self.words_of(begin, last[0].start)) and not self.words_of(last[-1].end, end)
        narrates = bool(words) and words[0] in (
            "if",
            "first",
            "then",
            "next",
            "at",
            "from",
            "second",
            "after",
            "afterwards",
        )
        return min(named) if len(named) == 1 and compares and not narrates else None

    def _most(self, affirmed: Sequence[Mention]) -> int | None:
        """The only option that is called the longest."""
        named: set[int] = set()
        for mention, after in itertools.zip_longest(affirmed, affirmed[1:]):
            end = len(self.tokens) if after is None else after.start
            if _MOST & set(self.words_of(mention.end, min(end, mention.end + 8))):
                named |= mention.options
        return min(named) if len(named) == 1 and not self._breaks_off() else None

    def _hinted(self) -> Match:
        """The option that a short answer implies: by a head noun, two numbers, or a statement about other sounds."""
        words = self.words_of(0, len(self.tokens))
        if self.form.yes_no:
            return self._stated()
        if self.form.intervals:
            if self.mentions or not NEGATORS.isdisjoint(words):
                # "Not 2.5-5.0 s."
                return Match(None, "nothing")
            places = [place for place in self.content if self.kind(place) == "number"]
            numbers = tuple(number_value(self.tokens[place].raw) for place in places)
            place = self.form.intervals.index(numbers) if numbers in self.form.intervals else None
            return Match(None, "nothing") if place is None else Match(place, "interval")
        if self.mentions or len(words) > 8 or (self._breaks_off() and len(words) > 4):
            return Match(None, "nothing")
        heads = [mention for mention in self.heads if not self._denier(mention)]
        named = frozenset[int]().union(*(mention.options for mention in heads))
        if not named or not ALTERNATIVES.isdisjoint(words):
            return Match(None, "nothing")
        return Match(min(named), "mention") if len(named) == 1 else Match(None, "several")

    def _stated(self) -> Match:
        """Yes or No from statements about other sounds, where all agree: both answers are read alike."""
        if self._breaks_off():
            return Match(None, "nothing")
        stated = {alone for span in self.sentences if not self._asks(span) for alone in self._states_alone(span)}
        if len(stated) != 1 or self.is_alone is None:
            return Match(None, "several" if stated else "nothing")
        return Match(self.form.yes_no["yes" if stated == {self.is_alone} else "no"], "mention")

    def _states_alone(self, span: Span) -> Iterator[bool]:
        """Of each clause that tells, whether nothing overlaps the sound."""
        words = _SURE.sub(" ", " ".join(token.fold for token in self.tokens[slice(*span)]))
        if not _HEDGED.isdisjoint(words.split()) or _UNTRUE.search(words):
            return
        if _NOTHING_BUT.search(words):
            yield True
            return
        besides = _BESIDES.search(words) is not None
        for clause in [words] if besides else _CLAUSES.split(words):
            alone = says_alone(clause, besides=besides)
            if alone is not None:
                yield alone


@dataclass(frozen=True, slots=True)
class _Verdict:
    """A conclusion.

    Attributes:
        options: the options named: one, or there is a conflict.
        strength: 3 of an explicit answer, 2 of an inference from earlier statements.
        rule: see `match_answer`.
        place: its first token.
        is_plain: whether it is a letter, a number or the like, which answers rather than explains.
        listed: whether it is one of several called right.
    """

    options: frozenset[int]
    strength: int
    rule: str
    place: int
    is_plain: bool
    listed: bool = False


_COMPARING = word_set("than over rather instead unlike without against except if least")
_MOST = word_set("longest most dominates")
_CORRECTING_STARTS = frozenset(phrase[0] for phrase in _CORRECTING) | {"no"}


def words_outside(words: Sequence[str], of_mention: Sequence[str]) -> bool:
    """Whether a sentence has words beside those of a mention."""
    return len(words) > len(of_mention) and not all(word in CHOICE for word in words if word not in of_mention)
