"""Outcomes of any shape from another process; and that no process stays."""

from __future__ import annotations

import collections
import datetime
import enum
import sys
import types
import uuid
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpaudit.adapters.calls import Mechanism
from dpaudit.errors import MechanismError
from dpaudit.inputs.records import fingerprint
from dpaudit.outcomes import from_raw
from dpaudit.processes import child_script
from dpaudit.processes.exchange import parsed
from tests import faulty
from tests.isolated import mechanism_of, rng
from tests.raising import code


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


STAMP = pd.Timestamp("2020-01-02 03:04:05.000006789", tz="Europe/Berlin")
TABULAR: list[Any] = [
    pd.DataFrame({"a": [1, 2], "b": [0.5, None], "c": ["x", "y"]}),
    pd.DataFrame({"b": [0.5, None], "a": [1, 2]}),
    pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"], index=["x", "x"]),
    pd.DataFrame([[1, 2.5]], columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])),
    pd.DataFrame({1: [True, False], "1": [None, "x"]}, index=pd.MultiIndex.from_product([[1, 2]])),
    pd.DataFrame(),
    pd.DataFrame({"a": []}),
    pd.DataFrame({"t": [STAMP, pd.NaT], "d": [pd.Timedelta(1_500_000_001), pd.NaT]}),
    pd.DataFrame({"n": pd.array([1, None], dtype="Int64"), "k": pd.Categorical(["u", "v"])}),
    pd.DataFrame({"o": [np.float32(0.1), (1, 2)]}, dtype=object, index=[2, 3]),
    pd.DataFrame({"inner": [pd.DataFrame({"a": [1]}), {"a": 1}]}),
    pd.DataFrame({"a": [1, 2, 3]}).iloc[::-1],
    pd.Series([1, 2]),
    pd.Series([1, 2], dtype="int8"),
    pd.Series({"x": 0.5, "y": -0.0}),
    pd.Index([1, 2]),
    STAMP,
    pd.Timestamp("2020-01-01"),
    pd.Timedelta("1 days 00:00:01"),
    pd.NaT,
    pd.NA,
    {"frame": pd.DataFrame({"a": [1]}), "noise": (0.5, pd.Series([1]))},
    pa.table({"a": [1, 2], "b": ["x", None]}),
    pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
    pa.record_batch({"a": [1, 2]}),
    pa.array([1.5, None]),
    pa.chunked_array([[1], [2]]),
]


@pytest.fixture(scope="module")
def giving() -> Iterator[Mechanism]:
    with mechanism_of(faulty.echo) as mechanism:
        yield mechanism


def test_outcomes_are_equal_to_those_of_this_process(giving: Mechanism) -> None:
    for value in RICH + TABULAR:
        theirs = from_raw(giving.sample(value, 2, rng()))
        ours = from_raw([value] * 2)
        assert np.array_equal(ours.keys(), theirs.keys())
        assert ours.word(0) == theirs.word(0)


def test_frames_that_differ_are_several_outcomes(giving: Mechanism) -> None:
    theirs = [output for value in TABULAR for output in giving.sample(value, 1, rng())]
    keys = from_raw(theirs).keys()
    assert np.array_equal(keys, from_raw(TABULAR).keys())
    assert len(set(keys.tolist())) == len(TABULAR)


def test_reading_a_frame_does_not_change_it() -> None:
    frames: list[Any] = [
        pd.DataFrame({"n": pd.array([1, None], dtype="Int64")}),
        pd.DataFrame({"k": pd.Categorical(["u", "v"])}, index=["a", "b"]),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.Series(pd.array([1, None], dtype="Int64")),
    ]
    # A process imports pandas, which takes most of its time.
    with (
        mechanism_of(faulty.reads) as reading,
        mechanism_of(faulty.overwrites) as overwriting,
    ):
        for frame in frames:
            before = fingerprint(frame)
            assert before is not None
            assert reading.sample(frame, 3, rng()) == [len(frame)] * 3
            faulty.reads(frame)
            assert fingerprint(frame) == before
            assert code(overwriting.sample, frame, 3, rng()) == "input-changed"
            faulty.overwrites(frame)
            assert fingerprint(frame) != before


def test_frames_of_polars_are_read_by_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in has what is used of Polars."""

    class DataFrame:
        def __init__(self, columns: dict[str, list[Any]]) -> None:
            self.columns = list(columns)
            self.get_column: Any = lambda name: Series(columns[name])
            self.shape = (max(map(len, columns.values())), len(columns))

        def __array__(self) -> Any:
            return np.array([self.get_column(name).to_list() for name in self.columns]).T

    class Series:
        dtype = "Int64"

        def __init__(self, values: list[Any]) -> None:
            self.to_list: Any = lambda: values

        def __array__(self) -> Any:
            return np.array(self.to_list())

    stand_in: Any = types.ModuleType("polars")
    stand_in.DataFrame, stand_in.Series = DataFrame, Series
    monkeypatch.setitem(sys.modules, "polars", stand_in)
    outputs: list[Any] = [
        DataFrame({"a": [1], "b": [2]}),
        DataFrame({"b": [1], "a": [2]}),
        Series([1]),
    ]
    here = from_raw(outputs)
    assert len(set(here.keys().tolist())) == 3
    assert here.word(0) == 'polars.DataFrame("a"=(1), "b"=(2))'
    sent = [parsed(child_script._written(output)) for output in outputs]
    monkeypatch.delitem(sys.modules, "polars")
    assert np.array_equal(from_raw(sent).keys(), here.keys())


def test_outcomes_that_cannot_be_sent_are_an_error() -> None:
    with (
        mechanism_of(faulty.strange) as mechanism,
        pytest.raises(MechanismError, match=r"type builtins.object, .*give post_process") as error,
    ):
        mechanism.sample(0, 1, rng())
    assert error.value.code == "output-unsupported"
    with mechanism_of(faulty.strange, post_process=faulty.is_there) as mechanism:
        assert list(mechanism.sample(0, 1, rng())) == [True]


@pytest.mark.parametrize(("function", "is_batch"), [(faulty.cyclic, False), (faulty.deep, True)])
def test_outputs_with_too_many_levels_are_the_same_error_as_here(
    function: Any, is_batch: bool
) -> None:
    with pytest.raises(MechanismError) as here:
        from_raw([function(0)] * 2)
    extra: Any = {"function": faulty.listed, "post_process": function}
    with (
        mechanism_of(**extra) if is_batch else mechanism_of(function) as mechanism,
        pytest.raises(MechanismError) as there,
    ):
        mechanism.sample(0, 2, rng())
    assert (there.value.code, str(there.value)) == (here.value.code, str(here.value))
