"""Questions about recordings of a user's own with strong labels, from files in their formats to rows with sound."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recorded import annotated_data
from audio_compositionality.dataset_builder.sounds.annotations import AnnotationError
from audio_compositionality.dataset_builder.sounds.formats.parsing import ReadOptions
from audio_compositionality.dataset_builder.sounds.recordings import SoundError
from audio_compositionality.dataset_builder.sounds.strong_labels import open_annotated
from audio_compositionality.dataset_builder.texts import question_tasks as kinds
from audio_compositionality.dataset_builder.texts.label_questions import AnnotatedQuestions, AnnotatedSpec
from audio_compositionality.dataset_builder.texts.question_controls import LeakError
from audio_compositionality.dataset_builder.texts.question_tasks import Draft
from audio_compositionality.dataset_builder.texts.questions import QuestionError, annotation_of, question_of
from audio_compositionality.support.errors import InputError

from .answer_check import answer_fault
from .domestic import domestic
from .labelled import (
    DOMESTIC_QUESTIONS,
    DOMESTIC_ROWS,
    sound,
    write_annotations,
    write_audiotime,
    write_domestic,
    write_soft,
    write_streets,
)

RECIPE = "polybench"
FEW = {"train": 0.0, "least_clips": 1}
FORMATS = {
    "desed": (write_domestic, {}),
    "maestro": (write_streets, {"ask": ("concurrency",)}),
    "maestro-soft": (write_soft, {"ask": ("concurrency",)}),
}


@pytest.fixture
def opened(tmp_path):
    return open_annotated(*write_domestic(tmp_path / "desed"))


def questions_of(recordings, **changes):
    return AnnotatedQuestions(AnnotatedSpec(recordings=recordings, **{**FEW, **changes}))


class TestExcerpts:
    def test_desed_by_hand(self, opened):
        rows = questions_of(opened).rows
        assert Counter(f"{row['task']}/{row['variant']}" for row in rows) == DOMESTIC_QUESTIONS
        answers = {(row["recording"], row["answer"]) for row in rows if row["task"] == "classification"}
        assert {("Y08", "alarm bell ringing"), ("Y09", "cat"), ("Y10", "frying")} < answers
        assert {row["recording"] for row in rows if row["anchor"] == "Dog" and row["polarity"]} >= {"Y03", "Y05"}
        assert {row["source"] for row in rows} == {"desed"}

    def test_maestro_by_hand(self, tmp_path):
        recordings = open_annotated(*write_streets(tmp_path))
        rendering = questions_of(recordings, ask=("concurrency",))
        assert [(row["anchor"], row["start"], row["duration"], row["resolution"]) for row in rendering.rows] == [
            ("people talking", 0.0, 25.0, 1.0),
            ("people talking", 25.0, 25.0, 1.0),
        ]
        # The second window is the second half of the file, the mean of its channels.
        samples, rate = soundfile.read(tmp_path / "audio" / "cafe_00.wav", dtype="int16")
        (clip,) = rendering.clips(1)
        assert (rendering.rate(1), rate, len(clip)) == (11_025, 11_025, 25 * 11_025)
        assert np.abs(clip - samples[25 * rate :].mean(axis=1)).max() <= 0.5
        assert rendering.rows[1]["events"] == [{"onset": 2.0, "offset": 5.0, "label": "people talking"}]

    def test_soft_labels_by_hand(self, tmp_path):
        # Of the second recording nobody knows whether anything overlaps the car.
        recordings = open_annotated(*write_soft(tmp_path))
        rows = questions_of(recordings, ask=("concurrency",)).rows
        assert sorted((row["anchor"], row["recording"]) for row in rows) == [("car", "street_01"), ("car", "street_03")]


class TestWholeWay:
    @pytest.mark.parametrize("format", FORMATS)
    def test_the_second_algorithm_agrees_and_built_and_opened_again_it_is_the_same(self, tmp_path, format):
        write, changes = FORMATS[format]
        recordings = open_annotated(*write(tmp_path / "in"))
        assert recordings.format == format
        by_key = {annotation.key: annotation for annotation in recordings.annotations}
        data = annotated_data(recordings, recipes=[RECIPE], changes={**FEW, **changes})
        for row in data.configuration(RECIPE).rows:
            question = question_of(row)
            assert answer_fault(question, by_key[row["recording"], row["start"]]) is None
            assert answer_fault(question, annotation_of(row)) is None
        stored = open_data(build_dataset(data, tmp_path / "built", progress=False))
        rendered, built = data.configuration(RECIPE), stored.configuration(RECIPE)
        assert built.fingerprint == rendered.fingerprint
        assert list(built.rows) == list(rendered.rows)
        for one, other in zip(rendered.clips(), built.clips(), strict=True):
            assert (one.id, one.sample_rate) == (other.id, other.sample_rate)
            assert np.array_equal(one.waveform, other.waveform)
        card = (tmp_path / "built" / "README.md").read_text("utf-8")
        assert "Balance of the questions" in card
        assert "Mixed concurrency" not in card

    def test_clips_have_their_own_lengths_and_rates(self, tmp_path):
        labels, audio = write_domestic(tmp_path / "in")
        sound(audio / "validation" / "Y03.wav", 9.95, rate=16_000)
        data = annotated_data(open_annotated(labels, audio), recipes=[RECIPE], changes=FEW)
        stored = open_data(build_dataset(data, tmp_path / "built", progress=False)).configuration(RECIPE)
        shapes = {
            (row["recording"] == "Y03", clip.sample_rate, len(clip.waveform))
            for configuration in (data.configuration(RECIPE), stored)
            for row, clip in zip(configuration.rows, configuration.clips(), strict=True)
        }
        assert shapes == {(True, 16_000, 159_200), (False, 8_000, 80_000)}

    @pytest.mark.slow
    def test_a_build_with_a_leak_fails_and_names_it(self, tmp_path, monkeypatch):
        counting = kinds.kind_named("counting")

        def around(facts, rng, settings):
            drafts = []
            for draft in counting.drafts(facts, rng, settings):
                first = max(1, int(draft.answer) - 1)
                window = tuple(str(count) for count in range(first, first + 4))
                drafts.append(Draft(draft.fact, window, draft.answer, draft.unit))
            return drafts

        monkeypatch.setitem(kinds.KINDS, counting.name, replace(counting, drafts=around))
        recordings = open_annotated(*write_annotations(domestic(200), tmp_path / "in"))
        changes = {"ask": ("counting", "concurrency"), "least_clips": 8}
        data = annotated_data(recordings, recipes=[RECIPE], changes=changes)
        with pytest.raises(
            LeakError, match=r"counting/kinds of desed \(test\): a text-only classifier answers .*the answer's rank"
        ):
            build_dataset(data, tmp_path / "built", progress=False)
        assert not list((tmp_path / "built").rglob("*.parquet"))


class TestFingerprint:
    def test_it_names_labels_sound_settings_and_nothing_else(self, tmp_path):
        first = open_annotated(*write_domestic(tmp_path / "one"))
        labels, audio = write_domestic(tmp_path / "other" / "place")
        (audio / "validation" / "Y03.wav").rename(audio / "Y03.wav")
        assert open_annotated(labels, audio).fingerprint == first.fingerprint
        changed = [row if row[1:] != (1, 2.5, "Dog") else (row[0], 1, 2.4, "Dog") for row in DOMESTIC_ROWS]
        assert open_annotated(*write_domestic(tmp_path / "labels", changed)).fingerprint != first.fingerprint
        labels, audio = write_domestic(tmp_path / "sound")
        sound(audio / "validation" / "Y03.wav", 10.0, seed=1)
        assert open_annotated(labels, audio).fingerprint != first.fingerprint
        every = [AnnotatedSpec(recordings=first, **changes).values() for changes in ({}, {"seed": 1}, {"train": 0.5})]
        assert len({str(values) for values in every}) == 3

    def test_a_file_that_changes_behind_it_is_refused(self, opened, tmp_path):
        rendering = questions_of(opened)
        assert rendering.clips(0)
        for path in (tmp_path / "desed" / "audio").rglob("*.wav"):
            sound(path, 10.0, seed=2)
        with pytest.raises(SoundError, match="has changed since it was opened"):
            rendering.clips(0)


class TestRefused:
    def test_all_sound_that_is_missing_or_short_is_told_at_once(self, tmp_path):
        labels, audio = write_domestic(tmp_path)
        sounds = audio / "validation"
        (sounds / "Y01.wav").unlink()
        sound(sounds / "Y02.wav", 0.0)
        sound(sounds / "Y03.wav", 9.8)
        sound(sounds / "Y04.wav", 9.92)
        with pytest.raises(AnnotationError) as raised:
            open_annotated(labels, audio)
        text = str(raised.value)
        assert "3 problems" in text
        assert "Y02.wav: is empty" in text
        assert "Y03.wav: lasts 9.80 s, the labels of 'Y03' 10.00 s" in text
        assert "has no sound of 1 of 9 recordings: Y01" in text

    def test_sound_that_cannot_be_that_of_its_labels(self, tmp_path):
        labels, audio = write_domestic(tmp_path)
        soundfile.write(audio / "validation" / "Y01.wav", np.zeros(80_000), 8_000)
        values = np.full(80_000, np.nan, np.float32)
        soundfile.write(audio / "validation" / "Y02.wav", values, 8_000, subtype="FLOAT")
        with pytest.raises(AnnotationError, match=r"Y01.wav: is silent(.|\n)*Y02.wav: has values that are not finite"):
            open_annotated(labels, audio)
        labels, audio = write_domestic(tmp_path / "again")
        (audio / "validation" / "Y02.wav").write_bytes((audio / "validation" / "Y01.wav").read_bytes())
        with pytest.raises(AnnotationError, match="Y02: has the same sound as 'Y01'; leave one out"):
            open_annotated(labels, audio)

    def test_durations_are_those_of_the_sound_where_nothing_states_them(self, tmp_path):
        labels, audio = write_domestic(tmp_path)
        stated = open_annotated(labels, audio).fingerprint
        (tmp_path / "validation_durations.tsv").unlink()
        assert open_annotated(labels, audio).fingerprint == stated
        (audio / "validation" / "Y01.wav").unlink()
        with pytest.raises(AnnotationError, match=r"1 of 10 recordings have no file in the folder \(Y01\)"):
            open_annotated(labels, audio)

    def test_what_cannot_be_asked_counts_clips(self, tmp_path):
        # Two sounds overlap the dog in one clip: it is one clip of which each of them is the answer.
        events = [(f"Y{clip}.wav", 1, 5, label) for clip in range(1, 4) for label in ("Dog", "Cat", "Speech")]
        labels, audio = write_domestic(tmp_path, events)
        rendering = questions_of(open_annotated(labels, audio, "desed"), ask=("classification",))
        with pytest.raises(QuestionError, match=r"3 of 3 clips qualify \(Cat in 3, Dog in 3, Speech in 3\)"):
            _ = rendering.rows

    def test_nothing_to_ask(self, tmp_path):
        labels, audio = write_domestic(tmp_path, [row for row in DOMESTIC_ROWS if row[0] in {"Y01.wav", "Y03.wav"}])
        with pytest.raises(
            QuestionError, match="no questions are possible about the 2 clips of the split test"
        ) as raised:
            _ = questions_of(open_annotated(labels, audio), least_clips=10, ask=("counting", "detection")).rows
        text = str(raised.value)
        assert "counting/kinds needs two counts with 10 clips each; 2 of 2 clips qualify (1 in 1, 2 in 1)" in text
        assert "detection/first needs four clips" in text
        rendering = questions_of(open_annotated(labels, audio), ask=("counting", "detection"))
        (note,) = rendering.notes()
        assert note.startswith("no questions in the split test: detection/first needs four clips")

    def test_settings_and_places(self, opened, tmp_path):
        for ask, message in (
            (("counting/all",), "has no variant 'all'"),
            (("counting", "counting/kinds"), "each once"),
            ((), "one or more kinds of questions"),
        ):
            with pytest.raises(InputError, match=message):
                AnnotatedSpec(recordings=opened, ask=ask)
        labels, audio = write_domestic(tmp_path)
        for arguments, message in (
            (([], audio), "there are no label files"),
            ((labels, tmp_path / "none"), "which does not exist"),
            ((labels, audio, "dessed"), "there is no label format 'dessed'; did you mean 'desed'"),
            (([labels, labels], audio), "labels of Y01, Y02, Y03, Y04, Y05 and 5 more are in validation.tsv as well"),
        ):
            with pytest.raises(DatasetError if len(arguments) == 3 or message[0] == "l" else InputError, match=message):
                open_annotated(*arguments)
        for window in (0, float("nan"), 601):
            with pytest.raises(InputError, match="windows last"):
                open_annotated(labels, audio, window=window)


def test_related_labels_do_not_meet(tmp_path):
    labels, audio = write_domestic(tmp_path)
    entries = [{"id": "/m/1", "name": "Dog", "child_ids": ["/m/2"]}, {"id": "/m/2", "name": "Speech", "child_ids": []}]
    ontology = tmp_path / "tree.json"
    ontology.write_text(json.dumps(entries))
    recordings = open_annotated(labels, audio, options=ReadOptions(names=ontology))
    assert {label for label, related in recordings.related.items() if related} == {"Dog", "Speech"}
    rows = questions_of(recordings, ask=("counting", "concurrency")).rows
    assert not {"Y01", "Y02", "Y05"} & {row["recording"] for row in rows}
    other = open_annotated(labels, audio)
    assert other.fingerprint != recordings.fingerprint
    ontology.write_text(json.dumps([{**entry, "name": f"no {entry['name']}"} for entry in entries]))
    with pytest.raises(AnnotationError, match=r"tree.json has none of the labels, which are Alarm bell ringing, Cat"):
        open_annotated(labels, audio, options=ReadOptions(names=ontology))


def test_segments_of_audioset_last_as_long_as_their_sound(tmp_path):
    labels = tmp_path / "strong.tsv"
    labels.write_text("abc_0\t0\t2\t/m/1\nabc_30000\t1\t3\t/m/1\n")
    (tmp_path / "class_labels.tsv").write_text("/m/1\tDog\n")
    sound(tmp_path / "audio" / "Yabc_0.wav", 10.0)
    # The last segment of a video is shorter.
    sound(tmp_path / "audio" / "Yabc_30000.wav", 6.5)
    with pytest.warns(UserWarning, match=r"there is no ontology.json"):
        recordings = open_annotated(labels, tmp_path / "audio")
    found = [(one.recording, one.duration, one.split_group) for one in recordings.annotations]
    assert (recordings.format, found) == ("audioset-strong", [("abc_0", 10.0, "abc"), ("abc_30000", 6.5, "abc")])


@pytest.fixture
def files(tmp_path):
    return (*write_domestic(tmp_path / "desed"), *write_audiotime(tmp_path / "audiotime"))


def mixed(files):
    labels, audio, negatives, negatives_audio = files
    return open_annotated(labels, audio, negatives=[negatives], negatives_audio=negatives_audio)


def test_what_does_not_overlap_is_asked_about_audiotime_alone(files):
    rows = [row for row in questions_of(mixed(files)).rows if row["task"] == "concurrency"]
    true = Counter(
        (
            row["anchor"],
            row["recording"].startswith("audiotime/"),
            (row["polarity"] == "overlap") == (row["answer"] == "Yes"),
        )
        for row in rows
    )
    # Dog is alone in two clips of AudioTime and overlaps in five others, speech in two and three: two each.
    assert true == {(anchor, negative, not negative): 2 for anchor in ("Dog", "Speech") for negative in (False, True)}
    negatives = {row["recording"] for row in rows if row["recording"].startswith("audiotime/")}
    assert negatives <= {"audiotime/syn_0", "audiotime/syn_1", "audiotime/syn_2"}
    # Of either answer there are as many, in both polarities: no constant text is right more often.
    assert len({count for count in Counter(row["answer"] for row in rows).values()}) == 1
    assert AnnotatedSpec(recordings=mixed(files)).values()["negatives"] == "audiotime"


def test_all_other_questions_are_those_without_negatives(files):
    plain = questions_of(open_annotated(*files[:2])).rows
    with_negatives = questions_of(mixed(files)).rows
    for task in {kind.partition("/")[0] for kind in DOMESTIC_QUESTIONS} - {"concurrency"}:
        asked = [[row["question"], row["answer"], row["recording"]] for row in with_negatives if row["task"] == task]
        assert asked == [[row["question"], row["answer"], row["recording"]] for row in plain if row["task"] == task]


def test_the_card_warns(files, tmp_path):
    built = build_dataset(annotated_data(mixed(files), changes=FEW), tmp_path / "built", progress=False)
    card = (built / "README.md").read_text()
    assert "**Mixed concurrency**" in card
    assert "recognising the data set solves them" in " ".join(card.split())


def test_what_cannot_be_negatives_is_refused(files, tmp_path):
    labels, audio, negatives, _ = files
    with pytest.raises(InputError, match="give both or neither"):
        open_annotated(labels, audio, negatives=[negatives])
    with pytest.raises(InputError, match="which does not exist"):
        open_annotated(labels, audio, negatives=[negatives], negatives_audio=tmp_path / "nowhere")
    other, other_audio = write_audiotime(tmp_path / "other", {"a.wav": {"Church bell": [[1.0, 2.0]]}})
    with pytest.raises(AnnotationError, match=r"no AudioTime clip has a label of the recordings.*Church bell"):
        open_annotated(labels, audio, negatives=[other], negatives_audio=other_audio)
