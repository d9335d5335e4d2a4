"""The file of a journal: whole records or none, one writer, and no damage that goes unnoticed."""

from __future__ import annotations

import datetime
import fcntl
import json
import math
import os
import resource
import subprocess
import sys
import tracemalloc
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
from dpaudit.auditing import journal
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
    Counted,
    Failures,
    Head,
    Learning,
    Probe,
    Rare,
    ToCount,
    ToLearn,
)
from dpaudit.targets.target import CallableTarget
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


def test_records_follow_a_cut_off_one(path: Path) -> None:
    ends = write(path, numbered(0), numbered(1))
    path.write_bytes(path.read_bytes()[: ends[1] - 7])
    write(path, numbered(2))
    assert records_in(path) == [numbered(0), numbered(2)]


@pytest.mark.parametrize("tail", [b"\x00" * 4_096, b"\n\n\n", b"00000000 {}\n", b"x" * 300])
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
        with pytest.raises(JournalError) as error:
            JournalFile(path)
        assert error.value.code == "journal-damaged"
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
    with opened(path), pytest.raises(JournalError) as error:
        JournalFile(path)
    assert error.value.code == "journal-in-use"
    assert records_in(path) == []


def test_a_killed_writer_keeps_no_lock_and_loses_no_record(path: Path) -> None:
    script = (
        "import os, sys, signal; from pathlib import Path\n"
        "from dpaudit.auditing.journal import JournalFile, Start\n"
        "file = JournalFile(Path(sys.argv[1])); file.append(Start('0'))\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], timeout=60)
    assert records_in(path) == [numbered(0)]


def test_syncs_take_at_most_one_percent_of_the_time(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    times: list[float] = []

    def sync(_: int) -> None:
        nonlocal now
        times.append(now)
        now += 0.1

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(journal, "time", SimpleNamespace(monotonic=lambda: now))
    with opened(path) as file:
        times.clear()
        for _ in range(1_000):
            file.append(numbered(0))
            now += 0.05
    assert len(times) <= 6  # 50 s, 100 times 0.1 s between two of them, one at the end
    assert times[0] == 0.1


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match=r"file/a\.journal") as error:
        JournalFile(tmp_path / "file" / "a.journal")
    assert error.value.code == "cannot-write"


def test_a_full_disk_is_named(path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with opened(path) as file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
        try:
            with pytest.raises(JournalError, match="File too large") as error:
                file.append(Start("0" * 10_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        file.append(numbered(1))
    assert error.value.code == "cannot-write"
    assert records_in(path) == [numbered(1)]


@pytest.mark.parametrize("content", ["1\n2\n3\n", "name,age\n", "\n", "deadbeef 12 [1]\n"])
def test_a_file_that_is_no_journal_stays_as_it_is(tmp_path: Path, content: str) -> None:
    path = tmp_path / "audit.journal"
    path.write_text(content)
    with pytest.raises(JournalError) as error:
        JournalFile(path)
    assert error.value.code == "journal-damaged"
    assert path.read_text() == content


IS_D1 = np.array([True, False, True])
MIXED = from_raw([0.1, {"a": [None, "é\ud800"]}, Raised("KeyError", "1")])
FAILURES = Failures({"array": (1, 0)}, {"array": Raised("array", "\ud800", "mine.py:3")})
CHUNKS = {
    "probe": Probe(True, 3, 0.1),
    "learning": Learning(FreshDraws(MIXED, IS_D1), FAILURES),
    "counted": Counted(
        Tally(np.array([[1, 2], [3, 4]])),
        AtomTally(np.array([[5, 6]]), (7, 8)),
        RangeTally(AtomTally(np.array([[9, 2**60]]), (1, 2)), "'x'"),
        FAILURES,
        (Head(MIXED.keys(), IS_D1),),
        (Tally.empty(3), Tally.empty(0)),
        Rare(SelectionDraws(from_raw([2.0, np.nan, 5.0]), IS_D1), (3, 7), 5),
        (0, 1),
    ),
    "nothing rare": Counted(
        Tally.empty(2),
        None,
        None,
        Failures(),
        rare=Rare(SelectionDraws(from_raw([]), np.empty(0, dtype=bool)), (3, 7)),
    ),
}


@pytest.mark.parametrize("chunk", CHUNKS.values(), ids=CHUNKS)
def test_a_chunk_comes_back_bit_by_bit(path: Path, chunk: Any) -> None:
    step = Step("chunk", 0.5, "state", **{type(chunk).__name__.lower(): chunk})
    write(path, step)
    (again,) = records_in(path)
    assert isinstance(again, Step)
    assert type(again.drawn) is type(chunk)
    assert to_json(again) == to_json(step)
    if isinstance(again.drawn, Counted) and again.drawn.rare and again.drawn.rare.kept.size:
        keys = from_raw([2.0, np.nan, 5.0]).keys()
        assert again.drawn.rare.kept.outcomes.keys().tolist() == keys.tolist()
        assert again.drawn.rare.kept.is_d1.flags.writeable


def test_objects_are_neither_written_nor_read() -> None:
    with pytest.raises(TypeError):
        to_json(Step("a", 0.0, "", value=np.array([print])))
    forged = [["|O", [1], "AAAAAAAAAAA="], [[], [1], "AAAAAAAAAAA="]]
    for array in forged:
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


def test_a_journal_removed_before_it_is_locked_is_begun_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, numbered(0))
    flock = fcntl.flock

    def lock(number: int, how: int) -> None:
        monkeypatch.undo()
        path.unlink()
        flock(number, how)

    monkeypatch.setattr(fcntl, "flock", lock)
    with opened(path) as file:
        assert (file.existed, list(file.read())) == (False, [])
        file.append(numbered(1))
    assert records_in(path) == [numbered(1)]


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


def test_a_journal_removed_while_it_is_open_can_still_be_read(path: Path) -> None:
    write(path, numbered(0), numbered(1))
    with opened(path) as file:
        path.unlink()
        records = file.read()
        assert next(records) == numbered(0)
        file.append(numbered(2))
        assert list(records) == [numbered(1)]


def test_a_journal_that_cannot_be_read_is_an_error_with_a_code(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, numbered(0))
    whole = Path.open

    def unreadable(file: Path, mode: str = "r", *given: Any, **named: Any) -> Any:
        if mode == "rb":  # root reads every file, so that no mode of the file refuses it
            raise PermissionError(13, "Permission denied")
        return whole(file, mode, *given, **named)

    monkeypatch.setattr(Path, "open", unreadable)
    with pytest.raises(JournalError) as error:
        JournalFile(path)
    assert error.value.code == "cannot-write"


@pytest.mark.parametrize(
    "number",
    [math.nan, math.inf, -math.inf, np.float64(math.nan), np.int64(2**60 + 1), np.bool_(True)],
)
def test_numbers_that_json_lacks_come_back(path: Path, number: Any) -> None:
    write(path, Step("a", 0.0, "", value=(number, {"a": number})))
    (record,) = records_in(path)
    assert isinstance(record, Step)
    plain = np.asarray(number).item()
    assert repr(record.value) == repr([plain, {"a": plain}])


def test_a_record_of_another_format_is_refused(path: Path) -> None:
    header = Header("1.0", 0, {}, False)
    text = to_json(header)
    for other in (text.replace(b'"format":1', b'"format":2'), b'{"journal":5}', b'{"type":"end"}'):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"%08x %b\n" % (zlib.crc32(other), other))
        with opened(path) as file, pytest.raises(JournalError) as error:
            next(file.read())
        assert error.value.code == "journal-of-another-release"
    assert from_json(text, Record) == header


SPEC = audit_of(
    name="audit",
    target=CallableTarget(function=float),
    pairs=(NeighbouringPair(0, 1, None, "0, 1"),),
    claim=PureDP(1.0),
)
RUN, PROBED = Session({}), Step("(0, 1) 2", 0.5, "", probe=Probe(True, 1))


def test_the_records_of_earlier_runs_are_read_one_at_a_time(path: Path) -> None:
    write(path, *(Step(f"{number}", 0.0, "", value="x" * 1_000_000) for number in range(40)))
    with opened(path) as file:
        tracemalloc.start()
        try:
            FileJournal(SPEC, file)
            assert tracemalloc.get_traced_memory()[1] < 15_000_000
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize(
    ("records", "deaths", "resumed"),
    [
        ([RUN], 0, 0),
        ([RUN, Start("(0, 1) 2"), RUN], 1, 0),
        ([RUN, Start("(0, 1) 2"), Close(), RUN], 0, 0),
        ([RUN, Start("(0, 1) 2"), PROBED, RUN, PROBED, RUN], 0, 1),
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
        assert all(text.startswith(f"{deaths} of the ") for text in again.warnings)


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
    tally = Counted(Tally.empty(2), None, None, Failures())

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
            with pytest.raises(JournalError) as error:
                list(drawn)
            assert error.value.code == "journal-disagrees"


def test_a_step_of_another_name_is_not_repeated(path: Path) -> None:
    write(path, PROBED)
    with opened(path) as file:
        again = FileJournal(SPEC, file)
        assert again.once("used up", list) is None
        for step in (again.clock, again.finish):
            with pytest.raises(JournalError) as error:
                step()
            assert error.value.code == "journal-disagrees"


Point = namedtuple("Point", ["x", "y"])


class Colour(Enum):
    RED = 1


RAW: dict[str, Any] = {
    "floats": np.array([0.1, -0.0, np.inf, 5e-324, np.nan]),
    "integers": [1, 2**53 + 1, -(10**400)],
    "Booleans": [True, False],
    "texts": ["a", "é", "\ud800", "line\nbreak", '"', "x" * 5_000],
    "bytes": [b"\x00\xff", b"", b"abc"],
    "nothing": [None, None],
    "mixed": [1, "1", None, 2.5, Raised("ValueError", "no"), b"1", True],
    "failures": [Raised("A", "x"), Raised("B", ""), 0.5],
    "vectors": np.arange(12.0).reshape(4, 3),
    "matrices": np.arange(8).reshape(2, 2, 2),
    "lists of any length": [[1, 2], [], [3], (4, 5, 6)],
    "dicts": [{"a": 1, "b": [1]}, {"a": 2}, {}],
    "sets": [{1, 2}, set(), {"a", (1, b"x")}],
    "objects": [Point(1, 2.5), Point("a", None), {"x": Point(0, 0)}],
    "special": [Decimal("0.1"), datetime.date(2020, 2, 29), Colour.RED, 1 + 2j, np.float32(0.1)],
    "structured": np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    "one constant": [[], []],
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


def test_so_does_one_of_all_of_them_and_a_part_of_it() -> None:
    table = concatenate([from_raw(raw) for raw in RAW.values()])
    assert_same(written(table), table)
    part = table.take(np.array([5, 0, 5, 11]))
    assert_same(written(part), part)


def test_what_comes_back_joins_others_as_before() -> None:
    first, second = from_raw(["a", 1.0]), from_raw([{"k": 2}, "b"])
    assert_same(concatenate([written(first), second]), concatenate([first, second]))


def test_durations_come_along() -> None:
    table = timed(from_raw([1, "a", 2]), np.array([5, 6, 7]))
    assert_same(written(table), table)
