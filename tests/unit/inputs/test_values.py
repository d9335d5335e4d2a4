"""Values that YAML and JSON have no form for: tuples, imports, dates; and what YAML 1.1 made up."""

from __future__ import annotations

import datetime
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.adapters.loading import load_mechanism
from dpaudit.auditing.engine import run_audit
from dpaudit.certificates.result import Verdict
from dpaudit.config.building import build_spec
from dpaudit.config.yaml_files import load_config
from dpaudit.errors import TargetError
from dpaudit.inputs.datasets import load_dataset, parse_dataset
from dpaudit.inputs.values import Rows, resolved, written
from tests.raising import code, refusal

SOURCE = """
BOUNDS = (0, 1)
def make(): return {"made": (1,)}
def fails(): raise ValueError("no bounds")
def scaled(x): return 2 * x
def show(x, value=None, then=None): return repr((x, value, then and then(1)))
class Shown:
    def __init__(self, *args, **named): self.made = (args, named)
    def __call__(self, x): return repr(self.made)
def outcome(x, rng): return (x[0] + int(rng.random() < 0.5), "a")
"""
SETTINGS = {"d1": 0, "d2": 1, "claim": {"epsilon": 1}}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "given.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return "given.py"


def shown(settings: dict[str, Any], dataset: Any = 0) -> Any:
    """Return what a mechanism is given, in words."""
    mechanism = load_mechanism(build_spec({**SETTINGS, **settings}).target)
    try:
        (output,) = mechanism.sample(dataset, 1, np.random.default_rng(0))
    finally:
        mechanism.close()
    return output


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{tuple: [0, 1]}", (0, 1)),
        ("[{tuple: [1, {tuple: [2]}]}, 3]", [(1, (2,)), 3]),
        ("{a: {tuple: [{b: {tuple: [1]}}]}}", {"a": ({"b": (1,)},)}),
        ("{tuple: {tuple: [0, 1]}}", {"tuple": [0, 1]}),
        ("{tuple: {tuple: {tuple: [1]}}}", {"tuple": (1,)}),
        ("{tuple: [1], other: 2}", {"tuple": [1], "other": 2}),
        ("import::text", "import:text"),
    ],
)
def test_tuples_and_the_mappings_that_look_like_them(text: str, value: Any) -> None:
    found = load_dataset(parse_dataset(text))
    assert repr(found) == repr(value)


def test_a_tuple_is_a_list_of_entries() -> None:
    for text in ("{tuple: 5}", "{tuple: {a: 1}}", "[{tuple: null}]"):
        assert code(load_dataset, parse_dataset(text)) == "value-malformed"


def test_imports_are_resolved_in_datasets_at_any_depth(file: str) -> None:
    assert load_dataset(f"import:{file}:BOUNDS") == (0, 1)
    nested = [f"import:{file}:BOUNDS", {"a": f"import:{file}:make"}, f"import:{file}:make()"]
    assert load_dataset(nested) == [(0, 1), {"a": {"made": (1,)}}, {"made": (1,)}]
    error = refusal(load_dataset, [f"import:{file}:fails"])
    assert error.code == "import-failed"
    assert "ValueError: no bounds" in str(error)
    assert isinstance(refusal(load_dataset, ["import:nowhere"]), TargetError)


@pytest.mark.parametrize("place", [{}, {"isolate": True}, {"python": sys.executable}])
def test_params_and_init_take_tuples_and_imports(file: str, place: dict[str, Any]) -> None:
    target = {"mechanism": f"{file}:show", **place}
    value = [{"tuple": [0, {"tuple": [1]}]}, f"import:{file}:make()"]
    both = {"value": value, "then": f"import:{file}:scaled"}
    assert shown({**target, "params": both}) == "(0, [(0, (1,)), {'made': (1,)}], 2)"
    made = {"mechanism": f"{file}:Shown", **place}
    assert shown({**made, "init": [f"import:{file}:BOUNDS", 1]}) == "(((0, 1), 1), {})"


def test_configurations_take_all_of_it(file: str, tmp_path: Path) -> None:
    config = tmp_path / "audits.yaml"
    config.write_text(
        "version: 1\n"
        "audits:\n"
        f"  - mechanism: {file}:outcome\n"
        "    d1: {tuple: [0]}\n"
        "    d2: {tuple: ['${second}']}\n"
        "    matrix: {second: [0, 1]}\n"
        "    range: [{tuple: [0, a]}, {tuple: [1, a]}, {tuple: [2, a]}]\n"
        "    claim: {epsilon: 1}\n"
        "    samples: 2000\n"
    )
    same, other = load_config(config)
    assert (same.pairs[0].d1, other.pairs[0].d2) == ((0,), (1,))
    assert other.pairs[0].label == "d1 = (0,), d2 = (1,)"
    assert run_audit(other).verdict is Verdict.VIOLATION


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-01-01", "2024-01-01"),
        ("1:30", "1:30"),
        ("!!timestamp 2024-01-01", datetime.date(2024, 1, 1)),
        ("!!timestamp 2024-01-01 12:30:00", datetime.datetime(2024, 1, 1, 12, 30)),
        ("!!str 5", "5"),
        ("yes", "yes"),
        ("[true, False]", [True, False]),
        ("1_000", 1000),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("1e3", 1000.0),
        ("-1.5E-3", -0.0015),
        (".5", 0.5),
        ("[.inf, -.inf]", [math.inf, -math.inf]),
        ("1.2.3", "1.2.3"),
    ],
)
def test_plain_scalars_are_those_of_yaml_1_2(text: str, value: Any) -> None:
    found = parse_dataset(text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("{array: [[1, 2], [3, 4]]}", np.ndarray, "array([[1, 2],\n       [3, 4]])"),
        ("{array: [a, b]}", np.ndarray, "array(['a', 'b'], dtype='<U1')"),
        ("{pandas: {age: [36, 41]}}", pd.DataFrame, "   age\n0   36\n1   41"),
        ("[{a: {tuple: [{array: [1]}, 2]}}]", list, "[{'a': (array([1]), 2)}]"),
        ("{array: {array: [1]}}", dict, "{'array': [1]}"),
        ("{array: [1], more: 2}", dict, "{'array': [1], 'more': 2}"),
    ],
)
def test_arrays_and_frames_are_written_in_place(text: str, kind: type, words: str) -> None:
    dataset = load_dataset(parse_dataset(text))
    assert type(dataset) is kind
    assert repr(dataset) == words
    assert repr(resolved(written(parse_dataset(text)))) == words


def test_a_frame_in_place_is_left_to_another_python() -> None:
    dataset = load_dataset({"tuple": [{"pandas": {"a": [1, 2]}}, 3]}, elsewhere=True)
    assert type(dataset[0]) is Rows
    assert dataset[0].package == "pandas"


def test_what_is_no_array_or_frame_is_refused() -> None:
    values: list[Any] = [
        *({"array": [[1], [1, 2]]}, {"array": [None]}, {"array": {"a": 1}}, {"pandas": 5}),
        *({"pandas": [[1], [2, 3]]}, {"polars": "a"}, {"array": ["import:math:pi", 1]}),
        {"pandas": {"a": {"array": [1]}}},
    ]
    for value in values:
        codes = {code(written, given) for given in (value, [value])}
        assert codes <= {"form-impossible", "import-failed", "package-missing"}, value
