"""Speed and memory, each against a named peer or a bare limit, in the same run.

python benchmarks/speed.py                          all of them (about half an hour on 2 cores)
python benchmarks/speed.py tones entrofy            some of them
python benchmarks/speed.py embed --checkpoint ID    this model instead of Whisper tiny with random weights

Times are the shortest of a few runs after a warm-up, so that compilation and first touches are left out. Each other
file of this folder whose name does not begin with _ is a benchmark, `run(options)`.
"""

from __future__ import annotations

import argparse
import importlib
import resource
from pathlib import Path


def main() -> None:
    """Run the named benchmarks, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = Path(__file__)
    names = sorted(path.stem for path in here.parent.glob("[!_]*.py") if path.stem != here.stem)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(names)}; default all")
    parser.add_argument(
        "--checkpoint",
        action="append",
        metavar="ID",
        help="model for `embed`, such as a folder with Whisper's weights; may be given several times",
    )
    options = parser.parse_args()
    unknown = set(options.names) - set(names)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    for name in names:
        if not options.names or name in options.names:
            importlib.import_module(name).run(options)
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


if __name__ == "__main__":
    main()
