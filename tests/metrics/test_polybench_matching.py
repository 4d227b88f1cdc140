"""How answers are read: labelled ones, every option in many styles, words that say nothing, and long strings."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Sequence

import pytest

from audio_compositionality.metrics.answers import LETTERS, REFUSED, UNPARSED, match_answer

from .labelled_answers import ALL, SETS, labelled_answers, scores_by_kind

PETS = ("dog", "cat", "rain", "car horn")
NESTED = ("car", "car horn", "horn", "police car siren")
LABELS = ("Alarm_bell_ringing", "Electric shaver/toothbrush", "Male speech, man speaking", "dishes")
COUNTS = ("1", "2", "3", "4")
YES_NO = ("Yes", "No")
TIMES = ("0.0–1.0 s", "2.0–3.0 s", "4.5–5.5 s", "12.0–13.0 s")
CHINESE = ("狗叫", "猫叫", "雨", "汽车喇叭")
RUSSIAN = ("собака", "кошка", "дождь", "гудок")
HINDI = ("कुत्ता", "बिल्ली", "बारिश")
FRENCH = ("l'aboiement d'un chien", "la sirène", "le café", "la pluie")

RULES: dict[str, tuple[str, Sequence[str]]] = {
    "letter": ("B", PETS),
    "text": ("the dog", PETS),
    "letter first": ("B, because it purrs", PETS),
    "answer is": ("The answer is B.", PETS),
    "conclusion": ("The dog stops early, so it must be the rain.", PETS),
    "yes or no": ("Yes, the rain goes on.", YES_NO),
    "mention": ("I can hear a dog in the background", PETS),
    "last sentence": ("A dog and a cat are there. The cat overlaps.", PETS),
    "empty": (" \n…", PETS),
    "echo": ("A. dog B. cat C. rain D. car horn", PETS),
    "no such letter": ("E", PETS),
    "conflict": ("B. dog", PETS),
    "none of them": ("None of the above.", PETS),
    "refusal": ("I'm sorry, I cannot hear the audio.", PETS),
    "several": ("The car and the car horn", NESTED),
    "nothing": ("A dogma of hot rainwear", PETS),
}


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_decides_somewhere(rule: str) -> None:
    match = match_answer(*RULES[rule])
    assert match.rule == rule
    assert (match.option is None) == (rule in UNPARSED)


def test_the_unparsed_rules_are_among_them() -> None:
    assert set(REFUSED) < set(UNPARSED) < set(RULES)


# Precision and recall, rounded down: a reading that falls below them is worse than the one that was measured.
BOUNDS = {
    "kinds": (0.94, 0.92),
    "development": (0.975, 0.91),
    "held_out": (0.985, 0.965),
    "independent": (0.985, 0.93),
    "traps": (0.7, 0.61),
}


@pytest.mark.parametrize("name", SETS)
def test_labelled_answers_are_read_as_they_are_labelled(name: str) -> None:
    """docs/understand/answers.md has how real answers are read: their texts are not ours to keep here."""
    scores = scores_by_kind(labelled_answers(name))[ALL]
    precision, recall = BOUNDS[name]
    assert scores.precision >= precision
    assert scores.recall >= recall


def test_a_prompt_that_goes_through_the_options_is_read_by_its_conclusion() -> None:
    """What is said of the options before is in their order, so that the first one would be read of each."""
    said = ("is too short", "ends early", "is not heard", "lasts longest")
    for place, turn in itertools.product(range(4), range(4)):
        lines = [f"{LETTERS[at]}. {PETS[at]} {said[(at + turn) % 4]}." for at in range(4)]
        for last in (
            "The correct answer is {0}.",
            "So the answer is {0}. {1}",
            "Therefore, {0}.",
            "Answer: {1}",
            "{0}",
        ):
            text = "\n".join([*lines, last.format(LETTERS[place], PETS[place])])
            assert match_answer(text, PETS).option == place, text


ANSWERS = (
    # What is said of other options takes no answer back; of two answers the later counts; a hedge is none beside it.
    *("It's {0}", "Probably {0}", "I think that it is {0}.", "If I had to guess, I would say {0}."),
    *("The answer is {0}. {2} is wrong, it ends early.", "**{0}**. {2} comes later.", "{0}\n{2} is no match."),
    *("The answer is {0}. {3} is not heard.", "Answer: {2}\nAnswer: {0}", "{2}. Then again, it is {0}."),
    "I would say {0}, but I can't hear the audio.",
    *(f"I think it is {{0}}. But it {hedge} be {{2}}." for hedge in ("may", "might", "could")),
)
NO_ANSWERS = (
    *("Suppose the answer is {0}.", "Let's say it is {0}.", "If it were {0}, it would ring.", "I doubt it's {0}."),
    *("The note is a {0}.", "It is in the key of {0}.", "The voice says: plan {0}.", "The answer is {0}. {3}"),
)


@pytest.mark.parametrize("form", [*ANSWERS, *NO_ANSWERS])
def test_a_letter_is_an_answer_or_none_whichever_letters_there_are(form: str) -> None:
    for place, other in itertools.permutations(range(4), 2):
        text = form.format(LETTERS[place], PETS[place], LETTERS[other], PETS[other])
        assert match_answer(text, PETS).option == (place if form in ANSWERS else None), text
    assert match_answer("The answer is B. rain", PETS).rule == "conflict"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("Yes, I can help with that. Please upload the audio.", "refusal"),
        ("Yes, I understand. Please provide the clip.", "refusal"),
        ("Yes, I can hear another sound.", "yes or no"),
    ],
)
def test_a_yes_to_the_request_is_a_refusal(text: str, rule: str) -> None:
    assert match_answer(text, YES_NO).rule == rule


# Options, and answers with the letter that they name, or "-".
MISREAD: dict[tuple[str, ...], dict[str, str]] = {
    ("A quiet kitchen", "A busy street", "A tram stop", "An office"): {
        'The correct answer is: "A tram stop".': "C",
        "The correct answer is: A tram stop.": "C",
        "Therefore, the answer is 'A tram stop'.": "C",
        "(C) A tram stop": "C",
        'Of the choices, "A tram stop" fits best.': "C",
        "C. A": "C",
    },
    ("A television playing", "A baby crying", "A car honking"): {"A telephone playing": "-"},
    ("An alarm ticking at intervals", "Rain", "Speech"): {"A church bell rings at intervals": "-"},
    ("Their tutor", "I don't know", "Their sister", "Their boss"): {
        'The correct answer is **D. Their boss**. The speaker says: "And no, I have not told him."': "D",
        'The correct answer is **D**.\n\nIn the clip one says, "Oh, and I meant to ask, is there a class?"': "D",
    },
    ("Not loud enough", "Too loud", "Not at all", "It was late"): {"A. Not loud": "A", "C. Not at": "C"},
    ("Rain at night", "Rain by day", "No rain was heard", "Snow"): {"C. No rain": "C"},
    ("Yes, it is the second sound.", "Yes, it is the first sound.", "No, it is not present."): {
        "There is no dog. Therefore, the answer is 'No, it is not present.'.": "C"
    },
    ("Yes", "No", "Not sure"): {"I'm not sure.": "C", "I'm sorry, I can't tell.": "-"},
    ("Rain", "Wind", "Thunder"): {"<rain>": "A", "Therefore the answer is <Rain>.": "A"},
    ("six", "one", "five"): {"It appears < five > times.": "C", "The answer is <one>.": "B"},
    ("F#m7", "Bm", "C#m", "E"): {"C#m": "C", "The answer is C#m.": "C"},
    ("A#:hdim7(11)/1", "E:(1,5)/1", "G#:min7(4,*5)/1"): {"The answer is G#:min7(4,*5)/1.": "C"},
    ("Bm", "F#m", "G6", "D"): {"['Bm', 'F#m']": "-", "D minor": "-"},
    ("A minor", "E minor", "C# major", "D"): {
        "The piece is in A minor.": "A",
        "The answer is B. E minor": "B",
        "C sharp major": "C",
        "C♯ major": "C",
        "G minor": "-",
        "Bb major": "-",
    },
    ("R", "G", "PG-13", "a"): {"R": "A", "a": "D", "C": "C"},
    ("3/4", "4/4", "6/8", "2/4"): {
        "I count four beats. It is a 4/4 time signature, so the answer is 4/4. </answer>": "B"
    },
    ("2", "3", "4", "5"): {"We hear the bell 4 times.": "C"},
    ("158.0", "120.0", "90.0", "75.0"): {"The tempo is 75.0 bpm.": "D"},
    ("Al and Jo", "Nan and Mo", "Su and Mo", "Ed and Di"): {
        "* A. Al and Jo: no team.\n* B. Nan and Mo: a team.\n* D. Ed and Di: a team.\n\n**B. Nan and Mo**": "B"
    },
    ("Harp", "Flute", "Drum"): {
        "The answer to 'Which one? Choices: (A) Harp (B) Flute (C) Drum' is: B": "B",
        "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>final<|message|>B": "B",
        "<|channel|>analysis<|message|>The answer is A.": "-",
        "<seed:think>The answer is A.</seed:think>B": "B",
        "<|begin_of_thought|>A<|end_of_thought|>B": "B",
        "<|START_THINKING|>The answer is A.": "-",
        '[{"type": "thinking", "text": "A"}, {"type": "text", "text": "B"}]': "B",
        '{"letter": "B"}': "B",
    },
    ("happy", "sad", "angry"): {"unhappy": "-", "hapy": "A"},
}


@pytest.mark.parametrize("options", MISREAD, ids=" ".join)
def test_kinds_of_answers_that_were_misread(options: tuple[str, ...]) -> None:
    for text, letter in MISREAD[options].items():
        assert match_answer(text, options).option == (None if letter == "-" else LETTERS.index(letter)), text


STYLES: dict[str, Callable[[str, str], str]] = {
    "letter": lambda letter, text: letter,
    "small letter in brackets": lambda letter, text: f"({letter.lower()})",
    "bold letter": lambda letter, text: f"**{letter}**",
    "letter and text": lambda letter, text: f"{letter}. {text}",
    "bracket and text": lambda letter, text: f"({letter}) {text}.",
    "bold line": lambda letter, text: f"**{letter}) {text}**",
    "text": lambda letter, text: text,
    "loud text": lambda letter, text: f"{text.upper()}!",
    "answer, letter": lambda letter, text: f"After listening closely, the correct answer is {letter}.",
    "answer, letter, text": lambda letter, text: f"Answer: {letter}. {text}",
    "answer, text": lambda letter, text: f"The answer is {text}.",
    "quoted text": lambda letter, text: f'The right answer is "{text}".',
    "thought": lambda letter, text: f"<think>Is it A, B or neither?\nA. or B.</think>\n<answer>{letter}</answer>",
    "boxed": lambda letter, text: rf"So we have \boxed{{\text{{{text}}}}}",
    "option and reason": lambda letter, text: f"I choose option {letter} because it fits best.",
    "tokens": lambda letter, text: f"<answer>{text}</answer><|im_end|>\n",
}
OPTION_SETS = (PETS, NESTED, LABELS, COUNTS, YES_NO, TIMES, CHINESE, RUSSIAN, HINDI, FRENCH)
OWN = ("electric piano", "brass", "glass bell", "plucked bass", "reed", "organ", "wooden bars", "breathy pad")


@pytest.mark.parametrize("style", STYLES)
def test_any_option_is_found_in_every_style(style: str) -> None:
    for options in (*OPTION_SETS, *itertools.permutations(OWN, 2), OWN):
        for place, text in enumerate(options):
            answer = STYLES[style](LETTERS[place], text)
            assert match_answer(answer, options).option == place, (answer, options)


COMMON = """
a about above across after again air all almost alone along also always am an and another any are around as ask at
away back be because been before began below between both bright bring but by call came can clear close come could day
did do does door down during each early end enough even every eye far fast few find first follow for from front gave
get give go good great ground had half hand hard has have he head hear help here high hold house how hundred if in
into is it its just keep kind know large last late later leave left less let letter light like line little long look
loud low made make man many may mean might more most much must my name near never new next night no nor not nothing
now number of off often on once one only open or order other our out over own page part people place play point put
quiet read right room run same saw say second see seem sentence several short should side small so some sound sounds
stand start state still stop such take tell than that the their them then there these they thing think this those
thought through time to together too top toward tree turn two under until up us use very voice wait walk want was
watch water way we well went were what when where which while white who why will wind with without word work world
would year you young your I option answer choice
"""


@pytest.mark.slow
def test_random_words_are_hardly_ever_parsed() -> None:
    # Words that name options of these sets.
    rng, vocabulary = random.Random(0), [word for word in COMMON.split() if word not in ("one", "once", "two", "no")]
    for options in OPTION_SETS[:6]:
        parsed = 0
        for _ in range(500):
            words = [rng.choice(vocabulary) for _ in range(rng.randint(1, 30))]
            marks = [rng.choice(["", "", "", "", ",", "."]) for _ in words]
            text = " ".join(word + mark for word, mark in zip(words, marks, strict=True))
            parsed += match_answer(text[:1].upper() + text[1:], options).option is not None
        assert parsed <= 0.01 * 500, (options, parsed)


def test_options_that_differ_only_in_what_is_folded_are_told_apart_by_letter_and_by_their_own_text() -> None:
    options = ("dog", "A dog", "2", "two")
    assert [match_answer(text, options).option for text in options] == [0, 1, 2, 3]
    assert [match_answer(letter, options).option for letter in "ABCD"] == [0, 1, 2, 3]
    assert match_answer("It is the dog.", options).option is None


LONG = 20_000
REPEATED = (
    "0¦1 ¦0.¦0:¦0,0¦1.0 to ¦1.0 to 2.0 ¦2.0-¦9.9.9¦a¦A¦A ¦A.¦A. ¦A\n¦(A) ¦((¦( ( ¦))))¦[[¦{¦\\boxed{¦\\boxed{A¦"
    "\\text{¦\\text{A}¦\\¦<¦<|¦<|a|>¦</¦< ¦<answer>¦<answer>A</answer>¦<answer>A</answer> or ¦</answer>¦<think>¦"
    "</think>¦<a>¦<b>B</b>¦*¦**A** ¦_¦_a¦__A__¦`A`¦$B$¦#¦\n¦\n\n¦\r\n¦\t¦ ¦\xa0¦\u200b¦\u0301¦a\u0301\u0323¦"
    "\u0301\u0323¦\ufdfa¦\u2163¦\xbd¦\U0001f642¦狗¦是¦答案是¦第二¦정답은 ¦네¦\u0915\u094d¦\ufb01¦\ud800¦\x00¦"
    "Ａ．¦the ¦no ¦not A ¦"
    "neither A nor B ¦dog ¦dog or ¦dog, cat, ¦car ¦car horn ¦The answer is ¦The answer is A. ¦answer: ¦so A ¦"
    "wait, A ¦actually, ¦no, ¦A. dog ¦A. dog\n¦A) No B) Yes ¦dog (A) ¦A is wrong. ¦A is correct. ¦one or ¦"
    "two sounds ¦3 (three) ¦yes, no ¦no other sound ¦I can't ¦as an ai model ¦none of the above ¦but ¦maybe ¦"
    'What is A? ¦first option ¦option 2 ¦\'¦it\'s ¦…¦A ✓ ¦{"answer": "A"} ¦|A¦A: ¦if A ¦impossible to ¦'
    "suppose ¦suppose A ¦it might be A, but ¦A. B ¦A and ¦B\n¦overlap ¦no doubt ¦nothing but ¦apart from ¦"
    "yes, please ¦the note is a ¦another sound "
)
PIECES = REPEATED.split("¦")
"""What is repeated."""
BRACKETS = (*zip("({", ")}", strict=True), ("<think>", "</think>"), ("<answer>", "</answer>"))
HALVES = (*BRACKETS, ("A ", "B "), ("1 ", "to "), ("**", "A**"))
LONG_TEXTS = tuple(f"the bell of the old church, {'heard from far away, ' * 20}{number}" for number in range(26))
SECONDS = tuple(f"{at}.0–{at + 1}.{at} s" for at in range(26))
CLOCKS = ("0:00 to 0:01", "1:02 to 1:03.5", "00:10–00:20")


def of_options(options: Sequence[str]) -> list[str]:
    """What is repeated of the options themselves: their texts, with letters, listed, joined and denied."""
    first, second = options[:2]
    return [
        *(first, f"{first} ", f"{first}\n", f"{first}, {second} ", f"{first} or {second} ", f"not {first} "),
        *(f"A. {first}\n", f"A. {first} B. {second} ", f"(A) {first} ", f"(A) {first} (B) {second} (A) "),
        *(f"B. {first} ", f"A. {first} is correct. ", f"so {first} but {second}. ", f"if {first}, {second} "),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [YES_NO, SECONDS, LONG_TEXTS],
    ids=lambda options: ", ".join(options)[:30],
)
def test_no_string_takes_long(options: Sequence[str]) -> None:
    """Of 20,000 characters none takes more than 50 ms of a quiet core, which may be half as fast beside a busy one."""
    texts = [piece * (LONG // len(piece)) for piece in (*PIECES, *of_options(options))]
    texts += [left * (LONG // 2 // len(left)) + right * (LONG // 2 // len(right)) for left, right in HALVES]
    assert len(texts) >= 100
    match_answer("x", options)
    slow = {}
    for text in texts:
        # What else the machine does may disturb a measurement, hardly ever five.
        taken = []
        while len(taken) < 5 and min(taken, default=1) > 0.1:
            taken.append(seconds_of(text, options))
        if min(taken) > 0.1:
            slow[text[:20]] = min(taken)
    assert not slow


def seconds_of(text: str, options: Sequence[str]) -> float:
    """Of the processor, for reading an answer."""
    begin = time.process_time()
    match_answer(text, options)
    return time.process_time() - begin


def test_mixtures_of_all_that_answers_are_made_of_raise_nothing() -> None:
    rng = random.Random(5)
    strange = (("0", "00", "0.0"), tuple(reversed(LETTERS)), ("…", "🙂"), ("a", "A dog", "dog"))
    kinds = (PETS, NESTED, COUNTS, YES_NO, TIMES, CLOCKS, *strange)
    for _ in range(1000):
        options = rng.choice(kinds)
        pieces = (*PIECES, *of_options(options), *"aAbB12.,:()[]{}<>*_`$\\\"'/-–\n\t 狗雨дकाé\ud800\u200b\u0301Ⅳ½")
        text = "".join(rng.choice(pieces) for _ in range(rng.randint(1, 12)))
        match = match_answer(text, options)
        assert (match.option is None) == (match.rule in UNPARSED)


def test_nested_json_is_read_or_left_at_any_depth() -> None:
    """Of hundreds of levels the parser takes more than Python allows functions that call themselves."""
    for before, after in (("[", "]"), ('{"answer": ', "}")):
        assert match_answer(f'{before * 3}"B"{after * 3}', PETS).option == 1
        for depth in (30, 600, 980, 5_000):
            assert match_answer(f'{before * depth}"B"{after * depth}', PETS).rule


def test_time_does_not_grow_with_the_length_of_a_text() -> None:
    """A loop of a model that does not stop; a pattern that looks at each stretch anew would take minutes."""
    for text in ("_" * 1_000_000, f"a{'_' * 1_000_000}b", f"dog {'a_' * 500_000}a", "\u0301\u0323" * 500_000):
        assert match_answer(text, PETS).rule


def test_a_long_reasoning_is_read_at_its_end() -> None:
    noise = "The dog barks, and the cat is heard. " * 1000
    assert match_answer(f"{noise}\nThe answer is C.", PETS).option == 2
    assert match_answer(f"C. rain\n{noise}", PETS).option == 2
    # Likewise of a list of parts: all of them would take as long as a text that is read to its end.
    parts = [noise[:2000], "The answer is A.", noise[:2000]]
    assert match_answer(json.dumps([*parts, "The answer is C."]), PETS).option == 2
    assert match_answer(json.dumps(["C. rain", *parts]), PETS).option == 2
    assert match_answer(json.dumps(parts[:2]), PETS).option == 0
