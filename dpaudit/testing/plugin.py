"""Define the pytest plugin: options, a marker, a fixture, and a line about audits in pytest's
summary. pytest imports this module at every start, so large modules are imported only at the first
audit."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dpaudit.config.project import project_of
from dpaudit.errors import ConfigurationError
from dpaudit.testing.session import KeptAudit, PytestRun, RunningTest, begin, end, settings_of

_MARKER = "dpaudit"
# Attribute that the plugin adds to pytest's report of a test. pytest-xdist sends reports from
# worker processes to the main process, and so also the audits in this attribute.
_CARRIED = "dpaudit_kept"
_STASHED = pytest.StashKey["Plugin"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dpaudit", "privacy audits")
    group.addoption(
        "--dpaudit-samples",
        metavar="N",
        help="draws of every privacy audit, in place of what tests and pyproject.toml say",
    )
    group.addoption(
        "--dpaudit-json",
        metavar="FILE",
        help="save the results of all privacy audits, for dpaudit report",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(samples=…, confidence=…, …): options of the privacy audits of a test",
    )
    plugin = Plugin(config)
    config.stash[_STASHED] = plugin
    config.pluginmanager.register(plugin, "dpaudit-session")


def pytest_unconfigure(config: pytest.Config) -> None:
    if config.stash.get(_STASHED, None) is not None:
        end()


@pytest.fixture
def dp_audit() -> Callable[..., Any]:
    """Return a function that audits a mechanism with the settings of the test run, and whose audits
    pytest's summary counts.

    `dp_audit(mechanism, d1, d2, epsilon=1.0)` has the parameters of `assert_private`. It returns
    the `AuditResult` and never fails the test, whatever the verdict is.
    """

    def run(mechanism: Any, d1: Any, d2: Any, claim: Any = None, **options: Any) -> Any:
        from dpaudit.testing.assertions import audited

        return audited(mechanism, d1, d2, claim, options)

    return run


class Plugin:
    """The hooks that pytest calls during one test run, and the audits of this run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._audits: dict[str, list[KeptAudit]] = {}
        self._has_run = False
        self._file = _file(config)
        try:
            settings = settings_of(project_of(config.rootpath))
        except ConfigurationError as error:
            raise pytest.UsageError(str(error)) from None
        self.session = PytestRun(settings, _forced(config))
        begin(self.session)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        for marker in item.iter_markers(_MARKER):
            if marker.args:
                written = f"{_MARKER}({', '.join(map(repr, marker.args))})"
                pytest.fail(
                    f"the marker {written} takes keywords only, as {_MARKER}(samples=5_000)",
                    pytrace=False,
                )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        marked: dict[str, Any] = {}
        for marker in reversed(list(item.iter_markers(_MARKER))):
            marked |= marker.kwargs
        self.session.test = RunningTest(item.nodeid, marked, self._from_here(item.nodeid))
        try:
            return (yield)
        finally:
            self.session.test = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        report = yield
        test = self.session.test
        if test is not None and test.kept and report.when == "teardown":
            carried = [[audit.name, audit.entry, audit.alpha, audit.draws] for audit in test.kept]
            setattr(report, _CARRIED, carried)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._has_run = True
        carried = getattr(report, _CARRIED, ())
        if carried:
            self._audits[report.nodeid] = [
                KeptAudit(name, entry, alpha, draws) for name, entry, alpha, draws in carried
            ]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        if self._file is not None and self._has_run:
            from dpaudit.reports.json import document

            entries = [audit.entry for audit in self._every()]
            self._file.write_text(document(entries, len(entries)), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        every = self._every()
        if every:
            terminalreporter.write_line(f"dpaudit: {summary(every)}")

    def _from_here(self, nodeid: str) -> str:
        """Return the node id of a test relative to the folder in which pytest was started."""
        path, colons, names = nodeid.partition("::")
        here = self._config.invocation_params.dir
        with suppress(ValueError):  # the folders may be on different drives
            path = Path(os.path.relpath(self._config.rootpath / path, here)).as_posix()
        return f"{path}{colons}{names}"

    def _every(self) -> list[KeptAudit]:
        return [audit for _, audits in sorted(self._audits.items()) for audit in audits]


def summary(audits: list[KeptAudit]) -> str:
    """Return words for the number of audits, their draws, confidence and false-alarm rate.

    >>> summary([KeptAudit("one", (), 0.01, 500)])
    '1 privacy audit of 500 draws at 99 %; with new seeds, at most 1 run in 100 has a false alarm'
    """
    text = f"{len(audits)} privacy audit{'s' if len(audits) != 1 else ''}"
    draws = [audit.draws for audit in audits if audit.draws]
    if draws:
        # Further digits would show the floating-point error of 1 - confidence.
        levels = [
            f"{100 * (1 - audit.alpha):.10g} %" for audit in audits if audit.draws and audit.alpha
        ]
        text += f" of {_range([f'{number:,}' for number in sorted(draws)])} draws"
        text += f" at {_range(sorted(levels, key=lambda level: float(level[:-2])))}"
    alpha = sum(audit.alpha for audit in audits)
    if alpha == 0:
        return f"{text}, all exact"
    if alpha >= 1:
        return f"{text}; with new seeds, false alarms are likely: raise the confidence"
    # Round down, but first add 1e-9 to cancel the floating-point error of 1 - confidence.
    runs = math.floor(1 / alpha * (1 + 1e-9))
    return f"{text}; with new seeds, at most 1 run in {runs:,} has a false alarm"


def _range(ordered: list[str]) -> str:
    """Return `FIRST to LAST` for a sorted list of texts, or the single text if all are equal."""
    first, last = ordered[0], ordered[-1]
    return first if first == last else f"{first} to {last}"


def _forced(config: pytest.Config) -> dict[str, Any]:
    text = config.getoption("--dpaudit-samples")
    if text is None:
        return {}
    try:
        samples = int(float(text)) if "e" in text.lower() else int(text)
    except (ValueError, OverflowError):
        samples = 0
    if samples <= 0:
        raise pytest.UsageError(f"--dpaudit-samples={text} must be a number of draws, as 20_000")
    return {"samples": samples}


def _file(config: pytest.Config) -> Path | None:
    """Return the file for results, or None in a worker process of pytest-xdist."""
    path = config.getoption("--dpaudit-json")
    if path is None or hasattr(config, "workerinput"):
        return None
    file = Path(config.invocation_params.dir, path)
    if file.suffix == ".py":
        raise pytest.UsageError(f"--dpaudit-json={path} is a file of code; name one for results")
    was_there = file.exists()
    try:
        with file.open("a", encoding="utf-8"):
            pass
        if not was_there:
            file.unlink()
    except OSError as error:
        raise pytest.UsageError(f"--dpaudit-json={path} cannot be written: {error}") from None
    return file
