"""Result files as a forger writes them: changed, with the digest that fits."""

from __future__ import annotations

import json
from typing import Any

from dpaudit.reports.json import _canonical, _digest


def forged(document: dict[str, Any]) -> str:
    """Return a result file of changed audits, whose count and digest are theirs."""
    audits = document["audits"]
    digest = _digest([_canonical(audit) for audit in audits])
    return json.dumps({**document, "count": len(audits), "digest": digest})
