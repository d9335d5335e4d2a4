"""Parameters under other names: which one takes the dataset, and which one the generator."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.adapters.calls import Mechanism
from dpaudit.adapters.loading import load_mechanism, timed_calls
from dpaudit.auditing.options import flag_of
from dpaudit.config.building import build_spec
from dpaudit.errors import DpauditError
from dpaudit.targets.target import CallableTarget, ImportedTarget, IsolatedTarget

SOURCE = """
import functools
def late(prng, queries, epsilon): return queries + epsilon + (prng.random() < 2)
def batches(prng, queries, count): return [queries + (prng.random() < 2)] * count
def keywords(*, queries, generator): return queries + (generator.random() < 2)
def anything(**given): return given["data"] + (given["noise"].random() < 2)
def generator_first(rng, x): return x + (rng.random() < 2)
def only_generator(rng): return 1
def by_position(prng, x, /): return x
def rest(prng, *rows): return rows
def needs_generator(x, prng): return x
def needs_more(key, queries): return queries
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


def test_the_dataset_is_the_first_parameter_that_is_not_the_generator(file: Path) -> None:
    target = ImportedTarget(path=f"{file}:late", rng_arg="prng", params={"epsilon": 1})
    assert drawn(load_mechanism(target)) == [7] * 4


def test_a_generator_is_not_passed_if_the_user_wants_none(file: Path) -> None:
    mechanism = load_mechanism(ImportedTarget(path=f"{file}:own_rng", rng_arg="none"))
    assert mechanism.sample(1, 1, rng()) == [None]


def test_odd_names_and_functions_without_a_signature(file: Path) -> None:
    odd = ImportedTarget(path=f"{file}:anything", data_arg="data", rng_arg="noise")
    odd_params = CallableTarget(
        function=lambda **given: given["class"] + given["d"], data_arg="class", params={"d": 1}
    )
    assert drawn(load_mechanism(odd)) == [6] * 4
    assert load_mechanism(odd_params).sample(5, 1, rng()) == [6]
    compiled = CallableTarget(function=rng().normal, data_arg="loc", params={"scale": 0.0})
    assert list(load_mechanism(compiled).sample(5, 2, rng())) == [5.0, 5.0]


def test_calls_with_named_parameters_are_timed(file: Path) -> None:
    target = ImportedTarget(path=f"{file}:late", **CASES["late"])
    outputs, elapsed = timed_calls(load_mechanism(target))([5, 5], rng())
    assert (list(map(int, outputs)), len(elapsed)) == ([7, 7], 2)


def test_configurations_accept_named_parameters() -> None:
    settings = {"mechanism": "m:f", "d1": 0, "d2": 1, "claim": {"epsilon": 1}}
    spec = build_spec({**settings, "data_arg": "a", "rng_arg": "b"})
    assert spec.target == ImportedTarget(path="m:f", data_arg="a", rng_arg="b")
    with pytest.raises(DpauditError, match="command excludes data_arg"):
        build_spec({**settings, "mechanism": None, "command": "cat", "data_arg": "a"})


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        (
            "late",
            {"params": {"epsilon": 1}},
            ["needs 'queries'", "--param", "--data-arg"],
        ),
        ("needs_more", {}, ["needs 'queries'", "--param"]),
        ("needs_generator", {}, ["needs 'prng'", "--rng-arg"]),
        ("two", {}, ["needs 'y'", "--data-arg"]),
        ("generator_first", {}, ["first parameter", "is 'rng'", "--data-arg"]),
        ("only_generator", {}, ["first parameter", "--data-arg"]),
        ("keywords", {}, ["takes no dataset", "--data-arg"]),
        ("rest", {"rng_arg": "prng"}, ["takes no dataset"]),
        (
            "late",
            {"data_arg": "querys"},
            ["to take the dataset (--data-arg). Did you mean 'queries'"],
        ),
        ("by_position", {"data_arg": "x"}, ["no parameter 'x' to take the dataset"]),
        ("needs_generator", {"rng_arg": "prgn"}, ["(--rng-arg). Did you mean 'prng'?"]),
        (
            "two",
            {"data_arg": "y", "params": {"y": 1}},
            ["'y' is given as --param and as --data-arg"],
        ),
        ("two", {"data_arg": "y", "rng_arg": "y"}, ["'y' is given as --data-arg and as --rng-arg"]),
        ("two", {"data_arg": "y"}, ["needs 'x'", "--param"]),
    ],
)
def test_errors_of_parameters_name_a_remedy(
    file: Path, name: str, options: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(DpauditError) as caught:
        load_mechanism(ImportedTarget(path=f"{file}:{name}", **options))
    for word in words:
        assert word in "".join(caught.value.spelled(flag_of))


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        (
            "late",
            {"params": {"epsilon": 1}},
            "'queries', which has no default; give it with params, or name it in rng_arg",
        ),
        ("needs_more", {}, "'queries', which has no default; give it with params"),
        ("needs_generator", {}, "'prng', which has no default; give it with params"),
        ("two", {}, "'y', which has no default; give it with params, or"),
        ("generator_first", {}, "with data_arg"),
        ("keywords", {}, "with data_arg"),
        ("own_rng", {"params": {"rng": 5}}, "rng=5"),
    ],
)
def test_remedies_are_keywords_in_python(
    file: Path, name: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(DpauditError) as caught:
        load_mechanism(ImportedTarget(path=f"{file}:{name}", **options))
    # The parts of a message survive a transfer from another process.
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert words in str(error)
        assert "--" not in str(error)
        assert "YAML" not in str(error)
        assert "--" in "".join(error.spelled(flag_of))


def test_unnamed_parameters_are_passed_by_position() -> None:
    """By position and without a wrapper, which keeps a draw cheap."""
    seen: list[str] = []

    def mechanism(x: float, rng: np.random.Generator) -> int:
        frame = sys._getframe(1)
        seen.append(frame.f_code.co_name)
        return 0

    load_mechanism(CallableTarget(function=mechanism)).sample(0, 3, rng())
    assert set(seen) == {"collect_outputs"}
