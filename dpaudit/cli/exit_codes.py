"""Exit codes, and their precedence if the audits of a batch give different codes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dpaudit.errors import DpauditError, TrainingError, UsageError

if TYPE_CHECKING:
    from dpaudit.certificates.result import AuditResult

NOTHING_FOUND = 0
VIOLATION = 1
USAGE = UsageError.exit_code
FAILURE = DpauditError.exit_code
UNDERPOWERED = 4
NOTHING_MATCHED = 5
# Exit code of a program that a signal ended, minus the number of the signal.
SIGNALLED = 128
INTERRUPTED = 130
# 128 + SIGPIPE: the reader of the output has closed the pipe. Exit code 1 would mean "violation".
BROKEN_PIPE = 141

# The code of a batch is the first code in this list that one of its audits has.
_PRECEDENCE = (USAGE, FAILURE, VIOLATION, UNDERPOWERED, NOTHING_MATCHED, NOTHING_FOUND)


def of_result(result: AuditResult) -> int:
    """Return the exit code of a single audit."""
    # Imported here, since every command imports this module, and many commands need no results.
    from dpaudit.certificates.result import Verdict

    if result.verdict is Verdict.ERROR:
        # all codes of TrainingError begin with the word
        is_of_training = str(result.error_code).startswith(TrainingError.code)
        return TrainingError.exit_code if is_of_training else FAILURE
    if not result.meets_expectation or result.failing_warnings:
        return VIOLATION
    # An audit without the power to find anything does not pass.
    return NOTHING_FOUND if result.underpowered is None else UNDERPOWERED


def worst(codes: Iterable[int]) -> int:
    """Return the code of several audits together."""
    return min(codes, key=_PRECEDENCE.index, default=NOTHING_FOUND)
