"""Whether an audit could have refuted its claim: an audit that cannot fail shows nothing."""

from __future__ import annotations

import math
import shlex
from bisect import bisect_left
from collections.abc import Sequence

from dpaudit.auditing.options import MAXIMUM_SAMPLES, MINIMUM_SAMPLES
from dpaudit.auditing.schedule import Limits, Plan
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.certificate import Certificate, FixedTest
from dpaudit.certificates.evidence import (
    BETTING_SHARE,
    CERTIFICATION_SHARE,
    detectable_rare_of_any,
)
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.inputs.equality import are_equal
from dpaudit.inputs.neighbouring import EQUAL_INPUTS
from dpaudit.levels.portfolio import RARE_SHARE
from dpaudit.stats import one_run
from dpaudit.stats.one_run import Guesses
from dpaudit.stats.power import POWER, draws_to_refute
from dpaudit.wording import counted

# Significant digits of a number of draws.
_DIGITS = 3


def why_underpowered(spec: AuditSpec, certificates: Sequence[Certificate]) -> str | None:
    """Return why an audit could not have refuted its claim, or not with the power that is required;
    None when it could, or has."""
    if any(one.refuted for one in certificates):
        return None
    budgets = [one.budget for one in certificates if spec.time is not None]
    reason = foreseen(spec) or (too_few(spec, max(budgets)) if budgets else None)
    if reason is not None or not certificates:
        return reason
    reasons = []
    if spec.require_power is not None:
        reasons.append(too_weak(certificates, spec.require_power))
    if spec.require_rare is not None:
        points = spec.tested.points()
        reasons.append(misses_rare(certificates, spec.require_rare, points, spec.command))
    return "; ".join(filter(None, reasons)) or None


def foreseen(spec: AuditSpec) -> str | None:
    """Return why an audit cannot refute the claim, with the remedy, before anything is drawn; None
    when it can.

    With a time limit the number of draws is not known yet: see `too_few`.
    """
    # Inputs may be equal and yet different, such as 1 and True.
    same = [are_equal(one.d1, one.d2) and repr(one.d1) == repr(one.d2) for one in spec.pairs]
    if same and all(same):
        return EQUAL_INPUTS
    return None if spec.exact or spec.time is not None else too_few(spec, spec.samples)


def too_few(spec: AuditSpec, samples: int) -> str | None:
    """Return that `samples` draws cannot refute the claim even if each of them shows its input, and
    how many could; None when they can."""
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
    """Return that some pair would not have caught a leak of `factor` times the claimed ε, and which
    leak it would have caught; None when all would. Certificates at ε = 0 are left out."""
    ratios = {
        most_powerful(one).detectable_epsilon / one.point.epsilon: one
        for one in certificates
        if one.point.epsilon > 0
    }
    worst = max(ratios, default=0.0)
    if worst <= factor:
        return None
    one = ratios[worst]
    of = f" on {one.pair}" if len(certificates) > 1 else ""
    least = most_powerful(one).detectable_epsilon
    seen = f"only leaks of ε ≥ {least:.4g}" if math.isfinite(least) else "no leak"
    return (
        f"it would have caught {seen}{of}, but {factor:g} times the claim is ε = "
        f"{factor * one.point.epsilon:.4g}; more draws may catch smaller ones (samples)"
    )


def most_powerful(certificate: Certificate) -> FixedTest:
    """Return the exact test of the rule that would have refuted the smallest ε at the point of the
    certificate."""
    alike = [one for one in certificate.rules if one.point == certificate.fixed.point]
    return min(alike, key=lambda one: one.detectable_epsilon)


def misses_rare(
    certificates: Sequence[Certificate],
    probability: float,
    points: Sequence[ProfilePoint],
    command: str | None = None,
) -> str | None:
    """Return from which probability on an output that only one input gives would have been caught,
    if that is above `probability` on some pair, and how many draws could; None if it is not.

    points: of the claim's profile.  command: the one that repeats the audit, if there is one.
    """
    weak = [one for one in certificates if _caught_from(one) > probability]
    if not weak:
        return None
    worst = max(weak, key=_caught_from)
    of = f" on {worst.pair}" if len(certificates) > 1 else ""
    shown = "no output of only one input"
    if math.isfinite(_caught_from(worst)):
        least = f"{_caught_from(worst):.3g}"
        shown = f"an output of only one input if its probability is {least} or more"
    asked = _option("require_rare", f"{probability:g}", command)
    text = f"too few draws{of} for {asked}: they show {shown}"
    allowing = min(one.delta for one in points)
    if allowing >= probability:
        return f"{text}; no number of draws could, since δ = {allowing:.3g} allows such outputs"
    needed = [draws_for_rare(one, probability, points) for one in weak]
    numbers = [number for number in needed if number is not None]
    if len(numbers) < len(needed):
        return f"{text}; no number of draws could"
    return f"{text}. Use {_option('samples', f'{max(numbers):_}', command)}."


def _option(name: str, value: str, command: str | None) -> str:
    """Return an option as a flag for a command that names a mechanism, as a key for one that names
    a file, or as a keyword."""
    if command is None:
        return f"{name}={value}"
    words = shlex.split(command)
    target = words[words.index("dpaudit") + 2 :][:1]
    if any(word.endswith((".yaml", ".yml")) for word in target):
        return f"{name}: {value}"
    return f"--{name.replace('_', '-')} {value}"


def _caught_from(certificate: Certificate) -> float:
    found = certificate.detectable_rare
    return math.inf if found is None else found


def draws_for_rare(
    certificate: Certificate,
    probability: float,
    points: Sequence[ProfilePoint],
    *,
    power: float = POWER,
) -> int | None:
    """Return the draws that an audit like that of a certificate needs to refute the claim by an
    output that only one input gives.

    Parameters
    ----------
    certificate : Certificate
        Of the audit: its error probability, and the part of its budget that it learned from.
    probability : float
        Probability with which one input gives the output, in (0, 1); the other never gives it.
    points : sequence of ProfilePoint
        Points of the claim's profile; the output has to refute one of them.
    power : float, default 0.9
        The probability to refute the claim with, in (0, 1).

    Returns
    -------
    int or None
        Draws of both inputs, rounded up to three digits; None where no number is enough.
    """
    schedule, test = certificate.schedule, certificate.fixed
    points = [one for one in points if one.delta < probability]
    if not points:
        return None
    limits = Limits()
    if schedule is not None:
        limits = Limits(schedule.learned, schedule.block, schedule.confirming)
    # The share of the rare rule, whether or not learning found one.
    alpha = RARE_SHARE * test.alpha / test.share
    usual = Plan(certificate.budget, None, limits).freeze_at
    # Where the audit learned from more than usual, it may again learn from up to half.
    learns_more = certificate.draws - test.draws > usual

    def is_enough(samples: int) -> bool:
        learned = [Plan(samples, None, limits).freeze_at, *([samples // 2] if learns_more else [])]
        caught = (
            detectable_rare_of_any(points, one, samples - one, alpha, power=power)
            for one in learned
        )
        return max(caught) <= probability

    enough = MINIMUM_SAMPLES
    while not is_enough(enough):
        enough *= 2
        if enough > MAXIMUM_SAMPLES:
            return None
    budgets = range(max(MINIMUM_SAMPLES, enough // 2), enough)
    samples = budgets.start + bisect_left(budgets, True, key=is_enough)
    # More draws are learned from beyond some budgets, which leaves fewer for the test.
    while not is_enough(rounded(samples)):
        samples = math.ceil(1.01 * samples)
    return rounded(samples)


def rounded(number: int) -> int:
    """Return a number of draws rounded up to three digits.

    >>> rounded(123_456), rounded(100)
    (124000, 100)
    """
    unit: int = 10 ** max(0, len(str(number)) - _DIGITS)
    return -(-number // unit) * unit


def event_could_not(certificate: Certificate) -> str | None:
    """Return that the event of the exact test could not have refuted the claim even if each draw in
    it had shown its input; None when it could."""
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
    """Return whether no number of draws up to `MAXIMUM_SAMPLES` refutes a point."""
    return _enough(point, alpha) > MAXIMUM_SAMPLES


def no_guesses_could(point: ProfilePoint, alpha: float) -> bool:
    """Return whether no number of guesses about canaries up to `MOST_GUESSES` refutes a point."""
    return draws_to_refute(point.epsilon, point.delta, alpha) > one_run.MOST_GUESSES


def kept_too_few(certificate: Certificate) -> str | None:
    """Return that the recorded draws kept for the exact test cannot refute its point even if each
    shows its input; None when they can, or have."""
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
    """Return that the guesses about canaries could not refute a claim even if all were right; None
    when they could."""
    best = Guesses(seen.canaries, seen.guesses, seen.guesses)
    point = claim.point()
    if one_run.p_value(best, point.epsilon, point.delta) <= 1 - confidence:
        return None
    hopeless = no_guesses_could(point, 1 - confidence)
    more = ", and no number could" if hopeless else "; guess about more canaries"
    words = f"{counted(seen.guesses, 'guess')} cannot refute {_words(point)}"
    return f"{words} even if all are right{more}"


def _can_refute(point: ProfilePoint, samples: int, alpha: float) -> bool:
    """Return whether betting on all draws, or the exact test on its own, can refute a point."""
    exact = draws_to_refute(point.epsilon, point.delta, CERTIFICATION_SHARE * alpha)
    betting = draws_to_refute(point.epsilon, point.delta, BETTING_SHARE * alpha)
    return samples - Plan(samples, None).freeze_at >= exact or samples >= betting


def _enough(point: ProfilePoint, alpha: float) -> int:
    """Return the smallest budget, in draws, that can refute a point."""
    budgets = range(2, 2 * MAXIMUM_SAMPLES)
    return 2 + bisect_left(budgets, True, key=lambda draws: _can_refute(point, draws, alpha))


def _words(point: ProfilePoint) -> str:
    delta = f", δ = {point.delta:g}" if point.delta else ""
    return f"ε = {point.epsilon:g}{delta}" if math.isfinite(point.epsilon) else "ε = ∞"
