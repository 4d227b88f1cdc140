"""A fraction of the trials of `tests/trials.py`; all of them are run by hand, and their table is in the note."""

import pytest

from .trials import KINDS, run, table_of


@pytest.mark.fuzz
def test_no_damaged_file_is_silently_another_one_ends_in_a_traceback_or_hangs(fuzz_rng):
    names = [name for name, kind in KINDS.items() if kind.most > 100]
    names = fuzz_rng.choice(names, 16, replace=False).tolist()
    seed = int(fuzz_rng.integers(2**32))
    counts, wrong = run(64, seed, kinds={name: KINDS[name] for name in names})
    assert not wrong, f"seed {seed}, {names}\n{table_of(counts)}\n" + "\n".join(wrong)
