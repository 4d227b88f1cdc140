"""Labels as DESED and MAESTRO have them, with sound for them; of the few that are written by hand, what can be asked is
counted by hand too."""

import json

import numpy as np
import soundfile

STRONG = ("filename", "onset", "offset", "event_label")

# Clip, onset, offset, class, as rows of DESED. Windows of detection last 1 s.
DOMESTIC_ROWS = (
    ("Y01.wav", 1, 4, "Dog"), ("Y01.wav", 2, 6, "Speech"),  # 2 kinds, Speech longest, together from 2 s
    ("Y02.wav", 1, 6, "Dog"), ("Y02.wav", 4, 5.5, "Speech"),  # 2, Dog, 4 s
    ("Y03.wav", 1, 2.5, "Dog"),  # 1
    ("Y04.wav", 3, 5, "Speech"),  # 1
    ("Y05.wav", 0.5, 1.5, "Dog"), ("Y05.wav", 5, 8, "Speech"),  # 2, Speech, never together
    ("Y06.wav", 1, 5, "Cat"), ("Y06.wav", 3, 6, "Speech"),  # 2, Cat, 3 s
    ("Y08.wav", 4, 9, "Dog"), ("Y08.wav", 7, 9, "Alarm_bell_ringing"),  # 2, Dog, 7 s
    ("Y09.wav", 2, 7, "Dog"), ("Y09.wav", 5, 7, "Cat"),  # 2, Dog, 5 s
    ("Y10.wav", 1, 6, "Dog"), ("Y10.wav", 1.6, 9, "Frying"),  # 2, Frying, 1.6 s
    ("Y11.wav", "", "", ""),  # nothing is heard
)  # fmt: skip

DOMESTIC_QUESTIONS = {
    "counting/kinds": 4,  # two clips have one kind, and two of those with two
    "duration/total": 2,  # Dog and Speech: Speech wins twice, Dog once; other pairs are won by one side alone
    "concurrency/anchor": 8,  # Dog overlaps in 5 clips and is alone in 2, Speech in 3 and in 2; others never alone
    "classification/overlap": 4,  # Dog with Speech, Alarm bell ringing, Cat, Frying
    "detection/first": 4,  # six clips, of which four make a set
}

# Rows of MAESTRO: a class and a whole second each.
STREET_ROWS = tuple(
    ("cafe_00.wav", second, second + 1, label)
    for label, seconds in (
        ("people_talking", (*range(2, 6), *range(27, 30))),
        ("cutlery and dishes", range(4, 10)),
    )
    for second in seconds
)

# Name, then second, class and share of those who heard it: in the second recording it depends on who is asked.
SOFT_ROWS = {
    "street_01": [*((s, "car", 0.9) for s in range(2, 6)), *((s, "birds_singing", 0.9) for s in range(4, 8))],
    "street_02": [
        *((s, "car", 0.9) for s in range(2, 6)),
        (5, "birds_singing", 0.55),
        *((s, "birds_singing", 0.9) for s in range(8, 10)),
    ],
    "street_03": [*((s, "car", 0.9) for s in range(2, 6)), (0, "birds_singing", 0.2)],
}


def text_of(lines):
    return "".join("\t".join(map(str, line)) + "\n" for line in lines)


def sound(path, seconds, rate=8_000, seed=None, channels=1):
    """Noise, another one in each file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng([ord(letter) for letter in path.stem] if seed is None else seed)
    subtype = "VORBIS" if path.suffix == ".ogg" else "PCM_16"
    soundfile.write(path, rng.normal(0, 0.1, (round(seconds * rate), channels)), rate, subtype=subtype)
    return path


def write_domestic(folder, rows=DOMESTIC_ROWS, seconds=10.0):
    """`validation.tsv`, its durations, and the sound of all clips in which something is heard."""
    folder.mkdir(parents=True, exist_ok=True)
    labels = folder / "validation.tsv"
    labels.write_text(text_of([STRONG, *rows]))
    names = dict.fromkeys(row[0] for row in rows)
    (folder / "validation_durations.tsv").write_text(
        text_of([("filename", "duration"), *((name, seconds) for name in names)])
    )
    for name in dict.fromkeys(row[0] for row in rows if row[3]):
        sound(folder / "audio" / "validation" / name, seconds)
    return labels, folder / "audio"


def write_streets(folder):
    """`development.csv` with tabs, its durations, and two windows of sound at another rate."""
    folder.mkdir(parents=True, exist_ok=True)
    labels = folder / "development.csv"
    labels.write_text(text_of([STRONG, *STREET_ROWS]))
    (folder / "development_durations.csv").write_text(text_of([("filename", "duration"), ("cafe_00", 50.0)]))
    sound(folder / "audio" / "cafe_00.wav", 50.0, rate=11_025, channels=2)
    return labels, folder / "audio"


def write_soft(folder):
    """A file a recording with soft labels; every class has all seconds."""
    labels = folder / "soft_labels"
    labels.mkdir(parents=True, exist_ok=True)
    for name, heard in SOFT_ROWS.items():
        shares = {(second, label): share for second, label, share in heard}
        classes = sorted({label for _, label, _ in heard})
        seconds = [(s, s + 1, label, shares.get((s, label), 0.0)) for label in classes for s in range(12)]
        (labels / f"{name}.txt").write_text(text_of(seconds))
        sound(folder / "audio" / f"{name}.flac", 12.0)
    return labels, folder / "audio"


def write_annotations(annotations, folder):
    """Annotations in DESED's format, with sound."""
    rows = [
        (f"{annotation.recording}.wav", event.onset, event.offset, event.label.replace(" ", "_"))
        for annotation in annotations
        for event in annotation.events
    ]
    return write_domestic(folder, rows)


# Clips of 10 s of AudioTime's part `timestamp`: label, intervals.
AUDIOTIME = {
    "syn_0.wav": {"dog": [[1.0, 3.0]]},
    "syn_1.wav": {"dog": [[0.5, 2.0], [4.0, 5.0]], "speech": [[6.0, 9.0]]},
    "syn_2.wav": {"speech": [[2.0, 6.0]]},
    "syn_3.wav": {"Church bell": [[2.0, 6.0]]},  # no label of the other recordings
    "syn_4.wav": {"dog": [[1.0, 4.0]], "speech": [[2.0, 6.0]]},  # overlaps
    "syn_5.wav": {"dog": [[1.0, 4.0]], "speech": [[4.05, 6.0]]},  # nobody can tell
}


def write_audiotime(folder, clips=AUDIOTIME):
    folder.mkdir(parents=True, exist_ok=True)
    labels = folder / "test5000_timestamp_captions.json"
    labels.write_text(json.dumps({clip: {"event": events, "caption": "x"} for clip, events in clips.items()}))
    for number, clip in enumerate(clips):
        sound(folder / "audio" / clip, 10.0, seed=1_000 + number)
    return labels, folder / "audio"
