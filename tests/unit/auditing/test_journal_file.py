"""The file of a journal: whole records or none, one writer, and no damage that goes unnoticed."""

from __future__ import annotations

import fcntl
import math
import os
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import closing, contextmanager
from io import FileIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpaudit.auditing import journal_file
from dpaudit.auditing.journal import History
from dpaudit.auditing.journal_file import (
    SEARCH_SUFFIX,
    JournalFile,
    decoded,
    encoded,
    journal_path,
    remove,
)
from dpaudit.draws import AtomTally, FreshDraws, RangeTally, SelectionDraws, Tally
from dpaudit.errors import JournalError
from dpaudit.outcomes import Raised, from_raw
from dpaudit.sampling.chunks import Counted, Failures, Head, Learning, Probe, Rare


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


def write(path: Path, *records: dict[str, Any]) -> list[int]:
    """Append records; return where each ends."""
    ends = []
    with opened(path) as file:
        for record in records:
            file.append(record)
            ends.append(path.stat().st_size)
    return ends


def records_in(path: Path) -> list[dict[str, Any]]:
    with opened(path) as file:
        return list(file.read())


def test_records_come_back_in_order(path: Path) -> None:
    records: list[dict[str, Any]] = [{"a": [1, 2**70, 0.1, None]}, {"b": "é\ud800\n"}, {"c": {}}]
    write(path, *records)
    assert records_in(path) == records


def test_a_record_may_be_cut_off_anywhere_and_the_others_stay(path: Path) -> None:
    ends = write(path, {"n": 0}, {"n": 1}, {"n": 2}, {"n": 3})
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        there = sum(end <= size for end in ends)
        assert records_in(path) == [{"n": number} for number in range(there)]
        assert path.stat().st_size == (ends[there - 1] if there else 0)


def test_records_follow_a_cut_off_one(path: Path) -> None:
    ends = write(path, {"n": 0}, {"n": 1})
    path.write_bytes(path.read_bytes()[: ends[1] - 7])
    write(path, {"n": 2})
    assert records_in(path) == [{"n": 0}, {"n": 2}]


@pytest.mark.parametrize("tail", [b"\x00" * 4_096, b"\n\n\n", b"00000000 {}\n", b"x" * 300])
def test_garbage_of_a_failing_disk_at_the_end_is_removed(path: Path, tail: bytes) -> None:
    write(path, {"n": 0}, {"n": 1})
    path.write_bytes(path.read_bytes() + tail)
    assert records_in(path) == [{"n": 0}, {"n": 1}]


def test_damage_before_the_end_is_an_error_and_the_file_stays_as_it_is(path: Path) -> None:
    ends = write(path, {"n": 0}, {"n": 1}, {"n": 2})
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
    ends = write(path, {"n": 0}, {"n": 1})
    for place in range(ends[0], ends[1]):
        damaged = bytearray(path.read_bytes())
        damaged[place] ^= 0x20
        other = path.with_name("other")
        other.write_bytes(damaged)
        assert records_in(other) == [{"n": 0}]


def test_one_process_writes_at_a_time(path: Path) -> None:
    with opened(path), pytest.raises(JournalError) as error:
        JournalFile(path)
    assert error.value.code == "journal-in-use"
    assert records_in(path) == []


def test_a_killed_writer_keeps_no_lock_and_loses_no_record(path: Path) -> None:
    script = (
        "import os, sys, signal; from pathlib import Path\n"
        "from dpaudit.auditing.journal_file import JournalFile\n"
        "file = JournalFile(Path(sys.argv[1])); file.append({'n': 0})\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], timeout=60)
    assert records_in(path) == [{"n": 0}]


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
    monkeypatch.setattr(journal_file, "time", SimpleNamespace(monotonic=lambda: now))
    with opened(path) as file:
        times.clear()
        for _ in range(1_000):
            file.append({})
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
                file.append({"n": "0" * 10_000})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        file.append({"n": 1})
    assert error.value.code == "cannot-write"
    assert records_in(path) == [{"n": 1}]


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
    write(path, {"drawn": encoded(chunk)})
    (record,) = records_in(path)
    again = decoded(record["drawn"])
    assert type(again) is type(chunk)
    assert encoded(again) == encoded(chunk) == record["drawn"]
    if isinstance(again, Counted) and again.rare is not None and again.rare.kept.size:
        keys = from_raw([2.0, np.nan, 5.0]).keys()
        assert again.rare.kept.outcomes.keys().tolist() == keys.tolist()
        assert again.rare.kept.is_d1.flags.writeable


def test_objects_are_not_recorded() -> None:
    with pytest.raises(ValueError, match="run code"):
        encoded(np.array([print]))


def test_an_interrupt_between_two_partial_writes_leaves_no_torn_record(path: Path) -> None:
    class Interrupted(FileIO):
        def write(self, text: Any) -> int:
            if self.tell() > end:
                raise KeyboardInterrupt
            return super().write(bytes(text)[:5])

    (end,) = write(path, {"n": 0})
    with opened(path) as file:
        whole, file._file = file._file, Interrupted(path, "ab")
        with pytest.raises(KeyboardInterrupt):
            file.append({"n": 1})
        file._file.close()
        file._file = whole
        file.append({"n": 2})
    assert records_in(path) == [{"n": 0}, {"n": 2}]


def test_a_journal_removed_before_it_is_locked_is_begun_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, {"n": 0})
    flock = fcntl.flock

    def lock(number: int, how: int) -> None:
        monkeypatch.undo()
        path.unlink()
        flock(number, how)

    monkeypatch.setattr(fcntl, "flock", lock)
    with opened(path) as file:
        assert (file.existed, list(file.read())) == (False, [])
        file.append({"n": 1})
    assert records_in(path) == [{"n": 1}]


def test_a_journal_in_use_is_not_removed(path: Path) -> None:
    path = journal_path(path.parent, "audit")
    write(path, {"n": 0})
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
    write(path, {"n": 0}, {"n": 1})
    with opened(path) as file:
        path.unlink()
        records = file.read()
        assert next(records) == {"n": 0}
        file.append({"n": 2})
        assert list(records) == [{"n": 1}]


def test_a_journal_that_cannot_be_read_is_an_error_with_a_code(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, {"n": 0})
    whole = Path.open

    def unreadable(file: Path, mode: str = "r", *given: Any, **named: Any) -> Any:
        if mode == "rb":  # root reads every file, so that no mode of the file refuses it
            raise PermissionError(13, "Permission denied")
        return whole(file, mode, *given, **named)

    monkeypatch.setattr(Path, "open", unreadable)
    with pytest.raises(JournalError) as error:
        JournalFile(path)
    assert error.value.code == "cannot-write"


def test_records_can_be_read_twice_side_by_side(path: Path) -> None:
    write(path, {"n": 0}, {"n": 1})
    with opened(path) as file:
        pairs = list(zip(file.read(), file.read(), strict=True))
    assert pairs == [({"n": 0}, {"n": 0}), ({"n": 1}, {"n": 1})]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, np.float64(math.nan)])
def test_numbers_that_json_lacks_come_back(path: Path, number: float) -> None:
    write(path, {"drawn": encoded((number, {"a": number}))})
    (record,) = records_in(path)
    first, second = decoded(record["drawn"])
    assert repr((first, second["a"])) == repr((float(number), float(number)))


def test_a_history_is_read_one_record_at_a_time() -> None:
    def records() -> Iterator[dict[str, Any]]:
        yield {"journal": journal_file.FORMAT}
        for number in range(40):
            yield {"chunk": [0, "stage", number], "drawn": "x" * 1_000_000 + str(number)}

    tracemalloc.start()
    try:
        assert History.of(records()).sources == 1
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
