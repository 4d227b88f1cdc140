"""Where an answer in free text mentions the options of a question, and which mentions it denies."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .answer_words import (
    ARTICLES,
    CONTENT,
    NUMBER,
    READ_WORDS,
    PreparedOptions,
    Token,
    number_value,
    read_tokens,
    word_stem,
)


def word_set(*texts: str) -> frozenset[str]:
    """Return the words of texts, which blanks separate."""
    return frozenset(" ".join(texts).split())


ENDS = frozenset(".!?;。…।")
OPENING, CLOSING = frozenset("([{<\"'「『【"), frozenset(")]}>\"'」』】")
ALTERNATIVES = word_set("and or nor und oder et ou y o e или и und/or 和 或 と か")
JOINING = frozenset(",/&、|+") | ALTERNATIVES | ARTICLES | word_set("possibly maybe perhaps both either also")
_FUNCTION = word_set(
    "is was are were because since as and or nor but not isn't wasn't doesn't does in with would seems",
    "appears can can't",
    "cannot could should must may might has have had if which that would than rather over also so due given based for",
    "while whereas overlaps lasts sounds then however comes starts ends ist est es è é und et ou y o oder",
    "plays occurs too",
    "it remains fits matches wins goes correct right wrong incorrect false true only instead to at from",
    "by alone actually likely probably yes no",
)
"""What follows a letter that is no word: not "the C major chord"."""
CHOICE = word_set(
    "option options choice letter opción opcion opzione opção opcao variant вариант buchstabe lettre letra lettera"
)
ANSWER = word_set(
    "answer answers ans antwort lösung respuesta réponse resposta risposta ответ antwoord svar svaret odpowiedź cevap",
    "conclusion correction solution verdict jawaban đáp उत्तर",
)
COPULAS = word_set("is was be are 're est es ist è é e är jest seems becomes remains adalah") | frozenset(
    ":=-—|>是为為は은는이が가"
)
SO = word_set("so therefore thus hence consequently accordingly overall total altogether leaves leaving donc daher")
FILLERS = word_set(
    "is it its it'd the a an this that there are answer sound sounds of means i would say hear most likely probably",
    "therefore thus clearly definitely simply just option choice letter be as 're correct",
)
_ORDINALS = {
    word: place
    for place, words in enumerate(
        (
            "first 1st erste ersten première premier primera primer prima primo primeira primeiro первый первая",
            "second 2nd zweite zweiten deuxième segunda segundo seconda secondo второй вторая",
            "third 3rd dritte dritten troisième tercera tercero terza terzo terceira terceiro третий третья",
            "fourth 4th vierte vierten quatrième cuarta cuarto quarta quarto четвёртый четвертый",
            "fifth 5th fünfte fünften cinquième quinta quinto пятый",
        )
    )
    for word in words.split()
} | dict.fromkeys(("last", "letzte", "letzten", "dernière", "dernier", "última", "último", "ultima"), -1)
_ORDERED = CHOICE | word_set(
    "answer alternative candidate interval item window opciones respuesta réponse antwort risposta"
)
_TONES = word_set("note notes chord chords key keys pitch scale plan vitamin vitamins")
"""What letters name that are no options."""
_COUNTED = word_set(
    "kind kinds type types sort sorts class classes category categories sound sounds source sources event events label",
    "labels noise noises altogether overall instruments instrument timbres timbre voices voice things audible heard",
    "sons son sonidos sonido tipos tipo suoni suono tipi klänge klang geräusche geräusch arten töne",
    "bruits sortes types",
    "sortes fontes sons quellen звука звуков звук видов вида источника geluiden ljud dźwięki ses",
)
_BETWEEN = word_set(
    "different distinct separate unique main overlapping various individual simultaneous audible other",
    "total in can be are",
    "verschiedene verschieden unterschiedliche différents distincts diferentes distintos diversi diversos",
    "разных различных",
    "kinds of clear sound unlike single types seul seule",
)
_TOTAL = word_set(
    "is are be equals hear heard exactly only just total count number about least most have has contains",
    "there makes so",
    "counted say think be were count identify sind gibt hay sono há есть a approximately around probably",
    "maybe possibly",
    "perhaps thus therefore wait actually meant rather not but",
)
_BEFORE_PRONOUN = word_set("this that the no any each every which first second last other another some")
_UNITS = word_set(
    "s sec secs second seconds ms hz khz db minute minutes min times bars beats octaves semitones percent"
) | {"%"}
_NUMBERS_ELSEWHERE = {
    word: count
    for count, words in enumerate(
        (
            "eins ein eine einer un qu'un una uno um uma один одна één en jeden bir 一 하나",
            "zwei deux dos due dois duas два две twee två dwa iki 二 两 兩 둘 두",
            "drei trois tres tre três три drie trzy üç 三 셋 세",
            "vier quatre cuatro quattro quatro четыре fyra cztery dört 四 넷 네",
            "fünf cinq cinco cinque пять vijf fem pięć beş 五 다섯",
            "sechs seis sei шесть zes sex sześć altı 六 여섯",
        ),
        1,
    )
    for word in words.split()
}
_COUNTERS = frozenset("个個種种类類つ개가지종")
_SAYS_YES = word_set("yes yeah yep yup sí si sì oui ja да evet tak sim hai")
_SAYS_NO = word_set("no nope nah nein non não nie нет nee nej hayır não")
_UNSPACED_YES_NO = (
    *(("不是", False), ("没有", False), ("沒有", False), ("不", False), ("否", False), ("いいえ", False)),
    *(
        ("아니", False),
        ("无", False),
        ("是", True),
        ("有", True),
        ("はい", True),
        ("네", True),
        ("예", True),
        ("对", True),
    ),
)
_AFTER_NO = word_set(
    "it there the this that these those i you he she we they because since as at in only while during when nothing not",
)
_BEFORE_YES_NO = (
    SO
    | ANSWER
    | COPULAS
    | word_set(
        "course think say guess believe suppose afraid probably maybe actually wait hmm then be well",
        "definitely certainly likely perhaps clearly or and",
    )
)


# ----- matching: where options are mentioned
@dataclass(frozen=True, slots=True)
class Mention:
    """Words that name an option.

    Attributes:
        start, end: its tokens.
        options: that it names: several where a letter and a text differ, or texts are the same but for small words.
        kind: letter, text (a letter may stand beside it), head, ordinal, count, number (that may be no count),
            interval, yes or no.
        led: whether a letter stands in front.
        denier: the word by which it is denied, empty where it is not.
        praised: whether it is called right.
        group: number of what stands side by side.
    """

    start: int
    end: int
    options: frozenset[int]
    kind: str
    led: bool = False
    denier: str = ""
    praised: bool = False
    group: int = -1


Span = tuple[int, int]


class Words:
    """The words of an answer, and what options they mention."""

    def __init__(self, text: str, form: PreparedOptions) -> None:
        self.text, self.form = text, form
        tokens = read_tokens(text)
        if len(tokens) > sum(READ_WORDS):
            gap = Token("line", "\n", "\n", tokens[READ_WORDS[0]].start, tokens[READ_WORDS[0]].start)
            tokens = [*tokens[: READ_WORDS[0]], gap, *tokens[-READ_WORDS[1] :]]
        self.tokens, self.count = tokens, len(tokens)
        self.content = [place for place, token in enumerate(self.tokens) if token.kind in CONTENT]
        self.rank = {place: rank for rank, place in enumerate(self.content)}
        texts = self._texts()
        self.heads = self._heads(texts)
        named = [*texts, *self._letters(texts), *self._ordinals()]
        named += self._intervals() if self.form.intervals else []
        named += self._yes_no() if self.form.yes_no else []
        named += self._numbers() if self.form.counts else []
        self.single = self._without_inner(named)

    def fold(self, place: int) -> str:
        """The token at a place, empty beyond the ends."""
        return self.tokens[place].fold if 0 <= place < self.count else ""

    def kind(self, place: int) -> str:
        """The kind of the token at a place, empty beyond the ends."""
        return self.tokens[place].kind if 0 <= place < self.count else ""

    def next_words(self, place: int, count: int) -> list[str]:
        """The words from a token on, without punctuation."""
        while place < len(self.tokens) and place not in self.rank:
            place += 1
        rank = self.rank.get(place, len(self.content))
        return [self.tokens[position].fold for position in self.content[rank : rank + count]]

    def words_before(self, place: int, count: int) -> list[str]:
        """The words before a token, the nearest first."""
        place -= 1
        while place >= 0 and place not in self.rank:
            place -= 1
        rank = self.rank.get(place, -1)
        return [self.tokens[position].fold for position in reversed(self.content[max(rank + 1 - count, 0) : rank + 1])]

    def words_and_marks(self, start: int, end: int) -> list[str]:
        """All tokens from one up to another."""
        return [token.fold for token in self.tokens[start:end]]

    def words_of(self, start: int, end: int) -> list[str]:
        """The words among tokens."""
        return [token.fold for token in self.tokens[start:end] if token.kind in CONTENT]

    def is_start(self, place: int) -> bool:
        """Whether a token is the first word of a line or sentence."""
        place -= 1
        while self.kind(place) == "mark" and self.fold(place) not in ENDS:
            if self.fold(place) in ",:":
                return False
            place -= 1
        return place < 0 or self.kind(place) == "line" or self.fold(place) in ENDS

    def _without_inner(self, mentions: Sequence[Mention]) -> list[Mention]:
        """In order, without mentions within others."""
        kept: list[Mention] = []
        for mention in sorted(mentions, key=lambda mention: (mention.start, -mention.end)):
            if not kept or mention.start >= kept[-1].end:
                kept.append(mention)
        return kept

    def _texts(self) -> list[Mention]:
        if self.form.counts or self.form.yes_no or self.form.intervals:
            return []
        stems = [word_stem(self.tokens[place].fold) for place in self.content]
        joined = [*itertools.starmap(self._joined, itertools.pairwise(self.content)), False]
        mentions, rank = [], 0
        while rank < len(stems):
            # All options at once, word by word: texts that begin alike, again and again, take no longer.
            node, at, longest, options = self.form.phrases, rank, 0, frozenset[int]()
            while at < len(stems) and stems[at] in node and (at == rank or joined[at - 1]):
                node, at = node[stems[at]], at + 1
                if "" in node:
                    longest, options = at - rank, node[""]
            if longest:
                last = self.content[rank + longest - 1]
                mentions.append(Mention(self.content[rank], last + 1, options, "text"))
            rank += max(longest, 1)
        return mentions

    def _joined(self, first: int, last: int) -> bool:
        """Whether nothing but a mark or two stands between two words."""
        end, start = self.tokens[first].end, self.tokens[last].start
        return start - end <= 3 and "\n" not in self.text[end:start]

    def _heads(self, texts: Sequence[Mention]) -> list[Mention]:
        taken = {place for mention in texts for place in range(mention.start, mention.end)}
        return [
            Mention(place, place + 1, frozenset([self.form.heads[word_stem(self.fold(place))]]), "head")
            for place in self.content
            if word_stem(self.fold(place)) in self.form.heads and place not in taken
        ]

    def _letters(self, texts: Sequence[Mention]) -> list[Mention]:
        starts = {mention.start for mention in texts}
        mentions = []
        for place in self.content:
            token = self.tokens[place]
            option = self.form.letter(token.raw) if token.kind == "word" and len(token.raw) == 1 else None
            if option is not None and self._is_letter(place, starts):
                mentions.append(Mention(place, place + 1, frozenset([option]), "letter", True))
        return mentions

    def _is_letter(self, place: int, starts: set[int]) -> bool:
        """Whether a single letter is the name of an option, and no word."""
        token, after = self.tokens[place], self.fold(place + 1)
        for beside in (place - 1, place + 1):
            if self.kind(beside) in ("word", "number"):
                other = self.tokens[beside]
                if token.start in (other.end, other.start - 1):
                    return False
        before = self.fold(place - 1)
        if before in OPENING and after in CLOSING:
            joined = self.kind(place - 2) == "word" and self.tokens[place - 2].end == self.tokens[place - 1].start
            return not joined or before != "("
        # An abbreviation: "A.M.", "e.g."
        follows_dot = after == "." and self.kind(place + 2) == "word" and len(self.tokens[place + 2].raw) == 1
        if follows_dot and self.tokens[place + 2].start == token.end + 1:
            return False
        if before == "/" and self.fold(place - 2) == "n":
            return False
        if self._names_a_tone(place):
            return False
        ends = self.kind(place + 1) in ("", "line", "mark", "unspaced")
        cued = before in CHOICE or before in ANSWER
        if token.raw.islower():
            labels = self.is_start(place) and after in (".", ")", ":") and self.kind(place - 1) in ("", "line")
            answers = (before in COPULAS and not ANSWER.isdisjoint(self.words_before(place, 4))) or cued
            return labels or (answers and (ends or (after in _FUNCTION and token.raw != "a")))
        if token.raw == "I":
            return after in (")", ".", ":") and before in (*OPENING, "")
        if ends or cued:
            return True
        first = token.raw == "A" and self.is_start(place)
        if after in _FUNCTION:
            return not (
                first and after in ("in", "from", "so", "only", "likely", "true", "false", "right", "no", "over")
            )
        follows = place + 1 in starts or (self.kind(place + 1) == "number" and self.form.counts)
        follows |= bool(self.form.yes_no) and after in ("yes", "no")
        follows |= len(after) == 1 and self.tokens[place + 1].raw.isupper() and self.form.letter(after) is not None
        return follows and not first and (token.raw != "A" or before not in ("", "is", "hear", "heard", "was"))

    def _names_a_tone(self, place: int) -> bool:
        """Whether a letter is that of a note, a key or the like: "the note is a C", "in the key of D", "plan B"."""
        for at in range(place - 1, max(place - 5, -1), -1):
            if self.fold(at) in _TONES:
                return not (self.fold(at) == "note" and self.is_start(at))
            if self.fold(at) not in ("is", "was", "of", "a", "an", "the"):
                break
        return False

    def _ordinals(self) -> list[Mention]:
        """ "The second option", "option 2", 第二个选项; of "the second one" only where little else is said."""
        mentions, size = [], len(self.form.texts)
        for rank, place in enumerate(self.content):
            word, next_place = self.fold(place), self.content[rank + 1] if rank + 1 < len(self.content) else -1
            follows = self.fold(next_place)
            position = _ORDINALS.get(word)
            if position is None and self.kind(place) == "number" and follows in ("st", "nd", "rd", "th"):
                value = number_value(self.tokens[place].raw)
                position = int(value) - 1 if value is not None and 1 <= value <= size else None
                next_place = self.content[rank + 2] if rank + 2 < len(self.content) else -1
                follows = self.fold(next_place)
            if position is not None:
                short = follows == "1" and len(self.content) <= 8
                if (follows in _ORDERED or short) and position < size and self._adjoin(place, next_place):
                    mentions.append(Mention(place, next_place + 1, frozenset([position % size]), "ordinal"))
            elif word in CHOICE and not self.form.counts and follows:
                if follows in ("number", "no", "nr"):
                    next_place = self.content[rank + 2] if rank + 2 < len(self.content) else -1
                value = number_value(self.tokens[next_place].fold) if self.fold(next_place).isdecimal() else None
                if value is not None and 1 <= value <= size and self._adjoin(place, next_place):
                    mentions.append(Mention(place, next_place + 1, frozenset([int(value) - 1]), "ordinal"))
            elif word == "第" and follows in _NUMBERS_ELSEWHERE and rank + 2 < len(self.content):
                position = _NUMBERS_ELSEWHERE[follows] - 1
                named = "".join(self.fold(p) for p in self.content[rank + 2 : rank + 5])
                if position < size and re.match("[个個]?(?:选项|選項|选|答案|選択肢)", named):
                    mentions.append(Mention(place, self.content[rank + 2], frozenset([position]), "ordinal"))
        return mentions

    def _adjoin(self, first: int, last: int) -> bool:
        """Whether nothing but words stands between two words."""
        return all(self.kind(place) in CONTENT or self.fold(place) in "#(" for place in range(first, last))

    def _intervals(self) -> list[Mention]:
        """Two numbers with "to" and units between."""
        between = (
            _UNITS
            | word_set("to and until till through bis à a до 到 the second at t and - ~ , = から まで e and y 秒 의 ;")
            | {"-"}
        )
        mentions, numbers = [], [place for place in self.content if self.kind(place) == "number"]
        for first, last in itertools.pairwise(numbers):
            words = [self.fold(place) for place in range(first + 1, last)]
            if len(words) > 5 or not words or not between.issuperset(words) or "\n" in words:
                continue
            bracketed = self.fold(first - 1) in ("[", "(") and self.fold(last + 1) in ("]", ")")
            if words == [","] and not bracketed:
                continue
            pair = tuple(number_value(self.tokens[place].raw) for place in (first, last))
            if pair in self.form.intervals:
                end = last + 1 + (self.fold(last + 1) in _UNITS)
                mentions.append(Mention(first, end, frozenset([self.form.intervals.index(pair)]), "interval"))
        return mentions

    def _yes_no(self) -> list[Mention]:
        mentions = []
        for rank, place in enumerate(self.content):
            token = self.tokens[place]
            if token.kind == "unspaced":
                if rank and not self.is_start(place):
                    continue
                ahead = "".join(self.fold(position) for position in self.content[rank : rank + 3])
                for said, is_yes in _UNSPACED_YES_NO:
                    if ahead.startswith(said):
                        mentions.append(self._said(place, is_yes))
                        break
                continue
            before, after = self.fold(place - 1), self.fold(place + 1)
            opens = self.is_start(place) or self._leads_to_yes_no(place)
            if not opens:
                continue
            if token.fold in _SAYS_YES and token.fold not in ("da", "si", "tak", "ja", "sim", "hai", "oui", "evet"):
                mentions.append(self._said(place, True))
            elif token.fold in _SAYS_YES | _SAYS_NO and (
                self.kind(place + 1) in ("", "line", "mark", "unspaced")
                or (after in _AFTER_NO | ALTERNATIVES and before != ",")
            ):
                mentions.append(self._said(place, token.fold in _SAYS_YES))
            elif len(self.content) == 1 and token.fold in ("true", "false", "correct", "incorrect"):
                mentions.append(self._said(place, token.fold in ("true", "correct")))
        return mentions

    def _leads_to_yes_no(self, place: int) -> bool:
        """Whether the words before tell that yes, or no, is meant: "the answer is no", but not "there is no"."""
        before, *earlier = self.words_before(place, 5) or [""]
        if self.kind(place - 1) == "mark":
            return self.fold(place - 1) in (":", "=", ">", "|", ",", "(", '"', "-", "'", "{", "/", ";")
        if before in ALTERNATIVES:
            return bool(earlier) and earlier[0] in _SAYS_YES | _SAYS_NO
        if before in COPULAS:
            return before != "be" and not (ANSWER | CHOICE).isdisjoint(earlier)
        return before in _BEFORE_YES_NO

    def _said(self, place: int, is_yes: bool) -> Mention:
        return Mention(place, place + 1, frozenset([self.form.yes_no["yes" if is_yes else "no"]]), "yes or no")

    def _number(self, place: int) -> str:
        """A number as the options have it, empty where a word is none."""
        word = self.fold(place)
        if (
            word == "single"
            and self.fold(place - 1) == "a"
            and self.fold(place + 1) in ("kind", "type", "sort", "class")
        ):
            return "1"
        if word in _NUMBERS_ELSEWHERE:
            return str(_NUMBERS_ELSEWHERE[word])
        return word if NUMBER.fullmatch(word) else ""

    def _numbers(self) -> list[Mention]:
        """Numbers; those that say how many sounds there are, and are no time, level or pronoun, are counts."""
        numbers = [place for place in self.content if self._number(place)]
        small = JOINING | FILLERS | _COUNTED | _BETWEEN | _COUNTERS | _TOTAL | {"to", "both", "either"}
        only = all(place in numbers or self.fold(place) in small for place in self.content)
        only &= not any(self.fold(place + 1) in _UNITS for place in numbers)
        mentions, after, is_count = [], len(self.tokens), False
        for place in reversed(numbers):
            foreign = self.fold(place) in _NUMBERS_ELSEWHERE
            joins = after < len(self.tokens) and self.words_of(place + 1, after) in (
                ["or"],
                ["to"],
                ["and"],
                ["o"],
                ["ou"],
            )
            is_count = (
                self._is_count(place) or (only and (not foreign or len(self.content) <= 4)) or (is_count and joins)
            )
            options = frozenset(at for at, words in enumerate(self.form.folded) if words == (self._number(place),))
            if is_count or (options and not foreign):
                mentions.append(Mention(place, place + 1, options, "count" if is_count else "number"))
            after = place
        return mentions[::-1]

    def _is_count(self, place: int) -> bool:
        before, raw = self.words_before(place, 1), self.tokens[place].raw.casefold()
        word_before = before[0] if before and self.kind(place - 1) in (*CONTENT, "mark") else ""
        if raw == "one" and (word_before in _BEFORE_PRONOUN or self.fold(place + 1) == "of"):
            return False
        after = place + 1
        # "Three (3) sounds".
        if self.fold(after) == "(" and self._number(after + 1) == self._number(place) and self.fold(after + 2) == ")":
            after += 3
        if self.fold(after) in _UNITS:
            return False
        follows = self.next_words(after, 4) if self.kind(after) != "line" else []
        for word in follows:
            if word in _COUNTED or word in _COUNTERS:
                return True
            if word not in _BETWEEN or word == "total":
                if word == "total":
                    return True
                break
        opens = not word_before or self.fold(place - 1) in (":", "=", "(", '"') or self.is_start(place)
        ends = self.kind(after) in ("", "line") or (self.kind(after) == "mark" and self.fold(after) not in "(%/-'")
        if self.fold(after) == "." and self.is_start(place) and self.kind(after + 1) not in ("", "line"):
            # "1. Bell" is an item of a list.
            return False
        if self.fold(place - 1) == ",":
            return ends and word_before in ("no", "wait", "actually", "rather", "sorry")
        return ends and (word_before in _TOTAL or opens)
