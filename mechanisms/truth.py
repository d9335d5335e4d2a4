"""The exact truth of a specimen, in code: the oracle that audits are held against.

A specimen states its truth with the decorator `satisfies`; `truth_of` reads it. Where outputs are
discrete the exact law is stated too, and everything else can be computed from it: here, in a few
lines that share nothing with `dpaudit.stats.exact`, so that each is a check of the other.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

# The exact law of a discrete output; atoms of probability 0 may be left out.
Pmf = Mapping[Any, float]
Statement = Callable[..., Any]
Specimen = TypeVar("Specimen", bound=Callable[..., Any])

# Ratios that are e^ε on paper come out some units in the last place away from it.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What a specimen really satisfies, as functions of two datasets and its parameters.

    definition: `pure`, `approximate`, `probabilistic`, `gaussian`, or `none`: no ε holds.
    epsilon, delta, mu: `(d1, d2, **params)`, the smallest parameters that hold for this pair.
    pmf: `(dataset, **params)`, the exact law of a discrete output.
    density: `(output, dataset, **params)`, the density of a continuous one.
    profile: `(d1, d2, epsilon, **params)`, the exact δ(ε) of the pair, largest of both directions.
    defaults: the specimen's own parameters, filled in where a call leaves them out.
    """

    definition: str
    stated_epsilon: Statement | None = None
    stated_delta: Statement | None = None
    stated_mu: Statement | None = None
    stated_pmf: Statement | None = None
    stated_density: Statement | None = None
    stated_profile: Statement | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def epsilon(self, d1: Any, d2: Any, **params: Any) -> float:
        """Return the smallest ε that holds for the pair under `definition`.

        Where it is not stated it follows from the law; without one it is infinite.
        """
        if self.stated_epsilon is not None:
            return float(self.stated_epsilon(d1, d2, **{**self.defaults, **params}))
        if self.stated_pmf is None:
            return math.inf
        return epsilon_of(self.pmf(d1, **params), self.pmf(d2, **params))

    def delta(self, d1: Any, d2: Any, **params: Any) -> float:
        """Return the δ that goes with it; 0 for a pure specimen."""
        if self.stated_delta is None:
            return 0.0
        return float(self.stated_delta(d1, d2, **{**self.defaults, **params}))

    def mu(self, d1: Any, d2: Any, **params: Any) -> float:
        """Return the μ of Gaussian DP. Raises TypeError where another definition holds."""
        if self.stated_mu is None:
            raise TypeError("this specimen has no mu")
        return float(self.stated_mu(d1, d2, **{**self.defaults, **params}))

    def pmf(self, dataset: Any, **params: Any) -> dict[Any, float]:
        """Return the exact law of the output. Raises TypeError for a continuous one."""
        if self.stated_pmf is None:
            raise TypeError("this specimen has no probability mass function")
        return dict(self.stated_pmf(dataset, **{**self.defaults, **params}))

    def density(self, output: Any, dataset: Any, **params: Any) -> float:
        """Return the density at an output. Raises TypeError for a discrete specimen."""
        if self.stated_density is None:
            raise TypeError("this specimen has no density")
        return float(self.stated_density(output, dataset, **{**self.defaults, **params}))

    def profile(self, d1: Any, d2: Any, at: float, **params: Any) -> float:
        """Return the exact δ of the pair at ε = `at`, in the worse direction."""
        if self.stated_profile is not None:
            return float(self.stated_profile(d1, d2, at, **{**self.defaults, **params}))
        return delta_of(self.pmf(d1, **params), self.pmf(d2, **params), at)


def satisfies(
    definition: str,
    *,
    epsilon: Statement | None = None,
    delta: Statement | None = None,
    mu: Statement | None = None,
    pmf: Statement | None = None,
    density: Statement | None = None,
    profile: Statement | None = None,
) -> Callable[[Specimen], Specimen]:
    """Attach the truth to a specimen; its own default parameters become those of the truth.

    Where a law is stated the specimen also gets it as `pmf(dataset, **params)`, for exact audits.
    """

    def attach(specimen: Specimen) -> Specimen:
        truth = Truth(
            definition=definition,
            stated_epsilon=epsilon,
            stated_delta=delta,
            stated_mu=mu,
            stated_pmf=pmf,
            stated_density=density,
            stated_profile=profile,
            defaults=_defaults(specimen),
        )
        specimen.truth = truth  # type: ignore[attr-defined]  # functions take any attribute
        if pmf is not None:
            specimen.pmf = truth.pmf  # type: ignore[attr-defined]
        return specimen

    return attach


def truth_of(specimen: Callable[..., Any]) -> Truth:
    """Return the truth of a specimen. Raises TypeError when it states none."""
    truth = getattr(specimen, "truth", None)
    if not isinstance(truth, Truth):
        raise TypeError(
            f"{specimen!r} states no truth; decorate it with mechanisms.truth.satisfies"
        )
    return truth


def epsilon_of(p: Pmf, q: Pmf) -> float:
    """Return the smallest ε with P(s) ≤ e^ε Q(s) and Q(s) ≤ e^ε P(s) for every s; may be inf."""
    pairs = _aligned(p, q)
    return max((_log_ratio(max(pair), min(pair)) for pair in pairs), default=0.0)


def delta_of(p: Pmf, q: Pmf, epsilon: float) -> float:
    """Return δ(ε) = max over both directions of Σ max(0, P(s) - e^ε Q(s))."""
    factor = math.exp(epsilon)
    pairs = _aligned(p, q)
    forwards = math.fsum(max(0.0, one - factor * other) for one, other in pairs)
    backwards = math.fsum(max(0.0, other - factor * one) for one, other in pairs)
    return max(forwards, backwards)


def pdp_delta_of(p: Pmf, q: Pmf, epsilon: float) -> float:
    """Return the smallest δ of (ε, δ)-probabilistic DP: P({s : P(s) > e^ε Q(s)}), worse direction.

    A ratio within `ROUNDING` of e^ε counts as e^ε.
    """
    pairs = _aligned(p, q)
    limit = epsilon + ROUNDING
    forwards = math.fsum(one for one, other in pairs if _log_ratio(one, other) > limit)
    backwards = math.fsum(other for one, other in pairs if _log_ratio(other, one) > limit)
    return max(forwards, backwards)


def image(pmf: Pmf, function: Callable[[Any], Hashable]) -> dict[Any, float]:
    """Return the exact law of `function(output)`: post-processing."""
    law: dict[Any, float] = {}
    for atom, probability in pmf.items():
        law[function(atom)] = law.get(function(atom), 0.0) + probability
    return law


def _aligned(p: Pmf, q: Pmf) -> list[tuple[float, float]]:
    return [(p.get(atom, 0.0), q.get(atom, 0.0)) for atom in {**p, **q}]


def _log_ratio(one: float, other: float) -> float:
    if one == 0:
        return -math.inf if other else 0.0
    return math.log(one) - math.log(other) if other else math.inf


def _defaults(specimen: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters that have a default, but for those that the sampler fills."""
    parameters = inspect.signature(specimen).parameters.values()
    return {
        one.name: one.default
        for one in parameters
        if one.default is not inspect.Parameter.empty and one.name not in ("rng", "size")
    }
