"""The CORAL check: its arithmetic against formulas and SciPy, the check on small data, its table and its command."""

import numpy as np
import pytest
import soundfile
from scipy import linalg, stats

from audio_compositionality.cli.main import main
from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.sounds.recordings import SoundError
from audio_compositionality.encoders.base import ClipError, Model, ModelCard
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.coral import (
    Change,
    CoralCheck,
    CoralTask,
    coral_check,
    coral_distance,
    coral_table,
    coral_transform,
)
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
    def test_is_whitening_and_colouring_with_regularised_covariances(self):
        source, target = two_domains()
        covariances = [np.cov(x, rowvar=False) for x in (source, target)]
        one, other = (c + np.trace(c) / 6 * np.eye(6) for c in covariances)
        matrix = linalg.fractional_matrix_power(one, -0.5) @ linalg.fractional_matrix_power(other, 0.5)
        expected = (source - source.mean(axis=0)) @ matrix + target.mean(axis=0)
        np.testing.assert_allclose(coral_transform(source, target)(source), expected, atol=1e-9)

    def test_gives_the_target_s_mean_and_regularised_covariance(self):
        source, target = two_domains()
        transform = coral_transform(source, target)
        adapted = transform(source)
        np.testing.assert_allclose(adapted.mean(axis=0), target.mean(axis=0), atol=1e-12)
        before, wanted = np.cov(source, rowvar=False), np.cov(target, rowvar=False)
        ridge = np.trace(before) / 6 * transform.matrix.T @ transform.matrix
        np.testing.assert_allclose(
            np.cov(adapted, rowvar=False) + ridge, wanted + np.trace(wanted) / 6 * np.eye(6), atol=1e-9
        )
        assert coral_distance(adapted, target) < coral_distance(source, target) / 2

    def test_changes_nothing_between_equal_domains(self):
        source, _ = two_domains()
        np.testing.assert_allclose(coral_transform(source, source)(source), source, atol=1e-9)
        wide, _ = two_domains(dim=30, source_size=12)
        np.testing.assert_allclose(coral_transform(wide, wide)(wide), wide, atol=1e-9)

    def test_is_known_for_one_dimension(self):
        """Variances 1 and 4 become 2 and 8 when the mean variance is added: the spread is multiplied by √(8/2) = 2."""
        source, target = np.array([[-1.0], [0], [1]]), np.array([[8.0], [10], [12]])
        np.testing.assert_allclose(coral_transform(source, target)(source), target)

    @pytest.mark.parametrize("scale", [1e-20, 3.0, 1e20])
    def test_does_not_depend_on_the_encoder_s_scale(self, scale):
        source, target = two_domains()
        expected = scale * coral_transform(source, target)(source)
        np.testing.assert_allclose(coral_transform(scale * source, scale * target)(scale * source), expected, rtol=1e-9)

    def test_turns_with_the_space(self):
        source, target = two_domains()
        turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))
        expected = coral_transform(source, target)(source) @ turn
        np.testing.assert_allclose(coral_transform(source @ turn, target @ turn)(source @ turn), expected, atol=1e-9)

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
            coral_transform(source, target)


class TestDistance:
    def test_worked_by_hand(self):
        """Covariances diag(2, 0) and diag(0, 2), then diag(2, 0) and diag(8, 0): 36 / 68."""
        first, second = np.array([[1.0, 5], [-1, 5]]), np.array([[0.0, 1], [0, -1]])
        assert coral_distance(first, second) == pytest.approx(1)
        assert coral_distance(first, 2 * first) == pytest.approx(36 / 68)
        assert coral_distance(first, first + 7) == pytest.approx(0)

    def test_is_that_of_deep_coral_up_to_scale_and_dimensions(self):
        source, target = two_domains()
        one, other = (np.cov(x, rowvar=False) for x in (source, target))
        deep = linalg.norm(one - other) ** 2 / (4 * 6**2)
        scale = (linalg.norm(one) ** 2 + linalg.norm(other) ** 2) / (4 * 6**2)
        assert coral_distance(source, target) == pytest.approx(deep / scale)
        assert coral_distance(100 * source, 100 * target) == pytest.approx(deep / scale)
        more = [np.hstack([x, np.zeros((len(x), 4))]) for x in (source, target)]
        assert coral_distance(*more) == pytest.approx(deep / scale)


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
    return coral_check(model, recordings, data, tasks=chosen, max_clips=max_clips, options=how)


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
        with pytest.warns(UserWarning, match=r"768 dimensions, and .* \(30 of the recordings, 48 of a_coat\)"):
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
        adapted = coral_transform(z, natural)(z)
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
        assert a_coat.distance.after == pytest.approx(coral_distance(adapted, natural), abs=1e-6)
        assert a_coat.distance.after < a_coat.distance.before

        rows = kept_data.configuration("a_tre").rows
        z = Toy().embed(waveforms(kept_data, "a_tre"), 32_000)
        splits = np.array([row["split"] for row in rows])
        adapted = coral_transform(z[splits == "train"], natural)(z)
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
            a_coat_scores(*(x[place::4] for place in range(4))) for x in (z, coral_transform(z, natural)(z))
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

    @pytest.mark.slow
    def test_gives_no_interval_of_fewer_than_ten_independent_quadruples(self, kept_data, noises):
        (task,) = check(Toy(), noises, SharedAdditions(kept_data, range(4)), tasks=["a_coat"]).tasks
        assert task.n == 12
        assert task.changes["a_coat"].interval is None
        assert task.changes["a_coat"].difference is not None
        (task,) = check(Toy(), noises, SharedAdditions(kept_data, range(3)), tasks=["a_coat"]).tasks
        assert task.changes["a_coat"].interval is not None

    def test_computes_no_stored_embedding_again(self, kept_data, noises, tmp_path):
        options = {"tasks": ["a_coat"], "store": tmp_path}
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

    def test_stops_where_too_few_clips_can_be_embedded(self, kept_data, noises):
        class Deaf(Toy):
            def embed(self, waveforms, sample_rate):
                return np.full((len(waveforms), 16), np.nan)

        with pytest.raises(SoundError, match="only 0 of 30 clips can be embedded; a covariance needs 10 or more"):
            check(Deaf(), noises, kept_data, skip_invalid=True)

    def test_refuses_an_encoder_that_is_constant(self, kept_data, noises):
        class Constant(Toy):
            def embed(self, waveforms, sample_rate):
                return np.full((len(waveforms), 16), 0.1, np.float32)

        with pytest.raises(InputError, match="the 48 source embeddings are all the same"):
            check(Constant(), noises, kept_data)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"settings": {"seeds": []}}, r"seeds are \[\]"),
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
        with pytest.raises(InputError, match="runs in one process, not in 2; `embed` fills the store"):
            check(Toy(), noises, kept_data)


def test_the_table_says_what_changed_and_what_is_left_out():
    interval = (-0.1234, -0.1111)
    change, rate = Change(-0.5, -0.6, interval), Change(0.5, 0.25)
    tasks = [
        CoralTask(load_task("a_coat").info, 1, 4, {"a_coat": Change(0.5, 0.75), "centred": Change(None, None)}, rate),
        CoralTask(load_task("a_tre").info, 1_000, 8_000, {"a_tre": change, "top1": rate}, Change(0.2, 0.1)),
    ]
    skipped = [{"id": f"{number}.wav@0s", "reason": "is damaged"} for number in range(5)]
    card = ModelCard("x" * 60, "v1", 32_000, 8)
    text = to_text(coral_table(CoralCheck(card, "mini", "r" * 60, 900, 1_000, skipped, tuple(tasks))), 100)
    rows = [line.split() for line in text.splitlines()]
    assert ["A-COAT", "A-COAT", "0.500", "0.750", "0.2500", "–", "1", "4"] in rows
    assert ["A-COAT", "centred", "–", "–", "–", "–", "1", "4"] in rows
    assert ["A-TRE", "A-TRE", "−0.500", "−0.600", "−0.1000", "[−0.1234,", "−0.1111]", "1,000", "8,000"] in rows
    assert ["A-TRE", "top-1", "0.500", "0.250", "−0.2500", "–", "1,000", "8,000"] in rows
    assert ["A-TRE", "distance", "0.200", "0.100", "−0.1000", "–", "1,000", "8,000"] in rows
    words = " ".join(word for row in rows for word in row)
    assert "adapted to 1,000 clips of 900 recordings in" in words
    assert "Left out, since they cannot be read or embedded: 0.wav@0s, 1.wav@0s, 2.wav@0s and 2 more" in words
    assert "speaks against an artefact of the synthetic clips' mean and covariance" in words
    assert "The recordings are taken as given." in words
    assert "fitted anew after the adaptation, and the noise of the fits is not in the interval" in words


class TestCommand:
    @pytest.mark.slow
    def test_prints_one_table_with_both_tasks(self, tiny_data, noises, tmp_path, capsys, cache):
        data = build_dataset(tiny_data, tmp_path / "data", progress=False)
        arguments = ["coral", "log-mel-statistics", "--recordings", str(noises), "--data", str(data)]
        assert main([*arguments, "--seeds", "1", "--set", "max_steps=10"]) == 0
        out, err = capsys.readouterr()
        words = " ".join(out.split())
        assert "CORAL: log-mel-statistics on" in words
        assert "adapted to 30 clips of 30 recordings" in words
        for word in ("A-COAT", "A-TRE", "before", "after", "difference", "95 % interval", "top-1", "distance"):
            assert word in out
        assert "note: an embedding has 256 dimensions" in err
        assert len(list(cache.rglob("recordings-*/*.safetensors"))) == 1

    @pytest.mark.slow
    def test_says_in_one_line_what_is_wrong(self, tmp_path, capsys):
        assert main(["coral", "log-mel-statistics", "--recordings", str(tmp_path)]) == 2
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert error.startswith("error: ")
        assert "holds no sound file" in error

    def test_explains_in_its_help_what_the_check_means(self, capsys):
        with pytest.raises(SystemExit):
            main(["coral", "--help"])
        words = " ".join(capsys.readouterr().out.split())
        assert "synthetic clips' mean and covariance, and of nothing else" in words
        assert "a score of additivity near 1 does not change is weak evidence" in words
