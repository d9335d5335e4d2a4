from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from dpaudit.errors import DatasetError
from dpaudit.inputs.recordings import read_arms, read_guesses, read_pair
from dpaudit.outcomes import from_raw
from dpaudit.stats.one_run import Guesses


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


def test_json_lines_are_any_values(tmp_path: Path) -> None:
    rows = [1, "a", None, [1, 2], {"x": 1}]
    file = csv(tmp_path, "\n".join(map(json.dumps, rows)) + "\n\n", "d.jsonl")
    assert read_pair(file, file)[0] == rows


def test_parquet(tmp_path: Path) -> None:
    file = tmp_path / "d.parquet"
    parquet.write_table(pyarrow.table({"x": [1.5, 2], "n": [1, None], "v": [[1], [2, 3]]}), file)
    assert words(read_pair(file, file)[0]) == [
        '{"n": 1, "v": (1), "x": 1.5}', '{"n": None, "v": (2, 3), "x": 2}',
    ]  # fmt: skip


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "d.parquet"
    parquet.write_table(pyarrow.table({"x": [1.5]}), file)
    original = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(DatasetError, match="pip install pyarrow"):
        read_pair(file, file)
    with pytest.raises(DatasetError, match="there is no file"):
        read_pair(tmp_path / "none.parquet", file)


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


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "is empty"),
        ("x,y\n", "is empty"),
        ("1,2\n3,4\n", r"first line holds numbers \(1,2\), not the names"),
        ("x,x\n1,2\n", "two columns have the name 'x'"),
        ("x,y\n1,2\n1,2,3\n", "line 3 has 3 cells, the header has 2"),
    ],
)
def test_csv_that_is_none(tmp_path: Path, text: str, match: str) -> None:
    file = csv(tmp_path, text)
    with pytest.raises(DatasetError, match=match):
        read_pair(file, file)


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("d.npy", b"abc", "not a complete array of numbers or text as numpy.save writes it"),
        ("d.jsonl", b"1\n{\n", "line 2 is not valid JSON"),
        ("d.parquet", b"abc", "not a Parquet file"),
        ("d.csv", b"x\n\xff\n", "cannot be read"),
        ("d.txt", b"1\n", "files of type '.txt' are not read; known: .npy"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: bytes, match: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError, match=match):
        read_pair(tmp_path / name, tmp_path / name)


def test_pickled_arrays_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", np.array([{}], dtype=object))
    np.save(tmp_path / "e.npy", np.float64(1))
    with pytest.raises(DatasetError, match="pickled objects are refused") as refusal:
        read_pair(tmp_path / "d.npy", tmp_path / "d.npy")
    assert "pickle.load" not in str(refusal.value)
    with (tmp_path / "z.npy").open("wb") as stream:
        np.savez(stream, np.ones(3))
    with pytest.raises(DatasetError, match=r"z\.npy: not a complete array"):
        read_pair(tmp_path / "z.npy", tmp_path / "z.npy")
    with pytest.raises(DatasetError, match="the array has no rows"):
        read_pair(tmp_path / "e.npy", tmp_path / "e.npy")


@pytest.mark.parametrize("name", ["d1.csv", "d1.npy", "d1.jsonl", "d1.parquet"])
def test_a_file_that_is_not_there(tmp_path: Path, name: str) -> None:
    (tmp_path / f"x{name}").touch()
    with pytest.raises(DatasetError, match=f"there is no file .*{name}'. Did you mean 'x{name}'"):
        read_pair(tmp_path / name, tmp_path / name)


def test_files_of_different_columns(tmp_path: Path) -> None:
    one, other = csv(tmp_path, "x,y\n1,2\n"), csv(tmp_path, "x,z\n1,2\n", "other.csv")
    with pytest.raises(DatasetError, match=r"holds the columns x, y and .* the columns x, z; both"):
        read_pair(one, other)
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    np.save(tmp_path / "b.npy", np.ones((3, 4)))
    with pytest.raises(DatasetError, match=r"arrays of shape \(2\) and .* of shape \(4\)"):
        read_pair(tmp_path / "a.npy", tmp_path / "b.npy")


@pytest.mark.parametrize(
    ("text", "column", "match"),
    [
        ("arm,x\n1,2\n", "arms", "no column 'arms'; it has arm, x. Did you mean 'arm'"),
        ("arm,x\n0,2\n", "arm", "column 'arm' holds 0.0; it must hold 1 for outputs of d1"),
        ("arm,x\n,2\n", "arm", "column 'arm' holds None"),
        ("arm\n1\n", "arm", "has the column 'arm' only"),
    ],
)
def test_arms_that_are_none(tmp_path: Path, text: str, column: str, match: str) -> None:
    with pytest.raises(DatasetError, match=match):
        read_arms(csv(tmp_path, text), column)


def test_arms_need_names(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", [1.0])
    with pytest.raises(DatasetError, match="has no named columns"):
        read_arms(tmp_path / "d.npy", "arm")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("included,guess\n2,1\n", "column 'included' holds 2.0; it must hold 1 .in. or 0 .out.$"),
        ("included,guess\n1,x\n", "column 'guess' holds 'x'; .* or empty where nothing"),
        ("in,guess\n1,1\n", "no column 'included'"),
    ],
)
def test_guesses_that_are_none(tmp_path: Path, text: str, match: str) -> None:
    with pytest.raises(DatasetError, match=match):
        read_guesses(csv(tmp_path, text))


def test_a_quote_that_is_never_closed_is_named_and_others_are_read(tmp_path: Path) -> None:
    file = csv(tmp_path, 'x,y\n1,"two\nlines"\n5" pipe,3\n"a ""b""",4\n')
    d1, _ = read_pair(file, file)
    assert len(words(d1)) == 3
    for text, line in (('x\n1\n"2\n3\n', 3), ('x\n1\n"2', 3), ('"x\n1\n', 1)):
        file = csv(tmp_path, text, "open.csv")
        with pytest.raises(DatasetError, match=f"open.csv: the quotation mark in line {line} is"):
            read_pair(file, file)
    file = csv(tmp_path, f"x\n{'1' * 200_000}\n", "long.csv")
    with pytest.raises(DatasetError, match=r"long\.csv: line 2 is not CSV: field larger than"):
        read_pair(file, file)
