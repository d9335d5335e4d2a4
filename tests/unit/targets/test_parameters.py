"""Parameters under other names: which one takes the dataset, and which one the generator."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.adapters.calls import Mechanism
from dpaudit.adapters.loading import load_mechanism
from dpaudit.auditing.options import flag_of
from dpaudit.config.building import build_spec
from dpaudit.targets.target import ImportedTarget, IsolatedTarget
from tests.raising import refusal

SOURCE = """
import functools
def late(prng, queries, epsilon): return queries + epsilon + (prng.random() < 2)
def batches(prng, queries, count): return [queries + (prng.random() < 2)] * count
def keywords(*, queries, generator): return queries + (generator.random() < 2)
def anything(**given): return given["data"] + (given["noise"].random() < 2)
def generator_first(rng, x): return x + (rng.random() < 2)
def needs_generator(x, prng): return x
def two(x, y): return y - x
def own_rng(x, rng=None): return rng
class Noise:
    def __init__(self, scale): self.scale = scale
    def release(self, source, data): return data * self.scale + (source.random() < 2)
def make(scale): return Noise(scale).release
"""

NAMED = {"data_arg": "queries", "rng_arg": "prng"}
CASES: dict[str, dict[str, Any]] = {
    "late": {**NAMED, "params": {"epsilon": 1}},
    "batches": {**NAMED, "batch_arg": "count"},
    "keywords": {"data_arg": "queries", "rng_arg": "generator"},
    "anything": {"data_arg": "data", "rng_arg": "noise"},
    "generator_first": {"data_arg": "x"},
    "Noise": {"init": [2], "call": "release", "data_arg": "data", "rng_arg": "source"},
    "make": {"init": [2], "factory": True, "data_arg": "data", "rng_arg": "source"},
}
EXPECTED = {"late": 7, "Noise": 11, "make": 11}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("named") / "named.py"
    path.write_text(SOURCE)
    return path


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def drawn(mechanism: Mechanism) -> list[int]:
    try:
        return [
            *map(int, mechanism.sample(5, 2, rng())),
            *map(int, mechanism.sample_each([5, 5], rng())),
        ]
    finally:
        mechanism.close()


@pytest.mark.parametrize("name", CASES)
def test_named_parameters_take_the_dataset_and_the_generator(file: Path, name: str) -> None:
    target = ImportedTarget(path=f"{file}:{name}", **CASES[name])
    assert drawn(load_mechanism(target)) == [EXPECTED.get(name, 6)] * 4


# Another interpreter imports the mechanism itself, and passes its arguments in the same way.
@pytest.mark.parametrize(
    ("name", "python"),
    [*((name, None) for name in ("late", "batches", "keywords")), ("Noise", sys.executable)],
)
def test_named_parameters_work_in_another_process(
    file: Path, name: str, python: str | None
) -> None:
    inner = ImportedTarget(path=f"{file}:{name}", **CASES[name])
    assert (
        drawn(load_mechanism(IsolatedTarget(target=inner, python=python)))
        == [EXPECTED.get(name, 6)] * 4
    )


def test_a_generator_is_not_passed_if_the_user_wants_none(file: Path) -> None:
    mechanism = load_mechanism(ImportedTarget(path=f"{file}:own_rng", rng_arg="none"))
    assert mechanism.sample(1, 1, rng()) == [None]


def test_configurations_accept_named_parameters() -> None:
    settings: dict[str, Any] = {"mechanism": "m:f", "d1": 0, "d2": 1, "claim": {"epsilon": 1}}
    spec = build_spec({**settings, "data_arg": "a", "rng_arg": "b"})
    assert spec.target == ImportedTarget(path="m:f", data_arg="a", rng_arg="b")
    settings |= {"mechanism": None, "command": "cat", "data_arg": "a"}
    assert refusal(build_spec, settings).code == "options-conflict"


@pytest.mark.parametrize(
    ("name", "options", "code", "remedy"),
    [
        ("late", {"params": {"epsilon": 1}}, "parameter-missing", "--data-arg"),
        ("needs_generator", {}, "parameter-missing", "--rng-arg"),
        ("generator_first", {}, "parameter-missing", "--data-arg"),
        ("keywords", {}, "parameter-missing", "--data-arg"),
        ("late", {"data_arg": "querys"}, "parameter-unknown", "'queries'"),
        ("needs_generator", {"rng_arg": "prgn"}, "parameter-unknown", "'prng'"),
        ("two", {"data_arg": "y", "params": {"y": 1}}, "options-conflict", "--param"),
        ("two", {"data_arg": "y", "rng_arg": "y"}, "options-conflict", "--rng-arg"),
    ],
)
def test_errors_of_parameters_name_a_remedy(
    file: Path, name: str, options: dict[str, Any], code: str, remedy: str
) -> None:
    error = refusal(load_mechanism, ImportedTarget(path=f"{file}:{name}", **options))
    assert (error.code, remedy in "".join(error.spelled(flag_of))) == (code, True)
