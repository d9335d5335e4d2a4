"""Packages that a mechanism needs and does not find: a matter of set-up, not an outcome.

A missing package belongs to an installation, not to the mechanism: were it an outcome, an input
whose branch imports it would seem to leak. So what the first calls raise ends the audit (exit code
2), whichever input raises it. What is raised later, in a branch too rare for them, is an outcome.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

from dpaudit.errors import TargetError
from dpaudit.outcomes import Raised
from dpaudit.targets.target import (
    AnyTarget,
    CommandTarget,
    IsolatedTarget,
    SingleTarget,
    single_targets,
)

_KINDS = ("ModuleNotFoundError", "ImportError")
_NAME = re.compile(r"No module named '([^']+)'")


def check_found(raised: Mapping[str, Raised], target: AnyTarget) -> None:
    """Raise TargetError for an import that failed. raised: exceptions by type."""
    for kind in filter(raised.__contains__, _KINDS):
        where = " or ".join(dict.fromkeys(map(_where, single_targets(target))))
        raise not_found(raised[kind].words, target.name, where)


def not_found(words: str, name: str, where: str = sys.executable) -> TargetError:
    """Return the error of an import that failed. words: the exception. where: it was tried."""
    package = lacks(words)
    if package is None:
        return TargetError(
            f"{name} cannot import what it needs in {where} ({words}); repair the installation "
            "there"
        )
    return TargetError(
        f"{name} needs the package {package!r}, which is not installed in {where}; install it there"
    )


def is_missing(words: str) -> bool:
    """Return whether an exception in words is an import that failed."""
    return words.partition(":")[0] in _KINDS


def lacks(words: str) -> str | None:
    """Return the package that an exception in words says is missing."""
    found = _NAME.search(words)
    return None if found is None else found[1]


def _where(target: SingleTarget) -> str:
    """Return the interpreter, or the program, that makes the calls."""
    if isinstance(target, CommandTarget):
        return f"the environment of {target.words[0]}"
    python = target.python if isinstance(target, IsolatedTarget) else None
    return python or sys.executable
