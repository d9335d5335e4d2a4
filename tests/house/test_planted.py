"""Every mechanism of mechanisms/neighbours is in the list, and says what it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from mechanisms.neighbours.planted import PLANTED

ROOM = Path(__file__).parents[2] / "mechanisms" / "neighbours"
_TOOLS = {"__init__", "values", "planted"}
MODULES = sorted(path.stem for path in ROOM.glob("*.py") if path.stem not in _TOOLS)
LISTED = {
    path: kind
    for one in PLANTED
    for path, kind in ((one.broken, "Broken"), (one.correct, "Correct"))
}


def _mechanisms(module: str) -> dict[str, Callable[..., Any]]:
    loaded = import_module(f"mechanisms.neighbours.{module}")
    return {
        f"{loaded.__name__}:{name}": value
        for name, value in vars(loaded).items()
        if inspect.isfunction(value) and value.__module__ == loaded.__name__ and name[0] != "_"
    }


def test_the_list_and_the_room_hold_the_same_mechanisms() -> None:
    assert MODULES
    assert {path for module in MODULES for path in _mechanisms(module)} == LISTED.keys()


@pytest.mark.parametrize("module", MODULES)
def test_each_says_whether_it_is_correct_and_for_which_neighbours(module: str) -> None:
    says = "adjacency:" in (import_module(f"mechanisms.neighbours.{module}").__doc__ or "").lower()
    for path, mechanism in _mechanisms(module).items():
        doc = inspect.getdoc(mechanism) or ""
        assert doc.startswith(f"{LISTED[path]}: "), path
        assert says or "adjacency:" in doc.lower(), path
        assert ("Harmless:" in doc) == (LISTED[path] == "Broken"), path
