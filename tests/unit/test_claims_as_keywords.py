"""Claims as keyword arguments of the functions of dpaudit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpaudit


def laplace(x: int, size: int, rng: np.random.Generator) -> Any:
    return x + rng.laplace(scale=0.5, size=size)


def single(x: int, rng: np.random.Generator) -> float:
    return float(x + rng.laplace(scale=0.5))


OUTPUTS = [np.random.default_rng(seed).laplace(seed, 1, 1_000) for seed in (0, 1)]
COINS = np.random.default_rng(2).integers(2, size=1_000).astype(bool)
CALLS: dict[str, Callable[..., Any]] = {
    "audit": lambda *claim, **numbers: dpaudit.audit(
        laplace, 0, 1, *claim, samples=1_000, **numbers
    ),
    "search": lambda *claim, **numbers: dpaudit.search(
        laplace, *claim, space="number in [0, 1]", adjacency="replace", samples=1_000, **numbers
    ),
    "bound": lambda *claim, **numbers: dpaudit.bound(OUTPUTS[0], OUTPUTS[1], *claim, **numbers),
    "bound_guesses": lambda *claim, **numbers: dpaudit.bound_guesses(
        1_000, 100, 75, *claim, **numbers
    ),
    "bound_canaries": lambda *claim, **numbers: dpaudit.bound_canaries(
        COINS, COINS + OUTPUTS[0], *claim, **numbers
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_numbers_and_an_object_make_the_same_claim(name: str) -> None:
    call = CALLS[name]
    claim = dpaudit.ApproximateDP(0.5, 1e-3)
    by_object, by_numbers = call(claim), call(epsilon=0.5, delta=1e-3)
    assert by_numbers.claim == claim
    assert by_numbers.epsilon_lower == by_object.epsilon_lower
    assert by_numbers.p_value == by_object.p_value


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("claim", "numbers", "code"),
    [
        ((), {}, "option-missing"),
        ((dpaudit.PureDP(1.0),), {"epsilon": 1.0}, "options-conflict"),
        ((), {"epsilon": 1.0, "rho": 1.0}, "parameter-unknown"),
        ((), {"delta": 0.1}, "parameter-missing"),
        ((1.0,), {}, "option-invalid"),
        (("epsilon=1",), {}, "option-invalid"),
    ],
)
def test_a_claim_is_stated_once(
    name: str, claim: tuple[Any, ...], numbers: dict[str, float], code: str
) -> None:
    with pytest.raises(dpaudit.UsageError) as raised:
        CALLS[name](*claim, **numbers)
    assert raised.value.code == code


def test_a_trace_takes_numbers_or_no_claim() -> None:
    assert dpaudit.trace(single, 0, 1, epsilon=1.0) == dpaudit.trace(
        single, 0, 1, dpaudit.PureDP(1.0)
    )
    assert dpaudit.trace(single, 0, 1).sites[0].cost == pytest.approx(2.0)


def test_the_package_lists_its_public_names_alone() -> None:
    assert {"audit", "bound", "to_frame", "PureDP", "__version__"} <= set(dir(dpaudit))
    assert not {"import_module", "annotations", "cli", "api"} & set(dir(dpaudit))
