import dataclasses
import io
import shutil
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
import soxr

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError, in_batches
from audio_compositionality.dataset_builder.manifest import MANIFEST_NAME, Manifest
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.support.errors import InputError

SOURCE = {"timbre_label": "a", "pitch_label": "b", "rate_label": "c", "amplitude_label": "d"}


def noise(seconds=0.5, rate=32_000, channels=1, seed=0):
    return np.random.default_rng(seed).uniform(-0.5, 0.5, (round(seconds * rate), channels)).astype(np.float32)


def encoded(samples, rate=32_000, **options):
    file = io.BytesIO()
    soundfile.write(file, samples, rate, **{"format": "WAV", "subtype": "FLOAT", **options})
    return file.getvalue()


def write_a_tre(folder: Path, clips: list[bytes | None], splits=("train", "val", "test"), **columns) -> str:
    """A data set in the authors' published schema: one default configuration, metadata a list, a split called val."""
    features = datasets.Features(
        {
            "audio": datasets.Audio(sampling_rate=32_000),
            "metadata": datasets.List({name: datasets.Value("string") for name in SOURCE}),
        }
    )
    (folder / "data").mkdir(parents=True)
    for split in splits:
        rows = [{"audio": {"bytes": clip, "path": None}, "metadata": [SOURCE]} for clip in clips]
        table = pa.Table.from_pylist(rows, schema=features.arrow_schema)
        for name, values in columns.items():
            table = table.set_column(table.column_names.index(name), name, [values])
        pq.write_table(table, folder / "data" / f"{split}-00000-of-00001.parquet")
    files = "".join(f"  - split: {split}\n    path: data/{split}-*\n" for split in splits)
    (folder / "README.md").write_text(f"---\nconfigs:\n- config_name: default\n  data_files:\n{files}---\n")
    return str(folder)


def scenes(folder):
    return open_data(folder).configuration("a_tre")


def read(folder: str):
    return [clip.waveform for clip in scenes(folder).clips()]


def test_the_authors_scenes_are_read(tmp_path):
    samples = [noise(seed=seed) for seed in range(3)]
    folder = write_a_tre(tmp_path / "x", [encoded(s) for s in samples])
    assert open_data(folder).recipes == ("a_tre",)
    configuration = scenes(folder)
    assert len(configuration.clip_ids) == 9
    rows = configuration.rows
    assert [row["split"] for row in rows] == ["train"] * 3 + ["validation"] * 3 + ["test"] * 3
    assert rows[4]["id"] == "a_tre-validation-00001"
    assert rows[4]["metadata"] == [SOURCE]
    assert "gains" not in rows[4]
    assert all((clip == samples[i % 3][:, 0]).all() for i, clip in enumerate(read(folder)))


def test_the_authors_quadruples_are_read(tmp_path):
    audio, part = datasets.Audio(), datasets.List({name: datasets.Value("string") for name in SOURCE})
    features = datasets.Features({**dict.fromkeys("ABCD", audio), "metadata": dict.fromkeys("ACT", part)})
    row = {name: {"bytes": encoded(noise(seed=seed)), "path": None} for seed, name in enumerate("ABCD")}
    row["metadata"] = {name: [SOURCE] for name in "ACT"}
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "test-00000-of-00001.parquet"
    pq.write_table(pa.Table.from_pylist([row], schema=features.arrow_schema), path)
    data = open_data(str(tmp_path))
    assert data.recipes == ("a_coat",)
    clips = list(data.configuration("a_coat").clips())
    assert [clip.id for clip in clips] == [f"a_coat-test-00000/{name}" for name in "ABCD"]
    assert (clips[2].waveform == noise(seed=2)[:, 0]).all()


def test_the_fingerprint_of_data_without_a_manifest_is_that_of_their_content(tmp_path):
    clips = {"a": (clip := encoded(noise())), "b": clip, "c": encoded(noise(seed=9))}
    one, same, other = (scenes(write_a_tre(tmp_path / name, [clip])) for name, clip in clips.items())
    assert one.fingerprint == same.fingerprint != other.fingerprint


def test_another_sample_rate_is_resampled_and_said_once(tmp_path):
    samples = [noise(rate=16_000, seed=seed) for seed in range(2)]
    folder = write_a_tre(tmp_path / "x", [encoded(s, 16_000) for s in samples])
    with pytest.warns(UserWarning, match="is at 16,000 Hz") as said:
        clips = read(folder)
    assert len(said) == 1
    assert clips[0].shape == (16_000,)
    assert clips[0] == pytest.approx(soxr.resample(samples[0][:, 0], 16_000, 32_000))


@pytest.mark.parametrize(
    ("clip", "message"),
    [
        (encoded(noise(channels=2)), "has 2 channels; clips must be mono"),
        (encoded(noise(seconds=0)), "is empty"),
        (encoded(noise() * np.nan), "has values that are not finite"),
        (encoded(noise() * 0), "is silent"),
        (encoded(noise(seconds=0.4)), "has 12,800 samples, but the first has 16,000"),
        (encoded(noise(), format="FLAC", subtype="PCM_16")[:4_000], "is damaged and cannot be decoded"),
        (b"no audio at all", "is damaged and cannot be decoded"),
        (None, "contains no audio"),
    ],
    # Not the bytes: a file of floats states the time at which it was written.
    ids=["stereo", "empty", "nan", "silent", "short", "cut off", "no audio", "none"],
)
def test_a_clip_that_cannot_be_used_is_named(tmp_path, clip, message):
    folder = write_a_tre(tmp_path / "x", [encoded(noise()), clip])
    with pytest.raises(
        DatasetError, match=f"data/train-00000-of-00001.parquet: clip a_tre-train-00001/audio {message}"
    ):
        read(folder)


def test_a_flac_that_is_damaged_or_claims_to_be_enormous_is_named(tmp_path):
    data = bytearray(encoded(noise(), format="FLAC", subtype="PCM_16"))
    # Bytes 18 to 25 of a FLAC file: 20 bits rate, 3 channels, 5 depth, 36 bits number of samples.
    enormous = data[:21] + bytes([data[21] | 0x0F]) + b"\xff\xff\xff\xff" + data[26:]
    middle = len(data) // 2
    damaged = data[:middle] + bytes(2_000) + data[middle + 2_000 :]
    for content, message in ((damaged, "clip a_tre-train-00000/audio"), (enormous, "a clip may last at most 600 s")):
        folder = write_a_tre(tmp_path / f"{len(list(tmp_path.iterdir()))}", [bytes(content)])
        with pytest.raises(DatasetError, match=message):
            read(folder)


def test_what_is_not_there_is_named(tmp_path):
    (tmp_path / "x").mkdir()
    with pytest.raises(DatasetError, match="no data set in"):
        open_data(f"built:{tmp_path / 'x'}")
    (tmp_path / "x" / "notes.txt").write_text("hello")
    with pytest.raises(DatasetError, match="which is not Parquet"):
        open_data(f"built:{tmp_path / 'x'}")
    (tmp_path / "x" / "notes.txt").unlink()
    pq.write_table(pa.table({"sound": [b""], "text": ["a"]}), tmp_path / "x" / "train.parquet")
    with pytest.raises(DatasetError, match="has the columns sound, text and no manifest; it lacks"):
        open_data(f"built:{tmp_path / 'x'}")
    folder = write_a_tre(tmp_path / "y", [encoded(noise())])
    with pytest.raises(DatasetError, match="has no data of 'a_coat'"):
        open_data(folder).configuration("a_coat")
    with pytest.raises(InputError, match="batch_size is 0"):
        list(in_batches(scenes(folder).clips(), 0))
    shard = tmp_path / "y" / "data" / "val-00000-of-00001.parquet"
    pq.write_table(pq.read_table(shard).drop_columns(["metadata"]), shard)
    with pytest.raises(DatasetError, match="parquet: row a_tre-validation-00000: metadata is None"):
        _ = scenes(folder).rows
    folder = write_a_tre(tmp_path / "z", [encoded(noise())], splits=("train", "test"))
    with pytest.raises(DatasetError, match="expected train, val, test"):
        open_data(folder)
    empty = pa.array([[]], pa.list_(pa.struct(dict.fromkeys(SOURCE, pa.string()))))
    folder = write_a_tre(tmp_path / "empty", [encoded(noise())], metadata=empty)
    with pytest.raises(DatasetError, match=r"parquet: row a_tre-train-00000: .*it is a list of 1 or more structures"):
        _ = scenes(folder).rows


def test_a_parquet_file_with_damaged_pages_is_named(tmp_path):
    folder = Path(write_a_tre(tmp_path / "x", [encoded(noise(0.02, seed=seed)) for seed in range(4)]))
    shard = folder / "data" / "val-00000-of-00001.parquet"
    whole = shard.read_bytes()
    errors = []
    for place in range(4, len(whole), len(whole) // 8):
        shard.write_bytes(whole[:place] + bytes(byte ^ 255 for byte in whole[place : place + 8]) + whole[place + 8 :])
        errors.append(error_of(folder))
    # Where there is none, the other samples are other data, with another fingerprint.
    errors = [error for error in errors if error is not None]
    assert errors
    assert all("val-00000-of-00001.parquet" in error or "a_tre-validation-0000" in error for error in errors)


def content(folder):
    data = open_data(folder)
    configurations = [data.configuration(name) for name in data.recipes]
    clips = [clip.waveform.sum() for configuration in configurations for clip in configuration.clips()]
    return [(configuration.fingerprint, configuration.rows) for configuration in configurations], clips


def error_of(folder):
    try:
        _ = content(folder)
    except DatasetError as error:
        return str(error)
    return None


@pytest.fixture(scope="module")
def divided(tmp_path_factory):
    """Splits of 7 scenes in two files each, in row groups of 3."""
    folder = tmp_path_factory.mktemp("rows") / "x"
    write_a_tre(folder, [encoded(noise(0.01, seed=seed)) for seed in range(7)])
    for path in sorted((folder / "data").iterdir()):
        table = pq.read_table(path)
        for number, (start, stop) in enumerate([(0, 5), (5, 7)]):
            name = path.name.replace("00000-of-00001", f"0000{number}-of-00002")
            pq.write_table(table.slice(start, stop - start), path.parent / name, row_group_size=3)
        path.unlink()
    return str(folder)


class TestParts:
    """Parts of a configuration are the same clips as the whole, wherever files, splits and row groups end."""

    @pytest.mark.parametrize("wanted", [range(21), range(4, 6), range(6, 15), range(7, 7)])
    def test_of_stored_data(self, divided, wanted):
        configuration = scenes(divided)
        assert list(configuration.clip_ids) == [f"{row['id']}/audio" for row in configuration.rows]
        clips = list(configuration.clips(wanted))
        assert [clip.id for clip in clips] == [configuration.clip_ids[row] for row in wanted]
        for row, clip in zip(wanted, clips, strict=True):
            assert (clip.waveform == noise(0.01, seed=row % 7)[:, 0]).all()

    @pytest.mark.parametrize("wanted", [range(0, 22), range(-1, 2), range(0, 4, 2)])
    def test_that_are_not_there_are_refused(self, divided, wanted):
        with pytest.raises(InputError, match=r"clips are range\(.*\); they must be consecutive and lie within"):
            list(scenes(divided).clips(wanted))


class TestKeepInvalid:
    def test_invalid_clips_are_nan_with_the_reason_and_the_others_as_ever(self, tmp_path):
        files = [noise() * 0, noise(), None, noise(seconds=0.4), noise(seed=4)]
        files = [b"no audio" if samples is None else encoded(samples) for samples in files]
        folder = write_a_tre(tmp_path / "x", files)
        clips = list(scenes(folder).clips(range(5), keep_invalid=True))
        assert [clip.problem is not None for clip in clips] == [True, False, True, True, False]
        assert clips[0].problem == "is silent; a clip must contain sound"
        assert clips[2].problem.startswith("is damaged and cannot be decoded")
        assert (
            clips[3].problem
            == "has 12,800 samples, but the first has 16,000; all clips of a_tre must have the same length"
        )
        assert all(np.isnan(clips[place].waveform).all() for place in (0, 2, 3))
        assert {len(clip.waveform) for clip in clips} == {16_000}
        assert (clips[1].waveform == noise()[:, 0]).all()
        assert (clips[4].waveform == noise(seed=4)[:, 0]).all()
        # The length is that of the first valid clip, whatever part is read.
        (part,) = scenes(folder).clips(range(3, 4), keep_invalid=True)
        assert part.problem == clips[3].problem
        with pytest.raises(DatasetError, match="clip a_tre-train-00003/audio has 12,800 samples"):
            list(scenes(folder).clips(range(3, 4)))
        folder = write_a_tre(tmp_path / "y", [b"no audio"])
        with pytest.raises(DatasetError, match="clip a_tre-train-00000/audio is damaged and cannot be decoded"):
            list(scenes(folder).clips(keep_invalid=True))


SHARD = "a_tre/test-00000-of-00001.parquet"


def damaged(folder, damage):
    """Damage a built folder in one way."""
    manifest, shard = folder / MANIFEST_NAME, folder / SHARD
    of_scenes = Manifest.load(manifest).recipes["a_tre"]
    away = {f"../{name}": shard for name, shard in of_scenes.shards.items()}
    if damage == "other samples":
        pq.write_table(pq.read_table(shard).take([1, 0]), shard)
    elif damage == "one shard more":
        (folder / "a_tre" / "test-extra.parquet").write_bytes(shard.read_bytes())
    elif damage == "one shard less":
        shard.rename(folder / "away")
    elif damage == "another fingerprint":
        manifest.write_text(Manifest({"a_tre": dataclasses.replace(of_scenes, fingerprint="0" * 64)}).dumps())
    elif damage == "a file elsewhere":
        manifest.write_text(Manifest({"a_tre": dataclasses.replace(of_scenes, shards=away)}).dumps())
    else:
        manifest.write_text(damage)


@pytest.fixture(scope="module")
def built(tiny_data, tmp_path_factory):
    return build_dataset(tiny_data, tmp_path_factory.mktemp("built") / "x", progress=False)


class TestManifest:
    @pytest.fixture
    def folder(self, built, tmp_path):
        return Path(shutil.copytree(built, tmp_path / "x"))

    @pytest.mark.parametrize(
        ("damage", "message"),
        [
            ("other samples", rf"^{SHARD} differs from the shard that was built"),
            ("one shard more", "not in the manifest"),
            ("one shard less", r"lacks 1 of its \d shards, e.g. a_tre/test-00000|cannot be read"),
            ("another fingerprint", "the fingerprint of a_tre does not match its settings"),
            ("a file elsewhere", r"names '\.\./a_tre/"),
            *((text, r"manifest\.json") for text in ("", "[]", '{"schema_version": 9}')),
            ('{"schema_version": 1, "sha256": 3}', r"manifest\.json"),
        ],
    )
    def test_a_folder_that_is_not_as_it_was_built_is_refused(self, folder, damage, message):
        damaged(folder, damage)
        with pytest.raises(DatasetError, match=message):
            _ = scenes(folder).rows

    def test_a_folder_without_its_manifest_is_refused(self, folder):
        (folder / MANIFEST_NAME).unlink()
        for ask in (lambda: scenes(folder).fingerprint, lambda: scenes(folder).rows, lambda: read(folder)):
            with pytest.raises(DatasetError, match=r"was built with the fingerprint \w{12}, but the manifest\.json"):
                ask()

    def test_one_of_several_shards_missing_is_named(self, tmp_path, tiny_data, monkeypatch):
        monkeypatch.setattr("audio_compositionality.dataset_builder.build.CLIPS_PER_SHARD", 8)
        folder = build_dataset(tiny_data, tmp_path / "y", progress=False)
        (folder / "a_tre" / "train-00001-of-00003.parquet").unlink()
        with pytest.raises(DatasetError, match=r"lacks 1 of its 6 shards, e\.g\. a_tre/train-00001-of-00003"):
            open_data(folder)


@pytest.mark.fuzz
def test_a_flipped_bit_is_refused_or_changes_nothing(toys, tmp_path, fuzz_cases, fuzz_rng):
    folder = build_dataset("tiny", tmp_path / "x", progress=False)
    expected = content(folder)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".build.lock"]
    for _ in range(fuzz_cases):
        path = files[fuzz_rng.integers(len(files))]
        whole = path.read_bytes()
        damaged = bytearray(whole)
        damaged[fuzz_rng.integers(len(whole))] ^= 1 << fuzz_rng.integers(8)
        path.write_bytes(damaged)
        error = error_of(folder)
        if error is None:
            assert path.name == "README.md"
            assert content(folder) == expected
        else:
            assert path.name in error
        path.write_bytes(whole)
