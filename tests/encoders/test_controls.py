"""Controls: what a model is given under each, by every way to ask it, and what cards and errors say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import Clip
from audio_compositionality.encoders.base import ClipError, GivenClip, Model, ModelCard, ModelError
from audio_compositionality.encoders.controls import (
    CONTROLS,
    NOISE_LEVEL,
    PLAIN_TEXT,
    STRETCH,
    TEXT_VERSION,
    Controlled,
    clips_id,
    prompt_with_events,
    random_fragments,
    shuffled_clips,
)
from audio_compositionality.encoders.loading.registry import has_twins, load_encoder, load_model
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.encoders.pipeline import embed_batches

RATE = 8_000
TEXTS = ["A slow bell, then a fast organ.", "a fast organ then a slow bell", "?!"]
EVENTS = [{"onset": 0.5, "offset": 2.0, "label": "bell"}, {"onset": 0.0, "offset": 1.0, "label": "reed"}]
ROWS = [{"id": "a", "duration": 2.0, "events": EVENTS}, {"id": "b", "duration": 1.0, "events": []}]
PROMPTS = ["How many?", "Which?"]


def noise(count: int = 2, samples: int = 8_104) -> np.ndarray:
    return np.random.default_rng(0).normal(0, 0.1, (count, samples)).astype(np.float32)


class Everything(Model):
    """Can do all that controls are for, and keeps what it is given."""

    card = ModelCard("everything", "v1", RATE, 2, paradigm="by hand")
    device, limit_seconds = "cpu", 9.0

    def __init__(self) -> None:
        self.heard: list[np.ndarray] = []

    def embed(self, waveforms: Any, sample_rate: int) -> np.ndarray:
        assert sample_rate == RATE
        self.heard += list(waveforms)
        return np.stack([waveforms[:, 0], waveforms[:, -1]], axis=1)

    def embed_frames(self, waveforms: Any, sample_rate: int) -> tuple[np.ndarray, float]:
        assert sample_rate == RATE
        self.heard += list(waveforms)
        return np.asarray(waveforms, np.float32)[..., None], 1 / RATE

    def embed_text(self, texts: Any) -> np.ndarray:
        return np.array([[len(text), ord(text[0])] for text in texts], np.float32)

    def answer(self, clips: Any, prompts: Any) -> list[str]:
        self.hear(clips)
        return [f"{prompt}!" for prompt in prompts]

    def score_options(self, clips: Any, prompts: Any, options: Any, by: str) -> list[list[float]]:
        self.hear(clips)
        return [[-float(len(prompt)), float(by == "letters") - 1] for prompt in prompts]

    def hear(self, clips: Any) -> None:
        for some in clips:
            for clip in some:
                assert clip.sample_rate == RATE
                assert clip.waveform.dtype == np.float32
                self.heard.append(clip.waveform)


class Listener(Model):
    """Answers alone."""

    device, card = "cpu", ModelCard("listener", "v1", RATE, None)
    answer = Everything.answer
    hear = Everything.hear

    def __init__(self) -> None:
        self.heard: list[np.ndarray] = []


class Pupil(Listener):
    def learn(self, rows: Any, clips: Any) -> None:
        self.heard += [clip.waveform for clip in clips]


class Reader(Everything):
    """Takes prompts without a clip as well."""

    @property
    def abilities(self) -> frozenset[str]:
        return super().abilities | {"read"}


class Encoder(Model):
    device, card, embed = "cpu", ModelCard("encoder", "v1", RATE, 2), Everything.embed


def given(model: Model, row: bool = False) -> list[list[Any]]:
    if row:
        return [[GivenClip(np.zeros(0, np.float32), RATE, one)] for one in ROWS]
    return [[Clip(str(number), clip, RATE)] for number, clip in enumerate(noise())]


ABLE = {"audio", "frames", "text", "answer", "score"}
LEFT = {
    "sorted-words": {"audio", "text"},
    "without-text": {"audio", "text"},
    "other-audio": {"answer", "score"},
    "events-as-text": {"answer", "score", "labels"},
}
"""What a control leaves of the abilities, where it does not leave all."""

ASKED: dict[str, Callable[[Any], Any]] = {
    "audio": lambda model: model.embed(noise(), RATE),
    "frames": lambda model: model.embed_frames(noise(), RATE),
    "text": lambda model: model.embed_text(TEXTS),
    "answer": lambda model: model.answer(given(model), PROMPTS),
    "score": lambda model: model.score_options(given(model), PROMPTS, [["x", "y"]] * 2, "letters"),
    "learn": lambda model: model.learn([{}] * 2, []),
}


@pytest.mark.parametrize("name", CONTROLS)
def test_a_control_forwards_what_its_model_can_with_the_changed_input(name: str) -> None:
    kind, model = CONTROLS[name], Everything()
    controlled: Any = Controlled(model, kind)
    assert controlled.abilities == LEFT.get(name, ABLE)
    changed = noise() if kind.clips is None else kind.clips(noise(), RATE)
    changed = np.broadcast_to(changed, (2, changed.shape[1]))
    for ability, ask in ASKED.items():
        model.heard.clear()
        if ability not in controlled.abilities:
            with pytest.raises(ModelError, match=f"'{name}:everything' cannot "):
                ask(controlled)
            continue
        if kind.tells:
            continue
        result = ask(controlled)
        if ability == "text":
            texts = {"sorted-words": ["a a bell fast organ slow then"] * 2 + ["?!"], "without-text": [PLAIN_TEXT] * 3}
            np.testing.assert_array_equal(result, model.embed_text(texts.get(name, TEXTS)))
            continue
        assert len(result[0] if ability == "frames" else result) == 2
        heard = model.heard if len(model.heard) == 2 else model.heard * 2
        np.testing.assert_array_equal(np.stack(heard), changed)
        if ability == "audio":
            np.testing.assert_array_equal(result, changed[:, [0, -1]])
        elif ability == "frames":
            np.testing.assert_array_equal(result[0].reshape(2, -1), changed)
            assert result[1] == 1 / RATE
        elif ability == "answer":
            assert result == ["How many?!", "Which?!"]
        else:
            assert result == [[-9, 0], [-6, 0]]
    meaning = controlled.card.paradigm
    assert (controlled.card.id, meaning) == (f"{name}:everything", f"control ({kind.meaning})")
    assert controlled.card.revision == ("v1" if not kind.tells else f"v1+text-{TEXT_VERSION}")
    assert controlled.limit_seconds == 9.0
    assert controlled.asks_about_others is kind.moves
    assert controlled.clips_card.id == (f"{name}:everything" if kind.clips is not None else "everything")
    assert clips_id(controlled.card.id) == controlled.clips_card.id
    page = (Path(__file__).parents[2] / "docs" / "how-to/models.md").read_text("utf-8")
    assert f"`{kind.prefix}" in page


# What is done to clips


def test_what_clips_become() -> None:
    clips, longer = noise(), noise(1, 80_001)
    changed = {name: kind.clips(clips, RATE) for name, kind in CONTROLS.items() if kind.clips is not None}
    np.testing.assert_array_equal(changed["reversed-audio"], clips[:, ::-1])
    np.testing.assert_array_equal(changed["padded-audio"], np.pad(clips, ((0, 0), (0, 80_000 - 8_104))))
    np.testing.assert_array_equal(CONTROLS["padded-audio"].clips(longer, RATE), longer)  # type: ignore[misc]
    np.testing.assert_array_equal(changed["without-audio"], np.zeros((1, 8_104)))


def test_fragments_are_a_quarter_of_the_clip_at_a_place_that_the_clip_decides() -> None:
    clips = 0.1 * noise(3)
    clips[1, 4_000:5_000] *= 5
    first, some, loudest = (
        CONTROLS[f"{name}fragment-audio"].clips(clips, RATE)  # type: ignore[misc]
        for name in ("first-", "", "loudest-")
    )
    np.testing.assert_array_equal(first, clips[:, :2_026])
    assert np.abs(loudest[1]).max() == np.abs(clips[1]).max()
    for fragment, clip in zip([*some, *loudest], [*clips, *clips], strict=True):
        starts = np.flatnonzero(clip == fragment[0])
        assert any(np.array_equal(clip[start : start + 2_026], fragment) for start in starts)
    np.testing.assert_array_equal(random_fragments(clips[1:2], RATE)[0], some[1])
    assert {len(random_fragments(np.zeros((1, size), np.float32), RATE)[0]) for size in (1, 3, 4, 9)} == {1, 2}


def test_noise_has_one_level_is_white_and_depends_on_the_clip_alone() -> None:
    clips = np.stack([noise(1)[0], 0.03 * noise(2)[1], noise(1)[0]])
    of = CONTROLS["noise-audio"].clips
    assert of is not None
    made = of(clips, RATE)
    for clip in made:
        assert np.sqrt(np.mean(clip**2)) == pytest.approx(NOISE_LEVEL, rel=0.03)
        power = np.abs(np.fft.rfft(clip)) ** 2
        assert power[: len(power) // 2].sum() / power.sum() == pytest.approx(0.5, abs=0.03)
        assert np.abs(clip).max() <= 1
    np.testing.assert_array_equal(made[0], made[2])
    np.testing.assert_array_equal(of(clips[1:2], RATE)[0], made[1])
    assert abs(np.corrcoef(made[0], made[1])[0, 1]) < 0.05
    assert abs(np.corrcoef(made[0], clips[0])[0, 1]) < 0.05


def test_shuffled_audio_has_the_same_stretches_in_an_order_that_the_clip_alone_decides() -> None:
    clips = np.concatenate([noise(), noise(1)])
    made = shuffled_clips(clips, RATE)
    length = round(STRETCH * RATE)
    whole = clips.shape[1] // length * length
    for before, after in zip(clips, made, strict=True):
        stretches = [clip[:whole].reshape(-1, length) for clip in (before, after)]
        places = [np.flatnonzero((stretches[0] == one).all(axis=1)).tolist() for one in stretches[1]]
        # As many as there are places for, none twice, and not as they were.
        assert sorted(places) == [[place] for place in range(whole // length)]
        assert places != sorted(places)
        np.testing.assert_array_equal(after[whole:], before[whole:])
    np.testing.assert_array_equal(made[0], made[2])
    for samples in (0, 1, 100):
        clip = np.linspace(-0.5, 0.5, samples, dtype=np.float32)
        np.testing.assert_array_equal(shuffled_clips(clip[None], RATE)[0], clip)


def test_clips_of_16_bits_and_other_rates_are_changed_at_the_models_rate() -> None:
    model = Controlled(Everything(), CONTROLS["reversed-audio"])
    frames, _ = model.embed_frames((noise() * 32_768).astype(np.int16), RATE)
    np.testing.assert_allclose(frames.reshape(2, -1), noise()[:, ::-1], atol=1e-4)
    assert model.embed_frames(noise(2, 8_000), 16_000)[0].shape == (2, 4_000, 1)
    listener, kept = Listener(), list[Any]()
    listener.hear = lambda clips: kept.extend(clip for (clip,) in clips)  # type: ignore[method-assign]
    Controlled(listener, CONTROLS["padded-audio"]).answer([[Clip("a", noise(1)[0], 16_000)]], ["?"])
    assert (len(kept[0].waveform), kept[0].sample_rate) == (160_000, 16_000)
    broken = noise()
    broken[1, 7] = np.nan
    with pytest.raises(ClipError, match="row 1: the waveform holds nan at sample 7"):
        Controlled(Everything(), CONTROLS["without-audio"]).embed(broken, RATE)


def test_a_pupil_learns_from_unchanged_clips() -> None:
    model = Pupil()
    controlled = Controlled(model, CONTROLS["without-audio"])
    assert controlled.abilities == {"answer", "learn"}
    controlled.learn([{}] * 2, iter([clip for (clip,) in given(model)]))
    np.testing.assert_array_equal(np.stack(model.heard), noise())


# Events as text


def test_a_model_hears_silence_as_long_as_the_clip_and_reads_the_events() -> None:
    model = Everything()
    controlled = Controlled(model, CONTROLS["events-as-text"])
    told = [prompt_with_events(row["events"], prompt) for row, prompt in zip(ROWS, PROMPTS, strict=True)]
    assert controlled.answer(given(model, row=True), PROMPTS) == [f"{prompt}!" for prompt in told]
    assert told[0].index("0.00-1.00 s: reed") < told[0].index("0.50-2.00 s: bell") < told[0].index("How many?")
    scores = controlled.score_options(given(model, row=True), PROMPTS, [["x", "y"]] * 2, "options")
    assert scores == [[-float(len(prompt)), -1.0] for prompt in told]
    assert [len(clip) for clip in model.heard] == [16_000, 8_000] * 2
    assert not any(clip.any() for clip in model.heard)
    with pytest.raises(ModelError, match="'events-as-text:everything' reads no sound"):
        controlled.answer(given(model), PROMPTS)
    for column in ("events", "duration"):
        row = {name: value for name, value in ROWS[0].items() if name != column}
        with pytest.raises(ModelError, match=f"row 'a' has no {column}"):
            controlled.answer([[GivenClip(np.zeros(0, np.float32), RATE, row)]], ["How many?"])


def test_a_model_of_texts_is_given_text_alone() -> None:
    reader = Reader()
    controlled = Controlled(reader, CONTROLS["events-as-text"])
    told = prompt_with_events([], "Which?")
    assert controlled.answer(given(reader, row=True), PROMPTS)[1] == f"{told}!"
    scores = controlled.score_options(given(reader, row=True), PROMPTS, [["x", "y"]] * 2, "letters")
    assert scores[1] == [-float(len(told)), 0.0]
    assert not reader.heard
    assert controlled.limit_seconds is None


# What cannot be controlled, and models by their names


@pytest.mark.parametrize(
    ("name", "model", "words"),
    [
        ("events-as-text", Encoder(), "answers no questions"),
        ("events-as-text", Pupil(), "learns from questions without events as text"),
        ("events-as-text", Controlled(Listener(), CONTROLS["noise-audio"]), "changes the sound, which events as text"),
        ("events-as-text", Controlled(Listener(), CONTROLS["events-as-text"]), "reads labels, not sound"),
        ("sorted-words", Listener(), "'sorted-words:listener': 'listener' embeds no text"),
        ("without-text", Listener(), "embeds no text"),
        ("other-audio", Encoder(), "answers no questions, so other-audio does not apply"),
    ],
)
def test_what_cannot_be_controlled_is_refused(name: str, model: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        Controlled(model, CONTROLS[name])


def test_a_control_of_a_control() -> None:
    both = load_model("sorted-words:reversed-audio:random")
    assert both.card.id == "sorted-words:reversed-audio:random"
    alone = [load_model(f"{name}:random") for name in ("reversed-audio", "sorted-words")]
    np.testing.assert_array_equal(both.embed(noise(), 32_000), alone[0].embed(noise(), 32_000))
    np.testing.assert_array_equal(both.embed_text(TEXTS), alone[1].embed_text(TEXTS))
    moved: Any = Controlled(Listener(), CONTROLS["other-audio"])
    assert Controlled(moved, CONTROLS["reversed-audio"]).asks_about_others


def test_a_twin_is_controlled_and_options_are_passed_on(saved: Callable[[str], Path]) -> None:
    name = f"untrained:{saved('whisper')}"
    options = EncoderOptions(layer=1)
    twin = load_encoder(name, device="cpu", options=options, seed=3)
    controlled = load_encoder(f"reversed-audio:{name}", device="cpu", options=options, seed=3)
    assert (controlled.card.id, controlled.card.revision) == (f"reversed-audio:{twin.card.id}", twin.card.revision)
    assert (controlled.card.options, controlled.card.parameters) == (twin.card.options, twin.card.parameters)
    clips = noise(2, 16_000)
    np.testing.assert_array_equal(controlled.embed(clips, 16_000), twin.embed(clips[:, ::-1], 16_000))
    assert not has_twins(f"reversed-audio:{saved('whisper')}")


def test_a_control_is_embedded_in_stages_as_its_model() -> None:
    class Batch:
        ids, waveforms, sample_rate, errors = ["a", "b", "c"], noise(3), 32_000, {1: "a reason"}

    (batch,) = embed_batches(load_model("without-audio:random"), [Batch()], skip_invalid=True)
    assert np.isnan(batch.embeddings[1]).all()
    np.testing.assert_array_equal(batch.embeddings[0], batch.embeddings[2])
