"""The list of planted leaks: where each sits, and how large it is there.

`truth` is exact on the witness (d1, d2). Where noise is Laplace's on numbers it is the distance of
the numbers in scales, which the docstring of the broken mechanism works out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mechanisms.noisy_max import winning_law
from mechanisms.truth import epsilon_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A broken mechanism, its correct counterpart, and a pair of inputs that tells them apart.

    broken, correct: import paths; `correct` satisfies the claim for all pairs of neighbours.
    space, adjacency: what inputs may be, in the words of a search. epsilon, delta: the claim.
    d1, d2: the witness, in plain Python. truth: the exact ε of the broken one on it, maybe inf;
    where delta > 0 the exact δ(epsilon). harmless: a usual pair, on which the broken one keeps its
    claim.
    """

    name: str
    broken: str
    correct: str
    space: str
    adjacency: str
    epsilon: float
    delta: float = 0.0
    params: Mapping[str, Any] = field(default_factory=dict)
    d1: Any
    d2: Any
    truth: float
    harmless: tuple[Any, Any]


_UNIT = "list of number in [0, 1]"
_UNITS = "list of 1 to 30 number in [0, 1]"
_UNITS_OR_MISSING = "list of 1 to 30 number in [0, 1] or missing"


def _planted(module: str, broken: str, correct: str, **rest: Any) -> Planted:
    path = f"mechanisms.neighbours.{module}"
    return Planted(
        name=broken.replace("_", "-"),
        broken=f"{path}:{broken}",
        correct=f"{path}:{correct}",
        epsilon=1.0,
        **rest,
    )


_ABOUT_RECORDS = (
    _planted(
        "means",
        "clamps_one_side",
        "clamps_both_sides",
        space="list of 1 to 30 number in [-10, 10]",
        adjacency="replace",
        d1=[0.5, 0.5, 0.5],
        d2=[0.5, 0.5, -10.0],
        truth=10.5,
        harmless=([0.5, 0.5, 0.5], [0.5, 0.5, 0.0]),
    ),
    _planted(
        "means",
        "scale_of_all_records",
        "missing_counts_as_half",
        space=_UNITS_OR_MISSING,
        adjacency="replace",
        d1=[0.0, None, None],
        d2=[1.0, None, None],
        truth=3.0,
        harmless=([0.5, 0.5, 0.0], [0.5, 0.5, 1.0]),
    ),
    _planted(
        "means",
        "empty_is_exact",
        "sum_by_count",
        space=_UNIT,
        adjacency="add-remove",
        d1=[],
        d2=[0.5],
        truth=math.inf,
        harmless=([0.5], [0.5, 0.5]),
    ),
    _planted(
        "means",
        "variance_of_a_sample",
        "variance_of_all",
        space=_UNITS,
        adjacency="replace",
        d1=[0.0, 0.0],
        d2=[0.0, 1.0],
        truth=2.0,
        harmless=([0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 1.0]),
    ),
    _planted(
        "sums",
        "width_for_sensitivity",
        "largest_for_sensitivity",
        space="list of number in [10, 30]",
        adjacency="add-remove",
        d1=[],
        d2=[30.0],
        truth=1.5,
        harmless=([20.0], [20.0, 20.0]),
    ),
    _planted(
        "sums",
        "overflows",
        "in_64_bits",
        space="list of integer in [0, 20000]",
        adjacency="add-remove",
        d1=[20000],
        d2=[20000, 20000],
        truth=45_536 / 20_000,
        harmless=([10000], [10000, 20000]),
    ),
    _planted(
        "sums",
        "squares_unclipped",
        "squares_clipped",
        space="list of number in [0, 10]",
        adjacency="add-remove",
        d1=[],
        d2=[10.0],
        truth=50.5,
        harmless=([0.5], [0.5, 1.0]),
    ),
    _planted(
        "sums",
        "raises_for_nan",
        "nan_counts_as_zero",
        space="list of number in [0, 1] or NaN",
        adjacency="add-remove",
        d1=[],
        d2=[math.nan],
        truth=math.inf,
        harmless=([0.5], [0.5, 1.0]),
    ),
    _planted(
        "sums",
        "mean_for_missing",
        "half_for_missing",
        space="list of number in [0, 1] or missing",
        adjacency="add-remove",
        d1=[None, None],
        d2=[None, None, 1.0],
        truth=3.0,
        harmless=([0.5], [0.5, 1.0]),
    ),
    _planted(
        "histograms",
        "weights_of_mean_one",
        "weights_as_they_are",
        space="table {answer: category [yes, no], weight: number in [0, 10]}",
        adjacency="add-remove",
        d1=[{"answer": "yes", "weight": 1.0}],
        d2=[{"answer": "yes", "weight": 1.0}, {"answer": "no", "weight": 10.0}],
        truth=29 / 11,
        harmless=(
            [{"answer": "yes", "weight": 5.0}],
            [{"answer": "yes", "weight": 5.0}, {"answer": "no", "weight": 5.0}],
        ),
    ),
    _planted(
        "histograms",
        "bins_of_the_data",
        "bins_of_the_bounds",
        space="list of number in [0, 100]",
        adjacency="add-remove",
        d1=[50.0],
        d2=[50.0, 51.0],
        truth=3.0,
        harmless=([0.0, 100.0], [0.0, 50.0, 100.0]),
    ),
    _planted(
        "histograms",
        "only_what_was_seen",
        "all_that_are_known",
        space="list of category [red, green, blue]",
        adjacency="add-remove",
        d1=["red"],
        d2=["red", "green"],
        truth=math.inf,
        harmless=(["red"], ["red", "red"]),
    ),
    _planted(
        "quantiles",
        "ties_have_a_length",
        "ties_are_empty",
        space="list of number in [0, 10]",
        adjacency="add-remove",
        d1=[5.0],
        d2=[5.0, 5.0],
        truth=math.log((1 + math.exp(-1)) / (math.exp(-1) + 0.025)),
        harmless=([5.0], [5.0, 7.0]),
    ),
    _planted(
        "quantiles",
        "even_for_all",
        "odd_or_even",
        space=_UNITS,
        adjacency="replace",
        d1=[0.0],
        d2=[1.0],
        truth=2.0,
        harmless=([0.5, 0.5], [0.5, 1.0]),
    ),
    _planted(
        "partitions",
        "at_least_the_largest",
        "above_the_threshold",
        space="list of text",
        adjacency="add-remove",
        delta=0.01,
        params={"delta": 0.01},
        d1=[],
        d2=["a"],
        truth=0.5,
        harmless=(5 * ["a"], [*5 * ["a"], "b"]),
    ),
    _planted(
        "regression",
        "bound_read_twice",
        "both_bounds",
        space="table of 1 to 30 {x: number in [1, 10], y: number in [0, 1]}",
        adjacency="replace",
        d1=[{"x": 1.0, "y": 0.0}, {"x": 1.0, "y": 0.0}],
        d2=[{"x": 1.0, "y": 0.0}, {"x": 10.0, "y": 0.0}],
        truth=math.inf,
        harmless=(
            [{"x": 5.0, "y": 0.5}, {"x": 5.0, "y": 0.0}],
            [{"x": 5.0, "y": 0.5}, {"x": 5.0, "y": 1.0}],
        ),
    ),
    _planted(
        "texts",
        "characters_for_bytes",
        "bytes_for_bytes",
        space="list of text",
        adjacency="add-remove",
        d1=[],
        d2=[10 * "🙂"],
        truth=4.0,
        harmless=(["usual"], ["usual", "a text of more than ten characters"]),
    ),
    _planted(
        "passing",
        "largest_rarely_passes",
        "largest_never_passes",
        space=_UNITS,
        adjacency="replace",
        d1=[0.3],
        d2=[0.0],
        truth=math.inf,
        harmless=([0.0], [1.0]),
    ),
    _planted(
        "passing",
        "largest_often_passes",
        "largest_never_passes",
        space=_UNITS,
        adjacency="replace",
        d1=[0.3],
        d2=[0.0],
        truth=math.inf,
        harmless=([0.0], [1.0]),
    ),
    _planted(
        "passing",
        "many_rarely_pass",
        "many_never_pass",
        space=_UNIT,
        adjacency="add-remove",
        d1=21 * [0.3],
        d2=22 * [0.3],
        truth=math.inf,
        harmless=([], [1.0]),
    ),
)
_ABOUT_ANSWERS = (
    _planted(
        "noisy_max",
        "noise_for_one_direction",
        "noise_for_both_directions",
        space="vector of 5 number in [0, 10]",
        adjacency="linf:1",
        d1=[1.0, 1.0, 1.0, 1.0, 1.0],
        d2=[0.0, 2.0, 2.0, 2.0, 2.0],
        truth=epsilon_of(winning_law(5 * [1], 1.0), winning_law([0, 2, 2, 2, 2], 1.0)),
        harmless=([5.0, 5.0, 5.0, 5.0, 5.0], [6.0, 5.0, 5.0, 5.0, 5.0]),
    ),
    _planted(
        "sparse_vector",
        "threshold_without_noise",
        "first_above",
        space="vector of 5 number in [0, 10]",
        adjacency="linf:1",
        d1=[5.0, 5.0, 5.0, 5.0, 5.0],
        d2=[6.0, 6.0, 6.0, 6.0, 6.0],
        truth=2.5,
        harmless=([5.0, 5.0, 5.0, 5.0, 5.0], [6.0, 5.0, 5.0, 5.0, 5.0]),
    ),
    _planted(
        "sparse_vector",
        "noise_not_refreshed",
        "first_above",
        space="vector of 3 number in [0, 10]",
        adjacency="linf:1",
        d1=[4.0, 4.0, 4.0],
        d2=[4.0, 5.0, 4.0],
        truth=math.inf,
        harmless=([5.0, 5.0, 5.0], [6.0, 6.0, 6.0]),
    ),
    _planted(
        "sparse_vector",
        "budget_ignored",
        "first_above",
        space="vector of 8 number in [0, 10]",
        adjacency="linf:1",
        d1=[5.0, 5.0, 5.0, 5.0, 6.0, 6.0, 6.0, 6.0],
        d2=[6.0, 6.0, 6.0, 6.0, 5.0, 5.0, 5.0, 5.0],
        # By quadrature over the noise of the threshold, for the first four above and no other.
        truth=2.389867081801,
        harmless=([5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0], [6.0, *7 * [5.0]]),
    ),
)
_ABOUT_USERS = (
    _planted(
        "users",
        "noise_for_one_city",
        "noise_for_every_city",
        space="table {who: user, city: category [Oslo, Rome]}",
        adjacency="user:who",
        d1=[],
        d2=[{"who": "Ada", "city": "Oslo"}, {"who": "Ada", "city": "Rome"}],
        truth=2.0,
        harmless=([], [{"who": "Ada", "city": "Rome"}, {"who": "Ada", "city": "Rome"}]),
    ),
    _planted(
        "users",
        "spelled_after_counting",
        "spelled_before_counting",
        space="table {who: user, city: category [Oslo, Rome, rome, ROME]}",
        adjacency="user:who",
        d1=[],
        d2=[{"who": "Ada", "city": city} for city in ("Rome", "rome", "ROME")],
        truth=1.5,
        harmless=([], [{"who": "Ada", "city": "Rome"}, {"who": "Ada", "city": "rome"}]),
    ),
)
PLANTED = (*_ABOUT_RECORDS, *_ABOUT_ANSWERS, *_ABOUT_USERS)
