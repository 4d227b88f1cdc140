"""Sounds that are made of what is installed: with small programs in the place of the real ones, and with the real ones
where they are installed."""

from __future__ import annotations

import math
import re
import shlex
import shutil
import stat
import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soundfile

from audio_compositionality.dataset_builder.open_data import open_recordings
from audio_compositionality.dataset_builder.sounds.recordings import SoundError
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import sha256_of_file
from studies.sounds import MAKERS, collected, drums, instruments, load_maker, speech
from studies.sounds import maker as programs
from studies.sounds.instruments import Note, Phrase, installed_soundfonts, midi_file, programs_of
from studies.sounds.maker import MadeSound, Maker, write_sound, write_sounds

Install = Callable[[str, str], None]

FLITE = """
if [ "$1" = --version ]; then echo "  version: flite-2.2" >&2; exit 1; fi
if [ "$1" = -lv ]; then echo "Voices available: kal awb_time kal16 awb rms slt "; else COPY "TONES/$2-$4.wav" "$6"; fi
"""

ESPEAK = """
# As version 1.51: variants that an accent does not take, and one that is not there.
if [ "$1" = --version ]; then echo "eSpeak NG: 1.51"; exit; fi
case "$2" in
    *+f1) echo "Error: The specified espeak-ng voice does not exist." >&2; exit 1 ;;
    *+f3) COPY "TONES/en-gb-x-rp+m5-$5.wav" "$4" ;;
    *) COPY "TONES/$2-$5.wav" "$4" ;;
esac
"""

FESTIVAL = """
if [ "$1" = --version ]; then exit; fi
case "$2" in "(print"*) echo "(kal_diphone cmu_us_slt_arctic_hts)"; exit ;; esac
while read -r line; do
    case "$line" in
        "(voice_"*) voice=${line#"(voice_"}; voice=${voice%")"} ;;
        *) word=${line#*Text \\"}; word=${word%%\\"*}; path=${line%\\"*}; path=${path##*\\"}
           COPY "TONES/$voice-$word.wav" "$path" ;;
    esac
done < "$2"
"""


@pytest.fixture(scope="module")
def tones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the programs write: words by voices, phrases by soundfonts."""
    folder = tmp_path_factory.mktemp("tones")
    for seed, voice in enumerate(speech.VOICES):
        for number, word in enumerate(("balloon", "candle", "word")):
            record(folder / f"{voice.argument}-{word}.wav", 3 * seed + number)
    band(folder / "low.wav", 300)
    band(folder / "high.wav", 500)
    return folder


@pytest.fixture
def install(tmp_path: Path, tones: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put programs, of the shell's language, on a path that has nothing else."""
    folder = tmp_path / "bin"
    copy, sleep = shutil.which("cp"), shutil.which("sleep")
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def program(name: str, code: str) -> None:
        path = folder / name
        code = code.replace("COPY", shlex.quote(str(copy))).replace("SLEEP", shlex.quote(str(sleep)))
        path.write_text("#!/bin/sh\n" + code.replace("TONES", str(tones)), "utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    return program


@pytest.fixture
def two_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech, "WORDS", ("balloon", "candle"))


@pytest.fixture
def share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in the place of /usr/share."""
    folder = tmp_path / "usr" / "share"
    folder.mkdir(parents=True)
    monkeypatch.setenv("XDG_DATA_DIRS", f"relative:{tmp_path}/absent:{folder}")
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def record(path: Path, seed: int, seconds: float = 0.5, rate: int = 8_000) -> None:
    """A sound file of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, 0.1 * np.random.default_rng(seed).standard_normal(round(seconds * rate)), rate)


def band(path: Path, pitch: float) -> None:
    """Six phrases of 2.5 s, one every 4 s, each a little higher than the one before."""
    time = np.arange(4 * 32_000) / 32_000
    phrases = [np.sin(2 * math.pi * (pitch + 20 * place) * time) * (time < 2.5) for place in range(6)]
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, 0.3 * np.concatenate(phrases), 32_000, "FLOAT")


# The list


@pytest.mark.parametrize("name", MAKERS)
def test_each_says_what_it_makes_what_it_needs_and_under_which_licence(
    name: str, install: Install, share: Path, tmp_path: Path
):
    maker = load_maker(name)
    assert isinstance(maker, Maker)
    assert maker.name == name
    message = rf"the sounds '{name}' cannot be made: .*{re.escape(maker.needs)}"
    with pytest.raises(SoundError, match=message):
        maker.sources()
    with pytest.raises(SoundError, match=message):
        maker.make(tmp_path / "sounds", False)
    assert "apt-get install" in maker.needs
    assert "label" in maker.meaning
    assert not maker.meaning.endswith(".")
    assert maker.licence
    assert maker.version >= 1


def test_a_name_that_is_none_gets_the_nearest():
    with pytest.raises(InputError, match=r"unknown sounds 'word'.*words"):
        load_maker("word")


def test_no_file_is_of_two_labels_and_every_label_of_two_sources():
    """Of words: Festival and flite read one by its letters, so that none may begin with another."""
    words = sorted(speech.WORDS)
    assert not [word for word, longer in pairwise(words) if longer.startswith(word)]
    speakers = [
        [speaker.files.items() for speaker in maker.speakers]
        for maker in (collected.SPOKEN, collected.SPOKEN_GERMAN, collected.PROMPTS)
    ]
    kits = [[(file, label) for label, names in kit.files.items() for file in names] for kit in drums.KITS]
    for sources in (*speakers, kits):
        assert all(len(dict(source)) == len(list(source)) for source in sources)
        of_labels = [label for source in sources for label in {label for _, label in source}]
        assert all(of_labels.count(label) > 1 for label in set(of_labels))
    names = [name for names in collected.CREATURES.values() for name in names]
    assert len(set(names)) == len(names)
    assert min(map(len, collected.CREATURES.values())) > 1
    numbers = [program for program, _, _ in instruments.PROGRAMS.values()]
    assert len(set(numbers)) == len(numbers)
    assert all(0 <= program < 128 and 0 <= low < high < 128 for program, low, high in instruments.PROGRAMS.values())


# Words


@pytest.mark.usefixtures("two_words")
def test_words_by_the_voices_of_three_programs(install: Install, tmp_path: Path):
    install("flite", FLITE)
    install("espeak-ng", ESPEAK)
    install("festival", FESTIVAL)
    maker = load_maker("words")
    conditions = {
        *("flite/awb", "flite/rms", "festival/kal", "festival/slt"),
        *("espeak-ng/us-m1", "espeak-ng/us-m3", "espeak-ng/us-m7", "espeak-ng/us-f4"),
        *("espeak-ng/rp-m5", "espeak-ng/rp-klatt2"),
    }
    sources = maker.sources()
    assert set(sources) == conditions
    assert (sources["flite/awb"], sources["espeak-ng/us-m1"]) == ("version: flite-2.2", "eSpeak NG: 1.51")
    # It says nothing: the digest of its file.
    assert sources["festival/kal"] == sources["festival/slt"] == sha256_of_file(tmp_path / "bin" / "festival")
    install("flite", FLITE.replace("2.2", "2.3"))
    newer = maker.sources()
    assert {name for name in conditions if newer[name] != sources[name]} == {"flite/awb", "flite/rms"}
    maker.make(tmp_path / "words", False)
    places = {f"{word}/{condition}/{word}.wav" for word in ("balloon", "candle") for condition in conditions}
    assert files(tmp_path / "words").keys() == places
    info = soundfile.info(tmp_path / "words" / "candle" / "flite" / "awb" / "candle.wav")
    assert (info.channels, info.subtype, info.samplerate) == (1, "PCM_16", 8_000)
    maker.make(tmp_path / "again", False)
    assert files(tmp_path / "again") == files(tmp_path / "words")
    recordings = open_recordings(tmp_path / "words", progress=False)
    assert {(entry.label, entry.condition) for entry in recordings.entries} == {
        (word, condition) for word in ("balloon", "candle") for condition in conditions
    }


@pytest.mark.usefixtures("two_words")
def test_a_program_that_fails_is_named_with_what_it_says(install: Install, tmp_path: Path):
    install("flite", FLITE)
    install("espeak-ng", r"printf '\nWarning: slow\nno data\033[0m\nmore\n' >&2; exit 3")
    with pytest.raises(SoundError, match="'words' cannot be made: espeak-ng has none of the English voices en-us"):
        load_maker("words").sources()
    with pytest.raises(SoundError, match=r"^espeak-ng failed: no data\\x1b\[0m$"):
        programs.output_of("espeak-ng", [])
    for name, code, limit, said in (
        ("sleeper", "exec SLEEP 60", 0.2, r"sleeper was stopped: it takes longer than 0\.2 s"),
        ("quiet", "exit 7", 60, "quiet failed: exit status 7"),
    ):
        install(name, code)
        with pytest.raises(SoundError, match=f"^{said}$"):
            programs.output_of(name, [], limit=limit)
    with pytest.raises(SoundError, match=r"^the program nobody is not installed$"):
        programs.output_of("nobody", [])
    install("espeak-ng", f'[ "$5" = candle ] && exit 0\n{ESPEAK}')
    with pytest.raises(SoundError, match=r"^espeak-ng has not written 'candle' by the voice us-m1$"):
        load_maker("words").make(tmp_path / "words", False)


# Files


def test_files_have_one_level_and_no_pauses_at_their_ends(tmp_path: Path):
    rate = 8_000
    noise = np.random.default_rng(0)
    tone = 0.01 * np.sin(2 * math.pi * 440 / rate * np.arange(rate))
    samples = np.concatenate([np.zeros(rate), tone, np.zeros(rate)]) + 1e-5 * noise.standard_normal(3 * rate)
    write_sound(MadeSound("a", "b/c", "d", samples, rate), tmp_path)
    values, _ = soundfile.read(tmp_path / "a" / "b" / "c" / "d.wav")
    assert np.abs(values).max() == pytest.approx(programs.PEAK, abs=1e-4)
    assert 1 <= len(values) / rate <= 1 + 2 * (programs.MARGIN + programs.FRAME)
    assert values[0] == 0


@pytest.mark.parametrize(
    ("samples", "reason"), [(np.zeros(9_000), "silent"), (np.zeros(0), "silent"), (np.full(9, np.nan), "no sound")]
)
def test_silence_is_refused(samples: np.ndarray, reason: str, tmp_path: Path):
    with pytest.raises(SoundError, match=f"^'wolf/1.wav' is {reason}$"):
        write_sounds([lambda: [MadeSound("wolf", "", "1", samples, 8_000)]], tmp_path, False)


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path):
    sound = MadeSound("wolf", "", "1", np.ones(9_000), 8_000)
    write_sound(sound, tmp_path)
    with pytest.raises(SoundError, match=r"holds 'wolf/1\.wav' already; make sounds in an empty folder$"):
        write_sound(sound, tmp_path)


# Words by people


def test_words_that_two_people_have_recorded(share: Path, tmp_path: Path):
    for speaker, words in {"female1": range(1, 10), "male1": range(1, 9)}.items():
        for number in words:
            for suit in "bc":
                record(share / f"kajongg/voices/{speaker}/{suit}{number}.ogg", number, 0.5 + 0.1 * len(speaker))
    record(share / "saytime/7.au", 7)
    record(share / "klettres/en/alpha/A.ogg", 1)
    record(share / "klettres/en_GB/alpha/a.ogg", 2)
    sources = collected.SPOKEN.sources()
    assert tuple(sources) == ("kajongg-female1", "kajongg-male1", "klettres-en", "klettres-en_GB")
    record(share / "klettres/en/alpha/A.ogg", 5)
    newer = collected.SPOKEN.sources()
    assert [name for name in sources if newer[name] != sources[name]] == ["klettres-en"]
    collected.SPOKEN.make(tmp_path / "spoken", False)
    assert files(tmp_path / "spoken").keys() == {
        *(
            f"{suit}-{number}/kajongg-{speaker}/{suit}-{number}.wav"
            for suit in ("bamboo", "character")
            for number in range(1, 9)
            for speaker in ("female1", "male1")
        ),
        "letter-a/klettres-en/letter-a.wav",
        "letter-a/klettres-en_GB/letter-a.wav",
    }
    with pytest.raises(SoundError, match=r"'spoken-german' .*: 0 words by two or more speakers are installed"):
        collected.SPOKEN_GERMAN.sources()


# Drums


def test_drums_of_the_kits_that_are_installed(share: Path, tmp_path: Path):
    kits = {kit.condition: kit for kit in drums.KITS}
    for seed, condition in enumerate(("grilli/one", "macarthur/black-pearl")):
        kit = kits[condition]
        for label, names in kit.files.items():
            for name in names:
                seconds = 4.0 if label == "crash" else 0.5
                record(share / f"hydrogen/data/drumkits/{kit.folder}/{name}.{kit.suffix}", seed, seconds)
    drums.DRUMS.make(tmp_path / "drums", False)
    made = files(tmp_path / "drums")
    assert made.keys() == {
        f"{label}/{condition}/{name}.wav"
        for condition in ("grilli/one", "macarthur/black-pearl")
        for label, names in kits[condition].files.items()
        for name in names
    }
    longest = max(soundfile.info(tmp_path / "drums" / place).duration for place in made)
    assert longest == pytest.approx(drums.LONGEST, abs=0.03)
    before = drums.DRUMS.sources()
    record(share / "hydrogen/data/drumkits/Millo-Drums_v.1/bd1.flac", 9)
    after = drums.DRUMS.sources()
    assert [condition for condition in before if before[condition] != after[condition]] == ["grilli/one"]


# Creatures


def test_creatures_of_the_newest_game_that_is_installed(share: Path, tmp_path: Path):
    record(share / "games/wesnoth/1.14/data/core/sounds/bat-hit-1.ogg", 0)
    kinds = {kind: names[:2] for kind, names in collected.CREATURES.items() if kind < "troll"}
    for seed, name in enumerate(name for names in kinds.values() for name in names):
        record(share / f"games/wesnoth/1.16/data/core/sounds/{name}.{'wav' if seed else 'ogg'}", seed)
    record(share / "games/wesnoth/1.16/data/core/sounds/yeti-hit.wav", 0)
    collected.CREATURE_CALLS.make(tmp_path / "creatures", False)
    assert files(tmp_path / "creatures").keys() == {f"{k}/{name}.wav" for k, names in kinds.items() for name in names}
    sources = collected.CREATURE_CALLS.sources()
    assert list(sources)[:2] == ["bat/bat-hit-1", "bat/bat-hit-2"]
    record(share / "games/wesnoth/1.16/data/core/sounds/bat-hit-2.wav", 1_000)
    assert [name for name, digest in collected.CREATURE_CALLS.sources().items() if digest != sources[name]] == [
        "bat/bat-hit-2"
    ]


# Instruments


def test_a_midi_file():
    phrase = Phrase(13, [Note(0.0, 0.5, 60, 100), Note(0.5, 0.5, 60, 101)])
    content = midi_file([phrase, phrase], 2.0)
    assert content[:22] == b"MThd" + struct.pack(">IHHH", 6, 0, 1, 480) + b"MTrk" + struct.pack(">I", len(content) - 22)
    first = "00c00d" + "00903c64" + "8360803c00" + "00903c65" + "8360803c00" + "8360b07800"
    second = "8170c00d" + "8170903c64"
    assert content[22:].startswith(bytes.fromhex(first + second))
    assert content.endswith(bytes.fromhex("8360ff2f00"))


def soundfont(path: Path, presets: dict[tuple[int, int], str]) -> None:
    """A soundfont that has no sound, with presets by (bank, program)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [(name, program, bank) for (bank, program), name in presets.items()]
    table = b"".join(struct.pack("<20sHHHIII", n.encode(), p, b, 0, 0, 0, 0) for n, p, b in [*rows, ("EOP", 0, 0)])

    def chunk(name: bytes, content: bytes) -> bytes:
        return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)

    content = (
        b"sfbk"
        + chunk(b"LIST", b"INFO" + chunk(b"INAM", b"odd"))
        + chunk(b"LIST", b"sdta" + chunk(b"smpl", b"\0" * 11))
        + chunk(b"LIST", b"pdta" + chunk(b"phdr", table) + chunk(b"pbag", b"\0" * 8))
    )
    path.write_bytes(chunk(b"RIFF", content))


def test_programs_of_a_soundfont(tmp_path: Path):
    soundfont(tmp_path / "a.sf2", {(0, 0): "Piano", (0, 40): "Violin", (8, 41): "Other viola", (128, 0): "Drums"})
    assert programs_of(tmp_path / "a.sf2") == {0, 40}
    (tmp_path / "b.sf2").write_bytes(b"RIFF0000WAVE")
    (tmp_path / "c.sf2").write_bytes(b"RI")
    assert programs_of(tmp_path / "b.sf2") == programs_of(tmp_path / "c.sf2") == programs_of(tmp_path / "d") == set()


def test_soundfonts_with_common_samples_are_of_one_family(share: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("studies.sounds.instruments._PACKAGES", ())
    for name in ("TimGM6mb", "sf_GMbank", "FluidR3_GM", "Mine"):
        soundfont(share / f"sounds/sf2/{name}.sf2", {(0, 0): "Piano"})
    assert [font.condition for font in installed_soundfonts({0})] == [
        *("fluidr3/FluidR3_GM", "gmbank/TimGM6mb", "gmbank/sf_GMbank", "mine/Mine"),
    ]


FLUIDSYNTH = """
if [ "$1" = --version ]; then echo "FluidSynth 2.3"; exit; fi
# The file before the last two arguments; soundfonts differ in what they play.
while [ $# -gt 3 ]; do shift; done
case "$2" in
    *mute*) ;;
    *Fluid*) COPY "TONES/low.wav" "$1" ;;
    *) COPY "TONES/high.wav" "$1" ;;
esac
"""


@pytest.fixture
def two_instruments(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("violin", "flute")
    monkeypatch.setattr(instruments, "PROGRAMS", {name: instruments.PROGRAMS[name] for name in names})


@pytest.mark.usefixtures("two_instruments")
def test_instruments_by_two_soundfonts(install: Install, share: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("studies.sounds.instruments._PACKAGES", ())
    install("fluidsynth", FLUIDSYNTH)
    both = {(0, 40): "Violin", (0, 73): "Flute"}
    soundfont(share / "sounds/sf2/FluidR3_GM.sf2", both)
    soundfont(share / "soundfonts/MuseScore_General.sf3", both)
    soundfont(share / "soundfonts/Piano.sf2", {(0, 0): "Piano", (0, 40): "Violin"})
    with pytest.raises(SoundError, match=r"two kinds are needed, but only FluidR3_GM.sf2, MuseScore_General.sf3 is"):
        instruments.INSTRUMENTS.sources()
    soundfont(share / "soundfonts/Band.sf2", both)
    (share / "sounds/sf2/default.sf2").symlink_to(share / "soundfonts/Band.sf2")
    sources = ("band/Band", "fluidr3/FluidR3_GM", "fluidr3/MuseScore_General")
    stated = instruments.INSTRUMENTS.sources()
    assert tuple(stated) == (*sources, "fluidsynth")
    assert stated["fluidsynth"] == "FluidSynth 2.3"
    soundfont(share / "soundfonts/Band.sf2", {**both, (0, 1): "Other"})
    newer = instruments.INSTRUMENTS.sources()
    assert [name for name in stated if newer[name] != stated[name]] == ["band/Band"]
    (share / "soundfonts/MuseScore_General.sf3").unlink()
    instruments.INSTRUMENTS.make(tmp_path / "made", False)
    assert files(tmp_path / "made").keys() == {
        f"{name}/{source}/{phrase}.wav"
        for name in ("violin", "flute")
        for source in sources[:2]
        for phrase in (1, 2, 3)
    }
    assert soundfile.info(tmp_path / "made/flute/band/Band/3.wav").duration == pytest.approx(2.5, abs=0.1)
    soundfont(share / "soundfonts/mute.sf2", both)
    with pytest.raises(SoundError, match=r"sound.wav' cannot be read"):
        instruments.INSTRUMENTS.make(tmp_path / "again", False)


def test_phrases_are_in_the_range_of_their_instruments_and_differ():
    phrases = instruments.phrases_of("timgm6mb/TimGM6mb")
    assert phrases == instruments.phrases_of("timgm6mb/TimGM6mb")
    assert [name for name, _ in phrases] == [name for name in instruments.PROGRAMS for _ in range(instruments.PHRASES)]
    seen = set()
    for name, phrase in [*phrases, *instruments.phrases_of("fluidr3/FluidR3_GM")]:
        program, low, high = instruments.PROGRAMS[name]
        assert phrase.program == program
        assert all(low <= note.pitch <= high and 1 <= note.velocity <= 127 for note in phrase.notes)
        assert 1.3 < phrase.notes[-1].start + phrase.notes[-1].duration < 2.5
        seen.add((program, tuple(phrase.notes)))
    assert len(seen) == 2 * len(phrases)


# The real programs


def real(*names: str) -> pytest.MarkDecorator:
    absent = [name for name in names if shutil.which(name) is None]
    return pytest.mark.skipif(bool(absent), reason=f"not installed: {', '.join(absent)}")


@pytest.mark.slow
@real("flite", "espeak-ng")
@pytest.mark.usefixtures("two_words")
def test_words_by_the_real_programs(tmp_path: Path):
    maker = load_maker("words")
    assert {source.split("/")[0] for source in maker.sources()} >= {"flite", "espeak-ng"}
    for name in ("once", "twice"):
        maker.make(tmp_path / name, False)
    assert files(tmp_path / "once") == files(tmp_path / "twice")
    recordings = open_recordings(tmp_path / "once", progress=False)
    assert len(recordings.entries) == 2 * len(maker.sources())
    assert len({entry.sha256 for entry in recordings.entries}) == len(recordings.entries)


@pytest.mark.slow
@real("fluidsynth")
@pytest.mark.usefixtures("two_instruments")
def test_instruments_by_the_real_program(tmp_path: Path):
    fonts = installed_soundfonts({program for program, _, _ in instruments.PROGRAMS.values()})
    if not fonts:
        pytest.skip("no soundfont is installed")
    smallest = min(fonts, key=lambda font: font.path.stat().st_size)
    for name in ("once", "twice"):
        write_sounds([lambda: instruments.phrase_sounds(smallest)], tmp_path / name, False)
    assert files(tmp_path / "once") == files(tmp_path / "twice")
    assert len(open_recordings(tmp_path / "once", progress=False).entries) == 2 * instruments.PHRASES
