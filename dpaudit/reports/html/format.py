"""Audits as a page of HTML in one file, with figures, for people who read reports in a browser.

What writes the page is imported when one is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dpaudit.certificates.result import AuditResult
from dpaudit.errors import UsageError
from dpaudit.wording import install_command

if TYPE_CHECKING:
    from dpaudit.reports.html.page import Part

_NEEDED = {"jinja2": "Jinja2", "matplotlib": "matplotlib"}


def check() -> None:
    """Raise UsageError unless there is what the page is made with."""
    missing = [name for module, name in _NEEDED.items() if find_spec(module) is None]
    if missing:
        are = "which is" if len(missing) == 1 else "which are"
        raise UsageError(
            f"--report html needs {' and '.join(missing)}, {are} not installed: "
            f"{install_command('html')}",
            code="package-missing",
        )


def entry(result: AuditResult) -> Part:
    """Return what is kept of one audit."""
    from dpaudit.reports.html.page import Part

    return Part(result)


def document(parts: Sequence[Part], planned: int, not_run: Sequence[str] = ()) -> str:
    """Return the page. planned: how many audits there are to be. not_run: names of those that the
    run stopped before."""
    from dpaudit.reports.html.page import written

    return written(parts, planned, not_run)
