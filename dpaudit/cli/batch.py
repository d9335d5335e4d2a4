"""Run audits one after the other on the terminal, and show their reports. An error in one audit
becomes the result of that audit; the next audit still runs."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from importlib import import_module
from typing import TextIO

import click

from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import AuditResult, Failed, Interrupted, Progress, Verdict
from dpaudit.cli import exit_codes
from dpaudit.cli.group import describe_error, exit_code, print_traceback, undisturbed
from dpaudit.cli.leaving import kept_from_leaving
from dpaudit.cli.messages import tell
from dpaudit.cli.progress import make_display
from dpaudit.cli.signals import Requests, heeded
from dpaudit.cli.streams import kept
from dpaudit.errors import DpauditError, JournalError, MechanismError, UsageError, code_of
from dpaudit.processes.origin import words
from dpaudit.reports.audit_report import is_expected
from dpaudit.reports.text import (
    name_width,
    render,
    render_line,
    render_not_run,
    render_remarks,
    render_row,
    render_summary,
    render_warnings,
)
from dpaudit.wording import on_one_line


@contextmanager
def auditing() -> Iterator[Requests]:
    """Yield the handler of signals. Within the `with` block, it raises EndRequested when a signal
    asks the program to end."""
    # Import these modules before signals raise exceptions: an exception during an import can leave
    # a module half imported.
    with undisturbed():
        import_module("dpaudit.auditing.engine")
    from dpaudit.sampling.executors.new_processes import NewProcesses, compared_with

    with (
        heeded() as requests,
        closing(NewProcesses()) as processes,
        compared_with(processes),
    ):
        yield requests


def run_batch(
    specs: Sequence[AuditSpec], requests: Requests, *, quiet: bool, debug: bool, is_lone: bool
) -> Iterator[tuple[AuditResult, int]]:
    """Yield (result, exit code) for each audit, in order, as soon as the audit has ended.

    requests: the handler of signals. A signal that asks the program to end ends the running audit.
    debug: print the traceback if an audit cannot be run.
    is_lone: whether the command has only one audit. If so, an error that prevents the audit is
        raised, and not yielded as a result.
    """
    for number, spec in enumerate(specs, start=1):
        position = f" ({number} of {len(specs)})" if len(specs) > 1 else ""
        start = time.monotonic()
        try:
            result = run_one(
                spec, requests, spec.name + position, quiet=quiet, keeps_interrupted=True
            )
        except Exception as error:  # one audit must not lose the others
            if is_lone:
                raise
            if debug:
                print_traceback(error)
            yield _not_run(spec, error, start), exit_code(error)
        else:
            if debug and result.error_code is not None:
                line = f"debug: {spec.name} ended in error[{result.error_code}]"
                tell(line)
            yield result, exit_codes.of_result(result)
            if isinstance(result.ending, Interrupted):
                requests.check()


def run_one(
    spec: AuditSpec,
    requests: Requests,
    title: str,
    *,
    quiet: bool,
    check: Callable[[Progress], None] = lambda progress: None,
    keeps_interrupted: bool = False,
) -> AuditResult:
    """Run one audit, show its progress, and return its result. Raises an error if the audit cannot
    be run.

    check: called with every progress report. An exception that it raises ends the audit.
    keeps_interrupted: if a signal ends the audit, return the result of the draws so far, and raise
        no exception.
    """
    from dpaudit.auditing.engine import run_audit
    from dpaudit.auditing.underpowered import foreseen

    # Warn that the audit is under-powered before its first draw, since drawing may take hours. With
    # -q, only the verdict mentions it.
    reason = None if spec.requirements.allow_underpowered or quiet else foreseen(spec)
    if reason is not None:
        tell(f"warning: {spec.name}: under-powered: {reason}")
    display = make_display(spec, title, quiet=quiet)
    start = time.monotonic()

    def update(progress: Progress) -> None:
        requests.check()
        check(progress)
        display.update(progress)

    try:
        with kept(), kept_from_leaving(title):
            result = run_audit(spec, update, requests.check if keeps_interrupted else None)
    except MechanismError as error:
        return _not_run(spec, error, start)
    except BaseException as error:
        requests.check()  # the error may be a consequence of a signal
        if isinstance(error, Exception) or requests.explain(error):
            raise
        return _not_run(spec, _of_the_mechanism(error), start)
    finally:
        display.close()
    if result.command is None or result.seed == spec.sampling.seed:
        return result
    # A resumed audit uses the seed that its journal recorded, not the seed of the command line. The
    # printed command must name the seed that was used.
    command = result.command.replace(f"--seed {spec.sampling.seed}", f"--seed {result.seed}")
    return replace(result, command=command)


def _of_the_mechanism(error: BaseException) -> MechanismError:
    """Return the error to report for an exception of the mechanism that would end the program."""
    source = " (this was not Ctrl-C)" if isinstance(error, KeyboardInterrupt) else ""
    return MechanismError(
        f"the mechanism itself raised {words(error)}{source}, which is not an Exception and would "
        "end the program; raise an Exception, which counts as an outcome, or give isolate: true "
        "(--isolate): the end of the mechanism's process then counts as an outcome",
        code="mechanism-ends-process",
    )


def _not_run(spec: AuditSpec, error: Exception, start: float) -> AuditResult:
    """Return the result of an audit that could not be run because of `error`."""
    command, journaling = spec.origin.command, spec.journaling
    if isinstance(error, JournalError) and command is not None:
        # The command that repeats this error needs the journal: without it, the command would begin
        # a new audit, which would not read the journal and so would not fail.
        resume = " --resume" if journaling.resume else ""
        command = f"{command} --journal {shlex.quote(str(journaling.journal))}{resume}"
    return AuditResult(
        name=spec.name,
        claim=spec.tested,
        target=spec.target.describe(),
        confidence=spec.statistics.confidence,
        seed=spec.sampling.seed,
        ending=Failed(reason_of(error, spec), code=code_of(error)),
        seconds=time.monotonic() - start,
        versions={"python": sys.version.split()[0]},
        expect=spec.requirements.expect,
        command=command,
        family=spec.statistics.family,
        strict=spec.requirements.strict,
    )


def reason_of(error: Exception, spec: AuditSpec) -> str:
    """Return the message of an error on one line. Each option is named as the user gave it: as a
    flag, or as a key of a file."""
    if isinstance(error, DpauditError):
        return on_one_line(spec.origin.message(error))
    return describe_error(error).removeprefix("error: ")


class Printer:
    """Prints results as the audits end. For a single audit, it prints the report. For several, it
    prints one line each, the whole report of each unexpected result, and a summary at the end."""

    def __init__(
        self, names: Sequence[str], *, quiet: bool, verbose: int, to: TextIO | None = None
    ) -> None:
        """Prepare to print the results of the audits called `names` to a stream, by default
        standard output."""
        if quiet and verbose:
            why = "-q (--quiet) asks for less, -v (--verbose) for more; give one of them"
            raise UsageError(why, code="options-conflict")
        self._quiet, self._verbose, self._to = quiet, verbose, to
        self._width = name_width(names) if len(names) > 1 else None
        # Whether nothing is printed yet, or an empty line is the last one.
        self._is_apart = True

    def show(self, result: AuditResult) -> None:
        """Print the result of one audit: in a batch on one line, otherwise its whole report."""
        if self._width is not None and not self._verbose:
            self._line(_coloured(render_row(result, self._width), result))
        elif self._quiet:
            self._line(_coloured(render_line(result), result))
        in_full = self._width is None or self._verbose or not is_expected(result)
        if in_full and not self._quiet:
            in_batch = self._width is not None
            text = render(result, verbose=self._verbose, in_batch=in_batch)
            self._block(_coloured(text, result))
            return
        if self._width is None and result.failing_warnings:
            return  # the line that was printed already has the warnings
        remarks = render_warnings if self._quiet else render_remarks
        for text in remarks(result):
            self._line(text)

    def summarise(self, results: Sequence[AuditResult], not_run: Sequence[str] = ()) -> None:
        """Print the summary of a batch. `not_run` names the audits that were left out."""
        if self._width is not None:
            for name in not_run:
                self._line(render_not_run(name, self._width))
            self._block(render_summary(results, not_run, in_full=not self._quiet), is_last=True)

    def _line(self, text: str) -> None:
        click.echo(text, file=self._to)
        self._is_apart = False

    def _block(self, text: str, *, is_last: bool = False) -> None:
        """Print `text` with an empty line before it and, in a batch, after it."""
        # The progress of the next audit may follow.
        after = "" if is_last or self._width is None else "\n"
        self._line(text + after if self._is_apart else f"\n{text}{after}")
        self._is_apart = bool(after)


def _coloured(text: str, result: AuditResult) -> str:
    """Return the report with its verdict in colour, which click drops when it writes to a pipe."""
    head = result.verdict.value
    unexpected = "magenta" if result.verdict is Verdict.ERROR else "red"
    colour = "green" if is_expected(result) else unexpected
    return click.style(head, fg=colour, bold=True) + text.removeprefix(head)
