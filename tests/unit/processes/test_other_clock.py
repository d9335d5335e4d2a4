"""In a process with another clock, times are shifted and differences are the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dpaudit.processes import other_clock

AHEAD = 7_200.5
_USER = """
import datetime, json, time, pickle, random
from datetime import date, datetime as moment

class Mine(moment):
    pass

def told():
    now = datetime.datetime.now()
    return {
        "time": time.time(), "time_ns": time.time_ns() / 1e9,
        "clock": time.clock_gettime(time.CLOCK_REALTIME),
        "clock_ns": time.clock_gettime_ns(time.CLOCK_REALTIME) / 1e9,
        "monotonic": time.monotonic(), "monotonic_ns": time.monotonic_ns() / 1e9,
        "perf": time.perf_counter(), "used": time.process_time(),
        "now": now.timestamp(), "aware": moment.now(datetime.timezone.utc).timestamp(),
        "utc": moment.utcnow().replace(tzinfo=datetime.timezone.utc).timestamp(),
        "gm": time.mktime(time.localtime()), "text": time.mktime(time.strptime(time.ctime())),
        "strftime": time.strftime("%Y-%m-%d"), "day": str(date.today()), "given": time.gmtime(0)[0],
        "alike": [isinstance(now, moment), isinstance(now, date), isinstance(3, date),
                  isinstance(now, Mine), isinstance(Mine(2020, 1, 1), moment),
                  type(now).__name__, pickle.loads(pickle.dumps(now)) == now,
                  moment(2020, 1, 1) < now, str(date(2020, 1, 1)), str(Mine.now())[:10]],
    }
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the clocks that the code of the user reads, and the true times as `here`."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "user.py").write_text(_USER)
    code = (
        "import json, sys, time\n"
        "import importlib.util as util\n"
        f"spec = util.spec_from_file_location('clock', {other_clock.__file__!r})\n"
        "clock = util.module_from_spec(spec); spec.loader.exec_module(clock)\n"
        "start = [time.time(), time.monotonic(), time.perf_counter()]\n"
        "clock.shift_as_asked(); clock.shift_as_asked()\n"
        "import numpy, user\n"
        "print(json.dumps({**user.told(), 'here': start}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, other_clock.SHIFT: str(AHEAD), "TZ": "UTC"},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


def test_every_clock_of_the_time_runs_ahead(told: dict[str, Any]) -> None:
    for name in ("time", "time_ns", "clock", "clock_ns", "now", "aware", "utc", "gm", "text"):
        # Some clocks have whole seconds, and the program takes some to import modules.
        assert AHEAD - 1 <= told[name] - told["here"][0] < AHEAD + 60


def test_clocks_for_differences_run_ahead_as_much(told: dict[str, Any]) -> None:
    for name, start in (("monotonic", 1), ("monotonic_ns", 1), ("perf", 2)):
        assert AHEAD <= told[name] - told["here"][start] < AHEAD + 60


def test_processor_time_and_given_times_are_as_they_were(told: dict[str, Any]) -> None:
    assert told["used"] < 60
    assert told["given"] == 1970


def test_dates_are_still_of_their_types(told: dict[str, Any]) -> None:
    alike = told["alike"][:-1]
    assert alike == [True, True, False, False, True, "datetime", True, True, "2020-01-01"]


def test_installed_modules_import_the_true_dates() -> None:
    """Some modules are compiled for these types."""
    own = other_clock._is_own
    assert own({"__file__": "mine.py"})
    assert not own({"__file__": json.__file__})
    assert not own({"__file__": pytest.__file__})
    assert not own(None)
    assert not own({})
    assert not own({"__name__": "compiled"})
    assert Path(pytest.__file__).is_absolute()


def test_nothing_is_shifted_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(other_clock.SHIFT, raising=False)
    before = time.time
    other_clock.shift_as_asked()
    assert time.time is before
