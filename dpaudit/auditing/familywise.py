"""Audits with one error probability together: their shares of it, and Holm's verdicts at the end
(docs/method.md §9)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import AuditResult, Failed, Family, Verdict
from dpaudit.errors import Name, UsageError
from dpaudit.stats.p_values import holm_levels


def together(specs: Sequence[AuditSpec], name: str) -> list[AuditSpec]:
    """Return audits that are a family, each with an equal share of the error probability.

    An audit that stops early does so at its share: a p-value that has just reached the level of all
    is too large for Holm's procedure. name: of the family. Raises UsageError where there is no one
    confidence, or not enough left for each.
    """
    drawn = [spec for spec in specs if not spec.exact]
    confidences = sorted({spec.confidence for spec in drawn})
    if len(confidences) > 1:
        listed = " and ".join(map(str, confidences[:2]))
        why = f"={listed}: audits that share an error probability (familywise) have one confidence"
        raise UsageError(Name("confidence"), why, "; give it in defaults")
    if not drawn:
        return list(specs)
    all_of_them, size = confidences[0], len(drawn)
    own = share_of(all_of_them, size)
    if own >= 1:
        why = f"={all_of_them} leaves none of {size:,} audits (familywise) a share of the error"
        raise UsageError(Name("confidence"), why, " probability; give less confidence")
    family = Family(name, size, all_of_them, 1 - own)
    return [spec if spec.exact else _shared(spec, own, family) for spec in specs]


def share_of(confidence: float, size: int) -> float:
    """Return the confidence of one of so many audits: what an equal share leaves, rounded up.

    >>> share_of(0.95, 5)
    0.99
    """
    own = 1 - (1 - confidence) / size
    while size * (1 - own) > 1 - confidence:
        own = math.nextafter(own, 1.0)
    return own


def is_open(result: AuditResult) -> bool:
    """Return whether what other audits show may still refute the claim."""
    family = result.family
    is_small = family is not None and result.p_value <= 1 - family.confidence
    return is_small and result.verdict is Verdict.NO_VIOLATION_FOUND


def settled(results: Sequence[AuditResult]) -> list[AuditResult]:
    """Return results with the levels of Holm's procedure, each family by itself: once they all are
    there. Of audits that are missing, because they were not selected, nothing is refuted.
    """
    found = list(results)
    for family in {one.family.name: one.family for one in results if one.family}.values():
        own = [
            place
            for place, one in enumerate(results)
            if one.family is not None and one.family.name == family.name
        ]
        p_values = [_p_value(results[place]) for place in own]
        reached = holm_levels(p_values, 1 - family.confidence, family.size)
        for place, level in zip(own, reached, strict=True):
            found[place] = _settled(results[place], family, level)
    return found


def unsettled(results: Sequence[AuditResult]) -> list[AuditResult]:
    """Return results as they are while audits are missing: each has its share, and no more."""
    return [
        one if one.family is None else _settled(one, one.family, 1 - one.confidence)
        for one in results
    ]


def _p_value(result: AuditResult) -> float:
    """Return the p-value for Holm's procedure; what is refuted by its share alone comes first, and
    an ERROR refutes nothing."""
    if isinstance(result.ending, Failed):
        return 1.0
    return 0.0 if result.is_refuted_alone else result.p_value


def _settled(result: AuditResult, family: Family, level: float) -> AuditResult:
    alone = 1 - result.confidence
    # What its share refutes stays refuted at its share, which says more.
    own = replace(family, level=alone if result.is_refuted_alone else max(alone, level))
    now = replace(result, family=own)
    return replace(now, underpowered=None) if now.verdict is Verdict.VIOLATION else now


def _shared(spec: AuditSpec, own: float, family: Family) -> AuditSpec:
    request = spec.request
    if request is not None:  # as it is to be repeated, without the other audits
        request = {**request, "settings": {**request["settings"], "confidence": own}}
    return replace(spec, confidence=own, family=family, request=request)
