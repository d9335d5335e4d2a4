"""Shift the clocks of this process: `time` and `datetime` are ahead by a fixed number of seconds.

If a mechanism seeds its noise by the time, the noise then differs between new processes
(sampling/executors/new_processes.py). All code sees the shifted `time`, but only the user's code
sees the shifted `datetime`. The file must run with Python 3.8 and without dpaudit, since
child_script.py may use another Python interpreter.
"""

from __future__ import annotations

import builtins
import datetime
import os
import time
import types

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Name of the environment variable with the shift in seconds.
SHIFT = "DPAUDIT_CLOCK_SHIFT"
# Clocks of `time.clock_gettime` that are shifted, if the system has them. Clocks that measure
# processor time are not shifted.
_CLOCKS = ("REALTIME", "TAI", "MONOTONIC", "MONOTONIC_RAW", "BOOTTIME", "UPTIME_RAW")
# Folder of Python's standard library, with a separator at the end.
_PYTHONS = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120  # avoids the import of pathlib
# A path with one of these parts is in an installed package: /site-packages/ or /dist-packages/.
_FOREIGN = tuple(f"{os.sep}{kind}-packages{os.sep}" for kind in ("site", "dist"))
# Functions of `time` that use the present time if their time argument is left out. Maps the name of
# the function to the number of arguments before the time.
_OF_TIMES = {"gmtime": 0, "localtime": 0, "ctime": 0, "asctime": 0, "strftime": 1}


def shift_as_asked() -> None:
    """Shift the clocks by the seconds in the environment variable `SHIFT`, at the first call only.
    Do nothing if it is not set. Call this before the mechanism is imported, since its modules may
    import functions from `time`."""
    seconds = os.environ.get(SHIFT)
    if seconds and not hasattr(time.time, "shifted"):
        shift_clocks(float(seconds))


def shift_clocks(seconds: float) -> None:
    """Set all clocks of this process ahead by `seconds`. Measured durations do not change."""
    nanoseconds = round(seconds * 1e9)
    for name in ("time", "monotonic", "perf_counter"):
        _replace(name, _ahead(getattr(time, name), seconds))
        _replace(f"{name}_ns", _ahead(getattr(time, f"{name}_ns"), nanoseconds))
    clocks = [
        getattr(time, f"CLOCK_{clock}") for clock in _CLOCKS if hasattr(time, f"CLOCK_{clock}")
    ]
    for name, shift in (("clock_gettime", seconds), ("clock_gettime_ns", nanoseconds)):
        if hasattr(time, name):
            _replace(name, _ahead_for(getattr(time, name), shift, clocks))
    local = time.localtime
    for name, position in _OF_TIMES.items():
        is_by_seconds = name in ("gmtime", "localtime", "ctime")
        now = time.time if is_by_seconds else lambda: local(time.time())
        _replace(name, _of_now(getattr(time, name), position, now))
    _shift_dates()


def _replace(name: str, function: Any) -> None:
    function.__name__, function.shifted = name, True
    setattr(time, name, function)


def _ahead(clock: Callable[[], Any], shift: Any) -> Callable[[], Any]:
    return lambda: clock() + shift


def _ahead_for(clock: Callable[[int], Any], shift: Any, clocks: list[int]) -> Callable[[int], Any]:
    return lambda number: clock(number) + (shift if number in clocks else 0)


def _of_now(function: Callable[..., Any], position: int, now: Callable[[], Any]) -> Any:
    """Return a function of `time` that uses the shifted time if it is called without a time."""

    def called(*arguments: Any) -> Any:
        is_given = len(arguments) > position and arguments[position] is not None
        return function(*arguments) if is_given else function(*arguments[:position], now())

    return called


def _shift_dates() -> None:
    """Make imports of `datetime` in the user's code return a module with shifted time."""
    # Installed packages still import the true `datetime`, since some contain compiled code that
    # requires it.
    shifted = types.ModuleType("datetime")
    vars(shifted).update(vars(datetime))
    for kind in (datetime.date, datetime.datetime):
        setattr(shifted, kind.__name__, _with_shifted_present(kind))
    true_import = builtins.__import__

    def importing(name: str, scope: Any = None, *arguments: Any, **named: Any) -> Any:
        module = true_import(name, scope, *arguments, **named)
        return shifted if module is datetime and _is_own(scope or named.get("globals")) else module

    builtins.__import__ = importing  # type: ignore[assignment]  # takes the arguments of the true import


def _is_own(scope: Any) -> bool:
    """Return whether a module belongs to the user: its file is not in an installed package."""
    file = (scope or {}).get("__file__") or ""
    return (
        bool(file) and not file.startswith(_PYTHONS) and not any(map(file.__contains__, _FOREIGN))
    )


def _with_shifted_present(true: Any) -> Any:
    """Return a class like `true`, date or datetime, with the shifted time as today and now."""

    class Alike(type):
        def __instancecheck__(cls, value: Any) -> bool:
            return (
                isinstance(value, true) if cls is stand_in else type.__instancecheck__(cls, value)
            )

        def __subclasscheck__(cls, kind: type) -> bool:
            return issubclass(kind, true) if cls is stand_in else type.__subclasscheck__(cls, kind)

    def make(cls: Any, *arguments: Any, **named: Any) -> Any:
        return true.__new__(true if cls is stand_in else cls, *arguments, **named)

    def now(cls: Any, tz: Any = None) -> Any:
        return cls.fromtimestamp(time.time(), tz)

    def utcnow(cls: Any) -> Any:
        utc = datetime.timezone.utc  # noqa: UP017  # datetime.UTC is new in Python 3.11
        return cls.fromtimestamp(time.time(), utc).replace(tzinfo=None)

    def today(cls: Any) -> Any:
        return cls.fromtimestamp(time.time())

    names = {"__new__": make, "__module__": "datetime", "today": classmethod(today)}
    if true is datetime.datetime:
        names.update(now=classmethod(now), utcnow=classmethod(utcnow))
    stand_in = Alike(true.__name__, (true,), names)
    return stand_in
