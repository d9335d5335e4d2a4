"""Parameters under other names: which one takes the dataset, and which one the generator."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.adapters.calls import Mechanism
from dpaudit.adapters.loading import load_mechanism
from dpaudit.config.building import build_spec
from dpaudit.errors import TargetError
from dpaudit.targets.target import ImportedTarget, IsolatedTarget
from tests.raising import code

SOURCE = """
def late(prng, queries, epsilon): return queries + epsilon + (prng.random() < 2)
def batches(prng, queries, count): return [queries + (prng.random() < 2)] * count
def keywords(*, queries, generator): return queries + (generator.random() < 2)
def anything(**given): return given["data"] + (given["noise"].random() < 2)
def generator_first(rng, x): return x + (rng.random() < 2)
def needs_generator(x, prng): return x
def two(x, y): return y - x
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


@pytest.mark.parametrize(("name", "python"), [("batches", None), ("Noise", sys.executable)])
def test_named_parameters_work_in_another_process(
    file: Path, name: str, python: str | None
) -> None:
    imported = ImportedTarget(path=f"{file}:{name}", **CASES[name])
    target = IsolatedTarget(target=imported, python=python)
    assert drawn(load_mechanism(target)) == [EXPECTED.get(name, 6)] * 4


def test_configurations_accept_named_parameters() -> None:
    settings: dict[str, Any] = {"mechanism": "m:f", "d1": 0, "d2": 1, "claim": {"epsilon": 1}}
    spec = build_spec({**settings, "data_arg": "a", "rng_arg": "b"})
    assert spec.target == ImportedTarget(path="m:f", data_arg="a", rng_arg="b")
    settings |= {"mechanism": None, "command": "cat", "data_arg": "a"}
    assert code(build_spec, settings) == "options-conflict"


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("needs_generator", {}, "parameter-missing"),
        ("generator_first", {}, "parameter-missing"),
        ("keywords", {}, "parameter-missing"),
        ("late", {"data_arg": "querys"}, "parameter-unknown"),
        ("needs_generator", {"rng_arg": "prgn"}, "parameter-unknown"),
        ("two", {"data_arg": "y", "params": {"y": 1}}, "options-conflict"),
        ("two", {"data_arg": "y", "rng_arg": "y"}, "options-conflict"),
    ],
)
def test_wrong_parameters_are_refused(
    file: Path, name: str, options: dict[str, Any], expected: str
) -> None:
    assert code(load_mechanism, ImportedTarget(path=f"{file}:{name}", **options)) == expected


SEEDED = """
def state(x, random_state): return x + (random_state.random() < 2)
def generator(x, generator): return x + (generator.random() < 2)
def of_torch(x, generator: "torch.Generator"): return x
def usual(x, random_state=None): return random_state
def needed(x, seed): return seed
def optional(x, *, seed=None): return seed
def fixed(x, seed=0): return seed
def both(x, rng, seed=None): return seed
def batch(x, size, seed): return [seed] * size
def alone(x, size, seed): return [seed]
def names(x, seed, name, function): return (seed, name, function)
"""


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("seeded") / "seeded.py"
    path.write_text(SEEDED)
    return path


def mechanism_of(path: Path, name: str, *, isolated: bool = False, **options: Any) -> Mechanism:
    target = ImportedTarget(path=f"{path}:{name}", **options)
    return load_mechanism(IsolatedTarget(target=target) if isolated else target)


@pytest.mark.parametrize("isolated", [False, True])
@pytest.mark.parametrize("name", ["state", "generator"])
def test_usual_names_of_generators_are_known(seeded: Path, name: str, isolated: bool) -> None:
    assert drawn(mechanism_of(seeded, name, isolated=isolated)) == [6] * 4


@pytest.mark.parametrize("isolated", [False, True])
def test_a_seed_is_a_new_integer_in_each_call(seeded: Path, isolated: bool) -> None:
    cases: dict[str, dict[str, Any]] = {"needed": {}, "optional": {}}
    if not isolated:  # there, a call for one draw gets no number of outputs
        cases["alone"] = {"batch_arg": "none"}
    for name, options in cases.items():
        seeds = drawn(mechanism_of(seeded, name, isolated=isolated, **options))
        assert len(set(seeds[:2])) == 2
        assert seeds[2:] == seeds[:2]  # from an equal generator
        assert all(0 <= seed < 2**32 for seed in seeds)
    first, *others, last = drawn(mechanism_of(seeded, "batch", isolated=isolated))
    assert others == [first] * 2  # two outputs of one call, and a first call of two
    assert last != first


@pytest.mark.parametrize("isolated", [False, True])
def test_a_seed_goes_with_parameters_of_any_name(seeded: Path, isolated: bool) -> None:
    params = {"name": 1, "function": 2}
    mechanism = mechanism_of(seeded, "names", isolated=isolated, params=params)
    ((seed, *others),) = mechanism.sample(5, 1, rng())
    mechanism.close()
    assert (type(seed), others) == (int, [1, 2])


@pytest.mark.parametrize("isolated", [False, True])
def test_a_seed_is_left_alone_where_it_may_be_meant(seeded: Path, isolated: bool) -> None:
    assert drawn(mechanism_of(seeded, "fixed", isolated=isolated)) == [0] * 4
    cases: dict[str, dict[str, Any]] = {
        "usual": {},
        "both": {},
        "optional": {"rng_arg": "none"},
        "needed": {"params": {"seed": None}},
    }
    if not isolated:
        (output,) = mechanism_of(seeded, "needed", rng_arg="seed").sample(5, 1, rng())
        assert isinstance(output, np.random.Generator)
    for name, options in cases.items():
        mechanism = mechanism_of(seeded, name, isolated=isolated, **options)
        assert mechanism.sample(5, 2, rng()) == [None] * 2
        mechanism.close()
    with pytest.raises(TargetError, match="needs 'generator'"):
        mechanism_of(seeded, "of_torch", isolated=isolated)
