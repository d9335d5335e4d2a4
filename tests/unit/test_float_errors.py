"""NumPy's floating-point error settings: the user's in their code, the defaults in ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.draws import SelectionDraws
from dpaudit.float_errors import auditor_errstate, user_errstate
from dpaudit.outcomes import Outcomes

Rng = np.random.Generator
USUAL: Any = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
STRICT: Any = dict.fromkeys(USUAL, "raise")


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = np.geterr()
    yield
    np.seterr(**before)


def vectors(dataset: float, size: int, rng: Rng) -> Any:
    np.seterr(all="raise")
    return dataset + rng.laplace(size=(size, 3))


def mixed(dataset: float, rng: Rng) -> Any:
    np.seterr(all="raise")
    return [dataset + rng.laplace(), "a", dataset]


def single(dataset: float, rng: Rng) -> Any:
    assert np.geterr() == STRICT
    return dataset + rng.laplace()


def divides(dataset: float, rng: Rng) -> Any:
    return np.float64(dataset) / np.float64(0.0)


@pytest.mark.parametrize("function", [vectors, mixed])
def test_a_setting_of_a_mechanism_affects_only_its_own_code(function: Any) -> None:
    claim = dpaudit.PureDP(3.1)
    result = dpaudit.audit(function, 0.0, 1.0, claim, samples=2_000, stop="never")
    assert result.error is None
    assert np.geterr() == STRICT  # as where the mechanism runs without an audit


def test_a_setting_of_a_script_affects_only_its_mechanism_and_attack() -> None:
    seen = []

    def attack(selection: SelectionDraws) -> Any:
        seen.append(np.geterr())

        def score(outcomes: Outcomes) -> Any:
            seen.append(np.geterr())
            return outcomes.columns[0].numbers

        return score

    np.seterr(all="raise")
    claim = dpaudit.PureDP(3.0)
    result = dpaudit.audit(single, 0.0, 1.0, claim, samples=1_000, attacks=[attack])
    assert result.verdict is dpaudit.Verdict.NO_VIOLATION_FOUND
    assert seen
    assert all(one == STRICT for one in seen)
    assert np.geterr() == STRICT


@pytest.mark.parametrize("how", ["raise", "ignore"])
def test_the_setting_decides_whether_an_operation_raises(how: Any) -> None:
    np.seterr(all=how, divide="ignore")
    # Of one input alone: 0 / 0 is invalid.
    result = dpaudit.audit(divides, -1.0, 0.0, dpaudit.PureDP(1.0), samples=300)
    assert result.error is None
    assert ("FloatingPointError" in str(result)) is (how == "raise")


def test_each_side_keeps_its_last_setting() -> None:
    np.seterr(**USUAL)
    with user_errstate():
        np.seterr(all="raise")
    assert np.geterr() == STRICT  # outside of an audit
    with auditor_errstate(), auditor_errstate():
        assert np.geterr() == USUAL
        with user_errstate():
            with user_errstate():
                assert np.geterr() == STRICT
            assert np.geterr() == STRICT
            np.seterr(under="warn")
        assert np.geterr() == USUAL
        np.seterr(all="call")  # by a module that was imported since
        with user_errstate():
            assert set(np.geterr().values()) == {"call"}
            np.seterr(all="raise", over="log")
        assert np.geterr() == USUAL
    assert np.geterr() == {**STRICT, "over": "log"}


def test_an_exception_restores_the_setting() -> None:
    np.seterr(all="raise")
    with pytest.raises(KeyError), auditor_errstate(), user_errstate():
        raise KeyError
    assert np.geterr() == STRICT
