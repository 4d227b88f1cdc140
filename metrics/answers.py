"""Reading answers in free text: which option of a question an answer names, or why none."""

import ast
import functools
import itertools
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from .arrays import Floats

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Letters of the options, in order."""

POLARITIES = ("overlap", "alone")
"""The meaning of "Yes" in a question of concurrency: something overlaps the sound in question, or nothing does."""

REFUSED = ("refusal",)
UNPARSED = ("empty", "echo", "no such letter", "conflict", "none of them", "refusal", "several", "nothing")
"""Rules of `match_answer` after which an answer is unparsed; those of REFUSED are refusals."""

READ_CHARACTERS = (1000, 2000)
"""Characters read at the beginning and at the end of a longer answer, where conclusions stand."""


@dataclass(frozen=True)
class Match:
    """The reading of an answer.

    Attributes:
        option: position of the option named; None where the answer is unparsed.
        rule: name of the rule that decided; where none names an option, one of UNPARSED.
    """

    option: int | None
    rule: str


# ----- options
_SAME = str.maketrans("‘’‚‛′“”„‟«»″‐‑‒–—―−♯♭", "'''''\"\"\"\"\"\"\"-------#b")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060\ufeff]")
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Scripts that put no space between words, or join particles to them."""
_NUMBER = r"\d+(?::\d+)*(?:[.,]\d+)?"
_WORD = re.compile(rf"{_NUMBER}|[{_UNSPACED}]|(?:[^\W_{_UNSPACED}]|[\u0300-\u036f\u0900-\u0963])+(?:'[^\W\d_]+)?[#+]?|[#+/&%]")
_COUNTS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_NUMERALS = {word: str(count) for count, word in enumerate(_COUNTS)} | {
    word: str(count)
    for count, words in enumerate(
        (
            "once eins ein eine un una uno один одна 一",
            "twice zwei deux dos due dois два две 二 两 두 둘",
            "thrice drei trois tres tre três три 三 세 셋",
            "vier quatre cuatro quattro quatro четыре 四 네 넷",
            "fünf cinq cinco cinque пять 五",
        ),
        start=1,
    )
    for word in words.split()
}
_ARTICLES = ("a", "an", "the")


@dataclass(frozen=True)
class _Options:
    """The options of a question, prepared for reading.

    Attributes:
        texts: as shown, without what does not affect their meaning.
        folded: their words.
        pattern: finds the options' texts, a group for each.
        yes_no: positions of Yes and No where these are the options.
        intervals: two numbers of each option, where all have two; else empty.
        counts: whether all are numbers.
        symbols: whether an option is a single letter, so that a letter is a text first.
    """

    texts: tuple[str, ...]
    folded: tuple[tuple[str, ...], ...]
    pattern: re.Pattern[str]
    yes_no: dict[str, int]
    intervals: tuple[tuple[float, ...], ...]
    counts: tuple[str, ...]
    symbols: bool


def folded_words(text: str) -> tuple[str, ...]:
    """Return the words of a text for comparison: case, a leading article and the spelling of numbers do not matter."""
    words = []
    for word in _WORD.findall(_plain(text).casefold()):
        value = _value(word) if word[0].isdigit() else None
        words.append(_NUMERALS.get(word, word.removesuffix("'s")) if value is None else f"{value:.12g}")
    # "A." is a letter.
    has_article = len(words) > 1 and words[0] in _ARTICLES and re.match(r"[\W_]*(?:an?|the)\s+\w", text, re.I)
    return tuple(words[1:] if has_article else words)


def _plain(text: str) -> str:
    """A text without characters that do not affect its meaning."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text.translate(_SAME)).translate(_SAME))
    return re.sub(r"\b([^\W\d_])\.(?=[^\W\d_]\b)", r"\1", text).strip()


def _value(number: str) -> float | None:
    """The value of a number in digits, of seconds or minutes:seconds."""
    minutes, _, rest = number.rpartition(":")
    try:
        return 60 * float(minutes or 0) + float(rest.replace(",", "."))
    except ValueError:
        return None


@functools.lru_cache(maxsize=4096)
def _prepared(options: tuple[str, ...]) -> _Options:
    texts = tuple(_plain(text) for text in options)
    folded = tuple(folded_words(text) for text in texts)
    intervals = tuple(tuple(map(_value, re.findall(_NUMBER, text))) for text in texts)
    values = [words[0] for words in folded if words and words[0][0].isdigit() and len(words) <= 3]
    return _Options(
        texts=texts,
        folded=folded,
        pattern=_text_pattern(folded),
        yes_no={words[0]: place for place, words in enumerate(folded)} if sorted(folded) == [("no",), ("yes",)] else {},
        intervals=intervals if all(len(numbers) == 2 for numbers in intervals) else (),
        counts=tuple(values) if len(set(values)) == len(texts) else (),
        symbols=any(len(text) == 1 and text.isalpha() for text in texts),
    )


def _text_pattern(folded: Sequence[Sequence[str]]) -> re.Pattern[str]:
    """Finds the options' words, longer options first, one or many of each, in digits or words."""
    groups = []
    for place, words in sorted(enumerate(folded), key=lambda one: -len(" ".join(one[1]))):
        if not words:
            continue
        spelled = []
        for word in words[:LONGEST]:
            forms = [re.escape(word), *(name for name, number in _NUMERALS.items() if number == word)]
            plural = "(?:s|es)?" if word.isascii() and len(word) > 2 and word.isalpha() else ""
            stem = re.escape(word[:-1]) + "s?" if plural and word[-1] == "s" and word[-2] != "s" else None
            spelled.append((stem or f"(?:{'|'.join(forms)}){plural}") + r"(?:'s|\s+is\b)?")
        before = "" if re.match(f"[{_UNSPACED}]", words[0]) else r"(?<![^\W_])(?<!\d[.,:])"
        after = "" if re.match(f"[{_UNSPACED}]", words[-1][-1]) else r"(?![^\W_]|[#+](?!\w)|[.,:]\d)"
        article = r"(?:\b(?:an?|the)\s+)?"
        phrase = r"[^\w#]{0,5}_?".join(spelled)
        groups.append(f"(?P<o{place}>{before}{article}{phrase}{after})")
    return re.compile("|".join(groups) or r"(?!)", re.I)


LONGEST = 26
"""Limit on the words of an option that are compared."""


# ----- the part that is read
_SPECIAL = re.compile(r"<\|(?:im_end|eot_id|endoftext|end|return|eos)[^|<>]{0,40}\|>|</?s>|<(?:eos|bos|pad|end_of_turn)>")
_THOUGHT = r"(?:seed:)?(?:think|thinking|thoughts?|reason|reasoning|analysis|cot|reflection|scratchpad)"
_THOUGHT_END = re.compile(rf"<\s?/\s?{_THOUGHT}\s?>|\[/THINK\]|◁/think▷", re.I)
_THOUGHT_START = re.compile(rf"<\s?{_THOUGHT}\s?>|\[THINK\]|◁think▷", re.I)
_CHANNEL = re.compile(r"<\|(?:channel|start|message)\|>")
_FINAL = re.compile(r"<\|channel\|>\s?final\b[^<]{0,40}<\|message\|>|^analysis\b[\s\S]*assistantfinal:?")
_NEXT_TURN = re.compile(r"^[ \t]{0,9}(?:(?:Human|User|Question|Instruction|Problem)\s?\d{0,3}\s?:|(?:Human|user)[ \t]{0,9}$)", re.I | re.M)
_TAGGED = re.compile(r"<\s?(?:final[ _]?)?(?:answer|choice|option|response)\s?>", re.I)
_TAG_END = re.compile(r"<\s?/[^<>]{0,20}>|<\s?/\s?(?:answer)?$", re.I)
_BOXED = re.compile(r"\\f?boxed\s{0,3}\{")
_COMMAND = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|mbox)\s{0,3}\{([^{}]*)\}?")
_PROMPT = re.compile(r"(?:assistant|model|response|output)\s?:\s?\n|Answer with [^.\n]{0,80}\.|Explain, then letter\.", re.I)
_READ_FIELDS = ("final_answer", "answer", "choice", "option", "prediction", "response", "content", "text", "output")


def _parts(value: Any) -> list[str]:
    """The texts that a structured answer gives as the answer: not its reasoning."""
    if isinstance(value, dict):
        if re.search("reason|think|thought|analysis", str(value.get("type", "")), re.I):
            return []
        fields = {str(name).casefold().replace(" ", "_"): field for name, field in value.items()}
        return next((parts for name in _READ_FIELDS if name in fields and (parts := _parts(fields[name]))), [])
    if isinstance(value, list | tuple):
        return [part for one in value for part in _parts(one)]
    return [str(value)] if isinstance(value, str | int | float) and not isinstance(value, bool) else []


def _structured(text: str) -> list[str] | None:
    """The texts of a JSON or Python value that is all of an answer; None where it is none."""
    text = re.sub(r"^```\w{0,10}\s|\s?```$", "", text.strip())
    if text[:1] not in ("{", "[") or text[-1:] not in ("}", "]") or len(text) > 10_000:
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        numbers = isinstance(value, list) and all(isinstance(one, int | float) for one in value)
        return _parts(value) if isinstance(value, dict | list | tuple) and not numbers else None
    return None


def _final_parts(text: str) -> list[str]:
    """The parts of a text that a model gives as its answer, the one that counts first; none of unended thought."""
    if _CHANNEL.search(text) or text.startswith("analysis"):
        finals = list(_FINAL.finditer(text))
        if not finals and _CHANNEL.search(text):
            return []
        text = re.split(r"<\|(?:end|return|start|channel)\|>", text[finals[-1].end() :])[0] if finals else text
    text = re.sub(r"(?: ?\n)+ ?", "\n", re.sub(r"[^\S\n]+", " ", text))
    turn = _NEXT_TURN.search(text)
    if turn and re.search(r"\w", text[: turn.start()]):
        text = text[: turn.start()]
    text = _THOUGHT_START.split(_THOUGHT_END.split(_SPECIAL.sub(" ", text))[-1])[0]
    parts = [_TAG_END.split(part)[0] for part in _TAGGED.split(text)[:0:-1]]
    boxed = [_braced(text[start.end() :][: READ_CHARACTERS[1]]) for start in list(_BOXED.finditer(text))[-1:]]
    return [*boxed, *parts[:4], text]


def _braced(text: str) -> str:
    """The text before the brace that closes one opened earlier."""
    depth = 1
    for place, character in enumerate(text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0:
            return text[:place]
    return text


def _readable(text: str, form: _Options) -> str:
    """A part without markup, of a long one its beginning and end."""
    text = text if len(text) <= sum(READ_CHARACTERS) else f"{text[: READ_CHARACTERS[0]]}\n…\n{text[-READ_CHARACTERS[1] :]}"
    text = re.sub(r"~~[^~\n]{1,200}~~", " ", text)
    text = _COMMAND.sub(r"\1", _plain(text).replace("\r", "\n"))[: sum(READ_CHARACTERS) + 3]
    # "<B>" and "<rain>" are answers; "<C> B </C>" and "<p>" are markup.
    text = re.sub(r"<(\w{1,20})>(?=[^<>]{0,200}</\1>)|</[^<>]{0,30}>|<\w{0,20}\s?/>", " ", text)
    text = re.sub(r"<\s?([^<>]{1,60})\s?>", lambda tag: f" {tag[1]} " if _exact(tag[1], form).option is not None else " ", text)
    repeated = list(_PROMPT.finditer(text))
    text = text[repeated[-1].end() :] if repeated and re.search(r"\w", text[repeated[-1].end() :]) else text
    return re.sub(r"[*`$\\]|(?<!\w)_+|(?<!_)_+(?!\w)|^#+\s", "", text, flags=re.M).strip()


# ----- mentions of options
@dataclass(frozen=True)
class _Mention:
    """Characters of a text that name options; of several options only where their texts are equal."""

    start: int
    end: int
    options: frozenset[int]
    lettered: bool = False


_ORDINALS = (
    "first|1st|erste|première|primera|первый",
    "second|2nd|zweite|deuxième|segunda|второй",
    "third|3rd|dritte|troisième|tercera|третий",
    "fourth|4th|vierte|quatrième|cuarta",
    "fifth|5th",
    "sixth|6th",
)
_LAST = "last|letzte|dernière|última|ultima"
_CHOICE = r"(?:option|choice|answer|alternative|candidate|interval|opción|opzione|réponse|antwort|вариант|window|respuesta)"
_YES, _NO = r"yes|yeah|yep|true|sí|sì|si|oui|ja|да|evet|sim", r"no|nope|nah|false|nie|nein|non|não|нет|nee|nej|hayır"
_YES_UNSPACED, _NO_UNSPACED = r"是|有|はい|네|예|对", r"不是|不(?=[,，])|没有|否|いいえ|아니"
_LETTER = re.compile(
    rf"(?:\b(?:options?|choices?|letter|answer|opción|opzione|вариант|lettre)\s*(?:is|:)?\s*"
    rf"|(?<![^\W_{_UNSPACED}])(?<!['.&/\-#]))[(\[{{\"'<]?(?P<letter>[A-Za-z])(?P<after>[)\]}}\"'>]?[.:,)]?)"
    rf"(?![^\W_{_UNSPACED}]|['/&#]|\.\w|-\w)",
    re.I,
)
_OTHER_LETTERS = re.compile(
    r"\b(?:notes?|chords?|keys?|plan|vitamin|pitch|scale|section|flat|grade|part|symbol|track|on|high|low|middle|concert|open)\W+"
    r"(?:is |was |of |in |a |an |the |called )*\W*$",
    re.I,
)
_AFTER_ARTICLE = re.compile(
    r" (?!(?:is|was|because|and|or|since|as|for|would|seems|but|fits|I|\w\b)\b)"
    rf"[^\W_{_UNSPACED}]"
)


def _mentions(text: str, form: _Options) -> list[_Mention]:
    """Mentions in order, of overlapping ones the first and longest."""
    found = [*_letters(text, form), *_ordinals(text, form)]
    if form.yes_no:
        found += _yes_or_no(text, form)
    elif form.intervals:
        found += _intervals(text, form)
    elif form.counts:
        found += _counts(text, form)
    if not form.yes_no and not (form.counts and not form.intervals and all(len(words) == 1 for words in form.folded)):
        for match in form.pattern.finditer(text):
            found.append(_Mention(match.start(), match.end(), _same_texts(match, form)))
    kept: list[_Mention] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
    return kept


def _same_texts(match: re.Match[str], form: _Options) -> frozenset[int]:
    """The options whose words a match of the pattern of texts has."""
    words = folded_words(match[0])
    same = [place for place, other in enumerate(form.folded) if other == words]
    return frozenset(same or [int(str(match.lastgroup)[1:])])


def _letters(text: str, form: _Options) -> Iterator[_Mention]:
    for match in _LETTER.finditer(text):
        letter, start, before = match["letter"], match.start("letter"), text[: match.start()]
        rest = text[match.end() :]
        called = start - match.start() > 2
        bracketed = text[start - 1 : start] in ("(", "[", "<") and match["after"][:1] in (")", "]", ">")
        marked = bool(re.search(r"[)\].:>]", match["after"])) or not rest.strip() or rest.startswith("\n")
        option = _option_of_letter(letter, form)
        place = LETTERS.find(letter.upper())
        if form.symbols and place < len(form.texts) and re.match(rf"[)\].: ]{{1,3}}{re.escape(form.texts[place])}(?!\w)", text[start + 1 :]):
            option = place
        own_line = not re.search(r"\w", before.rpartition("\n")[2])
        if option is None or _OTHER_LETTERS.search(text[:start][-40:]):
            continue
        if letter.islower() and not (bracketed or marked and (own_line or called)):
            continue
        if letter in "AaI" and not called and not bracketed and not match["after"] and _AFTER_ARTICLE.match(rest):
            # "C. A tram", "is: A tram" and "A tram": an article; "A. tram" is none.
            continue
        if re.match(r"[ -](?:major|minor|flat|sharp|string|chord|clef)\b", rest, re.I):
            continue
        if letter == "I" and not marked and not called:
            continue
        end = match.end("letter")
        told = re.match(r"[)\]:.,'\" ]{1,4}([^\n]{1,300})", text[end:])
        whole = told and form.pattern.match(text, end + told.start(1))
        own = bool(whole) and option in _same_texts(whole, form)
        if own:
            end = whole.end()
        elif told and not whole and form.texts[option].casefold().startswith(told[1].casefold().rstrip(" .")):
            # "C. No rain": the beginning of its text.
            end += told.end(1)
        yield _Mention(start, end, frozenset([option]), lettered=True)


def _option_of_letter(letter: str, form: _Options) -> int | None:
    """The position of a letter's option; where options are letters themselves, the option of that text first."""
    if form.symbols:
        same = [place for place, text in enumerate(form.texts) if text.casefold() == letter.casefold()]
        if same:
            exact = [place for place in same if form.texts[place] == letter]
            return (exact or same)[0] if len(exact or same) == 1 else None
    place = LETTERS.find(letter.upper())
    return place if 0 <= place < len(form.texts) else None


def _ordinals(text: str, form: _Options) -> Iterator[_Mention]:
    for place, names in enumerate(_ORDINALS[: len(form.texts)]):
        names = f"{names}|{_LAST}" if place + 1 == len(form.texts) else names
        number = f"{place + 1}" if form.counts else f"(?:{place + 1}|{_COUNTS[place + 1]})"
        numbered = "" if form.counts else "|number"
        pattern = rf"\b(?:{names})\s+(?:{_CHOICE}|one)\b|\b(?:option|choice{numbered})\s*(?:number\s*|no\.?\s*|#)?{number}\b"
        pattern += rf"|第[{'一二三四五六'[place]}{place + 1}]"
        for match in re.finditer(pattern, text, re.I):
            yield _Mention(match.start(), match.end(), frozenset([place]))


def _yes_or_no(text: str, form: _Options) -> Iterator[_Mention]:
    opens = (
        r"(?:^\s*|[.!?\n:;,\"'(>=\-]\s*|/|\b(?:is|say|think|so|answer|be|guess|believe|course|or|and|ist|est|es"
        r"|probably|definitely|therefore)\s+)"
    )
    follows = r"(?=\W|$)(?!\s+(?:other|sound|overlap|one|idea|doubt|way|audio|longer|more|clip|option|problem|clue|silence|gap)\b)"
    pattern = (
        rf"{opens}(?:(?P<yes>{_YES})|(?P<no>{_NO})){follows}"
        rf"|(?:^|[，。\s])(?:(?P<no_>{_NO_UNSPACED})|(?P<yes_>{_YES_UNSPACED}))"
    )
    for match in re.finditer(pattern, text, re.I):
        name = next(name for name in ("yes", "no", "no_", "yes_") if match[name])
        yield _Mention(match.start(name), match.end(), frozenset([form.yes_no[name.rstrip("_")]]))


def _intervals(text: str, form: _Options) -> Iterator[_Mention]:
    for match in re.finditer(rf"(?<![\d.:])({_NUMBER})[^\d.;\n]{{1,30}}?({_NUMBER})", text):
        pair = _value(match[1]), _value(match[2])
        if pair in form.intervals:
            yield _Mention(match.start(), match.end(), frozenset([form.intervals.index(pair)]))


def _counts(text: str, form: _Options) -> Iterator[_Mention]:
    """Numbers with the unit of their option; without one, or with a noun of events, where they are all there is."""
    found: list[tuple[bool, _Mention]] = []
    for match in _WORD.finditer(text):
        rest, before = text[match.end() :], text[: match.start()]
        word = folded_words(match[0])[:1]
        if not word or word[0] not in form.counts or re.search(r"\d[.:,/]$", before[-2:]) or re.match(r"[:/.,]\d", rest):
            continue
        place = form.counts.index(word[0])
        if re.match(r"[.)]\s+\w", rest) and not re.search(r"\w[^\n]*$", before):
            continue
        if match[0].casefold() in _ONE and (rest.startswith(" of ") or _PRONOUN.search(before[-12:])):
            continue
        if match[0] == "一" and rest[:1] in "共起样直些" or _ABOUT.search(before[-12:]):
            continue
        unit = form.folded[place][1:]
        own = folded_words(rest[:40])[: len(unit)] == unit if unit else not re.match(_EVENTS, rest, re.I)
        if re.match(_UNIT, rest, re.I) and (not own if unit else all(len(number) < 3 for number in form.counts)):
            continue
        found.append((own, _Mention(match.start(), match.end(), frozenset([place]))))
    strong = [one for own, one in found if own]
    yield from strong or (one for _, one in found)


_ONE = ("one", "ein", "eine", "un", "una", "uno")
_UNIT = r"\s*(?:s|secs?|seconds?|ms|hz|khz|db|minutes?|bpm|%|/)(?!\w)"
_EVENTS = r"\s*(?:times|notes?|events?|beats?|bars?|hits?|strokes?)\b"
_ABOUT = re.compile(r"\b(?:at least|at most|more than|fewer than|less than|up to|over)\s$", re.I)
_PRONOUN = re.compile(r"\b(?:the|this|that|each|every|which|no|any|another|other|first|last|correct)\s$", re.I)


# ----- what is said of a mention
_DENIED = re.compile(
    r"(?:\b(?:not|no|neither|nor|without|than|instead of|as opposed to|rather than|except|never|unlike|cannot be|nicht|kein\w*|pas|non|ni|doubt"
    r"|exclud\w+|eliminat\w+|rul\w+ out|anything but|all but|unlikely to be|nothing about|rejected?)\b|n't\b|не\b|不是|不)\W*(?:\w+\W+){0,3}$"
    r"|\b(?:before|after)\s+(?:the |an? )?$",
    re.I,
)
_WRONG = re.compile(
    r"[^\w.!?\n;:,]{0,4}(?:(?!\b(?:who|that|which)\b)[^.\n;,:]){0,30}?\b(?:(?:is|are|was|were|seems?|ist|est|es|è|do|does|did|can)\s+(?:\w+\s+)?"
    r"(?:not|n't|wrong|incorrect|false|ruled|excluded|out|absent|eliminated|no match|unlikely|implausible)|isn't|aren't|wasn't|doesn't|don't"
    r"|didn't|can't)\b|\s*[:=\-]\s*(?:no|not|wrong|incorrect|false)\b|\s*[:=\-]?\s*[✗✘❌]",
    re.I,
)
_CLAUSE = re.compile(r"[.!?\n;:(]|,(?! (?:nor|or)\b)|\b(?:(?<!anything )(?<!nothing )(?<!all )but|so|because|and it)\b", re.I)


def _held(text: str, mentions: Sequence[_Mention]) -> list[_Mention]:
    """The mentions that are not denied; of "neither A nor B" and "A, B and C are wrong" none is."""
    kept = [True] * len(mentions)
    for place, one in enumerate(mentions):
        between = text[mentions[place - 1].end : one.start] if place else ""
        if place and not kept[place - 1] and re.fullmatch(r"\W{0,3}(?:n?or|(?<!,)\band)\s+(?:an?|the)?\W{0,3}", between):
            kept[place] = False
            continue
        clause = _CLAUSE.split(text[max(0, one.start - 60) : one.start])[-1]
        marked = one.lettered and text[one.end : one.end + 1] in (")", "]", ".", ":")
        following = mentions[place + 1].start if place + 1 < len(mentions) else len(text)
        wrong = (_WRONG_LETTER if marked else _WRONG).match(text[: min(one.end + 80, following)], one.end)
        kept[place] = not (wrong or _DENIED.search(clause))
        back = place
        joined = wrong and re.search(r"\b(?:and|or|nor)\b", between)
        while joined and back and re.fullmatch(_LISTED, text[mentions[back - 1].end : mentions[back].start], re.I):
            back -= 1
            kept[back] = False
    return [one for one, is_kept in zip(mentions, kept, strict=True) if is_kept]


_LISTED = r"[)\]]?(?:,|\s*,?\s*\b(?:and|or|nor)\b)\s*(?:the|an?)?\s*[(\[]?"
_WRONG_LETTER = re.compile(
    r"[)\].:]*\s*(?:(?:is|was|are)\s+(?:not|wrong|incorrect|false|out|ruled|excluded|unlikely|implausible)\b|isn't|wasn't"
    r"|(?:no|not|wrong|incorrect|false)\s*(?:$|[.,;:!)\n]|[A-Z]\))|[✗✘❌])",
    re.I,
)


# ----- conclusions
_ANSWER_IS = re.compile(
    r"(?:\b(?:answer|correct (?:option|choice|one|interval)|(?:best|right|final|closest|appropriate|likely|fitting) "
    r"(?:option|choice|match|one|answer)|(?:choice|option|ans|verdict|solution|conclusion)(?=\s*(?:is|:|=|would))"
    r"|antwort|lösung|respuesta|réponse|resposta|risposta|svaret?|antwoord|odpowiedź(?: to)?|jawaban|cevap|ответ|उत्तर)\b"
    r"|答案|正解|答え|정답|답)"
    r"[\"')\]]{0,2}(?:\s*\([^()\n]{0,40}\))?(?:[^.!?\n:]{0,80}?(?:\b(?:would be|will be|should be|must be|has to be|is"
    r"|are|was|ist|est|es|è|é|seems to be|seems|be)\b(?! not\b))\s*:?|\s*[:=\-—>是为為은는이が]+|\s+(?=[(\[\"']?[A-Z]\b))"
    r"|\b(?:i|we)(?:'d|'ll| will| would)? ?(?:choose|chose|select|pick|prefer|go with|am going with|lean towards|settle on|opt for|vote for|decide on|settled on)\b"
    r"|(?:应选|故选|选)|\bich wähle\b|\belijo\b|\bje choisis\b|\bscelgo\b|\bescolho\b|\bвыбираю\b",
    re.I,
)
_SO = re.compile(
    r"\b(?:so|therefore|thus|hence|consequently|in conclusion|overall|in total|altogether|must be|has to be|turns out to be|leav(?:es|ing)"
    r"|i(?:'d| would)? (?:think|believe|guess|say|bet|suppose)|most likely|donc|daher|also ist)\b"
    r"(?!\s*(?:far|that|loud|on|much|many|as|long|quiet)\b)",
    re.I,
)
_WAIT = re.compile(
    r"(?:\.\.\.\s*no\b|(?:^|[.!?\n,;\-]\s*|\b(?:but|oh|no),? )(?:wait|actually|hmm|correction|sorry|i meant|no, wait|or rather|hold on"
    r"|on second thoughts?|scratch that|let me re\w+|then again|my mistake|oops)\b)[,.:;!\-]*",
    re.I,
)
_HYPOTHESIS = re.compile(
    r"(?:^|[.!?\n;]\s*)(?:if(?! i (?:had|have|must)\b)|suppose|supposing|let's say|assuming|assume|imagine|the question is)\b[^.;\n]*", re.I
)
_CERTAIN = re.compile(
    r"\b(?:without (?:a |any )?doubt|(?:there(?:'s| is) )?no (?:doubt|question)(?: that)?|none other than|not only)\b", re.I
)
"""Denials that affirm."""
_QUESTION = re.compile(r"(?:^|(?<=[.!?\n]))[^.!?\n]*\b(?:which|what|how|is|does|do)\b[^.!?\n]{8,200}\?", re.I)
_NONE = re.compile(
    r"\b(?:none|neither) of (?:the|these|them|those|above)\b(?! others?\b)|(?:\bnot|n't) (?:any|one|among)(?: of)? (?:the|these|them)\b"
    r"|\ball of (?:the above|them|these)\b|以上都不|都不是",
    re.I,
)
_REFUSAL = re.compile(
    r"\b(?:i|we)(?:'m| am|'re| are)? ?(?:sorry|unable|not able|not (?:\w+ )?sure|unsure|uncertain|cannot|can't|can not|could not"
    r"|couldn't|do not|don't|won't)\b(?! (?:hear|think|believe) (?:any ?thing (?:else|but)|any other|another"
    r"|the (?!audio|clip|recording|sound\b)|it'?s|that|so))|^\W*(?:sorry|apolog)|\bas an? (?:\w+[ -]){0,3}(?:ai|model)\b"
    r"|\bunable to\b|\b(?:impossible|not possible|difficult|hard) to (?:tell|determine|say|know|answer|identify)"
    r"|\bcan(?:not|'t) (?:be (?:determined|answered|told|identified)|tell)"
    r"|\b(?:no|insufficient|not enough) (?:audio|sound file|clip|recording|information|idea|context|answer)\b"
    r"|\bplease (?:\w+ )?(?:provide|upload|share|attach)|(?<!if )\bi can help\b|\bcould you (?:\w+ )?(?:share|provide)|\binconclusive\b|无法|抱歉|对不起|不知道|不能(?:确定|回答|听|判断)|わかりません"
    r"|分かりません|申し訳|すみません|죄송|не могу|извините|не знаю|lo siento|no puedo|désolé|je ne (?:peux|sais)"
    r"|tut mir leid|kann (?:\w+ )?nicht",
    re.I,
)
_BROKEN = re.compile(r"\b(?:the|(?-i:a)|an|and|or|of|is|it|to|in|at|for|from|by|around|about|I|with|because|so|but|that|which|then|would)$|[:(\-]$", re.I)
_BESIDE = re.compile(
    r"[\W_]*(?:(?:and|or|und|oder|et|ou|y|o|и|или|和|或|is|the|a|an|possibly|maybe|then|it's|it is|this is|that is"
    r"|there (?:is|are)|option)\b[\W_]*){0,3}", re.I
)
_IS_RIGHT = re.compile(
    r"[)\]\"']?\s+(?:is|would be|seems)\s+(?:the\s+)?(?:most\s+|more\s+)?(?:correct|right|best|better|likely|appropriate|suitable|plausible)\b", re.I
)
_VERDICT = re.compile(
    r"(?:[^.\n;]{0,40}?(?:[:=?\-]+|\bis|\bare)|[^\w\n]{1,4})\s*(?:(?P<right>yes|correct|true|right|the longest|✓|✔|✅)"
    r"|(?P<wrong>no\b|not\b|incorrect|wrong|false|✗|✘|❌|absent)|\w+)",
    re.I,
)


def match_answer(text: str, options: Sequence[str], polarity: str = "overlap") -> Match:
    form = _prepared(tuple(options))
    parts = _structured(text)
    if parts is not None:
        found = [match_answer(part, options, polarity) for part in parts[:LONGEST]]
        named = {match.option for match in found} - {None}
        if len(named) > 1:
            return Match(None, "conflict")
        return next((match for match in found if match.option is not None), found[0] if found else Match(None, "empty"))
    *marked, whole = _final_parts(text) or [""]
    tagged = [_read(_readable(part, form), form, polarity) for part in marked]
    told = [match.option for match in tagged if match.option is not None]
    changes = sum(one != other for one, other in itertools.pairwise(told))
    joined = re.search(r"</\s?\w+\s?>[\s,/&]*(?:and|or)?[\s,/&]*<\s?\w+\s?>[^<]{1,80}</\s?\w+\s?>\s*$", whole[-300:], re.I)
    if changes > 2 or changes and joined:
        return Match(None, "conflict")
    for match in tagged:
        if match.rule not in ("empty", "nothing"):
            return match
    bold = re.findall(r"^[^\w\n]*(?:\*\*|__)([^*\n]{1,200}?)(?:\*\*|__)[^\w\n]*$", whole[-READ_CHARACTERS[1] :], re.M)
    if bold and sum(bool(_mentions(one, form)) for one in bold[-26:]) == 1:
        match = _read(_readable(bold[-1], form), form, polarity)
        if match.option is not None and match.rule in ("letter", "text", "letter first", "answer is"):
            return match
    return _read(_readable(whole, form), form, polarity)


def _exact(answer: str, form: _Options) -> Match:
    """The match of a lone letter, an option's own text or an empty answer; *nothing* for any other."""
    for texts, wanted in ((form.texts, answer.strip()), (tuple(map(str.casefold, form.texts)), answer.strip().casefold())):
        if texts.count(wanted) == 1:
            return Match(texts.index(wanted), "text")
    if not any(unicodedata.category(character)[0] in "LN" for character in answer):
        return Match(None, "empty")
    lone = re.fullmatch(r"[^\w#+]*([A-Za-z])[^\w#+]*", answer)
    if lone:
        option = _option_of_letter(lone[1], form)
        return Match(option, "no such letter" if option is None else "letter")
    words = folded_words(answer)
    return Match(form.folded.index(words), "text") if words and form.folded.count(words) == 1 else Match(None, "nothing")


def _read(answer: str, form: _Options, polarity: str) -> Match:
    exact = _exact(answer, form)
    if exact.rule != "nothing":
        return exact
    items = [rf"[(\[]?{LETTERS[place]}[)\].:]+\s*{re.escape(text)}\W*?" for place, text in enumerate(form.texts)]
    bare = re.sub(r"\s*".join(items), " ", answer, flags=re.I).strip()
    if bare != answer and not re.search("[✓✔✅✗✘❌]", bare):
        exact = _exact(bare, form)
        if exact.rule != "nothing":
            return Match(None, "echo") if exact.rule == "empty" else exact
        answer = bare
    answer = _CERTAIN.sub("clearly", answer)
    asked = _QUESTION.sub(" ", answer)
    if asked != answer and not re.search(r"\w", asked):
        return Match(None, "nothing")
    answer = _HYPOTHESIS.sub(". ", asked if _mentions(asked, form) else answer)
    mentions = _mentions(answer, form)
    last = mentions[-1].start if mentions else -1
    for turn in reversed(list(_WAIT.finditer(answer))):
        if answer[: turn.start()].count('"') % 2:
            continue
        if turn.end() <= last:
            answer = answer[turn.end() :]
            mentions = _mentions(answer, form)
            break
        if not re.search(r"\w", answer[turn.end() :]) or _REFUSAL.search(answer, turn.end()):
            return Match(None, "nothing")
    broken = _BROKEN.search(answer.rstrip()[-20:])
    held = _held(answer, mentions)
    for cue, rule in ((_ANSWER_IS, "answer is"), (_SO, "conclusion")):
        for found in reversed(list(cue.finditer(answer))):
            named = [one for one in held if found.end() <= one.start <= found.end() + 60]
            if rule == "conclusion" and broken:
                continue
            if named and not re.search(r"[.!?]\s|\bbecause\b", answer[found.end() : named[0].start]):
                return _decided(_side_by_side(answer, [one for one in held if one.start >= named[0].start]), rule)
        if rule == "answer is" and (praised := _praised(answer, mentions)):
            return _decided(praised, "option by option")
    right = [one for one in held if _IS_RIGHT.match(answer, one.end)]
    if right:
        return _decided(right[-1:], "answer is")
    first = [one for one in held if one.lettered and not re.search(r"\w", answer[: one.start])]
    at_lines = {one.options for one in mentions if re.search(r"(?:^|\n)\W*(?:\d\W+)?$", answer[: one.start][-9:])}
    listed = {one.options for one in mentions if one.lettered and one.end > one.start + 1}
    if len(listed) > 1 and broken:
        return Match(None, "nothing")
    if first and len(at_lines) < 2 and len(listed) < 3:
        group = _side_by_side(answer, held[held.index(first[0]) :])
        bare = first[0].end == first[0].start + 1
        told = [one for one in mentions if bare and not one.lettered and re.fullmatch(r"[)\].:*\s]{1,4}", answer[first[0].end : one.start])]
        return _decided([*group, *(one for one in told if one in held)], "letter first")
    if _NONE.search(answer):
        return Match(None, "none of them")
    refusals = list(_REFUSAL.finditer(answer))
    refusals = [one for one in refusals if not any(m.start <= one.start() < m.end for m in mentions)]
    refusal = refusals[-1] if refusals else None
    if refusal:
        later = [one for one in held if one.start > refusal.end()]
        turned = re.search(r"\b(?:but|however|maybe|probably|though|if i had to)\b", answer[refusal.end() :], re.I)
        hedge = re.search(r"(?:\b(?:though|although)\W*|,\s*but\W*)$", answer[: refusal.start()], re.I)
        hedge = hedge and [one for one in held if one.end <= refusal.start()]
        turned = turned or re.match(r"\W*(?:while|although|though)\b", answer, re.I)
        later = later or (held if hedge else [])
        turned = turned or hedge
        if not (turned and later) and (not held or form.yes_no or not first):
            return Match(None, "refusal")
    if form.yes_no and not mentions:
        return _of_overlap(answer, form, polarity)
    if form.yes_no and not re.search(r"\w", answer[: mentions[0].start]):
        return _decided(_side_by_side(answer, mentions), "yes or no")
    if broken:
        return Match(None, "nothing")
    named_by = frozenset().union(*(one.options for one in held))
    if len(named_by) > 1:
        stripped = answer.rstrip(" .!?\n")
        last = re.split(r"[.!?\n;]\s+|\n|\bbut\b|\bhowever\b", stripped)[-1]
        late = frozenset().union(*(one.options for one in held if one.end > len(stripped) - len(last)))
        # "D: absent" ends a review, "The marimba" a text that is cut off.
        after = answer[held[-1].end :]
        lined = len(at_lines) > 2 and held[-1].lettered and held[-1].start >= answer.rfind("\n")
        in_list = lined or re.match(r"[)\]]?\s*[:\-]", after) or (len(at_lines) > 1 and not re.search(r"\w", after))
        cut = not re.search(r"\w|[.!?]", after) and re.fullmatch(r"\W*the\b.*", last, re.I)
        hedged = re.search(r"\b(?:may|might|could)\b", last)
        if len(late) == 1 and len(last) < len(answer) - 3 and not (in_list or cut or hedged):
            return Match(min(late), "last sentence")
        return Match(None, "conflict" if any(len(one.options) > 1 for one in held) else "several")
    if named_by:
        return Match(min(named_by), "mention")
    return Match(None, "nothing") if mentions or form.counts or form.intervals else _reworded(answer, form)


_GENERAL = frozenset(
    "a an the of to in on at by for with from and or is are was were be been being it its he she they i you we his her"
    " their this that there as has have had do does did will would can could s sound sounds audio".split()
)
"""Words that say little of an option."""


def _reworded(answer: str, form: _Options) -> Match:
    """The option of which most words stand in the last sentence, or that is nearly spelled by a short answer."""
    spelled = folded_words(answer)
    if spelled[:1] in (("yes",), ("no",)):
        of_first = [place for place, words in enumerate(form.folded) if words[:1] == spelled[:1]]
        if len(of_first) == 1:
            return Match(of_first[0], "mention")
    stems = [{_stem(word) for word in words if word not in _GENERAL} for words in form.folded]
    for scope in (re.split(r"(?<=\w)[.!?]\s+|\n", answer.rstrip(" .!?\n"))[-1], answer):
        said = {_stem(word) for word in folded_words(scope)}
        shares = [len(words & said) / max(len(words), 1) for words in stems]
        best = int(np.argmax(shares))
        others = max((share for place, share in enumerate(shares) if place != best), default=0)
        denies = {"not", "no", "never"} & said - set(form.folded[best]) and len(said) <= 12
        most = shares[best] >= 0.75 and len(stems[best]) > 1 and others <= 0.5
        many = shares[best] >= 0.5 and len(stems[best]) > 5 and others <= 0.2
        if (most or many) and not denies:
            return Match(best, "mention")
    heads = [
        place
        for place, words in enumerate(form.folded)
        for at, word in enumerate(words)
        if len(words) > 1 and len(word) > 3 and word not in _GENERAL and _stem(word) in said
        if not (at + 1 < len(words) and word.endswith(("ic", "ed", "ing", "al", "en")))
        if sum(_stem(word) in other for other in stems) == 1
    ]
    if len(set(heads)) == 1 and shares[heads[0]] > max(share for place, share in enumerate(shares) if place != heads[0]) and len(spelled) <= 6 and not denies:
        return Match(heads[0], "mention")
    near = [
        place
        for place, words in enumerate(form.folded)
        if len(words) == len(spelled)
        if all(SequenceMatcher(None, one, other).ratio() > 0.81 for one, other in zip(words, spelled, strict=True))
    ]
    return Match(near[0], "mention") if len(near) == 1 and len(spelled) <= 4 else Match(None, "nothing")


def _stem(word: str) -> str:
    """A word without its ending of number or verb."""
    for ending in ("ing", "ed", "es", "s"):
        if len(word) > len(ending) + 2 and word.endswith(ending) and not word.endswith("ss"):
            return word.removesuffix(ending).removesuffix("e")
    return word.removesuffix("e") if len(word) > 3 else word


def _decided(mentions: Sequence[_Mention], rule: str) -> Match:
    named = frozenset().union(*(one.options for one in mentions))
    return Match(min(named), rule) if len(named) == 1 else Match(None, "conflict")


def _side_by_side(text: str, mentions: Sequence[_Mention]) -> list[_Mention]:
    """The first mention, and those beside it: "B. dog", "A or C"."""
    group = [mentions[0]]
    for one in mentions[1:]:
        between = text[group[-1].end : one.start]
        if not _BESIDE.fullmatch(between) or ("\n" in between and one.lettered):
            break
        # "B. dog" is one answer; "B. Dog is wrong" and "B. C is shorter" are two sentences.
        ends = re.match(r"\s*(?:$|[.,;:!?)\"'\n]|because\b|since\b)", text[one.end :])
        if re.search(r"(?<!\.)[.!?]\s", between) and not (group[-1].lettered and ends):
            break
        group.append(one)
    return group


def _praised(text: str, mentions: Sequence[_Mention]) -> list[_Mention]:
    """The mentions that are called right, where option after option is called right or wrong."""
    ends = [*(one.start for one in mentions[1:]), len(text)]
    verdicts = [(one, _VERDICT.match(text[:end], one.end)) for one, end in zip(mentions, ends, strict=False)]
    given = [(one, verdict) for one, verdict in verdicts if verdict]
    wrong = any(verdict["wrong"] for _, verdict in given)
    return [one for one, verdict in given if verdict["right"]] if wrong and len(given) > 1 else []


_OVERLAP = re.compile(
    r"\bthere (?:is|are)\b.{0,20}\b(?:another|overlap\w*|second|other sounds?|something else)\b"
    r"|\b(?:another|second|other) (?:sounds?|instruments?) \w+|\bsomething else (?:is|can be)\b|\b(?:i|you|one|we) (?:can )?hears?"
    r" (?:another|something else|other)\b|(?<!about )(?<!for )(?<!tell )(?<!of )(?<!no )\boverlaps?\b(?! means)|\b(?:not|never) alone\b|\bclearly the \w+ is",
    re.I,
)
_ALONE = re.compile(
    r"\bno overlap|\b(?:do|does)(?:n't| not) overlap|\bno other sounds?\b|\bnothing else\b|\boverlaps? with nothing"
    r"|(?<!not )(?<!never )\b(?:alone|by itself|on its own)\b|\bonly the \w+\b(?! (?:and|or)\b)|(?:\bnot|n't) (?:\w+ ){0,3}(?:anything else|another|any other)",
    re.I,
)


def _of_overlap(answer: str, form: _Options, polarity: str) -> Match:
    """Yes or No from a statement about other sounds."""
    unsure = r"\b(?:if|whether|may|might|maybe|perhaps|possibly|unclear|not clear|before|after|then|except|for|to tell)\b|\?"
    alone, overlap = _ALONE.search(answer), _OVERLAP.search(_ALONE.sub(" ", answer))
    if not polarity or re.search(unsure, answer, re.I) or bool(alone) == bool(overlap):
        return Match(None, "nothing")
    return Match(form.yes_no["yes" if bool(alone) == (polarity == "alone") else "no"], "mention")


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
