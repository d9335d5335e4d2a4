"""Results and result files as a forger makes them: changed, with the digest that fits."""

from __future__ import annotations

import json
from typing import Any

from dpaudit.certificates.certificate import ExactCertificate
from dpaudit.certificates.result import AuditResult, Exact
from dpaudit.reports.json import digest
from tests.specs import replace


def forged(document: dict[str, Any]) -> str:
    """Return a result file of changed audits, whose count and digest are theirs."""
    counted = {**document, "count": len(document["audits"])}
    return json.dumps({**counted, "digest": digest(counted)})


def with_certificates(result: AuditResult, *certificates: Any) -> AuditResult:
    """Return a result with other certificates; its verdict follows from them."""
    ending: Any = result.ending
    return replace(result, ending=replace(ending, certificates=certificates))


def laws_of(result: AuditResult) -> tuple[ExactCertificate, ...]:
    """Return the certificates of an exact audit."""
    assert isinstance(result.ending, Exact)
    return result.ending.certificates
