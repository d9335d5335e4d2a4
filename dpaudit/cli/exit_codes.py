"""Define the exit codes, and choose the code of a batch whose audits give different codes."""

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
# A program that was ended by signal N has the exit code `SIGNALLED + N`, as in a shell.
SIGNALLED = 128
INTERRUPTED = 130
# 128 + 13 (SIGPIPE), if the program that reads the output has closed the pipe. Python's own exit
# code 1 would look like a violation.
BROKEN_PIPE = 141

# Exit codes from the first to report to the last. A batch exits with the first code of this list
# that one of its audits has.
_PRECEDENCE = (USAGE, FAILURE, VIOLATION, UNDERPOWERED, NOTHING_MATCHED, NOTHING_FOUND)


def of_result(result: AuditResult) -> int:
    """Return the exit code of a command that ran a single audit, from the result of this audit."""
    # Imported inside the function: every command imports this module, and many of them never need
    # results.
    from dpaudit.certificates.result import Verdict

    if result.verdict is Verdict.ERROR:
        # All codes of TrainingError begin with the code of the class.
        is_of_training = str(result.error_code).startswith(TrainingError.code)
        return TrainingError.exit_code if is_of_training else FAILURE
    if not result.meets_expectation or result.failing_warnings:
        return VIOLATION
    # An under-powered audit could not have found the leak that the user asked about, so it does not
    # pass.
    return NOTHING_FOUND if result.underpowered is None else UNDERPOWERED


def worst(codes: Iterable[int]) -> int:
    """Return the exit code of a command that ran several audits: of their `codes`, the one that
    comes first in `_PRECEDENCE`. Return 0 if there are no audits."""
    return min(codes, key=_PRECEDENCE.index, default=NOTHING_FOUND)
