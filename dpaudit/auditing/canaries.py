"""Audits of a single training run, from guesses about its canaries (docs/method.md §12).

A canary is a record that a fair coin included in the run or left out. An attacker guesses for some
canaries whether they were included. `audit_guesses` turns the numbers of guesses and of correct
guesses into an `AuditResult`; `dpaudit.bounds` and the command line call it.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial

from dpaudit.auditing.engine import versions
from dpaudit.auditing.options import DEFAULTS, verify
from dpaudit.auditing.underpowered import point_words
from dpaudit.certificates.one_run import CanaryScores, GuessMethod, OneRunCertificate
from dpaudit.certificates.result import AuditResult, Canaries
from dpaudit.claims import PrivacyClaim
from dpaudit.claims.tradeoff import smallest_probability
from dpaudit.errors import UsageError
from dpaudit.stats import one_run, one_run_tradeoff
from dpaudit.stats.one_run import Guesses
from dpaudit.stats.one_run_tradeoff import (
    independent_bounds,
    independent_mu_lower,
    independent_p_value,
    mu_lower,
    tradeoff_p_value,
)
from dpaudit.wording import counted

_PAIR = "each canary in or out, by its own fair coin"
_ONE_POINT = (
    "this claim is a curve, and only one point of it is tested, which takes fewer correct guesses "
    "to refute than the whole curve"
)
_BLANK = (
    "{blank:,} of {all:,} canaries have no guess. With δ > 0 the result holds only if the number "
    "of guesses was fixed before the scores were seen: a number that the scores choose raises the "
    "probability of a false alarm, in one example from 10 to 18.5 %"
)


def audit_guesses(
    seen: Guesses,
    claim: PrivacyClaim,
    *,
    confidence: float = DEFAULTS["confidence"],
    name: str = "one run",
    source: str = "guesses about canaries",
    has_blanks: bool = False,
    method: GuessMethod | None = None,
    scores: CanaryScores | None = None,
    warnings: tuple[str, ...] = (),
) -> AuditResult:
    """Return the result of an audit of one run, from guesses about its canaries.

    Parameters
    ----------
    seen : Guesses
        Numbers of canaries, of guesses, and of correct guesses.
    claim : PrivacyClaim
        The claim to test.
    confidence : float
        1 minus the probability of a false alarm.
    name, source : str
        Name of the audit, and description of the origin of the guesses, both for reports.
    has_blanks : bool
        Whether the file of guesses has canaries without a guess. If so, the number of guesses may
        depend on the output of the run. The result then has a warning if δ > 0.
    method : {'independent'}, optional
        'independent': assume that the run reveals something about each canary independently of the
        other canaries. Default: no such assumption.
    scores : CanaryScores, optional
        The scores from which the guesses were made.
    warnings : tuple of str
        Reasons to doubt the coin tosses of the canaries.

    Returns
    -------
    AuditResult
        The result, with one certificate.

    Raises
    ------
    UsageError
        For more than `MAX_GUESSES` guesses, and for a claim that guesses cannot test.
    """
    start, alpha = time.perf_counter(), 1 - confidence
    verify(claim=claim, confidence=confidence)
    _check(seen, claim)
    certificate = certify_guesses(seen, claim, alpha, method)
    if certificate.method == "point" and len(claim.points()) > 1:
        warnings += (_ONE_POINT,)
    if has_blanks and certificate.fixes_guesses:
        blank = _BLANK.format(blank=seen.canaries - seen.guesses, all=seen.canaries)
        warnings += (blank,)
    certificate = replace(certificate, scores=scores, warnings=warnings)
    # If the number of guesses was chosen from scores of other canaries, it could have been any
    # number up to the number of canaries. So the power check assumes a guess about every canary.
    were_chosen = scores is not None and scores.chosen_on > 0
    most = Guesses(seen.canaries, seen.canaries, 0) if were_chosen else seen
    return AuditResult(
        name=name,
        claim=claim,
        target=source,
        confidence=confidence,
        seed=0,
        ending=Canaries((certificate,)),
        seconds=time.perf_counter() - start,
        versions=versions(),
        underpowered=_guessed_too_few(
            most,
            claim,
            lambda other: _test(other, claim, alpha, method).refutes(other, alpha),
            were_chosen=were_chosen,
        ),
    )


def certify_guesses(
    seen: Guesses, claim: PrivacyClaim, alpha: float, method: GuessMethod | None = None
) -> OneRunCertificate:
    """Return the certificate, with p-value and bounds, for counts of guesses (docs/method.md §12).

    seen: numbers of canaries, guesses and correct guesses.
    claim: the claim to test.
    alpha: probability of a false alarm.
    method: "independent" if the canaries are assumed to be independent; "point" for the test of one
        point (ε, δ); "tradeoff" for the test of the whole claim. None: "point" or "tradeoff",
        whichever `chosen_test` returns.
    """
    point, test = claim.point(), _test(seen, claim, alpha, method)
    bounds, mu_of = point_bounds, mu_lower
    if method == "independent":
        bounds, mu_of = independent_bounds, independent_mu_lower
    p = test.p_value(seen)
    epsilon, delta = bounds(seen, point.epsilon, point.delta, alpha)
    mu = None if method == "point" or len(claim.points()) == 1 else mu_of(seen, alpha)
    needed = one_run.fewest_correct(seen, lambda other: test.refutes(other, alpha))
    return OneRunCertificate(
        pair=_PAIR,
        point=point,
        refuted=p <= alpha,
        canaries=seen.canaries,
        guesses=seen.guesses,
        correct=seen.correct,
        alpha=alpha,
        epsilon_lower=epsilon,
        delta_lower=delta,
        p_value=p,
        detectable_epsilon=one_run.smallest_detectable(seen, needed, point.epsilon),
        method=test.method,
        mu_lower=mu,
    )


@dataclass(frozen=True, slots=True)
class GuessTest:
    """A test of a claim by guesses about canaries.

    method: name of the test.
    p_value: a function from counts of guesses to the p-value.
    refutes: a function of counts of guesses and an error probability; returns whether the counts
        refute the claim at this error probability.
    """

    method: GuessMethod
    p_value: Callable[[Guesses], float]
    refutes: Callable[[Guesses, float], bool]


def _test(
    seen: Guesses, claim: PrivacyClaim, alpha: float, method: GuessMethod | None
) -> GuessTest:
    if method == "independent":
        smallest = smallest_probability(claim)
        return _by_p_value(method, partial(independent_p_value, smallest=smallest))
    return _of_point(claim) if method == "point" else chosen_test(seen, claim, alpha)


def chosen_test(seen: Guesses, claim: PrivacyClaim, alpha: float) -> GuessTest:
    """Return the test that refutes the claim with fewer right guesses: the test of one point (ε, δ)
    of the claim, or the test of the whole claim. If the claim has a single point, return the test
    of this point. It cannot be improved, since some mechanism attains its p-value.

    seen: numbers of canaries and of guesses; the number of right guesses is not used, so that the
        scores do not choose the test.
    claim: the claim to test.
    alpha: probability of a false alarm.
    """
    if len(claim.points()) == 1:
        return _of_point(claim)
    smallest = smallest_probability(claim)
    whole = GuessTest(
        "tradeoff",
        partial(tradeoff_p_value, smallest=smallest),
        lambda other, level: one_run_tradeoff.refutes(other, smallest, level),
    )
    return min(
        (whole, _of_point(claim)),
        key=lambda test: one_run.fewest_correct(seen, lambda other: test.refutes(other, alpha)),
    )


def _of_point(claim: PrivacyClaim) -> GuessTest:
    point = claim.point()
    p_value = partial(one_run.p_value, epsilon=point.epsilon, delta=point.delta)
    return _by_p_value("point", p_value)


def _by_p_value(method: GuessMethod, p_value: Callable[[Guesses], float]) -> GuessTest:
    return GuessTest(method, p_value, lambda other, level: p_value(other) <= level)


def point_bounds(seen: Guesses, epsilon: float, delta: float, alpha: float) -> tuple[float, float]:
    """Return (lower bound for ε at `delta`, lower bound for δ at `epsilon`) from guesses about
    canaries, by docs/method.md (12.1).

    seen: the counts of guesses.
    alpha: error probability of each bound.
    """
    return one_run.epsilon_lower(seen, delta, alpha), one_run.delta_lower(seen, epsilon, alpha)


def _check(seen: Guesses, claim: PrivacyClaim) -> None:
    """Raise UsageError for too many guesses, and for a claim that guesses cannot test."""
    chosen = ", and choose their canaries without looking at the guesses"
    for count, most, noun, how in (
        (seen.guesses, one_run.MAX_GUESSES, "guesses", chosen),
        (seen.canaries, one_run.MAX_CANARIES, "canaries", ""),
    ):
        if count > most:
            written = f"{count:,}" if count < 10**18 else f"{Decimal(count):.3g}"
            why = f"{written} {noun} are more than can be counted exactly; give at most {most:,}"
            raise UsageError(why, how, code="guesses-invalid")
    why = ""
    if claim.counts_single_outputs:
        why = (
            "guesses say nothing about single outputs, but the probabilistic definition is about "
            "these; claim the approximate definition, which it implies"
        )
    elif claim.adversary is not None:
        why = "guesses are already the adversary's answers; leave adversary out of the claim"
    if why:
        raise UsageError(why, code="guesses-cannot-test-claim")


def _guessed_too_few(
    seen: Guesses,
    claim: PrivacyClaim,
    refutes: Callable[[Guesses], bool],
    *,
    were_chosen: bool = False,
) -> str | None:
    """Return a message if the guesses about canaries are too few to refute the claim, else None.
    The message says how many guesses would be enough. The check assumes the best case, in which all
    guesses are right.

    seen: numbers of canaries and of guesses.
    claim: the claim to test.
    refutes: a function from counts of guesses to whether they refute the claim, by the test of the
        audit.
    were_chosen: whether the number of guesses was chosen by the scores of other canaries.
    """
    canaries, most = seen.canaries, seen.guesses
    if refutes(replace(seen, correct=most)):
        return None
    enough = most + 1
    while enough <= one_run.MAX_GUESSES and not _all_right_refute(canaries, enough, refutes):
        enough *= 2
    remedy = ", and no number could"
    if enough <= one_run.MAX_GUESSES:
        sizes = range(max(most + 1, enough // 2), enough)
        enough = sizes.start + bisect_left(
            sizes, True, key=lambda guesses: _all_right_refute(canaries, guesses, refutes)
        )
        about = f" about {enough:,} canaries" if enough > canaries else ""
        remedy = f"; at least {enough:,} guesses{about} could"
        remedy += ", and as many other canaries to choose that number" if were_chosen else ""
    words = point_words(claim.point()) if len(claim.points()) == 1 else claim.describe()
    guesses = f"{counted(most, 'guess')} cannot refute {words}"
    return f"{guesses} even if all are right{remedy}"


def _all_right_refute(canaries: int, guesses: int, refutes: Callable[[Guesses], bool]) -> bool:
    return refutes(Guesses(max(canaries, guesses), guesses, guesses))
