"""The settings and results of the audits of one test run: plain values, no statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # pytest imports this for tests that audit nothing, too
    from dpaudit.sampling.executors.new_processes import NewProcesses

from dpaudit.config.project import REQUIRED, TEST_DEFAULTS, Project, here

# What modules of tests import.
_PRELOADED = ("pytest", "dpaudit.testing.assertions")


@dataclass(frozen=True, slots=True)
class Kept:
    """One audit of a test run, as it is handed from worker to worker.

    entry: its parts of a result file.  alpha: how likely it is to raise a false alarm, with a new
    seed.  draws: how many it may make for a pair, 0 where it makes none.
    """

    name: str
    entry: tuple[str, ...]
    alpha: float
    draws: int = 0


@dataclass(slots=True)
class RunningTest:
    """The test that is running. options: of its markers.  repeated: what pytest calls it from the
    folder that it was started in.  kept: its audits so far."""

    nodeid: str
    options: Mapping[str, Any]
    repeated: str
    kept: list[Kept] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=partial(count, 1), repr=False)

    def name(self) -> str:
        """Return what the next audit is called: like the test, numbered from the second one on,
        whichever thread it is of."""
        number = next(self._numbers)
        return self.nodeid if number == 1 else f"{self.nodeid} ({number})"


@dataclass(slots=True)
class Session:
    """One test run. settings: of pyproject.toml.  forced: of the command line, which come before
    all others.  test: the one that is running, if any."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    forced: Mapping[str, Any] = field(default_factory=dict)
    test: RunningTest | None = None
    _processes: NewProcesses | None = field(default=None, repr=False)

    def processes(self) -> NewProcesses:
        """Return the new processes that violations are compared with, the same for all tests."""
        if self._processes is None:
            from dpaudit.sampling.executors.new_processes import NewProcesses

            self._processes = NewProcesses(_PRELOADED)
        return self._processes

    def close(self) -> None:
        """End what was started for the tests."""
        if self._processes is not None:
            self._processes.close()

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of an audit: those of the command line, else what it was `given`, else
        those of the test's markers, of pyproject.toml, and the defaults."""
        marked = {} if self.test is None else self.test.options
        settings = dict(self.settings)
        if given.get("allow_underpowered") or marked.get("allow_underpowered"):
            for name in REQUIRED:
                settings.pop(name, None)
        merged = _over(_over(_over(_over(TEST_DEFAULTS, settings), marked), given), self.forced)
        return {name: value for name, value in merged.items() if value is not None}


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return options, those `above` first. Draws are planned by their number or by the clock."""
    given = {name for name, value in above.items() if value is not None}
    hidden = {"samples", "time"} if given & {"samples", "time"} else set()
    return {name: one for name, one in below.items() if name not in hidden} | dict(above)


def settings_of(project: Project) -> dict[str, Any]:
    """Return the settings of a project for the audits of tests."""
    journal = {} if project.journal is None else {"journal": project.journal}
    return {**project.settings, **journal}


# The test run that is under way; outside of pytest, that of the working directory.
_current: list[Session] = []


def current() -> Session:
    """Return the test run that is under way."""
    return _current[-1] if _current else Session(settings_of(here()))


def begin(session: Session) -> None:
    """Begin a test run."""
    _current.append(session)


def end() -> None:
    """End the test run that was begun last."""
    _current.pop().close()
