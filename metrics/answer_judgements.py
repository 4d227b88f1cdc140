"""Mentions of options in an answer, grouped and judged: affirmed, denied, doubted or supposed."""

import dataclasses
import functools
import itertools
import re
from collections.abc import Sequence

from .answer_mentions import ALTERNATIVES, CLOSING, ENDS, FILLERS, JOINING, OPENING, Mention, Span, Words, word_set
from .answer_words import ARTICLES, CONTENT, SCANNED, PreparedOptions, Token

_DELIMITERS = frozenset(".):]-,、}>\"'(/&|;!?=~…。」』】*")
NEGATORS = word_set(
    "not never neither nor without cannot except excluding unlike no than instead over eliminate exclude excluded rule",
    "eliminated against nicht kein keine pas non ni не isn't aren't wasn't weren't can't don't doesn't didn't won't",
    "couldn't wouldn't shouldn't hardly isnt dont none doubt doubtful unlikely implausible improbable",
)
_DENIALS = word_set(
    "not isn't wasn't aren't weren't doesn't don't didn't cannot can't incorrect wrong false ruled excluded eliminated",
    "unlikely implausible improbable doubtful invalid absent out never silent inaudible no couldn't neither impossible",
) | frozenset("✗✘❌×❎")
_PRAISES = word_set("correct right yes true best") | frozenset("✓✔✅☑")
_LINKS = word_set(
    "is was are were does do did can could has have had seems sound sounds would be being option the answer to"
)
_SINGULAR = word_set("is was isn't wasn't does doesn't has")
_REMAINS = word_set("remains remain fits matches wins")
_SUPPOSING = word_set("suppose supposing assume assuming imagine")
_DOUBTLESS = word_set("no without any little beyond")
GUESSING = word_set("had have must forced guess choose pick")
_NO_DENIAL = word_set("only just merely sure certain entirely doubt question hesitation")
_CLAUSE_MARKS = frozenset(".!?;:,…。|")
_CLAUSE_WORDS = word_set("but because and so however while since it's or")
ADVERBS = word_set(
    "also clearly definitely therefore thus probably certainly simply both all most very more the only likely"
)
_PRAISED_NOUNS = word_set("answer option choice one 1 because since as and")
_LISTING = frozenset(".,;:)(][|/-*•&+\"'") | ALTERNATIVES
_NO_SOUND = word_set(
    "no nothing not never neither none without isn't aren't wasn't weren't doesn't don't didn't can't"
) | word_set("cannot couldn't nobody nowhere nor")
_TOGETHER = word_set("overlap overlaps overlapping overlapped simultaneous simultaneously concurrent concurrently")
_HEARD = word_set("hear heard hearing audible present play plays playing sounds sounding perceive there exists")
_NOT_ONLY = re.compile(r"\b(?:not|isn't) (?:only|just|the only|alone|on its own|by itself)\b|\bnever (?:\w+ )?alone\b")
_LONELY = re.compile(
    r"\b(?:is|are|was|heard|sounds|plays|rings|always|audible|present) (?:\w+ ){0,2}alone\b"
    r"|\b(?:on its own|by itself|in isolation)\b|\bthe only (?:\w+ )?(?:sound|source|thing|one|instrument|1)\b"
)
_ANOTHER = re.compile(
    r"\b(?:something|anything|nothing|things|sounds|sound|no one) else\b"
    r"|\b(?:other|another|additional|different|second) (?:\w+ )?"
    r"(?:sounds?|sources?|noises?|instruments?|events?|things?)\b"
)


class JudgedAnswer(Words):
    """An answer with its mentions merged, grouped by sentences, and judged by their context."""

    def __init__(self, text: str, form: PreparedOptions, is_alone: bool | None) -> None:
        super().__init__(text, form)
        self.is_alone, self.withdrawn = is_alone, 0
        self.within_single = {place for mention in self.single for place in range(mention.start, mention.end)}
        self.mentions = self._merged(self.single)
        self.sentences = self._sentences()
        self.mentions = self._judged(self._grouped(self.mentions))

    def _merged(self, single: Sequence[Mention]) -> list[Mention]:
        """Letters merged with the texts beside them: first where they agree, then where they differ."""
        mentions = list(single)
        for agree in (True, False):
            merged: list[Mention] = []
            for mention in mentions:
                both = self._pair(merged[-1], mention) if merged else False
                both = both and (agree or not self._goes_on_without(merged[-1], mention))
                if both and bool(merged[-1].options & mention.options) == agree:
                    before = merged.pop()
                    options = before.options & mention.options if agree else before.options | mention.options
                    mention = Mention(before.start, mention.end, options, "text", before.led)
                merged.append(mention)
            mentions = merged
        return [mention for mention in mentions if mention.kind != "number"]

    def _pair(self, before: Mention, after: Mention) -> bool:
        """Whether a letter and a text stand beside each other as if they were one option."""
        between = self.tokens[before.end : after.start]
        if len(between) > 6 or any(token.kind == "line" for token in between):
            return False
        words = [token.fold for token in between]
        is_letter = [mention.kind in ("letter", "ordinal") for mention in (before, after)]
        if is_letter == [True, False] or (is_letter == [True, True] and before.kind != after.kind):
            if after.kind == "number" and any(word not in _DELIMITERS and word not in OPENING for word in words):
                return False
            return all(
                word in FILLERS or (word in _DELIMITERS and word not in "/&|;!?") or word in OPENING for word in words
            )
        if is_letter == [False, True] and after.kind == "letter" and before.kind != "number":
            allowed = word_set("option letter which is choice answer that") | frozenset("([-,\"'{:") | CLOSING
            return bool(words) and allowed.issuperset(words) and not (words == [","] and self._is_label(after))
        return False

    def _goes_on_without(self, before: Mention, after: Mention) -> bool:
        """Whether the text after a letter begins a sentence that rejects it: "C. The bell isn't"."""
        if before.kind != "letter" or after.kind != "text" or "." not in self.words_and_marks(before.end, after.start):
            return False
        # "C. The bell (B) is heard earlier": the text has a letter of its own, and the sentence goes on.
        last = self.tokens[after.end - 1]
        if after.end - after.start > 1 and len(last.raw) == 1 and self.form.letter(last.raw) is not None:
            return self.kind(after.end) == "mark" and self.kind(after.end + 1) in CONTENT
        place = after.end
        while place < after.end + SCANNED and (self.fold(place) in JOINING or place in self.within_single):
            place += 1
        if self.fold(place - 1) == ",":
            return False
        said = itertools.takewhile(lambda word: word not in _CLAUSE_MARKS, self.words_and_marks(place, place + 5))
        return not _DENIALS.isdisjoint(said)

    def _is_label(self, mention: Mention) -> bool:
        return self.fold(mention.end) in (".", ":", ")") and self.kind(mention.end + 1) in CONTENT

    def _sentences(self) -> list[Span]:
        """Tokens of each sentence that has words; a full stop within a mention ends none."""
        within = {place for mention in self.mentions for place in range(mention.start, mention.end)}
        spans, start = [], 0
        for place, token in enumerate(self.tokens):
            if token.kind == "line" or (token.kind == "mark" and token.fold in ENDS and place not in within):
                spans.append((start, place + 1))
                start = place + 1
        spans.append((start, len(self.tokens)))
        return [span for span in spans if any(token.kind in CONTENT for token in self.tokens[span[0] : span[1]])]

    def _grouped(self, mentions: Sequence[Mention]) -> list[Mention]:
        """Mentions with the number of their group; mentions side by side are one group."""
        grouped: list[Mention] = []
        for mention in mentions:
            group = len(grouped)
            if grouped:
                before = grouped[-1]
                between = self.tokens[before.end : mention.start]
                loose = _DELIMITERS | OPENING if {before.kind, mention.kind} == {"letter"} else frozenset(")(\"'[]{}")
                lines = {before.kind, mention.kind} == {"letter"} or self._bulleted(between)
                if len(between) <= 8 and all(
                    token.fold in JOINING
                    or token.fold in loose
                    or (lines and (token.fold in "\n-*|•." or token.kind == "number"))
                    for token in between
                ):
                    group = group if self._begins_anew(before, mention) else before.group
            grouped.append(dataclasses.replace(mention, group=group))
        return grouped

    def _begins_anew(self, before: Mention, after: Mention) -> bool:
        """Whether a letter after a letter opens a sentence of its own: "B. A is wrong", but not "B. C"."""
        between = self.words_and_marks(before.end, after.start)
        if before.kind == "letter" and after.kind == "text" and "." in between and "\n" not in between:
            # The text of the letter's option is one mention with it.
            return True
        if {before.kind, after.kind} != {"letter"} or not {".", ")", "\n"} & set(between) or "," in between:
            return False
        if not ALTERNATIVES.isdisjoint(between) or self.fold(after.start - 1) in OPENING:
            return False
        place = after.end
        while place < after.end + SCANNED and (self.fold(place) in JOINING or place in self.within_single):
            place += 1
        return self.kind(place) in CONTENT

    def _bulleted(self, between: Sequence[Token]) -> bool:
        return bool(between) and all(token.fold in "\n-*•,." or token.kind == "number" for token in between)

    def _judged(self, mentions: Sequence[Mention]) -> list[Mention]:
        """Mentions with the words that deny or praise each."""
        judged: list[Mention] = []
        starts = {mention.start for mention in mentions}
        for mention in mentions:
            denier = self._denier(mention)
            before = judged[-1] if judged else None
            if not denier and before is not None and before.denier and before.group == mention.group:
                between = self.words_of(before.end, mention.start)
                if not ALTERNATIVES.isdisjoint(between) or before.denier in ("neither", "none", "without", "except"):
                    denier = before.denier
            said = self._said_of(mention, starts)
            if said is False:
                denier = denier or "wrong"
            praised = said is True and not denier
            # Most mentions are neither, and a copy takes time.
            judged.append(
                dataclasses.replace(mention, denier=denier, praised=praised) if denier or praised else mention
            )
            if said is not None:
                # "A, C and D are wrong": the predicate of the last mention holds for its entire group.
                for place in range(len(judged) - 2, -1, -1):
                    if judged[place].group != mention.group or judged[place].denier:
                        break
                    if any(token.kind == "line" for token in self.tokens[judged[place].end : judged[place + 1].start]):
                        break
                    joined = self.words_of(judged[place].end, judged[place + 1].start)
                    if self.fold(mention.end) in _SINGULAR and ALTERNATIVES.isdisjoint(joined):
                        # "It is B, A is wrong."
                        break
                    judged[place] = dataclasses.replace(judged[place], denier="" if said else "wrong", praised=said)
        return judged

    @functools.cached_property
    def _supposed(self) -> set[int]:
        """Tokens of hypothetical clauses: in "if A were louder, it would be B" all of them."""
        supposed: set[int] = set()
        for start, end in self.sentences:
            place = start
            while place < end:
                opens = self._supposes(place)
                if opens is not None:
                    clause = next((at for at in range(place, end) if self.fold(at) in opens), end)
                    supposed.update(range(place, clause))
                    place = clause
                place += 1
        return supposed

    def _supposes(self, place: int) -> frozenset[str] | None:
        """The end marks of a hypothetical clause that a word opens; None where it opens none."""
        word = self.fold(place)
        if word == "if" and place not in self._guessed:
            is_counterfactual = self.is_start(place) and place in self._would
            return frozenset(";") if is_counterfactual else frozenset(",;")
        if word not in _SUPPOSING and not (word == "say" and self.fold(place - 1) == "let"):
            return None
        opens = self.is_start(place) or self.fold(place - 1) in ("let", "us")
        return frozenset(";") if opens else None

    @functools.cached_property
    def _guessed(self) -> set[int]:
        """Tokens of sentences with a guess: "if I had to choose"."""
        return {
            place for span in self.sentences if not GUESSING.isdisjoint(self.words_of(*span)) for place in range(*span)
        }

    @functools.cached_property
    def _would(self) -> set[int]:
        """Tokens of sentences in the conditional ("would be")."""
        would = word_set("would were could might it'd i'd we'd")
        return {
            place for span in self.sentences if not would.isdisjoint(self.words_of(*span)) for place in range(*span)
        }

    def _denier(self, mention: Mention) -> str:
        """A word before a mention, in its clause, that denies it."""
        if mention.start in self._supposed:
            return "if"
        if mention.kind == "count" and self.words_before(mention.start, 2) == ["least", "at"]:
            return "least"
        place, seen = mention.start - 1, 0
        while place >= 0 and seen < 5:
            token = self.tokens[place]
            if token.fold == "but" and self.fold(place - 1) == "anything":
                return "anything" if NEGATORS.isdisjoint(self.words_before(place - 1, 4)) else ""
            if token.kind == "line" or token.fold in _CLAUSE_MARKS or token.fold in _CLAUSE_WORDS:
                return ""
            if token.kind in CONTENT:
                word, follows = token.fold, self.fold(place + 1)
                if word == "doubt" and self.fold(place - 1) in _DOUBTLESS:
                    return ""
                if seen and word in ("not", "isn't") and self._is_of_what_is_not(place, mention):
                    return ""
                if word in NEGATORS and follows not in _NO_DENIAL:
                    adjacent = seen == 0 or (seen == 1 and follows in ARTICLES)
                    # "A) No B) Yes" says no of A.
                    adjacent &= mention.kind != "letter" or self.fold(place - 1) not in (")", ":", "-", ".")
                    if word not in ("no", "over", "kein", "keine", "against", "ni", "ne", "non") or adjacent:
                        if word == "than" and self.fold(place - 1) == "other" and self.fold(place - 2) == "none":
                            return ""
                        if word != "instead" or follows == "of":
                            return word
                # 不是 and 没有.
                if (
                    token.kind == "unspaced"
                    and seen == 0
                    and self.fold(place - 1) + word in ("不是", "没有", "而非", "并非")
                ):
                    return word
                seen += 1
            place -= 1
        return ""

    def _is_of_what_is_not(self, place: int, mention: Mention) -> bool:
        """Whether a "not" belongs to an earlier clause: "the sound that is not heard is the siren"."""
        relative = {"that", "which", "what"} & set(self.words_before(place, 2))
        return bool(relative) and self.fold_before(mention) in ("is", "was") and self.fold(place + 1) != "the"

    def _said_of(self, mention: Mention, starts: set[int]) -> bool | None:
        """Whether a mention is called right, or wrong; None where neither."""
        place = mention.end
        labels = mention.kind == "letter" and (self.is_start(mention.start) or mention.led)
        for _ in range(4):
            mark = self.fold(place)
            if self.kind(place) != "mark":
                break
            if mark in _DENIALS or mark in _PRAISES:
                return mark in _PRAISES
            if not (
                mark in ")]:-\"'(|>" or (mark in ".?" and labels and self.is_start(mention.start)) or mark == "\ufe0f"
            ):
                return None
            place += 1
        marked = place > mention.end
        linked = 0
        while linked < 4 and self.kind(place) in CONTENT and self.fold(place) in _LINKS | ADVERBS:
            place += 1
            linked += 1
        word, follows = self.fold(place), self.fold(place + 1)
        if self.kind(place) == "mark" and word in _DENIALS | _PRAISES:
            return word in _PRAISES
        if word in ARTICLES and follows in ("distractor", "distraction") and linked:
            return False
        another = place + 1 in starts or (follows in ARTICLES and place + 2 in starts)
        if word in _DENIALS:
            if follows in ("only", "just", "merely") or (another and not linked and not marked):
                return None
            bare = self.kind(place + 1) in ("", "line", "mark")
            item = marked and not linked and not self.form.yes_no
            if word == "no" and not (item and (labels or bare)):
                return None
            return None if word == "not" and not linked and not marked else False
        if linked and self.fold(place - 1) == "answer":
            return True
        if word in _REMAINS and self.kind(place + 1) in ("", "line", "mark"):
            return True
        if word in _PRAISES and (linked or marked):
            bare = self.kind(place + 1) in ("", "line", "mark") or follows in _PRAISED_NOUNS or place + 1 in starts
            return True if bare else None
        return None

    def _echo(self) -> list[Span]:
        """Tokens of lists of two options or more, each with its letter, which repeat the question."""
        chains: list[list[Mention]] = []
        for mention in self.mentions:
            if mention.kind != "text" or not mention.led or len(mention.options) != 1:
                continue
            if chains:
                between = self.tokens[chains[-1][-1].end : mention.start]
                near = len(between) <= 6 and not (mention.praised or chains[-1][-1].praised)
                if near and all(token.fold in _LISTING or token.kind == "line" for token in between):
                    chains[-1].append(mention)
                    continue
            chains.append([mention])
        spans = []
        for chain in chains:
            if len(frozenset[int]().union(*(mention.options for mention in chain))) > 1:
                first = chain[0].start - (self.fold(chain[0].start - 1) in OPENING)
                spans.append((first, chain[-1].end))
        return spans

    def fold_before(self, mention: Mention) -> str:
        """The word before a mention, articles skipped."""
        before = [word for word in self.words_before(mention.start, 3) if word not in ARTICLES]
        return before[0] if before else ""


# ----- statements of a clause about the sounds
def says_alone(clause: str, *, besides: bool) -> bool | None:
    """Whether a clause says that nothing overlaps the sound; None where it says neither."""
    words = clause.split()
    if not words or len(words) > SCANNED:
        return None
    if _NOT_ONLY.search(clause):
        return False
    lonely = _LONELY.search(clause)
    if lonely is not None:
        return _NO_SOUND.isdisjoint(clause[: lonely.start()].split())
    denials = sum(word in _NO_SOUND for word in words)
    if _TOGETHER.isdisjoint(words) and not besides and not (_ANOTHER.search(clause) and is_heard(words)):
        only = "only" in words and not _HEARD.isdisjoint(words) and not denials and ALTERNATIVES.isdisjoint(words)
        return True if only else None
    if besides and _HEARD.isdisjoint(words) and not denials:
        return None
    # "Not without another sound".
    return None if denials > 1 else denials == 1


def is_heard(words: Sequence[str]) -> bool:
    """Whether the words state that a sound is present."""
    return not _HEARD.isdisjoint(words) or bool({"no", "nothing", "with"} & set(words))
