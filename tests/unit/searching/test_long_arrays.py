"""Inputs that NumPy writes alike are not the same input."""

import numpy as np

from dpaudit.searching.trials import Inputs


def test_arrays_that_differ_where_repr_leaves_out_are_two_inputs() -> None:
    inputs = Inputs(lambda dataset: dataset)
    other = np.zeros(3_000)
    other[1_500] = 1
    first = inputs.of(np.zeros(3_000))
    assert inputs.of(other) is not first
    assert inputs.of(np.zeros(3_000)) is first
