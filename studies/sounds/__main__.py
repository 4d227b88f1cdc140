"""``python -m studies.sounds NAME --out FOLDER``: make sounds with programs and packages of this machine."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from audio_compositionality.support.errors import AudioCompositionalityError, InputError
from audio_compositionality.support.text import first_line

from . import MAKERS, load_maker
from .maker import Maker, make_folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the named sounds, or list all; return the exit status: 0, or 2 if they cannot be made."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.sounds",
        description="Make sounds with programs and packages of this machine. Then: audio-compositionality evaluate "
        "MODEL --data FOLDER.",
        epilog=_listing(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="name of the sounds; without one, all are listed")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="folder for the sounds")
    options = parser.parse_args(arguments)
    if options.name is None:
        print(_listing())
        return 0
    try:
        _make(load_maker(options.name), options.out)
    except (AudioCompositionalityError, OSError) as error:
        print(f"error: {first_line(error)}", file=sys.stderr)
        return 2
    return 0


def _make(maker: Maker, folder: Path | None) -> None:
    if folder is None:
        raise InputError(f"give the folder for the sounds: {maker.name} --out FOLDER")
    print(f"note: {maker.name}: {maker.meaning}. {maker.licence}", file=sys.stderr)
    is_new = make_folder(maker, folder, progress=sys.stderr.isatty())
    print(f"{folder}: {'made' if is_new else 'made before, and complete'}")


def _listing() -> str:
    """Return a list of all makers with their sounds and needs."""
    lines = []
    for maker in MAKERS.values():
        for text, indent in ((f"{maker.name}: {maker.meaning}.", "  "), (f"Needs: {maker.needs}", "      ")):
            lines.append(textwrap.fill(text, 120, initial_indent=indent, subsequent_indent="      "))
    return "\n".join(["sounds:", *lines])


if __name__ == "__main__":
    sys.exit(main())
