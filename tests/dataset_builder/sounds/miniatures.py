"""Miniatures of the named data sets: few short sounds, with the columns and features of the real ones."""

import io

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile
from datasets import Audio, ClassLabel, List, Value, Video

from .sounds import RATE, noise

TEXT, WHOLE = Value("string"), Value("int64")

WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go", "zero", "one", "two", "_unknown_")
FAMILIES = ("bass", "brass", "flute", "guitar", "keyboard", "mallet", "organ", "reed", "string", "vocal")
VOCAL = ("Laughter", "Sniff", "Throat clearing", "Cough", "Sigh", "Sneeze")
URBAN = ("air_conditioner", "car_horn", "children_playing", "dog_bark", "drilling", "engine_idling", "gun_shot")
URBAN += ("jackhammer", "siren", "street_music")
VIDEOS = tuple(f"playing {n}" for n in range(12))
CAPTIONS = tuple(tuple(f"sound {clip} in words {number}" for number in range(5 - clip % 2)) for clip in range(6))
LEAVES = tuple(f"Leaf_{n}" for n in range(13))


def sound(number, name="x.wav"):
    stream = io.BytesIO()
    soundfile.write(stream, noise(0.3, seed=number), RATE, format="FLAC")
    return {"bytes": stream.getvalue(), "path": name}


def speech_commands():
    names = [*WORDS[:-1], "_unknown_", "_silence_"]
    rows = [
        {"label": word, "speaker_id": f"{speaker:08x}", "is_unknown": place > 9, "utterance_id": 0}
        for speaker in range(4)
        for place, word in enumerate(WORDS)
    ]
    rows.append({"label": "_silence_", "speaker_id": None, "is_unknown": False, "utterance_id": 0})
    features = {
        "file": TEXT,
        "audio": Audio(sampling_rate=16_000),
        "label": ClassLabel(names=names),
        "is_unknown": Value("bool"),
        "speaker_id": TEXT,
        "utterance_id": Value("int8"),
    }
    rows = [{**row, "file": f"{row['label']}/{row['speaker_id']}_nohash_0.wav"} for row in rows]
    return "v0.02/validation/0000.parquet", rows, features


def esc50():
    rows = [
        {
            "filename": f"1-{source}-{take}-{target}.wav",
            "fold": 1 + source % 5,
            "target": target,
            "category": f"category {target}",
            "esc10": target < 10,
            "src_file": 100 * target + source,
            "take": take,
        }
        for target in range(13)
        for source in range(3)
        for take in "AB"
    ]
    features = {
        "filename": TEXT,
        "fold": WHOLE,
        "target": WHOLE,
        "category": TEXT,
        "esc10": Value("bool"),
        "src_file": WHOLE,
        "take": TEXT,
        "audio": Audio(),
    }
    return "data/train-00000-of-00001.parquet", rows, features


def vocalsound():
    rows = [
        {"spk_id": f"f{speaker:04d}", "answer": answer, "age_group": 1 + speaker % 3}
        for speaker in range(5)
        for answer in VOCAL
    ]
    return (
        "data/test-00000-of-00001.parquet",
        rows,
        {"audio": Audio(), "spk_id": TEXT, "answer": TEXT, "age_group": WHOLE},
    )


def nsynth():
    rows = [
        {
            "id": f"{family}_acoustic_{instrument:03d}-{pitch:03d}-100",
            "note": 0,
            "note_str": f"{family}_acoustic_{instrument:03d}-{pitch:03d}-100",
            "instrument": instrument,
            "instrument_str": f"{family}_acoustic_{instrument:03d}",
            "pitch": pitch,
            "velocity": 100,
            "sample_rate": 16_000,
            "qualities": [0] * 10,
            "qualities_str": [],
            "instrument_family": number,
            "instrument_family_str": family,
            "instrument_source": 0,
            "instrument_source_str": "acoustic",
        }
        for number, family in enumerate(FAMILIES)
        for instrument in range(2)
        for pitch in (48, 60, 72)
    ]
    texts = ("id", "note_str", "instrument_str", "instrument_family_str", "instrument_source_str")
    wholes = ("note", "instrument", "pitch", "velocity", "sample_rate", "instrument_family", "instrument_source")
    features = {
        **dict.fromkeys(texts, TEXT),
        **dict.fromkeys(wholes, WHOLE),
        "qualities": List(WHOLE),
        "qualities_str": List(TEXT),
        "audio": Audio(),
    }
    return "data/test/test.parquet", rows, features


def fsd50k():
    # Two or three levels, as clips have them: each with the labels above its own.
    above = {leaf: ("Music" if n % 2 else "Animal,Domestic_animals_and_pets") for n, leaf in enumerate(LEAVES)}
    rows = [{"labels": f"{leaf},{above[leaf]}"} for leaf in LEAVES for _ in range(10)]
    rows += [
        {"labels": f"{LEAVES[1]},{LEAVES[0]},Music,{above[LEAVES[0]]}"},
        {"labels": "Music"},
        {"labels": "Rare,Music"},
    ]
    return "data/test-00000-of-00001.parquet", rows, {"audio": Audio(), "labels": TEXT}


def audiomnist():
    rows = [
        {
            "speaker_id": f"{speaker:02d}",
            "digit": str(digit),
            "gender": "female",
            "accent": "German",
            "age": 30,
            "native_speaker": False,
            "origin": "Europe, Germany, Berlin",
        }
        for speaker in range(4)
        for digit in range(10)
    ]
    features = {
        "speaker_id": TEXT,
        "audio": Audio(sampling_rate=16_000),
        "digit": ClassLabel(names=[str(digit) for digit in range(10)]),
        "gender": ClassLabel(names=["male", "female"]),
        "accent": TEXT,
        "age": WHOLE,
        "native_speaker": Value("bool"),
        "origin": TEXT,
    }
    return "data/test-00000-of-00001.parquet", rows, features


def urbansound8k():
    rows = [
        {
            "slice_file_name": f"{number}-{label}-0-{piece}.wav",
            "fsID": number,
            "start": 0.5 * piece,
            "end": 0.5 * piece + 0.3,
            "salience": 1,
            "fold": 1 + source,
            "classID": label,
            "class": name,
        }
        for label, name in enumerate(URBAN)
        for source in range(2)
        for number in [100 * label + source]
        for piece in range(2)
    ]
    features = {
        "audio": Audio(),
        "slice_file_name": TEXT,
        "fsID": WHOLE,
        "start": Value("float64"),
        "end": Value("float64"),
        "salience": WHOLE,
        "fold": WHOLE,
        "classID": WHOLE,
        "class": TEXT,
    }
    return "data/train-00000-of-00001.parquet", rows, features


def vggsound():
    rows = [{"video": None, "label": name} for name in VIDEOS for _ in range(3)]
    features = {"video": Video(), "audio": Audio(sampling_rate=16_000), "label": ClassLabel(names=list(VIDEOS))}
    return "data/test-00000-of-00001.parquet", rows, features


def clotho():
    """The five captions of a clip in one text, and none in the list that is meant for them."""
    rows = [
        {
            "index": f"Clotho/{number}",
            "datasetname": "Clotho",
            "audio_len": 0.3,
            "text": ". ".join(CAPTIONS[number]) + (" " if number % 2 else ""),
            "raw_text": [],
        }
        for number in range(len(CAPTIONS))
    ]
    features = {
        "index": TEXT,
        "datasetname": TEXT,
        "audio": Audio(),
        "audio_len": Value("float32"),
        "text": TEXT,
        "raw_text": List(TEXT),
    }
    return "data/test-00000-of-00001.parquet", rows, features


def audiocaps():
    """A row a caption: the same sound as often as it has captions."""
    rows = [
        {
            "audiocap_id": 10 * clip + number,
            "youtube_id": f"video{clip}",
            "start_time": 30,
            "audio_length": 2_400,
            "caption": caption,
            "sound": clip,
        }
        for number in range(5)
        for clip, captions in enumerate(CAPTIONS)
        for caption in captions[number : number + 1]
    ]
    features = {
        "audiocap_id": WHOLE,
        "youtube_id": TEXT,
        "start_time": WHOLE,
        "audio_length": WHOLE,
        "caption": TEXT,
        "audio": Audio(),
    }
    return "data/test-00000-of-00001.parquet", rows, features


MINIATURES = {
    "audiocaps": audiocaps,
    "audiomnist": audiomnist,
    "clotho": clotho,
    "esc50": esc50,
    "fsd50k": fsd50k,
    "nsynth": nsynth,
    "speech-commands": speech_commands,
    "urbansound8k": urbansound8k,
    "vggsound": vggsound,
    "vocalsound": vocalsound,
}


def write_miniature(name, folder, *, declared=True):
    """Write a miniature; where it is not declared, the files do not say which column is sound.

    Returns:
        its rows, without sound.
    """
    path, rows, features = MINIATURES[name]()
    features = datasets.Features(features)
    values = {column: [row[column] for row in rows] for column in features if column != "audio"}
    for column, feature in features.items():
        if isinstance(feature, ClassLabel):
            values[column] = [feature.str2int(value) for value in values[column]]
    values["audio"] = [sound(row.get("sound", number)) for number, row in enumerate(rows)]
    table = pa.Table.from_pydict(values, schema=features.arrow_schema)
    path = folder / path
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table if declared else table.replace_schema_metadata(None), path)
    return rows
