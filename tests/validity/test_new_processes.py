"""How often a comparison with new processes accuses independent draws."""

from __future__ import annotations

from tests.unit.sampling.test_independence import difference
from tests.validity.conftest import IsAbove

# One of two looks; both together: 1e-3.
LOOK = 5e-4
RUNS = 20_000


def test_independent_draws_are_accused_no_more_often_than_stated(is_above: IsAbove) -> None:
    """For few draws of the first process and of the others, and for many."""
    for first, each in ((100, 8), (1_000, 60), (20_000, 250)):
        alarms = (bool(difference(seed, first=first, each=each)) for seed in range(RUNS))
        assert not is_above(alarms, RUNS, LOOK)


def test_a_shift_that_each_process_keeps_is_accused_more_often(is_above: IsAbove) -> None:
    """The planted twin: a law of its own for every process."""
    alarms = (bool(difference(seed, shift=0.5)) for seed in range(RUNS))
    assert is_above(alarms, RUNS, LOOK)
