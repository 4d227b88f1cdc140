"""Command lines as somebody in a hurry types them: each ends in one line that says what to do, and leaves nothing."""

from __future__ import annotations

import json

import pytest

from ..dataset_builder.sounds.sounds import write, write_labelled
from ..dataset_builder.texts.labelled import write_domestic


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder as a user has it: recordings, tables, a model, some files of the wrong kind."""
    folder = tmp_path_factory.mktemp("hurried")
    write_labelled(folder / "animals", 8)
    write(folder / "few" / "x" / "0.wav")
    write(folder / "both" / "a" / "0.wav")
    (folder / "both" / "a" / "0.txt").write_text("0.1\t0.5\tdog\n")
    (folder / "empty").mkdir()
    (folder / "pictures").mkdir()
    (folder / "pictures" / "cat.png").write_bytes(b"\x89PNG")
    (folder / "broken").mkdir()
    (folder / "broken" / "x.wav").write_text("no sound")
    write(folder / "clip.wav")
    (folder / "notes.txt").write_text("milk, bread\n")
    (folder / "binary.csv").write_bytes(b"\xff\xfe\x00\x81")
    (folder / "table.csv").write_text("file_name,animal\ndog/0.wav,dog\n")
    (folder / "nameless.csv").write_text("file_name,animal\nnowhere.wav,dog\n")
    (folder / "street.csv").write_text("file,label,start,stop\ndog/0.wav,dog,0.5,0.1\n")
    (folder / "questions.csv").write_text("question,options,answer\nwho?,a;b,a\n")
    (folder / "lists.yaml").write_text("- animals\n")
    (folder / "open.yaml").write_text("data: [\n")
    (folder / "without.yaml").write_text("label: animal\n")
    (folder / "misspelt.yaml").write_text("data: animals\nlable: animal\n")
    (folder / "range.yaml").write_text("data: animals\nsettings: {classes: 1}\n")
    (folder / "empty.txt").write_text("\n \n")
    (folder / "untold.tsv").write_text("filename\tonset\toffset\tevent_label\na.wav\t0\t1\tdog\n")
    duration = {"syn_1": {"event": {"dog": [1.5, 2.0]}, "caption": ""}}
    (folder / "duration_captions.json").write_text(json.dumps(duration))
    write_domestic(folder / "desed")
    (folder / "syntax.py").write_text("class Mine\n")
    (folder / "mine.py").write_text("class Mine:\n    pass\n")
    (folder / "bad.json").write_text("{")
    (folder / "other").mkdir()
    (folder / "other" / "facts.json").write_text(json.dumps({"a": 1}))
    (folder / "bank.syx").write_bytes(b"F0")
    return folder


@pytest.fixture(autouse=True)
def _place(prepared, monkeypatch):
    """The working directory of a hurried user."""
    monkeypatch.chdir(prepared)


COMMANDS = [
    ("", "audio-compositionality needs COMMAND"),
    ("evalute random", "unknown command 'evalute'; did you mean 'evaluate'"),
    ("run --modell whisper-base", "there is no option --modell; "),
    ("run random --recordings animals", "there is no option --recordings; --help lists all"),
    ("train --out x --learning-rate 1", "as a setting it is --set learning_rate=VALUE, and --set help lists all"),
    ("compare", "compare needs RESULT; --help shows an example"),
    ("push --rehearse", "--rehearse needs --org"),
    ("push --rehearse --org lab metrics --org lab", "--rehearse goes through all steps: leave out metrics"),
    ("tasks a_coat", "'a_coat' is one argument too many"),
    ("run random --tasks a_coat comp_a_order", "separate tasks by commas: --tasks a_coat,comp_a_order"),
    ("evaluate random --tasks a_coat --benchmark coat", "--benchmark and --tasks are both given; give one"),
    ("evaluate random --preset full --preset mini", "--preset is given 2 times, full and mini; a command takes one"),
]

MODELS = [
    ("evaluate downsampel", "did you mean 'downsample'"),
    ("run Whisper-Base", "did you mean 'whisper-base'"),
    ("evaluate mine.py:Mein", "mine.py"),
    ("evaluate syntax.py:Mine", "syntax.py"),
    ("evaluate endpoint:tiny", "endpoint:"),
    ("evaluate ./no/such/folder", "no/such/folder"),
    ("evaluate random --layer 2", "'random' is a baseline"),
    ("evaluate random --layer all", "'random' has no layers to choose from"),
    ("run --layer=-1", "--layer is '-1'"),
    ("evaluate downsample --tasks polybench", "cannot answer questions (it has no answer)"),
    ("coral first --recordings animals", "'first' embeds no clips"),
]

VALUES = [
    ("run --batch-size 1000", "batch_size is 1000; it must be a whole number from 1 to 64"),
    ("evaluate random --set seeds=x", "seeds is 'x'; give the number of fits"),
    ("evaluate random --seeds 1 --set seeds=2", "--seeds and --set seeds=... are both given"),
    ("evaluate random --set seed=1 --set seed=2", "--set has seed twice"),
    ("evaluate random --set pooling=men", "pooling is 'men'; it is one of mean, cls, max: did you mean 'mean'"),
    ("evaluate random --tasks ,", "--tasks is ','; it takes one name, or several with commas"),
    ("evaluate random --tasks informativeness --set crossed_levels=8,4", "it is 4 whole numbers with commas between"),
    ("build --set voices=1,2", "voices has no effect without bank; give it too"),
    ("build --set bank=bank.syx", "bank.syx"),
    ("captions notes.txt --data mini", "give one of both"),
]

DATA = [
    ("evaluate random --data mini --preset full", "--data mini and --preset full are different presets; give one"),
    ("evaluate random --preset full --set preset=mini", "--preset and --set preset=... are both given; give one"),
    (
        "evaluate random --data mini --data full",
        "--data is given 2 times, mini and full; a command takes one, and each data set has a folder",
    ),
    ("evaluate random --data nowhere", "no data 'nowhere': not a folder or file here, not a Hub id (ORG/NAME)"),
    ("run --data=", "data is ''; give a preset, a folder (. is the current one), a table or a Hub id"),
    ("evaluate random --data esc51", "did you mean 'esc50'"),
    ("evaluate random --data esc50=nowhere", "'nowhere' is not a folder"),
    ("evaluate random --data compa:", "'compa:' has no path"),
    ("evaluate random --data benchmark:comba:x", "did you mean 'compa:PATH'"),
    ("evaluate random --data clip.wav", "is a sound file; give its folder"),
    (
        "data notes.txt --set audio=animals",
        "cannot tell the format of the strong labels in notes.txt; the first line is",
    ),
    ("data binary.csv", "cannot tell what 'binary.csv' contains: none of the columns in its first line"),
    ("data both", "'both' is ambiguous. Give one of these instead: recordings:./both"),
    ("data street.csv", "its sound files were not found. Give their folder with --set audio=FOLDER"),
    ("data street.csv --set audio=animals", "street.csv:2: 'dog' lasts from 0.5 to 0.1 s"),
    ("data nameless.csv --set audio=animals --set label=animal", "nowhere.wav"),
    ("evaluate random --data questions.csv", "questions.csv has no column of audio"),
    ("data broken", "'x.wav' cannot be read"),
    ("data lists.yaml", "lists.yaml must have lines like 'seed: 1'"),
    ("data without.yaml", "without.yaml lacks the key 'data'"),
    ("data range.yaml", "classes is 1; it is a whole number from 2 to 64"),
    ("data animals --write lists.yaml", "lists.yaml exists already; give another name"),
    ("evaluate random --data animals --set transforms=nois", "unknown transform 'nois'; did you mean 'noise'"),
    ("evaluate random --data animals --set label=x", "has no metadata.csv, to which"),
    ("evaluate random --data animals --tasks a_coat", "cannot be scored on a folder of recordings; those that can: "),
    (
        "evaluate random --set label=x",
        "label does not apply to 'mini', which is the preset mini; it applies to recordings",
    ),
    ("build --data animals --set bank=bank.syx", "bank is about the timbres of presets"),
    *((f"{typed} --data animals --set bases=2", "bases is 2; it must be from 5") for typed in ("evaluate rms", "run")),
    ("build --data animals --recipes a_coat_instances", "has 2 labels; 8 classes and 2 × 2 context sources require 12"),
    ("build --data words", "python -m studies.sounds NAME --out FOLDER, then --data FOLDER"),
    ("evaluate rms --data few --tasks invariance", "1 recordings in 1 groups; the 5 folds need at least one each"),
    (
        "evaluate rms --data few --benchmark axes",
        "cannot be used for any recipe: transforms: there are 1 recordings in 1 groups",
    ),
    ("data animals --write nowhere/x.yaml", "--write is 'nowhere/x.yaml', and there is no folder 'nowhere'"),
    ("captions table.csv", "has the columns file_name, animal; captions must be in caption"),
    ("captions empty.txt", "has no caption"),
]

LABELLED = "build --data desed/validation.tsv --set audio=desed/audio --set "
"""With strong labels."""

STREET = "build --data animals --set labels=street.csv --set "
"""With strong labels beside a folder."""

LABELS = [
    (f"{LABELLED}format=dessed", "there is no label format 'dessed'; did you mean 'desed'"),
    (f"{LABELLED}ask=detectoin", "there is no task 'detectoin'; did you mean 'detection'"),
    (f"{LABELLED}columns=onset", "columns has 'onset'; give FIELD=HEADING"),
    (f"{LABELLED}columns=onset=a --set format=desed", "the columns of desed are fixed"),
    (f"{LABELLED}columns=onset=a", "give the columns of the table: there is none for label, offset (or length)"),
    (f"{LABELLED}durations=none.tsv", "durations is 'none.tsv', which does not exist"),
    (f"{LABELLED}resolution=nan", "resolution is 'nan'; it is a number from 0 below 60"),
    (f"{LABELLED}negatives_labels=street.csv", "give both or neither"),
    (f"{LABELLED}seed=0 --recipe a_coat", "the recipe 'a_coat' cannot be made of recordings with strong labels"),
    ("build --data desed/validation.tsv", "its sound files were not found. Give their folder with --set audio=FOLDER"),
    ("build --data ./desed/none.tsv --set audio=desed/audio", "nothing found at "),
    (
        "build --set audio=desed",
        "audio does not apply to 'mini', which is the preset mini; it applies to a table of recordings",
    ),
    (f"{STREET}window=5", "which is a folder of recordings; it applies to strong labels"),
    ("build --data labels:duration_captions.json --set audio=animals", "the part 'duration' of AudioTime says how"),
    ("build --data untold.tsv --set audio=animals", "cannot tell the format of the strong labels in untold.tsv"),
]

MODELS_THAT_ANSWER = [
    ("evaluate first --set prompt=raeson", "prompt is 'raeson'; it is one of direct, text, reason: did you mean"),
    ("run first --set prompt=reason --set scoring=letters", "the prompt 'reason' asks for reasoning first"),
    ("evaluate rms --tasks a_coat --set spread=true", "spread only affects audio language models"),
    ("evaluate rms --tasks a_coat --set temperature=none", "temperature only affects models behind a server"),
    ("evaluate rms --tasks a_coat --set twin_seeds=0,1", "twin_seeds only affects untrained twins"),
    ("evaluate random --set twin_seeds=0,-1", "twin_seeds is 0, -1; it is whole numbers from 0 on"),
    ("evaluate sorted-words:rms --tasks comp_a_order", "embeds no text, so there is no text to change"),
    (
        "run rms --tasks comp_a_order --dry-run",
        "cannot embed texts (it has no embed_text), and the task comp_a_order needs an audio–text encoder",
    ),
]

TRAIN = [
    ("train --private", "give --push ORG/NAME too"),
    ("train --data animals --rows 3", "for recordings, --set train_rows=N sets the number"),
    ("train --set patience=3", "evaluate_every must be"),
    ("train --align whisper-tiny.en --init tiny", "excludes --init tiny"),
    ("train --align random --set train=last", "a map and a text tower, which are both trained"),
    ("train --align ./mine --push org/name", "'./mine' as its encoder, which others cannot load"),
    ("train --ablations --seeds two", "give whole numbers with commas"),
    ("train --ablations --stages hard:2", "the only stage is hard"),
]

RESULTS = [
    ("compare empty", "empty"),
    ("compare bad.json", "bad.json"),
    ("report . --format htm", "did you mean 'html'"),
    ("report . --format csv --model x", "--model chooses samples"),
    ("push dataset nowhere --org lab --dry-run", "nowhere"),
]

TARGETS = [
    ("build --recipes a_coat --out clip.wav", "clip.wav"),
    ("build --recipes a_coat --out /proc/x", "/proc/x"),
    ("data animals --write notes.txt/x.yaml", "notes.txt"),
]

HURRIED = [*COMMANDS, *MODELS, *VALUES, *DATA, *LABELS, *MODELS_THAT_ANSWER, *RESULTS, *TARGETS]
HURRIED += [(f"{typed} --out out" if "--out" not in typed else typed, message) for typed, message in TRAIN]


@pytest.mark.parametrize(("typed", "message"), HURRIED, ids=[typed for typed, _ in HURRIED])
def test_a_mistake_is_one_line_and_leaves_nothing(typed, message, refused):
    assert message in refused(*typed.split())


@pytest.mark.parametrize("command", ["evaluate", "embed", "check-model", "coral"])
def test_a_missing_model_is_two_lines(command, run, capsys):
    assert run(command) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"error: name a model, such as audio-compositionality {command} whisper-base")
    assert "`audio-compositionality models` lists the named ones" in second
