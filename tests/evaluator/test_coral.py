"""The CORAL check: its recordings, its arithmetic against formulas and SciPy, the check on small data, its table."""

import os

import numpy as np
import pytest
import soundfile
from scipy import linalg, stats

from audio_compositionality.cli.main import main
from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import in_batches
from audio_compositionality.dataset_builder.sounds.recordings import SoundError
from audio_compositionality.encoders.base import ClipError, Model, ModelCard
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator import coral
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.metrics.a_coat import a_coat_scores
from audio_compositionality.metrics.a_tre import a_tre
from audio_compositionality.support.errors import AudioCompositionalityError, InputError
from audio_compositionality.support.table import to_text
from audio_compositionality.tasks.registry import load_task, load_tasks

RATE = 8_000


@pytest.fixture(autouse=True)
def _quick(one_thread):
    """Small fits are slower in several threads."""


def two_domains(dim=6, source_size=200, target_size=300):
    rng = np.random.default_rng(0)
    source = rng.normal(size=(source_size, dim)) @ rng.normal(size=(dim, dim)) + 3
    target = rng.normal(size=(target_size, dim)) @ rng.normal(size=(dim, dim)) * 2 - 1
    return source, target


def bca(differences, clusters):
    """SciPy's BCa interval of the mean when whole clusters are drawn, at the level that Hesterberg 2015 takes."""
    sums, sizes = np.bincount(clusters, differences), np.bincount(clusters)
    number = len(sums)
    level = 2 * stats.norm.cdf(np.sqrt(number / (number - 1)) * stats.t.ppf(0.975, number - 1)) - 1
    outcome = stats.bootstrap(
        (sums, sizes),
        lambda s, n, axis=-1: s.sum(axis) / n.sum(axis),
        paired=True,
        n_resamples=50_000,
        confidence_level=level,
        random_state=1,
    )
    return tuple(outcome.confidence_interval)


class Kept:
    """A configuration whose clips are rendered once."""

    def __init__(self, configuration):
        self._configuration, self._clips = configuration, list(configuration.clips())

    def __getattr__(self, name):
        return getattr(self._configuration, name)

    def clips(self, wanted=None, *, keep_invalid=False):
        return iter(self._clips if wanted is None else self._clips[wanted.start : wanted.stop])


class KeptData:
    def __init__(self, data):
        self.source, self.recipes = data.source, data.recipes
        self._configurations = {recipe: Kept(data.configuration(recipe)) for recipe in data.recipes}

    def configuration(self, recipe):
        return self._configurations[recipe]


@pytest.fixture(scope="module")
def kept_data(small_data):
    return KeptData(small_data)


class SharedAdditions:
    """Data some of whose quadruples have the same added sources T."""

    def __init__(self, data, places):
        self.source, self.recipes = data.source, ("a_coat",)
        self._configuration = data.configuration("a_coat")
        rows = self._configuration.rows
        shared = rows[min(places)]["metadata"]["T"]
        self.rows = tuple(
            {**row, "metadata": {**row["metadata"], "T": shared}} if place in set(places) else row
            for place, row in enumerate(rows)
        )

    def configuration(self, recipe):
        return self

    def __getattr__(self, name):
        return getattr(self._configuration, name)


class TestTransform:
    @pytest.mark.parametrize("shape", [{}, {"dim": 30, "source_size": 12}])
    def test_is_whitening_and_colouring_with_regularised_covariances(self, shape):
        source, target = two_domains(**shape)
        covariances = [np.cov(x, rowvar=False) for x in (source, target)]
        one, other = (c + np.trace(c) / len(c) * np.eye(len(c)) for c in covariances)
        matrix = linalg.fractional_matrix_power(one, -0.5) @ linalg.fractional_matrix_power(other, 0.5)
        expected = (source - source.mean(axis=0)) @ matrix + target.mean(axis=0)
        adapted = coral.coral_transform(source, target)(source)
        np.testing.assert_allclose(adapted, expected, atol=1e-9)
        np.testing.assert_allclose(adapted.mean(axis=0), target.mean(axis=0), atol=1e-12)

    @pytest.mark.parametrize(
        ("source", "target", "message"),
        [
            (np.ones((5, 2)), np.eye(2), "the 5 source embeddings are all the same"),
            (np.eye(2), np.full((5, 2), 0.1), "the 5 target embeddings are all the same"),
            (np.eye(2), np.eye(3), "source embeddings have 2 dimensions, target embeddings 3"),
            (np.eye(2)[:1], np.eye(2), r"source embeddings have shape \(1, 2\)"),
            (np.eye(2), np.array([[0, np.nan], [1, 2]]), "target embeddings must be finite"),
        ],
    )
    def test_refuses_what_has_no_covariance(self, source, target, message):
        with pytest.raises(InputError, match=message):
            coral.coral_transform(source, target)


class TestDistance:
    def test_is_that_of_deep_coral_up_to_scale_and_dimensions(self):
        source, target = two_domains()
        one, other = (np.cov(x, rowvar=False) for x in (source, target))
        deep = linalg.norm(one - other) ** 2 / (4 * 6**2)
        scale = (linalg.norm(one) ** 2 + linalg.norm(other) ** 2) / (4 * 6**2)
        assert coral.coral_distance(source, target) == pytest.approx(deep / scale)
        assert coral.coral_distance(100 * source, 100 * target) == pytest.approx(deep / scale)
        more = [np.hstack([x, np.zeros((len(x), 4))]) for x in (source, target)]
        assert coral.coral_distance(*more) == pytest.approx(deep / scale)


class Toy(Model):
    """Sixteen band energies of any clip; it cannot embed the clip that is the `refused`-th that it meets."""

    card = ModelCard("toy", "v1", 32_000, 16)
    device = "cpu"

    def __init__(self, refused=None):
        self.clips = 0
        self.refused = refused
        self.met = {}

    def embed(self, waveforms, sample_rate):
        power = np.abs(np.fft.rfft(waveforms, axis=1)) ** 2 / waveforms.shape[1]
        bands = power[:, 1 : power.shape[1] // 16 * 16 + 1].reshape(len(power), 16, -1)
        outcome = np.log1p(bands.sum(axis=2)).astype(np.float32)
        numbers = [self.met.setdefault(waveform.tobytes(), len(self.met)) for waveform in waveforms]
        outcome[np.array(numbers) == self.refused] = np.nan
        self.clips += len(outcome)
        return outcome


@pytest.fixture(scope="module")
def noises(tmp_path_factory):
    """Thirty noises of several colours."""
    folder = tmp_path_factory.mktemp("noises")
    rng = np.random.default_rng(0)
    for number in range(30):
        spectrum = np.fft.rfft(rng.normal(size=10 * RATE)) / np.arange(1, 5 * RATE + 2) ** rng.uniform(0, 1)
        samples = np.fft.irfft(spectrum)
        soundfile.write(folder / f"{number:02}.wav", 0.5 * samples / np.abs(samples).max(), RATE)
    return folder


def check(model, recordings, data, *, tasks=None, max_clips=2_000, settings=None, **options):
    settings = {"seeds": [0], "max_steps": 20} if settings is None else settings
    how = RunOptions(settings=settings, device="cpu", progress=False).changed(**options)
    chosen = None if tasks is None else load_tasks(tasks)
    return coral.coral_check(model, recordings, data, tasks=chosen, max_clips=max_clips, options=how)


def waveforms(data, recipe):
    """The clips of a recipe, [clips, samples]."""
    return np.stack([clip.waveform for clip in data.configuration(recipe).clips()])


class TestCheck:
    def test_finds_nothing_where_the_recordings_are_the_benchmark_itself(self, kept_data, tmp_path):
        for number, clip in enumerate(kept_data.configuration("a_coat").clips()):
            soundfile.write(tmp_path / f"{number:02}.wav", clip.waveform, clip.sample_rate)
        outcome = check(Toy(), tmp_path, kept_data, tasks=["a_coat"])
        (task,) = outcome.tasks
        assert (outcome.files, outcome.clips, task.clips, task.n) == (48, 48, 48, 12)
        assert task.changes["a_coat"].difference == pytest.approx(0, abs=1e-9)
        assert task.changes["a_coat"].interval == pytest.approx((0, 0), abs=1e-9)
        assert task.changes["centred"].difference == pytest.approx(0, abs=1e-9)
        assert task.distance.before == pytest.approx(0, abs=1e-9)
        assert task.distance.after == pytest.approx(0, abs=1e-9)

    def test_leaves_a_linear_encoder_at_one(self, kept_data, noises):
        """Adaptation is an affine map, and the steps of a linear encoder are equal before and after one."""
        with pytest.warns(
            UserWarning, match=r"768 dimensions, and there are no more clips \(30 of the recordings, 48 of a_coat\)"
        ):
            outcome = check(load_model("downsample"), noises, kept_data, tasks=["a_coat"])
        (task,) = outcome.tasks
        assert task.changes["a_coat"].before == pytest.approx(1, abs=1e-6)
        assert task.changes["a_coat"].after == pytest.approx(1, abs=1e-6)

    @pytest.mark.slow
    def test_is_the_scores_before_and_after_with_intervals_of_the_paired_difference(self, kept_data, noises):
        outcome = check(Toy(), noises, kept_data)
        a_coat, a_tre_ = outcome.tasks
        natural = Toy().embed(np.stack([soundfile.read(path)[0] for path in sorted(noises.iterdir())]), RATE)

        z = Toy().embed(waveforms(kept_data, "a_coat"), 32_000)
        adapted = coral.coral_transform(z, natural)(z)
        before, after = (a_coat_scores(*(x[place::4] for place in range(4))) for x in (z, adapted))
        assert (a_coat.changes["a_coat"].before, a_coat.changes["a_coat"].after) == pytest.approx(
            (before.mean(), after.mean()), abs=1e-6
        )
        expected = bca(after - before, np.arange(12))
        assert a_coat.changes["a_coat"].interval == pytest.approx(expected, abs=0.05 * (expected[1] - expected[0]))
        assert (
            a_coat.changes["centred"].interval[0]
            < a_coat.changes["centred"].difference
            < a_coat.changes["centred"].interval[1]
        )
        assert a_coat.distance.after == pytest.approx(coral.coral_distance(adapted, natural), abs=1e-6)
        assert a_coat.distance.after < a_coat.distance.before

        rows = kept_data.configuration("a_tre").rows
        z = Toy().embed(waveforms(kept_data, "a_tre"), 32_000)
        splits = np.array([row["split"] for row in rows])
        adapted = coral.coral_transform(z[splits == "train"], natural)(z)
        options = {"max_steps": 20, "device": "cpu", "progress": False}
        fitted = a_tre(adapted, [row["metadata"] for row in rows], splits.tolist(), **options)
        assert a_tre_.clips == 40
        assert a_tre_.n == 8
        assert a_tre_.changes["a_tre"].after == pytest.approx(fitted["a_tre"], abs=1e-5)
        assert a_tre_.changes["a_tre_centred"].after == pytest.approx(fitted["a_tre_centred"], abs=1e-4)
        assert a_tre_.changes["top1"].after == fitted["top1"]
        assert a_tre_.changes["a_tre"].interval is None  # of 8 scenes
        assert a_tre_.changes["a_tre_centred"].interval is None

    @pytest.mark.slow
    def test_draws_quadruples_with_the_same_added_sources_together(self, kept_data, noises):
        z = Toy().embed(waveforms(kept_data, "a_coat"), 32_000)
        natural = Toy().embed(np.stack([soundfile.read(path)[0] for path in sorted(noises.iterdir())]), RATE)
        before, after = (
            a_coat_scores(*(x[place::4] for place in range(4))) for x in (z, coral.coral_transform(z, natural)(z))
        )
        highest = np.argsort(after - before)[-3:]
        clusters = np.arange(12)
        clusters[highest] = highest[0]
        clusters = np.unique(clusters, return_inverse=True)[1]
        (task,) = check(Toy(), noises, SharedAdditions(kept_data, highest), tasks=["a_coat"]).tasks
        expected, alone = bca(after - before, clusters), bca(after - before, np.arange(12))
        width = expected[1] - expected[0]
        assert width / (alone[1] - alone[0]) > 1.2
        assert task.changes["a_coat"].interval == pytest.approx(expected, abs=0.05 * width)
        # Of twelve, four that belong together leave nine independent ones: one too few for an interval.
        (few,) = check(Toy(), noises, SharedAdditions(kept_data, range(4)), tasks=["a_coat"]).tasks
        assert (few.n, few.changes["a_coat"].interval) == (12, None)
        assert few.changes["a_coat"].difference is not None

    def test_computes_no_stored_embedding_again(self, kept_data, noises, tmp_path):
        options = {"tasks": ["a_coat"], "cache": tmp_path}
        first, second = Toy(), Toy()
        outcome = check(first, noises, kept_data, **options)
        # Of each of the two, 16 are embedded a second time.
        assert first.clips == 30 + 48 + 2 * 16
        assert check(second, noises, kept_data, **options) == outcome
        assert second.clips == 0
        assert check(second, noises, kept_data, max_clips=20, **options).clips == 20
        assert second.clips == 20 + 16

    @pytest.mark.slow
    def test_leaves_out_what_cannot_be_read_or_embedded_only_if_told_to(self, kept_data, noises, tmp_path):
        for path in noises.iterdir():
            (tmp_path / path.name).write_bytes(path.read_bytes())
        (tmp_path / "text.wav").write_text("no sound")
        options = {"tasks": ["a_coat"], "batch_size": 1}
        with pytest.raises(SoundError, match=r"'text\.wav' cannot be read"):
            check(Toy(), tmp_path, kept_data, **options)
        outcome = check(Toy(refused=4), tmp_path, kept_data, skip_invalid=True, **options)
        assert outcome.clips == 29
        unread, refused = (item["id"] for item in outcome.skipped)
        assert unread == "text.wav"
        (tmp_path / "text.wav").unlink()
        with pytest.raises(ClipError, match=f"clip '{refused}': encoder 'toy' returned 16 of 16 values"):
            check(Toy(refused=4), tmp_path, kept_data, **options)
        outcome = check(Toy(refused=30), tmp_path, kept_data, skip_invalid=True, **options)
        assert (outcome.clips, outcome.tasks[0].n, len(outcome.skipped)) == (30, 11, 1)

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (np.nan, "only 0 of 30 clips can be embedded; a covariance needs 10 or more"),
            (0.1, "the 48 source embeddings are all the same"),
        ],
    )
    def test_stops_where_no_clip_or_every_clip_alike_can_be_embedded(self, kept_data, noises, value, message):
        class Same(Toy):
            def embed(self, waveforms, sample_rate):
                return np.full((len(waveforms), 16), value, np.float32)

        with pytest.raises(AudioCompositionalityError, match=message):
            check(Same(), noises, kept_data, skip_invalid=True)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"settings": {"seeds": []}}, r"seeds is \[\]"),
            ({"device": "cuda:99"}, "cannot use device 'cuda:99'"),
            ({"max_clips": 3}, "max_clips is 3"),
        ],
    )
    def test_finds_mistakes_before_anything_is_embedded(self, kept_data, noises, options, message):
        encoder = Toy()
        with pytest.raises(AudioCompositionalityError, match=message):
            check(encoder, noises, kept_data, **options)
        assert encoder.clips == 0

    def test_is_not_for_several_processes(self, kept_data, noises, monkeypatch):
        class Two:
            count = 2

        monkeypatch.setattr("audio_compositionality.evaluator.coral.join_processes", Two)
        with pytest.raises(InputError, match="runs in one process, not in 2; for large data, `embed` fills the cache"):
            check(Toy(), noises, kept_data)


def test_the_table_says_what_changed_and_what_is_left_out():
    interval = (-0.1234, -0.1111)
    change, rate = coral.Change(-0.5, -0.6, interval), coral.Change(0.5, 0.25)
    tasks = [
        coral.CoralTask(
            load_task("a_coat").info,
            1,
            4,
            {"a_coat": coral.Change(0.5, 0.75), "centred": coral.Change(None, None)},
            rate,
        ),
        coral.CoralTask(load_task("a_tre").info, 1_000, 8_000, {"a_tre": change, "top1": rate}, coral.Change(0.2, 0.1)),
    ]
    skipped = [{"id": f"{number}.wav@0s", "reason": "is damaged"} for number in range(5)]
    card = ModelCard("x" * 60, "v1", 32_000, 8)
    text = to_text(coral.coral_table(coral.CoralCheck(card, "mini", "r" * 60, 900, 1_000, skipped, tuple(tasks))), 100)
    rows = [line.split() for line in text.splitlines()]
    assert ["A-COAT", "A-COAT", "0.500", "0.750", "0.2500", "–", "1", "4"] in rows
    assert ["A-COAT", "centred", "–", "–", "–", "–", "1", "4"] in rows
    assert ["A-TRE", "A-TRE", "−0.500", "−0.600", "−0.1000", "[−0.1234,", "−0.1111]", "1,000", "8,000"] in rows
    assert ["A-TRE", "top-1", "0.500", "0.250", "−0.2500", "–", "1,000", "8,000"] in rows
    assert ["A-TRE", "distance", "0.200", "0.100", "−0.1000", "–", "1,000", "8,000"] in rows
    words = " ".join(word for row in rows for word in row)
    assert "adapted to 1,000 clips of 900 recordings in" in words
    assert "Left out, since they cannot be read or embedded: 0.wav@0s, 1.wav@0s, 2.wav@0s and 2 more" in words
    assert "speaks against an artifact of the synthetic clips' mean and covariance" in words
    assert "The recordings are taken as given." in words
    assert "fitted anew after the adaptation, and the noise of the fits is not in the interval" in words


@pytest.mark.slow
def test_the_command_prints_one_table_with_both_tasks(tiny_data, noises, tmp_path, capsys, cache):
    data = build_dataset(tiny_data, tmp_path / "data", progress=False)
    arguments = ["coral", "log-mel-statistics", "--recordings", str(noises), "--data", str(data)]
    assert main([*arguments, "--seeds", "1", "--set", "max_steps=10"]) == 0
    out, err = capsys.readouterr()
    words = " ".join(out.split())
    assert "adapted to 30 clips of 30 recordings" in words
    for word in ("CORAL: log-mel-statistics on", "A-COAT", "A-TRE", "95 % interval", "top-1", "distance"):
        assert word in words
    assert "note: an embedding has 256 dimensions" in err
    assert len(list(cache.rglob("recordings-*/*.safetensors"))) == 1


# ----- recordings


def noise(seconds, rate=RATE, channels=1, seed=0):
    return 0.1 * np.random.default_rng(seed).normal(size=(round(seconds * rate), channels))


def write(path, seconds=10.0, rate=RATE, channels=1, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, noise(seconds, rate, channels, seed), rate)
    return path


@pytest.fixture
def folder(tmp_path):
    """Ten files of one clip each."""
    for number in range(10):
        write(tmp_path / "sounds" / f"{number}.wav", seed=number)
    return tmp_path / "sounds"


def find(folder, **options):
    return coral.RecordedClips(folder, progress=False, **options)


def embeddable(recordings, **options):
    return list(in_batches(recordings.clips(**options), 4))


class TestRecordings:
    def test_are_cut_into_whole_clips_and_a_short_one_is_a_clip(self, folder):
        write(folder / "a" / "long.flac", seconds=35)
        write(folder / "b" / "short.wav", seconds=1.5)
        write(folder / "b" / "blip.wav", seconds=0.9)
        write(folder / "stereo.wav", channels=2, rate=16_000)
        recordings = find(folder)
        assert recordings.clip_ids == (
            "b/short.wav@0s",
            *(f"{number}.wav@0s" for number in range(10)),
            *(f"a/long.flac@{start}s" for start in (0, 10, 20)),
            "stereo.wav@0s",
        )
        assert (recordings.files, recordings.available, recordings.too_short, recordings.skipped) == (13, 15, 1, [])
        short, *batches, stereo = embeddable(recordings)
        assert short.waveforms.shape == (1, 12_000)
        assert [batch.waveforms.shape for batch in batches] == [(4, 80_000)] * 3 + [(1, 80_000)]
        assert tuple(id for batch in (short, *batches, stereo) for id in batch.ids) == recordings.clip_ids
        clips = np.concatenate([batch.waveforms for batch in batches])
        np.testing.assert_allclose(clips[-3:], noise(35)[:240_000, 0].reshape(3, -1), atol=2e-5)
        assert stereo.sample_rate == 16_000
        np.testing.assert_allclose(stereo.waveforms[0], noise(10, 16_000, 2).mean(axis=1), atol=4e-5)
        (part,) = embeddable(recordings, wanted=range(3, 6))
        assert part.ids == recordings.clip_ids[3:6]

    @pytest.mark.parametrize("suffix", ["flac", "ogg", "mp3", "aiff", "WAV"])
    def test_are_read_in_other_formats(self, folder, suffix):
        write(folder / f"other.{suffix}", seconds=20, rate=32_000)
        batch = embeddable(find(folder))[-1]
        assert batch.ids == (f"other.{suffix}@0s", f"other.{suffix}@10s")
        assert np.isfinite(batch.waveforms).all()
        assert batch.waveforms.std() > 0.03

    def test_of_more_clips_some_are_drawn_and_always_the_same(self, folder):
        write(folder / "long.wav", seconds=400)
        recordings, again, most = find(folder, max_clips=20), find(folder, max_clips=20), find(folder)
        assert recordings.available == most.available == len(most.clip_ids) == 50 < coral.MAX_CLIPS
        assert len(recordings.clip_ids) == 20
        assert recordings.clip_ids == again.clip_ids
        assert set(recordings.clip_ids) < set(most.clip_ids)
        assert recordings.fingerprint == again.fingerprint != most.fingerprint
        write(folder / "0.wav", seed=99)
        changed = find(folder).fingerprint
        write(folder / "new.wav")
        assert len({most.fingerprint, changed, find(folder).fingerprint}) == 3

    def test_are_regular_sound_files_below_the_folder_alone(self, folder, tmp_path):
        expected = find(folder)
        outside = write(tmp_path / "elsewhere" / "outside.wav")
        (folder / "link.wav").symlink_to(outside)
        (folder / "linked").symlink_to(outside.parent)
        (folder / "notes.txt").write_text("no sound")
        (folder / "._0.wav").write_bytes(b"\0\5\x16\7")
        write(folder / ".hidden" / "x.wav")
        (folder / "folder.wav").mkdir()
        os.mkfifo(folder / "pipe.wav")
        assert (find(folder).clip_ids, find(folder).fingerprint) == (expected.clip_ids, expected.fingerprint)

    def test_that_are_none_under_the_name_of_one_are_named(self, folder):
        (folder / "a").mkdir()
        for content in (b"this is a text", b"", b"RIFF\xff\xff\xff\xffWAVEfmt "):
            (folder / "a" / "b.wav").write_bytes(content)
            with pytest.raises(SoundError, match=r"^'a/b\.wav' cannot be read: .*; --skip-invalid leaves it out$"):
                find(folder)
            recordings = find(folder, skip_invalid=True)
            assert len(recordings.clip_ids) == 10
            (skipped,) = recordings.skipped
            assert skipped["id"] == "a/b.wav"
            assert skipped["reason"].startswith("cannot be read: ")

    def test_that_are_damaged_are_named_or_their_place_is_left_empty_with_the_reason(self, folder):
        samples = noise(10)
        samples[5_000] = np.nan
        cut = write(folder / "cut.flac")
        for path, message in ((cut, "cannot be decoded: "), (folder / "nan.wav", "has values that are not finite")):
            if path == cut:
                path.write_bytes(path.read_bytes()[:20_000])
            else:
                cut.unlink()
                soundfile.write(path, samples, RATE, subtype="FLOAT")
            with pytest.raises(SoundError, match=f"^'{path.name}@0s' {message}.*; --skip-invalid leaves it out$"):
                embeddable(find(folder))
            batches = embeddable(find(folder), keep_invalid=True)
            clips = {id: row for b in batches for id, row in zip(b.ids, b.waveforms, strict=True)}
            assert [b.ids[place] for b in batches for place in b.errors] == [f"{path.name}@0s"]
            assert np.isnan(clips[f"{path.name}@0s"]).all()
            assert sum(np.isfinite(clip).all() for clip in clips.values()) == 10

    def test_that_shrink_after_they_were_found_or_claim_to_last_for_days(self, folder):
        recordings = find(folder)
        write(folder / "3.wav", seconds=4)
        with pytest.raises(SoundError, match=r"'3\.wav@0s' ends after 32,000 of 80,000 samples"):
            embeddable(recordings)
        # A header of FLAC (its published layout): after the marker and the block's header, 10 bytes of sizes, 20 bits
        # of rate, 3 of channels, 5 of bits; then 36 bits state the number of samples.
        path = write(folder / "x.flac")
        content = bytearray(path.read_bytes())
        content[21] |= 0x0F
        content[22:26] = b"\xff" * 4
        path.write_bytes(content)
        with pytest.raises(SoundError, match=r"'x\.flac' declares 68,719,476,735 samples at 8,000 Hz, more than 24 h"):
            find(folder)

    def test_have_names_that_can_be_printed_whatever_they_hold(self, folder):
        os.rename(folder / "0.wav", os.fsencode(folder) + b"/\x1b[31m\n\xff.wav")
        (folder / "1.wav").rename(folder / "Möwe 海.wav")
        recordings = find(folder)
        assert {"\\x1b[31m\\n\\udcff.wav@0s", "Möwe 海.wav@0s"} < set(recordings.clip_ids)
        assert all(id.isprintable() for id in recordings.clip_ids)
        assert len([id for batch in embeddable(recordings) for id in batch.ids]) == 10

    def test_of_no_use_are_refused(self, folder, tmp_path):
        (tmp_path / "text").mkdir()
        (tmp_path / "text" / "notes.txt").write_text("no sound")
        (folder / "0.wav").write_bytes(b"")
        write(folder / "1.wav", seconds=0.5)
        few = r"holds 8 clips .*files shorter than 1 s: 1, damaged ones: 1\); a covariance needs 10 or more"
        for path, options, message in (
            (
                tmp_path / "text",
                {},
                r"contains no sound file \(\.wav, \.flac, .*'notes\.txt' ends in \.txt, which is not a",
            ),
            (folder / "nowhere", {}, r"nowhere' is not a folder; give a folder with sound files"),
            (folder / "0.wav", {}, r"0\.wav' is not a folder"),
            (folder, {"skip_invalid": True}, few),
            (folder, {"max_clips": 9}, "max_clips is 9; it must be 10 or more"),
        ):
            with pytest.raises(AudioCompositionalityError, match=message):
                find(path, **options)
