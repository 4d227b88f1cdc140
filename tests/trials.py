"""Trials: files of all kinds are damaged at random, and each must be refused, made again, or read as before; so must
what killed processes leave, what bombs hold, and what hostile hosts give (`tests/trial_attacks.py`).

    python -m tests.trials [--trials 1000] [--seed N]

prints the seed and a table. *Silently other* is another value of a file that states its own digest; files of others
state none, so that a damaged text is another text: *read*. A *crash* is an error that is not one of ours, or takes
more than `MOST_MEMORY`; a *hang* takes more than `LONGEST` seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import secrets
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile

from audio_compositionality.support.errors import AudioCompositionalityError

from . import trial_attacks as attacks

LONGEST = 150
MOST_MEMORY = 6 * 2**30
"""Bytes that reading may take; a file may state 2 GiB of rows, which Arrow and Python hold at a time."""
OUTCOMES = ("refused", "remade", "same", "read", "silently other", "crash", "hang")
RATE = 8_000


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        area: in the table.
        write: writes the files into a folder.
        read: what a user takes from them, as a value with `==`.
        files: pattern of the files that are damaged.
        is_sealed: whether the files state their digest, so that another value is never right.
        harm: what is done to a file, or where `files` is empty to the folder; says what. By default `damage`.
        most: trials of a kind that takes long.
    """

    area: str
    write: Callable[[Path], Any]
    read: Callable[[Path], Any]
    files: str = "*"
    is_sealed: bool = False
    harm: Callable[[Path, np.random.Generator], str] | None = None
    most: int = 10**9


class HangError(BaseException):
    """More than `LONGEST` seconds."""


def _only(folder: Path) -> Path:
    """The file in a folder; the place of one that is gone."""
    return next((path for path in folder.iterdir() if path.name != "cache"), folder / "gone.wav")


def _text(name: str, text: str) -> Callable[[Path], Any]:
    return lambda folder: (folder / name).write_text(text, "utf-8")


def _sound(name: str, **form: str) -> Callable[[Path], Any]:
    noise = np.random.default_rng(0).normal(0, 0.1, RATE // 2)
    return lambda folder: soundfile.write(folder / name, noise, RATE, **form)


def _heard(folder: Path) -> Any:
    from audio_compositionality.dataset_builder.sounds.recordings import decoded, read_header

    path = _only(folder)
    header = read_header(path)
    return decoded(path, header, 0, min(header.frames, RATE), whole=False).sha256


_ROWS = [
    {"id": f"q{n}", "question": f"What is it, {n}?", "options": ["dog", "rain"], "answer": "rain", "audio": "a.wav"}
    for n in range(6)
]
_CSV = "file_name,label,group\n" + "".join(f"{n}.wav,dog,a\n" for n in range(9))


def _questions(name: str) -> Kind:
    def write(folder: Path) -> None:
        _sound("a.wav")(folder)
        path = folder / name
        if path.suffix == ".parquet":
            pq.write_table(pa.Table.from_pylist(_ROWS), path)
        elif path.suffix == ".csv":
            rows = "".join(f"{one['id']},{one['question']},dog|rain,rain,a.wav\n" for one in _ROWS)
            path.write_text("id,question,options,answer,audio\n" + rows.replace("it, ", "it "))
        else:
            path.write_text("\n".join(map(json.dumps, _ROWS)) if path.suffix == ".jsonl" else json.dumps(_ROWS))

    def read(folder: Path) -> Any:
        from audio_compositionality.dataset_builder.open_data import open_data

        configuration = open_data(folder / name).configuration("audio_questions")
        return list(configuration.rows), [clip.waveform.tobytes() for clip in configuration.clips(range(1))]

    return Kind("questions", write, read, name)


def _logged(folder: Path) -> Any:
    from audio_compositionality.evaluator.answer_logs import read_logs

    path = _only(folder)
    return [(log.format, log.answers) for log in read_logs(path)]


def _zipped(name: str, files: dict[str, Any]) -> Callable[[Path], Any]:
    def write(folder: Path) -> None:
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for inner, value in files.items():
                archive.writestr(inner, value)

    return write


def _annotated(format: str) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        from audio_compositionality.dataset_builder.sounds.formats import read_annotations
        from audio_compositionality.dataset_builder.sounds.formats.parsing import ReadOptions

        path = _only(folder)
        return read_annotations(path, format, ReadOptions(durations={"a": 3.0}))

    return read


def _settings(folder: Path) -> Any:
    from audio_compositionality.support.spec import read_yaml

    return read_yaml(folder / "a.yaml")


def _card(folder: Path) -> Any:
    from audio_compositionality.dataset_builder.stored import LocalFolder, check_card

    return check_card(LocalFolder(str(folder)))


def _prompts(folder: Path) -> Any:
    from audio_compositionality.dataset_builder.texts.captions import load_templates

    return load_templates(str(folder / "a.yaml"))


def _table(folder: Path) -> Any:
    from audio_compositionality.dataset_builder.tables import open_table

    return open_table(_only(folder)).records()


def _packed(folder: Path) -> Any:
    from audio_compositionality.dataset_builder.sounds.published import ZippedFiles

    archive = ZippedFiles(folder / "a.zip")
    return [archive.file(name).getvalue() for name in archive.names]


def _voice(folder: Path) -> Any:
    from audio_compositionality.dataset_builder.sounds.dx7_voice import load_bank

    return load_bank(folder / "a.syx")


def _write_voice(folder: Path) -> None:
    data = np.random.default_rng(0).integers(0, 50, 4096, np.uint8).tobytes()
    end = bytes((-sum(data) & 0x7F, 0xF7))
    (folder / "a.syx").write_bytes(bytes.fromhex("f04300092000") + data + end)


def _write_result(folder: Path) -> None:
    sys.path.append(str(Path(__file__).parent / "references"))
    from audio_compositionality.evaluator.results.result import Result, SampleTable, save_result

    from .references.board_entries import made_up

    files = made_up("org/short")
    save_result(folder, Result.loads(files["result.json"]), SampleTable.loads(files["samples.csv"]))


def _result(folder: Path) -> Any:
    from audio_compositionality.evaluator.compare.loading import load_results

    return [(one.result.dumps(), one.samples.dumps()) for one in load_results(folder)]


def _write_features(folder: Path) -> None:
    _features(folder)


def _features(folder: Path) -> Any:
    from audio_compositionality.training.features import prepare_features

    from .training.made_data import made_data

    class FrontEnd:
        sample_rate, shape, settings = RATE, (2, 3), {"front_end": "trials"}

        def __call__(self, waveform: Any) -> Any:
            return np.resize(waveform, self.shape).astype(np.float32)

    return prepare_features(made_data(6), FrontEnd(), folder=folder / "features").gather(np.arange(6)).tolist()


def _write_training(folder: Path) -> None:
    from audio_compositionality.training.running import finish

    from .training.small_training import small_trainer

    trainer = small_trainer(folder, stages="contrastive:2")
    trainer.run()
    finish(trainer)


def _model(folder: Path) -> Any:
    from audio_compositionality.encoders.loading.registry import load_model

    return load_model(str(folder), device="cpu").embed_text(["a bell then a reed"]).tolist()


def _state(folder: Path) -> Any:
    """The last weights, from whichever state the training goes on."""
    from .training.small_training import small_trainer

    trainer = small_trainer(folder, stages="contrastive:2")
    trainer.run()
    return [weight.sum().item() for weight in trainer.towers.parameters()]


def _write_bundled(folder: Path) -> None:
    from audio_compositionality.encoders.families.compa_clap_tiny import FOLDER

    shutil.copytree(FOLDER, folder / "compa-clap-tiny")


def _bundled(folder: Path) -> Any:
    from audio_compositionality.encoders.loading.checkpoints import open_checkpoint

    checkpoint = open_checkpoint(folder / "compa-clap-tiny", name="compa-clap-tiny", trained_on="our own data")
    return checkpoint.weights_sha256


def _scene(name: str) -> tuple[Callable[[Path], Any], Callable[[Path], Any]]:
    from .support.test_read_back import SCENES

    return SCENES[name]


def _frames(folder: Path) -> Any:
    """Scores of frames; what was embedded before is read from the store."""
    from audio_compositionality.dataset_builder.rendered import rendered_preset
    from audio_compositionality.encoders.loading.registry import load_model
    from audio_compositionality.evaluator.run.evaluate import evaluate_models
    from audio_compositionality.evaluator.run.options import RunOptions
    from audio_compositionality.tasks.registry import load_task

    options = RunOptions(out=folder, cache=folder / "cache" / "store", device="cpu", progress=False)
    for path in folder.rglob("when_frames.*"):
        # A result that is there is not computed again, and the frames are not read.
        path.unlink()
    data = rendered_preset("mini", recipes=["when"], groups=8)
    (result,) = evaluate_models([load_model("log-mel-statistics")], data, [load_task("when_frames")], options)
    return result.measures


_INSPECT = {"eval": {}, "samples": [{"id": 1, "input": "What?\nA. x\nB. y", "target": "A",
            "output": {"completion": "A"}}]}  # fmt: skip
_LMMS = [{"doc_id": n, "target": "A", "resps": [["A"]], "input": "What?\nA. x\nB. y"} for n in range(5)]


def _sheet() -> str:
    rows = [("id", "question", "response"), *((f"q{number}", "What?", "dog") for number in range(4))]
    cells = ["".join(f'<c r="{c}1" t="inlineStr"><is><t>{v}</t></is></c>' for c, v in zip("ABC", row, strict=True))
             for row in rows]  # fmt: skip
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return (
        f'<worksheet xmlns="{main}"><sheetData>{"".join(f"<row>{row}</row>" for row in cells)}</sheetData></worksheet>'
    )


KINDS: dict[str, Kind] = {
    # First: a process that has run threads is not to be forked.
    "kill of two processes": Kind("kills", attacks.two_processes, attacks.two_processes, "", True,
                                  attacks.kill_of_two, most=20),
    "kill of run": Kind("kills", attacks.write_run, attacks.read_run, "", True, attacks.kill_of_run, most=3),
    "settings, YAML": Kind("texts", _text("a.yaml", "seed: 1\nstages: [a, b]\nx: &a 1\ny: *a\n"), _settings),
    "data card": Kind("texts", _text("README.md", "---\nconfigs:\n- config_name: a\n  data_files: a/*\n---\nx"), _card),
    "prompts, YAML": Kind("texts", _text("a.yaml", "- the sound of {label}\n- I hear {label}.\n"), _prompts),
    "table, CSV": Kind("texts", _text("a.csv", _CSV), _table),
    "table, TSV": Kind("texts", _text("a.tsv", _CSV.replace(",", "\t")), _table),
    "voices of a DX7": Kind("sounds", _write_voice, _voice),
    "zip of sounds": Kind("sounds", _zipped("a.zip", {f"{n}.wav": bytes(99) for n in range(4)}), _packed),
    **{
        f"sound, {name}": Kind("sounds", _sound(f"a.{name}", **form), _heard)
        for name, form in {
            "wav": {}, "flac": {}, "ogg": {}, "aiff": {}, "au": {}, "mp3": {}, "w64": {}, "caf": {},
            "opus": {"format": "OGG", "subtype": "OPUS"},
        }.items()
    },
    **{f"questions, {form}": _questions(f"table.{form}") for form in ("csv", "json", "jsonl", "parquet")},
    "log of lmms-eval": Kind("logs", _text("a.jsonl", "\n".join(map(json.dumps, _LMMS))), _logged),
    "log of inspect_ai": Kind("logs", _text("a.json", json.dumps(_INSPECT)), _logged),
    "archive of inspect_ai": Kind("logs", _zipped("a.eval", {"samples/1.json": json.dumps(_INSPECT["samples"][0])}),
                                  _logged),
    "answers, JSON Lines": Kind("logs", _text("a.jsonl", "\n".join(json.dumps({"id": n, "response": "A"})
                                                                  for n in range(5))), _logged),
    "answers, CSV": Kind("logs", _text("a.csv", "id,response\n1,A\n2,B\n"), _logged),
    "answers, workbook": Kind("logs", _zipped("a.xlsx", {"[Content_Types].xml": "<x/>",
                                                         "xl/worksheets/sheet1.xml": _sheet()}), _logged),
    "labels, DESED": Kind("labels", _text("a.tsv", "filename\tonset\toffset\tevent_label\na.wav\t0\t1\tdog\n"),
                          _annotated("desed")),
    "labels, Audacity": Kind("labels", _text("a.txt", "0.0\t1.0\tdog\n1.0\t2.5\train\n"), _annotated("text")),
    "labels, Raven": Kind("labels", _text("a.txt", "Selection\tBegin Time (s)\tEnd Time (s)\tSpecies\n1\t0\t1\tdog\n"),
                          _annotated("raven")),
    "labels, JAMS": Kind("labels", _text("a.jams", json.dumps({"annotations": [{"namespace": "scaper", "data": [
        {"time": 0, "duration": 1, "value": {"label": "dog", "role": "foreground"}}]}],
        "file_metadata": {"duration": 3}})), _annotated("jams")),
    "result": Kind("results", _write_result, _result, "*.json", True),
    "samples": Kind("results", _write_result, _result, "*.csv", True),
    "features of training": Kind("training", _write_features, _features, "values.npy", True),
    "digests of features": Kind("training", _write_features, _features, "digests.npy", True),
    "state of a training": Kind("training", _write_training, _state, "state*.safetensors", True),
    "record of a training": Kind("training", _write_training, _model, "training.json", True),
    "weights": Kind("training", _write_training, _model, "model.safetensors", True),
    "configuration": Kind("training", _write_training, _model, "config.json", True),
    "tokenizer": Kind("training", _write_training, _model, "tokenizer.json", True),
    "bundled model": Kind("encoders", _write_bundled, _bundled, "*.safetensors", True),
    **{
        f"{name}": Kind("store and build", *_scene(name), is_sealed=True)
        for name in ("open built data", "check built data for a push", "texts from the store", "answers from the store",
                     "answers of a run that was stopped", "captions that a model wrote")
    },
    "frames": Kind("store and build", _frames, _frames, "*.safetensors", True),
    "samples of frames": Kind("results", _frames, _result, "when_frames.*", True),
    "bomb, questions": replace(_questions("table.parquet"), area="bombs", harm=attacks.bomb_parquet, most=4),
    "bomb, built data": Kind("bombs", attacks.write_toys, attacks.open_toys, "*.parquet", harm=attacks.bomb_parquet,
                             most=4),
    "bomb, copy of CompA": Kind("bombs", attacks.write_copy, attacks.read_copy, "*.parquet",
                                harm=attacks.bomb_parquet, most=4),
    "bomb, features": Kind("bombs", _write_features, _features, "*.npy", True, attacks.bomb_numpy),
    **{
        f"bridge, {name}": Kind("bridges", write, read, "seed", True, attacks.seed_of)
        for name, write, read in (
            ("results of mteb", attacks.write_of_mteb, attacks.results_of_mteb),
            ("answers of lmms-eval", attacks.write_seed, attacks.answers_of_lmms),
            ("embeddings of mteb", attacks.write_seed, attacks.embeddings_of_mteb),
        )
    },
}  # fmt: skip


def damage(path: Path, rng: np.random.Generator) -> str:
    """Damage a file in one of many ways; says which."""
    content = bytearray(path.read_bytes())
    start = int(rng.integers(len(content))) if content else 0
    ways: dict[str, Callable[[], Any]] = {
        "a bit": lambda: content.__setitem__(start, content[start] ^ 1 << int(rng.integers(8))) if content else None,
        "cut": lambda: content.__delitem__(slice(start, None)),
        "empty": content.clear,
        "a part gone": lambda: content.__delitem__(slice(start, start + int(rng.integers(1, 99)))),
        "zeros": lambda: content.__setitem__(slice(start, start + 40), bytes(len(content[start : start + 40]))),
        "noise": lambda: content.__setitem__(slice(start, start + 20), rng.bytes(20)),
        "more behind": lambda: content.extend(rng.bytes(int(rng.integers(1, 200)))),
        "twice": lambda: content.extend(bytes(content)),
        "text": lambda: content.__setitem__(slice(start, start), [b"[" * 3_000, b'\\ud800"', b"&a [*a]", b"\x1b[31m",
                        b"9" * 5_000, b"\n" * 3_000, b"=cmd|' /C calc'!A0", b"NaN", b'"', b"\xff\xfe", b"\x00"]
                        [int(rng.integers(11))]),
    }  # fmt: skip
    places = ("gone", "a folder", "a pipe", "a link to nothing")
    way = [*ways, *ways, *places][int(rng.integers(2 * len(ways) + len(places)))]
    path.unlink()
    if way == "a folder":
        path.mkdir()
    elif way == "a pipe":
        os.mkfifo(path)
    elif way == "a link to nothing":
        path.symlink_to("nothing")
    elif way != "gone":
        ways[way]()
        path.write_bytes(content)
    return way


def _stop(*_: object) -> None:
    raise HangError


def _peak() -> int:
    """Bytes that this process has held at most since the last reset."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def outcome_of(kind: Kind, folder: Path, expected: Any) -> tuple[str, str]:
    """The outcome of a trial, and what is wrong."""
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(LONGEST)
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak()
    why = ""
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            given = kind.read(folder)
        outcome = (
            ("remade" if told and kind.is_sealed else "same")
            if given == expected
            else ("silently other" if kind.is_sealed else "read")
        )
    except (HangError, TimeoutError) as error:
        outcome, why = "hang", str(error)
    except (AudioCompositionalityError, OSError):
        # Of an OSError the command line prints one line.
        outcome = "refused"
    except BaseException:
        outcome, why = "crash", traceback.format_exc()
    finally:
        signal.alarm(0)
    if (taken := _peak() - before) > MOST_MEMORY:
        outcome, why = "crash", f"{taken / 2**30:.1f} GiB taken; {why}"
    return outcome, why


def run(trials: int, seed: int, *, kinds: dict[str, Kind] = KINDS) -> tuple[dict[str, Counter[str]], list[str]]:
    """The outcomes by area, and the trials that must not be, in words."""
    rng, counts, wrong = np.random.default_rng(seed), dict[str, Counter[str]](), list[str]()
    root = Path(tempfile.mkdtemp())
    before = os.environ.get("AUDIO_COMPOSITIONALITY_CACHE")
    limits = resource.getrlimit(resource.RLIMIT_AS)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + 2 * MOST_MEMORY, limits[1]))
    try:
        share = -(-trials // len(kinds))
        for name, kind in kinds.items():
            # Always at the same place: some files say where others lie.
            folder, kept = root / "folder", root / "kept"
            for path in (folder, kept):
                shutil.rmtree(path, ignore_errors=True)
            folder.mkdir()
            os.environ["AUDIO_COMPOSITIONALITY_CACHE"] = str(folder / "cache")
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    kind.write(folder)
                    shutil.copytree(folder, kept)
                    expected = kind.read(folder)
            except TimeoutError as error:
                # The trials of the other kinds count nevertheless.
                counts.setdefault(kind.area, Counter())["hang"] += 1
                wrong.append(f"{name}: no trial, since what it damages took too long to write\n{error}")
                continue
            files = sorted(path.relative_to(kept) for path in kept.rglob(kind.files or "*") if path.is_file())
            for _ in range(min(share, kind.most)):
                shutil.rmtree(folder)
                shutil.copytree(kept, folder)
                path = folder / files[int(rng.integers(len(files)))] if kind.files else folder
                try:
                    way = (kind.harm or damage)(path, rng)
                    outcome, why = outcome_of(kind, folder, expected)
                except TimeoutError as error:
                    way, outcome, why = "a kill", "hang", str(error)
                counts.setdefault(kind.area, Counter())[outcome] += 1
                if outcome in ("silently other", "crash", "hang"):
                    wrong.append(f"{name}: {outcome} after {way} in {path.name}\n{why}")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        shutil.rmtree(root, ignore_errors=True)
        os.environ.pop("AUDIO_COMPOSITIONALITY_CACHE")
        if before is not None:
            os.environ["AUDIO_COMPOSITIONALITY_CACHE"] = before
    return counts, wrong


def table_of(counts: dict[str, Counter[str]]) -> str:
    """The table, Markdown."""
    total = sum(counts.values(), Counter[str]())
    lines = [f"| area | tried | {' | '.join(OUTCOMES)} |", "|---|" + "--:|" * (len(OUTCOMES) + 1)]
    for area, of_area in [*counts.items(), ("all", total)]:
        lines.append(f"| {area} | {of_area.total():,} | {' | '.join(f'{of_area[one]:,}' for one in OUTCOMES)} |")
    return "\n".join(lines)


def main() -> int:
    """Run the trials; 1 where one ended as it must not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    parser.add_argument("--kind", choices=KINDS, help="one alone")
    options = parser.parse_args()
    print(f"seed {options.seed}, {len(KINDS)} kinds of file", flush=True)
    kinds = KINDS if options.kind is None else {options.kind: KINDS[options.kind]}
    began = time.monotonic()
    counts, wrong = run(options.trials, options.seed, kinds=kinds)
    print(table_of(counts))
    print(f"{time.monotonic() - began:,.0f} s", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
