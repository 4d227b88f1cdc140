"""Drums and cymbals, each as it sounds in several drum kits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .collected import LEAST_LABELS, installing
from .maker import MadeSound, Maker, data_folder, digest_of, read_sound, write_sounds

LONGEST = 3.0
"""Seconds: cymbals ring for up to 12, and a clip is shorter than that."""

_FOLDER = "hydrogen/data/drumkits"


@dataclass(frozen=True)
class Kit:
    """A drum kit.

    Attributes:
        condition: its maker and its name: kits of one maker are related.
        folder: of its files.
        suffix: of its files.
        files: the file of each instrument, without the suffix; the loudest of several strengths.
    """

    condition: str
    folder: str
    suffix: str
    files: Mapping[str, tuple[str, ...]]

    def recordings(self) -> dict[str, list[Path]]:
        """The existing files, by their instruments."""
        folder = data_folder(f"{_FOLDER}/{self.folder}")
        if folder is None:
            return {}
        paths = {label: [folder / f"{name}.{self.suffix}" for name in names] for label, names in self.files.items()}
        here = {label: [path for path in some if path.is_file()] for label, some in paths.items()}
        return {label: some for label, some in here.items() if some}


KITS = (
    Kit(
        "audiophob/audiophob",
        "Audiophob",
        "wav",
        {
            "kick": ("86335__zgump__tom-0105",),
            "snare": ("124382__cubix__8bit-snare", "25671__walter-odington__garage-city-snare-snappy"),
            "stick": ("16336__sstokes__ss-ht-crunchtime",),
            "clap": ("29800__stomachache__3",),
            "closed-hat": ("116973__cbeeching__hat-light",),
            "pedal-hat": ("156272__dayvonjersen__fxshake5",),
            "open-hat": ("104227__minorr__hhat-paiste-302-14-open-p",),
            "low-tom": ("99930__menegass__noise-tom0",),
            "mid-tom": ("99931__menegass__noise-tom1",),
            "high-tom": ("101450__menegass__tomh",),
            "crash": ("124101__connersaw8__crash",),
            "ride": ("15590__lewis__sabmute",),
            "cowbell": ("122557__anillogic__trimo-c3",),
        },
    ),
    Kit(
        "tunguay/pacific",
        "BJA_Pacific",
        "aiff",
        {
            "kick": ("BD_08",),
            "snare": ("SN_08",),
            "closed-hat": ("HH_08",),
            "open-hat": ("HH2_08",),
            "low-tom": ("TM2_08",),
            "crash": ("CB_03", "CB2_03"),
            "ride": ("RD_06", "RD2_05"),
            "ride-bell": ("BL_04",),
        },
    ),
    Kit(
        "guglielmetti/colombo",
        "ColomboAcousticDrumkit",
        "flac",
        {
            "kick": ("bassdrum-4mics-br-stereo-normal3",),
            "snare": ("snare-opaque-normal-mic-normal_shot2", "snare-opaque-normal-mic-normal_shot3"),
            "stick": ("stick-rim-9",),
            "closed-hat": ("hihat-closed-4", "hihat-closed-6"),
            "open-hat": ("hihat-open-4", "hihat-open-5"),
            "low-tom": ("tom-low-1",),
            "mid-tom": ("tom-mid-1",),
            "high-tom": ("tom-hi-1",),
            "crash": ("crash16i__crash1", "crash20i__crash"),
            "ride": ("crash16i__ride2", "crash20i__ride4"),
            "ride-bell": ("crash16i__ride_cup4", "crash20i__ride-cup1"),
        },
    ),
    Kit(
        "pavlov/electric-empire",
        "ElectricEmpireKit",
        "flac",
        {
            "kick": ("EE_Kick_Lite_1", "EE_Kick_Stomp"),
            "snare": ("EE_Snare_1", "EE_Snare_2"),
            "clap": ("EE_Clap", "EE_Clap_Hard"),
            "closed-hat": ("EE_Hat_Cl_Bs", "EE_Hat_Cl_Dirty"),
            "open-hat": ("EE_Hat_Op_Dirty", "EE_Hat_Op_Phaser"),
        },
    ),
    Kit(
        "sadovnikov/forzee",
        "ForzeeStereo",
        "wav",
        {
            "kick": ("Kick-4",),
            "snare": ("Snare-4", "SnareOff-4"),
            "stick": ("RimClick-4",),
            "closed-hat": ("HiHatClosed-4",),
            "pedal-hat": ("HiHatFoot-4",),
            "open-hat": ("HiHatOpen-3",),
            "low-tom": ("TomLow-4",),
            "mid-tom": ("TomMid-4",),
            "high-tom": ("TomHigh-4",),
            "crash": ("Crash18-3",),
            "ride": ("Ride-2",),
            "ride-bell": ("RideBell-3",),
            "tambourine": ("Tambourine-4",),
        },
    ),
    Kit(
        "macarthur/gimme-a-hand",
        "Gimme A Hand 1.0",
        "wav",
        {
            "clap": ("HandClap-Hardest",),
            "cowbell": ("Cowbell-Hardest",),
            "tambourine": ("Tambourine-Hardest",),
        },
    ),
    Kit(
        "pavlov/hard-electro",
        "HardElectro1",
        "flac",
        {
            "kick": ("HardHse_K_02", "PowR_BD_1"),
            "snare": ("PowR_SN_1",),
            "clap": ("Amp_Clap_1", "Clap_1"),
            "closed-hat": ("FX_Chh_01", "Hard_CHH_01"),
            "open-hat": ("Hard_Hse_OHH_1",),
        },
    ),
    Kit(
        "grilli/one",
        "Millo-Drums_v.1",
        "flac",
        {
            "kick": ("bd1",),
            "snare": ("snare1", "snare3"),
            "stick": ("stick_Woody",),
            "clap": ("clap_Dry_c",),
            "closed-hat": ("closehihat3",),
            "pedal-hat": ("pedalhihat",),
            "open-hat": ("openhat2",),
            "low-tom": ("tom2_1",),
            "mid-tom": ("tom1_1",),
            "high-tom": ("tom1_a",),
            "crash": ("cra_Rock_a", "crash"),
            "ride": ("ride1", "ride2"),
            "cowbell": ("misc_Cowbell",),
        },
    ),
    Kit(
        "grilli/two",
        "Millo_MultiLayered2",
        "flac",
        {
            "kick": ("bd_05",),
            "snare": ("jsnare_05", "rsnare_05"),
            "stick": ("rim_04",),
            "clap": ("clap_04",),
            "closed-hat": ("hhclosed_05",),
            "pedal-hat": ("hhpedal_02",),
            "open-hat": ("hhopen_03",),
            "low-tom": ("floortom_04",),
            "mid-tom": ("tom_04",),
            "crash": ("crash_05",),
            "ride": ("ride_05",),
        },
    ),
    Kit(
        "grilli/three",
        "Millo_MultiLayered3",
        "flac",
        {
            "kick": ("bd_04",),
            "snare": ("sd_06", "sd_08"),
            "stick": ("rs_03",),
            "closed-hat": ("hh_04",),
            "pedal-hat": ("hh_p",),
            "open-hat": ("ho_03",),
            "low-tom": ("ft_03",),
            "mid-tom": ("t2_03",),
            "high-tom": ("t1_03",),
            "crash": ("cc_03",),
            "ride": ("rc_03",),
            "cowbell": ("mc_cb",),
        },
    ),
    Kit(
        "macarthur/black-pearl",
        "The Black Pearl 1.0",
        "wav",
        {
            "kick": ("PearlKick-Hardest",),
            "snare": ("PearlSnare-Hardest",),
            "stick": ("PearlSideStick-Hardest",),
            "clap": ("HandClap",),
            "closed-hat": ("SabianHatClosed-Hardest",),
            "pedal-hat": ("SabianHatPedal-Hardest",),
            "open-hat": ("SabianHatOpen-Hardest",),
            "low-tom": ("PearlTomFloor-Hardest",),
            "mid-tom": ("PearlTom2-Hardest",),
            "high-tom": ("PearlTom1-Hardest",),
            "crash": ("SabianCrash-Hardest",),
            "ride": ("PaisteRide-Hardest",),
            "ride-bell": ("PaisteBell-Hardest",),
            "cowbell": ("Cowbell-Hardest",),
        },
    ),
    Kit(
        "pavlov/vari-breaks",
        "VariBreaks",
        "flac",
        {
            "kick": ("VP Kick 1", "VP Kick 2", "VP Kick 3"),
            "snare": ("VP Snare 1", "VP Snare 2", "VP Snare 3"),
            "closed-hat": ("VP Hat 1 Cl", "VP Hat 2 Cl", "VP Hat 3 Cl"),
            "pedal-hat": ("VP Hat 1 Pd",),
            "open-hat": ("VP Hat 1 Op",),
            "low-tom": ("VP Tom Low",),
            "mid-tom": ("VP Tom Mid",),
            "high-tom": ("VP Tom Hi",),
        },
    ),
    Kit(
        "rumpf/z01",
        "rumpf_kit_z01_h2",
        "flac",
        {
            "kick": ("beats_06-38", "beats_06-46"),
            "snare": ("beats_01-21", "beats_06-25"),
            "stick": ("beats_09-12",),
            "clap": ("beats_01-26",),
            "closed-hat": ("beats_09-10",),
            "pedal-hat": ("beats_06-28",),
            "open-hat": ("beats_08-31",),
            "low-tom": ("beats_08-17",),
            "mid-tom": ("beats_08-18",),
            "high-tom": ("beats_08-19",),
            "crash": ("beats_06-43",),
            "ride-bell": ("beats_06-40",),
            "cowbell": ("beats_08-32",),
        },
    ),
)
"""The kits with drums and cymbals; circAfrique has neither.

The instrument of a file is the one in the kit's own list. Left out: half-open hats, rolls, and a high tom that is the
file of the middle one.
"""


@dataclass(frozen=True, kw_only=True)
class Drums(Maker):
    """The instruments of `KITS` that two kits or more have."""

    def sources(self) -> dict[str, str]:
        """The kits (conditions), and the digests of their files; see `Maker.sources`."""
        return {
            condition: digest_of(path for paths in recordings.values() for path in paths)
            for condition, recordings in self._recordings().items()
        }

    def make(self, folder: Path, progress: bool) -> None:
        """Write ``INSTRUMENT/MAKER/KIT/NAME.wav``; see `Maker.make`."""
        jobs = [partial(_sounds, condition, recordings) for condition, recordings in self._recordings().items()]
        write_sounds(jobs, folder, progress)

    def _recordings(self) -> dict[str, dict[str, list[Path]]]:
        recordings = {kit.condition: recorded for kit in KITS if (recorded := kit.recordings())}
        labels = {label for recorded in recordings.values() for label in recorded}
        if len(labels) < LEAST_LABELS:
            raise self.missing(f"{len(labels)} instruments are installed, of {LEAST_LABELS} at least")
        return recordings


def _sounds(condition: str, recordings: Mapping[str, list[Path]]) -> Iterator[MadeSound]:
    for label, paths in recordings.items():
        for path in paths:
            samples, rate = read_sound(path)
            yield MadeSound(label, condition, path.stem, samples[: round(LONGEST * rate)], rate)


DRUMS = Drums(
    name="drums",
    meaning=f"15 drums, cymbals and other percussion (label) of {len(KITS)} kits (condition: maker/kit)",
    needs=installing("hydrogen-drumkits"),
    licence=(
        "Recordings of others, which this project does not redistribute: hydrogen-drumkits, by kit GPL-2, GPL-2+, "
        "CC-BY-SA-3.0, CC-BY-3.0 or CC0"
    ),
)
