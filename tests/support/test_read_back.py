"""Every file that is read back: a program finds them, and a bit that has changed in one is never read as other numbers.

A thousand bits: ``python -m tests.support.read_back --flips 1000``.
"""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from .read_back import find_kinds, flips, watched, write_all
from .scenes import SCENES

ROOT = Path(__file__).parents[2]

QUICK = ("open built data", "build again", "build on", "texts from", "answers", "captions", "sounds", "modules")
"""Scenes of the fast lane; those of scores and trainings take longer."""

WRITERS = {
    "dataset_builder/build.py": ("manifest.json", ".parquet", "/.begun.json"),
    "dataset_builder/texts/rewriting.py": (".jsonl",),
    "evaluator/results/result.py": ("a_coat.json", "a_coat.csv"),
    "evaluator/run/store.py": (
        *("-clips-#/#-of-#.safetensors", "-texts-#/#-of-#.safetensors", "-answers-#/#-of-#.json"),
        *(".begun", "key.json"),
    ),
    "metrics/__init__.py": ("/a_coat.py",),
    "studies/sounds/maker.py": (".wav", "/digests.json", "/sounds.yaml"),
    "training/state.py": ("checkpoint/state.safetensors",),
    "training/features.py": ("values.bin", "digests.bin"),
    "training/running.py": ("best/training.json",),
    "training/loop.py": ("best/model.safetensors",),
    "training/model.py": ("run/model.safetensors", "run/config.json", "tokenizer.json", "preprocessor_config.json"),
    "training/run_folder.py": ("run/training.json",),
    # What people and other programs read: no number of this project is taken from it again.
    "bridges/lmms_eval/__main__.py": (),
    "bridges/mteb.py": (),
    "cli/compare.py": (),
    "cli/rescore.py": (),
    "studies/boxed_model.py": (),
    "studies/results.py": (),
    # A description of data that a user goes on writing: every change is meant.
    "cli/data.py": (),
    "cli/main.py": (),
    "dataset_builder/sounds/dx7_voice.py": (),
    "evaluator/figures/style.py": (),
    "evaluator/report/page.py": (),
    "leaderboard/plots.py": (),
    "studies/validity/page.py": (),
    "training/ablations.py": (),
    "training/log.py": (),
    # Weights that others publish, with their hash or without one: tests/encoders/loading/test_weights.py.
    "encoders/loading/downloads.py": (),
    # Kept in memory, or in a folder for a moment: made and read by one command, and gone behind it.
    "encoders/language_models/endpoint.py": (),
    "encoders/families/voxtral.py": (),
    "evaluator/report/listening.py": (),
    "leaderboard/answers.py": (),
    "leaderboard/examination.py": (),
    "push_scripts/spaces.py": (),
    "studies/sounds/instruments.py": (),
    "studies/sounds/speech.py": (),
    # Helpers of the others, and a model for tests.
    "encoders/networks/small_networks.py": (),
    "support/checked_files.py": (),
    "support/files.py": (),
}
"""Modules that write files, each with ends of what is read back of them; a new one has to say what of it is."""

_WRITES = {
    *(
        "write_whole",
        "write_together",
        "write_sealed_file",
        "write_digests",
        "write_bytes",
        "write_text",
        "write_table",
    ),
    *("save_file", "save_pretrained", "savefig", "ParquetWriter", "tofile", "copyfile", "copytree"),
}


def writes(call: ast.Call) -> bool:
    """Whether a call writes a file."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name == "open":
        modes = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        return "O_WRONLY" in ast.unparse(call) or any(
            set(mode) <= set("rwaxbt+") and set(mode) & set("wax+") for mode in modes
        )
    of = getattr(getattr(function, "value", None), "id", "")
    return name in _WRITES or (of, name) == ("soundfile", "write")


def writing_modules() -> set[str]:
    # What an installation leaves in a clone is the same modules once more.
    aside = {"tests", "benchmarks", "docs", "examples", ".ci", "build"}
    paths = [path.relative_to(ROOT) for path in ROOT.rglob("*.py")]
    found = set()
    for path in (path for path in paths if path.parts[0] not in aside):
        calls = (node for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8"))) if isinstance(node, ast.Call))
        if any(map(writes, calls)):
            found.add(path.as_posix())
    return found


def found_in(root: Path, names: tuple[str, ...]) -> SimpleNamespace:
    chosen = [scene for scene in SCENES if scene.name.startswith(names)]
    folders = write_all(root / "written", chosen)
    kinds, expected = find_kinds(folders, root, chosen)
    return SimpleNamespace(root=root, folders=folders, kinds=kinds, expected=expected)


def check_flips(found: SimpleNamespace, count: int, seed: int) -> None:
    """None of so many changed bits is read as other numbers, nor as an error that names nothing."""
    for one in flips(found.folders, found.kinds, found.expected, found.root, count, seed):
        assert one.outcome in ("refused", "anew", "same"), (
            one.outcome,
            one.kind.scene.name,
            one.file,
            one.where,
            one.said,
        )


def test_each_module_that_writes_files_says_what_of_them_is_read_back():
    assert writing_modules() == set(WRITERS)


def test_what_is_opened_for_reading_is_found(tmp_path):
    for name in ("read", "mapped", "written", "untouched"):
        (tmp_path / name).write_bytes(bytes(8))
    with watched(tmp_path) as opened:
        (tmp_path / "read").read_bytes()
        np.memmap(tmp_path / "mapped", np.uint8, "r")
        (tmp_path / "written").write_bytes(b"anew")
    assert {Path(path).name for path in opened if path.startswith(str(tmp_path))} == {"read", "mapped"}


def test_no_changed_bit_is_read_as_other_data_texts_or_answers(tmp_path):
    found = found_in(tmp_path, QUICK)
    assert len(found.kinds) >= 15
    check_flips(found, 2 * len(found.kinds), seed=0)


@pytest.mark.slow
def test_no_changed_bit_is_read_as_other_numbers(tmp_path):
    found = found_in(tmp_path, ("",))
    names = [kind.name for kind in found.kinds]
    for module, ends in WRITERS.items():
        for end in ends:
            assert any(name.endswith(end) for name in names), (module, end, names)
    check_flips(found, len(found.kinds), seed=0)


@pytest.mark.fuzz
def test_no_changed_bit_of_many_is_read_as_other_numbers(tmp_path, fuzz_cases, fuzz_rng):
    check_flips(found_in(tmp_path, ("",)), fuzz_cases // 3, int(fuzz_rng.integers(2**32)))
