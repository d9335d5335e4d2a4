"""Inputs that NumPy writes alike are not the same input."""

from types import SimpleNamespace

import numpy as np

from dpaudit.searching.search import _Search


def test_arrays_that_differ_where_repr_leaves_out_are_two_inputs() -> None:
    search = object.__new__(_Search)
    search._settings = SimpleNamespace(formed=lambda dataset: dataset)  # type: ignore[assignment]
    search._inputs = {}
    other = np.zeros(3_000)
    other[1_500] = 1
    first = search._input(np.zeros(3_000))
    assert search._input(other) is not first
    assert search._input(np.zeros(3_000)) is first
