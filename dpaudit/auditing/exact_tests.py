"""Choose, from a claim and learning draws, the rules, the single outputs and the witness that the
exact tests use.

A rule guesses d1 or d2, or abstains, at each level (bin of outputs). A witness is a bounded
function of the level that bounds a Rényi divergence from below. An exact test counts only draws
that were not used to choose its rules (docs/method.md §4). Other functions here write notes for the
report. pair_audit.py and recorded.py use this module.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.single_columns import has_fractions, has_integers
from dpaudit.attacks.single_outputs import choose_single_outputs, has_atoms
from dpaudit.certificates.certificate import EventCount
from dpaudit.certificates.evidence import FrozenRule
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.draws import SelectionDraws, Tally
from dpaudit.levels.portfolio import Learned, Portfolio, SingleOutputs
from dpaudit.outcomes import Outcomes
from dpaudit.stats.witness import Witness, most_telling_witness
from dpaudit.wording import shortened

# Number of learning draws among which examples are looked for, and number of examples of each kind.
_MAX_LOOKED_AT, _MAX_EXAMPLES = 1_000, 2
# Matches a number with at least 4 decimals, which an example shows with 3 digits.
_FRACTION = re.compile(r"-?\d+\.\d{4,}(?:e[+-]?\d+)?")
_CONTINUOUS = (
    "outputs hardly ever repeat, so single outputs cannot be counted: the audit tests the "
    "approximate definition, which the probabilistic one implies"
)


def without_levels(draws: SelectionDraws) -> Tally:
    """Return the numbers of draws of d1 and of d2, as a tally with a single level: (1, 2)."""
    return Tally(draws.arms[None])


def several_points(claim: PrivacyClaim) -> tuple[ProfilePoint, ...]:
    """Return all points (ε, δ) of a claim that is a curve; an empty tuple for a claim with a single
    point.
    """
    points = tuple(claim.points())
    return points if len(points) > 1 else ()


def frozen_rules(portfolio: Portfolio, *, is_one: bool) -> tuple[FrozenRule, ...]:
    """Return the rules of a portfolio in the form that the exact test takes.

    portfolio: the rules.
    is_one: True: return only the main rule, with the whole error probability. This is for the
        probabilistic definition of DP, whose exact test counts single outputs and not rules. False:
        return all rules, each with its own share of the error probability.
    """
    rules = [
        FrozenRule(
            rule.role,
            rule.share,
            rule.attack,
            tuple(guesses.tolist()),
            (rule.words(1), rule.words(-1)),
            rule.point,
        )
        for rule, guesses in zip(portfolio.rules, portfolio.all_guesses, strict=True)
    ]
    return (replace(rules[0], share=1.0),) if is_one else tuple(rules)


def telling_witness(
    claim: PrivacyClaim, learned: Learned, selection: SelectionDraws, coming: int, alpha: float
) -> Witness | None:
    """Return the witness for the exact test of a Rényi divergence.

    A witness is a bounded function of the level (bin of outputs). Its means under the two inputs
    bound a Rényi divergence from below (docs/method.md §6); the witness records the order and the
    direction of this divergence. Of all witnesses, return the one whose bound is expected to exceed
    the most the largest divergence that the claim allows. Return None if no bound is expected to
    exceed it, or if the claim limits no Rényi divergence.

    claim: the claim to test.
    learned: the result of learning; it has the draws that are expected at each level.
    selection: the learning draws.
    coming: number of draws to certify with.
    alpha: error probability of the exact tests; the test of the witness takes one half of it, the
        test of rules the other half.
    """
    limits = dict(claim.divergences())
    expected = learned.expected_by_joint_level(selection) if limits else None
    if expected is None:
        return None
    return most_telling_witness(expected, limits, coming, alpha / 2)


def single_outputs(
    claim: PrivacyClaim, selection: SelectionDraws, point: ProfilePoint
) -> SingleOutputs | None:
    """Return the single outputs to test for the probabilistic definition of DP. Return None for any
    other definition, and if outputs do not repeat, so that single outputs cannot be counted.

    claim: the claim to test.
    selection: the learning draws.
    point: the point (ε, δ) that is tested.
    """
    if not (claim.counts_single_outputs and has_atoms(selection)):
        return None
    return choose_single_outputs(selection, point)


def not_counted(claim: PrivacyClaim, singles: SingleOutputs | None) -> list[str]:
    """Return a warning if the claim uses the probabilistic definition of DP, whose test counts
    single outputs, but no single output can be counted because outputs do not repeat. Otherwise
    return an empty list.

    singles: the single outputs to test; None if there are none.
    """
    return [_CONTINUOUS] if claim.counts_single_outputs and singles is None else []


def integer_noise(claim: PrivacyClaim, outcomes: Outcomes) -> tuple[str, ...]:
    """Return the claim's note about integer outputs, as a tuple. The tuple is empty if the claim
    has no such note, or if not all outputs are integers.
    """
    note = claim.note_for_integers()
    return (note,) if note is not None and has_integers(outcomes) else ()


def unsearched(
    outcomes: Outcomes, *, floating_point: bool = False, timing: bool = False, command: str = ""
) -> list[str]:
    """Return remarks on properties of float outputs that no attack examines, each with its flag.

    floating_point, timing: whether the audit has these options.
    command: the command that has the flags, if the running one does not.
    """
    searched = {
        "low-order bits of floats": (floating_point, "--floating-point"),
        "elapsed times": (timing, "--timing"),
    }
    return [
        f"{name} ({command}{flag})"
        for name, (is_searched, flag) in searched.items()
        if not is_searched and has_fractions(outcomes)
    ]


def example_outputs(
    events: Sequence[EventCount],
    selection: SelectionDraws,
    portfolio: Portfolio,
    guesses: NDArray[np.int64],
) -> list[str]:
    """Return a note with examples of outputs in and outside of events about a score, since such an
    event does not say what its outputs look like. Return an empty list for other events.

    selection: the learning draws, from which the examples come. No number depends on them.
    guesses: (levels of `portfolio`,), guesses of the rule of the events.
    """
    if not any(event.words.startswith("score ") for event in events):
        return []
    first, found = selection.outcomes.take(slice(0, _MAX_LOOKED_AT)), list[tuple[str, str]]()
    at = guesses[portfolio(first)]
    for guess, where in ((1, "point to d1"), (-1, "point to d2"), (0, "point to neither")):
        words = first.words(np.flatnonzero(at == guess)[:_MAX_EXAMPLES].tolist())
        short = [_FRACTION.sub(lambda one: f"{float(one[0]):.3g}", word) for word in words]
        found += [(" and ".join(map(shortened, short)), where)] if short else []
    found = found[:2]
    # Outputs with equal beginnings look alike after they are shortened, and explain nothing.
    if len({shown for shown, _ in found}) < 2:
        return []
    return [f"outputs seen while learning: {'; '.join(map(' '.join, found))}"]
