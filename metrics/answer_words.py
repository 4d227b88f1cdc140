"""The words of an answer in free text and of the options of a question, as they are compared."""

import functools
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""What the options are called, in their order."""


@dataclass(frozen=True)
class PreparedOptions:
    """The options of a question, prepared for matching.

    Attributes:
        texts: as shown.
        folded: their words.
        phrases: a tree of the words of all options: by a word what may follow it, and by "" the options that end there.
        heads: words that only one option has, and may stand for it.
        yes_no: positions of Yes and No where these are the options.
        intervals: two numbers of each option, where all have two; else empty.
        counts: whether all are numbers.
    """

    texts: tuple[str, ...]
    folded: tuple[tuple[str, ...], ...]
    phrases: Mapping[str, Any]
    heads: Mapping[str, int]
    yes_no: Mapping[str, int]
    intervals: tuple[tuple[float, ...], ...]
    counts: bool

    def letter(self, letter: str) -> int | None:
        """Position of the option that a letter stands for."""
        place = LETTERS.find(letter.upper())
        return place if 0 <= place < len(self.texts) else None


@functools.lru_cache(maxsize=4096)
def form_of(texts: tuple[str, ...]) -> PreparedOptions:
    """Return the options of a question, prepared for matching."""
    folded = tuple(folded_words(text) for text in texts)
    phrases: dict[str, Any] = {}
    for place, words in enumerate(folded):
        node = phrases
        for word in words:
            node = node.setdefault(word_stem(word), {})
        if words:
            node[""] = node.get("", frozenset()) | {place}
    intervals = tuple(_digits(_plain(text)) for text in texts)
    return PreparedOptions(
        texts=texts,
        folded=folded,
        phrases=phrases,
        heads=_heads(folded),
        yes_no={words[0]: place for place, words in enumerate(folded)} if sorted(folded) == [("no",), ("yes",)] else {},
        intervals=intervals if all(len(numbers) == 2 for numbers in intervals) else (),
        counts=all(len(words) == 1 and NUMBER.fullmatch(words[0]) for words in folded),
    )


_GENERAL = frozenset(
    [
        *("section", "sound", "sounds", "noise", "instrument", "instruments", "music", "small", "large", "male"),
        *("female", "other", "left", "right", "high", "low", "hand", "loud", "soft", "back", "front"),
    ]
)
"""Words that do not say by themselves which option is meant."""


def _heads(folded: Sequence[tuple[str, ...]]) -> dict[str, int]:
    """Words of options of several words that only one option has: nouns, not "electric", "plucked" or "running"."""
    having: dict[str, set[int]] = {}
    for place, words in enumerate(folded):
        for word in words:
            having.setdefault(word_stem(word), set()).add(place)
    heads = {}
    for place, words in enumerate(folded):
        for position, word in enumerate(words):
            modifies = position + 1 < len(words) and word.endswith(("ic", "ed", "ing", "al", "en"))
            says = len(word) > 3 and word.isalpha() and not modifies and word not in _GENERAL
            if len(words) > 1 and says and having[word_stem(word)] == {place}:
                heads[word_stem(word)] = place
    return heads


# ----- matching: what is read, and its words
READ_CHARACTERS = (1000, 2000)
"""Of a longer answer so many characters at its begin and at its end are read: where conclusions stand."""

READ_WORDS = (300, 600)
"""Likewise of its words and marks."""

_SAME = str.maketrans("‘’‚‛′“”„‟«»″‐‑‒–—―−", '\'\'\'\'\'"""""""-------')
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060\ufeff]")
_SPECIAL = re.compile(r"<\|[^|<>]{0,40}\|>|</?s>|<(?:eos|bos|pad|end_of_turn)>|\[/?INST\]")
LONE_LETTER = re.compile(r"[\W_]*([A-Za-z])[\W_]*")
_BOLD_LETTER = re.compile(r"(?<![\w*`])(\*{1,3}|__|`|\$) ?[(\[]?([A-Za-z])[)\]]? ?[.:]? ?\1(?![\w*`])")
_COMMAND = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|mbox)\s{0,3}\{([^{}]*)\}")
_THOUGHT = r"(?:think|thinking|thought|reasoning)"
_THOUGHT_END = re.compile(rf"</ ?{_THOUGHT} ?>|\[/THINK\]", re.I)
_THOUGHT_START = re.compile(rf"< ?{_THOUGHT} ?>|\[THINK\]", re.I)
_ANSWER_START, _ANSWER_END = re.compile(r"< ?answer ?>", re.I), re.compile(r"< ?/ ?answer ?>", re.I)
_BESIDE = re.compile(r"[\s,/&]*(?:and|or)?[\s,/&]*", re.I)
_TAG = re.compile(r"</[A-Za-z]\w{0,20}>|<[A-Za-z]\w{1,20}/?>|<[a-z](?=>[^<]{0,40}</)>")
_PROMPT = re.compile(
    r"Answer with one letter only\.|Answer with the text of one option only, without its letter\.|"
    r"Explain, then letter\.|<\|?(?:assistant|im_start)\|?>",
    re.I,
)
"""The last lines of the prompts of this project: what follows is the answer."""

NUMBER = re.compile(r"\d+(?::\d+)*(?:[.,]\d+)?")
_UNSPACED_RANGES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Scripts that put no space between words, or join particles to them."""
_MARKS = "".join(chr(code) for code in range(0x300, 0x3000) if unicodedata.category(chr(code))[0] == "M")
_TOKEN = re.compile(
    rf"(?P<number>{NUMBER.pattern})|(?P<unspaced>[{_UNSPACED_RANGES}][{_MARKS}]*)"
    rf"|(?P<word>[^\W\d_{_UNSPACED_RANGES}](?:[^\W\d_{_UNSPACED_RANGES}]|[{_MARKS}]|'(?=[^\W\d_]))*)"
    r"|(?P<line>\n)|(?P<mark>[^\s])"
)
_COUNTS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_COUNT_OF = {word: str(count) for count, word in enumerate(_COUNTS)}


@dataclass(frozen=True, slots=True)
class Token:
    """A word, number, character of a script without spaces, end of a line or punctuation mark; the name of its group.

    Attributes:
        kind: which of these.
        raw, fold: as it is, and for comparison.
        start, end: its characters.
    """

    kind: str
    raw: str
    fold: str
    start: int
    end: int


def _plain(text: str) -> str:
    """A text without what does not matter to its meaning."""
    text = unicodedata.normalize("NFKC", _SPECIAL.sub(" ", text)).translate(_SAME)
    return _INVISIBLE.sub("", text).replace("\r\n", "\n").replace("\r", "\n").strip()


def _clipped(text: str) -> str:
    """The begin and the end of a text, where it is long: what is done with it takes bounded time."""
    return (
        text if len(text) <= sum(READ_CHARACTERS) else f"{text[: READ_CHARACTERS[0]]}\n…\n{text[-READ_CHARACTERS[1] :]}"
    )


def final_part(text: str) -> str:
    """What a model gives as its answer."""
    text = _THOUGHT_START.split(_THOUGHT_END.split(_SPECIAL.sub(" ", text))[-1])[0]
    tagged = _ANSWER_START.split(text)
    if len(tagged) > 1:
        parts = [_ANSWER_END.split(tagged[-1])[0]]
        # "<answer>A</answer> or <answer>B</answer>" gives two.
        for before in tagged[-2:0:-1]:
            said = _ANSWER_END.split(before)
            if len(said) != 2 or len(said[1]) > 40 or not _BESIDE.fullmatch(said[1]):
                break
            parts.append(said[0])
        text = " or ".join(_clipped(part) for part in reversed(parts[:LONGEST]))
    boxed = list(re.finditer(r"\\f?boxed\s{0,3}\{", text))
    if boxed:
        text = _braced(text[boxed[-1].end() :])
    # Clipped before and after: a character may become many.
    text = _clipped(_plain(_clipped(_ANSWER_END.sub(" ", text))))
    text = _BOLD_LETTER.sub(r" (\2) ", _COMMAND.sub(r"\1", text))
    text = re.sub(r"[*`$#\\]|(?<!\w)_+|(?<!_)_+(?!\w)", "", _TAG.sub(" ", text)).strip()
    repeated = list(_PROMPT.finditer(text))
    return text[repeated[-1].end() :].strip() if repeated else text


LONGEST = 26
"""Most options, and most words of an option that are compared."""

SCANNED = 24
"""Most tokens that are looked at for how a sentence or clause goes on."""


def _braced(text: str) -> str:
    """What stands before the brace that closes one opened before the text."""
    depth = 1
    for place, character in enumerate(text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0:
            return text[:place]
    return text


def read_tokens(text: str) -> list[Token]:
    """Return the words, numbers and marks of a text in order."""
    tokens = []
    for match in _TOKEN.finditer(text):
        kind, raw = str(match.lastgroup), match[0]
        fold = raw.casefold() if kind == "word" else raw
        if kind == "word":
            fold = _COUNT_OF.get(fold, fold[:-2] if fold.endswith("'s") else fold)
        elif kind == "number":
            value = number_value(raw)
            fold = raw if value is None else f"{value:.12g}"
        tokens.append(Token(kind, raw, fold, match.start(), match.end()))
    return tokens


CONTENT = frozenset(("word", "number", "unspaced"))
ARTICLES = frozenset(("a", "an", "the"))


def folded_words(text: str) -> tuple[str, ...]:
    """The words of a text for comparison: case, an article in front and how numbers are written do not matter."""
    words = [token.fold for token in read_tokens(_plain(text)) if token.kind in CONTENT]
    # "A." is a letter.
    has_article = len(words) > 1 and words[0] in ARTICLES and re.match(r"[\W_]*(?:an?|the)\s+\w", text, re.I)
    return tuple(words[1:] if has_article else words)


def word_stem(word: str) -> str:
    """A word without what makes it a plural or, where it is long, a form of a verb: "bells", "barking"."""
    if len(word) > 6 and word.endswith("ing"):
        return word[:-3]
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word


def number_value(number: str) -> float | None:
    """A number in digits, of seconds or minutes:seconds; None where it is neither."""
    minutes, _, rest = number.rpartition(":")
    try:
        return 60 * float(minutes or 0) + float(rest.replace(",", "."))
    except ValueError:
        return None


def _digits(text: str) -> tuple[float, ...]:
    """The numbers in digits of a text."""
    values = [number_value(number) for number in NUMBER.findall(text)]
    return tuple(math.nan if value is None else value for value in values)
