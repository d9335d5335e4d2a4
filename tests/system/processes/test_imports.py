"""Programs that do not import what they do not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_ROOT = str(Path(__file__).parents[3])


def test_a_single_column_never_imports_scikit_learn() -> None:
    script = """
import sys
import numpy as np
import dpaudit
def number(x, size, rng): return rng.laplace(size=size) + x
def vector(x, size, rng): return rng.laplace(size=(size, 3)) + x
for mechanism, claimed in ((number, 1.0), (number, 0.3), (vector, 3.0)):
    dpaudit.audit(mechanism, 0, 1, dpaudit.PureDP(claimed), samples=6_000, stop="never")
assert "sklearn" not in sys.modules
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=_ROOT, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
