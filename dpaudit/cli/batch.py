"""Runs audits one after the other. An error in one audit is the result of that audit."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from importlib import import_module

import click

from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import AuditResult, Failed, Progress
from dpaudit.cli import exit_codes
from dpaudit.cli.group import describe_error, exit_code, print_traceback
from dpaudit.cli.messages import folded
from dpaudit.cli.output import make_display
from dpaudit.cli.process import parent as watching
from dpaudit.cli.process import undisturbed
from dpaudit.cli.process.ending import Requests, heeded, kept_from_leaving
from dpaudit.cli.process.streams import kept
from dpaudit.errors import MechanismError, code_of
from dpaudit.processes.origin import words
from dpaudit.wording import visible


@contextmanager
def auditing() -> Iterator[Requests]:
    """Turn signals that ask the program to end into exceptions while audits run."""
    # Imported before signals raise exceptions, since an exception may break an import.
    with undisturbed():
        import_module("dpaudit.auditing.engine")
    from dpaudit.sampling.executors.new_processes import NewProcesses, compared_with

    watching.end_with_parent()
    with (
        heeded() as requests,
        closing(NewProcesses()) as processes,
        compared_with(processes),
    ):
        yield requests


def run_batch(
    specs: Sequence[AuditSpec], requests: Requests, *, quiet: bool, debug: bool, is_lone: bool
) -> Iterator[tuple[AuditResult, int]]:
    """Yield the result and the exit code of each audit, in order, when the audit has ended.

    requests: signals received so far; a signal ends the running audit.  debug: print the traceback
    of an audit that could not be run.  is_lone: raise the error of an audit that could not be run,
    in place of yielding it as a result.
    """
    for number, spec in enumerate(specs, start=1):
        place = f" ({number} of {len(specs)})" if len(specs) > 1 else ""
        start = time.monotonic()
        try:
            result = run_one(spec, requests, spec.name + place, quiet=quiet)
        except Exception as error:  # one audit must not lose the others
            if is_lone:
                raise
            if debug:
                print_traceback(error)
            yield _not_run(spec, error, start), exit_code(error)
        else:
            if debug and result.error_code is not None:
                line = f"debug: {spec.name} ended in error[{result.error_code}]"
                click.echo(folded(visible(line)), err=True)
            yield result, exit_codes.of_result(result)


def run_one(
    spec: AuditSpec,
    requests: Requests,
    title: str,
    *,
    quiet: bool,
    check: Callable[[Progress], None] = lambda progress: None,
) -> AuditResult:
    """Run one audit, show its progress, and return its result. Raises the errors of the engine.

    check: called at every progress report; an exception that it raises ends the audit.
    """
    from dpaudit.auditing.engine import run_audit
    from dpaudit.auditing.underpowered import foreseen

    # Before the first draw, since drawing may take hours. With -q, only the verdict says it.
    reason = None if spec.requirements.allow_underpowered or quiet else foreseen(spec)
    if reason is not None:
        click.echo(folded(visible(f"warning: {spec.name}: under-powered: {reason}")), err=True)
    display = make_display(spec, title, quiet=quiet)
    start = time.monotonic()
    watching.say(watching.AUDIT, title)

    def update(progress: Progress) -> None:
        requests.check()
        check(progress)
        display.update(progress)

    try:
        with kept(), kept_from_leaving():
            result = run_audit(spec, update)
    except MechanismError as error:
        return _not_run(spec, error, start)
    except BaseException as error:
        requests.check()  # the error may be a consequence of a signal
        if isinstance(error, Exception) or requests.explain(error):
            raise
        return _not_run(spec, _of_the_mechanism(error), start)
    finally:
        watching.say(watching.AUDIT, "")
        display.close()
    if result.command is None or result.seed == spec.sampling.seed:
        return result
    # A resumed audit has the seed of its journal.
    command = result.command.replace(f"--seed {spec.sampling.seed}", f"--seed {result.seed}")
    return replace(result, command=command)


def _of_the_mechanism(error: BaseException) -> MechanismError:
    """Return the error for an exception of the mechanism, such as SystemExit, that would end the
    program."""
    source = " (this was not Ctrl-C)" if isinstance(error, KeyboardInterrupt) else ""
    return MechanismError(
        f"the mechanism itself raised {words(error)}{source}, which is not an Exception and would "
        "end the program; raise an Exception, which counts as an outcome, or give isolate: true "
        "(--isolate): the end of the mechanism's process then counts as an outcome",
        code="mechanism-ends-process",
    )


def _not_run(spec: AuditSpec, error: Exception, start: float) -> AuditResult:
    """Return the result of an audit that ended in an error. start: its time.monotonic()."""
    return AuditResult(
        name=spec.name,
        claim=spec.tested,
        target=spec.target.describe(),
        confidence=spec.statistics.confidence,
        seed=spec.sampling.seed,
        ending=Failed(describe_error(error).removeprefix("error: "), code=code_of(error)),
        seconds=time.monotonic() - start,
        versions={"python": sys.version.split()[0]},
        expect=spec.requirements.expect,
        command=spec.origin.command,
        family=spec.statistics.family,
        strict=spec.requirements.strict,
    )
