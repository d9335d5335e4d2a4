"""What is made undisturbed is old at once, and what is frozen stays so."""

from __future__ import annotations

import gc
import subprocess
import sys

from dpaudit.cli.process import undisturbed

CODE = """
import gc
from dpaudit.cli.process import undisturbed
with undisturbed():
    assert not gc.isenabled()
    made = [[] for _ in range(10_000)]
assert gc.isenabled() and not gc.get_freeze_count()
print(any(one is made for one in gc.get_objects(generation=2)))
"""


def test_what_is_made_is_old_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_what_was_frozen_before_stays_frozen() -> None:
    frozen = gc.get_freeze_count()
    assert frozen > 10_000  # since conftest.py has frozen what was imported
    with undisturbed():
        assert not gc.isenabled()
        made: list[list[int]] = [[] for _ in range(gc.get_threshold()[0] + 1)]
    assert made
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0.9 * frozen
