"""Words of a user's table: their loudness counts where captions tell of it, and twins differ in one word alone."""

import itertools

import numpy as np
import pytest

from audio_compositionality.dataset_builder.open_data import open_recordings
from audio_compositionality.dataset_builder.recorded import offered

from ..sounds.sounds import noise, write

LABELS = ("piano", "violin", "bell", "drum", "horn", "flute")
PAIRS = tuple(itertools.product(("soft", "loud"), ("low", "high")))


GAINS = {"soft": 0.1, "loud": 1.0, "": 0.02}


def opened(folder, pairs, files=6):
    """Sounds of every label, so many of each pair of words."""
    lines = ["file_name,label,word:dynamics,word:pitch"]
    for place, (label, (dynamics, pitch), _) in enumerate(itertools.product(LABELS, pairs, range(files))):
        write(folder / f"{place}.wav", samples=GAINS[dynamics] * noise(0.8, seed=place))
        lines.append(f"{place}.wav,{label},{dynamics},{pitch}")
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n")
    return open_recordings(folder, progress=False)


@pytest.fixture(scope="module")
def sounds(tmp_path_factory):
    return opened(tmp_path_factory.mktemp("words"), PAIRS)


def rows_of(sounds, recipe, **changes):
    return offered(sounds, recipes=[recipe], required=[recipe], **changes).data.configuration(recipe).rows


@pytest.fixture(scope="module")
def half_filled(tmp_path_factory):
    return opened(tmp_path_factory.mktemp("half"), (("soft", "low"), ("loud", "low"), ("", "high"), ("", "low")))


def loudness_of(event):
    return dict(zip(event["dimensions"], event["attributes"], strict=True)).get("dynamics")


@pytest.mark.slow
def test_items_of_loudness_have_sounds_with_a_word_alone(half_filled):
    rows = rows_of(half_filled, "comp_a_attribute", items=24)
    assert {row["swapped"] for row in rows} == {"dynamics", "pitch"}
    for row in rows:
        first, second = ({event["label"]: loudness_of(event) for event in clip} for clip in row["events"])
        if row["swapped"] == "dynamics":
            assert sorted(first.values()) == ["loud", "soft"]
            assert first == dict(zip(second, reversed(second.values()), strict=True))
        else:
            # Only sounds without a word are both low and high: their level is the same.
            assert first == second == dict.fromkeys(first)


def test_captions_say_of_loudness_what_the_table_says(half_filled):
    rows = rows_of(half_filled, "comp_a_train", train_rows=60, validation_rows=0)
    said = [text for row in rows for text in row["captions"] if "soft" in text or "loud" in text]
    assert said
    for row in rows:
        words = {loudness_of(event) for event in row["events"]}
        assert all(word in words for text in row["captions"] for word in ("soft", "loud") if word in text.split())


def test_levels_of_words_change_nothing_where_all_are_equally_loud(sounds):
    assert {round(entry.level) for entry in sounds.entries} == {0, -20}
    data = offered(sounds, recipes=["polybench_atoms"], train_sets=1, test_sets=2).data
    configuration = data.configuration("polybench_atoms")
    for row, clip in zip(configuration.rows, configuration.clips(), strict=True):
        assert row["level_difference"] in (0, 3, 6)
        levels = [
            20 * np.log10(np.sqrt(np.mean(np.square(part, dtype=np.float64))))
            for start, stop, alone in alone_in(row["events"])
            if alone and len(part := clip.waveform[round(start * 32_000) : round(stop * 32_000)]) > 3_200
        ]
        assert max(levels, default=0) - min(levels, default=0) < 8


def alone_in(events):
    """Stretches of a clip in which one sound is heard, away from its ends."""
    ends = sorted({0.0, 10.0, *(end for event in events for end in (event["onset"], event["offset"]))})
    for start, stop in itertools.pairwise(ends):
        heard = [event for event in events if event["onset"] <= start and stop <= event["offset"]]
        yield start + 0.05, stop - 0.05, len(heard) == 1
