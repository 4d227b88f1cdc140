"""The rules of CONTRIBUTING.md, read from the source: arrows, circles, names, lengths, what is declared.

Nothing of the product is imported here but the registry of tasks, whose names are looked for.
"""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from audio_compositionality.metrics import list_metrics, metric_file, module_files
from audio_compositionality.push_scripts.spaces import metric_files

ROOT = Path(__file__).parents[1]
PACKAGE = "audio_compositionality"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
FOLDERS: Mapping[str, str] = PYPROJECT["tool"]["setuptools"]["package-dir"]
"""The top folders by the names of their packages."""

MAX_FOLDER = 15
"""Files of a folder beside `__init__.py`."""

A_FILE_EACH = {"cli", "dataset_builder/recipes", "encoders/families", "metrics", "studies/validity", "tasks"}
"""Folders with a file for each command, recipe, family of models or of checks, metric and task."""

OF_EACH = {"add_arguments", "run", "example", "main", "load_model"}
"""What each command, each metric, each program and, by the interface of HEAR, each of its modules has by this name."""

STUDIES = "studies"
"""The room that stands outside the package: run in a clone, never installed, and imported by no other."""

UNSHIPPED = {STUDIES, "benchmarks", "tests", "docs", "examples"}

ARROWS: Mapping[str, set[str]] = {
    STUDIES: {"cli"},
    "cli": {"leaderboard", "push_scripts", "training"},
    "bridges": {"evaluator"},
    "leaderboard": {"evaluator", "hub"},
    "push_scripts": {"evaluator", "hub"},
    "training": {"evaluator", "hub"},
    "evaluator": {"tasks"},
    "tasks": {"metrics", "dataset_builder", "encoders"},
    "dataset_builder": {"hub", "support"},
    "encoders": {"support"},
    "hub": {"support"},
    "metrics": set(),
    "support": set(),
}
"""The rooms, and which each stands directly above. A room may import from every room below it."""

DATA_ROOMS = ("sounds", "scenes", "texts", "recipes")
"""The rooms of `dataset_builder`, each above those before it."""

UPWARD: Mapping[str, frozenset[str]] = {
    "dataset_builder/texts/rewriting.py": frozenset(("recipes",)),
}
"""What some modules import from rooms above theirs: captions of a recipe are rewritten."""

MAY_NAME_TASKS = (
    *("tasks/", "metrics/", "studies/"),
    *("dataset_builder/recipes/", "dataset_builder/sounds/published/", "encoders/bundled/"),
)
"""Where a task's name may stand. `published` reads data that others published, whose configurations have
them; the card of the model in the package has its scores."""

MAX_FILE = 800
MAX_FUNCTION = 100

OPTIONAL = {
    "gradio",
    "inspect_ai",
    "mteb",
    "python_stretch",
    "textblob",
    "torchaudio",
    "torchcodec",
}
"""Packages of extras, and of other suites whose users have them."""


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0]


@cache
def product_files() -> tuple[Path, ...]:
    """All modules of the product, and of `STUDIES`."""
    folders = sorted({*FOLDERS.values(), STUDIES})
    return tuple(path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


@cache
def nodes(path: Path) -> Mapping[type[ast.AST], Sequence[Any]]:
    """The nodes of a file's tree by their class, each kind in the order of `ast.walk`."""
    kinds: dict[type[ast.AST], list[ast.AST]] = {}
    for node in ast.walk(tree(path)):
        kinds.setdefault(type(node), []).append(node)
    return kinds


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions and methods of a file."""
    return [*nodes(path).get(ast.FunctionDef, ()), *nodes(path).get(ast.AsyncFunctionDef, ())]


def module_name(path: Path) -> str:
    """Dotted name under which a file is imported."""
    room, *inner = path.relative_to(ROOT).with_suffix("").parts
    parts = [*([] if room == STUDIES else [PACKAGE]), *([] if room == "api" else [room]), *inner]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> Mapping[str, Path]:
    return {module_name(path): path for path in product_files()}


@cache
def imports(path: Path) -> tuple[tuple[int, str], ...]:
    """(line, dotted name) of everything that a file imports, wherever in it; `from a import b` gives ``a.b``."""
    name = module_name(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    imported = [(node.lineno, alias.name) for node in nodes(path).get(ast.Import, ()) for alias in node.names]
    for node in nodes(path).get(ast.ImportFrom, ()):
        base = node.module or ""
        if node.level:
            parents = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*parents, *([node.module] if node.module else [])])
        imported += [(node.lineno, f"{base}.{alias.name}") for alias in node.names]
    return tuple(imported)


@cache
def imported_modules(path: Path) -> tuple[tuple[int, str], ...]:
    """(line, module) of the product's modules that a file imports."""
    imported = []
    for line, name in imports(path):
        root = name.split(".")[0]
        if root not in {PACKAGE, STUDIES}:
            continue
        while name not in modules() and name.rpartition(".")[0] != root:
            name = name.rpartition(".")[0]
        imported.append((line, name if name in modules() else root))
    return tuple(imported)


@cache
def below(room: str) -> set[str]:
    """The rooms that a room stands above, directly or not."""
    direct = ARROWS[room]
    return direct.union(*(below(lower) for lower in direct))


def where(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def test_the_packages_that_are_installed_are_the_folders_that_there_are():
    folders = sorted({path.parent for path in product_files() if room_of(path) != STUDIES})
    assert sorted(PYPROJECT["tool"]["setuptools"]["packages"]) == [module_name(f / "__init__.py") for f in folders]


def test_every_folder_is_a_package():
    folders = {path.parent for path in product_files()}
    assert not [str(folder) for folder in folders if not (folder / "__init__.py").is_file()]


def test_every_room_has_its_place_in_the_arrows():
    assert {*FOLDERS.values(), STUDIES} - {"api"} == set(ARROWS)
    assert {folder.rpartition(".")[2] for folder in FOLDERS} - {PACKAGE} == set(FOLDERS.values()) - {"api"}


@pytest.mark.slow
def test_nothing_of_the_product_imports_what_is_not_installed():
    wrong = [
        f"{where(path, line)} imports {name}"
        for path in product_files()
        if room_of(path) != STUDIES
        for line, name in imports(path)
        if UNSHIPPED & {name.split(".")[0], name.removeprefix(f"{PACKAGE}.").split(".")[0]}
    ]
    assert not wrong, "\n".join(wrong)
    assert not UNSHIPPED & {*FOLDERS.values(), *(name.split(".")[0] for name in FOLDERS)}


def test_no_folder_shadows_the_installed_package():
    assert not (ROOT / PACKAGE / "__init__.py").exists()


def test_arrows_point_down_only():
    wrong = []
    for path in product_files():
        room = room_of(path)
        if room == "api":
            continue
        for line, name in imported_modules(path):
            # The package's own `__init__` has nothing but the version and the lazy public names.
            target = STUDIES if name.split(".")[0] == STUDIES else name.split(".")[1] if "." in name else "api"
            if target not in {room, *below(room)} and not (room == "cli" and target == "api"):
                wrong.append(f"{where(path, line)} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_arrows_point_down_within_the_room_of_the_data():
    start, wrong = f"{PACKAGE}.dataset_builder.", []
    for path in product_files():
        place = path.relative_to(ROOT)
        room = place.parts[1]
        if place.parts[0] != "dataset_builder" or room not in DATA_ROOMS:
            continue
        for line, name in imported_modules(path):
            inner = name.removeprefix(start)
            target = inner.split(".")[0]
            is_upward = name.startswith(start) and target in DATA_ROOMS[DATA_ROOMS.index(room) + 1 :]
            if is_upward and line not in annotation_lines(path) and inner not in UPWARD.get(place.as_posix(), ()):
                wrong.append(f"{where(path, line)} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_metrics_stand_alone():
    wrong = [where(path, line) for path in product_files() if room_of(path) == "metrics"
             for line, name in imports(path) if name.split(".")[0] == PACKAGE and "metrics" not in name]  # fmt: skip
    assert not wrong


def test_own_embeddings_are_scored_with_numpy_and_evaluate_alone():
    paths = [ROOT / "metrics" / name for name in module_files(metric_file("a_coat"))]
    named = {name.split(".")[0] for path in paths for _, name in imports(path)}
    assert named - set(sys.stdlib_module_names) - {PACKAGE} <= {"numpy", "evaluate", "datasets"}


def test_there_are_no_circles():
    """Also not through imports within functions; an import for annotations only runs never."""
    graph = {
        name: {target for line, target in imported_modules(path) if line not in annotation_lines(path)} - {name}
        for name, path in modules().items()
    }
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@cache
def annotation_lines(path: Path) -> set[int]:
    """Lines under ``if TYPE_CHECKING:``."""
    lines: set[int] = set()
    for node in nodes(path).get(ast.If, ()):
        if ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            lines |= {line for child in node.body for line in range(child.lineno, (child.end_lineno or 0) + 1)}
    return lines


def task_names() -> list[str]:
    from audio_compositionality.tasks.registry import list_tasks

    names = {text for task in list_tasks() for text in (task.info.name, task.info.title)}
    # A name that is an ordinary word is in other sentences as well.
    return sorted(name for name in names if not name.isalpha())


def test_a_task_is_named_in_its_own_files_alone():
    names = task_names()
    # Whether a name may stand in a file is asked of the whole text first.
    somewhere = re.compile("|".join(map(re.escape, names)))
    pattern = re.compile("|".join(rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in names))
    wrong = []
    for folder in sorted({*FOLDERS.values(), STUDIES}):
        for path in sorted((ROOT / folder).rglob("*")):
            place = path.relative_to(ROOT).as_posix()
            if path.suffix not in {".py", ".html", ".js", ".yaml", ".md", ".css"} or place.startswith(MAY_NAME_TASKS):
                continue
            text = path.read_text("utf-8")
            if not somewhere.search(text):
                continue
            lines = enumerate(text.splitlines(), 1)
            wrong += [f"{place}:{number}: {line.strip()}" for number, line in lines if pattern.search(line)]
    assert not wrong, "\n".join(wrong)


def test_every_folder_says_what_belongs_there():
    assert not [str(p) for p in product_files() if p.name == "__init__.py" and not ast.get_docstring(tree(p))]


def test_files_are_short():
    lengths = {path.relative_to(ROOT).as_posix(): len(path.read_text("utf-8").splitlines()) for path in product_files()}
    assert not {place: n for place, n in lengths.items() if n > MAX_FILE}


def test_folders_have_few_files():
    files = Counter(path.parent.relative_to(ROOT).as_posix() for path in product_files() if path.name != "__init__.py")
    assert not {folder: n for folder, n in files.items() if n > MAX_FOLDER and folder not in A_FILE_EACH}


def test_a_public_name_means_one_thing():
    places: dict[str, list[str]] = {}
    for path in product_files():
        for node in tree(path).body if room_of(path) != STUDIES else ():
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(where(path, node.lineno))
    several = {name: there for name, there in places.items() if len(there) > 1 and name not in OF_EACH}
    assert not several, several


def lines_of_code(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function, but for its docstring."""
    docstring = node.body[0] if ast.get_docstring(node) is not None else None
    documented = (docstring.end_lineno or 0) - docstring.lineno + 1 if docstring else 0
    return (node.end_lineno or 0) - node.lineno + 1 - documented


def test_functions_are_short():
    long = [
        f"{where(path, node.lineno)} {node.name}: {lines_of_code(node)} lines"
        for path in product_files()
        for node in functions(path)
        if lines_of_code(node) > MAX_FUNCTION
    ]
    assert not long, "\n".join(long)


def in_validators(path: Path) -> set[int]:
    """Lines of methods that pydantic calls, which have to raise ValueError."""
    lines: set[int] = set()
    for node in nodes(path).get(ast.FunctionDef, ()):
        if any("validator" in ast.unparse(d) for d in node.decorator_list):
            lines |= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return lines


def test_what_the_user_got_wrong_is_an_error_of_ours():
    """A plain ValueError is a bug; the metrics, which are used without the package, have nothing else."""
    wrong = [
        where(path, node.lineno)
        for path in product_files()
        if room_of(path) != "metrics"
        for node in nodes(path).get(ast.Raise, ())
        if node.exc is not None
        and ast.unparse(node.exc).split("(")[0] == "ValueError" and node.lineno not in in_validators(path)
    ]  # fmt: skip
    assert not wrong, "\n".join(wrong)


def normal(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(requirements: list[str]) -> set[str]:
    return {normal(re.split(r"[\s<>=!~;\[]", requirement)[0]) for requirement in requirements}


def test_files_are_opened_by_one_function_that_opens_regular_files_only():
    """A pipe in place of a file would wait for ever. Files of the package itself are read directly."""
    own = {"metrics/__init__.py", "push_scripts/spaces.py", "tasks/metric_files.py"}
    own |= {"encoders/inference.py", "support/torchaudio_build.py"}
    packaged = ("files(", "(files(", "resources.files(", "distribution.")
    direct = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in product_files()
        for call in nodes(path).get(ast.Call, ())
        if isinstance(call.func, ast.Attribute)
        and (
            call.func.attr in ("read_text", "read_bytes")
            or (call.func.attr == "open" and any(getattr(one, "value", None) in ("r", "rb") for one in call.args))
        )
        and room_of(path) != STUDIES
        and path.relative_to(ROOT).as_posix() not in own
        and not ast.unparse(call).startswith(packaged)
    ]
    assert not direct, f"read through support.files.open_file: {direct}"


def test_every_package_that_is_imported_is_declared():
    distributions = importlib.metadata.packages_distributions()
    names = {name.split(".")[0]: where(path, line) for path in product_files() for line, name in imports(path)}
    third_party = {name: at for name, at in names.items() if name not in {PACKAGE, STUDIES, *sys.stdlib_module_names}}
    required = {
        name: {normal(d) for d in distributions.get(name, [name])} for name in third_party if name not in OPTIONAL
    }
    dependencies = declared(PYPROJECT["project"]["dependencies"])
    assert not {name: third_party[name] for name, possible in required.items() if not possible & dependencies}
    # accelerate is what transformers loads large models with.
    assert dependencies <= set().union(*required.values()) | {"accelerate"}


def test_metrics_require_what_the_project_declares():
    dependencies = set(map(Requirement, PYPROJECT["project"]["dependencies"]))
    for name in list_metrics():
        lines = metric_files(name)["requirements.txt"].decode().splitlines()
        assert lines
        assert set(map(Requirement, lines)) <= dependencies, name


def test_versions_are_pinned_without_saying_where_from():
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert not [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+|#.*", line)]
