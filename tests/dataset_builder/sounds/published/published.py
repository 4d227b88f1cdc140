"""Miniatures of the published CompA benchmark: few short sounds, in files, tables and archives as its authors ship."""

import csv
import io
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile
from datasets import Audio, Features, Value

RATES = (8_000, 16_000, 44_100)

ORDER_COLUMNS = (
    *("pair_file", "pair_caption", "reversed_pair_file", "reversed_pair_caption"),
    *("triplet_file", "triplet_caption"),
)

ATTRIBUTE_COLUMNS = (*ORDER_COLUMNS[:4], "pair_file", "reversed_pair_file")
"""The second ``pair_file`` has the names of the files; pandas calls it ``pair_file.1``."""


def waveform(number):
    """Stereo noise [samples, 2], as long as its number says."""
    return 0.1 * np.random.default_rng(number).normal(size=(2_000 + 500 * number, 2))


def encoded(number):
    stream = io.BytesIO()
    soundfile.write(stream, waveform(number), RATES[number % 3], format="WAV", subtype="PCM_16")
    return stream.getvalue()


def order_rows(items=3):
    """The last item has no third clip: with ``-``, then with nothing."""
    rows = []
    for n in range(items):
        third = (f"X{n}_trip.wav", f"x{n} with y{n}") if n < items - 2 else ("-", "-") if n % 2 else ("", "")
        rows.append((f"X{n}.wav", f"x{n} then y{n}", f"X{n}_rev.wav", f"y{n} then x{n}", *third))
    return rows


def attribute_rows(items=2):
    return [
        (f"vid{n}", f"a baby {n} cries", f"vid{n}", f"a man {n} cries", f"A{n}.wav", f"A{n}_rev.wav")
        for n in range(items)
    ]


def names_of_order(items=3):
    return [name for row in order_rows(items) for name in row[::2] if name.endswith(".wav")]


def names_of_attribute(items=2):
    return [name for row in attribute_rows(items) for name in row[4:]]


def table(columns, rows):
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows([columns, *rows])
    return stream.getvalue().encode("utf-8-sig")


def order_files(items=3):
    """Content by path, of what ``CompA-order.zip`` holds."""
    files = {"CompA_order_benchmark.csv": table(ORDER_COLUMNS, order_rows(items))}
    files |= {f"CompA_order_files/{name}": encoded(n) for n, name in enumerate(names_of_order(items))}
    # What the Mac leaves beside them has their names.
    for path in list(files):
        folder, _, name = path.rpartition("/")
        files[f"__MACOSX/{folder}/._{name}".replace("//", "/")] = b"\0\5\26\7 Mac OS X"
    return files


def attribute_files(items=2):
    files = {"CompA Attribute/Compa-Attribute.csv": table(ATTRIBUTE_COLUMNS, attribute_rows(items))}
    names = names_of_attribute(items)
    files |= {f"CompA Attribute/CompA_attribute_files/{name}": encoded(20 + n) for n, name in enumerate(names)}
    files["__MACOSX/CompA Attribute/._Compa-Attribute.csv"] = b"\0\5\26\7 Mac OS X"
    return files


def write_files(folder, files):
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def write_zip(path, files):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def write_copy(path, items=3, *, names=None, row_group_size=2):
    """The copy of the order items on the Hub: a clip a row."""
    texts = {name: text for row in order_rows(items) for name, text in zip(row[::2], row[1::2], strict=True)}
    names = names_of_order(items) if names is None else names
    every = names_of_order(items)
    features = Features({"file_name": Value("string"), "audio": Audio(), "answer": Value("string")})
    values = {
        "file_name": names,
        "audio": [{"bytes": encoded(every.index(name)), "path": name} for name in names],
        "answer": [texts[name] for name in names],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pydict(values, schema=features.arrow_schema), path, row_group_size=row_group_size)
    return path
