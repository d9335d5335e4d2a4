"""What attacks are measured on: mechanisms whose law of the log-ratio is known exactly.

Each comes once at the ε that it claims, and once with noise of the wrong scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

from benchmarks import known_laws as laws
from benchmarks import log_ratios as ratios
from benchmarks.oracle import FloatArray, RatioLaw
from mechanisms.exponential import common_disease, common_disease_without_two
from mechanisms.gaussian import gaussian, variance_for_deviation
from mechanisms.histogram import low_threshold, thresholded
from mechanisms.laplace import laplace, wrong_density
from mechanisms.laplace_queries import column_sums_linf
from mechanisms.local import kary_randomized_response, rappor, rappor_whole_epsilon
from mechanisms.noisy_max import noisy_max, noisy_max_half, noisy_max_value
from mechanisms.randomized_response import randomized_response
from mechanisms.scipy_noise import discrete_laplace_mech, laplace_mech
from mechanisms.truth import truth_of

Sampled = Callable[..., Any]

WRONG = ", wrong scale"
SMALL_DELTA, DELTA = 1e-5, 0.05
# One diagnosis of several moves from disease 0 to disease 1.
TEN = ((0, *range(10)), (1, *range(10)))
FIVE = ((0, *range(5)), (1, *range(5)))
# The tenth answer falls by 1 and all before it rise: the pair then comes near the ε of the proof.
ANSWERS = ((0.0,) * 9 + (1.0,), (1.0,) * 9 + (0.0,))
FOOD, FOODS = "kale", ("rice",) * 8 + ("soup",) * 4
# The noisy count of one vote exceeds the threshold with probability 0.01.
HISTOGRAM_DELTA = 0.01


@dataclass(frozen=True)
class Specimen:
    """A mechanism on a pair of inputs, and all that an oracle knows of it.

    mechanism: `(dataset, *, size, rng)` -> a batch of outputs. make_law: the law of the log-ratio;
    log_ratio: that of each output of a batch. delta: of the claim to audit, whose ε is `claimed`
    or, without one, the true one.
    """

    name: str
    mechanism: Sampled
    d1: Any
    d2: Any
    make_law: Callable[[], RatioLaw]
    log_ratio: Callable[[Any], FloatArray]
    delta: float = 0.0
    claimed: float | None = None

    @cached_property
    def law(self) -> RatioLaw:
        """The exact law, computed once."""
        return self.make_law()

    @cached_property
    def epsilon(self) -> float:
        """The true ε at `delta`; may be inf."""
        return self.law.epsilon(self.delta)


@lru_cache(maxsize=1)
def specimens() -> tuple[Specimen, ...]:
    """Return all of them, correct and wrong ones of a kind side by side."""
    return (*_numbers(), *_vectors(), *_choices(), *_others(), *_approximate())


def _numbers() -> Iterator[Specimen]:
    for epsilon in (0.05, 0.1, 1.0, 4.0):
        mechanism = partial(laplace, epsilon=epsilon)
        yield _laplace(f"Laplace, ε = {epsilon:g}", mechanism, 0.0, 1.0, 1 / epsilon)
    yield _laplace(f"Laplace{WRONG}", wrong_density, 0.0, 1.0, 0.5, claimed=0.5)
    for scale, wrong in ((1.0, ""), (0.5, WRONG)):
        yield Specimen(
            f"discrete Laplace{wrong}",
            partial(discrete_laplace_mech, sensitivity=scale),
            [0],
            [1],
            partial(laws.discrete_laplace_law, 1 / scale),
            partial(ratios.laplace_ratio, [0], [1], scale),
            claimed=1.0,
        )


def _vectors() -> Iterator[Specimen]:
    for d in (5, 20):
        zeros, unit, even = [0.0] * d, [1.0] + [0.0] * (d - 1), [1 / d] * d
        for scale, wrong in ((1.0, ""), (0.5, WRONG)):
            mechanism = partial(laplace_mech, sensitivity=scale)
            name = f"Laplace vector, d = {d}, one differs{wrong}"
            yield _laplace(name, mechanism, zeros, unit, scale, claimed=1.0)
        name = f"Laplace vector, d = {d}, all differ"
        law = partial(laws.laplace_vector_law, 1.0, d)
        ratio = partial(ratios.laplace_ratio, zeros, even, 1.0)
        yield Specimen(name, laplace_mech, zeros, even, law, ratio)
        # The sensitivity of one sum instead of that of all d: a single record of ones.
        sums = partial(column_sums_linf, epsilon=1 / d)
        ratio = partial(ratios.laplace_ratio, zeros, [1.0] * d, float(d))
        yield Specimen(name + WRONG, sums, [zeros], [[1.0] * d], law, ratio, claimed=1 / d)


def _choices() -> Iterator[Specimen]:
    name = "randomized response"
    yield _stated(name, randomized_response, (0, 1))
    yield _stated(name + WRONG, randomized_response, (0, 1), math.log(3), p=0.75)
    for k in (10, 1000):
        name, stated = f"k-RR, k = {k}", partial(_stated, possible_outputs=range(k))
        yield stated(name, kary_randomized_response, (0, 1))
        yield stated(name + WRONG, kary_randomized_response, (0, 1), 1.0, epsilon=2.0)
    for d in (8, 32):
        for bits, epsilon, wrong in ((rappor, 1.0, ""), (rappor_whole_epsilon, 2.0, WRONG)):
            yield Specimen(
                f"RAPPOR, d = {d}{wrong}",
                partial(bits, domain_size=d),
                0,
                1,
                partial(laws.two_bits_law, epsilon / 2),
                partial(ratios.two_bits_ratio, epsilon),
                claimed=1.0,
            )
    for name, pair, right, broken in (
        ("exponential mechanism, 10 outcomes", TEN, common_disease, common_disease_without_two),
        ("noisy max of 5, index", FIVE, noisy_max, noisy_max_half),
    ):
        diseases = len(pair[0]) - 1
        correct = _stated(name, right, pair, diseases=diseases)
        yield correct
        yield _stated(name + WRONG, broken, pair, correct.epsilon, diseases=diseases)


def _others() -> Iterator[Specimen]:
    sums = [0.0] * 10, [0.0] * 4 + [1.0] + [0.0] * 5
    for epsilon, wrong in ((1.0, ""), (2.0, WRONG)):
        yield Specimen(
            f"noisy max of 5, value{wrong}",
            partial(noisy_max_value, epsilon=epsilon),
            [0.0] * 5,
            [1.0] * 5,
            partial(laws.maximum_law, 5, epsilon / 2),
            partial(ratios.maximum_ratio, 5, 1.0, 2 / epsilon),
            claimed=2.5,
        )
        yield Specimen(
            f"prefix sums of 10{wrong}",
            partial(laws.prefix_sums, epsilon=epsilon),
            *sums,
            partial(laws.laplace_law, epsilon),
            partial(ratios.prefix_sums_ratio, *sums, 1 / epsilon),
            claimed=1.0,
        )
    name, technique = "SVT, 10 queries", laws.above_threshold
    correct = _discrete(name, technique, laws.above_threshold_pmf, ANSWERS, epsilon=1.0)
    yield correct
    yield _discrete(
        name + WRONG, technique, laws.above_threshold_pmf, ANSWERS, correct.epsilon, epsilon=2.0
    )
    limit = 1 - math.log(2 * HISTOGRAM_DELTA)
    yield Specimen(
        "thresholded histogram",
        thresholded,
        [*FOODS, *[FOOD] * 6],
        [*FOODS, *[FOOD] * 5],
        partial(laws.censored_law, 5, limit),
        partial(ratios.censored_ratio, FOOD, 5),
    )


def _approximate() -> Iterator[Specimen]:
    law = partial(laws.new_food_law, 1.0, HISTOGRAM_DELTA)
    yield Specimen(
        f"thresholded histogram, δ = {HISTOGRAM_DELTA:g}{WRONG}",
        low_threshold,
        [*FOODS, FOOD],
        list(FOODS),
        law,
        partial(ratios.presence_ratio, FOOD, float(law().ratios[0])),
        delta=HISTOGRAM_DELTA,
        claimed=1.0,
    )
    claimed = laws.gaussian_law(1.0).epsilon(SMALL_DELTA)
    ten, even = [0.0] * 10, [10**-0.5] * 10
    for mechanism, d1, d2, deviation, name in (
        (gaussian, 0.0, 1.0, 1.0, "Gaussian"),
        (partial(variance_for_deviation, mu=2**0.5), 0.0, 1.0, 0.5, f"Gaussian{WRONG}"),
        (partial(laws.gaussian_vector, deviation=1.0), ten, even, 1.0, "Gaussian, d = 10"),
        (partial(laws.gaussian_vector, deviation=0.5), ten, even, 0.5, f"Gaussian, d = 10{WRONG}"),
    ):
        law = partial(laws.gaussian_law, 1 / deviation)
        ratio = partial(ratios.gaussian_ratio, d1, d2, deviation)
        yield Specimen(name, mechanism, d1, d2, law, ratio, SMALL_DELTA, claimed)
    for epsilon, wrong in ((1.0, ""), (2.0, WRONG)):
        name, revealing = f"tight pair{wrong}", laws.reveal_or_randomize
        one = _discrete(
            name, revealing, laws.revealing_pmf, (0, 1), 1.0, epsilon=epsilon, delta=DELTA
        )
        yield replace(one, delta=DELTA)


def _laplace(
    name: str, mechanism: Sampled, d1: Any, d2: Any, scale: float, claimed: float | None = None
) -> Specimen:
    """Return the specimen of Laplace noise of a scale, the inputs at distance 1 in one number."""
    law = partial(laws.laplace_law, 1 / scale)
    ratio = partial(ratios.laplace_ratio, d1, d2, scale)
    return Specimen(name, mechanism, d1, d2, law, ratio, claimed=claimed)


def _stated(
    name: str,
    mechanism: Sampled,
    pair: tuple[Any, Any],
    claimed: float | None = None,
    **params: Any,
) -> Specimen:
    """Return the specimen of a mechanism that states its probability mass function."""
    return _discrete(name, mechanism, truth_of(mechanism).pmf, pair, claimed, **params)


def _discrete(
    name: str,
    mechanism: Sampled,
    pmf: Callable[..., dict[Any, float]],
    pair: tuple[Any, Any],
    claimed: float | None = None,
    **params: Any,
) -> Specimen:
    p, q = (pmf(dataset, **params) for dataset in pair)
    law, ratio = partial(RatioLaw.of_pmfs, p, q), partial(ratios.table_ratio, p, q)
    return Specimen(name, partial(mechanism, **params), *pair, law, ratio, claimed=claimed)
