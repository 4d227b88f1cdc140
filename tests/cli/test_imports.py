"""Imports that take seconds."""

import subprocess
import sys

import pytest

CODE = """
import sys
from audio_compositionality.cli.imports import import_evaluate

import_evaluate()
assert "evaluate" in sys.modules
assert "transformers" not in sys.modules
import transformers
assert transformers.pipeline is not None
"""


@pytest.mark.slow
def test_evaluate_is_imported_without_transformers_which_work_afterwards():
    subprocess.run([sys.executable, "-c", CODE], check=True, timeout=300)
