"""Families of audits with one false-alarm probability, by Holm's procedure (docs/method.md §9).

Each audit has an equal share, with which it may refute its claim alone. Once all have ended, the
p-values of the others may add refutations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import AuditResult, Failed, Family, Verdict
from dpaudit.errors import Name, UsageError
from dpaudit.stats.p_values import holm_levels


def together(specs: Sequence[AuditSpec], name: str) -> list[AuditSpec]:
    """Return audits as a family, each with an equal share of the false-alarm probability.

    An audit stops early at its share: a p-value just below the level of the family would be too
    large for Holm's procedure.

    name: of the family. Raises UsageError for audits of different confidence, and for shares that
    are too small for a float.
    """
    drawn = [spec for spec in specs if not spec.exact]
    confidences = sorted({spec.confidence for spec in drawn})
    if len(confidences) > 1:
        listed = " and ".join(map(str, confidences[:2]))
        why = f"={listed}: audits that share an error probability (familywise) have one confidence"
        raise UsageError(Name("confidence"), why, "; give it in defaults", code="options-conflict")
    if not drawn:
        return list(specs)
    all_of_them, size = confidences[0], len(drawn)
    own = share_of(all_of_them, size)
    if own >= 1:
        why = f"={all_of_them} leaves none of {size:,} audits (familywise) a share of the error"
        raise UsageError(
            Name("confidence"), why, " probability; give less confidence", code="option-invalid"
        )
    family = Family(name, size, all_of_them, 1 - own)
    return [spec if spec.exact else _shared(spec, own, family) for spec in specs]


def share_of(confidence: float, size: int) -> float:
    """Return the confidence of one audit of a family of this size, rounded up.

    >>> share_of(0.95, 5)
    0.99
    """
    own = 1 - (1 - confidence) / size
    while size * (1 - own) > 1 - confidence:
        own = math.nextafter(own, 1.0)
    return own


def is_open(result: AuditResult) -> bool:
    """Return whether the results of other audits of the family may still refute the claim."""
    family = result.family
    is_small = family is not None and result.p_value <= 1 - family.confidence
    return is_small and result.verdict is Verdict.NO_VIOLATION_FOUND


def settled(results: Sequence[AuditResult]) -> list[AuditResult]:
    """Return results with the levels of Holm's procedure, for each family, once all audits have
    ended. An audit that was not selected refutes nothing.
    """
    final = list(results)
    for family in {one.family.name: one.family for one in results if one.family}.values():
        own = [
            place
            for place, one in enumerate(results)
            if one.family is not None and one.family.name == family.name
        ]
        p_values = [_p_value(results[place]) for place in own]
        reached = holm_levels(p_values, 1 - family.confidence, family.size)
        for place, level in zip(own, reached, strict=True):
            final[place] = _settled(results[place], family, level)
    return final


def unsettled(results: Sequence[AuditResult]) -> list[AuditResult]:
    """Return results while audits are missing: each may refute its claim at its share alone."""
    return [
        one if one.family is None else _settled(one, one.family, 1 - one.confidence)
        for one in results
    ]


def _p_value(result: AuditResult) -> float:
    """Return the p-value for Holm's procedure: 0 if refuted at its share, 1 for an ERROR."""
    if isinstance(result.ending, Failed):
        return 1.0
    return 0.0 if result.is_refuted_alone else result.p_value


def _settled(result: AuditResult, family: Family, level: float) -> AuditResult:
    alone = 1 - result.confidence
    # A claim refuted at its share keeps that level, which says more.
    own = replace(family, level=alone if result.is_refuted_alone else max(alone, level))
    now = replace(result, family=own)
    return replace(now, underpowered=None) if now.verdict is Verdict.VIOLATION else now


def _shared(spec: AuditSpec, own: float, family: Family) -> AuditSpec:
    request = spec.request
    if request is not None:  # it repeats this audit alone
        request = {**request, "settings": {**request["settings"], "confidence": own}}
    return replace(spec, confidence=own, family=family, request=request)
