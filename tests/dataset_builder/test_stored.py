import io
import json
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
import soxr

from audio_compositionality.dataset_builder import DatasetError, build_dataset, open_benchmark

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


def read(folder: str):
    return [clip for batch in open_benchmark(folder).batches("a_tre", 2) for clip in batch.waveforms]


def test_the_authors_schema_of_a_tre_is_read(tmp_path):
    samples = [noise(seed=seed) for seed in range(3)]
    folder = write_a_tre(tmp_path / "x", [encoded(s) for s in samples])
    benchmark = open_benchmark(folder)
    assert benchmark.tasks == ("a_tre",)
    assert benchmark.num_clips("a_tre") == 9
    assert benchmark.amplitude_gains is None
    rows = benchmark.rows("a_tre")
    assert [row["split"] for row in rows] == ["train"] * 3 + ["validation"] * 3 + ["test"] * 3
    assert rows[4]["id"] == "a_tre-validation-00001"
    assert rows[4]["metadata"] == [SOURCE]
    assert all((clip == samples[i % 3][:, 0]).all() for i, clip in enumerate(read(folder)))


def test_the_authors_schema_of_a_coat_is_read(tmp_path):
    audio = datasets.Audio(sampling_rate=32_000)
    part = datasets.List({name: datasets.Value("string") for name in SOURCE})
    features = datasets.Features({**dict.fromkeys("ABCD", audio), "metadata": dict.fromkeys("ACT", part)})
    row = {name: {"bytes": encoded(noise(seed=seed)), "path": None} for seed, name in enumerate("ABCD")}
    table = pa.Table.from_pylist(
        [{**row, "metadata": {name: [SOURCE] for name in "ACT"}}], schema=features.arrow_schema
    )
    (tmp_path / "data").mkdir()
    pq.write_table(table, tmp_path / "data" / "test-00000-of-00001.parquet")
    benchmark = open_benchmark(str(tmp_path))
    assert benchmark.tasks == ("a_coat",)
    (batch,) = benchmark.batches("a_coat", 8)
    assert batch.ids == tuple(f"a_coat-test-00000/{name}" for name in "ABCD")
    assert (batch.waveforms[2] == noise(seed=2)[:, 0]).all()


def test_the_fingerprint_of_data_without_a_manifest_is_that_of_their_content(tmp_path):
    clip = encoded(noise())
    one = open_benchmark(write_a_tre(tmp_path / "a", [clip]))
    same = open_benchmark(write_a_tre(tmp_path / "b", [clip]))
    other = open_benchmark(write_a_tre(tmp_path / "c", [encoded(noise(seed=9))]))
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
        (encoded(noise(channels=2)), "has 2 channels; clips are mono"),
        (encoded(noise(seconds=0)), "is empty"),
        (encoded(noise() * np.nan), "has values that are not finite"),
        (encoded(noise() * 0), "is silent"),
        (encoded(noise(seconds=0.4)), "has 12,800 samples, the first has 16,000"),
        (encoded(noise(), format="FLAC", subtype="PCM_16")[:4_000], "cannot be decoded, its data are damaged"),
        (b"no audio at all", "cannot be decoded"),
        (b"", "holds no audio"),
        (None, "holds no audio"),
    ],
)
def test_a_clip_that_cannot_be_used_is_named(tmp_path, clip, message):
    folder = write_a_tre(tmp_path / "x", [encoded(noise()), clip])
    with pytest.raises(DatasetError, match=f"clip a_tre-train-00001/audio {message}"):
        read(folder)


def test_a_flac_damaged_in_its_middle_is_named(tmp_path):
    data = bytearray(encoded(noise(seconds=5), format="FLAC", subtype="PCM_16"))
    middle = len(data) // 2
    data[middle : middle + 2_000] = bytes(2_000)
    folder = write_a_tre(tmp_path / "x", [bytes(data)])
    with pytest.raises(DatasetError, match="clip a_tre-train-00000/audio"):
        read(folder)


def test_missing_columns_are_named(tmp_path):
    (tmp_path / "x").mkdir()
    pq.write_table(pa.table({"sound": [b""], "text": ["a"]}), tmp_path / "x" / "train.parquet")
    with pytest.raises(DatasetError, match=r"has the columns sound, text; missing are those of a task \(a_coat: A, B"):
        open_benchmark(str(tmp_path / "x"))


def test_columns_missing_from_a_later_shard_are_named(tmp_path):
    folder = write_a_tre(tmp_path / "x", [encoded(noise())])
    shard = tmp_path / "x" / "data" / "val-00000-of-00001.parquet"
    pq.write_table(pq.read_table(shard).drop_columns(["metadata"]), shard)
    with pytest.raises(DatasetError, match="lacks the columns metadata of a_tre"):
        open_benchmark(folder).rows("a_tre")


def test_a_clip_that_claims_to_be_enormous_is_not_decoded(tmp_path):
    data = bytearray(encoded(noise(), format="FLAC", subtype="PCM_16"))
    # Bytes 18 to 25 of a FLAC file: 20 bits rate, 3 channels, 5 depth, 36 bits number of samples.
    data[21] |= 0x0F
    data[22:26] = b"\xff\xff\xff\xff"
    folder = write_a_tre(tmp_path / "x", [bytes(data)])
    with pytest.raises(DatasetError, match="a clip lasts 600 s at most"):
        read(folder)


def test_a_broken_card_is_refused(tmp_path):
    folder = write_a_tre(tmp_path / "x", [encoded(noise())])
    (tmp_path / "x" / "README.md").write_text("---\nconfigs: [\n---\n")
    with pytest.raises(DatasetError, match="no data set in"):
        open_benchmark(folder)


def test_missing_splits_are_named(tmp_path):
    folder = write_a_tre(tmp_path / "x", [encoded(noise())], splits=("train", "test"))
    with pytest.raises(DatasetError, match="needed are train, validation, test"):
        open_benchmark(folder)


def test_metadata_without_labels_are_refused(tmp_path):
    broken = pa.array([[{"timbre_label": "a", "pitch_label": None, "rate_label": "c", "amplitude_label": "d"}]])
    folder = write_a_tre(tmp_path / "x", [encoded(noise())], metadata=broken)
    with pytest.raises(DatasetError, match="row a_tre-train-00000: a source lacks pitch_label"):
        open_benchmark(folder).rows("a_tre")
    empty = pa.array([[]], broken.type)
    folder = write_a_tre(tmp_path / "y", [encoded(noise())], metadata=empty)
    with pytest.raises(DatasetError, match="lists at least one source"):
        open_benchmark(folder).rows("a_tre")


def test_a_folder_that_is_no_data_set_is_refused(tmp_path):
    with pytest.raises(DatasetError, match="no data set in"):
        open_benchmark(str(tmp_path))
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(DatasetError, match="which is not Parquet"):
        open_benchmark(str(tmp_path))


def test_a_name_that_is_nothing_gets_the_nearest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DatasetError, match=r"no data 'fulll'.*did you mean 'full'"):
        open_benchmark("fulll")


def test_an_unknown_task_is_refused(tmp_path):
    benchmark = open_benchmark(write_a_tre(tmp_path / "x", [encoded(noise())]))
    with pytest.raises(ValueError, match="unknown task 'a_coat'"):
        benchmark.rows("a_coat")
    with pytest.raises(ValueError, match="batch_size is 0"):
        list(benchmark.batches("a_tre", 0))


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


class TestRows:
    """Parts of a task are the same clips as the whole, wherever files, splits and row groups end."""

    @pytest.mark.parametrize("rows", [range(21), range(3), range(4, 6), range(6, 15), range(20, 21), range(7, 7)])
    @pytest.mark.parametrize("batch_size", [1, 4])
    def test_of_a_stored_benchmark(self, divided, rows, batch_size):
        benchmark = open_benchmark(divided)
        ids = [f"{row['id']}/audio" for row in benchmark.rows("a_tre")]
        batches = list(benchmark.batches("a_tre", batch_size, rows))
        assert [clip for batch in batches for clip in batch.ids] == [ids[row] for row in rows]
        clips = [clip for batch in batches for clip in batch.waveforms]
        assert all((clip == noise(0.01, seed=row % 7)[:, 0]).all() for row, clip in zip(rows, clips, strict=True))
        assert [len(batch.ids) for batch in batches[:-1]] == [batch_size] * (len(batches) - 1)

    def test_only_the_row_groups_that_hold_them_are_read(self, divided, monkeypatch):
        asked = []
        read = pq.ParquetFile.iter_batches

        def watched(file, *args, row_groups, **kwargs):
            asked.append(row_groups)
            return read(file, *args, row_groups=row_groups, **kwargs)

        benchmark = open_benchmark(divided)
        list(benchmark.batches("a_tre", 4, range(1)))
        monkeypatch.setattr(pq.ParquetFile, "iter_batches", watched)
        list(benchmark.batches("a_tre", 4, range(4, 6)))
        assert asked == [[1], [0]]

    def test_of_a_rendered_benchmark(self, small_benchmark):
        whole = [clip for batch in small_benchmark.batches("a_coat", 5) for clip in batch.waveforms]
        parts = list(small_benchmark.batches("a_coat", 5, range(2, 5)))
        assert [clip for batch in parts for clip in batch.ids] == [
            f"{small_benchmark.quadruples[row].id}/{name}" for row in range(2, 5) for name in "ABCD"
        ]
        found = [clip for batch in parts for clip in batch.waveforms]
        assert all((one == other).all() for one, other in zip(found, whole[8:20], strict=True))

    @pytest.mark.parametrize("rows", [range(0, 22), range(-1, 2), range(0, 4, 2), range(3, 1)])
    def test_that_are_not_there_are_refused(self, divided, small_benchmark, rows):
        for benchmark in (open_benchmark(divided), small_benchmark):
            with pytest.raises(ValueError, match=r"rows are range\(.*\); they must be consecutive and lie within"):
                list(benchmark.batches("a_coat" if benchmark is small_benchmark else "a_tre", 4, rows))


class TestKeepInvalid:
    def test_invalid_clips_are_nan_with_the_reason_and_the_others_as_ever(self, tmp_path):
        clips = [
            encoded(noise() * 0),
            encoded(noise()),
            b"no audio",
            encoded(noise(seconds=0.4)),
            encoded(noise(seed=4)),
        ]
        benchmark = open_benchmark(write_a_tre(tmp_path / "x", clips))
        batches = list(benchmark.batches("a_tre", 4, range(5), keep_invalid=True))
        assert [sorted(batch.errors) for batch in batches] == [[0, 2, 3], []]
        assert batches[0].errors[0] == "is silent; every scene has a source that sounds"
        assert batches[0].errors[2].startswith("cannot be decoded")
        assert batches[0].errors[3].startswith("has 12,800 samples, the first has 16,000")
        assert np.isnan(batches[0].waveforms[[0, 2, 3]]).all()
        assert (batches[0].waveforms[1] == noise()[:, 0]).all()
        assert (batches[1].waveforms[0] == noise(seed=4)[:, 0]).all()

    def test_the_length_is_that_of_the_first_valid_clip_whatever_part_is_read(self, tmp_path):
        clips = [b"no audio", encoded(noise()), encoded(noise(seconds=0.4))]
        folder = write_a_tre(tmp_path / "x", clips)
        (part,) = open_benchmark(folder).batches("a_tre", 4, range(2, 3), keep_invalid=True)
        assert part.errors == {0: "has 12,800 samples, the first has 16,000; clips of a data set have one length"}
        with pytest.raises(DatasetError, match="clip a_tre-train-00002/audio has 12,800 samples"):
            list(open_benchmark(folder).batches("a_tre", 4, range(2, 3)))

    def test_data_without_any_valid_clip_are_refused(self, tmp_path):
        folder = write_a_tre(tmp_path / "x", [b"no audio"])
        with pytest.raises(DatasetError, match="clip a_tre-train-00000/audio cannot be decoded"):
            list(open_benchmark(folder).batches("a_tre", 4, keep_invalid=True))


class TestManifest:
    @pytest.fixture
    def folder(self, tiny_config, tmp_path):
        return build_dataset(tiny_config, tmp_path / "x", progress=False)

    def test_other_samples_than_the_fingerprints_are_refused(self, folder):
        shard = folder / "a_coat" / "test-00000-of-00001.parquet"
        table = pq.read_table(shard)
        pq.write_table(table.take([1, 0]), shard)
        with pytest.raises(DatasetError, match="is not the shard that was built"):
            open_benchmark(str(folder)).rows("a_coat")

    def test_a_shard_that_nobody_built_is_refused(self, folder):
        shard = folder / "a_tre" / "test-00000-of-00001.parquet"
        (folder / "a_tre" / "test-extra.parquet").write_bytes(shard.read_bytes())
        with pytest.raises(DatasetError, match="not in the manifest"):
            list(open_benchmark(str(folder)).batches("a_tre", 4))

    def test_a_folder_without_one_of_its_shards_is_refused(self, folder):
        (folder / "a_tre" / "train-00000-of-00001.parquet").rename(folder / "away")
        with pytest.raises(DatasetError):
            open_benchmark(str(folder))

    def test_one_of_several_shards_missing_is_named(self, folder, tiny_config, monkeypatch):
        monkeypatch.setattr("audio_compositionality.dataset_builder.build.CLIPS_PER_SHARD", 8)
        folder = build_dataset(tiny_config, folder.parent / "y", progress=False)
        (folder / "a_tre" / "train-00001-of-00003.parquet").unlink()
        with pytest.raises(DatasetError, match="lacks 1 of its 6 shards, such as a_tre/train-00001-of-00003"):
            open_benchmark(str(folder))

    def test_a_snapshot_of_links_is_read(self, folder):
        links = folder.parent / "snapshot"
        for path in [path for path in folder.rglob("*") if path.is_file()]:
            link = links / path.relative_to(folder)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
        assert open_benchmark(str(links)).rows("a_tre") == open_benchmark(str(folder)).rows("a_tre")

    def test_a_manifest_with_another_fingerprint_is_refused(self, folder):
        manifest = folder / "benchmark.json"
        values = json.loads(manifest.read_text())
        manifest.write_text(json.dumps({**values, "fingerprint": "0" * 64}))
        with pytest.raises(DatasetError, match="the fingerprint is not that of the configuration"):
            open_benchmark(str(folder))

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 9}', '{"schema_version": 1, "shards": 3}'])
    def test_a_damaged_manifest_is_refused(self, folder, text):
        (folder / "benchmark.json").write_text(text)
        with pytest.raises(DatasetError, match=r"benchmark\.json"):
            open_benchmark(str(folder))
