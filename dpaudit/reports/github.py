"""Audits as annotations of GitHub Actions: lines of output that GitHub displays next to the code.

Each unexpected result becomes an error at a line of code: the likely cause, if a trace has found
one, else the line of the mechanism. JUnit and SARIF show the same lines. Paths start at the root of
the repository. GitHub shows at most ten annotations for each step of a workflow.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import NamedTuple
from urllib.parse import quote

from dpaudit.certificates.result import AuditResult
from dpaudit.certificates.traced import SourceLine
from dpaudit.reports import trace_report
from dpaudit.reports.audit_report import is_expected, reason
from dpaudit.reports.numbers import unglued
from dpaudit.reports.text import stopped, unended
from dpaudit.wording import counted, in_a_line, visible

_MAX_ANNOTATIONS = 10
# Environment variable with the folder into which GitHub Actions has checked out the repository.
_WORKSPACE = "GITHUB_WORKSPACE"


def entry(result: AuditResult) -> str | None:
    """Return the annotation, such as `::error file=a.py::…`, of an unexpected result, else None."""
    if is_expected(result):
        return None
    wanted = f" (expected: {result.expect})" if result.expect else ""
    title = f"{result.verdict.value}: {result.name}{wanted}"
    parts = [unglued(reason(result)), trace_report.briefly(result), result.command]
    message = "\n".join(part for part in parts if part)
    return command("error", message, {**attributes(result), "title": title})


def document(entries: Sequence[str | None], planned: int, not_run: Sequence[str] = ()) -> str:
    """Return the lines of all annotations."""
    lines = [line for line in entries if line is not None]
    missing = unended(len(entries), planned, not_run)
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
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{kind} {listed}::{_message(message)}"


def _message(text: str) -> str:
    escaped = text.replace("%", "%25").replace("\r", "%0D")
    # GitHub ends a command at a line end. `splitlines` removes line ends of every kind, and
    # `visible` escapes other control characters, in case GitHub ends the command there, too.
    return visible("%0A".join(escaped.splitlines()))


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def attributes(result: AuditResult) -> dict[str, str]:
    """Return the line of code of `place` as attributes for CI systems: `file`, which is the path in
    the repository, and `line`. Return {} if the line is unknown."""
    file, _, line = (place(result) or "").rpartition(":")
    return {"file": located(file).path, "line": line} if file and line.isdigit() else {}


def place(result: AuditResult) -> str | None:
    """Return the line of code, such as `mine.py:12`, at which a code host shows a result. This is
    the line of the likely cause; if that is outside the repository, the line in the repository that
    called it; if there is none, the line of the mechanism."""
    traced = trace_report.traced(result)
    cause = None if traced is None or not traced.causes else traced.causes[0]
    lines = [] if cause is None else [cause.line, *cause.others]
    inside = (f"{line.file}:{line.line}" for line in lines if _is_inside(line))
    return next(inside, result.source)


def _is_inside(line: SourceLine) -> bool:
    is_plain = line.line > 0 and visible(in_a_line(line.file)) == line.file
    return is_plain and located(line.file).is_inside


class Location(NamedTuple):
    """The path of a file, with slashes, relative to the repository if the file is inside."""

    path: str
    is_inside: bool


def located(file: str) -> Location:
    """Return the location of a file whose path is absolute or relative to the working directory."""
    top, path = root(), _absolute(file)
    for inner, outer in ((path, top), (_real(path), _real(top))):
        if inner.is_relative_to(outer) and inner != outer:
            return Location(inner.relative_to(outer).as_posix(), is_inside=True)
    return Location(path.as_posix(), is_inside=False)


def root() -> Path:
    """Return the root of the repository. It is the folder in GITHUB_WORKSPACE, if set; else the
    nearest folder with `.git` among the working directory and its parents; else the working
    directory."""
    workspace = os.environ.get(_WORKSPACE, "")
    here = _absolute("")
    if workspace and Path(workspace).is_dir():
        return _absolute(workspace)
    # `.git` is a folder in a clone, but a file in a git worktree.
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def uri(path: PurePath | str) -> str:
    """Return a path as a URI: `file://…` for an absolute path, else a relative reference."""
    pure = PurePath(path)
    text = quote(pure.as_posix(), errors="replace")
    return f"file://{'' if text.startswith('/') else '/'}{text}" if pure.is_absolute() else text


def _absolute(path: str) -> Path:
    here = os.sep
    with suppress(OSError):  # raised if the working directory was removed
        here = os.getcwd()
    return Path(os.path.normpath(Path(here) / path))


def _real(path: Path) -> Path:
    """Return a path with its symbolic links resolved, or unchanged if they cannot be resolved."""
    with suppress(OSError, ValueError):  # such as a name that no file can have
        return Path(os.path.realpath(path))
    return path
