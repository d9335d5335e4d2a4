"""The file of a journal: whole records or none, one writer, and no damage that goes unnoticed."""

from __future__ import annotations

import datetime
import json
import os
import resource
import zlib
from collections import namedtuple
from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from enum import Enum
from io import FileIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from dpaudit import PureDP
from dpaudit.auditing.journal import (
    SEARCH_SUFFIX,
    Close,
    FileJournal,
    Header,
    JournalFile,
    Record,
    Session,
    Start,
    Step,
    from_json,
    journal_path,
    remove,
    to_json,
)
from dpaudit.draws import AtomTally, FreshDraws, RangeTally, SelectionDraws, Tally
from dpaudit.errors import JournalError
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.outcomes import Outcomes, Raised, concatenate, from_raw, timed
from dpaudit.sampling.chunks import (
    Failures,
    Head,
    Learning,
    LevelCounts,
    Probe,
    Rare,
    ToCount,
    ToLearn,
)
from dpaudit.targets.target import CallableTarget
from tests.raising import code
from tests.specs import audit_of


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "audit.journal"


@contextmanager
def opened(path: Path) -> Iterator[JournalFile]:
    with closing(JournalFile(path)) as file:
        yield file


def numbered(number: int) -> Start:
    return Start(str(number))


def write(path: Path, *records: Record) -> list[int]:
    """Append records; return where each ends."""
    ends = []
    with opened(path) as file:
        for record in records:
            file.append(record)
            ends.append(path.stat().st_size)
    return ends


def records_in(path: Path) -> list[Record]:
    with opened(path) as file:
        return list(file.read())


def test_records_come_back_in_order(path: Path) -> None:
    records: list[Record] = [
        Header("1.0", 2**70, {"seed": ("1", "é\ud800\n")}, False),
        Step("a", 0.1, "", value=[1, -0.0, None, {"b": 2**70}]),
        Start("c"),
    ]
    write(path, *records)
    assert records_in(path) == records


def test_a_record_may_be_cut_off_anywhere_and_the_others_stay(path: Path) -> None:
    ends = write(path, numbered(0), numbered(1), numbered(2), numbered(3))
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        there = sum(end <= size for end in ends)
        assert records_in(path) == [numbered(number) for number in range(there)]
        assert path.stat().st_size == (ends[there - 1] if there else 0)


@pytest.mark.parametrize("tail", [b"\x00" * 4_096, b"00000000 {}\n"])
def test_garbage_of_a_failing_disk_at_the_end_is_removed(path: Path, tail: bytes) -> None:
    write(path, numbered(0), numbered(1))
    path.write_bytes(path.read_bytes() + tail)
    assert records_in(path) == [numbered(0), numbered(1)]


def test_damage_before_the_end_is_an_error_and_the_file_stays_as_it_is(path: Path) -> None:
    ends = write(path, numbered(0), numbered(1), numbered(2))
    whole = path.read_bytes()
    for place in range(ends[1]):
        damaged = bytearray(whole)
        damaged[place] ^= 0x20
        path.write_bytes(damaged)
        assert code(JournalFile, path) == "journal-damaged"
        assert path.read_bytes() == damaged


def test_damage_of_the_last_record_drops_it(path: Path) -> None:
    ends = write(path, numbered(0), numbered(1))
    for place in range(ends[0], ends[1]):
        damaged = bytearray(path.read_bytes())
        damaged[place] ^= 0x20
        other = path.with_name("other")
        other.write_bytes(damaged)
        assert records_in(other) == [numbered(0)]


def test_one_process_writes_at_a_time(path: Path) -> None:
    with opened(path):
        assert code(JournalFile, path) == "journal-in-use"
    assert records_in(path) == []


def test_a_full_disk_is_named(path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with opened(path) as file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
        try:
            with pytest.raises(JournalError) as error:
                file.append(Start("0" * 10_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        file.append(numbered(1))
    assert error.value.code == "cannot-write"
    assert records_in(path) == [numbered(1)]


@pytest.mark.parametrize("content", ["name,age\n", "deadbeef 12 [1]\n"])
def test_a_file_that_is_no_journal_stays_as_it_is(tmp_path: Path, content: str) -> None:
    path = tmp_path / "audit.journal"
    path.write_text(content)
    assert code(JournalFile, path) == "journal-damaged"
    assert path.read_text() == content


IS_D1 = np.array([True, False, True])
MIXED = from_raw([0.1, {"a": [None, "é\ud800"]}, Raised("KeyError", "1")])
FAILURES = Failures({"array": (1, 0)}, {"array": Raised("array", "\ud800", "mine.py:3")})
CHUNKS = {
    "probe": Probe(True, 3, 0.1),
    "learning": Learning(FreshDraws(MIXED, IS_D1), FAILURES),
    "counted": LevelCounts(
        Tally(np.array([[1, 2], [3, 4]])),
        AtomTally(np.array([[5, 6]]), (7, 8)),
        RangeTally(AtomTally(np.array([[9, 2**60]]), (1, 2)), "'x'"),
        FAILURES,
        (Head(MIXED.keys(), IS_D1),),
        (Tally.empty(3), Tally.empty(0)),
        Rare(SelectionDraws(from_raw([2.0, np.nan, 5.0]), IS_D1), (3, 7), 5),
        (0, 1),
    ),
    "nothing rare": LevelCounts(
        Tally.empty(2),
        None,
        None,
        Failures(),
        rare=Rare(SelectionDraws(from_raw([]), np.empty(0, dtype=bool)), (3, 7)),
    ),
}


@pytest.mark.parametrize("chunk", CHUNKS.values(), ids=CHUNKS)
def test_a_chunk_comes_back_bit_by_bit(path: Path, chunk: Any) -> None:
    field = {Probe: "probe", Learning: "learning", LevelCounts: "counted"}[type(chunk)]
    step = Step("chunk", 0.5, "state", **{field: chunk})
    write(path, step)
    (again,) = records_in(path)
    assert isinstance(again, Step)
    assert type(again.drawn) is type(chunk)
    assert to_json(again) == to_json(step)
    if isinstance(again.drawn, LevelCounts) and again.drawn.rare and again.drawn.rare.kept.size:
        keys = from_raw([2.0, np.nan, 5.0]).keys()
        assert again.drawn.rare.kept.outcomes.keys().tolist() == keys.tolist()
        assert again.drawn.rare.kept.is_d1.flags.writeable


def test_objects_are_neither_written_nor_read() -> None:
    with pytest.raises(TypeError):
        to_json(Step("a", 0.0, "", value=np.array([print])))
    for array in (["|O", [1], "AAAAAAAAAAA="], [[], [1], "AAAAAAAAAAA="]):
        with pytest.raises(msgspec.ValidationError):
            from_json(json.dumps({"counts": array}).encode(), Tally)


def test_an_interrupt_between_two_partial_writes_leaves_no_torn_record(path: Path) -> None:
    class Interrupted(FileIO):
        def write(self, text: Any) -> int:
            if self.tell() > end:
                raise KeyboardInterrupt
            return super().write(bytes(text)[:5])

    (end,) = write(path, numbered(0))
    with opened(path) as file:
        whole, file._file = file._file, Interrupted(path, "ab")
        with pytest.raises(KeyboardInterrupt):
            file.append(numbered(1))
        file._file.close()
        file._file = whole
        file.append(numbered(2))
    assert records_in(path) == [numbered(0), numbered(2)]


def test_a_journal_in_use_is_not_removed(path: Path) -> None:
    path = journal_path(path.parent, "audit")
    write(path, numbered(0))
    search = path.with_suffix(SEARCH_SUFFIX)
    search.touch()
    with opened(path):
        remove(path.parent, "audit")
        assert path.exists()
        assert search.exists()
    for _ in range(2):
        remove(path.parent, "audit")
        assert not path.exists()
        assert not search.exists()


def test_a_record_of_another_format_is_refused(path: Path) -> None:
    header = Header("1.0", 0, {}, False)
    text = to_json(header)
    for other in (text.replace(b'"format":1', b'"format":2'), b'{"journal":5}', b'{"type":"end"}'):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"%08x %b\n" % (zlib.crc32(other), other))
        with opened(path) as file:
            assert code(next, file.read()) == "journal-of-another-release"
    assert from_json(text, Record) == header


SPEC = audit_of(
    name="audit",
    target=CallableTarget(function=float),
    pairs=(NeighbouringPair(0, 1, None, "0, 1"),),
    claim=PureDP(1.0),
)
RUN, PROBED = Session({}), Step("(0, 1) 2", 0.5, "", probe=Probe(True, 1))


@pytest.mark.parametrize(
    ("records", "deaths", "resumed"),
    [
        ([RUN, Start("(0, 1) 2"), RUN], 1, 0),
        ([RUN, Start("(0, 1) 2"), Close(), RUN], 0, 0),
        ([RUN, PROBED, Start("(0, 2) 2"), RUN, Start("(0, 2) 2"), RUN], 2, 1),
    ],
)
def test_runs_and_those_that_died_in_a_chunk_are_counted(
    path: Path, records: list[Record], deaths: int, resumed: int
) -> None:
    write(path, *records)
    with opened(path) as file:
        again = FileJournal(SPEC, file)
        assert again.resumed == resumed
        assert len(again.warnings) == (deaths > 0)


def counting(guess: int, *, size: int = 9, number: int = 0) -> Any:
    words = {1: "output > 0", -1: "output < 0"}
    rule = SimpleNamespace(words=words.__getitem__, share=1.0, point=None)
    portfolio = SimpleNamespace(rules=[rule], all_guesses=[np.array([guess, -1])])
    measure: Any = SimpleNamespace(portfolio=portfolio, atoms=None)
    return ToCount((0, 5, number), size, measure)


@pytest.mark.parametrize(
    "chunk", [counting(0), counting(1, size=8), counting(1, number=1), ToLearn((0, 5, 0), 9)]
)
def test_a_chunk_of_other_rules_or_another_size_is_not_repeated(path: Path, chunk: Any) -> None:
    tally = LevelCounts(Tally.empty(2), None, None, Failures())

    def draw(requested: Any) -> Any:
        return (tally for _ in requested)

    with opened(path) as file:
        first = FileJournal(SPEC, file)
        assert len(list(first.recording(draw, lambda: False)([counting(1)]))) == 1
    for again, is_same in ((counting(1), True), (chunk, False)):
        with opened(path) as file:
            drawn = FileJournal(SPEC, file).recording(draw, lambda: False)([again])
            if is_same:
                assert [part.tally for part in drawn] == [tally.tally]
                continue
            assert code(list, drawn) == "journal-disagrees"


def test_a_step_of_another_name_is_not_repeated(path: Path) -> None:
    write(path, PROBED)
    with opened(path) as file:
        again = FileJournal(SPEC, file)
        assert again.once("used up", list) is None
        for step in (again.clock, again.finish):
            assert code(step) == "journal-disagrees"


Point = namedtuple("Point", ["x", "y"])


class Colour(Enum):
    RED = 1


RAW: dict[str, Any] = {
    "floats": np.array([0.1, -0.0, np.inf, 5e-324, np.nan]),
    "integers": [1, 2**53 + 1, -(10**400)],
    "texts": ["a", "é", "\ud800", "line\nbreak", '"', "x" * 5_000],
    "bytes": [b"\x00\xff", b"", b"abc"],
    "mixed": [1, "1", None, 2.5, Raised("ValueError", "no"), b"1", True],
    "matrices": np.arange(8).reshape(2, 2, 2),
    "lists of any length": [[1, 2], [], [3], (4, 5, 6)],
    "dicts": [{"a": 1, "b": [1]}, {"a": 2}, {}],
    "sets": [{1, 2}, set(), {"a", (1, b"x")}],
    "objects": [Point(1, 2.5), Point("a", None), {"x": Point(0, 0)}],
    "special": [Decimal("0.1"), datetime.date(2020, 2, 29), Colour.RED, 1 + 2j, np.float32(0.1)],
    "structured": np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    "no outcome": [],
}


def written(table: Outcomes) -> Outcomes:
    again: Outcomes = from_json(to_json(table), Outcomes)
    return again


def assert_same(one: Outcomes, other: Outcomes) -> None:
    assert type(one) is type(other)
    assert one.size == other.size
    assert one.width == other.width
    assert np.array_equal(one.keys(), other.keys())
    assert one.words(range(one.size)) == other.words(range(other.size))
    assert len(one.columns) == len(other.columns)
    for first, second in zip(one.columns, other.columns, strict=True):
        assert first.name == second.name
        assert first.labels == second.labels
        assert first.numbers.tobytes() == second.numbers.tobytes()
        assert (first.codes is None) == (second.codes is None)
        if first.codes is not None and second.codes is not None:
            assert first.codes.dtype == second.codes.dtype
            assert np.array_equal(first.codes, second.codes)


@pytest.mark.parametrize("raw", RAW.values(), ids=RAW.keys())
def test_a_table_comes_back_as_it_was(raw: Any) -> None:
    assert_same(written(from_raw(raw)), from_raw(raw))


def test_so_does_one_of_all_of_them_with_durations_and_a_part_of_it() -> None:
    table = concatenate([from_raw(raw) for raw in RAW.values()])
    for outcomes in (
        table,
        table.take(np.array([5, 0, 5, 11])),
        timed(table, np.arange(table.size)),
    ):
        assert_same(written(outcomes), outcomes)
