"""Outcomes of any shape from another process; and that no process stays."""

from __future__ import annotations

import collections
import datetime
import enum
import signal
import subprocess
import sys
import time
import uuid
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.adapters.loading import load_mechanism
from dpaudit.adapters.mechanism import Mechanism
from dpaudit.errors import MechanismError, TargetError
from dpaudit.outcomes import from_raw
from dpaudit.targets.target import CallableTarget, IsolatedTarget
from tests import faulty
from tests.isolated import lines, mechanism_of, rng


class Colour(enum.Enum):
    RED = 1


@dataclass(frozen=True)
class Person:
    name: str
    age: int


Pair = namedtuple("Pair", ["one", "two"])
MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5, 6, datetime.timezone(datetime.timedelta(hours=1)))
RICH: list[Any] = [
    Colour.RED,
    Person("Anna", 7),
    Pair(1, Person("Bo", 8)),
    Decimal("1.10"),
    Fraction(1, 3),
    MOMENT,
    MOMENT.date(),
    MOMENT.time(),
    datetime.timedelta(days=-1, microseconds=3),
    uuid.UUID(int=5),
    bytearray(b"ab"),
    frozenset({("a", 1)}),
    {("a", 1)},
    np.float64(0.25),
    np.str_("a"),
    collections.OrderedDict(a=1),
    Decimal("-0.00"),
    1,
    1.0,
    (1, 2.0),
    np.float32(0.1),
    np.int8(3),
    np.bool_(True),
    np.arange(6).reshape(2, 3),
    np.array(["a", None], dtype=object),
    np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]),
    np.array((1, 2.5), dtype=[("a", "i4"), ("b", "f8")])[()],
    np.datetime64("2020-01-01"),
    np.longdouble("0.1"),
    float("nan"),
    -0.0,
    float("-inf"),
    10**400,
    {"$tuple": [1]},
    {"a": 1, "$b": {2: (3,)}},
    "\ud800\n",
    [],
    {},
]


@pytest.fixture(scope="module")
def giving() -> Iterator[Mechanism]:
    with mechanism_of(faulty.echo) as mechanism:
        yield mechanism


@pytest.mark.parametrize("value", RICH, ids=lambda value: type(value).__name__)
def test_outcomes_are_read_as_if_made_here(value: Any, giving: Mechanism) -> None:
    theirs = from_raw(giving.sample(value, 2, rng()))
    ours = from_raw([value] * 2)
    assert np.array_equal(ours.keys(), theirs.keys())
    assert ours.word(0) == theirs.word(0)


def test_outcomes_that_cannot_be_handed_over_are_an_error() -> None:
    with (
        mechanism_of(faulty.strange) as mechanism,
        pytest.raises(MechanismError, match=r"type builtins.object, .*give post_process"),
    ):
        mechanism.sample(0, 1, rng())
    with mechanism_of(faulty.strange, post_process=faulty.is_there) as mechanism:
        assert list(mechanism.sample(0, 1, rng())) == [True]


@pytest.mark.parametrize("function", [faulty.cyclic, faulty.deep])
@pytest.mark.parametrize("is_batch", [False, True])
def test_outputs_with_too_many_levels_are_the_same_error_as_here(
    function: Any, is_batch: bool
) -> None:
    with pytest.raises(MechanismError) as here:
        from_raw([function(0)] * 2)
    more: Any = {"function": faulty.listed, "post_process": function}
    with (
        mechanism_of(**more) if is_batch else mechanism_of(function) as mechanism,
        pytest.raises(MechanismError) as there,
    ):
        mechanism.sample(0, 2, rng())
    assert str(there.value) == str(here.value)


def test_what_sending_an_output_raises_the_mechanism_has_not_raised() -> None:
    words = r"type Parts that cannot be sent .*ValueError: no parts\); give post_process"
    with (
        mechanism_of(faulty.stubborn) as mechanism,
        pytest.raises(MechanismError, match=words),
    ):
        mechanism.sample(0, 2, rng())


def test_a_callable_that_cannot_be_sent() -> None:
    with pytest.raises(TargetError, match="cannot be sent to another process"):
        load_mechanism(IsolatedTarget(target=CallableTarget(function=lambda dataset: dataset)))


def gone(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


HANGS = """
import sys
import numpy as np
from tests.isolated import target
from dpaudit.adapters.loading import load_mechanism
mechanism = load_mechanism(target("shows_process", params={"file": sys.argv[1]}))
mechanism.sample(0, 10, np.random.default_rng(0))
"""


# Only Linux tells a process of its parent's end.
ENDS = [signal.SIGINT, *([signal.SIGTERM, signal.SIGKILL] if sys.platform == "linux" else [])]


@pytest.mark.parametrize("end", ENDS)
def test_no_process_is_left_behind(end: signal.Signals, tmp_path: Path) -> None:
    file = tmp_path / "processes"
    root = str(Path(__file__).parents[3])
    auditor = subprocess.Popen(
        [sys.executable, "-c", HANGS, str(file)], cwd=root, stderr=subprocess.DEVNULL
    )
    wait_for(lambda: file.exists() and len(lines(file)) == 2)
    drawing, started = map(int, lines(file))
    assert not gone(drawing)
    auditor.send_signal(end)
    assert auditor.wait(20) != 0
    wait_for(lambda: gone(drawing))
    wait_for(lambda: gone(started))
