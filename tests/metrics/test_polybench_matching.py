"""How answers are read: a table of cases by hand, every option in many styles, and words that say nothing."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

import pytest

from audio_compositionality.metrics.polybench.polybench import LETTERS, REFUSED, UNPARSED, match_answer

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
NOTES = ("D", "C", "B", "A")

A, B, C, D = range(4)

# The texts are ours, made from the rules: what is said, the options, the position that it means, the rule that decides.
CASES: list[tuple[str, Sequence[str], int | None, str]] = [
    # Rule 1: what is read at all.
    ("<think>Maybe the dog, A.</think>\n\nB", PETS, B, "letter"),
    ("<think>It is the dog.</think> <answer>C</answer>", PETS, C, "letter"),
    ("<think>first</think> A <think>no, wait</think> D", PETS, D, "letter"),
    ("<think>The dog barks at 2 s, so the answer is A", PETS, None, "empty"),
    ("<answer>B</answer>", PETS, B, "letter"),
    ("I write <answer>letter</answer>. So: <answer>(D) car horn</answer>", PETS, D, "letter first"),
    ("The dog is first. <ANSWER> the rain", PETS, C, "text"),
    (r"Thus $\boxed{B}$.", PETS, B, "letter"),
    (r"First \boxed{A}, corrected: \boxed{\text{C. rain}}", PETS, C, "letter first"),
    (r"<answer>\boxed{\textbf{cat}}</answer>", PETS, B, "text"),
    ("[THINK]dog or cat[/THINK]cat", PETS, B, "text"),
    ("B<|im_end|>", PETS, B, "letter"),
    ("", PETS, None, "empty"),
    (" \n…", PETS, None, "empty"),
    # Rule 2: a lone letter.
    ("B", PETS, B, "letter"),
    ("(b)", PETS, B, "letter"),
    ("**C**", PETS, C, "letter"),
    ("[D].", PETS, D, "letter"),
    ("（Ｂ）", PETS, B, "letter"),
    ("「C」", PETS, C, "letter"),
    ("E", PETS, None, "no such letter"),
    ("C", YES_NO, None, "no such letter"),
    ("A", NOTES, None, "conflict"),
    # Rule 3: an option's text.
    ("Dog.", PETS, A, "text"),
    ("the dog", PETS, A, "text"),
    ("A dog", PETS, A, "text"),
    ("A CAT!", PETS, B, "text"),
    ("car-horn", PETS, D, "text"),
    ("alarm bell ringing", LABELS, A, "text"),
    ("male speech man speaking", LABELS, C, "text"),
    ("three", COUNTS, C, "text"),
    ("2.", COUNTS, B, "text"),
    ("yes", YES_NO, A, "text"),
    ("2-3 s", TIMES, B, "text"),
    # Rule 4: a letter in front.
    ("B. cat", PETS, B, "letter first"),
    ("(C) rain", PETS, C, "letter first"),
    ("**A.** The dog barks while it rains.", PETS, A, "letter first"),
    ("D: the car horn overlaps with the dog", PETS, D, "letter first"),
    ("b) It purrs.", PETS, B, "letter first"),
    ("C\nBecause the rain goes on.", PETS, C, "letter first"),
    ("D - car horn", PETS, D, "letter first"),
    ("C rain", PETS, C, "letter first"),
    ("B because it purrs", PETS, B, "letter first"),
    ("B. 2", COUNTS, B, "letter first"),
    ("B. No", YES_NO, B, "letter first"),
    ("B. dog", PETS, None, "conflict"),
    ("(A) It is the car horn.", PETS, None, "conflict"),
    ("B. There are three sounds.", COUNTS, None, "conflict"),
    ("A. No, it is alone.", YES_NO, None, "conflict"),
    ("B. car horn", NESTED, B, "letter first"),
    ("A. car horn", NESTED, None, "conflict"),
    ("A. B. C. D.", PETS, None, "conflict"),
    # Rule 5: a cue.
    ("The answer is B.", PETS, B, "answer is"),
    ("After listening, the correct answer is: (C) rain", PETS, C, "answer is"),
    ("**Answer:** D", PETS, D, "answer is"),
    ('{"answer": "C"}', PETS, C, "answer is"),
    ("The answer is A because it barks.", PETS, A, "answer is"),
    ("The answer is a dog.", PETS, A, "answer is"),
    ("The answer is a cat.", PETS, B, "answer is"),
    ("I first thought the answer is A. But the answer is C.", PETS, C, "answer is"),
    ("The answer is not A. The answer is B.", PETS, B, "answer is"),
    ("The answer is B, since option A starts later.", PETS, B, "answer is"),
    ("The answer is B. dog", PETS, None, "conflict"),
    ("The most likely answer is option D.", PETS, D, "answer is"),
    ("Cat and dog are heard, and rain. Answer: cat, because the dog is alone.", PETS, B, "answer is"),
    ("The correct option is yes, they overlap.", YES_NO, A, "answer is"),
    ("The answer is 4.5 to 5.5 seconds.", TIMES, C, "answer is"),
    ("Option A is wrong, so I choose option B.", PETS, B, "option"),
    ("I would go with C", PETS, C, "option"),
    ("I select option C over option A.", PETS, C, "option"),
    ("B is the correct answer", PETS, B, "option"),
    ("Neither A nor B is correct", PETS, None, "nothing"),
    ("The answer is A or B.", PETS, None, "nothing"),
    ("The answer is the dog or the cat.", PETS, None, "several"),
    ("答案是B", PETS, B, "answer is"),
    ("我选 C", PETS, C, "option"),
    ("Ответ: D", PETS, D, "answer is"),
    # Rule 6: yes, no and intervals.
    ("Yes, the rain goes on.", YES_NO, A, "yes or no"),
    ("No, it is always alone.", YES_NO, B, "yes or no"),
    ("no there is nothing else", YES_NO, B, "yes or no"),
    ("No other sound is audible.", YES_NO, None, "nothing"),
    ("Yes and no.", YES_NO, None, "nothing"),
    ("There is no overlap.", YES_NO, None, "nothing"),
    ("They sound together between 2 and 3 seconds.", TIMES, B, "interval"),
    ("from 0:12 to 0:13", TIMES, D, "interval"),
    ("At 2.5 s.", TIMES, None, "nothing"),
    ("Between 2 s and 4 s.", TIMES, None, "nothing"),
    ("At 2.5 s, so in 2.0 – 3.0 s", TIMES, B, "mention"),
    # Rule 7: the only bracketed letter.
    ("I hear barking first, hence (B) for me", PETS, B, "bracketed letter"),
    ("Not (A) but (C)", PETS, C, "bracketed letter"),
    ("It could be (A), it could be (B)", PETS, None, "nothing"),
    ("Clearly (B), the dog", PETS, None, "conflict"),
    ("I heard bell(s) and horn(s)", PETS, None, "nothing"),
    # Rule 8: nothing of it, and refusals.
    ("None of the above.", PETS, None, "none of them"),
    ("None of these sounds overlap with the dog.", PETS, None, "none of them"),
    ("It is the dog; none of the others.", PETS, A, "mention"),
    ("I'm sorry, but I cannot listen to audio. A dog would be typical.", PETS, None, "refusal"),
    ("As an AI language model, I don't have ears; the cat?", PETS, None, "refusal"),
    ("It is impossible to tell if the dog is heard.", PETS, None, "refusal"),
    ("It is hard to say whether the dog or the cat is heard.", PETS, None, "refusal"),
    ("It is hard to say, but I hear the dog.", PETS, A, "mention"),
    ("No audio was provided.", PETS, None, "refusal"),
    ("Please upload the recording of the rain.", PETS, None, "refusal"),
    ("Unable to determine.", YES_NO, None, "refusal"),
    ("抱歉，我无法听到音频。", CHINESE, None, "refusal"),
    ("I'm sorry. My answer is B.", PETS, B, "answer is"),
    ("I cannot hear anything but the dog.", PETS, A, "mention"),
    # Rule 9: what is mentioned.
    ("I can hear a dog in the background", PETS, A, "mention"),
    ("It sounds like the car horn", NESTED, B, "mention"),
    ("A police car siren is heard", NESTED, D, "mention"),
    ("The car and the car horn", NESTED, None, "several"),
    ("A dogma of hot rainwear", PETS, None, "nothing"),
    ("the dog's bark", PETS, A, "mention"),
    ("The rain, rather than the dog", PETS, C, "mention"),
    ("The cat without the dog or the rain", PETS, B, "mention"),
    ("It isn't the dog, it must be the rain", PETS, C, "mention"),
    ("It is not only the cat", PETS, B, "mention"),
    ("The dog is not involved; the rain overlaps", PETS, C, "mention"),
    ("Not the dog", PETS, None, "nothing"),
    ("A dog and a cat are there. The cat overlaps.", PETS, B, "last sentence"),
    ("A dog and a cat are there. They overlap.", PETS, None, "several"),
    ("I hear two different sounds", COUNTS, B, "mention"),
    ("It starts at 3 seconds", COUNTS, None, "nothing"),
    ("One of them is loud and lasts 2.5 s", COUNTS, None, "nothing"),
    ("There are 3 sounds, at 1 s, 2 s and 4 s", COUNTS, C, "mention"),
    ("A dog and, at the end, another one.", COUNTS, None, "nothing"),
    # Lists that repeat the question.
    ("A. dog\nB. cat\nC. rain\nD. car horn\nC", PETS, C, "letter"),
    ("A. dog B. cat C. rain D. car horn", PETS, None, "echo"),
    ("(A) Yes (B) No\nNo.", YES_NO, B, "text"),
    # Other scripts.
    ("听到的是狗叫声", CHINESE, A, "mention"),
    ("B、猫叫", CHINESE, B, "letter first"),
    ("我听到狗叫和猫叫", CHINESE, None, "several"),
    ("Я слышу дождь", RUSSIAN, C, "mention"),
    ("ДОЖДЬ", RUSSIAN, C, "text"),
    ("дождьевик", RUSSIAN, None, "nothing"),
    ("यह बिल्ली है", HINDI, B, "mention"),
    ("C’est l’aboiement d’un chien", FRENCH, A, "mention"),
    ("le cafe\u0301", FRENCH, C, "text"),
]


@pytest.mark.parametrize(("text", "options", "option", "rule"), CASES, ids=lambda value: repr(value)[:40])
def test_case(text: str, options: Sequence[str], option: int | None, rule: str) -> None:
    match = match_answer(text, options)
    assert (match.option, match.rule) == (option, rule)


def test_the_table_has_every_rule() -> None:
    rules = {rule for *_, rule in CASES}
    deciding = {"letter", "text", "letter first", "answer is", "option", "yes or no", "interval", "bracketed letter"}
    assert rules == deciding | {"mention", "last sentence"} | set(UNPARSED)
    assert len(CASES) >= 58
    assert set(REFUSED) < set(UNPARSED)
    for _, _, option, rule in CASES:
        assert (option is None) == (rule in UNPARSED)


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
SETS = (PETS, NESTED, LABELS, COUNTS, YES_NO, TIMES, CHINESE, RUSSIAN, HINDI, FRENCH)
OWN = ("electric piano", "brass", "glass bell", "plucked bass", "reed", "organ", "wooden bars", "breathy pad")


@pytest.mark.parametrize("style", STYLES)
def test_any_option_is_found_in_every_style(style: str) -> None:
    for options in (*SETS, *itertools.permutations(OWN, 2), OWN):
        for place, text in enumerate(options):
            answer = STYLES[style](LETTERS[place], text)
            assert match_answer(answer, options).option == place, (answer, options)


def test_order_of_options_moves_with_the_text() -> None:
    for options in itertools.permutations(NESTED):
        assert match_answer("It is the car horn.", options).option == options.index("car horn")


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


def test_random_words_are_hardly_ever_parsed() -> None:
    rng, vocabulary = random.Random(0), COMMON.split()
    for options in SETS[:6]:
        parsed = 0
        for _ in range(2000):
            words = [rng.choice(vocabulary) for _ in range(rng.randint(1, 30))]
            marks = [rng.choice(["", "", "", "", ",", "."]) for _ in words]
            text = " ".join(word + mark for word, mark in zip(words, marks, strict=True))
            parsed += match_answer(text[:1].upper() + text[1:], options).option is not None
        assert parsed <= 0.01 * 2000, (options, parsed)


def test_random_characters_raise_nothing() -> None:
    rng = random.Random(1)
    alphabet = "aAbB12.,:()[]{}<>*_`$\\\"'/-–\n\t 狗雨дकाé\ud800\u200b\u0301Ⅳ½🙂"
    pieces = ["<think>", "</think>", "<answer>", "\\boxed{", "answer is", "none of the", "not", "dog", "2.0", *alphabet]
    for _ in range(3000):
        text = "".join(rng.choice(pieces) for _ in range(rng.randint(0, 40)))
        for options in (PETS, TIMES, YES_NO, ("…", "🙂"), ("a", "A dog", "dog")):
            match = match_answer(text, options)
            assert (match.option is None) == (match.rule in UNPARSED)


def test_options_that_differ_only_in_what_is_folded_are_told_apart_by_letter_and_by_their_own_text() -> None:
    options = ("dog", "A dog", "2", "two")
    assert [match_answer(text, options).option for text in options] == [0, 1, 2, 3]
    assert [match_answer(letter, options).option for letter in "ABCD"] == [0, 1, 2, 3]
    assert match_answer("It is the dog.", options).rule == "several"


def test_a_long_answer_is_read_in_time() -> None:
    """A loop of a model that does not stop; a bad pattern would take minutes."""
    for piece in ("The dog or the cat, ", "( ( (", "no no ", "A. dog ", "answer is ", "\\boxed{", "1.5 "):
        assert match_answer(piece * (20_000 // len(piece)), PETS).rule
    # A blank that a model does not stop drawing: with a pattern that looks at each stretch anew, minutes.
    for text in ("_" * 200_000, f"a{'_' * 200_000}b", f"dog {'a_' * 100_000}a"):
        assert match_answer(text, PETS).rule
