"""Print constraints that pin the packages which results depend on to the lowest versions that pyproject.toml declares.

`.ci/run lowest` installs the project with them and runs the fast lane.
"""

import re
import tomllib
from pathlib import Path

NAMES = ("numpy", "torch", "transformers", "datasets", "evaluate", "huggingface_hub")


def main() -> None:
    """Print a line a package."""
    pyproject = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    declared = dict(re.findall(r"^([\w-]+)>=([\d.]+)", "\n".join(pyproject["project"]["dependencies"]), re.MULTILINE))
    for name in NAMES:
        print(f"{name}=={declared[name]}")


if __name__ == "__main__":
    main()
