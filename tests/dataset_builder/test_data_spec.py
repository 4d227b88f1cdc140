"""What data are, from one text: how it is recognised, what is ambiguous, and what a data.yaml adds."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audio_compositionality.dataset_builder import data_spec
from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.data_spec import (
    FIELDS,
    KINDS,
    DataSpec,
    Reading,
    check_fields,
    described,
    recognised,
    with_sound,
)
from audio_compositionality.dataset_builder.open_data import open_data, open_recordings
from audio_compositionality.dataset_builder.rendered import preset_names
from audio_compositionality.dataset_builder.sounds.hub import list_named_sets
from audio_compositionality.dataset_builder.sounds.published import PUBLISHED
from audio_compositionality.support.errors import InputError

from .sounds.sounds import write, write_labelled
from .texts.labelled import write_audiotime, write_domestic


def some_value(kind: str) -> object:
    """A value of a type, as a field states it, which is no default."""
    return ("a=b",) if "tuple" in kind else 0.5 if "float" in kind else True if "bool" in kind else "full"


VALUES = {
    name: some_value(str(field.annotation))
    for name, field in DataSpec.model_fields.items()
    if name not in ("data", "settings")
} | {"encoding": "cp949"}
"""Of each field a value that is not its default."""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read_as(text):
    reading = recognised(text)
    return reading.kind, reading.source


def parquet(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def test_names_of_every_kind_are_recognised(here):
    write_labelled(here / "compa:archives", 1)
    names = {
        "preset": [*preset_names(), "mini with seed=7"],
        "dataset": [*list_named_sets(), "esc50=ESC-50/data"],
        "benchmark": ["compa:archives"],
        "hub": ["lab/set", "some-lab/audio.compositionality_2"],
    }
    for kind, texts in names.items():
        assert [read_as(text) for text in texts] == [(kind, text) for text in texts]
    for kind in KINDS:
        assert recognised(f"{kind}:nowhere") == Reading(kind, "nowhere", KINDS[kind])


def test_a_path_is_no_name(here):
    for name in ("mini", "esc50"):
        write_labelled(here / name, 1)
        assert read_as(f"./{name}") == read_as(Path(name)) == ("recordings", f"./{name}")
        assert read_as(here / name) == ("recordings", str(here / name))


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda published: published.recipe)
def test_the_authors_data(published, here):
    parquet(here / "copy" / "train-0.parquet", **{column: [""] for column in published.columns})
    assert read_as("copy") == ("built", "copy")


def test_folders_of_recordings(here):
    # A folder is looked at before the Hub, with a table or without; what is hidden in it says nothing.
    write_labelled(here / "lab" / "set", 1)
    (here / "lab" / "set" / ".cache").mkdir()
    (here / "lab" / "set" / ".cache" / "x.parquet").write_text("")
    assert read_as("lab/set") == ("recordings", "lab/set")
    (here / "lab" / "set" / "metadata.csv").write_text("file_name,animal\ndog/0.wav,dog\n")
    assert read_as("lab/set") == ("recordings", "lab/set")
    assert read_as(".") == ("recordings", ".")


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("table.tsv", "label\tfile_name\ndog\ta.wav\n", "table"),
        ("texts.csv", "path,caption,dataset,split_name\na.wav,a dog,x,train\n", "texts"),
        ("questions.csv", "question,choices,answer\nwho?,a;b,a\n", "questions"),
        ("mcq.csv", "audio,Question,A,B,C\nx.wav,who?,a,b,c\n", "questions"),
        ("questions.json", '[{"question": "who?", "options": ["a", "b"]}]', "questions"),
        ("asked.csv", "audio,frage,option_a,option_b,answer\nx.wav,who?,a,b,A\n", "questions"),
        ("no_file.csv", "wav,caption_1,caption_2\na.wav,a dog,a bark\n", "table"),
        ("street.csv", "file,label,start,stop\n0.wav,dog,0,1\n", "labels"),
        ("strong.tsv", "filename\tonset\toffset\tevent_label\n0.wav\t0.5\t1\tdog\n", "labels"),
        # A time of day is none of an event, and neither is a single time.
        ("birds.csv", "filename,name,time\n0.wav,wren,11:51\n", "table"),
        ("excerpts.csv", "id,start_time,caption\nab,30,a dog\n", "table"),
    ],
)
def test_tables_by_their_columns(name, text, kind, here):
    (here / name).write_text(text, "utf-8")
    assert read_as(name) == (kind, name)


def test_parquet_by_its_columns_and_strong_labels_of_all_kinds(here):
    parquet(here / "set" / "train-0.parquet", audio=[b""], label=["dog"])
    parquet(here / "asked" / "test-0.parquet", question=["who?"], options=[["a", "b"]])
    (here / "text").mkdir()
    (here / "text" / "a.txt").write_text("0.1\t0.5\tdog\n")
    for name, kind in (
        ("set", "dataset"),
        ("asked", "questions"),
        ("asked/test-0.parquet", "questions"),
        ("text", "labels"),
        *((labels, "labels") for labels, _ in (write_domestic(here / "desed"), write_audiotime(here / "audiotime"))),
    ):
        assert read_as(name) == (kind, str(name))
    (here / "marks").mkdir()
    (here / "marks" / "a.csv").write_text("Name\tStart\tDuration\ndog\t0:01\t0:02\n")
    with pytest.raises(DatasetError, match=r"'marks' contains 1 \.csv: .*labels:marks --set format=NAME"):
        recognised("marks")
    assert recognised("marks", {"columns": ("onset=Start",)}).kind == "labels"


FOLDER = "a folder of recordings"
WAYS = {
    "mini": {"preset:mini": "the preset mini", "recordings:./mini": FOLDER},
    "esc50": {"dataset:esc50": "the data set esc50", "recordings:./esc50": FOLDER},
    "street": {"recordings:./street": FOLDER, "labels:./street": "strong labels, one file per recording"},
    "animals": {"dataset:./animals": "a data set with an audio column", "recordings:./animals": FOLDER},
}


@pytest.mark.parametrize("name", WAYS)
def test_of_two_readings_both_are_shown(name, here):
    write(here / name / "a.wav")
    if name == "street":
        (here / name / "a.txt").write_text("0.1\t0.5\tdog\n")
    if name == "animals":
        parquet(here / name / "x.parquet", n=[1])
    ways = " or ".join(f"{way} ({what})" for way, what in WAYS[name].items())
    with pytest.raises(DatasetError, match=re.escape(f"'{name}' is ambiguous. Give one of these instead: {ways}")):
        recognised(name)
    # Each way is one that the error shows, and means what it says.
    assert [recognised(way).kind for way in WAYS[name]] == [way.partition(":")[0] for way in WAYS[name]]


def test_a_folder_is_looked_at_once_until_it_changes(here, monkeypatch):
    write_labelled(here / "animals", 1)
    os.utime(here / "animals", (1e9, 1e9))
    looked = []
    monkeypatch.setattr(data_spec, "_in_folder", lambda folder, _: looked.append(folder) or iter(()))
    for _ in range(3):
        with pytest.raises(DatasetError):
            recognised("./animals")
    assert len(looked) == 1
    os.utime(here / "animals", (1e9 + 5, 1e9 + 5))
    with pytest.raises(DatasetError):
        recognised("./animals")
    assert len(looked) == 2


def test_the_home_folder_is_read_behind_a_sign(here, monkeypatch):
    monkeypatch.setenv("HOME", str(here))
    assert recognised("recordings:~/x").source == str(here / "x")
    assert recognised("esc50=~/x").source == f"esc50={here / 'x'}"
    spec = DataSpec(data="x", audio="~/x", labels=("~/a.csv", "b.csv"))
    assert (spec.audio, spec.labels) == (str(here / "x"), (str(here / "a.csv"), "b.csv"))


def test_what_is_no_data_is_told(here):
    (here / "empty").mkdir()
    (here / "pictures").mkdir()
    (here / "pictures" / "cat.png").write_bytes(b"\x89PNG")
    write(here / "a.wav")
    (here / "binary.csv").write_bytes(b"\xff\xfe\x00")
    (here / "model.py").write_text("import torch\n")
    (here / "rows.jsonl").write_text('{"file_name": "a.wav", "label": "dog"}\n')
    (here / "phone" / "en").mkdir(parents=True)
    for number in range(2):
        (here / "phone" / "en" / f"{number}.gsm").write_bytes(b"x")
    (here / "one.yaml").write_text("data: mini\n")
    parquet(here / "set" / "a.parquet", audio=[b""])
    for text, message in (
        ("", "data is ''; give a preset, a folder"),
        (" ", r"data is ' '; give a preset, a folder \(\. is the current one"),
        ("minni", "no data 'minni': .*did you mean 'mini'"),
        ("esc51", "did you mean 'esc50'"),
        *((path, f"nothing found at '{path}'") for path in ("./nowhere", "nowhere.csv", "a/b/c")),
        ("empty", "'empty' contains nothing: no sound files, no Parquet"),
        ("pictures", "'pictures' contains 1 .png: no sound files"),
        ("phone", r"'phone' contains 2 .gsm \(needs FFmpeg\): no sound files"),
        ("rows.jsonl", r"'rows.jsonl' describes files in JSON. Give a CSV .*--data dataset:\."),
        ("a.wav", "'a.wav' is a sound file; give its folder"),
        ("binary.csv", "cannot tell what 'binary.csv' contains: it has no columns"),
        ("model.py", r"'model.py' is not data. Give a preset, .*to read it as strong labels, give labels:model.py"),
        ("one.yaml", "'one.yaml' describes data and cannot have a prefix"),
        ("set/a.parquet", "'set/a.parquet' is part of a data set; give its folder"),
    ):
        with pytest.raises(DatasetError, match=message):
            recognised(text)


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_says_something_of_a_kind_or_is_refused(kind):
    reading = Reading(kind, "x", KINDS[kind])
    sound = {"audio": "audio"} if "audio" in FIELDS[kind] else {}
    for name, value in VALUES.items():
        said = {"labels": ("street.csv",)} if kind == "recordings" else {}
        spec = DataSpec(data="x", **{**sound, **said, name: value})
        if name in FIELDS[kind]:
            check_fields(spec, reading)
        else:
            about = [KINDS[one].partition(":")[0] for one, fields in FIELDS.items() if name in fields]
            with pytest.raises(
                InputError, match=rf"^{name} does not apply to 'x', which is .*; it applies to "
            ) as raised:
                check_fields(spec, reading)
            assert all(one in str(raised.value) for one in about[:3])


def test_fields_that_lack_another(here):
    for kind in ("table", "labels", "texts"):
        with pytest.raises(
            InputError, match=r"its sound files were not found. Give their folder with --set audio=FOLDER"
        ):
            check_fields(DataSpec(data="x"), Reading(kind, "x", KINDS[kind]))
    reading = Reading("recordings", "animals", KINDS["recordings"])
    for name in ("format", "durations", "columns", "resolution", "names"):
        with pytest.raises(InputError, match=rf"{name} applies to strong labels, but 'animals' has none. .*labels="):
            check_fields(DataSpec(data="animals", **{name: VALUES[name]}), reading)
    (here / "x").mkdir()
    for kind, source in (("built", "x"), ("dataset", "esc50=x")):
        with pytest.raises(InputError, match=r"revision applies to a Hub id, but .*is a local folder"):
            check_fields(DataSpec(data="x", revision="abc"), Reading(kind, source, KINDS[kind]))
    check_fields(DataSpec(data="x", revision="abc"), Reading("built", "lab/x", KINDS["built"]))


def test_sound_beside_a_table_or_strong_labels_is_found(here):
    write(here / "clips" / "a.wav")
    for name, text in (("m.csv", "file,label\na.wav,dog\n"), ("m.tsv", "label\tfile_name\ndog\ta.wav\n")):
        (here / "clips" / name).write_text(text)
        reading = recognised(f"clips/{name}")
        assert with_sound(DataSpec(data=f"clips/{name}"), reading).audio == "clips"
    (here / "clips" / "strong.csv").write_text("file,label,start,stop\na.wav,dog,0,1\n")
    assert with_sound(DataSpec(data="clips/strong.csv"), recognised("clips/strong.csv")).audio == "clips"
    (here / "clips" / "m.csv").write_text("file,label\nb.wav,dog\n")
    assert with_sound(DataSpec(data="clips/m.csv"), recognised("clips/m.csv")).audio is None
    assert with_sound(DataSpec(data="clips/m.csv", audio="x"), recognised("clips/m.csv")).audio == "x"


def test_a_description_is_the_data_and_all_that_is_said(here):
    write_labelled(here / "lib" / "animals", 1)
    (here / "lib" / "animals.yaml").write_text(
        "data: animals\nlabel: animal\ncaptions: [said_1, said_2]\nsettings: {classes: 2}\n"
    )
    spec = described("lib/animals.yaml")
    assert spec == DataSpec(data="lib/animals", label="animal", captions=("said_1", "said_2"), settings={"classes": 2})
    # What is given comes before what the file says.
    assert described("lib/animals.yaml", label="kind").label == "kind"


def test_its_paths_are_below_its_folder_and_what_stands_before_them_is_kept(here, tmp_path):
    labels, audio = write_domestic(here / "lib")
    text = f"data: {labels.name}\naudio: {audio.name}\ndurations: {tmp_path / 'x.tsv'}\nlabels: [{labels.name}, no.tsv]"
    (here / "lib" / "street.yaml").write_text(text)
    spec = described("lib/street.yaml")
    assert (spec.data, spec.audio) == (f"lib/{labels.name}", f"lib/{audio.name}")
    assert (spec.durations, spec.labels) == (str(tmp_path / "x.tsv"), (f"lib/{labels.name}", "no.tsv"))
    write_labelled(here / "lib" / "esc50", 1)
    for said, read in (
        ("recordings:esc50", "recordings:lib/esc50"),
        ("recordings:./esc50", "recordings:./lib/esc50"),
        ("./esc50", "./lib/esc50"),
        ("esc50=esc50", "esc50=lib/esc50"),
        ("compa:esc50", "compa:lib/esc50"),
        ("dataset:esc50", "dataset:esc50"),
        ("preset:esc50", "preset:esc50"),
        ("mini", "mini"),
    ):
        (here / "lib" / "x.yaml").write_text(f"data: {said}\n")
        assert described("lib/x.yaml").data == read
    # Where the file is here, the path is still no name.
    (here / "lib" / "x.yaml").rename(here / "x.yaml")
    (here / "x.yaml").write_text("data: ./esc50\n")
    assert described("x.yaml").data == "./esc50"


def test_what_it_says_is_written_and_read_again(here):
    spec = DataSpec(data="lab/set", **{**VALUES, "settings": {"seed": 7, "domain": "birds"}})
    (here / "data.yaml").write_text(spec.to_yaml())
    assert described("data.yaml") == spec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label: animal\n", "lacks the key 'data'"),
        ("- animals\n", "must have lines like"),
        ("data: [\n", "is not YAML"),
        ("data: mini\nlable: x\n", "x.yaml: there is no setting 'lable'; did you mean 'label'"),
        ("data: mini\nwindow: long\n", "x.yaml: window is 'long'"),
        ("data: 7\n", "x.yaml: data is 7; it must be a text"),
        (
            "data: mini\nseed: 3\n",
            r"x.yaml: seed is a setting of .*; put it under 'settings', as in settings: \{seed: 3\}",
        ),
    ],
)
def test_a_wrong_description_is_told_with_its_name(text, message, here):
    (here / "x.yaml").write_text(text)
    with pytest.raises(DatasetError, match=message):
        described("x.yaml")


def test_open_data_takes_fields_and_settings_together(here):
    write_labelled(here / "animals", 8)
    files = sorted(path.relative_to(here / "animals") for path in (here / "animals").glob("*/*"))
    lines = [f"{file},{file.parent}" for file in files]
    (here / "animals" / "metadata.csv").write_text("\n".join(["file_name,animal", *lines]) + "\n")
    with pytest.raises(InputError, match="prompts is 'plain', but none of the recipes uses prompts"):
        open_data("animals", prompts="plain", recipes=["transforms"])
    data = open_data("animals", label="animal", recipes=["transforms"], transforms=("gain",), seed=3)
    settings = data.settings["transforms"]
    assert (settings.seed, settings.transforms) == (3, ("gain",))
    text = "data: animals\nlabel: animal\nsettings: {seed: 3, transforms: [gain]}\n"

    def described_as(before="", after="", **changes):
        (here / "animals.yaml").write_text(text.replace(before, after))
        return open_data("animals.yaml", recipes=["transforms"], **changes)

    for same in (described_as(), described_as("[gain]", "gain")):
        assert same.configuration("transforms").fingerprint == data.configuration("transforms").fingerprint
    assert described_as(seed=4).settings["transforms"].seed == 4
    with pytest.raises(InputError, match=r"^animals.yaml: settings: .*has no setting 'sead'; did you mean 'seed'"):
        described_as("seed", "sead")
    with pytest.raises(InputError, match="gian"):
        described_as("[gain]", "gian")
    with pytest.raises(InputError, match=r"there is no setting 'clases'|has no setting 'clases'"):
        open_data("animals", clases=3)


def test_open_data_opens_a_recipe_opened_recordings_and_questions_about_them(here):
    assert open_data("polybench", test_sets=1, seed=3).recipes == ("polybench",)
    assert open_data("a_coat", preset="full").source == "full"
    (here / "a_coat").mkdir()
    with pytest.raises(DatasetError, match="'a_coat' contains nothing"):
        open_data("a_coat")
    write_labelled(here / "animals", 8)
    recordings = open_recordings(here / "animals", progress=False)
    opened = [open_data(one, recipes=["transforms"], transforms=("gain",)) for one in (recordings, "animals")]
    assert len({data.configuration("transforms").fingerprint for data in opened}) == 1
    (here / "animals" / "dog" / "broken.wav").write_bytes(b"no sound")
    with pytest.raises(DatasetError, match=r"broken\.wav"):
        open_data("animals", recipes=["transforms"])
    with pytest.warns(UserWarning, match=r"1 recording of animals is left out: .*broken\.wav"):
        open_data("animals", recipes=["transforms"], skip_invalid=True)
    with pytest.raises(InputError, match="data has type int"):
        open_data(3)


def test_settings_of_a_description_are_told_with_its_name(here, tiny_data):
    build_dataset(tiny_data, here / "built", progress=False)
    assert read_as("built") == ("built", "built")
    for text, message in (
        ("data: built\nsettings: {seed: 3}\n", "'seed' cannot be set: .*whose rows are fixed"),
        ("data: mini\nsettings: {seed: x}\n", "seed is 'x'; it is a whole number"),
        ("data: mini\nsettings: {sead: 3}\n", "has no setting 'sead'; did you mean 'seed'"),
    ):
        (here / "x.yaml").write_text(text)
        with pytest.raises(InputError, match=rf"^x.yaml: settings: .*{message}"):
            open_data("x.yaml")
