"""Choose the canaries to guess from their scores, after checks of the coins.

A score is a number for each canary, the larger the more likely the canary was included. The numbers
of guesses are fixed before the run, by the user or by `guess_numbers`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.options import DEFAULTS, verify
from dpaudit.auditing.single_run import audit_guesses, guess_numbers, wrong_numbers
from dpaudit.certificates.canary_certificate import CanaryScores, Rate, Sides
from dpaudit.certificates.result import AuditResult
from dpaudit.claims import PrivacyClaim
from dpaudit.errors import Name, UsageError
from dpaudit.inputs.canaries import TIES, coins_digest
from dpaudit.sampling.independence import IMPOSSIBLE, WARNING_ALPHA
from dpaudit.stats.binomial import (
    clopper_pearson_lower,
    clopper_pearson_upper,
    likely_counts,
    upper_tail,
)
from dpaudit.stats.one_run import Guesses
from dpaudit.wording import counted

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

# Coins are refused as repeated if they consist of equal copies of a sequence of at least this
# length, or if each coin is written twice and there are at least this number of such pairs. Fair
# coins repeat in this way with a probability below `IMPOSSIBLE`.
_MIN_REPEATED_COINS = math.ceil(-math.log2(IMPOSSIBLE))
# The report warns that the scores may have the wrong sign if their AUROC is below this number. The
# AUROC is the probability that an included canary has a larger score than an excluded one.
_REVERSED_AUROC = 0.4
# False-positive rates at which reports show the true-positive rate.
_FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)
# _BINS: number of bins of the histogram of scores in a result.
# _ROC_POINTS: largest number of points of the ROC curve in a result.
_BINS, _ROC_POINTS = 24, 100


def audit_scores(
    included: Bools,
    scores: Floats,
    claim: PrivacyClaim,
    *,
    guesses: int | None = None,
    sides: Sides | None = None,
    independent: bool = False,
    confidence: float = DEFAULTS["confidence"],
    seed: int = 0,
    name: str = "canaries",
    source: str = "scores of canaries",
) -> AuditResult:
    """Return the result of an audit of one run, from the scores of its canaries. Raise UsageError
    for coins and scores that cannot be those of one run, and for impossible settings.

    included: (n,), whether a fair coin included each canary.
    scores: (n,).
    guesses: number of guesses, fixed before the run; None: the two numbers of `guess_numbers`.
    sides: "both": half of the guesses say "in", half "out". "in": all say "in"; requires `guesses`.
        None: "both".
    independent: whether to assume that the canaries are independent. If true, all guesses say "in",
        for canaries whose scores exceed all but `wrong_numbers` of the scores of canaries left out.
        If false, canaries may influence the scores of other canaries.
    seed: seed of the random order of canaries with equal scores.
    name, source: name of the audit and origin of the scores, for reports.
    """
    verify(claim=claim, confidence=confidence)
    _check(included, scores, guesses)
    if independent and sides is not None:
        why = "independent canaries have a threshold, above which all guesses say in; leave out "
        raise UsageError(why, Name("sides"), code="options-conflict")
    if independent and guesses is not None:
        why = "independent canaries fix the numbers of wrong guesses, and take no number of guesses"
        raise UsageError(why, code="options-conflict")
    if sides is not None and guesses is None:
        why = " belongs to a number of guesses that was fixed before the run; give both, or neither"
        raise UsageError(Name("sides"), why, code="options-conflict")
    n, guessed_sides = len(scores), "in" if independent else sides or "both"
    if independent:
        wrongs = wrong_numbers(n)
        insides = included_above(included, scores, wrongs)
        counts = [
            Guesses(n, inside + wrong, inside)
            for inside, wrong in zip(insides, wrongs, strict=True)
        ]
    else:
        # Equal scores are in random order. They must not keep the order of the rows, which may
        # depend on the coins: for example, if all included canaries come first.
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(TIES,)))
        order = rng.permutation(n)
        coins = included[order[np.argsort(-scores[order], kind="stable")]]
        numbers = guess_numbers(n) if guesses is None else (guesses,)
        counts = [
            Guesses(n, number, right_guesses(coins, number, guessed_sides)) for number in numbers
        ]
    summary = _summary(included, scores, guessed_sides, confidence)
    result = audit_guesses(
        counts,
        claim,
        confidence=confidence,
        name=name,
        source=source,
        independent=independent,
        scores=summary,
        warnings=_warnings(included),
    )
    return replace(result, seed=seed, notes=_notes(scores, summary.auroc))


def included_above(included: Bools, scores: Floats, wrongs: Sequence[int]) -> list[int]:
    """Return, for each number k in `wrongs`, how many included canaries have larger scores than all
    but the k largest of the left-out canaries. It is 0 if at most k canaries were left out."""
    inside, outside = np.sort(scores[included]), np.sort(scores[~included])
    return [_above(inside, outside, wrong) if wrong < len(outside) else 0 for wrong in wrongs]


def right_guesses(coins: Bools, guesses: int, sides: Sides) -> int:
    """Return how many guesses are right. They say "in" for the canaries with the largest scores. If
    `sides` is "both", half of them say "out" instead, for the canaries with the smallest scores.

    coins: whether each canary was included, in falling order of the scores.
    """
    out = guesses // 2 if sides == "both" else 0
    first, last = coins[: guesses - out], coins[len(coins) - out :]
    return int(first.sum()) + int((~last).sum())


def _check(included: Bools, scores: Floats, guesses: int | None) -> None:
    n = len(scores)
    if len(included) != n:
        raise _invalid(f"{len(included):,} coins and {n:,} scores; give one of each for a canary")
    if n < 2:
        raise _invalid(f"too few canaries to audit ({n}); give at least two")
    if np.isnan(scores).any():
        index = int(np.flatnonzero(np.isnan(scores))[0])
        raise _invalid(
            f"the score of canary {index:,} (from 0) is NaN; give every canary a number, and a "
            "canary without a score the lowest one (leaving it out may depend on its coin)"
        )
    if guesses is not None and not 1 <= guesses <= n:
        raise _invalid(f"{guesses:,} guesses about {n:,} canaries; give from 1 to {n:,}")
    count = int(included.sum())
    if count in (0, n):
        which = "in" if count else "out"
        raise _invalid(f"all {n:,} canaries are {which}; a fair coin must decide for each of them")
    p = _uneven(included)
    if p < IMPOSSIBLE:
        raise _invalid(
            f"{count:,} of {n:,} canaries are in, which fair coins give with probability {p:.1g}; "
            "give all canaries whose coins were tossed, and toss each with probability ½"
        )
    period = _period(included)
    if period:
        raise _invalid(
            f"the coins repeat after {counted(period, 'row')}: scores of several runs, or "
            "canaries that stand twice; keep one row for each canary, of one run"
        )


def _period(included: Bools) -> int:
    """Return after how many rows the coins repeat; 0: never; 1: all pairs of coins are equal."""
    n = len(included)
    for copies in range(2, n // _MIN_REPEATED_COINS + 1):
        if n % copies == 0 and (included.reshape(copies, -1) == included[: n // copies]).all():
            return n // copies
    pairs = included[: n // 2 * 2].reshape(-1, 2)
    is_sorted = (pairs[1:, 0] != pairs[:-1, 0]).sum() < n / 10
    return (
        1
        if n >= 2 * _MIN_REPEATED_COINS and (pairs[:, 0] == pairs[:, 1]).all() and not is_sorted
        else 0
    )


def _uneven(included: Bools) -> float:
    """Return the p-value of the hypothesis that fair coins included the canaries."""
    n, count = len(included), int(included.sum())
    return min(1.0, 2 * float(upper_tail(max(count, n - count), n, 0.5)))


def _warnings(included: Bools) -> tuple[str, ...]:
    n, count = len(included), int(included.sum())
    warnings = []
    p = _uneven(included)
    if p < WARNING_ALPHA:
        warnings.append(
            f"{count:,} of {n:,} canaries are in; fair coins are so uneven with probability "
            f"{p:.1g}. The result holds only for fair coins"
        )
    changes = included[1:] != included[:-1]
    if _uneven(changes) < WARNING_ALPHA and not warnings:
        warnings.append(
            f"the coins depend on the order of the rows ({1 + changes.sum():,} streaks of equal "
            f"coins, about {(n + 1) / 2:,.0f} expected). If the rows were sorted after the scores "
            "were computed, ignore this; otherwise the coins were not independent, and the result "
            "is invalid"
        )
    return tuple(warnings)


def _notes(scores: Floats, auroc: float) -> tuple[str, ...]:
    distinct, n = len(np.unique(scores)), len(scores)
    notes = []
    if distinct <= n / 2:
        notes.append(
            f"the {n:,} scores have {counted(distinct, 'different value')}; equal scores are in "
            "random order"
        )
    if auroc < _REVERSED_AUROC:
        notes.append(
            "included canaries have the lower scores; if the score is a loss, change its sign "
            "(which must be known without these scores)"
        )
    return tuple(notes)


def _summary(included: Bools, scores: Floats, sides: Sides, confidence: float) -> CanaryScores:
    """Return the AUROC, the ROC curve and the histogram of the scores, for reports only."""
    inside, outside = np.sort(scores[included]), np.sort(scores[~included])
    below = np.searchsorted(outside, inside, "left") + np.searchsorted(outside, inside, "right")
    finite = scores[np.isfinite(scores)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    edges = np.linspace(low, high if high > low else low + 1, _BINS + 1)
    counts = [
        np.histogram(np.clip(group, edges[0], edges[-1]), edges)[0] for group in (inside, outside)
    ]
    wrongs = np.linspace(0, len(outside), min(_ROC_POINTS, len(outside)) + 1).astype(int)
    roc = [(wrong / len(outside), _above(inside, outside, wrong) / len(inside)) for wrong in wrongs]
    return CanaryScores(
        digest=coins_digest(included),
        included=len(inside),
        excluded=len(outside),
        sides=sides,
        auroc=float(below.sum() / (2 * len(inside) * len(outside))),
        rates=tuple(_rate(inside, outside, rate, confidence) for rate in _FALSE_POSITIVE_RATES),
        roc=tuple(roc),
        edges=tuple(edges.tolist()),
        histogram=tuple(zip(*(count.tolist() for count in counts), strict=True)),
    )


def _above(inside: Floats, outside: Floats, wrong: int) -> int:
    """Return the number of included canaries above the (`wrong` + 1)-th largest excluded score."""
    if wrong >= len(outside):
        return len(inside)
    return len(inside) - int(np.searchsorted(inside, outside[len(outside) - wrong - 1], "right"))


def _rate(inside: Floats, outside: Floats, rate: float, confidence: float) -> Rate:
    """Return the true-positive rate at false-positive rate `rate`, with its confidence interval."""
    # The threshold with exactly this false-positive rate is unknown. The interval covers all
    # thresholds that are plausible, given the scores of the excluded canaries.
    alpha, n = 1 - confidence, len(outside)
    fewest, largest = likely_counts(n, rate, alpha / 2)
    counts = (
        _above(inside, outside, math.floor(rate * n)),
        _above(inside, outside, fewest - 1) if fewest else 0,
        _above(inside, outside, largest),
    )
    return rate_of(rate, counts, len(inside), alpha)


def rate_of(
    false_positives: float, counts: tuple[int, int, int], included: int, alpha: float
) -> Rate:
    """Return the true-positive rate at a false-positive rate, with its confidence interval of error
    α.

    counts: the fields `above`, `fewest` and `most` of the `Rate`.
    included: number of included canaries.
    """
    _, fewest, largest = counts
    lower = clopper_pearson_lower(fewest, included, alpha / 4)
    return Rate(
        false_positives, *counts, lower, clopper_pearson_upper(largest, included, alpha / 4)
    )


def _invalid(why: str) -> UsageError:
    return UsageError(why, code="canaries-invalid")


def checked_coins(values: Any) -> Bools:
    """Check coins and return them as a Boolean array (n,). Raise UsageError unless each is 1 or
    0."""
    array = np.asarray(values)
    if array.ndim == 1 and (array.dtype == np.bool_ or np.isin(array, (0, 1)).all()):
        return array.astype(np.bool_)
    raise _invalid("canaries must be a Canaries, or a list of 1 (in) and 0 (out)")


def checked_scores(values: Any) -> Floats:
    """Check scores and return them as an array of floats, (n,). Raise UsageError unless `values` is
    a list or an array of numbers."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty((0, 0))
    if array.ndim != 1:
        raise _invalid("scores must be a list or an array of numbers, one for each canary")
    return array
