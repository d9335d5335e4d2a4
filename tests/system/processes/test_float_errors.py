"""Settings of floating-point errors that an import makes, in other processes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.programs import DPAUDIT
from tests.unit.test_float_errors import restored as restored

MODULE = """
import numpy as np
np.seterr(all="raise")

def laplace(x, rng):
    return x + rng.laplace()

class Made:
    def __init__(self):
        np.seterr(all="raise")

    def __call__(self, x, size, rng):
        return x + rng.laplace(size=(size, 2))
"""


# Only one draws figures, whose library takes longest to import.
@pytest.mark.parametrize(
    "words", ["Made --workers 2 --report html:page.html", "laplace --isolate --report sarif:page"]
)
def test_a_setting_of_an_import_affects_only_code_of_the_user(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "strict.py").write_text(MODULE)
    name, *extra = words.split()
    usual = ["--d1", "0", "--d2", "1", "--epsilon", "2.1", "--samples", "2_000", "--quiet"]
    given = ["run", f"strict.py:{name}", *usual, *extra]
    done = subprocess.run(
        [DPAUDIT, *given], text=True, capture_output=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
