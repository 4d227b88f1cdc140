"""Each format, from a few rows written by hand in it, and what is wrong with files of people."""

import json

import numpy as np
import pytest
import soundfile

from audio_compositionality.dataset_builder.sounds.annotations import Annotation, AnnotationError, LabelledEvent
from audio_compositionality.dataset_builder.sounds.formats import _registry as formats
from audio_compositionality.dataset_builder.sounds.formats import (
    list_formats,
    load_reader,
    read_annotations,
    register_format,
)
from audio_compositionality.dataset_builder.sounds.formats.audioset_strong import related_labels
from audio_compositionality.dataset_builder.sounds.formats.parsing import ReadOptions
from audio_compositionality.dataset_builder.sounds.strong_labels import durations_in, sound_paths, windows
from audio_compositionality.support.errors import InputError


def rows(*lines):
    return "".join("\t".join(map(str, line)) + "\n" for line in lines)


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def events_of(annotation):
    return [(event.onset, event.offset, event.label) for event in annotation.events]


STRONG = ("filename", "onset", "offset", "event_label")
DURATIONS = ("filename", "duration")


@pytest.fixture
def desed(tmp_path):
    def make(*lines, durations=((("Y1.wav", 10.0)), ("Y2.wav", 9.95))):
        write(tmp_path, "validation_durations.tsv", rows(DURATIONS, *durations))
        return write(tmp_path, "validation.tsv", rows(STRONG, *lines))

    return make


class TestDesed:
    def test_events_and_a_clip_without_any(self, desed):
        path = desed(
            ("Y1.wav", "2.345", "5.0", "Speech"),
            ("Y1.wav", "0.037", "2.061", "Alarm_bell_ringing"),
            ("Y1.wav", "2.3", "4", "Speech"),
            ("Y2.wav", "", "", ""),
        )
        one, two = read_annotations(path, "desed")
        assert (one.recording, one.duration, one.resolution, one.source_name) == ("Y1", 10.0, 0.0, "desed")
        assert events_of(one) == [(0.037, 2.061, "Alarm bell ringing"), (2.3, 4.0, "Speech"), (2.345, 5.0, "Speech")]
        assert (two.recording, two.duration, two.events) == ("Y2", 9.95, ())

    def test_rows_may_end_early(self, tmp_path):
        # As of editors that strip the tabs at the end of a row.
        path = write(tmp_path, "a.tsv", "filename\tonset\toffset\tevent_label\nY1.wav\nY2.wav\t0\t1\tDog\n")
        one, two = read_annotations(path, "desed", ReadOptions(durations={"Y1.wav": 10, "Y2": 10}))
        assert (one.events, events_of(two)) == ((), [(0.0, 1.0, "Dog")])

    def test_what_no_table_has_is_told_by_the_sound(self, tmp_path):
        path = write(tmp_path, "a.tsv", rows(STRONG, ("Y1.wav", 0, 1, "Dog"), ("Y2.wav", 0, 1, "Dog")))
        options = ReadOptions(durations={"Y1": 10}, sounds={"Y1": 10.001, "Y2": 9.5})
        assert [annotation.duration for annotation in read_annotations(path, "desed", options)] == [10.0, 9.5]

    def test_labels_may_end_a_little_after_the_clip(self, desed):
        one, _two = read_annotations(desed(("Y1.wav", 9, 10.08, "Dog"), ("Y2.wav", 0, 1, "Cat")), "desed")
        assert events_of(one) == [(9.0, 10.0, "Dog")]

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (("Y1.wav", 5, 5, "Dog"), r"validation.tsv:3: 'Dog' is heard from 5.0 to 5.0 s; expected is 0 ≤ onset"),
            (("Y1.wav", 6, 5, "Dog"), r"validation.tsv:3: 'Dog' is heard from 6.0 to 5.0 s"),
            (("Y1.wav", -1, 5, "Dog"), r"validation.tsv:3: 'Dog' is heard from -1.0 to 5.0 s"),
            (("Y1.wav", "nan", 5, "Dog"), r"validation.tsv:3: the onset is 'nan'; expected are seconds"),
            (("Y1.wav", 1, "inf", "Dog"), r"validation.tsv:3: the offset is 'inf'"),
            (("Y1.wav", "1,5", 5, "Dog"), r"validation.tsv:3: the onset is '1,5'"),
            (("Y1.wav", 1, 11, "Dog"), r"validation.tsv:3: 'Dog' is heard until 11 s, after the end .* at 10 s"),
            (("Y1.wav", 1, 2, ""), r"validation.tsv:3: what is heard from 1.0 to 2.0 s has no label"),
            (("", 1, 2, "Dog"), r"validation.tsv:3: names no recording"),
            (("Y1.wav", "", "", ""), r"validation.tsv:3: 'Y1' has no label here, and one in validation.tsv:2"),
            (("Y1.wav", 1, 2, "cat"), r"validation.tsv:3: the labels 'Cat' and 'cat' differ by upper and lower case"),
            (("Y9.wav", 1, 2, "Dog"), r"durations of 1 recordings are missing \(Y9\)"),
        ],
    )
    def test_what_is_wrong_is_told_with_file_and_line(self, desed, line, message):
        with pytest.raises(AnnotationError, match=message):
            read_annotations(desed(("Y1.wav", 0, 1, "Cat"), line), "desed")

    def test_all_that_is_wrong_is_told_at_once(self, desed):
        path = desed(("Y1.wav", 5, 5, "Dog"), ("Y1.wav", "x", 5, "Dog"), ("Y1.wav", 0, 1, "Dog"))
        with pytest.raises(AnnotationError) as raised:
            read_annotations(path, "desed")
        assert [line.split(":")[1] for line in str(raised.value).splitlines()[1:]] == ["2", "3"]

    def test_of_many_errors_the_first_are_shown(self, desed):
        with pytest.raises(AnnotationError, match=r"and 30 more$"):
            read_annotations(desed(*[("Y1.wav", 5, 5, "Dog")] * 50), "desed")

    def test_durations_that_contradict_each_other(self, desed):
        path = desed(("Y1.wav", 0, 1, "Dog"), durations=(("Y1.wav", 10), ("Y1.wav", 9)))
        with pytest.raises(AnnotationError, match=r"validation_durations.tsv:3: 'Y1' lasts 9 s, in a line before 10 s"):
            read_annotations(path, "desed")

    def test_no_table(self, tmp_path, desed):
        with pytest.raises(AnnotationError, match="is no file"):
            read_annotations(tmp_path / "none.tsv", "desed")
        with pytest.raises(AnnotationError, match=r"empty.tsv is empty"):
            read_annotations(write(tmp_path, "empty.tsv", "\n\n"), "desed")
        with pytest.raises(AnnotationError, match=r"a.tsv:1: the columns are a, b; there is no 'filename'"):
            read_annotations(write(tmp_path, "a.tsv", "a\tb\n1\t2\n"), "desed")
        with pytest.raises(AnnotationError, match="has no label"):
            read_annotations(desed(), "desed")
        (tmp_path / "binary.tsv").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(AnnotationError, match=r"binary.tsv cannot be read as text"):
            read_annotations(tmp_path / "binary.tsv", "desed")
        with pytest.raises(AnnotationError, match="there is no table of durations"):
            read_annotations(desed(("Y1.wav", 0, 1, "Dog")), "desed", ReadOptions(durations="nowhere.tsv"))


class TestMaestro:
    def test_seconds_that_follow_each_other_are_one_event(self, tmp_path):
        # Names end in .wav here and not in the durations; an underscore stands in some of the rows alone.
        path = write(
            tmp_path,
            "development.csv",
            rows(
                STRONG,
                ("cafe_00.wav", 0, 1, "people_talking"),
                ("cafe_00.wav", 0, 1, "cutlery and dishes"),
                ("cafe_00.wav", 1, 2, "people talking"),
                ("cafe_00.wav", 2, 3, "people talking"),
                ("cafe_00.wav", 4, 5, "people talking"),
                ("cafe_00.wav", 183, 184, "people talking"),
            ),
        )
        write(tmp_path, "development_durations.csv", rows(DURATIONS, ("cafe_00", 183.4)))
        (annotation,) = read_annotations(path, "maestro")
        assert (annotation.recording, annotation.resolution) == ("cafe_00", 1.0)
        assert events_of(annotation) == [
            (0.0, 1.0, "cutlery and dishes"),
            (0.0, 3.0, "people talking"),
            (4.0, 5.0, "people talking"),
            (183.0, 183.4, "people talking"),
        ]

    def test_soft_labels_a_file_a_recording(self, tmp_path):
        lines = [
            (0, 1, "car", 0.9), (1, 2, "car", 0.9), (2, 3, "car", 0.5), (3, 4, "car", 0.1),
            (0, 1, "wind_blowing", 0.29), (1, 2, "wind_blowing", 0.3), (4, 5, "car", 0),
        ]  # fmt: skip
        write(tmp_path, "soft/street_01.txt", rows(*lines))
        (annotation,) = read_annotations(tmp_path / "soft", "maestro-soft")
        assert (annotation.recording, annotation.duration) == ("street_01", 5.0)
        assert [(e.onset, e.offset, e.label, e.confidence) for e in annotation.events] == [
            (0.0, 2.0, "car", 0.9),
            (1.0, 2.0, "wind blowing", 0.3),
            (2.0, 3.0, "car", 0.5),
        ]

    def test_soft_labels_as_dcase_has_them(self, tmp_path):
        header = (*STRONG, "confidence")
        # Windows of 10 s that begin every second: of those that overlap, the first.
        lines = [(f"park_02-{s:03d}-{s + 1000}.wav", 1, 2, "car", 0.8) for s in (0, 100, 1000, 1100, 2000)]
        annotations = read_annotations(write(tmp_path, "soft.tsv", rows(header, *lines)), "maestro-soft")
        assert [annotation.key for annotation in annotations] == [
            ("park_02", 0.0),
            ("park_02", 10.0),
            ("park_02", 20.0),
        ]
        assert {(a.duration, a.split_group) for a in annotations} == {(10.0, "park_02")}

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            ([(0, 1, "car", 1.2)], r"a.txt:1: the confidence of 'car' is 1.2; expected is 0 to 1"),
            ([(0, 1, "car", 0.2), (0, 1, "car", 0.8)], r"a.txt:2: 'car' at 0 s of 'a' is 0.8, in a.txt:1 0.2"),
            ([(0, 1, "car")], r"a.txt:1: has 3 fields; expected are onset, offset, label, confidence"),
            ([(0, 1, "car", "")], r"a.txt:1: has no confidence"),
        ],
    )
    def test_what_is_wrong(self, tmp_path, lines, message):
        write(tmp_path, "a.txt", rows(*lines))
        with pytest.raises(AnnotationError, match=message):
            read_annotations(tmp_path, "maestro-soft")

    def test_two_files_of_a_recording(self, tmp_path):
        for folder in ("one", "two"):
            write(tmp_path, f"{folder}/a.txt", rows((0, 1, "car", 1)))
        with pytest.raises(AnnotationError, match="there are two files of 'a'"):
            read_annotations(tmp_path, "maestro-soft")


TIMESTAMP = {
    "syn_1": {"event": {"dog_barking": [[0.5, 1.25], [3, 4]], "rain": [[5.1, 9.0]]}, "caption": "Dog at 0.5 s"},
    "syn_2.wav": {"event": {"rain": [[0, 10.0]]}, "caption": ["Rain.", "Raining."]},
}


class TestAudioTime:
    def test_intervals(self, tmp_path):
        path = write(tmp_path, "timestamp_captions.json", json.dumps(TIMESTAMP))
        one, two = read_annotations(path, "audiotime")
        assert events_of(one) == [(0.5, 1.25, "dog barking"), (3.0, 4.0, "dog barking"), (5.1, 9.0, "rain")]
        assert (two.recording, two.duration, one.resolution) == ("syn_2", 10.0, 0.0)

    @pytest.mark.parametrize(
        ("part", "values", "message"),
        [
            ("duration", [1.5, 2.0], r"the part 'duration' of AudioTime says how long each sound lasts"),
            ("duration", 1.5, r"duration_captions.json:2: the part 'duration'"),
            ("frequency", [0.5, 2.0, 4.0], r"the part 'frequency' of AudioTime says when each sound begins"),
            ("other", [[1, 2, 3]], r"there are no intervals here, .*only 'ordering' and 'timestamp' do"),
        ],
    )
    def test_parts_without_intervals_are_refused_by_name(self, tmp_path, part, values, message):
        content = {"syn_1": {"event": {"dog": values}, "caption": ""}}
        path = write(tmp_path, f"{part}_captions.json", json.dumps(content, indent=1))
        with pytest.raises(AnnotationError, match=message):
            read_annotations(path, "audiotime")

    def test_what_is_wrong(self, tmp_path):
        content = {"a": {"event": {"dog": [[2, 1]]}}, "b": {"event": {"dog": [["x", 1]]}}, "c": {"caption": ""}}
        path = write(tmp_path, "timestamp.json", json.dumps(content, indent=0))
        with pytest.raises(AnnotationError) as raised:
            read_annotations(path, "audiotime")
        assert [line.split(":")[1] for line in str(raised.value).splitlines()[1:]] == ["2", "12", "22"]
        for text, message in (
            ("[1]", "holds no clips"),
            ("{", "is no JSON"),
            ("[" * 100_000, "is no JSON"),
            (f'{{"a": {{"event": {{"dog": [[0, 1{"0" * 400}]]}}}}}}', "the offset is '1000"),
        ):
            with pytest.raises(AnnotationError, match=message):
                read_annotations(write(tmp_path, "bad.json", text), "audiotime")


class TestAudioSet:
    HEADER = ("segment_id", "start_time_seconds", "end_time_seconds", "label")
    LINES = (("b0RFKhbpFJA_30000", 0, 10, "/m/03m9d0z"), ("b0RFKhbpFJA_30000", 4.753, 5.72, "/m/05zppz"))
    NAMES = 'index,mid,display_name\n0,/m/03m9d0z,Wind\n1,/m/05zppz,"Male speech, man speaking"\n'

    @pytest.mark.parametrize("header", [True, False])
    def test_ids_have_names(self, tmp_path, header):
        path = write(tmp_path, "strong.tsv", rows(*([self.HEADER] if header else []), *self.LINES))
        write(tmp_path, "class_labels_indices.csv", self.NAMES)
        (annotation,) = read_annotations(path, "audioset-strong")
        assert events_of(annotation) == [(0.0, 10.0, "Wind"), (4.753, 5.72, "Male speech, man speaking")]
        assert (annotation.recording, annotation.split_group) == ("b0RFKhbpFJA_30000", "b0RFKhbpFJA")
        assert (annotation.duration, annotation.resolution) == (10.0, 0.1)

    def test_ids_without_names_are_refused(self, tmp_path):
        path = write(tmp_path, "strong.tsv", rows(self.HEADER, *self.LINES))
        with pytest.raises(AnnotationError, match=r"strong.tsv:2: nothing says what /m/03m9d0z, /m/05zppz is called"):
            read_annotations(path, "audioset-strong")
        with pytest.raises(AnnotationError, match="there is no table of names"):
            read_annotations(path, "audioset-strong", ReadOptions(names=tmp_path / "none.tsv"))

    def test_ontology(self, tmp_path):
        entries = [
            {"id": "/m/0", "name": "Human_voice", "child_ids": ["/m/1"]},
            {"id": "/m/1", "name": "Speech", "child_ids": ["/m/05zppz", "/m/gone"]},
            {"id": "/m/05zppz", "name": "Male speech", "child_ids": []},
            {"id": "/m/03m9d0z", "name": "Wind", "child_ids": []},
        ]
        ontology = write(tmp_path, "tree.json", json.dumps(entries))
        related = related_labels(ontology)
        assert related["Human voice"] == {"Speech", "Male speech"}
        assert related["Wind"] == frozenset()
        assert related["Male speech"] == {"Human voice", "Speech"}
        path = write(tmp_path, "strong.tsv", rows(*self.LINES))
        (annotation,) = read_annotations(path, "audioset-strong", ReadOptions(names=ontology))
        assert annotation.labels == ("Male speech", "Wind")
        for entry in (5, {}, {"id": 1, "name": "a", "child_ids": []}, {"id": "1", "name": "a", "child_ids": [["1"]]}):
            with pytest.raises(AnnotationError, match="is no ontology"):
                related_labels(write(tmp_path, "bad.json", json.dumps([entry])))
        with pytest.raises(AnnotationError, match="is no ontology"):
            related_labels(write(tmp_path, "bad.json", '[{"id": 1}]'))


def jams(annotations, duration=10.0):
    return json.dumps({"file_metadata": {"duration": duration, "title": ""}, "annotations": annotations})


def observation(time, duration, value, confidence=1.0):
    return {"time": time, "duration": duration, "value": value, "confidence": confidence}


class TestJams:
    def test_scaper_without_its_background(self, tmp_path):
        data = [
            observation(0, 10, {"label": "park", "role": "background"}),
            observation(1, 2.5, {"label": "dog_bark", "role": "foreground"}),
            observation(2, 1, {"label": "dog_bark", "role": "foreground"}),
        ]
        write(tmp_path, "scene_1.jams", jams([{"namespace": "scaper", "data": data}]))
        (annotation,) = read_annotations(tmp_path, "jams")
        assert events_of(annotation) == [(1.0, 3.5, "dog bark"), (2.0, 3.0, "dog bark")]
        assert len({event.source for event in annotation.events}) == 2

    def test_segments_and_the_old_form_of_lists(self, tmp_path):
        data = {"time": [0, 4], "duration": [2, 3], "value": ["siren", "horn"], "confidence": [None, 0.6]}
        others = [{"namespace": "beat", "data": []}, {"namespace": "segment_open", "data": data}]
        path = write(tmp_path, "a.jams", jams(others))
        (annotation,) = read_annotations(path, "jams")
        assert events_of(annotation) == [(0.0, 2.0, "siren"), (4.0, 7.0, "horn")]
        assert [event.confidence for event in annotation.events] == [None, 0.6]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("{}", "a.jams: is no JAMS"),
            ("[", "a.jams: the file is no JSON"),
            ("[" * 100_000, "^a.jams: the file is no JSON"),
            *(
                (jams([{"namespace": "tag_open", **data}]), "has an annotation without a list of observations")
                for data in ({}, {"data": None}, {"data": {"time": 5}})
            ),
            (jams([{"namespace": "tag_open", "data": [5]}]), "tag_open 1: is no observation"),
            (
                jams([{"namespace": "tag_open", "data": [observation("x", 1, "dog")]}]),
                "the time is 'x'; expected are",
            ),
            (jams([{"namespace": "tag_open", "data": [observation(0, 10**400, "dog")]}]), "the duration is '1000"),
            (
                jams([{"namespace": "tag_open", "data": [observation(0, 1, "dog") | {"confidence": "high"}]}]),
                "the confidence is 'high'; expected are numbers from 0 to 1",
            ),
            (jams([{"namespace": "tag_open", "data": []}], 10**400), "the duration is '1000"),
            (jams([{"namespace": "beat", "data": []}]), "has no annotation of the namespaces scaper, segment_open"),
            (
                jams([{"namespace": "tag_open", "data": []}] * 2),
                "has 2 annotations of the namespace 'tag_open'; keep one",
            ),
            (
                jams([{"namespace": "scaper", "data": [observation(0, 1, "dog")]}]),
                r"a.jams: scaper 1: is no observation",
            ),
            (
                jams([{"namespace": "tag_open", "data": [observation(0, 11, "dog")]}]),
                r"tag_open 1: .* until 11 s, after",
            ),
            (jams([{"namespace": "tag_open", "data": [observation(0, 1, "dog")]}], None), "durations of 1 recordings"),
        ],
    )
    def test_what_is_wrong(self, tmp_path, text, message):
        with pytest.raises(AnnotationError, match=message):
            read_annotations(write(tmp_path, "a.jams", text), "jams")


class TestText:
    def test_tabs_blanks_and_audacity(self, tmp_path):
        write(tmp_path, "one.txt", "0.5\t2.25\tcar horn\n\\\t100.0\t200.0\n3\t4\tdog\n")
        write(tmp_path, "below/two.ann", "1 2 bird singing\n\n")
        write(tmp_path, "three.lab", "")
        one, three, two = read_annotations(tmp_path, "text", ReadOptions(durations={"one": 10, "two": 5, "three": 3}))
        assert events_of(one) == [(0.5, 2.25, "car horn"), (3.0, 4.0, "dog")]
        assert (events_of(two), three.events) == ([(1.0, 2.0, "bird singing")], ())

    def test_what_is_wrong(self, tmp_path):
        write(tmp_path, "one.txt", "0.5\t2.25\n1\t2\tdog\n")
        with pytest.raises(AnnotationError, match=r"one.txt:1: is '0.5\\t2.25'; expected are onset, offset, label"):
            read_annotations(tmp_path, "text", ReadOptions(durations={"one": 10}))
        with pytest.raises(AnnotationError, match="durations of 1 recordings are missing"):
            read_annotations(write(tmp_path, "two.txt", "1\t2\tdog\n"), "text")
        with pytest.raises(AnnotationError, match="holds no file that ends in"):
            read_annotations(write(tmp_path, "empty/x.md", "").parent, "text")


COLUMNS = {"recording": "Datei", "onset": "von", "label": "Klang", "length": "Dauer", "duration": "gesamt"}
HEADER = "Datei;von;Dauer;Klang;gesamt\n"


class TestTable:
    def test_any_columns(self, tmp_path):
        path = write(tmp_path, "dataSED.csv", HEADER + 'x/a.flac;0.5;1.5;"Hund; groß";12\na.flac;4;2;Katze;12\n')
        (annotation,) = read_annotations(path, "table", ReadOptions(columns=COLUMNS, resolution=0.05))
        assert (annotation.recording, annotation.duration, annotation.resolution) == ("a", 12.0, 0.05)
        assert events_of(annotation) == [(0.5, 2.0, "Hund; groß"), (4.0, 6.0, "Katze")]

    def test_what_is_wrong(self, tmp_path):
        path = write(tmp_path, "a.csv", HEADER + "a;0;1;Hund;12\na;2;1;Hund;13\n")
        with pytest.raises(AnnotationError, match=r"a.csv:3: 'a' lasts 13 s, in a line before 12 s"):
            read_annotations(path, "table", ReadOptions(columns=COLUMNS))
        with pytest.raises(AnnotationError, match=r"there is none for recording, onset, label, offset \(or length\)"):
            read_annotations(path, "table")
        with pytest.raises(AnnotationError, match="a table has no field 'onsets'; did you mean 'onset'"):
            read_annotations(path, "table", ReadOptions(columns={"onsets": "von"}))
        write(tmp_path, "b.csv", HEADER + "a;0;1;Hund;12\n")
        with pytest.raises(AnnotationError, match=r"'a' stands in a.csv:2 as well"):
            read_annotations(tmp_path, "table", ReadOptions(columns=COLUMNS))


def test_formats():
    names = ("audioset-strong", "audiotime", "desed", "jams", "maestro", "maestro-soft", "table", "text")
    assert set(list_formats()) >= set(names)
    assert all(load_reader(name).name == name and load_reader(name).meaning for name in names)
    with pytest.raises(InputError, match="there is no format of labels 'dased'; did you mean 'desed'"):
        read_annotations("x", "dased")


def test_a_format_of_somebody_else(tmp_path, monkeypatch):
    class Lengths:
        name, meaning = "lengths", "a duration a line"

        def read(self, path, options):
            return tuple(Annotation(f"{n}", float(line), (), 0.0, "x") for n, line in enumerate(path.open()))

    monkeypatch.setattr(formats, "_added", {})
    register_format(Lengths())
    assert len(read_annotations(write(tmp_path, "a", "1\n2\n"), "lengths")) == 2


class TestWindows:
    def test_by_hand(self):
        events = (LabelledEvent(0, 3, "a"), LabelledEvent(24, 51, "b", "s", 0.8), LabelledEvent(60, 70, "a"))
        parts = windows([Annotation("r", 70, events, 1.0, "x")])
        assert [(part.key, part.duration, events_of(part)) for part in parts] == [
            (("r", 0.0), 25.0, [(0, 3, "a"), (24, 25.0, "b")]),
            (("r", 25.0), 25.0, [(0.0, 25.0, "b")]),
        ]
        assert parts[1].events[0].source == "s"
        assert parts[1].events[0].confidence == 0.8
        assert {part.split_group for part in parts} == {"r"}

    def test_what_is_short_stays_whole(self):
        short = Annotation("r", 25.05, (LabelledEvent(0, 25.05, "a"),), 0.0, "x")
        assert windows([short]) == (short,)
        with pytest.raises(InputError, match="windows last 0 s"):
            windows([short], 0)


class TestSounds:
    def annotations(self):
        return [Annotation(name, 2.0, (LabelledEvent(0, 1, "a"),), 0.0, "x") for name in "abcde"]

    def write(self, folder, name, seconds):
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        soundfile.write(folder / name, np.zeros(int(8000 * seconds)), 8000)

    def test_by_stem_at_any_depth(self, tmp_path):
        for number, name in enumerate("abcd"):
            self.write(tmp_path, f"{number}/{name}.flac", 1.95)
        self.write(tmp_path, "Ye.wav", 3)
        paths = sound_paths(self.annotations(), tmp_path)
        assert {name: path.name for name, path in paths.items()} == {
            **{name: f"{name}.flac" for name in "abcd"}, "e": "Ye.wav"
        }  # fmt: skip
        assert durations_in(tmp_path)["a"] == pytest.approx(1.95)

    def test_all_that_is_wrong_is_one_error(self, tmp_path):
        self.write(tmp_path, "a.wav", 2)
        self.write(tmp_path, "b.wav", 1.85)
        self.write(tmp_path, "c.wav", 0)
        self.write(tmp_path, "d.wav", 2)
        self.write(tmp_path, "x/d.flac", 2)
        with pytest.raises(AnnotationError) as raised:
            sound_paths(self.annotations(), tmp_path)
        _, *lines = map(str.strip, str(raised.value).splitlines())
        assert len(lines) == 4
        assert "b.wav: lasts 1.85 s, the labels of 'b' 2.00 s" in lines
        assert "c.wav: is empty" in lines
        assert "d.wav: is one of 2 files of 'd': d.wav, x/d.flac; keep one" in lines
        assert lines[-1].endswith("has no sound of 1 of 5 recordings: e")
