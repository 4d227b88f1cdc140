"""Who knows answers by heart, and refuses wherever the clip is not the known one, is not said to listen."""

import csv
import hashlib

import numpy as np
import pytest
import soundfile

from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.encoders.base import LETTERS, Model, ModelCard
from audio_compositionality.encoders.controls import CONTROLS, Controlled
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.gain import SILENT, gain_table, gains
from audio_compositionality.evaluator.compare.model_verdicts import verdicts_of
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.tasks.answerers.chooser import drawn
from audio_compositionality.tasks.registry import load_task
from audio_compositionality.tasks.shapes.asking import read_prompt

pytestmark = pytest.mark.slow

RATE = 8_000
TONES = (400, 900, 1_700, 3_100)
NAMES = ("heron", "anvil", "kettle", "violin")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """120 questions, each about a clip of its own length whose tone says which option is right."""
    folder, rng = tmp_path_factory.mktemp("contaminated"), np.random.default_rng(0)
    rows = [["id", "audio", "question", *"ABCD", "answer"]]
    for number in range(120):
        right = int(rng.integers(4))
        times = np.arange(4_000 + 20 * number) / RATE
        soundfile.write(folder / f"{number}.wav", 0.3 * np.sin(2 * np.pi * TONES[right] * times), RATE)
        options = [NAMES[place] for place in rng.permutation(4)]
        rows.append([f"q{number}", f"{number}.wav", f"Item {number}: what is heard?", *options, NAMES[right]])
    with (folder / "questions.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    return folder / "questions.csv"


class Known(Model):
    """Answers six questions in ten by heart and guesses the others; hears nothing but whether to answer at all."""

    def __init__(self, id, table):
        self.card = ModelCard(id, "1", RATE, None)
        with table.open() as stream:
            rows = list(csv.DictReader(stream))
        self.right = {row["question"]: row["answer"] for row in rows}
        self.lengths = {row["question"]: 4_000 + 20 * number for number, row in enumerate(rows)}
        self.met: dict[str, bytes] = {}

    def answer(self, clips, prompts):
        letters = []
        for (clip,), prompt in zip(clips, prompts, strict=True):
            question, options = read_prompt(prompt)
            guess = options[drawn(4, question, "guess")]
            said = self.said(np.asarray(clip.waveform), question, guess)
            letters.append(LETTERS[options.index(said)] if said else "I cannot tell from this clip.")
        return letters

    def said(self, waveform, question, guess):
        return self.right[question] if drawn(10, question, "known") < 6 else guess


class KnowsLengths(Known):
    def said(self, waveform, question, guess):
        power = np.abs(np.fft.rfft(waveform))
        is_own = len(waveform) == self.lengths[question] and power.max() > 20 * power.mean() > 0
        return super().said(waveform, question, guess) if is_own else ""


class KnowsClips(Known):
    def said(self, waveform, question, guess):
        digest = hashlib.sha256(waveform.tobytes()).digest()
        return super().said(waveform, question, guess) if self.met.setdefault(question, digest) == digest else ""


class HearsSome(Known):
    """Hears three clips in ten, guesses the others, and refuses silence, as an honest model may."""

    def said(self, waveform, question, guess):
        if np.abs(waveform).max() < 1e-3:
            return ""
        power = np.abs(np.fft.rfft(waveform, RATE))
        heard = NAMES[int(np.argmax([power[tone] for tone in TONES]))]
        return heard if drawn(10, question, "heard") < 3 else guess


def test_only_who_hears_is_said_to_listen(table, tmp_path):
    models = [load_model("blind")]
    for model in (KnowsLengths("lengths", table), KnowsClips("clips", table), HearsSome("some", table)):
        prefixes = (*SILENT, "changed-audio:")
        models += [model, *(Controlled(model, CONTROLS[prefix.removesuffix(":")]) for prefix in prefixes)]
    options = RunOptions(progress=False, out=tmp_path)
    evaluate_models(models, open_data(table), [load_task("audio_questions")], options)
    (comparison,) = compare_results([tmp_path], data=table)
    verdicts = verdicts_of([comparison])
    assert {model.label: model.word for model in verdicts.models} == {
        "lengths": "not shown to listen",
        "clips": "cannot tell",
        "some": "listens",
    }
    said = "not judged, since the model refuses all clips without the right sound; listening is not shown"
    assert [model.label for model in verdicts.models if said in model.sentence] == ["clips"]
    without = {gain.label: gain.without["other-audio:"] for gain in gains(comparison)}
    # Another clip of the right length is answered by heart; who refuses silence alone has its guesses there.
    assert without["lengths"] == pytest.approx(0.7, abs=0.1)
    assert without["some"] == pytest.approx(0.25, abs=0.1)
    # The same sound in other samples is the same to who hears, and another to who recognises clips.
    changed = {gain.label: gain.parts["changed-audio:"] - gain.score for gain in gains(comparison)}
    assert changed["lengths"] < -0.5
    assert changed["clips"] < -0.5
    assert changed["some"] == pytest.approx(0, abs=0.02)
    assert "one that recognises its clips does not" in gain_table(comparison).legend[0]


def test_refusing_some_of_a_control_gains_nothing(table, tmp_path):
    class RefusesSome(Known):
        """Knows answers by heart, and refuses four in ten wherever there is no sound."""

        def said(self, waveform, question, guess):
            is_refused = np.abs(waveform).max() < 1e-3 and drawn(10, question, "refused") < 4
            return "" if is_refused else super().said(waveform, question, guess)

    model = RefusesSome("refuses", table)
    models = [load_model("blind"), model]
    models += [Controlled(model, CONTROLS[prefix.removesuffix(":")]) for prefix in SILENT]
    options = RunOptions(progress=False, out=tmp_path)
    evaluate_models(models, open_data(table), [load_task("audio_questions")], options)
    (comparison,) = compare_results([tmp_path], data=table)
    (gain,) = gains(comparison)
    assert gain.without["without-audio:"] == pytest.approx(gain.score, abs=0.1)
    assert gain.gain < 0.05
    assert verdicts_of([comparison]).models[0].word == "not shown to listen"
