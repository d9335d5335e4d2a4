"""Every specimen states its exact truth; tests/unit/mechanisms holds them to it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# What others wrote has no exact truth of ours; truth.py holds tools.
_WITHOUT = {"__init__", "truth", "opendp_laplace"}
MODULES = sorted(
    path.stem for path in (ROOT / "mechanisms").glob("*.py") if path.stem not in _WITHOUT
)


@pytest.mark.parametrize("module", MODULES)
def test_every_function_of_a_dataset_states_its_truth(module: str) -> None:
    mechanisms = [one for one in _public_functions(module) if _takes_a_dataset(one)]
    assert mechanisms, f"no function of {module} takes a dataset"
    assert all(hasattr(one, "truth") for one in mechanisms)


@pytest.mark.parametrize("module", [*MODULES, "opendp_laplace"])
def test_every_specimen_states_its_adjacency(module: str) -> None:
    """In its own words, or those of its module."""
    loaded = import_module(f"mechanisms.{module}")
    says = "adjacency:" in (loaded.__doc__ or "").lower()
    for function in filter(_takes_a_dataset, _public_functions(module)):
        assert says or "adjacency:" in (function.__doc__ or "").lower(), function


def _public_functions(module: str) -> list[Callable[..., Any]]:
    loaded = import_module(f"mechanisms.{module}")
    return [
        value
        for name, value in vars(loaded).items()
        if inspect.isfunction(value) and value.__module__ == loaded.__name__ and name[0] != "_"
    ]


def _takes_a_dataset(function: Callable[..., Any]) -> bool:
    """Post-processing takes an output, and has no truth by itself."""
    return next(iter(inspect.signature(function).parameters), None) == "dataset"
