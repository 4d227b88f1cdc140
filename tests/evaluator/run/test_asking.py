"""How answers are taken: by what is written or by likelihoods, under several orders, stored as they come in."""

from __future__ import annotations

import json
import math
import shutil

import numpy as np
import pytest

from audio_compositionality.encoders.base import ClipError, GivenClip, ModelCard, ModelError
from audio_compositionality.encoders.controls import CONTROLS, Controlled
from audio_compositionality.evaluator.results.result import Result
from audio_compositionality.evaluator.run.cache import CacheError
from audio_compositionality.evaluator.run.evaluate import evaluate_models, with_long_answers
from audio_compositionality.evaluator.run.opened import open_task
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.support.errors import InputError
from audio_compositionality.tasks.answerers.chooser import certain
from audio_compositionality.tasks.answerers.symbolic import Oracle
from audio_compositionality.tasks.answerers.text_only import First
from audio_compositionality.tasks.base import TaskError

from .toys import Hears, Likely, Orders, Questions, Tells

OPTIONS = RunOptions(progress=False)


def scored(model, settings=None, options=OPTIONS, data=None):
    task = Orders()
    evaluate_models([model], data or Questions(), [task], options.changed(settings=settings or {}))
    return task.answers


@pytest.mark.parametrize("by", ["letters", "options"])
def test_the_likeliest_option_is_the_answer_in_whatever_order(by, tmp_path):
    model, options = Likely(), OPTIONS.changed(cache=tmp_path)
    answers = scored(model, {"scoring": by, "orders": 2}, options)
    numbers = [int(row["id"][1:]) for row in Questions().of("test")]
    assert answers == [letter for number in numbers for letter in (("", "") if number % 3 == 0 else ("A", "B"))]
    assert {how for how, _ in model.calls} == {by}
    (path,) = tmp_path.rglob("0*.json")
    facts = json.loads(path.read_text())["facts"]
    expected = [pair for n in numbers for pair in ([[None] * 2] * 2 if n % 3 == 0 else [[-0.5, None], [None, -0.5]])]
    assert [one["log_likelihoods"] for one in facts] == expected


def test_answers_of_one_way_to_ask_are_not_taken_for_those_of_another(tmp_path):
    model, options = Likely(), OPTIONS.changed(cache=tmp_path, batch_size=64)
    hows = [{"scoring": by, "orders": orders} for by in ("generate", "letters", "options") for orders in (1, 2)]
    first = [scored(model, how, options) for how in hows]
    assert len([*tmp_path.rglob("key.json")]) == len(model.calls) == 6
    assert [scored(model, how, options) for how in hows] == first
    assert len(model.calls) == 6


def test_answers_about_rows_that_are_drawn_otherwise_are_not_reused(tmp_path):
    """A draw that changes without its version leaves the fingerprint, the ids and the prompts as they were."""
    first, other, options = Questions(), Questions(), OPTIONS.changed(cache=tmp_path)
    other.rows_digest = "0" * 64
    other.sound = lambda number: (np.full(8, (number + 1) / 1000, np.float32), 8)
    before = scored(Hears(), options=options, data=first)
    assert scored(Hears(), options=options, data=other) == [str(int(text) + 1) for text in before]


def test_who_tells_no_likelihoods_is_refused_before_anything_is_asked_or_left_out():
    words = r"'hears' computes no likelihoods of options .*letters: score its written answers"
    with pytest.raises(TaskError, match=words):
        scored(Hears(), {"scoring": "letters"})
    with pytest.raises(TaskError, match="computes no likelihoods"):
        scored(Controlled(Hears(), CONTROLS["without-audio"]), {"scoring": "options"})
    options = OPTIONS.changed(settings={"scoring": "letters"})
    with pytest.warns(UserWarning, match=f"left out: {words}"):
        results = evaluate_models([Hears(), Likely()], Questions(), [Orders()], options, leave_out=True)
    assert [result.model.id for result in results] == ["likely"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda options: [[-1.0] * 2] * (len(options) + 1), "no list of scores for each of"),
        (lambda options: [[-1.0] * 3 for _ in options], "gave 3 scores for 2 options"),
        (lambda options: [[0.5, -1.0] for _ in options], r"the log-likelihood 0\.5; it must be 0 or less"),
        (lambda options: None, "no list of scores"),
    ],
)
def test_scores_that_are_none_are_refused(given, words):
    class Wrong(Likely):
        def score_options(self, clips, prompts, options, by):
            return given(options)

    with pytest.raises(ModelError, match=words):
        scored(Wrong(), {"scoring": "letters"})


def test_answerers_that_take_letters_do_so_by_any_scoring():
    prompts, options = ["What?\nA. x\nB. y\nC. z\nAnswer with one letter only."] * 2, [["x", "y", "z"]] * 2
    assert First().score_options([[None]] * 2, prompts, options, "options") == [[0, -math.inf, -math.inf]] * 2
    scores = certain(["B", "unparsed"], [["x", "y"], ["x", "y", "z"]])
    assert scores[0] == [-math.inf, 0]
    assert np.isnan(scores[1]).all()
    events = [{"onset": 1.0, "offset": 4.0, "label": "organ"}, {"onset": 2.0, "offset": 3.0, "label": "pad"}]
    row = {"id": "a", "recording": "a", "group": "a", "source": "scenes", "start": 0.0, "duration": 10.0}
    longest = {**row, "resolution": 0.01, "events": events}
    prompt = "Which of these is heard longest in total?\nA. pad\nB. organ\nAnswer with one letter only."
    assert Oracle().score_options(
        [[GivenClip(np.zeros(0, np.float32), 8, longest)]], [prompt], [["pad", "organ"]], "letters"
    ) == [[-math.inf, 0]]


@pytest.mark.filterwarnings("ignore:.*answers were cut")
class TestTold:
    def test_why_an_answer_ended_is_kept_and_those_that_were_cut_are_counted(self, tmp_path):
        model = Tells()
        for options in (OPTIONS.changed(cache=tmp_path), OPTIONS):
            with pytest.warns(UserWarning, match="'tells': 4 of 8 answers were cut at the limit of tokens"):
                (result,) = evaluate_models([model], Questions(), [Orders()], options)
            assert result.cut_answers == 4
            assert Result.loads(result.dumps()) == result
        assert evaluate_models([Hears()], Questions(), [Orders()], OPTIONS)[0].cut_answers is None
        (path,) = tmp_path.rglob("0*.json")
        assert json.loads(path.read_text())["facts"] == [{}, {"finish_reason": "length"}] * 4

    def test_no_answer_that_was_there_before_a_failure_is_asked_for_again(self, tmp_path):
        """Of 200 questions in calls of 24, with files of 16, two of which are finished together."""
        data, options = Questions(asked=200), OPTIONS.changed(cache=tmp_path)
        broken = Tells(breaks_at=107)
        for asked in (broken, Controlled(broken, CONTROLS["without-audio"])):
            broken.answered = 0
            with pytest.raises(ModelError, match="the server is down"):
                scored(asked, options=options, data=data)
        assert len([*tmp_path.rglob("0*.json")]) == 12
        (begun,) = (tmp_path / "tells").rglob("*.begun")
        # The last line is torn, and another is of other answers.
        begun.write_bytes(begun.read_bytes()[:-9] + b'\n["0", "[0, \\"B\\", {}]"]\n')
        # As a process leaves it that is killed when it has finished a shard, and not yet deleted what it had begun.
        shutil.copy(begun, min((tmp_path / "tells").rglob("0*.json")).with_suffix(".begun"))
        none = options.changed(max_questions=0)
        whole = Tells()
        with pytest.warns(UserWarning, match=r"\.begun is left out, and its question is asked again") as told:
            assert len(scored(whole, options=none, data=data)) == 200
        assert {str(one.message).rpartition(": ")[2] for one in told} >= {"its digest does not match its text"}
        assert whole.answered == 200 - 106
        assert not [*(tmp_path / "tells").rglob("*.begun")]
        again = Tells()
        scored(again, options=none, data=data)
        assert again.calls == []
        forced = Tells(breaks_at=3)
        with pytest.raises(ModelError):
            scored(forced, options=options.changed(force=True), data=data)
        rest = Tells()
        scored(rest, options=options, data=data)
        assert rest.answered == 197

    def test_a_folder_in_the_place_of_answers_that_are_there_is_named(self, tmp_path):
        options = OPTIONS.changed(cache=tmp_path)
        with pytest.raises(ModelError):
            scored(Tells(breaks_at=3), options=options, data=Questions())
        (begun,) = tmp_path.rglob("*.begun")
        begun.unlink()
        begun.mkdir()
        with pytest.raises(CacheError, match=r"\.begun cannot be used as a file of earlier answers: .*; remove"):
            scored(Tells(), options=options, data=Questions())

    def test_what_is_kept_does_not_count_among_the_most_questions(self, tmp_path):
        class Behind(Tells):
            device = "server"

        options = OPTIONS.changed(cache=tmp_path)
        with pytest.raises(ModelError):
            scored(Behind(breaks_at=5), options=options)
        with pytest.raises(InputError, match="asked 3 questions"):
            scored(Behind(), options=options.changed(max_questions=2))
        assert len(scored(Behind(), options=options.changed(max_questions=3))) == 8


def test_a_model_that_scores_in_some_ways_is_refused_for_others_before_it_is_asked():
    class Limited(Likely):
        scorings = ("letters",)

    model = Limited()
    for asked in (model, Controlled(model, CONTROLS["without-audio"])):
        with pytest.raises(TaskError, match=r"scored by options.*valid choices of scoring are generate, letters"):
            scored(asked, {"scoring": "options"})
    assert model.calls == []
    assert len(scored(model, {"scoring": "letters"})) == 8


@pytest.mark.parametrize(("size", "calls"), [(None, [24, 16]), (64, [24, 16]), (5, [5] * 8)])
@pytest.mark.filterwarnings("ignore:.*answers were cut")
def test_a_model_that_forms_batches_is_given_what_it_wants_or_fewer_where_they_are_asked_for(size, calls):
    model = Tells()
    scored(model, options=OPTIONS.changed(batch_size=size), data=Questions(asked=40))
    assert model.calls == calls
    assert Controlled(model, CONTROLS["noise-audio"]).questions_per_call == 24


def test_a_clip_that_a_model_refuses_is_named_or_left_out():
    class Picky(Hears):
        def answer(self, clips, prompts):
            for row, (clip,) in enumerate(clips):
                if round(1000 * clip.waveform[0]) in (36, 38):
                    raise ClipError("it is too long", row)
            return super().answer(clips, prompts)

    with pytest.raises(ClipError, match="clip 'r36/audio': it is too long; --skip-invalid leaves it out"):
        scored(Picky())
    answers = scored(Picky(), options=OPTIONS.changed(skip_invalid=True))
    assert answers == ["35", "37", "39", "40", "41", "42"]


class Lasting(Questions):
    """Rows that say how long their clips are, the first of them another time than the others."""

    def __init__(self, seconds=1.0, first=1.0):
        super().__init__()
        tested = self.of("test")
        for row in tested:
            row["duration"] = first if row is tested[0] else seconds


class Short(Hears):
    """Hears less than a clip of `Questions`, which lasts a second."""

    card = ModelCard("short", "v1", 8, None)

    def __init__(self, limit_seconds=0.5):
        self.limit_seconds = limit_seconds


class TestTooLong:
    @pytest.mark.parametrize("of", [lambda model: model, lambda model: Controlled(model, CONTROLS["without-audio"])])
    def test_a_clip_longer_than_a_model_hears_is_refused_before_anybody_is_asked(self, of):
        earlier, short = Short(None), Short()
        with pytest.raises(
            InputError, match=r"short' takes 0\.5 s at most, and 8 of 8 .* longer clips, such as 'r\d+/audio' of 1 s"
        ):
            evaluate_models([earlier, of(short)], Lasting(), [Orders()], OPTIONS, leave_out=True)
        assert earlier.asked == short.asked == 0

    def test_what_fits_in_truth_or_is_answered_already_is_not_refused(self, tmp_path):
        options = OPTIONS.changed(cache=tmp_path)
        assert len(scored(Short(1.0), data=Lasting(), options=options)) == 8
        assert len(scored(Short(), data=Lasting(), options=options)) == 8
        # A row that is wrong about its clip, and rows that say nothing.
        assert len(scored(Short(1.0), data=Lasting(2.0))) == len(scored(Short(), data=Questions())) == 8

    def test_some_may_be_left_out_but_not_all(self):
        skipping = OPTIONS.changed(skip_invalid=True)
        assert len(scored(Short(), data=Lasting(first=0.3), options=skipping)) == 8
        with pytest.raises(InputError, match=r"8 of 8 .*: give shorter ones\. Nothing was run"):
            scored(Short(), data=Lasting(), options=skipping)
        with pytest.raises(InputError, match=r"7 of 8 .*: give shorter ones, or leave them out \(--skip-invalid\)"):
            scored(Short(), data=Lasting(first=0.3))


class Behind(Hears):
    """A model behind a server."""

    device = "server"
    card = ModelCard("behind", "v1", 8, None)


class TestMostQuestions:
    def test_more_are_refused_before_the_first(self):
        model = Behind()
        for asked in (model, Controlled(model, CONTROLS["without-audio"])):
            with pytest.raises(InputError, match=r"would be asked 16 questions, but at most 15 .*max_questions"):
                scored(asked, {"orders": 2}, OPTIONS.changed(max_questions=15))
        assert model.asked == 0
        assert len(scored(model, {"orders": 2}, OPTIONS.changed(max_questions=16))) == 16

    def test_answers_in_the_store_and_models_of_this_machine_do_not_count(self, tmp_path):
        options = OPTIONS.changed(cache=tmp_path)
        scored(Behind(), options=options)
        none = options.changed(max_questions=0)
        assert len(scored(Behind(), options=none)) == len(scored(Hears(), options=none)) == 8
        with pytest.raises(InputError, match="asked 8 questions"):
            scored(Behind(), options=none.changed(force=True))


class Long(Hears):
    def __init__(self, new_tokens=16):
        self.new_tokens = new_tokens
        self.card = ModelCard(f"long@tokens={new_tokens}", "v1", 8, None)

    def with_new_tokens(self, count):
        return Long(count)


def test_models_may_answer_as_long_as_a_task_needs():
    for model in (Long(), Controlled(Long(), CONTROLS["without-audio"])):
        for long, id in ((False, model.card.id), (True, model.card.id.replace("16", "1024"))):
            (result,) = evaluate_models([model], Questions(), [Orders()], OPTIONS.changed(settings={"long": long}))
            assert result.model.id == id
    already, unlimited = Long(4096), Hears()
    opened = [open_task(Orders(), Questions(), {"long": True})]
    assert with_long_answers([already, unlimited], opened) == [already, unlimited]
