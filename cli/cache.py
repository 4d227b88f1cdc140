"""`cache`: list and delete cached files on this machine."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import CACHE_VARIABLE, cache_folder
from audio_compositionality.support.table import Column, Table, print_table, rows_of
from audio_compositionality.support.text import nearest

from .arguments import Command

KEPT = {
    "outputs": "embeddings and answers of models, by model and data",
    "training-features": "log-mels of clips that models were trained on",
    "weights": "downloaded weights of listed models",
    "written": "captions and questions that a language model has rewritten",
}
"""The folders of the cache."""

ALL = "all"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--clear", metavar="WHAT", help=f"delete a folder of the cache, {', '.join(KEPT)}, or {ALL} of them"
    )


def run(options: argparse.Namespace) -> None:
    """Print the folders of the cache with their sizes, or delete one."""
    folder = cache_folder()
    if options.clear is None:
        print_table(_table(folder))
        return
    if options.clear not in (*KEPT, ALL):
        raise InputError(
            f"--clear {options.clear}: the cache has no folder of this name; {nearest(options.clear, (*KEPT, ALL))}"
        )
    paths = [folder / name for name in (KEPT if options.clear == ALL else (options.clear,))]
    # Nothing is deleted unless all can be.
    for path in paths:
        if path.is_symlink():
            raise InputError(
                f"{path} is a link to {path.readlink()}, so that nothing was deleted; delete the link, or what is in "
                "the folder that it names"
            )
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file and no folder, so that nothing was deleted; delete or move it")
    freed = 0
    for path in filter(Path.is_dir, paths):
        size = _size(path)[0]
        try:
            shutil.rmtree(path)
        except OSError as error:
            raise InputError(f"{path} cannot be deleted whole: {error}") from error
        print(f"{path}: deleted, {size / 1e6:,.1f} MB")
        freed += size
    print(f"{freed / 1e6:,.1f} MB are free again.")


def _table(folder: Path) -> Table:
    columns = (
        Column("name", numeric=False),
        Column("MB", digits=1),
        Column("files", digits=0),
        Column("content", numeric=False),
    )
    rows = []
    for name, content in KEPT.items():
        size, files = _size(folder / name)
        rows.append((name, size / 1e6, files, content))
    legend = (
        f"All of it can be computed or downloaded again. The folder is {folder}; the environment variable "
        f"{CACHE_VARIABLE} names another.",
    )
    return Table("Cached files on this machine", columns, rows_of(rows), legend)


def _size(folder: Path) -> tuple[int, int]:
    """Bytes and number of the files in a folder; zeros where it does not exist. Links are not followed."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()] if folder.is_dir() else []
    return sum(path.stat().st_size for path in files), len(files)


COMMAND = Command(
    summary="list the cached files on this machine with their sizes; --clear deletes them",
    description="Show what is in the cache and how large it is, or delete it. Results and built data are kept "
    "elsewhere.",
    add_arguments=add_arguments,
    run=run,
    examples="""\
  audio-compositionality cache
      sizes of cached embeddings, weights and log-mels
  audio-compositionality cache --clear outputs
      delete embeddings and answers; the next evaluation computes them again
""",
    place=95,
)
