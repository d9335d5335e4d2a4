"""Traces with primitives of the user, which every loaded module is searched for."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.cli.test_trace import folder as folder
from tests.programs import DPAUDIT


def test_a_primitive_is_found_by_either_name_of_its_file_and_one_that_is_not_called_is_said(
    dpaudit: Any, folder: Path
) -> None:
    (folder / "own.py").write_text(
        "import os\n"
        "def add_noise(x, b):\n    return x + b * int.from_bytes(os.urandom(4), 'big') / 2**32\n"
        "def other(x, b):\n    return x\n"
        "def m(x):\n    return add_noise(x, b=0.5)\n"
    )
    pair = ("--d1", "0", "--d2", "1", "--epsilon", "1")
    result = dpaudit("trace", "own.py:m", *pair, "--primitive", "own.py:add_noise")
    assert result.exit_code == 1, result.stdout
    assert "ε = 2" in result.stdout
    assert "was not called" not in result.stdout
    result = dpaudit("trace", "own.py:m", *pair, "--primitive", "own:other")
    assert "the primitive `other` was not called" in " ".join(result.stdout.split())


def test_chatter_of_a_mechanism_stays_away_from_standard_output(folder: Path) -> None:
    (folder / "own.py").write_text(
        "def m(x, size, rng):\n    print('chatter')\n    return x + rng.laplace(0, 0.5, size)\n"
    )
    words = [DPAUDIT, "trace", "own.py:m", "--d1", "0", "--d2", "1", "--epsilon", "1"]
    ended = subprocess.run([*words, "--json", "-"], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert json.loads(ended.stdout)["findings"]  # and nothing beside the JSON
