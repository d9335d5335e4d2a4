"""Recompute a result from its evidence, for `dpaudit report`.

The class `Evidence` refuses evidence that contradicts itself. So `recheck` only compares the
evidence with the claim of the result, and computes the certificate again. Private generators yield
findings: (name, recorded value, recomputed value).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import chain
from typing import Any

from dpaudit.auditing.canary_scores import rate_of
from dpaudit.auditing.exact_pmf import certify_laws
from dpaudit.auditing.exact_tests import several_points
from dpaudit.auditing.familywise import settled, share_of, unsettled
from dpaudit.auditing.schedule import limits_for
from dpaudit.auditing.single_run import certify_guesses, guess_numbers, wrong_numbers
from dpaudit.certificates.canary_certificate import OneRunCertificate
from dpaudit.certificates.certificate import Certificate, ExactCertificate
from dpaudit.certificates.certify import certify
from dpaudit.certificates.evidence import Evidence
from dpaudit.certificates.result import AuditResult, Family, Interrupted, Verdict
from dpaudit.certificates.wealth import first_refuted
from dpaudit.claims import PrivacyClaim, compose, group
from dpaudit.levels.portfolio import OTHER_SHARE, RARE_SHARE
from dpaudit.stats.one_run import Guesses

# Two numbers count as equal up to this relative difference: versions of the libraries round
# differently.
_RELATIVE_TOLERANCE = 1e-6

# Fields that do not follow from the counts.
_REMARKS = ("pair", "warnings", "adjacency", "notes", "redrawn")
# Further such fields of a certificate of draws.
_OF_THE_RUN = (
    *("evidence", "attacks", "scores", "ignored"),
    *("failures", "first_failures", "reproducible"),
)

Finding = tuple[str, Any, Any]


def recheck(result: AuditResult) -> list[str]:
    """Return a sentence for each value of a result that does not follow from its recorded counts.
    Return none if the verdict is ERROR.

    This cannot show that the counts come from draws.
    """
    if result.verdict is Verdict.ERROR:
        return []
    return [
        f"{name}: recorded {recorded!r}, recomputed {computed!r}"
        for name, recorded, computed in chain(
            _of_pairs(result), _of_claims(result), _of_request(result)
        )
        if not _agree(recorded, computed)
    ]


def recheck_families(results: Sequence[AuditResult], *, has_ended: bool) -> list[str]:
    """Return a sentence for each contradiction in the records of families of audits (docs/method.md
    §9), such as a level that does not follow from the p-values by Holm's procedure.

    has_ended: whether all audits have ended. If not, each level must be an equal share of the
        family's false-alarm probability.
    """
    members = [(result, result.family) for result in results if result.family is not None]
    families: dict[str, list[Family]] = {}
    for _, family in members:
        families.setdefault(family.name, []).append(family)
    findings = [
        f"{name}: its audits do not agree on how many they are, and how sure"
        for name, records in families.items()
        if len({(family.size, family.confidence) for family in records}) > 1
        or len(records) > records[0].size
    ]
    names = Counter((family.name, result.name) for result, family in members)
    findings += [
        f"{family_name}: the audit {name!r} stands {times} times in it, and counts once"
        for (family_name, name), times in names.items()
        if times > 1
    ]
    findings += [
        f"{result.name}: chance has no part in it, so that it shares no error probability"
        for result, _ in members
        if not result.ending.by_chance
    ]
    if findings:
        return findings
    expected = settled(results) if has_ended else unsettled(results)
    for recorded, computed in zip(results, expected, strict=True):
        if recorded.family is None or computed.family is None:
            continue
        own_share = share_of(recorded.family.confidence, recorded.family.size)
        for name, *values in (
            ("level of Holm's procedure", recorded.family.level, computed.family.level),
            ("confidence of its share", recorded.confidence, own_share),
        ):
            if not _agree(*values):
                difference = "recorded {!r}, recomputed {!r}".format(*values)
                findings.append(f"{recorded.name}: {name}: {difference}")
    return findings


def _of_pairs(result: AuditResult) -> Iterator[Finding]:
    for record in result.by_pair:
        if isinstance(record, OneRunCertificate):
            findings = _one_run(result, record)
        elif isinstance(record, ExactCertificate):
            findings = _exact(result, record)
        else:
            findings = _certificate(result, record)
        for name, *values in findings:
            yield f"{record.pair}: {name}", *values


def _one_run(result: AuditResult, record: OneRunCertificate) -> Iterator[Finding]:
    try:
        yield from _compared("", record, _guessed(result, record))
    except (ValueError, TypeError) as error:
        yield "the record", f"cannot be recomputed ({error})", None


def _guessed(result: AuditResult, record: OneRunCertificate) -> OneRunCertificate:
    """Return the certificate that follows from the recorded counts of guesses."""
    n, tests, independent = record.canaries, record.tests, record.is_independent
    numbers = [test.guesses for test in tests]
    if independent:
        pairs = zip(tests, wrong_numbers(n), strict=True)
        numbers = [test.correct + wrong for test, wrong in pairs]
    elif len(tests) > 1:
        numbers = list(guess_numbers(n))
    counts = [Guesses(n, number, test.correct) for number, test in zip(numbers, tests, strict=True)]
    computed = certify_guesses(counts, result.claim, 1 - result.confidence, independent)
    if record.scores is None:
        return computed
    total, level = record.scores.included, 1 - result.confidence
    rates = tuple(
        rate_of(rate.false_positives, (rate.above, rate.fewest, rate.most), total, level)
        for rate in record.scores.rates
    )
    included, excluded = (sum(column) for column in zip(*record.scores.histogram, strict=True))
    scores = replace(record.scores, included=included, excluded=excluded, rates=rates)
    return replace(computed, canaries=included + excluded, scores=scores)


def _of_claims(result: AuditResult) -> Iterator[Finding]:
    """Yield findings about the tested claim of an audit of several runs or several records."""
    one_run = result.claim
    if result.repeated is not None:
        one_run = result.repeated.claim
        claim = compose([one_run] * result.repeated.times)
        yield "the claim for all runs", result.claim, claim
    if result.grouped is not None:
        claim = group(result.grouped.claim, result.grouped.size)
        yield "the claim for all records", one_run, claim


def _of_request(result: AuditResult) -> Iterator[Finding]:
    """Yield findings about values that a result has both as a field and in its request."""
    settings = (result.request or {}).get("settings")
    if not isinstance(settings, Mapping):
        return
    yield "name", result.name, settings.get("name")
    yield "expect", result.expect, settings.get("expect")
    for record in result.by_pair:
        if isinstance(record, Certificate) and record.evidence.limits is not None:
            is_searched = result.searched is not None
            for name, *values in _of_settings(settings, record.evidence, is_searched=is_searched):
                yield f"{record.pair}: {name}", *values


def _of_settings(
    settings: Mapping[str, Any], evidence: Evidence, *, is_searched: bool
) -> Iterator[Finding]:
    """Yield findings from a comparison of the evidence with the settings of the audit."""
    budget, samples = evidence.budget, settings.get("samples")
    yield "evidence.by_clock", evidence.by_clock, settings.get("time") is not None
    if isinstance(samples, int | float) and not evidence.by_clock:
        # A search takes its own draws from the number that was asked for.
        yield "evidence.budget", budget, min(budget, samples) if is_searched else samples
    if evidence.illustration is None and evidence.method != "probabilistic":
        yield "evidence.method", evidence.method, settings.get("bound", "game")


def _compared(name: str, recorded: Any, computed: Any) -> Iterator[Finding]:
    """Yield a finding for each value in two records, whether the values are equal or not."""
    if is_dataclass(recorded) and type(recorded) is type(computed):
        left_out = (*_REMARKS, *_OF_THE_RUN) if isinstance(recorded, Certificate) else _REMARKS
        for part in (field.name for field in fields(recorded) if field.name not in left_out):
            path = f"{name}.{part}" if name else part
            yield from _compared(path, getattr(recorded, part), getattr(computed, part))
    elif isinstance(recorded, tuple) and isinstance(computed, tuple):
        yield f"length of {name}", len(recorded), len(computed)
        for index, items in enumerate(zip(recorded, computed, strict=False)):
            yield from _compared(f"{name}[{index}]", *items)
    else:
        yield name, recorded, computed


def _exact(result: AuditResult, record: ExactCertificate) -> Iterator[Finding]:
    yield "sum of the law of d1", 1.0, math.fsum(p for _, p, _ in record.law)
    yield "sum of the law of d2", 1.0, math.fsum(q for _, _, q in record.law)
    yield from _compared("", record, certify_laws(result.claim, record.pair, record.law))


def _certificate(result: AuditResult, record: Certificate) -> Iterator[Finding]:
    evidence = record.evidence
    try:
        yield from _of_claim(result.claim, evidence)
        alpha = (1 - result.confidence) / _pairs(result)
        yield "evidence.alpha", evidence.alpha, alpha
        yield "evidence.confidence", evidence.confidence, result.confidence
        yield from _shares(evidence)
        yield from _compared("", record, certify(evidence))
        yield from _refutation(evidence, record)
    except (ValueError, ArithmeticError, LookupError, TypeError, RuntimeError) as error:
        yield "the record", f"cannot be recomputed ({error})", None


def _pairs(result: AuditResult) -> int:
    """Return the number of pairs that share the error probability of the audit."""
    ending = result.ending
    return ending.pairs if isinstance(ending, Interrupted) else max(1, len(result.certificates))


def _of_claim(claim: PrivacyClaim, evidence: Evidence) -> Iterator[Finding]:
    """Yield findings from a comparison of the evidence with the tested claim."""
    points = (rule.point or evidence.point for rule in evidence.rules)
    for point in (evidence.point, *points):
        # Libraries of different versions round differently.
        is_implied = claim.profile(point.epsilon) <= point.delta * (1 + _RELATIVE_TOLERANCE)
        yield f"the claim implies (ε, δ) = ({point.epsilon:g}, {point.delta:g})", True, is_implied
    yield "points of the claim", evidence.points, several_points(claim)
    yield "divergences of the claim", evidence.divergences, tuple(claim.divergences())
    is_counted = evidence.method == "probabilistic"
    yield "single outputs are counted", is_counted, is_counted and claim.counts_single_outputs
    limits = evidence.limits
    if limits is not None:
        usual = [
            limits_for(1, single_draws=is_single, by_outputs=claim.counts_single_outputs)
            for is_single in (False, True)
        ]
        # Only single draws have small confirmations, and their blocks are small, too.
        sizes = {choice.confirming for choice in usual if limits.block <= choice.block}
        yield "size of a confirmation", limits.confirming in sizes, True


def _shares(evidence: Evidence) -> Iterator[Finding]:
    """Yield findings about the shares of the rules, which follow from their kinds."""
    kinds = [rule.kind for rule in evidence.rules]
    shares = {"rare": RARE_SHARE, "other": OTHER_SHARE}
    main = 1 - sum(shares[kind] for kind in kinds if kind != "main")
    for rule in evidence.rules:
        share = shares.get(rule.kind, main) if len(kinds) > 1 else 1.0
        yield f"share of the {rule.kind} rule", rule.share, share


def _refutation(evidence: Evidence, record: Certificate) -> Iterator[Finding]:
    """Yield findings about the number of draws after which bets refuted the claim."""
    recorded, bets = evidence.refuted_after, record.divergence_bets
    refuted = None
    if evidence.betting_share:
        refuted = first_refuted(
            evidence.point, record.alpha_betting, evidence.rounds, evidence.blocks
        )
    if bets is not None and bets.wealth * bets.alpha >= 1:
        # Bets against a divergence record no counts of a moment, so they may have refuted sooner.
        is_sooner = recorded is not None and (refuted is None or recorded <= refuted)
        yield "draws to the refutation", is_sooner, True
    else:
        yield "draws to the refutation", recorded, refuted
    yield (
        "stage after a refutation",
        evidence.stage in ("confirmation", "betting"),
        (evidence.stage in ("confirmation", "betting") and recorded is not None),
    )


def _agree(recorded: Any, computed: Any) -> bool:
    """Return whether two values are equal up to rounding: relative 1e-6, or absolute 1e-12."""
    if isinstance(recorded, float) and isinstance(computed, float):
        return math.isclose(recorded, computed, rel_tol=_RELATIVE_TOLERANCE, abs_tol=1e-12)
    return bool(recorded == computed)
