from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from dpaudit.inputs.output_files import read_arms, read_guesses, read_pair
from dpaudit.outcomes import from_raw
from dpaudit.stats.one_run import Guesses
from tests.raising import code


def csv(folder: Path, text: str, name: str = "draws.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def words(raw: Any) -> list[str]:
    return from_raw(raw).words(range(len(raw)))


def test_arrays(tmp_path: Path) -> None:
    for name, rows in (("one", [0.5, 2.0]), ("two", [[1, 2], [3, 4]])):
        np.save(tmp_path / f"{name}.npy", rows)
        d1, d2 = read_pair(tmp_path / f"{name}.npy", tmp_path / f"{name}.npy")
        assert np.array_equal(d1, rows)
        assert np.array_equal(d2, rows)


def test_one_column_is_its_values_and_several_are_named(tmp_path: Path) -> None:
    one = csv(tmp_path, "x\n1\n2.5\n")
    assert words(read_pair(one, one)[0]) == ["1", "2.5"]
    two = csv(tmp_path, "x,y\n1,a\n2.5,\n")
    other = csv(tmp_path, "y,x\na,1\n,2.5\n", "other.csv")
    d1, d2 = read_pair(two, other)
    assert words(d1) == words(d2) == ['{"x": 1, "y": \'a\'}', '{"x": 2.5, "y": None}']


def test_tabs(tmp_path: Path) -> None:
    file = csv(tmp_path, "x\ty\n1\t2\n", "d.tsv")
    assert words(read_pair(file, file)[0]) == ['{"x": 1, "y": 2}']


def test_cells_are_numbers_text_or_nothing(tmp_path: Path) -> None:
    file = csv(tmp_path, 'x\n1\nnan\n1_000\nabc\n""\n')
    assert read_pair(file, file)[0][2:] == ["1_000", "abc", None]


def test_parquet(tmp_path: Path) -> None:
    file = tmp_path / "d.parquet"
    parquet.write_table(pyarrow.table({"x": [1.5, 2], "n": [1, None], "v": [[1], [2, 3]]}), file)
    assert words(read_pair(file, file)[0]) == [
        '{"n": 1, "v": (1), "x": 1.5}', '{"n": None, "v": (2, 3), "x": 2}',
    ]  # fmt: skip


@pytest.mark.parametrize("arms", ["1 2 1", "d1 d2 d1"])
def test_arms(tmp_path: Path, arms: str) -> None:
    rows = zip(arms.split(), (5, 6, 7), strict=True)
    file = csv(tmp_path, "arm,x\n" + "".join(f"{arm},{x}\n" for arm, x in rows))
    outcomes, is_d1 = read_arms(file, "arm")
    assert words(outcomes) == ["5", "6", "7"]
    assert is_d1.tolist() == [True, False, True]


def test_arms_of_json_lines_and_structured_arrays(tmp_path: Path) -> None:
    lines = csv(tmp_path, '{"arm": 1, "x": 5}\n{"arm": 2, "x": "a"}\n', "d.jsonl")
    assert read_arms(lines, "arm")[0] == [5, "a"]
    array = np.array([(1, 5.0, [1, 2]), (2, 6.0, [3, 4])], dtype="i8,f8,(2,)f8")
    np.save(tmp_path / "d.npy", array)
    outcomes, is_d1 = read_arms(tmp_path / "d.npy", "f0")
    assert words(outcomes) == ['{"f1": 5, "f2": (1, 2)}', '{"f1": 6, "f2": (3, 4)}']
    assert is_d1.tolist() == [True, False]


def test_guesses(tmp_path: Path) -> None:
    file = csv(tmp_path, "included,guess\n1,1\n0,1\n1,\n0,0\n1,-1\n")
    assert read_guesses(file) == Guesses(5, 4, 2)
    lines = csv(tmp_path, '{"included": true, "guess": null}\n' * 2, "g.jsonl")
    assert read_guesses(lines) == Guesses(2, 0, 0)


REFUSED: list[tuple[str, bytes, str]] = [
    ("d.csv", b"", "file-empty"),
    ("d.csv", b"1,2\n3,4\n", "file-malformed"),
    ("d.csv", b"x,y\n1,2\n1,2,3\n", "file-malformed"),
    ("d.csv", b"x\n\xff\n", "file-unreadable"),
    ("d.npy", b"abc", "file-malformed"),
    ("d.parquet", b"abc", "file-malformed"),
    ("d.txt", b"1\n", "file-type-unknown"),
    ("open.csv", b'x\n1\n"2\n3\n', "file-malformed"),
    ("open.csv", b'"x\n1\n', "file-malformed"),
    ("long.csv", b"x\n" + 200_000 * b"1" + b"\n", "file-malformed"),
]


@pytest.mark.parametrize(("name", "content", "expected"), REFUSED)
def test_files_that_cannot_be_read(
    tmp_path: Path, name: str, content: bytes, expected: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert code(read_pair, tmp_path / name, tmp_path / name) == expected


def test_pickled_arrays_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", np.array([{}], dtype=object))
    np.save(tmp_path / "e.npy", np.float64(1))
    assert code(read_pair, tmp_path / "d.npy", tmp_path / "d.npy") == "file-malformed"
    with (tmp_path / "z.npy").open("wb") as stream:
        np.savez(stream, np.ones(3))
    assert code(read_pair, tmp_path / "z.npy", tmp_path / "z.npy") == "file-malformed"
    assert code(read_pair, tmp_path / "e.npy", tmp_path / "e.npy") == "file-empty"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for name in ("rows.csv", "rows.npy", "rows.jsonl", "rows.parquet"):
        assert code(read_pair, tmp_path / name, tmp_path / name) == "file-not-found"


def test_files_of_different_columns(tmp_path: Path) -> None:
    one, other = csv(tmp_path, "x,y\n1,2\n"), csv(tmp_path, "x,z\n1,2\n", "other.csv")
    assert code(read_pair, one, other) == "recording-invalid"
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    np.save(tmp_path / "b.npy", np.ones((3, 4)))
    assert code(read_pair, tmp_path / "a.npy", tmp_path / "b.npy") == "recording-invalid"


def test_arms_and_guesses_that_are_none(tmp_path: Path) -> None:
    assert code(read_arms, csv(tmp_path, "arm,x\n1,2\n"), "arms") == "column-unknown"
    for text in ("arm,x\n0,2\n", "arm,x\n,2\n", "arm\n1\n"):
        assert code(read_arms, csv(tmp_path, text), "arm") == "recording-invalid"
    np.save(tmp_path / "d.npy", [1.0])
    assert code(read_arms, tmp_path / "d.npy", "arm") == "recording-invalid"
    for text in ("2,1", "1,x"):
        assert code(read_guesses, csv(tmp_path, f"included,guess\n{text}\n")) == (
            "recording-invalid"
        )
    assert code(read_guesses, csv(tmp_path, "in,guess\n1,1\n")) == "column-unknown"


def test_quotes_hold_lines_and_quotes(tmp_path: Path) -> None:
    file = csv(tmp_path, 'x,y\n1,"two\nlines"\n5" pipe,3\n"a ""b""",4\n')
    assert len(words(read_pair(file, file)[0])) == 3
