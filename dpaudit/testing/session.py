"""The settings and results of the audits of one test run: plain values, no statistics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # pytest imports this for tests that audit nothing, too
    from dpaudit.sampling.executors.new_processes import NewProcesses

# What tests audit with unless they say otherwise: a second or less, and a false alarm in 10,000
# runs with new seeds.
DEFAULTS: Mapping[str, Any] = {"samples": 100_000, "confidence": 0.9999, "seed": 0, "workers": 1}
# What `[tool.dpaudit]` in pyproject.toml may set: which values, and in words.
_RIGHT: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "samples": (
        lambda value: isinstance(value, int | float) and value > 0 and value == value // 1,
        "a number of draws, such as 100_000",
    ),
    "confidence": (
        lambda value: isinstance(value, int | float) and 0 < value < 1,
        "a number between 0 and 1, such as 0.9999",
    ),
    "require_power": (
        lambda value: isinstance(value, int | float) and 1 < value < math.inf,
        "a number above 1, such as 1.2",
    ),
    "require_rare": (
        lambda value: isinstance(value, int | float) and 0 < value < 1,
        "a probability between 0 and 1, such as 1e-3",
    ),
    "journal": (lambda value: isinstance(value, str) and value != "", "the name of a folder"),
    "workers": (
        lambda value: value == "auto" or (isinstance(value, int) and value >= 1),
        'a number of processes, at least 1, or "auto"',
    ),
}
SETTINGS = tuple(_RIGHT)
# What modules of tests import.
_PRELOADED = ("pytest", "dpaudit.testing.assertions")
# What all tests may ask for, but those that allow an audit which cannot fail.
_REQUIRED = ("require_power", "require_rare")


@dataclass(frozen=True, slots=True)
class Kept:
    """One audit of a test run, as it is handed from worker to worker.

    entry: its parts of a result file.  alpha: how likely it is to raise a false alarm, with a new
    seed.
    """

    name: str
    entry: tuple[str, ...]
    alpha: float


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
            for name in _REQUIRED:
                settings.pop(name, None)
        merged = _over(_over(_over(_over(DEFAULTS, settings), marked), given), self.forced)
        return {name: value for name, value in merged.items() if value is not None}


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return options, those `above` first. Draws are planned by their number or by the clock."""
    given = {name for name, value in above.items() if value is not None}
    hidden = {"samples", "time"} if given & {"samples", "time"} else set()
    return {name: one for name, one in below.items() if name not in hidden} | dict(above)


def settings_of(folder: Path) -> dict[str, Any]:
    """Return what `[tool.dpaudit]` says in the pyproject.toml of a folder.

    Raises ValueError, in words, for a key that is not known.
    """
    file = folder / "pyproject.toml"
    try:
        text = file.read_text(encoding="utf-8")
    except OSError:
        return {}
    if "dpaudit" not in text:
        return {}
    import tomllib

    try:
        found = tomllib.loads(text).get("tool", {}).get("dpaudit", {})
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{file}: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{file}: [tool.dpaudit] must be a table")
    for key in found:
        if key not in SETTINGS:
            from dpaudit.did_you_mean import did_you_mean

            known = ", ".join(SETTINGS)
            raise ValueError(
                f"{file}: unknown key {key!r} in [tool.dpaudit]; known: {known}."
                + did_you_mean(key, SETTINGS)
            )
    for key, value in found.items():
        is_right, words = _RIGHT[key]
        if isinstance(value, bool) or not is_right(value):
            raise ValueError(f"{file}: {key} = {value!r} in [tool.dpaudit] must be {words}")
    if "samples" in found:
        found["samples"] = int(found["samples"])
    if "journal" in found:
        found["journal"] = str(folder / found["journal"])
    return found


# The test run that is under way; outside of pytest, that of the working directory.
_current: list[Session] = []


def current() -> Session:
    """Return the test run that is under way."""
    return _current[-1] if _current else Session(settings_of(Path.cwd()))


def begin(session: Session) -> None:
    """Begin a test run."""
    _current.append(session)


def end() -> None:
    """End the test run that was begun last."""
    _current.pop().close()
