"""The exact laws of the output on both inputs, judged against a claim: where a few coins are all
that is random, nothing else needs to be weighed."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpaudit.certificates.traced import Finding, Site
from dpaudit.claims import PrivacyClaim
from dpaudit.tracing.costs import coin_cost
from dpaudit.tracing.runs.paths import Laws
from dpaudit.tracing.wording import number, shown

# What a δ may be larger by rounding.
_ROUNDING = 1e-9
# The largest ε whose e^ε is a float.
_LARGEST = 700.0

Floats = NDArray[np.float64]


def epsilon_of(laws: Laws) -> float:
    """Return the largest log-ratio of the probabilities of an output, in nats: at least, where
    something is left unknown."""
    first, second = np.asarray(laws.first), np.asarray(laws.second)
    if laws.is_exact:
        return coin_cost(first, second)
    ways = (first, second + laws.rests[1]), (second, first + laws.rests[0])
    with np.errstate(divide="ignore"):
        ratios = [np.log(one) - np.log(other) for one, other in ways]
    return max(0.0, *(float(np.max(each)) for each in ratios))


def of_laws(laws: Laws, claim: PrivacyClaim | None) -> Iterator[Finding]:
    """Yield a finding where the laws are further apart than a claim allows; without one, where one
    input alone has an output."""
    said = _excess(laws, claim)
    if said is None:
        return
    more = len(laws.others)
    besides = "" if not more else f" and {more} more line{'s' if more > 1 else ''} with coins"
    words = f"`{laws.place.code}`{besides} decide{'' if more else 's'} between the inputs: {said}"
    others = tuple(map(shown, (*laws.callers, *laws.others)))
    cost = epsilon_of(laws)
    yield Finding("too-little-noise", True, shown(laws.place), words, "", others, cost)


def site_of(laws: Laws) -> Site:
    """Return the line of the coins, with what all of them cost together."""
    epsilon = epsilon_of(laws)
    return Site(
        line=shown(laws.place), added=shown(laws.place), primitive=laws.primitive, law="choice",
        scales=None, operands=("", ""), shift=0.0, entries=1, cost=epsilon, total=epsilon,
        unit="ε", released=False, varies=False, callers=tuple(map(shown, laws.callers)),
    )  # fmt: skip


def _excess(laws: Laws, claim: PrivacyClaim | None) -> str | None:
    """Return what the laws cost, in words; None where that is not more than is claimed."""
    first, second = np.asarray(laws.first), np.asarray(laws.second)
    ways = ((first, second, laws.rests[1]), (second, first, laws.rests[0]))
    epsilon = epsilon_of(laws)
    if claim is None:
        return "ε = ∞" if laws.is_exact and epsilon == math.inf else None
    for point in claim.points():
        times = math.exp(min(point.epsilon, _LARGEST))
        delta = max(
            float(np.sum(np.maximum(0.0, one - times * other))) - times * rest
            for one, other, rest in ways
        )
        if delta > point.delta * (1 + 1e-6) + _ROUNDING:
            if point.delta == 0:
                return f"ε = {number(epsilon)}"
            return (
                f"δ = {number(delta)} at ε = {number(point.epsilon)}, where "
                f"{number(point.delta)} is claimed"
            )
    for order, most in claim.divergences() if laws.is_exact else ():
        found = max(_divergence(order, one, other) for one, other, _ in ways)
        if found > most * (1 + 1e-6) + _ROUNDING:
            return f"D_{order:g} = {number(found)}, where {number(most)} is claimed"
    return None


def _divergence(order: float, one: Floats, other: Floats) -> float:
    """Return Rényi's divergence of an order above 1, in nats."""
    if np.any((one > 0) & (other == 0)):
        return math.inf
    both = (one > 0) & (other > 0)
    terms = order * np.log(one[both]) - (order - 1) * np.log(other[both])
    return float(np.logaddexp.reduce(terms)) / (order - 1)
