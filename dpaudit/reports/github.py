"""Audits as annotations of GitHub Actions: lines of output that GitHub displays next to the code.

Each unexpected result becomes an error at the line of the likely cause if a trace has found one,
else at the line of the mechanism. Paths start at the root of the repository. GitHub shows at most
ten annotations for each step of a workflow.

`dpaudit list reports` prints the first sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.certificates.result import AuditResult
from dpaudit.reports import trace
from dpaudit.reports.findings import is_expected
from dpaudit.reports.numbers import unglued
from dpaudit.reports.places import attributes
from dpaudit.reports.text import reason, stopped, unended
from dpaudit.wording import counted, visible

_MAX_ANNOTATIONS = 10


def entry(result: AuditResult) -> str | None:
    """Return a line of output, such as `::error file=a.py::…`, that makes GitHub Actions show an
    annotation. Return None for an audit that ended as expected, which has no annotation."""
    if is_expected(result):
        return None
    wanted = f" (expected: {result.expect})" if result.expect else ""
    title = f"{result.verdict.value}: {result.name}{wanted}"
    parts = [unglued(reason(result)), trace.briefly(result), result.command]
    message = "\n".join(part for part in parts if part)
    return command("error", message, {**attributes(result), "title": title})


def document(found: Sequence[str | None], planned: int, not_run: Sequence[str] = ()) -> str:
    """Return the lines of all annotations.

    found: what `entry` returned for each audit.
    planned: number of audits of a complete run.
    not_run: names of audits that were not run, because the run stopped early.
    """
    lines = [one for one in found if one is not None]
    missing = unended(len(found), planned, not_run)
    if missing:
        lines.insert(0, command("error", missing, {"title": "dpaudit"}))
    if len(lines) > _MAX_ANNOTATIONS:
        count = len(lines) - _MAX_ANNOTATIONS + 1
        more = f"{counted(count, 'audit')} more did not come out as expected"
        lines = [*lines[: _MAX_ANNOTATIONS - 1], command("error", more, {"title": "dpaudit"})]
    if not_run:  # a warning: GitHub shows ten errors and ten warnings
        message = "\n".join([stopped(not_run), *not_run])
        lines.append(command("warning", message, {"title": "dpaudit"}))
    return "".join(f"{line}\n" for line in lines)


def command(kind: str, message: str, properties: dict[str, str]) -> str:
    r"""Return a workflow command of GitHub Actions. Escapes ensure that no text can end it or begin
    another command.

    >>> command("error", "50 %\nfound", {"file": "a,b.py", "line": "3"})
    '::error file=a%2Cb.py,line=3::50 %25%0Afound'
    """
    said = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{kind} {said}::{_message(message)}"


def _message(text: str) -> str:
    found = text.replace("%", "%25").replace("\r", "%0D")
    # GitHub ends a command at a line end. `splitlines` removes line ends of every kind, and
    # `visible` escapes other control characters, in case GitHub ends the command there, too.
    return visible("%0A".join(found.splitlines()))


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
