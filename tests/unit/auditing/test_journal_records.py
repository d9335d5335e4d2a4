"""The file of a journal: whole records or none, one writer, and no damage that goes unnoticed."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpaudit.auditing.journal import records as module
from dpaudit.auditing.journal.chunks import arrays_of, drawn_of, words_of
from dpaudit.auditing.journal.records import Records
from dpaudit.draws import SelectionDraws
from dpaudit.errors import JournalError
from dpaudit.outcomes import from_raw
from dpaudit.sampling.chunks import Counted, Failures, Rare
from dpaudit.tally import Tally

ARRAYS = {"numbers": np.array([0.1, np.nan]), "codes": np.arange(3, dtype=np.int32)}


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "audit.journal"


@contextmanager
def opened(path: Path) -> Iterator[Records]:
    with closing(Records(path)) as records:
        yield records


def write(path: Path, *words: dict[str, Any]) -> list[int]:
    """Append records, every other one with arrays; return where each ends."""
    ends = []
    with opened(path) as records:
        for number, one in enumerate(words):
            records.extend([(one, ARRAYS if number % 2 else {})])
            ends.append(path.stat().st_size)
    return ends


def words_in(path: Path) -> list[dict[str, Any]]:
    with opened(path) as records:
        return [one.words for one in records.read()]


def test_records_come_back_in_order_with_their_arrays(path: Path) -> None:
    write(path, {"a": [1, 2**70, 0.1, None]}, {"b": "é\ud800\n"}, {"c": {}})
    with opened(path) as records:
        first, second, third = records.read()
    assert (first.words, second.words, third.words) == (
        {"a": [1, 2**70, 0.1, None]},
        {"b": "é\ud800\n"},
        {"c": {}},
    )
    arrays = second.arrays()
    assert arrays.keys() == ARRAYS.keys()
    assert all(arrays[name].tobytes() == one.tobytes() for name, one in ARRAYS.items())
    assert arrays["codes"].dtype == np.int32


def test_a_record_may_be_cut_off_anywhere_and_the_others_stay(path: Path) -> None:
    ends = write(path, {"n": 0}, {"n": 1}, {"n": 2}, {"n": 3})
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        there = sum(end <= size for end in ends)
        assert words_in(path) == [{"n": number} for number in range(there)]
        assert path.stat().st_size == (ends[there - 1] if there else 0)


def test_one_goes_on_after_what_was_cut_off(path: Path) -> None:
    ends = write(path, {"n": 0}, {"n": 1})
    path.write_bytes(path.read_bytes()[: ends[1] - 7])
    write(path, {"n": 2})
    assert words_in(path) == [{"n": 0}, {"n": 2}]


@pytest.mark.parametrize("tail", [b"\x00" * 4_096, b"\n\n\n", b"00000000 9 {}\n", b"x" * 300])
def test_what_a_failing_disk_left_at_the_end_is_taken_away(path: Path, tail: bytes) -> None:
    write(path, {"n": 0}, {"n": 1})
    path.write_bytes(path.read_bytes() + tail)
    assert words_in(path) == [{"n": 0}, {"n": 1}]


def test_damage_before_the_end_is_an_error_and_nothing_is_touched(path: Path) -> None:
    ends = write(path, {"n": 0}, {"n": 1}, {"n": 2})
    whole = path.read_bytes()
    for place in range(ends[1]):
        damaged = bytearray(whole)
        damaged[place] ^= 0x20
        path.write_bytes(damaged)
        with pytest.raises(JournalError, match="damaged at byte"):
            Records(path)
        assert path.read_bytes() == damaged


def test_damage_of_the_last_record_drops_it(path: Path) -> None:
    ends = write(path, {"n": 0}, {"n": 1})
    for place in range(ends[0], ends[1]):
        damaged = bytearray(path.read_bytes())
        damaged[place] ^= 0x20
        other = path.with_name("other")
        other.write_bytes(damaged)
        assert words_in(other) == [{"n": 0}]


def test_one_process_writes_at_a_time(path: Path) -> None:
    with opened(path), pytest.raises(JournalError, match="another process is writing"):
        Records(path)
    assert words_in(path) == []


def test_a_killed_writer_holds_up_nobody(path: Path) -> None:
    script = (
        "import os, sys, signal; from pathlib import Path\n"
        "from dpaudit.auditing.journal.records import Records\n"
        "records = Records(Path(sys.argv[1])); records.append({'n': 0})\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], timeout=60)
    assert words_in(path) == [{"n": 0}]


def test_syncs_are_rare_and_a_slow_disk_makes_them_rarer(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    times: list[float] = []

    def sync(_: int) -> None:
        nonlocal now
        times.append(now)
        now += 0.1

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    with opened(path) as records:
        times.clear()
        for _ in range(1_000):
            records.append({})
            now += 0.05
    assert len(times) <= 6  # 50 s, 100 times 0.1 s between two of them, one at the end
    assert times[0] == 0.1


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match=r"cannot write the journal .*file/a\.journal"):
        Records(tmp_path / "file" / "a.journal")


def test_a_full_disk_is_named(path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with opened(path) as records:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
        try:
            with pytest.raises(JournalError, match=r"cannot write the journal .*File too large"):
                records.extend([({"n": 0}, {"numbers": np.zeros(1_000)})])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("content", ["1\n2\n3\n", "name,age\n", "\n", "deadbeef 12 [1]\n"])
def test_somebody_elses_file_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "audit.journal"
    path.write_text(content)
    with pytest.raises(JournalError, match="is not a journal of dpaudit"):
        Records(path)
    assert path.read_text() == content


@pytest.mark.parametrize("kept", [[], [2.0, np.nan, 5.0]])
def test_what_is_rare_of_counted_draws_comes_back(path: Path, kept: list[float]) -> None:
    is_d1 = np.arange(len(kept)) % 2 == 0
    rare = Rare(SelectionDraws(from_raw(kept), is_d1), (3, 7), 5)
    drawn = Counted(Tally.empty(2), None, None, Failures(), rare=rare)
    with opened(path) as records:
        records.extend([(words_of(drawn), arrays_of(drawn))])
    with opened(path) as records:
        (record,) = records.read()
        again = drawn_of(record)
    assert isinstance(again, Counted)
    assert again.rare is not None
    assert (again.rare.arms, again.rare.lost) == ((3, 7), 5)
    assert again.rare.kept.is_d1.tolist() == is_d1.tolist()
    assert again.rare.kept.outcomes.keys().tolist() == from_raw(kept).keys().tolist()
