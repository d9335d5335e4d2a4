"""Runs audits one after the other; what goes wrong in one is that one's outcome."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpaudit.auditing.result import AuditResult, Verdict
from dpaudit.auditing.spec import AuditSpec
from dpaudit.cli import exit_codes
from dpaudit.cli.group import describe_error, print_traceback
from dpaudit.cli.progress import make_display
from dpaudit.errors import DpauditError


@dataclass(frozen=True, slots=True)
class Outcome:
    """One audit of a batch: what came out, and the exit code that it earns by itself."""

    result: AuditResult
    code: int


def run_batch(
    specs: Sequence[AuditSpec], *, quiet: bool = False, debug: bool = False
) -> Iterator[Outcome]:
    """Yield an outcome for every audit, in order, as soon as it is there.

    debug: print the traceback of an audit that could not be run.
    """
    for number, spec in enumerate(specs, start=1):
        place = f"{number} of {len(specs)}" if len(specs) > 1 else ""
        yield _outcome(spec, place, quiet, debug)


def _outcome(spec: AuditSpec, place: str, quiet: bool, debug: bool) -> Outcome:
    start = time.monotonic()
    try:
        result = run_one(spec, place, quiet=quiet)
    except Exception as error:  # noqa: BLE001  # one audit must not lose the others
        if debug:
            print_traceback(error)
        return _not_run(spec, error, time.monotonic() - start)
    return Outcome(result, exit_codes.of_result(result))


def run_one(spec: AuditSpec, place: str = "", *, quiet: bool = False) -> AuditResult:
    """Return the result of one audit, its progress shown meanwhile. Raises what the engine does."""
    from dpaudit.auditing.engine import run_audit

    display = make_display(spec, place, quiet=quiet)
    try:
        return run_audit(spec, display.update)
    finally:
        display.close()


def _not_run(spec: AuditSpec, error: Exception, seconds: float) -> Outcome:
    message = describe_error(error).removeprefix("error: ")
    result = AuditResult(
        name=spec.name,
        verdict=Verdict.ERROR,
        claim=spec.tested,
        target=spec.target.describe(),
        confidence=spec.confidence,
        seed=spec.seed,
        certificates=(),
        seconds=seconds,
        versions={"python": sys.version.split()[0]},
        expect=spec.expect,
        error=message,
    )
    code = error.exit_code if isinstance(error, DpauditError) else exit_codes.FAILURE
    return Outcome(result, code)
