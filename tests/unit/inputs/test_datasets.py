from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.errors import TargetError
from dpaudit.inputs.datasets import load_dataset, parse_dataset
from tests.raising import code, refusal


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2.5]", [1, 2.5]),
        ("{a: [1, 1e-5]}", {"a": [1, 1e-5]}),
        ("'1'", "1"),
        ("null", None),
        ("-Infinity", -math.inf),
        ("@rows.csv", "@rows.csv"),
        ("import:my.data:frame", "import:my.data:frame"),
    ],
)
def test_command_line_values(text: str, value: Any) -> None:
    assert parse_dataset(text) == value


def test_unparsable_command_line_values() -> None:
    texts = ["[1, 2", "{a: 1, a: 2}", "!!python/object:os.system 1", "", "  "]
    assert [code(parse_dataset, text) for text in texts] == [
        *("yaml-invalid", "key-twice", "value-refused", "value-malformed", "value-malformed")
    ]


def test_json_and_yaml_files(folder: Path) -> None:
    (folder / "rows.json").write_text(json.dumps([1, {"a": 2}]))
    (folder / "rows.yaml").write_text("- 1\n- a: 1e-5\n")
    assert load_dataset("@rows.json") == [1, {"a": 2}]
    assert load_dataset("@rows.yaml") == [1, {"a": 1e-5}]


def test_csv_with_a_header_gives_records(folder: Path) -> None:
    (folder / "rows.csv").write_text("name, age,score\nAda,36,1.5\n\nBob,,x_1\n")
    assert load_dataset("@rows.csv") == [
        {"name": "Ada", "age": 36, "score": 1.5},
        {"name": "Bob", "age": None, "score": "x_1"},
    ]


def test_words_for_missing_values_are_texts_among_texts(folder: Path) -> None:
    (folder / "rows.csv").write_text("a,b,c\nNA,nan,1\nDE,inf,\n")
    first, second = load_dataset("@rows.csv")
    assert (first["a"], second) == ("NA", {"a": "DE", "b": math.inf, "c": None})
    assert math.isnan(first["b"])
    (folder / "rows.yaml").write_text("- 'None'\n- north\n")
    assert load_dataset("@rows.yaml") == ["None", "north"]


def test_csv_of_numbers_alone_gives_rows(folder: Path) -> None:
    (folder / "rows.csv").write_text("1,2.5\n3,4\n")
    assert load_dataset("@rows.csv") == [[1, 2.5], [3, 4]]
    assert load_dataset("@rows.csv", form="array").shape == (2, 2)


def test_npy_without_pickle(folder: Path) -> None:
    np.save(folder / "rows.npy", np.arange(3))
    np.save(folder / "objects.npy", np.array([{}], dtype=object))
    assert load_dataset("@rows.npy").tolist() == [0, 1, 2]
    assert code(load_dataset, "@objects.npy") == "file-malformed"


def test_files_are_looked_for_beside_the_configuration_next(folder: Path) -> None:
    (folder / "configs").mkdir()
    (folder / "configs" / "rows.json").write_text("1")
    assert load_dataset("@rows.json", base=folder / "configs") == 1
    (folder / "rows.json").write_text("2")
    assert load_dataset("@rows.json", base=folder / "configs") == 2


def test_missing_and_unknown_files(folder: Path) -> None:
    (folder / "rows.json").write_text("1")
    error = refusal(load_dataset, "@row.json")
    assert error.code == "file-not-found"
    assert "Did you mean 'rows.json'?" in str(error)
    for name, named in {"rows.pickle": ".npy", "rows.jso": "'.json'", "rows": "'unknown'"}.items():
        error = refusal(load_dataset, f"@{name}")
        assert error.code == "file-type-unknown"
        assert named in str(error)
    (folder / "data").mkdir()
    assert code(load_dataset, "@data") == "file-unreadable"


REFUSED = [
    ("x.json", "[1,", "file-malformed"),
    ("x.json", "[1, 1e999]", "number-too-large"),
    ("x.yaml", "a: 1\na: 2\n", "key-twice"),
    ("x.yaml", "&a [*a]", "value-refused"),
    ("x.yaml", "- 1\n- None\n", "value-misread"),
    ("x.yaml", "- {a:1}", "value-misread"),
    ("x.csv", "", "file-empty"),
    ("x.csv", "a,b\n1\n", "file-malformed"),
    ("x.csv", "a,b\n1,x\nNone,y\n", "file-malformed"),
    ("x.csv", "1,2\n3,NA\n", "file-malformed"),
    ("x.csv", "a\n1e999\n", "number-too-large"),
]


@pytest.mark.parametrize(("name", "content", "expected"), REFUSED)
def test_bad_content(folder: Path, name: str, content: str, expected: str) -> None:
    (folder / name).write_text(content)
    assert code(load_dataset, f"@{name}") == expected


def test_imported_objects_and_functions(folder: Path) -> None:
    (folder / "data.py").write_text(
        "FRAME = {'a': 1}\n"
        "def make(): return [1]\n"
        "def fails(): raise ValueError('no rows')\n"
        "def takes(n): return n\n"
    )
    assert load_dataset("import:data.py:FRAME") == {"a": 1}
    assert load_dataset("import:data.py:make") == [1]
    error = refusal(load_dataset, "import:data.py:fails")
    assert error.code == "import-failed"
    assert "ValueError: no rows" in str(error)
    assert code(load_dataset, "import:data.py:takes") == "import-failed"
    error = refusal(load_dataset, "import:data.py:mak")
    assert isinstance(error, TargetError)
    assert "'make'" in str(error)


def test_as_array() -> None:
    array = load_dataset([1, 2], form="array")
    assert isinstance(array, np.ndarray)
    assert array.dtype.kind == "i"
    assert load_dataset(3, form="numpy").shape == ()
    for value in ([[1], [1, 2]], [{"a": 1}]):
        assert code(load_dataset, value, form="array") == "form-impossible"
