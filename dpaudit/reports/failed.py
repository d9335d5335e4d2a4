"""What an audit that did not end has shown, as lines of the text report."""

from __future__ import annotations

from dpaudit.certificates.result import AuditResult, Failed, Sampled
from dpaudit.reports import drawn


def said(result: AuditResult, ending: Failed) -> str:
    """Return what the headline says after the name."""
    return ending.error or "the audit did not end"


def found(result: AuditResult, ending: Failed, verbose: int) -> list[str]:
    """Return the rows of the pairs that were finished before."""
    done = ending.certificates
    return drawn.found(result, Sampled(done), verbose) if done else []


def meaning(result: AuditResult, ending: Failed, verbose: int) -> list[str]:
    """Return what the finished pairs mean for an attacker."""
    done = ending.certificates
    return drawn.meaning(result, Sampled(done), verbose) if done else []
