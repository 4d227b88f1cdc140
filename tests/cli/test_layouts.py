"""Data sets as their authors publish them: a miniature of each is read by the command that the docs show."""

import json
import re
import shlex
from pathlib import Path

import pytest

from audio_compositionality.cli.main import main

from ..dataset_builder.sounds.sounds import write

DOCS = (Path(__file__).parents[2] / "docs" / "how-to/data.md").read_text("utf-8")
BLOCK = DOCS.partition("as their authors distribute them:\n\n```text\n")[2].partition("```")[0]
COMMANDS = {re.split(r"[/ ]", shlex.split(line)[2])[0]: line for line in BLOCK.splitlines() if "validation" not in line}
COMMANDS["validation"] = next(line for line in BLOCK.splitlines() if "validation" in line)


def made(folder, files):
    """Write tables, and sounds of a number of seconds."""
    for number, (name, content) in enumerate(files.items()):
        path = folder / name
        if isinstance(content, str):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, "utf-8")
        else:
            write(path, seconds=content, seed=number)


def urbansound8k(folder):
    head = "slice_file_name,fsID,start,end,salience,fold,classID,class\n"
    classes = ("dog_bark", "car_horn")
    lines = [f"100{n}-{n % 2}-0-0.wav,100{n},0.0,0.48,1,{5 + n % 2},{n % 2},{classes[n % 2]}" for n in range(4)]
    made(folder, {"UrbanSound8K/metadata/UrbanSound8K.csv": head + "\n".join(lines)})
    made(folder, {f"UrbanSound8K/audio/fold{5 + n % 2}/100{n}-{n % 2}-0-0.wav": 0.5 for n in range(4)})
    return {"read": 4, "labels": {"car_horn": 2, "dog_bark": 2}, "groups": {"5": 2, "6": 2}}


def esc50(folder):
    head = "filename,fold,target,category,esc10,src_file,take\n"
    lines = [f"1-10{n}-A-0.wav,1,{n % 2},{('dog', 'chirping_birds')[n % 2]},True,10{n // 2},A" for n in range(4)]
    made(folder, {"ESC-50/meta/esc50.csv": head + "\n".join(lines)})
    made(folder, {f"ESC-50/audio/1-10{n}-A-0.wav": 1 for n in range(4)})
    return {"read": 4, "labels": {"chirping_birds": 2, "dog": 2}, "groups": {"100": 2, "101": 2}}


def fsd50k(folder):
    each = ["Electric_guitar,Guitar,Music", "Guitar,Music", "Bark,Dog", "Bark,Dog"]
    lines = [f'6476{n},"{labels}","/m/0,/m/1",train' for n, labels in enumerate(each)]
    made(folder, {"FSD50K/FSD50K.ground_truth/dev.csv": "fname,labels,mids,split\n" + "\n".join(lines)})
    made(folder, {f"FSD50K/FSD50K.dev_audio/6476{n}.wav": 1 for n in range(4)})
    below = {"Music": ["Guitar"], "Guitar": ["Electric guitar"], "Electric guitar": [], "Dog": ["Bark"], "Bark": []}
    entries = [{"id": name, "name": name, "child_ids": children} for name, children in below.items()]
    made(folder, {"ontology.json": json.dumps(entries)})
    return {"read": 4, "labels": {"Bark": 2, "Dog": 2, "Guitar": 2, "Music": 2, "Electric_guitar": 1}}


def desed_weak(folder):
    each = ["Alarm", "Alarm", "Alarm,Speech", "Speech", "Dog,Speech", "Dog"]
    lines = [f"{n}.wav\t{labels}" for n, labels in enumerate(each)]
    made(folder, {"DESED/weak.tsv": "filename\tevent_labels\n" + "\n".join(lines)})
    made(folder, {f"DESED/weak/{n}.wav": 1 for n in range(6)})
    return {"read": 6, "labels": {"Alarm": 3, "Speech": 3, "Dog": 2}}


TIMES = [(0.2, 4.4, "Dog"), (2.2, 9.5, "Speech"), (1.2, 3.1, "Speech"), (5.5, 9.0, "Dog")]


def desed_strong(folder):
    lines = [f"Y{n}_0_10.wav\t{on}\t{off}\t{label}" for n in range(4) for on, off, label in TIMES[n % 2 :: 2]]
    lines += ["Y8_0_10.wav\t\t\t", "Y9_0_10.wav\t0\t1.5\tDog"]
    made(folder, {"DESED/validation.tsv": "filename\tonset\toffset\tevent_label\n" + "\n".join(lines)})
    made(folder, {f"DESED/validation/Y{n}_0_10.wav": 10 for n in range(4)})
    return {"read": 4, "labels": {"Dog": 4, "Speech": 4}}


def audioset(folder):
    ids = {"Dog": "/m/0bt9lr", "Speech": "/m/09x0r"}
    lines = [f"vid{n}_30000\t{on}\t{off}\t{ids[label]}" for n in range(4) for on, off, label in TIMES]
    head = "segment_id\tstart_time_seconds\tend_time_seconds\tlabel\n"
    made(folder, {"AudioSet/audioset_eval_strong.tsv": head + "\n".join(lines)})
    made(folder, {"AudioSet/mid_to_display_name.tsv": "\n".join(f"{id}\t{name}" for name, id in ids.items())})
    made(folder, {f"AudioSet/eval/vid{n}_30000.wav": 10 for n in range(4)})
    return {"read": 4, "labels": {"Dog": 4, "Speech": 4}}


def raven(folder):
    head = "Selection\tView\tChannel\tBegin Time (s)\tEnd Time (s)\tLow Freq (Hz)\tHigh Freq (Hz)\tSpecies\n"
    lines = [f"{n}\tSpectrogram 1\t1\t{on}\t{off}\t1800\t4200\t{label}" for n, (on, off, label) in enumerate(TIMES)]
    made(folder, {f"raven/rec {n}.wav": 10 for n in range(3)})
    made(folder, {f"raven/rec {n}.Table.1.selections.txt": head + "\n".join(lines) for n in range(3)})
    return {"read": 3, "labels": {"Dog": 3, "Speech": 3}}


def audacity(folder):
    lines = [f"{on:.6f}\t{off:.6f}\t{label}\n\\\t1800.0\t4200.0" for on, off, label in TIMES]
    made(folder, {f"audacity/rec {n}.wav": 10 for n in range(3)})
    made(folder, {f"audacity/rec {n}.txt": "\n".join(lines) for n in range(3)})
    return {"read": 3, "labels": {"Dog": 3, "Speech": 3}}


LAYOUTS = {
    "UrbanSound8K": urbansound8k,
    "ESC-50": esc50,
    "FSD50K": fsd50k,
    "DESED": desed_weak,
    "validation": desed_strong,
    "AudioSet": audioset,
    "labels:raven": raven,
    "labels:audacity": audacity,
}


def test_every_command_of_the_docs_is_tried():
    assert COMMANDS.keys() == LAYOUTS.keys()


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_miniature_is_read_by_the_command_of_the_docs(name, tmp_path, monkeypatch, capsys):
    expected = LAYOUTS[name](tmp_path)
    monkeypatch.chdir(tmp_path)
    main([*shlex.split(COMMANDS[name])[1:], "--json"])
    printed = capsys.readouterr()
    assert printed.out, printed.err
    account = json.loads(printed.out)
    assert {key: account[key] for key in expected} == expected
    assert account["found"] == account["read"] + sum(one["count"] for one in account["left_out"])
