"""Families of audits that share one false-alarm probability (docs/method.md §9, "Familywise").

`together` gives each audit an equal share of α. An audit refutes its claim alone if its p-value is
at most this share. When all audits have ended, `settled` applies Holm's procedure to the p-values,
which may refute further claims. The level of an audit is the largest p-value with which its claim
is refuted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import (
    MAX_FAMILY,
    AuditResult,
    Failed,
    Family,
    Verdict,
)
from dpaudit.errors import Name, UsageError


def together(specs: Sequence[AuditSpec], name: str) -> list[AuditSpec]:
    """Return the audits as a family with this name. Each gets an equal share of the false-alarm
    probability; exact audits, which make no draws, are unchanged. An audit stops early only if its
    share suffices to refute, since Holm's procedure comes when all audits have ended.

    Raises UsageError if audits differ in confidence, if a share is too small for a float, and for
    more than 100,000 audits.
    """
    members = [spec for spec in specs if not spec.statistics.exact]
    confidences = sorted({spec.statistics.confidence for spec in members})
    if len(members) > MAX_FAMILY:
        why = f" is for at most {MAX_FAMILY:,} audits, here are {len(members):,}"
        raise UsageError(Name("familywise"), why, "; use several files", code="option-invalid")
    if len(confidences) > 1:
        listed = " and ".join(map(str, confidences[:2]))
        why = f"={listed}: audits that share an error probability (familywise) have one confidence"
        raise UsageError(Name("confidence"), why, "; give it in defaults", code="options-conflict")
    if not members:
        return list(specs)
    all_of_them, size = confidences[0], len(members)
    audit_confidence = share_of(all_of_them, size)
    if audit_confidence >= 1:
        why = f"={all_of_them} leaves none of {size:,} audits (familywise) a share of the error"
        remedy = " probability; give less confidence"
        raise UsageError(Name("confidence"), why, remedy, code="option-invalid")
    family = Family(name, size, all_of_them, 1 - audit_confidence)
    # Imported before any draw: a signal that interrupts the import would leave statsmodels half
    # loaded.
    _multipletests()
    return [
        spec if spec.statistics.exact else _shared(spec, audit_confidence, family) for spec in specs
    ]


def share_of(confidence: float, size: int) -> float:
    """Return the confidence of one audit of a family, rounded up: 1 - (1 - confidence) / size.

    >>> share_of(0.95, 5)
    0.99
    """
    audit_confidence = 1 - (1 - confidence) / size
    while size * (1 - audit_confidence) > 1 - confidence:
        audit_confidence = math.nextafter(audit_confidence, 1.0)
    return audit_confidence


def is_open(result: AuditResult) -> bool:
    """Return whether Holm's procedure may still refute the claim of an audit that does not refute
    it alone."""
    family = result.family
    is_small = family is not None and result.p_value <= 1 - family.confidence
    return is_small and result.verdict is Verdict.NO_VIOLATION_FOUND


def settled(results: Sequence[AuditResult]) -> list[AuditResult]:
    """Return the results after Holm's procedure was applied to each family. All audits must have
    ended; an audit that is missing in `results` counts as not refuted."""
    final = list(results)
    members: dict[str, list[tuple[int, Family]]] = {}
    for index, result in enumerate(results):
        if result.family is not None:
            members.setdefault(result.family.name, []).append((index, result.family))
    for audits in members.values():
        family = audits[-1][1]
        p_values = [_p_value(results[index]) for index, _ in audits]
        levels = holm_levels(p_values, 1 - family.confidence, family.size)
        for (index, _), level in zip(audits, levels, strict=True):
            final[index] = _settled(results[index], family, level)
    return final


def holm_levels(p_values: Sequence[float], alpha: float, size: int) -> list[float]:
    """Return the level of each p-value by Holm's procedure. In rising order of the p-values, the
    levels are alpha/size, alpha/(size-1), and so on up to the first hypothesis that is not
    rejected; all later ones get the same level.

    alpha: upper limit for the probability that any true hypothesis is rejected.
    size: number of all hypotheses, with or without a p-value.

    >>> [round(level, 4) for level in holm_levels([0.01, 0.04, 0.03], 0.05, 3)]
    [0.0167, 0.025, 0.025]
    """
    if not p_values:
        return []
    padded = [*p_values, *[1.0] * (size - len(p_values))]
    rejected = int(_multipletests()(padded, alpha, method="holm")[0].sum())
    levels = np.full(len(p_values), alpha / max(1, size - rejected))
    order = np.argsort(p_values, kind="stable")[:rejected]
    levels[order] = alpha / np.arange(size, size - rejected, -1)
    return levels.tolist()


def _multipletests() -> Callable[..., Any]:
    """Return the function `multipletests` of statsmodels."""
    # Imported at first use, since the import takes about as long as a short audit.
    from statsmodels.stats.multitest import multipletests

    return multipletests  # type: ignore[no-any-return]


def unsettled(results: Sequence[AuditResult]) -> list[AuditResult]:
    """Return the results with an equal share of α as the level of each audit, for families whose
    audits have not all ended."""
    return [
        result if result.family is None else _settled(result, result.family, 1 - result.confidence)
        for result in results
    ]


def _p_value(result: AuditResult) -> float:
    """Return the p-value of an audit for Holm's procedure."""
    if isinstance(result.ending, Failed):
        return 1.0
    return 0.0 if result.is_refuted_alone else result.p_value


def _settled(result: AuditResult, family: Family, level: float) -> AuditResult:
    alone = 1 - result.confidence
    # If the audit alone refutes the claim, its level stays its own share of the error probability:
    # the bounds were computed at this level, and the level of Holm's procedure may be larger.
    family = replace(family, level=alone if result.is_refuted_alone else max(alone, level))
    now = replace(result, family=family)
    return replace(now, underpowered=None) if now.verdict is Verdict.VIOLATION else now


def _shared(spec: AuditSpec, confidence: float, family: Family) -> AuditSpec:
    request = spec.origin.request
    if request is not None:  # the request has to repeat this audit alone
        request = {**request, "settings": {**request["settings"], "confidence": confidence}}
    statistics = replace(spec.statistics, confidence=confidence, family=family)
    return replace(spec, statistics=statistics, origin=replace(spec.origin, request=request))
