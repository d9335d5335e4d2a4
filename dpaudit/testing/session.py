"""Hold the settings and results of the audits of one test run. Imports no statistics, to be
quick."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # pytest imports this for tests that audit nothing, too
    from dpaudit.sampling.executors.new_processes import NewProcesses

from dpaudit.config.project import REQUIRED, TEST_DEFAULTS, TEST_SECONDS, Project, here


@dataclass(frozen=True, slots=True)
class KeptAudit:
    """An audit of a test run, in a form that a worker process of pytest-xdist can send.

    entry: text of the audit for a file of results.
    alpha: probability of a false alarm if the audit is run with a random seed; 0 for an audit
        without randomness.
    draws: largest number of draws for a pair of inputs; 0 for an audit of exact probabilities.
    """

    name: str
    entry: str
    alpha: float
    draws: int = 0


@dataclass(slots=True)
class RunningTest:
    """The test that pytest is running.

    options: options of the test's markers.
    repeated: node id of the test, relative to the folder in which pytest was started, for the
        command that repeats the test.
    kept: audits that the test has run so far.
    """

    nodeid: str
    options: Mapping[str, Any]
    repeated: str
    kept: list[KeptAudit] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=partial(count, 1), repr=False)

    def name(self) -> str:
        """Return the name for the next audit of this test. It is the name of the test and, from the
        second audit on, a number. Several threads may call this method."""
        number = next(self._numbers)
        return self.nodeid if number == 1 else f"{self.nodeid} ({number})"


@dataclass(slots=True)
class PytestRun:
    """A test run with its options.

    settings: options in pyproject.toml.
    forced: options of the command line, which override all others.
    test: the test that is running; None between tests.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    forced: Mapping[str, Any] = field(default_factory=dict)
    test: RunningTest | None = None
    _processes: NewProcesses | None = field(default=None, repr=False)

    def processes(self) -> NewProcesses:
        """Return the new processes, which all tests share. An audit that refutes its claim compares
        its draws with draws in these processes. A difference shows that a process draws noise only
        once."""
        if self._processes is None:
            from dpaudit.sampling.executors.new_processes import NewProcesses

            self._processes = NewProcesses()
        return self._processes

    def close(self) -> None:
        """End the processes that were started for the tests."""
        if self._processes is not None:
            self._processes.close()

    def options(self, keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of an audit. Of an option that is stated several times, the first of
        these counts: command line, `keywords`, markers of the test, pyproject.toml, defaults."""
        marked = {} if self.test is None else self.test.options
        settings = dict(self.settings)
        if keywords.get("allow_underpowered") or marked.get("allow_underpowered"):
            for name in REQUIRED:
                settings.pop(name, None)
        # Imported here, since pytest imports this module for tests that audit nothing, too.
        from dpaudit.auditing.options import DefaultSamples

        samples = DefaultSamples(TEST_DEFAULTS["samples"], TEST_SECONDS)
        usual = {**TEST_DEFAULTS, "samples": samples}
        merged = _over(_over(_over(_over(usual, settings), marked), keywords), self.forced)
        return {name: value for name, value in merged.items() if value is not None}


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options `below`, overridden by `above`; `samples` and `time` are exclusive."""
    names = {name for name, value in above.items() if value is not None}
    hidden = {"samples", "time"} if names & {"samples", "time"} else set()
    return {name: value for name, value in below.items() if name not in hidden} | dict(above)


def settings_of(project: Project) -> dict[str, Any]:
    """Return the settings in pyproject.toml that apply to audits in tests."""
    journal = {} if project.journal is None else {"journal": project.journal}
    return {**project.settings, **journal}


# Stack of test runs, the most recent last. There are several if a test runs pytest itself.
_current: list[PytestRun] = []


def current() -> PytestRun:
    """Return the current test run; outside pytest, a new one for the working directory."""
    return _current[-1] if _current else PytestRun(settings_of(here()))


def begin(session: PytestRun) -> None:
    _current.append(session)


def end() -> None:
    """End the most recently begun test run."""
    _current.pop().close()
