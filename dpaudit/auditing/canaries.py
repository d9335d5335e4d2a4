"""Audits of a single training run, from guesses about its canaries (docs/method.md §12).

A canary is a record that a fair coin included in the run or left out. An attacker guesses for some
canaries whether they were included. `audit_guesses` turns the numbers of guesses and of correct
guesses into an `AuditResult`; `dpaudit.api` and the command line call it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from decimal import Decimal

from dpaudit.auditing.engine import versions
from dpaudit.auditing.options import DEFAULTS, verify
from dpaudit.auditing.underpowered import guessed_too_few
from dpaudit.certificates.certificate import OneRunCertificate
from dpaudit.certificates.result import AuditResult, Canaries
from dpaudit.claims import PrivacyClaim
from dpaudit.errors import UsageError
from dpaudit.stats import one_run
from dpaudit.stats.one_run import Guesses

_PAIR = "each canary in or out, by its own fair coin"
_ONE_POINT = (
    "this claim is a curve, and only one point of it is tested: one run leaves no draws to choose "
    "a better point with"
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

    Returns
    -------
    AuditResult
        The result, with one certificate.

    Raises
    ------
    UsageError
        For more than `MOST_GUESSES` guesses, and for a claim that guesses cannot test.
    """
    start = time.perf_counter()
    verify(claim=claim, confidence=confidence)
    _check(seen, claim)
    certificate = certify_guesses(seen, claim, 1 - confidence)
    if has_blanks and certificate.point.delta > 0:
        warned = _BLANK.format(blank=seen.canaries - seen.guesses, all=seen.canaries)
        certificate = replace(certificate, warnings=(*certificate.warnings, warned))
    return AuditResult(
        name=name,
        claim=claim,
        target=source,
        confidence=confidence,
        seed=0,
        ending=Canaries((certificate,)),
        seconds=time.perf_counter() - start,
        versions=versions(),
        underpowered=guessed_too_few(seen, claim, confidence),
    )


def certify_guesses(seen: Guesses, claim: PrivacyClaim, alpha: float) -> OneRunCertificate:
    """Return the certificate, with p-value and bounds, for counts of guesses (docs/method.md §12).

    seen: numbers of canaries, guesses and correct guesses.  alpha: probability of a false alarm.
    """
    point = claim.point()
    p = one_run.p_value(seen, point.epsilon, point.delta)
    several = len(claim.points()) > 1
    return OneRunCertificate(
        pair=_PAIR,
        point=point,
        refuted=p <= alpha,
        canaries=seen.canaries,
        guesses=seen.guesses,
        correct=seen.correct,
        alpha=alpha,
        epsilon_lower=one_run.epsilon_lower(seen, point.delta, alpha),
        delta_lower=one_run.delta_lower(seen, point.epsilon, alpha),
        p_value=p,
        detectable_epsilon=one_run.smallest_detectable(seen, point.epsilon, point.delta, alpha),
        warnings=(_ONE_POINT,) if several else (),
    )


def _check(seen: Guesses, claim: PrivacyClaim) -> None:
    """Raise UsageError for too many guesses, and for a claim that guesses cannot test."""
    chosen = ", and choose their canaries without looking at the guesses"
    for count, most, noun, how in (
        (seen.guesses, one_run.MOST_GUESSES, "guesses", chosen),
        (seen.canaries, one_run.MOST_CANARIES, "canaries", ""),
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
