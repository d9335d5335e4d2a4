"""Random inputs: the same ones for a seed, whatever else is loaded."""

from __future__ import annotations

import sys
from importlib import import_module
from itertools import islice
from pathlib import Path

import pytest

from dpaudit.searching.drawing import INPUTS_PER_RUN, drawn
from dpaudit.searching.spaces import parse_space


def some(seed: int = 0) -> list[object]:
    space = parse_space("list of number in [0, 1000]")
    return list(islice(drawn(space.strategy(), seed, "space"), 2 * INPUTS_PER_RUN))


def test_values_do_not_depend_on_the_modules_that_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = some()
    (tmp_path / "full_of_numbers.py").write_text(
        "\n".join(f"n{one} = {one + 0.123}" for one in range(200))
    )
    monkeypatch.syspath_prepend(tmp_path)
    import_module("full_of_numbers")
    try:
        assert some() == before
    finally:
        del sys.modules["full_of_numbers"]
    assert some(1) != before
