"""Questions of concurrency whose clips without overlap are those of AudioTime: the paper's mixed set."""

from collections import Counter

import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.recorded import annotated_data
from audio_compositionality.dataset_builder.sounds.annotations import AnnotationError
from audio_compositionality.dataset_builder.sounds.strong_labels import open_annotated
from audio_compositionality.dataset_builder.texts.label_questions import AnnotatedQuestions, AnnotatedSpec
from audio_compositionality.support.errors import InputError

from .labelled import DOMESTIC_QUESTIONS, write_audiotime, write_domestic


@pytest.fixture
def files(tmp_path):
    return (*write_domestic(tmp_path / "desed"), *write_audiotime(tmp_path / "audiotime"))


def opened(files):
    labels, audio, negatives, negatives_audio = files
    return open_annotated(labels, audio, negatives=[negatives], negatives_audio=negatives_audio)


def rows_of(recordings, **changes):
    settings = AnnotatedSpec(recordings=recordings, **{"train": 0.0, "least_clips": 1, **changes})
    return AnnotatedQuestions(settings).rows


def test_what_does_not_overlap_is_asked_about_audiotime_alone(files):
    rows = [row for row in rows_of(opened(files)) if row["task"] == "concurrency"]
    true = Counter(
        (row["anchor"], row["recording"].startswith("audiotime/"), row["overlaps"]) for row in with_truth(rows)
    )
    # Dog is alone in two clips of AudioTime and overlaps in five others, speech in two and three: two each.
    assert true == {(anchor, negative, not negative): 2 for anchor in ("Dog", "Speech") for negative in (False, True)}
    assert {row["recording"] for row in rows if row["recording"].startswith("audiotime/")} <= {
        "audiotime/syn_0",
        "audiotime/syn_1",
        "audiotime/syn_2",
    }
    # Of either answer there are as many, in both polarities: no constant text is right more often.
    assert len({count for count in Counter(row["answer"] for row in rows).values()}) == 1


def with_truth(rows):
    return [{**row, "overlaps": (row["polarity"] == "overlap") == (row["answer"] == "Yes")} for row in rows]


def test_all_other_questions_are_those_without_negatives(files):
    plain = rows_of(open_annotated(*files[:2]))
    mixed = rows_of(opened(files))
    for task in {kind.partition("/")[0] for kind in DOMESTIC_QUESTIONS} - {"concurrency"}:
        asked = [[row["question"], row["answer"], row["recording"]] for row in mixed if row["task"] == task]
        assert asked == [[row["question"], row["answer"], row["recording"]] for row in plain if row["task"] == task]


def test_without_negatives_nothing_is_another(files):
    with_, without = opened(files), open_annotated(*files[:2])
    assert with_.fingerprint != without.fingerprint
    assert not any(annotation.negative for annotation in without.annotations)
    assert "negatives" not in AnnotatedSpec(recordings=without).values()
    assert AnnotatedSpec(recordings=with_).values()["negatives"] == "audiotime"


def test_the_card_warns(files, tmp_path):
    changes = {"least_clips": 1, "train": 0.0}
    built = build_dataset(annotated_data(opened(files), changes=changes), tmp_path / "built", progress=False)
    card = (built / "README.md").read_text()
    assert "**Mixed concurrency**" in card
    assert "recognising the data set solves these questions" in " ".join(card.split())
    plain = build_dataset(annotated_data(open_annotated(*files[:2]), changes=changes), tmp_path / "p", progress=False)
    assert "Mixed concurrency" not in (plain / "README.md").read_text()


def test_what_cannot_be_negatives_is_refused(files, tmp_path):
    labels, audio, negatives, _ = files
    with pytest.raises(InputError, match="give both or none"):
        open_annotated(labels, audio, negatives=[negatives])
    with pytest.raises(InputError, match="there is no such folder"):
        open_annotated(labels, audio, negatives=[negatives], negatives_audio=tmp_path / "nowhere")
    other, other_audio = write_audiotime(tmp_path / "other", {"a.wav": {"Church bell": [[1.0, 2.0]]}})
    with pytest.raises(AnnotationError, match=r"no clip of AudioTime has a label of the recordings.*Church bell"):
        open_annotated(labels, audio, negatives=[other], negatives_audio=other_audio)
