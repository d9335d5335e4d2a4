"""Audits of a single training run, from guesses about its canaries (docs/method.md §12).

An attacker guesses for some canaries whether they were included. Several numbers of guesses share
the error probability α. `dpaudit.bounds` and the command line call `audit_guesses`.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial

from dpaudit.auditing.options import DEFAULTS, verify
from dpaudit.auditing.results import versions
from dpaudit.auditing.underpowered import point_words
from dpaudit.certificates.canary_certificate import (
    CanaryScores,
    GuessMethod,
    GuessTest,
    OneRunCertificate,
)
from dpaudit.certificates.result import AuditResult, CanaryGuesses
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
    "of guesses was fixed before the run: a number that the scores choose raises the "
    "probability of a false alarm, in one example from 10 to 18.5 %"
)
# Shares of α of the two numbers of guesses (of wrong guesses about independent canaries) that are
# tested if the user gives none. They and their sides are fixed before any run.
SHARES = (0.8, 0.2)


def guess_numbers(canaries: int) -> tuple[int, int]:
    """Return the two numbers of guesses to test if the user gives none, each with its share of α
    (`SHARES`)."""
    return max(1, canaries // 10), canaries


def wrong_numbers(canaries: int) -> tuple[int, int]:
    """Return the two numbers of wrong guesses to test, for independent canaries. The first bounds ε
    by at most log(25); the second can show a larger ε."""
    return canaries // 50, 0


def audit_guesses(
    counts: Sequence[Guesses],
    claim: PrivacyClaim,
    *,
    confidence: float = DEFAULTS["confidence"],
    name: str = "one run",
    source: str = "guesses about canaries",
    has_blanks: bool = False,
    independent: bool = False,
    scores: CanaryScores | None = None,
    warnings: tuple[str, ...] = (),
) -> AuditResult:
    """Return the result of an audit of one run, from guesses about its canaries. Raise UsageError
    for more than `MAX_GUESSES` guesses, and for a claim that guesses cannot test.

    counts: numbers of canaries, guesses and correct guesses. One item, or two that share the error
        probability, for the numbers of `guess_numbers` or `wrong_numbers`.
    name, source: name of the audit and origin of the guesses, for reports.
    has_blanks: whether the file of guesses has canaries without a guess. If δ > 0, the result then
        has a warning, since the number of guesses may depend on the output of the run.
    independent: whether to assume that what the run reveals about a canary is independent of the
        others. If true, the numbers of wrong guesses must be those of `wrong_numbers`.
    scores: the scores from which the guesses were made.
    warnings: reasons to doubt the coin tosses.
    """
    start, alpha = time.perf_counter(), 1 - confidence
    verify(claim=claim, confidence=confidence)
    guesses = counts[-1]
    _check(guesses, claim)
    certificate = certify_guesses(counts, claim, alpha, independent)
    if certificate.leading.method == "point" and len(claim.points()) > 1:
        warnings += (_ONE_POINT,)
    if has_blanks and certificate.fixes_guesses:
        blank = _BLANK.format(blank=guesses.canaries - guesses.guesses, all=guesses.canaries)
        warnings += (blank,)
    return AuditResult(
        name=name,
        claim=claim,
        target=source,
        confidence=confidence,
        seed=0,
        ending=CanaryGuesses((replace(certificate, scores=scores, warnings=warnings),)),
        seconds=time.perf_counter() - start,
        versions=versions(),
        underpowered=_guessed_too_few(counts, claim, alpha, independent),
    )


def certify_guesses(
    counts: Sequence[Guesses], claim: PrivacyClaim, alpha: float, independent: bool = False
) -> OneRunCertificate:
    """Compute p-value and bounds from counts of guesses, and return the certificate (docs/method.md
    §12).

    counts: one item, or one for each of `SHARES`.
    independent: whether the canaries are assumed to be independent.
    """
    point = claim.point()
    bounds, mu_of = point_bounds, mu_lower
    if independent:
        bounds, mu_of = independent_bounds, independent_mu_lower
    tests, epsilons, deltas, mus, detectable = [], [], [], [], []
    for guesses, share in _shared(counts):
        level = share * alpha
        test = _test(guesses, claim, level, independent)
        tests.append(
            GuessTest(guesses.guesses, guesses.correct, share, test.method, test.p_value(guesses))
        )
        epsilon, delta = bounds(guesses, point.epsilon, point.delta, level)
        epsilons.append(epsilon)
        deltas.append(delta)
        if len(claim.points()) > 1:
            mus.append(mu_of(guesses, level))
        detectable.append(_detectable(guesses, test, level, point.epsilon))
    # p rises with each parameter, so the largest bound of a test is where p = alpha.
    p = min(1.0, *(test.p_value / test.share for test in tests))
    return OneRunCertificate(
        pair=_PAIR,
        point=point,
        refuted=p <= alpha,
        canaries=counts[0].canaries,
        tests=tuple(tests),
        alpha=alpha,
        epsilon_lower=max(epsilons),
        delta_lower=max(deltas),
        p_value=p,
        detectable_epsilon=min(detectable),
        mu_lower=max(mus, default=None),
    )


@dataclass(frozen=True, slots=True)
class _Test:
    """A test of a claim by counts of guesses."""

    method: GuessMethod
    p_value: Callable[[Guesses], float]
    refutes: Callable[[Guesses, float], bool]


def _shared(counts: Sequence[Guesses]) -> tuple[tuple[Guesses, float], ...]:
    return tuple(zip(counts, SHARES if len(counts) > 1 else (1.0,), strict=True))


def _test(guesses: Guesses, claim: PrivacyClaim, level: float, independent: bool) -> _Test:
    """Return the test that needs fewer right guesses to refute the claim at `level`."""
    # The tests of one point (ε, δ) and of the whole claim are compared. `guesses.correct` is not
    # used, so that the scores do not choose the test. For a claim with a single point, the test of
    # this point cannot be improved, since some mechanism attains its p-value.
    point = claim.point()
    by_point = partial(one_run.p_value, epsilon=point.epsilon, delta=point.delta)
    tests = [_Test("point", by_point, lambda g, alpha: by_point(g) <= alpha)]
    if independent or len(claim.points()) > 1:
        smallest = smallest_probability(claim)
    if independent:
        p_value = partial(independent_p_value, smallest=smallest)
        return _Test("independent", p_value, lambda g, alpha: p_value(g) <= alpha)
    if len(claim.points()) > 1:
        p_value = partial(tradeoff_p_value, smallest=smallest)
        refutes = partial(one_run_tradeoff.refutes, smallest=smallest)
        tests.insert(0, _Test("tradeoff", p_value, lambda g, alpha: refutes(g, alpha=alpha)))
        return min(tests, key=lambda test: _needed(guesses, test, level))
    return tests[0]


def _needed(guesses: Guesses, test: _Test, level: float) -> int:
    return one_run.fewest_correct(guesses, lambda g: test.refutes(g, level))


def _detectable(guesses: Guesses, test: _Test, level: float, epsilon: float) -> float:
    return one_run.smallest_detectable(guesses, _needed(guesses, test, level), epsilon)


def point_bounds(seen: Guesses, epsilon: float, delta: float, alpha: float) -> tuple[float, float]:
    """Return (lower bound for ε at `delta`, lower bound for δ at `epsilon`) from guesses about
    canaries, by docs/method.md (12.1). Each has error probability `alpha`."""
    return one_run.epsilon_lower(seen, delta, alpha), one_run.delta_lower(seen, epsilon, alpha)


def _check(guesses: Guesses, claim: PrivacyClaim) -> None:
    """Raise UsageError for too many guesses, and for a claim that guesses cannot test."""
    chosen = ", and choose their canaries without looking at the guesses"
    for count, limit, noun, how in (
        (guesses.guesses, one_run.MAX_GUESSES, "guesses", chosen),
        (guesses.canaries, one_run.MAX_CANARIES, "canaries", ""),
    ):
        if count > limit:
            written = f"{count:,}" if count < 10**18 else f"{Decimal(count):.3g}"
            why = f"{written} {noun} are more than can be counted exactly; give at most {limit:,}"
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
    counts: Sequence[Guesses], claim: PrivacyClaim, alpha: float, independent: bool
) -> str | None:
    """Return a message if the guesses could not refute the claim even if all were right."""
    parts = _shared(counts)
    guesses, share = parts[-1]

    def refutes(best: Guesses, share: float) -> bool:
        level = share * alpha
        return _test(best, claim, level, independent).refutes(best, level)

    def at_best(count: int) -> bool:
        if independent:  # all scores of included canaries, about half, are the highest
            return refutes(Guesses(count, count // 2, count // 2), share)
        return refutes(Guesses(max(guesses.canaries, count), count, count), share)

    number = guesses.canaries if independent else guesses.guesses
    best = [replace(part, correct=part.guesses) for part, _ in parts]
    if independent:
        best = [
            Guesses(number, number // 2 + wrong, number // 2) for wrong in wrong_numbers(number)
        ]
    if any(refutes(part, part_share) for part, (_, part_share) in zip(best, parts, strict=True)):
        return None
    enough = number + 1
    while enough <= one_run.MAX_GUESSES and not at_best(enough):
        enough *= 2
    remedy = ", and no number could"
    if enough <= one_run.MAX_GUESSES:
        candidates = range(max(number + 1, enough // 2), enough)
        enough = candidates.start + bisect_left(candidates, True, key=at_best)
        about = f" about {enough:,} canaries" if enough > guesses.canaries else ""
        remedy = f"; at least {enough:,}{'' if independent else f' guesses{about}'} could"
    words = point_words(claim.point()) if len(claim.points()) == 1 else claim.describe()
    if independent:
        how = "even if the included ones have the highest scores"
        return f"{number:,} independent canaries cannot refute {words} {how}{remedy}"
    return f"{counted(number, 'guess')} cannot refute {words} even if all are right{remedy}"
