"""Miniatures of the named data sets: few short sounds, with the columns and features of the real ones."""

from itertools import product

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Audio, ClassLabel, List, Value, Video

from .sounds import flac

WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go", "zero", "one", "two", "_unknown_")
FAMILIES = ("bass", "brass", "flute", "guitar", "keyboard", "mallet", "organ", "reed", "string", "vocal")
VOCAL = ("Laughter", "Sniff", "Throat clearing", "Cough", "Sigh", "Sneeze")
URBAN = ("air_conditioner", "car_horn", "children_playing", "dog_bark", "drilling", "engine_idling", "gun_shot")
URBAN += ("jackhammer", "siren", "street_music")
VIDEOS = tuple(f"playing {n}" for n in range(12))
CAPTIONS = tuple(tuple(f"sound {clip} in words {number}" for number in range(5 - clip % 2)) for clip in range(6))
LEAVES = tuple(f"Leaf_{n}" for n in range(13))

TEXT = Value("string")
TYPES = {"text": TEXT, "whole": Value("int64"), "bool": Value("bool"), "real": Value("float64"), "video": Video()}
TYPES |= {"texts": List(TEXT), "wholes": List(Value("int64")), "audio": Audio(), "16k": Audio(sampling_rate=16_000)}
UNSAID = {"text": "x", "whole": 1, "bool": False, "real": 0.3, "video": None, "texts": [], "wholes": [0] * 10}
"""Values of columns that nobody reads."""


def speech_commands():
    rows = [
        {"label": word, "speaker_id": f"{speaker:08x}", "is_unknown": place > 9, "utterance_id": 0}
        for speaker in range(4)
        for place, word in enumerate(WORDS)
    ]
    rows.append({"label": "_silence_", "speaker_id": None, "is_unknown": False, "utterance_id": 0})
    return rows, (*WORDS, "_silence_")


def esc50():
    return [
        {"category": f"category {target}", "target": target, "src_file": 100 * target + source, "take": take}
        for target, source, take in product(range(13), range(3), "AB")
    ]


def vocalsound():
    return [{"spk_id": f"f{speaker:04d}", "answer": answer} for speaker in range(5) for answer in VOCAL]


def nsynth():
    return [
        {"instrument_family_str": family, "instrument_str": f"{family}_acoustic_{instrument:03d}", "pitch": pitch}
        for family, instrument, pitch in product(FAMILIES, range(2), (48, 60, 72))
    ]


def fsd50k():
    # Two or three levels, as clips have them: each with the labels above its own.
    above = {leaf: ("Music" if n % 2 else "Animal,Domestic_animals_and_pets") for n, leaf in enumerate(LEAVES)}
    labels = [f"{leaf},{above[leaf]}" for leaf in LEAVES for _ in range(10)]
    labels += [f"{LEAVES[1]},{LEAVES[0]},Music,{above[LEAVES[0]]}", "Music", "Rare,Music"]
    return [{"labels": text} for text in labels]


def audiomnist():
    rows = [{"speaker_id": f"{speaker:02d}", "digit": str(digit)} for speaker in range(4) for digit in range(10)]
    return rows, tuple(map(str, range(10)))


def urbansound8k():
    return [
        {"class": name, "classID": label, "fsID": 100 * label + source, "fold": 1 + source}
        for (label, name), source, _ in product(enumerate(URBAN), range(2), range(2))
    ]


def vggsound():
    return [{"label": name} for name in VIDEOS for _ in range(3)], VIDEOS


def clotho():
    """The five captions of a clip in one text, and none in the list that is meant for them."""
    return [{"text": ". ".join(captions) + " " * (number % 2)} for number, captions in enumerate(CAPTIONS)]


def audiocaps():
    """A row a caption: the same sound as often as it has captions."""
    return [
        {"youtube_id": f"video{clip}", "caption": captions[number], "sound": clip}
        for number in range(5)
        for clip, captions in enumerate(CAPTIONS)
        if number < len(captions)
    ]


MINIATURES = {
    "audiocaps": (audiocaps, "data/test-00000-of-00001.parquet", {
        "whole": "audiocap_id start_time audio_length", "text": "youtube_id caption", "audio": "audio"}),
    "audiomnist": (audiomnist, "data/test-00000-of-00001.parquet", {
        "text": "speaker_id gender accent origin", "16k": "audio", "class": "digit", "whole": "age",
        "bool": "native_speaker"}),
    "clotho": (clotho, "data/test-00000-of-00001.parquet", {
        "text": "index datasetname text", "audio": "audio", "real": "audio_len", "texts": "raw_text"}),
    "esc50": (esc50, "data/train-00000-of-00001.parquet", {
        "text": "filename category take", "whole": "fold target src_file", "bool": "esc10", "audio": "audio"}),
    "fsd50k": (fsd50k, "data/test-00000-of-00001.parquet", {"audio": "audio", "text": "labels"}),
    "nsynth": (nsynth, "data/test/test.parquet", {
        "text": "id note_str instrument_str instrument_family_str instrument_source_str", "texts": "qualities_str",
        "whole": "note instrument pitch velocity sample_rate instrument_family instrument_source",
        "wholes": "qualities", "audio": "audio"}),
    "speech-commands": (speech_commands, "v0.02/validation/0000.parquet", {
        "text": "file speaker_id", "16k": "audio", "class": "label", "bool": "is_unknown", "whole": "utterance_id"}),
    "urbansound8k": (urbansound8k, "data/train-00000-of-00001.parquet", {
        "audio": "audio", "text": "slice_file_name class", "whole": "fsID salience fold classID", "real": "start end"}),
    "vggsound": (vggsound, "data/test-00000-of-00001.parquet", {"video": "video", "16k": "audio", "class": "label"}),
    "vocalsound": (vocalsound, "data/test-00000-of-00001.parquet", {
        "audio": "audio", "text": "spk_id answer", "whole": "age_group"}),
}  # fmt: skip
"""Of each set its rows, as far as they are read, with the names of classes where a column has them; the path of its
file; and the names of its columns by type."""


def write_miniature(name, folder, *, declared=True):
    """Write a miniature; where it is not declared, the files do not say which column is sound.

    Returns:
        its rows, without sound.
    """
    rows_of, path, columns = MINIATURES[name]
    rows, classes = made if isinstance(made := rows_of(), tuple) else (made, ())
    types = {column: kind for kind, names in columns.items() for column in names.split()}
    features = datasets.Features(
        {column: ClassLabel(names=list(classes)) if kind == "class" else TYPES[kind] for column, kind in types.items()}
    )
    values = {column: [row.get(column, UNSAID.get(kind)) for row in rows] for column, kind in types.items()}
    for column, kind in types.items():
        if kind == "class":
            values[column] = [classes.index(value) for value in values[column]]
    values["audio"] = [flac(row.get("sound", number)) for number, row in enumerate(rows)]
    table = pa.Table.from_pydict(values, schema=features.arrow_schema)
    path = folder / path
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table if declared else table.replace_schema_metadata(None), path)
    return rows
