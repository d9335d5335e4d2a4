"""Exit codes, and which one wins when a batch earns several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dpaudit.errors import DpauditError, UsageError

if TYPE_CHECKING:
    from dpaudit.certificates.result import AuditResult

NOTHING_FOUND = 0
VIOLATION = 1
USAGE = UsageError.exit_code
FAILURE = DpauditError.exit_code
UNDERPOWERED = 4
NOTHING_MATCHED = 5
# Plus the number of the signal.
SIGNALLED = 128
INTERRUPTED = 130
# 128 + SIGPIPE: whoever read the output has gone; 1 would say "violation".
BROKEN_PIPE = 141

# The first of these that occurs is the code of the whole.
_PRECEDENCE = (USAGE, FAILURE, VIOLATION, UNDERPOWERED, NOTHING_MATCHED, NOTHING_FOUND)


def of_result(result: AuditResult) -> int:
    """Return the code that one audit earns by itself."""
    # Here, since every command imports this module.
    from dpaudit.certificates.result import Verdict

    if result.verdict is Verdict.ERROR:
        return FAILURE
    if not result.meets_expectation or result.failing_warnings:
        return VIOLATION
    # Nothing found by an audit that could not have found anything is no pass.
    return NOTHING_FOUND if result.underpowered is None else UNDERPOWERED


def worst(codes: Iterable[int]) -> int:
    """Return the code of several audits together."""
    return min(codes, key=_PRECEDENCE.index, default=NOTHING_FOUND)
