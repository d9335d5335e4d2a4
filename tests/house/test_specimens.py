"""Every specimen states its exact truth, and an audit of it comes to the same."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What others wrote has no exact truth of ours; truth.py holds tools.
_WITHOUT = {"__init__", "truth", "opendp_laplace"}
MODULES = sorted(
    path.stem for path in (ROOT / "mechanisms").glob("*.py") if path.stem not in _WITHOUT
)


@pytest.mark.parametrize("module", MODULES)
def test_public_functions_state_their_truth(module: str) -> None:
    loaded = import_module(f"mechanisms.{module}")
    own = [
        value
        for name, value in vars(loaded).items()
        if inspect.isfunction(value) and value.__module__ == loaded.__name__ and name[0] != "_"
    ]
    assert own
    mechanisms = [one for one in own if hasattr(one, "truth")]
    assert mechanisms, f"no function of {module} states its truth"


def test_the_wheel_leaves_the_specimens_out() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["dpaudit"]
