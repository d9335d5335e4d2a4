"""Datasets as data frames: what they are made from, their types, and where they are made."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpaudit.config.building import build_spec
from dpaudit.config.yaml_files import load_config
from dpaudit.inputs.datasets import load_dataset
from tests.raising import code, refusal

CSV = """name, age, score, member, day, zip, gap
Ada, 36, 1.5, true, 2024-01-01, x1, 1
Bob, , 2, FALSE, 2024-02-01, 12,
"""
SOURCE = """
import pandas as pd
FRAME = pd.DataFrame({"age": [36]})
def noisy_mean(frame, rng):
    assert type(frame) is pd.DataFrame
    return float(frame["age"].sum() + rng.laplace())
def dtypes(frame): return repr(frame.dtypes.astype(str).to_dict())
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(CSV)
    (tmp_path / "rows.json").write_text('[{"a": 1, "b": "x"}, {"a": 2.5}]')
    (tmp_path / "numbers.csv").write_text("1,2.5\n3,4\n")
    (tmp_path / "empty.csv").write_text("age,score\n")
    (tmp_path / "framed.py").write_text(SOURCE)
    return tmp_path


def test_columns_of_a_csv_file_have_the_types_of_their_cells(folder: Path) -> None:
    frame = load_dataset("@rows.csv", form="pandas")
    assert frame["name"].tolist() == ["Ada", "Bob"]
    assert frame["age"].dtype.kind == "f"  # with a gap, as pandas has it
    assert frame["score"].tolist() == [1.5, 2.0]
    assert frame["member"].tolist() == [True, False]
    assert frame["member"].dtype.kind == "b"
    assert frame["day"].tolist() == ["2024-01-01", "2024-02-01"]
    assert frame["zip"].tolist() == ["x1", "12"]  # text where one is
    assert frame["gap"].isna().tolist() == [False, True]
    assert load_dataset("@empty.csv", form="pandas").columns.tolist() == ["age", "score"]
    assert load_dataset("@numbers.csv", form="pandas").to_numpy().tolist() == [[1, 2.5], [3, 4]]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("@rows.json", {"a": [1, 2.5], "b": ["x", None]}),
        ([{"a": 1}, {"a": 2, "b": 3}], {"a": [1, 2], "b": [None, 3]}),
        ({"a": [1, 2], "b": ["x", "y"]}, {"a": [1, 2], "b": ["x", "y"]}),
        ({"a": []}, {"a": []}),
        ([[1, 2], [3, 4]], {0: [1, 3], 1: [2, 4]}),
        ([{"tuple": [1, 2]}], {0: [1], 1: [2]}),
        ("import:framed.py:FRAME", {"age": [36]}),
    ],
)
def test_rows_and_columns_become_frames(folder: Path, value: Any, expected: Any) -> None:
    pd.testing.assert_frame_equal(load_dataset(value, form="pandas"), pd.DataFrame(expected))


def test_what_has_no_rows_is_refused() -> None:
    for value in (5, [1, 2], [[1], [1, 2]], [{"a": 1}, 5], {"a": [1], "b": [1, 2]}, []):
        assert code(load_dataset, value, form="pandas") == "form-impossible"
    assert "{age: []}" in str(refusal(load_dataset, [], form="pandas"))


def test_polars_is_asked_for_columns_or_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in says what it was called with; that Polars takes it, is seen with Polars only."""
    calls: list[Any] = []
    stand_in: Any = types.ModuleType("polars")
    stand_in.DataFrame = lambda data, **options: calls.append((data, options))
    monkeypatch.setitem(sys.modules, "polars", stand_in)
    options = {"orient": "row", "strict": False}
    load_dataset([{"a": 1}, {"a": 2.5}], form="polars")
    load_dataset([[1, 2]], form="polars")
    assert calls == [({"a": [1, 2.5]}, options), ([[1, 2]], options)]


def test_files_and_flags_name_the_form(folder: Path) -> None:
    (folder / "audits.yaml").write_text(
        "version: 1\n"
        "audits:\n"
        "  - {mechanism: 'framed.py:noisy_mean', as: pandas, d1: '@rows.csv', d2: '@empty.csv',\n"
        "     claim: {epsilon: 1}}\n"
    )
    (spec,) = load_config(folder / "audits.yaml")
    assert [type(one) for one in (spec.pairs[0].d1, spec.pairs[0].d2)] == [pd.DataFrame] * 2
    settings = {"command": "cat", "as": "pandas", "d1": [], "d2": [], "claim": {"epsilon": 1}}
    assert code(build_spec, settings) == "options-conflict"
