"""Whether an audit could fail at all: one that cannot proves nothing by not failing."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

from dpaudit.auditing.options import MAXIMUM_SAMPLES
from dpaudit.auditing.schedule import Plan
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.evidence import BETTING_SHARE, CERTIFICATION_SHARE
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.inputs.equality import are_equal
from dpaudit.stats import one_run
from dpaudit.stats.one_run import Guesses
from dpaudit.stats.power import draws_to_refute
from dpaudit.wording import counted

# Both inputs of every pair are the same.
EQUAL_INPUTS = "d1 and d2 are equal, so nothing can tell them apart; give two neighbouring inputs"


def foreseen(spec: AuditSpec) -> str | None:
    """Return why an audit cannot fail, and the remedy, before anything is drawn; None when it can.

    Draws that the clock will plan are not known yet: see `too_few`.
    """
    # Not those that are equal and yet can be told apart, as 1 and True.
    same = [are_equal(one.d1, one.d2) and repr(one.d1) == repr(one.d2) for one in spec.pairs]
    if same and all(same):
        return EQUAL_INPUTS
    return None if spec.exact or spec.time is not None else too_few(spec, spec.samples)


def too_few(spec: AuditSpec, samples: int) -> str | None:
    """Return that so many draws cannot refute the claim, even if all of them tell the inputs apart,
    and how many could; None when they can."""
    points = spec.tested.points()
    if any(_can_refute(point, samples, spec.alpha) for point in points):
        return None
    point = min(points, key=lambda one: _enough(one, spec.alpha))
    told = "even if every draw tells d1 and d2 apart"
    words = f"{counted(samples, 'draw')} cannot refute {_words(point)} {told}"
    if no_draws_could(point, spec.alpha):
        return f"{words}, and no number of draws could"
    return f"{words}; at least {_enough(point, spec.alpha):,} could (samples)"


def too_weak(certificates: Sequence[Certificate], factor: float) -> str | None:
    """Return that some pair would not have caught a leak of so many times the claimed ε, and what
    it would have caught; None when all would. Certificates of claims with ε = 0 are left out."""
    ratios = {
        one.fixed.detectable_epsilon / one.point.epsilon: one
        for one in certificates
        if one.point.epsilon > 0
    }
    worst = max(ratios, default=0.0)
    if worst <= factor:
        return None
    one = ratios[worst]
    of = f" on {one.pair}" if len(certificates) > 1 else ""
    least = one.fixed.detectable_epsilon
    seen = f"only leaks of ε ≥ {least:.4g}" if math.isfinite(least) else "no leak"
    return (
        f"it would have caught {seen}{of}, but {factor:g} times the claim is ε = "
        f"{factor * one.point.epsilon:.4g}; more draws may catch smaller ones (samples)"
    )


def event_could_not(certificate: Certificate) -> str | None:
    """Return that the event of the exact test could not have refuted the claim, whatever the draws
    in it had been; None when it could."""
    fixed, point = certificate.fixed, certificate.point
    if not fixed.events or math.isfinite(fixed.detectable_epsilon):
        return None
    seen = fixed.correct + fixed.wrong
    of = "" if seen == fixed.draws else " in the event"
    more = "no number could" if no_draws_could(point, fixed.alpha) else "more draws help"
    return (
        f"{counted(seen, 'draw')}{of} cannot refute {_words(point)}, even if every one tells d1 "
        f"and d2 apart ({more})"
    )


def no_draws_could(point: ProfilePoint, alpha: float) -> bool:
    """Return whether no number of draws that can be asked for refutes a point."""
    return _enough(point, alpha) > MAXIMUM_SAMPLES


def no_guesses_could(point: ProfilePoint, alpha: float) -> bool:
    """Return whether no number of guesses about canaries that is counted refutes a point."""
    return draws_to_refute(point.epsilon, point.delta, alpha) > one_run.MOST_GUESSES


def kept_too_few(certificate: Certificate) -> str | None:
    """Return the same of the recorded draws that the exact test had."""
    fixed, point = certificate.fixed, certificate.point
    needed = draws_to_refute(point.epsilon, point.delta, fixed.alpha)
    if certificate.refuted or fixed.draws >= needed:
        return None
    more = ", and no number could" if no_draws_could(point, fixed.alpha) else "; record more"
    return (
        f"the {fixed.draws:,} recorded outputs kept for the exact test cannot refute "
        f"{_words(point)} even if every one tells d1 and d2 apart{more}"
    )


def guessed_too_few(seen: Guesses, claim: PrivacyClaim, confidence: float) -> str | None:
    """Return that so many guesses about canaries cannot refute a claim; None when they can."""
    best = Guesses(seen.canaries, seen.guesses, seen.guesses)
    point = claim.point()
    if one_run.p_value(best, point.epsilon, point.delta) <= 1 - confidence:
        return None
    hopeless = no_guesses_could(point, 1 - confidence)
    more = ", and no number could" if hopeless else "; guess about more canaries"
    words = f"{counted(seen.guesses, 'guess')} cannot refute {_words(point)}"
    return f"{words} even if all are right{more}"


def _can_refute(point: ProfilePoint, samples: int, alpha: float) -> bool:
    """Whether betting on all draws or the exact test on those kept for it can refute a point."""
    exact = draws_to_refute(point.epsilon, point.delta, CERTIFICATION_SHARE * alpha)
    betting = draws_to_refute(point.epsilon, point.delta, BETTING_SHARE * alpha)
    return samples - Plan(samples, None).freeze_at >= exact or samples >= betting


def _enough(point: ProfilePoint, alpha: float) -> int:
    """Return the fewest draws of a budget that can refute a point."""
    budgets = range(2, 2 * MAXIMUM_SAMPLES)
    return 2 + bisect_left(budgets, True, key=lambda draws: _can_refute(point, draws, alpha))


def _words(point: ProfilePoint) -> str:
    delta = f", δ = {point.delta:g}" if point.delta else ""
    return f"ε = {point.epsilon:g}{delta}" if math.isfinite(point.epsilon) else "ε = ∞"
