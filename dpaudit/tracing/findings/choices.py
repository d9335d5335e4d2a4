"""Detectors of discrete choices whose probabilities depend on the data, and of exact laws of the
output that violate the claim."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpaudit.certificates.traced import Finding, Site
from dpaudit.claims import PrivacyClaim
from dpaudit.tracing.costs import coin_cost, law_exceeds
from dpaudit.tracing.findings.sites import Case, choice_cost
from dpaudit.tracing.runs.exact_enumeration import Laws
from dpaudit.tracing.source import number, shown


def of_choices(case: Case) -> Iterator[Finding]:
    """Yield discrete choices whose probabilities differ by more than the claim allows."""
    runs, claim = case.runs, case.claim
    for pair in runs.coupled:
        for one in pair.comparison.chosen:
            first, second = map(np.asarray, one.probabilities)
            if first.shape != second.shape or np.array_equal(first, second):
                continue
            if one.is_coin:
                each = zip(first.tolist(), second.tolist(), strict=True)
                laws = [(np.array([p, 1 - p]), np.array([q, 1 - q])) for p, q in each]
            else:
                laws = [(first, second)]
            if any(law_exceeds(*law, claim) for law in laws):
                cost = choice_cost(one)
                words = (
                    f"`{one.place.code}` chooses with probabilities that depend on the data: "
                    f"ε = {number(cost)}"
                )
                # If an outcome has another meaning on the other input, as an interval between
                # records has, its probability alone is no leak.
                means_the_same = not any(
                    each.comparison.differing or each.comparison.ranges for each in runs.coupled
                )
                is_picked = any(map(_is_picked_from_data, one.parameters))
                is_cause = means_the_same and not is_picked
                callers = tuple(map(shown, one.callers))
                line = shown(one.place)
                yield Finding("data-dependent-choice", is_cause, line, words, "", callers, cost)


def _is_picked_from_data(parameters: dict[str, object]) -> bool:
    """Return whether a choice may be among records, whose number is no leak by itself."""
    return "n" in parameters and "p" not in parameters


# Rounding error of δ.
_ROUNDING = 1e-9
# The largest ε whose e^ε is a float.
_LARGEST = 700.0

Floats = NDArray[np.float64]


def epsilon_of(laws: Laws) -> float:
    """Return the largest log-ratio of the probabilities of an output, in nats; a lower bound if
    some branches were not run."""
    first, second = np.asarray(laws.first), np.asarray(laws.second)
    if laws.is_exact:
        return coin_cost(first, second)
    ways = (first, second + laws.rests[1]), (second, first + laws.rests[0])
    with np.errstate(divide="ignore"):
        ratios = [np.log(one) - np.log(other) for one, other in ways]
    return max(0.0, *(float(np.max(each)) for each in ratios))


def of_laws(laws: Laws, claim: PrivacyClaim | None) -> Iterator[Finding]:
    """Yield a finding if the laws violate a claim; without a claim, if only one input has some
    output."""
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
    """Return the line of the coins, with the cost of the output."""
    epsilon = epsilon_of(laws)
    return Site(
        line=shown(laws.place), added=shown(laws.place), primitive=laws.primitive, law="choice",
        scales=None, operands=("", ""), shift=0.0, entries=1, cost=epsilon, total=epsilon,
        unit="ε", released=False, varies=False, callers=tuple(map(shown, laws.callers)),
    )  # fmt: skip


def _excess(laws: Laws, claim: PrivacyClaim | None) -> str | None:
    """Return the violation in words; None if the laws satisfy the claim."""
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
    """Return the Rényi divergence of an order above 1, in nats."""
    if np.any((one > 0) & (other == 0)):
        return math.inf
    both = (one > 0) & (other > 0)
    terms = order * np.log(one[both]) - (order - 1) * np.log(other[both])
    return float(np.logaddexp.reduce(terms)) / (order - 1)
