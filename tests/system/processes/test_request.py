"""Digests of values are the same in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
VALUES = (
    '[{"a", "b", "c"}, {"x": 1, "y": [2.5, None]}, np.arange(6).reshape(2, 3), "\\ud800", b"1",'
    ' np.array(["a", None], dtype=object), 2**70, float("nan"), PureDP(1.0), frozenset({1, "1"}),'
    ' pd.DataFrame({"a": [1, 2]})]'
)
SCRIPT = (
    "import numpy as np, pandas as pd; from dpaudit import PureDP\n"
    "from dpaudit.auditing.request import digest\n"
    f"print(digest({VALUES}))"
)


def test_a_digest_is_the_same_in_every_process() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in "15"  # under which the sets have different orders
    }
    assert len(found) == 1
