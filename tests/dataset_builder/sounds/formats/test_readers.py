"""What is of one format alone, from a few rows written by hand in it."""

import json
from dataclasses import replace

import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.sounds.annotations import AnnotationError
from audio_compositionality.dataset_builder.sounds.formats import format_of, read_annotations
from audio_compositionality.dataset_builder.sounds.formats.audioset_strong import related_labels
from audio_compositionality.dataset_builder.sounds.formats.parsing import ReadOptions

from .written import STRONG, events_of, jams, observation, rows, write

DURATIONS = ("filename", "duration")


def refused(path, format, message, options=None):
    """The lines of the error."""
    with pytest.raises(DatasetError, match=message) as raised:
        read_annotations(path, format, options)
    return str(raised.value).splitlines()


@pytest.fixture
def desed(tmp_path):
    def make(*lines, durations=(("Y1.wav", 10.0), ("Y2.wav", 9.95))):
        write(tmp_path, "validation_durations.tsv", rows(DURATIONS, *durations))
        return write(tmp_path, "validation.tsv", rows(STRONG, *lines))

    return make


class TestDesed:
    def test_events_and_a_clip_without_any(self, desed):
        path = desed(
            ("Y1.wav", "2.345", "5.0", "Speech"),
            ("Y1.wav", "0.037", "2.061", "Alarm_bell_ringing"),
            # Labels may end a little after the clip.
            ("Y1.wav", "2.3", "10.08", "Speech"),
            # As of editors that strip the tabs at the end of a row.
            ("Y2.wav",),
        )
        one, two = read_annotations(path, "desed")
        assert (one.recording, one.duration, one.resolution, one.source_name) == ("Y1", 10.0, 0.0, "desed")
        assert events_of(one) == [(0.037, 2.061, "Alarm bell ringing"), (2.3, 10.0, "Speech"), (2.345, 5.0, "Speech")]
        assert (two.recording, two.duration, two.events) == ("Y2", 9.95, ())

    def test_what_no_table_has_is_told_by_the_sound(self, tmp_path):
        path = write(tmp_path, "a.tsv", rows(STRONG, ("Y1.wav", 0, 1, "Dog"), ("Y2.wav", 0, 1, "Dog")))
        options = ReadOptions(durations={"Y1": 10}, sounds={"Y1": 10.001, "Y2": 9.5})
        assert [annotation.duration for annotation in read_annotations(path, "desed", options)] == [10.0, 9.5]

    def test_what_is_wrong_is_told_with_file_and_line(self, desed):
        for line, message in (
            (("Y1.wav", "1,5,0", 5, "Dog"), r"validation.tsv:3: the onset is '1,5,0'"),
            (("", 1, 2, "Dog"), r"validation.tsv:3: has no recording"),
            (("Y1.wav", "", "", ""), r"validation.tsv:3: 'Y1' has no label here, but one in validation.tsv:2"),
            (("Y9.wav", 1, 2, "Dog"), r"durations of 1 recordings are missing \(Y9\)"),
        ):
            refused(desed(("Y1.wav", 0, 1, "Cat"), line), "desed", message)
        # All at once, and of many the first.
        path = desed(("Y1.wav", 5, 5, "Dog"), ("Y1.wav", "x", 5, "Dog"), ("Y1.wav", 0, 1, "Dog"))
        lines = refused(path, "desed", "2 problems")
        assert [line.split(":")[1] for line in lines[1:]] == ["2", "3"]
        refused(desed(*[("Y1.wav", 5, 5, "Dog")] * 50), "desed", r"and 30 more$")

    def test_durations_that_cannot_be_are_told_with_their_line(self, desed):
        for second, message in (
            (("Y1.wav", 9), "'Y1' lasts 9 s, but 10 s in an earlier line"),
            (("Y2.wav", 0), "the duration of 'Y2' is 0 s; it must be more than 0"),
            (("Y2.wav", "long"), "the duration is 'long'"),
            (("Y2.wav",), "expected: a name and seconds"),
        ):
            path = desed(("Y1.wav", 0, 1, "Dog"), durations=(("Y1.wav", 10), second))
            refused(path, "desed", f"validation_durations.tsv:3: {message}")
        refused(path, "desed", "the table of durations", ReadOptions(durations="nowhere.tsv"))
        message = r"the duration of 'Y1' is 0\.0; expected: seconds, more than 0"
        refused(path, "desed", message, ReadOptions(durations={"Y1.wav": 0}))


class TestMaestro:
    def test_seconds_that_follow_each_other_are_one_event(self, tmp_path):
        # Names end in .wav here and not in the durations; an underscore stands in some of the rows alone.
        lines = [("cafe_00.wav", 0, 1, "people_talking"), ("cafe_00.wav", 0, 1, "cutlery and dishes")]
        lines += [("cafe_00.wav", second, second + 1, "people talking") for second in (1, 2, 4, 183)]
        path = write(tmp_path, "development.csv", rows(STRONG, *lines))
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
        assert [annotation.key for annotation in annotations] == [("park_02", s) for s in (0.0, 10.0, 20.0)]
        assert {(a.duration, a.split_group) for a in annotations} == {(10.0, "park_02")}
        path = write(tmp_path, "soft.tsv", rows(header, ("park_02-200-100.wav", 1, 2, "car", 0.8)))
        refused(path, "maestro-soft", "'park_02-200-100' begins at 2 s and ends at 1 s")

    def test_what_is_wrong_with_soft_labels(self, tmp_path):
        for lines, message in (
            ([(0, 1, "car", 1.2)], r"a.txt:1: the confidence of 'car' is 1.2; it must be from 0 to 1"),
            ([(0, 1, "car", 0.2), (0, 1, "car", 0.8)], r"a.txt:2: 'car' at 0 s of 'a' is 0.8, but 0.2 in a.txt:1"),
            ([(0, 1, "car")], r"a.txt:1: has 3 fields; expected: onset, offset, label, confidence"),
            ([(0, 1, "car", "")], r"a.txt:1: has no confidence"),
        ):
            write(tmp_path, "one/a.txt", rows(*lines))
            refused(tmp_path / "one", "maestro-soft", message)
        write(tmp_path, "two/a.txt", rows((0, 1, "car", 1)))
        refused(tmp_path, "maestro-soft", "there are two files of 'a'")


class TestAudioTime:
    def test_parts_without_intervals_are_refused_by_name(self, tmp_path):
        for part, values, message in (
            ("duration", [1.5, 2.0], r"duration_captions.json:2: the part 'duration' of AudioTime says how long each"),
            ("duration", 1.5, r"the part 'duration'"),
            ("frequency", [0.5, 2.0, 4.0], r"the part 'frequency' of AudioTime says when each sound begins"),
            ("other", [[1, 2, 3]], r"there are no intervals here, .*only 'ordering' and 'timestamp' do"),
        ):
            content = {"syn_1": {"event": {"dog": values}, "caption": ""}}
            path = write(tmp_path, f"{part}_captions.json", json.dumps(content, indent=1))
            refused(path, "audiotime", message)

    def test_what_is_wrong(self, tmp_path):
        content = {"a": {"event": {"dog": [[2, 1]]}}, "b": {"event": {"dog": [["x", 1]]}}, "c": {"caption": ""}}
        path = write(tmp_path, "timestamp.json", json.dumps(content, indent=0))
        lines = refused(path, "audiotime", "'c' has no 'event' with labels")
        assert [line.split(":")[1] for line in lines[1:]] == ["2", "12", "22"]
        for text, message in (
            ("[1]", "contains no clips"),
            ("{}", "contains no clips"),
            ('{"a": {"event": {}}, "a.wav": {"event": {}}}', "bad.json:1: 'a' occurs twice in the file"),
            ('{"a": {"event": {"dog": [[0, true]]}}}', "'dog' lasts from 0 to True; expected: seconds"),
            (f'{{"a": {{"event": {{"dog": [[0, 1{"0" * 400}]]}}}}}}', "the offset is '1000"),
        ):
            refused(write(tmp_path, "bad.json", text), "audiotime", message)


class TestAudioSet:
    LINES = (("b0RFKhbpFJA_30000", 0, 10, "/m/03m9d0z"), ("b0RFKhbpFJA_30000", 4.753, 5.72, "/m/05zppz"))
    NAMES = 'index,mid,display_name\n0,/m/03m9d0z,Wind\n1,/m/05zppz,"Male speech, man speaking"\n'

    def test_ids_have_names_and_segments_groups(self, tmp_path):
        path = write(tmp_path, "strong.tsv", rows(*self.LINES))
        refused(path, "audioset-strong", r"strong.tsv:1: there is no name for /m/03m9d0z, /m/05zppz")
        options = ReadOptions(names=tmp_path / "none.tsv")
        refused(path, "audioset-strong", "the table of names", options)
        write(tmp_path, "class_labels_indices.csv", self.NAMES)
        (annotation,) = read_annotations(path, "audioset-strong")
        assert events_of(annotation) == [(0.0, 10.0, "Wind"), (4.753, 5.72, "Male speech, man speaking")]
        assert (annotation.recording, annotation.split_group) == ("b0RFKhbpFJA_30000", "b0RFKhbpFJA")
        assert (annotation.duration, annotation.resolution) == (10.0, 0.1)
        path = write(tmp_path, "strong.tsv", rows(*self.LINES, (1, 2, 3)))
        refused(path, "audioset-strong", r"strong.tsv:3: has 3 fields; expected: segment, start, end")

    def test_ontology(self, tmp_path):
        names = {"/m/0": "Human_voice", "/m/1": "Speech", "/m/05zppz": "Male speech", "/m/03m9d0z": "Wind"}
        below = {"/m/0": ["/m/1"], "/m/1": ["/m/05zppz", "/m/gone"]}
        entries = [{"id": id, "name": name, "child_ids": below.get(id, [])} for id, name in names.items()]
        ontology = write(tmp_path, "tree.json", json.dumps(entries))
        related = related_labels(ontology)
        assert related["Human voice"] == {"Speech", "Male speech"}
        assert related["Wind"] == frozenset()
        assert related["Male speech"] == {"Human voice", "Speech"}
        path = write(tmp_path, "strong.tsv", rows(*self.LINES))
        (annotation,) = read_annotations(path, "audioset-strong", ReadOptions(names=ontology))
        assert annotation.labels == ("Male speech", "Wind")
        for entry in (5, {"id": 1, "name": "a", "child_ids": []}, {"id": "1", "name": "a", "child_ids": [["1"]]}):
            with pytest.raises(AnnotationError, match="is not an ontology"):
                related_labels(write(tmp_path, "bad.json", json.dumps([entry])))


class TestJams:
    def test_scaper_without_its_background(self, tmp_path):
        park = observation(0, 10, {"label": "park", "role": "background"})
        dog = {"label": "dog_bark", "role": "foreground"}
        data = [park, observation(1, 2.5, dog), observation(2, 1, dog)]
        write(tmp_path, "scene_1.jams", jams([{"namespace": "scaper", "data": data}]))
        (annotation,) = read_annotations(tmp_path, "jams")
        assert events_of(annotation) == [(1.0, 3.5, "dog bark"), (2.0, 3.0, "dog bark")]
        assert len({event.source for event in annotation.events}) == 2

    def test_segments_and_the_old_form_of_lists(self, tmp_path):
        data = {"time": [0, 4], "duration": [2, 3], "value": ["siren", "horn"], "confidence": [None, 0.6]}
        others = [{"namespace": "beat", "data": []}, {"namespace": "segment_open", "data": data}]
        (annotation,) = read_annotations(write(tmp_path, "a.jams", jams(others)), "jams")
        assert events_of(annotation) == [(0.0, 2.0, "siren"), (4.0, 7.0, "horn")]
        assert [event.confidence for event in annotation.events] == [None, 0.6]

    @pytest.mark.parametrize(
        ("namespace", "data", "message"),
        [
            ("beat", [], "has no annotation of the namespaces scaper, segment_open"),
            ("scaper", [observation(0, 1, "dog")], "a.jams: scaper 1: is not an observation"),
            ("tag_open", None, "has an annotation without a list of observations"),
            ("tag_open", [observation(0, 10**400, "dog")], "the duration is '1000"),
            ("tag_open", [observation(0, 1, "dog", "high")], "the confidence is 'high'; expected: numbers from 0"),
        ],
    )
    def test_what_are_no_labels_is_refused(self, tmp_path, namespace, data, message):
        refused(write(tmp_path, "a.jams", jams([{"namespace": namespace, "data": data}])), "jams", message)

    def test_the_duration_is_that_of_the_file_or_of_the_sound(self, tmp_path):
        said = [{"namespace": "tag_open", "data": [observation(0, 1, "dog")]}]
        path = write(tmp_path, "a.jams", jams(said, None))
        refused(path, "jams", "durations of 1 recordings")
        assert read_annotations(path, "jams", ReadOptions(sounds={"a": 7.5}))[0].duration == 7.5
        assert read_annotations(write(tmp_path, "a.jams", jams(said, 8.5)), "jams")[0].duration == 8.5
        for text, message in (
            (jams(said * 2), "has 2 annotations of the namespace 'tag_open'; keep one"),
            (jams(said, 10**400), "the duration is '1000"),
            ("{}", "a.jams: is not JAMS"),
        ):
            refused(write(tmp_path, "a.jams", text), "jams", message)


def test_text_with_tabs_blanks_and_of_audacity(tmp_path):
    write(tmp_path, "one.txt", "0.5\t2.25\tcar horn\n\\\t100.0\t200.0\n3\t4\tdog\n")
    write(tmp_path, "below/two.ann", "1 2 bird singing\n\n")
    write(tmp_path, "three.lab", "")
    options = ReadOptions(durations={"one": 10, "two": 5, "three": 3})
    one, three, two = read_annotations(tmp_path, "text", options)
    assert events_of(one) == [(0.5, 2.25, "car horn"), (3.0, 4.0, "dog")]
    assert (events_of(two), three.events) == ([(1.0, 2.0, "bird singing")], ())
    write(tmp_path, "one.txt", "0.5\t2.25\n1\t2\tdog\n")
    refused(tmp_path, "text", r"one.txt:1: is '0.5 2.25'; expected: onset, offset, label", options)


def test_tables_without_a_column_of_recordings_are_of_those_that_their_names_say(tmp_path):
    # As programs for sound export the marks of one recording.
    for name, at in (("one", "0:01.500"), ("two", "1:02.000")):
        write(tmp_path, f"marks/{name}.csv", f"Name\tStart\tDuration\tType\ndog\t{at}\t0:00.500\tCue\n")
    columns = {"onset": "Start", "length": "Duration", "label": "Name"}
    options = ReadOptions(columns=columns, sounds={"one": 9.0, "two": 90.0})
    one, two = read_annotations(tmp_path / "marks", "table", options)
    assert (one.recording, events_of(one)) == ("one", [(1.5, 2.0, "dog")])
    assert (two.recording, events_of(two)) == ("two", [(62.0, 62.5, "dog")])
    # A usual heading of recordings counts all the same.
    write(tmp_path, "marks.csv", "filename,Name,Start,Duration\none.wav,dog,1,2\n")
    (one,) = read_annotations(tmp_path / "marks.csv", "table", options)
    assert (one.recording, events_of(one)) == ("one", [(1.0, 3.0, "dog")])


def test_a_folder_of_tables_with_the_columns_of_desed(tmp_path):
    for name in ("one", "two"):
        write(
            tmp_path, f"labels/{name}.csv", f"annotator,filename,event_label,onset,offset\n5,{name}.flac,cough,0.5,2\n"
        )
    assert format_of(tmp_path / "labels") == "desed"
    options = ReadOptions(sounds={"one": 9.0, "two": 9.0})
    assert [one.recording for one in read_annotations(tmp_path / "labels", "desed", options)] == ["one", "two"]
    # Files and folders can be links, and one that leads back is followed once; out of the folder where that is allowed.
    (tmp_path / "links" / "more").mkdir(parents=True)
    (tmp_path / "links" / "more" / "a").symlink_to(tmp_path / "labels")
    (tmp_path / "links" / "again").symlink_to("more")
    assert len(read_annotations(tmp_path / "links", "desed", replace(options, follow_links=True))) == 2
    refused(tmp_path / "links", "desed", r"one.csv' is a link out of the folder; use --set follow_links=true", options)


def test_a_table_of_any_columns(tmp_path):
    columns = {"recording": "Datei", "onset": "von", "label": "Klang", "length": "Dauer", "duration": "gesamt"}
    header = "Datei;von;Dauer;Klang;gesamt\n"
    path = write(tmp_path, "a.csv", header + 'x/a.flac;0.5;1.5;"Hund; groß";12\na.flac;4;2;Katze;12\n')
    (annotation,) = read_annotations(path, "table", ReadOptions(columns=columns, resolution=0.05))
    assert (annotation.recording, annotation.duration, annotation.resolution) == ("a", 12.0, 0.05)
    assert events_of(annotation) == [(0.5, 2.0, "Hund; groß"), (4.0, 6.0, "Katze")]

    refused(path, "table", r"there is none for onset, label, offset \(or length\)")
    message = "a table has no field 'onsets'; did you mean 'onset'"
    refused(path, "table", message, ReadOptions(columns={"onsets": "von"}))
    path = write(tmp_path, "a.csv", header + "a;0;1;Hund;12\na;2;1;Hund;13\n")
    refused(path, "table", r"a.csv:3: 'a' lasts 13 s, but 12 s in an earlier line", ReadOptions(columns=columns))
    write(tmp_path, "b.csv", header + "a;0;1;Hund;12\n")
    refused(tmp_path, "table", r"'a' is also in a.csv:2", ReadOptions(columns=columns))
