"""Read free-text answers: which option of a question an answer names, or why it names none."""

import functools
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Letters of the options, in order."""

REFUSED = ("refusal",)
UNPARSED = ("empty", "echo", "no such letter", "conflict", "none of them", "refusal", "several", "nothing")
"""Rules of `match_answer` that leave an answer unparsed; those in REFUSED are refusals."""

READ_CHARACTERS = (500, 1000)
"""Number of characters read at the beginning and at the end of a longer answer, where conclusions usually are."""


@dataclass(frozen=True)
class Match:
    """The reading of an answer.

    Attributes:
        option: position of the option named; None if the answer is unparsed.
        rule: name of the rule that decided; one of UNPARSED if the answer names no option.
    """

    option: int | None
    rule: str


# ----- options
_SAME = str.maketrans("‘’‚‛′“”„‟«»″‐‑‒–—―−♯♭", '\'\'\'\'\'"""""""-------#b')
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060\ufeff]")
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Scripts that put no space between words, or join particles to them."""
_NUMBER = r"\d+(?::\d+)*(?:[.,]\d+)?"
_WORD = re.compile(
    rf"{_NUMBER}|[{_UNSPACED}]|(?:[^\W_{_UNSPACED}]|[\u0300-\u036f\u0900-\u0963])+(?:'[^\W\d_]+)?[#+]?|[#+/&%]"
)
_SPELLED = (
    "zero 零|one once eins ein eine un une una uno один одна 一|two twice zwei deux dos due dois два две 二 两 두|"
    "three thrice drei trois tres tre três три 三 세 셋|four vier quatre cuatro quattro quatro четыре 四 네 넷|"
    "five fünf cinq cinco cinque пять 五|six 六|seven 七|eight 八|nine 九|ten 十|eleven|twelve"
)
_NUMERALS = {word: str(count) for count, words in enumerate(_SPELLED.split("|")) for word in words.split()}
_KEY = re.compile(r"\b([A-G])[ -]?(?:(sharp)|flat)(?= (?:major|minor)\b)", re.I)
# In "A minor" it is a note.
_ARTICLE = re.compile(r"[\W_]*(?:the|an|a(?!\s+(?:(?:flat|sharp|major|minor|chord|key|scale)\b\W*)+$))\s+\w", re.I)


@dataclass(frozen=True)
class _Options:
    """The options of a question, prepared for reading.

    Attributes:
        texts: as shown, without characters that do not affect their meaning.
        folded: their words.
        pattern: finds the options' texts, a group for each.
        yes_no: positions of Yes and No if these are the options.
        intervals: two numbers per option if all options have two; else empty.
        counts: the numbers of the options if all are different numbers; else empty.
        symbols: whether an option is a single letter, so that a letter is read as a text first.
    """

    texts: tuple[str, ...]
    folded: tuple[tuple[str, ...], ...]
    pattern: re.Pattern[str]
    yes_no: dict[str, int]
    intervals: tuple[tuple[float | None, ...], ...]
    counts: tuple[str, ...]
    symbols: bool


@functools.lru_cache(maxsize=512)
def folded_words(text: str) -> tuple[str, ...]:
    """Return the words of a text for comparison, ignoring case, a leading article and how numbers are spelled."""
    words = []
    for word in _WORD.findall(_plain(text).casefold()):
        value = _value(word) if word[0].isdigit() else None
        words.append(_NUMERALS.get(word, word.removesuffix("'s")) if value is None else f"{value:.12g}")
    return tuple(words[1:] if _ARTICLE.match(text) else words)


def _plain(text: str) -> str:
    """Return a text without characters that do not affect its meaning; "C sharp minor" becomes "C# minor"."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text.translate(_SAME)).translate(_SAME))
    text = _KEY.sub(lambda key: f"{key[1]}{'#' if key[2] else 'b'}", text)
    return re.sub(r"\b([^\W\d_])\.(?=[^\W\d_]\b)", r"\1", text).strip()


def _value(number: str) -> float | None:
    """Return the value in seconds of a number written as seconds or as minutes:seconds."""
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
    """Return a pattern of the options' words, longer options first, singular or plural, in digits or words."""
    groups = []
    for place, words in sorted(enumerate(folded), key=lambda one: -len(" ".join(one[1]))):
        if not words:
            continue
        spelled = []
        for word in words[:LONGEST]:
            forms = [re.escape(word), *(name for name, number in _NUMERALS.items() if number == word)]
            plural = "(?:s|es)?" if word.isascii() and len(word) > 2 and word.isalpha() else ""
            spelled.append(f"(?:{'|'.join(forms)}){plural}(?:'s)?")
        before = "" if re.match(f"[{_UNSPACED}]", words[0]) else r"(?<![^\W_])(?<!\d[.,:])"
        after = r"(?![^\W_]|[#+](?!\w)|[.,:]\d| (?:major|minor|flat|sharp)\b)"
        after = "" if re.match(f"[{_UNSPACED}]", words[-1][-1]) else after
        article = r"(?:\b(?:an?|the)\s+)?"
        phrase = r"[^\w#]{0,5}_?".join(spelled)
        groups.append(f"(?P<o{place}>{before}{article}{phrase}{after})")
    return re.compile("|".join(groups) or r"(?!)", re.I)


LONGEST = 26
"""Largest number of words of an option that are compared."""


# ----- the part that is read
_SPECIAL = re.compile(
    r"<\|(?:im_end|eot_id|endoftext|end|return|eos)[^|<>]{0,40}\|>|</?s>|<(?:eos|bos|pad|end_of_turn)>"
)
_THOUGHT = r"(?:seed:)?(?:think|thinking|thoughts?|reason|reasoning|analysis|cot|reflection|scratchpad)"
_THOUGHT_END = re.compile(rf"<\s?/\s?{_THOUGHT}\s?>|\[/THINK\]|◁/think▷|<\|end_(?:of_thought|thinking)\|>", re.I)
_THOUGHT_START = re.compile(rf"<\s?{_THOUGHT}\s?>|\[THINK\]|◁think▷|<\|(?:begin_of_thought|start_thinking)\|>", re.I)
_CHANNEL = re.compile(r"<\|(?:channel|start|message)\|>")
_FINAL = re.compile(r"<\|channel\|>\s?final\b[^<]{0,40}<\|message\|>|^analysis\b[\s\S]*assistantfinal:?")
_NEXT_TURN = re.compile(
    r"^[ \t]{0,9}(?:(?:Human|User|Question|Instruction|Problem)\s?\d{0,3}\s?:|(?:Human|user)[ \t]{0,9}$)", re.I | re.M
)
_TAGGED = re.compile(r"<\s?(?:final[ _]?)?(?:answer|choice|option|response)\s?>", re.I)
_TAG_END = re.compile(r"<\s?/[^<>]{0,20}>|<\s?/\s?(?:answer)?$", re.I)
_BOXED = re.compile(r"\\f?boxed\s{0,3}\{((?:[^{}]|\{[^{}]{0,300}\}){0,300})")
_COMMAND = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|mbox)\s{0,3}\{([^{}]*)\}?")
ANSWER_FIELDS = (
    *("final_answer", "answer", "correct_answer", "choice", "option", "selected_option", "letter", "prediction"),
    *("response", "content", "text", "generated_text", "output"),
)
"""Fields of a structured answer that may hold the answer, in the order of search."""


def is_thought(part: Any) -> bool:
    """Return whether a part of a message is marked as reasoning, which is not read as an answer."""
    return isinstance(part, dict) and bool(
        re.search("reason|think|thought|analysis", str(part.get("type", ""))[:100], re.I)
    )


def _parts(value: Any, depth: int = 8) -> list[str]:
    """Return the texts of a structured answer without its reasoning. Deeper nesting is ignored."""
    if not depth or is_thought(value):
        return []
    if isinstance(value, dict):
        fields = {str(name).casefold().replace(" ", "_"): field for name, field in value.items()}
        names = [name for name in ANSWER_FIELDS if name in fields]
        return next((parts for name in names if (parts := _parts(fields[name], depth - 1))), [])
    if isinstance(value, list | tuple):
        return [part for one in value for part in _parts(one, depth - 1)]
    return [str(value)] if isinstance(value, str | int | float) and not isinstance(value, bool) else []


def _structured(text: str) -> list[str] | None:
    """Return the texts of an answer that is entirely JSON; None if it is not JSON, or a list of numbers."""
    text = re.sub(r"^```\w{0,10}\s|\s?```$", "", text.strip())
    if text[:1] not in ("{", "[") or len(text) > 10_000:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if isinstance(value, list) and all(isinstance(one, int | float) for one in value) else _parts(value)


def _final_parts(text: str) -> list[str]:
    """Return the parts of a text that the model gives as its answer, the most important first.

    There are none if its reasoning does not end.
    """
    if _CHANNEL.search(text) or text.startswith("analysis"):
        finals = list(_FINAL.finditer(text))
        if not finals and _CHANNEL.search(text):
            return []
        text = re.split(r"<\|(?:end|return|start|channel)\|>", text[finals[-1].end() :])[0] if finals else text
    text = re.sub(r"(?: ?\n)+ ?", "\n", re.sub(r"[^\S\n]+", " ", text))
    turn = _NEXT_TURN.search(text)
    if turn and re.search(r"\w", text[: turn.start()]):
        text = text[: turn.start()]
    text = _SPECIAL.sub(" ", _THOUGHT_START.split(_THOUGHT_END.split(text)[-1])[0])
    parts = [_TAG_END.split(part)[0] for part in _TAGGED.split(text)[:0:-1]]
    return [*_BOXED.findall(text)[-1:], *parts[:4], text]


def _ends(text: str) -> str:
    """Return the beginning and the end of a long text."""
    first, last = READ_CHARACTERS
    return text if len(text) <= first + last else f"{text[:first]}\n\n{text[-last:]}"


def _readable(text: str, form: _Options) -> str:
    """Return a part without markup, and only the beginning and end of a long part."""
    # NFKC expands some characters into many.
    text = _COMMAND.sub(r"\1", _ends(_plain(_ends(text))).replace("\r", "\n"))
    # "<B>" and "<rain>" are answers; "<C> B </C>" and "<p>" are markup.
    text = re.sub(r"<(\w{1,20})>(?=[^<>]{0,200}</\1>)|</[^<>]{0,30}>|<\w{0,20}\s?/>", " ", text)
    text = re.sub(
        r"<\s?([^<>]{1,60})\s?>", lambda tag: f" {tag[1]} " if _exact(tag[1], form).option is not None else " ", text
    )
    return re.sub(r"[*`$\\]|(?<!\w)_+|(?<!_)_+(?!\w)|^#+\s", "", text, flags=re.M).strip()


# ----- mentions of options
@dataclass(frozen=True)
class _Mention:
    """Characters of a text that name options; several options only if their texts are equal."""

    start: int
    end: int
    options: frozenset[int]
    lettered: bool = False


_ORDINALS = (
    *("first|1st|one|erste|première|primera|первый", "second|2nd|two|zweite|deuxième|segunda|второй"),
    *("third|3rd|three|dritte|troisième|tercera|третий", "fourth|4th|four|vierte|quatrième|cuarta"),
    *("fifth|5th|five", "sixth|6th|six"),
)
_CHOICE = r"(?:option|choice|answer|alternative|candidate|interval|window|opción|opzione|réponse|antwort|вариант)"
_YES = r"yes|yeah|yep|true|sí|si|oui|ja|да"
_NO = r"no|nope|nah|false|nein|non|não|нет"
_YES_UNSPACED, _NO_UNSPACED = r"是|有|はい|네|예|对", r"不是|不(?=[,，])|没有|否|いいえ|아니"
_LETTER = re.compile(
    rf"(?:\b(?:options?|choices?|letter|answer|opción|opzione|вариант|lettre)\s*(?:is|:)?\s*"
    rf"|(?<![^\W_{_UNSPACED}])(?<!['.&/\-#]))[(\[{{\"'<]?(?P<letter>[A-Za-z])(?P<after>[)\]}}\"'>]?[.:,)]?)"
    rf"(?![^\W_{_UNSPACED}]|['/&#]|\.\w|-\w)",
    re.I,
)
_OTHER_LETTERS = re.compile(
    r"\b(?:notes?|chords?|keys?|plan|vitamin|pitch|scale|section|flat|grade|part|symbol|track|low|middle|concert|open)"
    r"\W+(?:is |was |of |in |a |an |the |called )*\W*$",
    re.I,
)
_AFTER_ARTICLE = re.compile(
    rf" (?!(?:is|was|because|and|or|since|as|for|would|seems|but|fits|I|\w\b)\b)[^\W_{_UNSPACED}]"
)


def _mentions(text: str, form: _Options) -> list[_Mention]:
    """Return mentions in order; among overlapping ones, the first and longest."""
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
    # More mentions in a text this short come from a model that repeats itself.
    return kept[-200:]


def _same_texts(match: re.Match[str], form: _Options) -> frozenset[int]:
    """Return the options with the words that a match of the pattern of texts found."""
    words = folded_words(match[0])
    same = [place for place, other in enumerate(form.folded) if other == words]
    return frozenset(same or [int(str(match.lastgroup)[1:])])


def _letters(text: str, form: _Options) -> Iterator[_Mention]:
    for match in _LETTER.finditer(text):
        letter, start, end = match["letter"], match.start("letter"), match.end("letter")
        before, rest = text[max(0, match.start() - 24) : start], text[match.end() : match.end() + 40]
        called = start - match.start() > 2
        bracketed = text[start - 1 : start] in ("(", "[", "<") and match["after"][:1] in (")", "]", ">")
        marked = bool(re.search(r"[)\].:>]", match["after"])) or not rest.strip() or rest.startswith("\n")
        option = _option_of_letter(letter, form)
        place = LETTERS.find(letter.upper())
        own = re.escape(form.texts[place]) if form.symbols and place < len(form.texts) else "(?!)"
        option = place if re.match(rf"[)\].: ]{{1,3}}{own}(?!\w)", text[start + 1 :]) else option
        own_line = not re.search(r"\w", before.rpartition("\n")[2])
        if option is None or _OTHER_LETTERS.search(before):
            continue
        if letter.islower() and not (bracketed or (marked and (own_line or called))):
            continue
        if letter in "AaI" and not called and not bracketed and not match["after"] and _AFTER_ARTICLE.match(rest):
            # "C. A tram", "is: A tram" and "A tram": an article; in "A. tram" it is a letter.
            continue
        if re.match(r"[ -](?:major|minor|flat|sharp|string|chord|clef)\b", rest, re.I):
            continue
        told = re.match(r"[)\]:.,'\" ]{1,4}([^\n]{1,300})", text[end:])
        whole = told and form.pattern.match(text, end + told.start(1))
        if whole and option in _same_texts(whole, form):
            end = whole.end()
        elif told and not whole and form.texts[option].casefold().startswith(told[1].casefold().rstrip(" .")):
            # "C. No rain": the rest begins the option's text.
            end += told.end(1)
        yield _Mention(start, end, frozenset([option]), lettered=True)


def _option_of_letter(letter: str, form: _Options) -> int | None:
    """Return the position of a letter's option; if options are letters themselves, an option with that text first."""
    if form.symbols:
        same = [place for place, text in enumerate(form.texts) if text.casefold() == letter.casefold()]
        if same:
            exact = [place for place in same if form.texts[place] == letter]
            return (exact or same)[0] if len(exact or same) == 1 else None
    place = LETTERS.find(letter.upper())
    return place if 0 <= place < len(form.texts) else None


def _ordinals(text: str, form: _Options) -> Iterator[_Mention]:
    for place, names in enumerate(_ORDINALS[: len(form.texts)]):
        names = f"{names}|last|letzte|dernière|última" if place + 1 == len(form.texts) else names
        number = f"{place + 1}" if form.counts else f"(?:{place + 1}|{names})"
        pattern = rf"\b(?:{names}) (?:{_CHOICE}|one)\b|\b(?:option|choice) ?(?:number ?|#)?{number}\b"
        pattern += f"|第[{'一二三四五六'[place]}{place + 1}]"
        for match in re.finditer(pattern, text, re.I):
            yield _Mention(match.start(), match.end(), frozenset([place]))


def _yes_or_no(text: str, form: _Options) -> Iterator[_Mention]:
    opens = (
        r"(?:^\s*|[.!?\n:;,\"'(>=\-]\s*|/|\b(?:is|say|think|so|answer|be|guess|believe|course|actually|or|and|ist|est|es"
        r"|probably|definitely|therefore)\s+)"
    )
    follows = (
        r"(?!\w)(?!\s+(?:other|sound|overlap|one|idea|doubt|way|audio|longer|more|clip|option|clue|silence|gap)\b)"
    )
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
    """Yield numbers with their option's unit.

    Numbers without a unit or with a noun of events are read only if there are no others.
    """
    found: list[tuple[bool, _Mention]] = []
    for match in _WORD.finditer(text):
        rest, before = text[match.end() : match.end() + 40], text[max(0, match.start() - 12) : match.start()]
        word = folded_words(match[0])[:1]
        if not word or word[0] not in form.counts:
            continue
        if re.search(r"\d[.:,/]$", before) or re.match(r"[:/.,]\d", rest):
            continue
        place = form.counts.index(word[0])
        if match[0].casefold() in _ONE and (rest.startswith(" of ") or _PRONOUN.search(before)):
            continue
        if (match[0] == "一" and rest[:1] in "共起样直些") or _ABOUT.search(before):
            continue
        unit = form.folded[place][1:]
        said = rest[: len(" ".join(unit)) + 4]
        own = folded_words(said)[: len(unit)] == unit if unit else not re.match(_EVENTS, rest, re.I)
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


# ----- negations of a mention
_DENIED = re.compile(
    r"(?:\b(?:not(?! only)|no(?! doubt| question)|neither|nor|without(?! (?:a |any )?doubt)|than|instead of"
    r"|as opposed to|except|never|unlike|nicht|kein\w*|pas|(?<!no )(?<!without )(?<!a )(?<!any )doubt"
    r"|exclud\w+|eliminat\w+|rul\w+ out|anything but|all but|unlikely to be|nothing about|rejected?)\b|n't\b|不是|不)"
    r"\W*(?:\w+\W+){0,3}$|\b(?:before|after)\s+(?:the |an? )?$",
    re.I,
)
_WRONG = re.compile(
    r"[^\w.!?\n;:,]{0,4}(?:(?!\b(?:who|that|which)\b)[^.\n;,:]){0,30}?\b(?:(?:is|are|was|were|seems?|do|does|did|can)"
    r"\s+(?:\w+\s+)?(?:not|n't|wrong|incorrect|false|ruled|excluded|out|absent|eliminated|no match|unlikely)"
    r"|(?:is|are|was|does|do|did|ca)n't)\b|\s*[:=\-]\s*(?:no|not|wrong|incorrect|false)\b|\s*[:=\-]?\s*[✗✘❌]",
    re.I,
)
_CLAUSE = re.compile(
    r"[.!?\n;:(]|,(?! (?:nor|or)\b)|\b(?:(?<!anything )(?<!nothing )(?<!all )but|so|because|and it)\b", re.I
)


def _affirmed(text: str, mentions: Sequence[_Mention]) -> list[_Mention]:
    """Return the mentions that are not denied; in "neither A nor B" and "A, B and C are wrong", all are denied."""
    kept = [True] * len(mentions)
    for place, one in enumerate(mentions):
        between = text[mentions[place - 1].end : one.start] if place else ""
        goes_on = re.fullmatch(r"\W{0,3}(?:n?or|(?<!,)\band)\s+(?:an?|the)?\W{0,3}", between)
        if place and not kept[place - 1] and goes_on:
            kept[place] = False
            continue
        clause = _CLAUSE.split(text[max(0, one.start - 40) : one.start])[-1]
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
    r"[)\].:]*\s*(?:(?:is|was|are)\s+(?:not|wrong|incorrect|false|out|ruled|excluded|unlikely|implausible)\b"
    r"|(?:is|was)n't|(?:no|not|wrong|incorrect|false)\s*(?:$|[.,;:!)\n]|[A-Z]\))|[✗✘❌])",
    re.I,
)


# ----- conclusions
_ANSWER_IS = re.compile(
    r"(?:\b(?:answer|correct (?:option|choice|one|interval)|(?:best|right|final|closest|appropriate|likely|fitting) "
    r"(?:option|choice|match|one|answer)|(?:choice|option|ans|verdict|solution|conclusion)(?=\s*(?:is|:|=|would))"
    r"|antwort|lösung|respuesta|réponse|resposta|risposta|ответ)\b|答案|正解|答え|정답|답)"
    r"[\"')\]]{0,2}(?:\s*\([^()\n]{0,40}\))?(?:[^.!?\n:]{0,80}?(?:\b(?:would be|will be|should be|must be|has to be|is"
    r"|are|was|ist|est|es|è|é|seems|be)\b(?! not\b))\s*:?|\s*[:=\-—>是为為은는이が]+|\s+(?=[(\[\"']?[A-Z]\b))"
    r"|\b(?:i|we)(?:'d|'ll| will| would)? ?(?:choose|chose|select|pick|prefer|(?:am )?go(?:ing)? with|lean towards"
    r"|opt for|vote for|(?:settled?|decided?) on)\b|应选|故选|选",
    re.I,
)
_SO = re.compile(
    r"\b(?:so|therefore|thus|hence|consequently|in conclusion|overall|in total|altogether|must be|has to be"
    r"|turns out to be|leav(?:es|ing)|i(?:'d| would)? (?:think|believe|guess|say|bet|suppose)|most likely)\b"
    r"(?!\s*(?:far|that|loud|on|much|many|as|long|quiet)\b)",
    re.I,
)
_WAIT = re.compile(
    r"(?:\.\.\.\s*no\b|(?:^|[.!?\n,;\-]\s*|\b(?:but|oh|no),? )(?:wait|actually|hmm|correction|sorry|i meant|or rather"
    r"|hold on|on second thoughts?|scratch that|let me re\w+|then again|my mistake|oops)\b)[,.:;!\-]*",
    re.I,
)
_HYPOTHESIS = re.compile(
    r"(?:^|[.!?\n;]\s*)(?:if(?! i (?:had|have|must)\b)|suppos(?:e|ing)|let's say|assum(?:e|ing)|imagine|the question"
    r" is)\b[^.;\n]*|(?:^|(?<=[.!?\n]))[^.!?\n]*\b(?:which|what|how|is|does|do)\b[^.!?\n]{8,200}\?",
    re.I,
)
_NONE = re.compile(
    r"\b(?:none|neither) of (?:the|these|them|those|above)\b(?! others?\b)|(?:\bnot|n't) (?:any|one|among)(?: of)? "
    r"(?:the|these|them)\b|\ball of (?:the above|them|these)\b|以上都不|都不是",
    re.I,
)
_REFUSAL = re.compile(
    r"\b(?:i|we)(?:'m| am|'re| are)? ?(?:sorry|unable|not able|not (?:\w+ )?sure|unsure|uncertain|can(?:not|'t| not)"
    r"|could(?: not|n't)|do(?: not|n't)|won't)\b(?! (?:hear|think|believe) (?:any ?thing (?:else|but)|any other|another"
    r"|the (?!audio|clip|recording|sound\b)|it'?s|that|so))|^\W*(?:sorry|apolog)|\bas an? (?:\w+[ -]){0,3}(?:ai|model)"
    r"\b|\bunable to\b|\b(?:impossible|not possible|difficult|hard) to (?:tell|determine|say|know|answer|identify)"
    r"|\bcan(?:not|'t) (?:be (?:determined|answered|told|identified)|tell)|\binconclusive\b|(?<!if )\bi can help\b"
    r"|\b(?:no|insufficient|not enough) (?:audio|sound file|clip|recording|information|idea|context|answer)\b"
    r"|\b(?:please|could you) (?:\w+ )?(?:provide|upload|share|attach)|无法|抱歉|对不起|不知道|不能(?:确定|回答)"
    r"|わかりません|すみません|죄송|не могу|извините|lo siento|no puedo|désolé|je ne (?:peux|sais)|tut mir leid",
    re.I,
)
_UNFINISHED = re.compile(
    r"\b(?:the|(?-i:a)|an|and|or|of|is|it|to|in|at|for|from|by|around|about|I|with|because|so|but|that|which|then|would)$"
    r"|[:(\-]$",
    re.I,
)
_BESIDE = re.compile(
    r"[\W_]*(?:(?:and|or|und|oder|et|ou|y|o|и|или|和|或|is|the|a|an|possibly|maybe|then|it's|it is|this is|that is"
    r"|there (?:is|are)|option)\b[\W_]*){0,3}",
    re.I,
)


def match_answer(text: str, options: Sequence[str]) -> Match:
    """Return the option that an answer names and the rule that decided.

    The evidence, in this order:

    1. An option's own text or letter, alone (*text*, *letter*).
    2. A marked answer: the content of the last ``\\boxed{}`` or ``<answer>``, the value of a JSON answer, the only bold
       line that names an option.
    3. The words after "answer is", "I choose" and so on (*answer is*), or "so", "therefore", "must be" (*conclusion*);
       the last one counts, since "wait" and "actually" withdraw what comes before them.
    4. A letter before everything else (*letter first*), or Yes or No (*yes or no*).
    5. The only option that is mentioned and not denied (*mention*); if there are several, the only one in the last
       sentence (*last sentence*). An option may be mentioned by its letter, its text, "the second option", a number,
       two times or, in a short answer, by most of its words. It is denied by a word before it ("not", "rather than") or
       its predicate ("is wrong").

    These are never read: reasoning, the text after reasoning that does not end, a next turn of the conversation,
    questions, suppositions. Only the beginning and the end of a text longer than READ_CHARACTERS are read.

    An answer is unparsed if nothing is left to read (*empty*); if it only repeats the list of options (*echo*); if its
    letter is beyond the options (*no such letter*); if one conclusion names two options, such as "B. dog" when dog is
    not option B (*conflict*); if it rejects or accepts every option (*none of them*); if it apologises, or states that
    nothing can be heard or decided (*refusal*); if it mentions several options (*several*) or none (*nothing*). A guess
    counts: "I would say B, but I can't hear the audio" is B.

    Args:
        text: the model's answer.
        options: 2 to 26 texts, in the order shown.

    >>> match_answer("B. rain", ["rain", "dog"])
    Match(option=None, rule='conflict')
    >>> match_answer("<think>Rain, I guess.</think> It is the car horn.", ["car", "rain", "car horn"])
    Match(option=2, rule='mention')
    >>> match_answer("A. The dog stops early. So the answer is B, not A.", ["dog", "rain"])
    Match(option=1, rule='answer is')
    """
    form = _prepared(tuple(options))
    parts = _structured(text)
    if parts is not None:
        parts, (first, last) = parts[-LONGEST:], READ_CHARACTERS
        found = [
            match_answer(part, options)
            for place, part in enumerate(parts)
            if len("".join(parts[:place])) < first or len("".join(parts[place + 1 :])) < last
        ]
        named = {match.option for match in found} - {None}
        if len(named) > 1:
            return Match(None, "conflict")
        return next((match for match in found if match.option is not None), found[0] if found else Match(None, "empty"))
    *marked, whole = _final_parts(text) or [""]
    for part in marked:
        match = _read(_readable(part, form), form)
        if match.rule not in ("empty", "nothing"):
            return match
    # A bold line marks the answer if no other bold line names an option.
    bold = re.findall(r"^[^\w\n]*(?:\*\*|__)([^*\n]{1,200}?)(?:\*\*|__)[^\w\n]*$", whole[-READ_CHARACTERS[1] :], re.M)
    if bold and sum(bool(_mentions(line, form)) for line in bold[-26:]) == 1:
        match = _read(_readable(bold[-1], form), form)
        if match.rule in ("letter", "text", "letter first", "answer is"):
            return match
    return _read(_readable(whole, form), form)


def _exact(answer: str, form: _Options) -> Match:
    """Return the match of a lone letter, an option's own text or an empty answer; *nothing* for any other text."""
    if form.texts.count(answer.strip()) == 1:
        return Match(form.texts.index(answer.strip()), "text")
    if not any(unicodedata.category(character)[0] in "LN" for character in answer):
        return Match(None, "empty")
    lone = re.fullmatch(r"[^\w#+]*([A-Za-z])[^\w#+]*", answer)
    if lone:
        option = _option_of_letter(lone[1], form)
        return Match(option, "no such letter" if option is None else "letter")
    labelled = re.fullmatch(r"[^\w#+]*([A-Z])[)\].:]+\s+(.+)", answer)
    option = _option_of_letter(labelled[1], form) if labelled else None
    if labelled and option is not None and form.folded[option] == folded_words(labelled[2]):
        return Match(option, "letter")
    words = folded_words(answer)
    if words and form.folded.count(words) == 1:
        return Match(form.folded.index(words), "text")
    return Match(None, "nothing")


def _read(answer: str, form: _Options) -> Match:
    """Return the match of a part without markup."""
    exact = _exact(answer, form)
    if exact.rule != "nothing":
        return exact
    every = r"\s*".join(
        rf"[(\[]?{LETTERS[place]}[)\].:]+\s*{re.escape(text)}\W*?" for place, text in enumerate(form.texts)
    )
    bare = re.sub(every, " ", answer, flags=re.I).strip()
    if bare != answer:
        exact = _exact(bare, form)
        if exact.rule != "nothing":
            return Match(None, "echo") if exact.rule == "empty" else exact
    *before, last_line = bare.rsplit("\n", 2)
    exact = _exact(last_line, form)
    if before and exact.rule in ("letter", "text") and _exact(before[-1], form).rule == "nothing":
        return exact
    answer = _HYPOTHESIS.sub(". ", bare)
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
    unfinished = _UNFINISHED.search(answer.rstrip()[-20:])
    affirmed = _affirmed(answer, mentions)
    for cue, rule in ((_ANSWER_IS, "answer is"), (_SO, "conclusion")):
        for found in reversed(list(cue.finditer(answer))):
            after = [one for one in affirmed if one.start >= found.end()]
            if (rule == "conclusion" and unfinished) or not after or after[0].start > found.end() + 60:
                continue
            if not re.search(r"[.!?]\s|\bbecause\b", answer[found.end() : after[0].start]):
                return _decided(_side_by_side(answer, after), rule)
    lines = [one for one in mentions if re.search(r"(?:^|\n)\W*(?:\d\W+)?$", answer[: one.start][-9:])]
    listed = {one.options for one in mentions if one.lettered and one.end > one.start + 1}
    in_front = affirmed and affirmed[0].lettered and not re.search(r"\w", answer[: affirmed[0].start])
    if in_front and sum(one.lettered for one in lines) < 2 and len(listed) < 3:
        return _decided(_side_by_side(answer, affirmed), "letter first")
    if _NONE.search(answer):
        return Match(None, "none of them")
    refusals = [one.span() for one in _REFUSAL.finditer(answer)]
    # "I'm not sure" is an answer if an option is "Not sure".
    refusals = [(start, end) for start, end in refusals if all(m.end <= start or end <= m.start for m in mentions)]
    if refusals:
        start, end = refusals[-1]
        hedged = affirmed and re.search(r"\b(?:though|although|while)\W*$", answer[:start], re.I)
        turned = re.search(r"\b(?:but|however|maybe|probably|though|if i had to)\b", answer[end:], re.I)
        if not hedged and not (turned and affirmed and affirmed[-1].start > end):
            return Match(None, "refusal")
    if form.yes_no and mentions and not re.search(r"\w", answer[: mentions[0].start]):
        return _decided(_side_by_side(answer, mentions), "yes or no")
    if unfinished:
        return Match(None, "nothing")
    named = frozenset().union(*(one.options for one in affirmed))
    if len(named) == 1:
        return Match(min(named), "mention")
    if named:
        stripped = answer.rstrip(" .!?\n")
        sentence = re.split(r"[.!?\n;]\s+|\n|\bbut\b|\bhowever\b", stripped)[-1]
        late = frozenset().union(*(one.options for one in affirmed if one.end > len(stripped) - len(sentence)))
        # "D: absent" ends a review, "D. dog" ends a list, and "The dog" is cut off.
        rest = answer[affirmed[-1].end :]
        in_list = re.match(r"[)\]]?\s*[:\-]", rest) or (
            len({one.options for one in lines}) > 1 and not re.search(r"\w", rest)
        )
        cut_off = re.match(r"\W*(?:\w+, )?the\b", sentence, re.I) and not re.search(r"\w|[.!?]", rest)
        if len(late) == 1 and len(sentence) < len(answer) - 3 and not in_list and not cut_off:
            return Match(min(late), "last sentence")
        return Match(None, "conflict" if any(len(one.options) > 1 for one in affirmed) else "several")
    return Match(None, "nothing") if mentions or form.counts or form.intervals else _reworded(answer, form)


_GENERAL = folded_words(
    "it a an the of to in on at by for with from and or is are was were be been being its he she they i you we his her"
    " their this that there as has have had do does did will would can could s sound sounds audio"
)
"""Words too general to identify an option."""


def _reworded(answer: str, form: _Options) -> Match:
    """Return the option with most of its words in the last sentence, or that a short answer partly contains."""
    stems = [{_stem(word) for word in words if word not in _GENERAL} for words in form.folded]
    for scope in (re.split(r"(?<=\w)[.!?]\s+|\n", answer.rstrip(" .!?\n"))[-1], answer):
        said = {_stem(word) for word in folded_words(scope)}
        shares = [len(words & said) / max(len(words), 1) for words in stems]
        best = max(range(len(shares)), key=shares.__getitem__)
        others = max((share for place, share in enumerate(shares) if place != best), default=0)
        most = shares[best] >= 0.75 and len(stems[best]) > 1 and others <= 0.5
        many = shares[best] >= 0.5 and len(stems[best]) > 5 and others <= 0.2
        if most or many:
            return Match(best, "mention")
    part = {_stem(word) for word in folded_words(answer) if word not in _GENERAL}
    within = [place for place, words in enumerate(stems) if part and part <= words]
    if len(within) == 1:
        return Match(within[0], "mention")
    spelled = folded_words(answer)
    near = [
        place
        for place, words in enumerate(form.folded)
        # "Unhappy" is not a misspelt "happy".
        if len(words) <= 4 and [word[0] for word in words] == [word[0] for word in spelled]
        if all(SequenceMatcher(None, one, other).ratio() > 0.81 for one, other in zip(words, spelled, strict=True))
    ]
    return Match(near[0], "mention") if len(near) == 1 else Match(None, "nothing")


def _stem(word: str) -> str:
    """Return a word without its ending for plural or tense."""
    for ending in ("ing", "ed", "es", "s"):
        if len(word) > len(ending) + 2 and word.endswith(ending) and not word.endswith("ss"):
            return word.removesuffix(ending).removesuffix("e")
    return word.removesuffix("e") if len(word) > 3 else word


def _decided(mentions: Sequence[_Mention], rule: str) -> Match:
    named = frozenset().union(*(one.options for one in mentions))
    return Match(min(named), rule) if len(named) == 1 else Match(None, "conflict")


def _side_by_side(text: str, mentions: Sequence[_Mention]) -> list[_Mention]:
    """Return the first mention and those next to it: "B. dog", "A or C"."""
    group = [mentions[0]]
    for one in mentions[1:]:
        between = text[group[-1].end : one.start]
        bare = group[-1].lettered and group[-1].end == group[-1].start + 1
        if not _BESIDE.fullmatch(between) or ("\n" in between and (one.lettered or not bare)):
            break
        # "B. dog" is one answer, "B. C is shorter" has two sentences.
        told = len(between) < 4 and bare and not one.lettered
        ends = re.match(r"\s*(?:$|[.,;:!?)\"'\n]|because\b|since\b)", text[one.end :])
        if re.search(r"(?<!\.)[.!?]\s", between) and not (group[-1].lettered and (ends or told)):
            break
        group.append(one)
    return group
