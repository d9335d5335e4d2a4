"""How audits and traces treat mechanisms of dpaudit.training, without torch and JAX."""

from __future__ import annotations

from typing import Any

import click
import numpy as np
import pytest

import dpaudit
from dpaudit.cli import exit_codes
from dpaudit.errors import TrainingError
from dpaudit.sampling.state import kept_state
from dpaudit.targets.construction import source_of
from dpaudit.targets.target import CallableTarget
from dpaudit.tracing.runs.running import followed_for
from dpaudit.training import jax_mechanism
from dpaudit.training.torch_steps import _Guard, check_loss, without_gpu
from tests.raising import code


def diverges(records: list[float], rng: np.random.Generator) -> float:
    if rng.random() < 0.1:
        raise TrainingError("no loss", code="training-loss-nan")
    return float(len(records) + rng.laplace())


@pytest.mark.parametrize("isolate", [False, True])
def test_an_error_of_training_is_no_outcome_and_ends_the_audit(isolate: bool) -> None:
    path: Any = f"{__name__}:diverges" if isolate else diverges
    how: Any = {"isolate": True} if isolate else {}
    result = dpaudit.audit(path, [1.0], [], dpaudit.PureDP(1.0), samples=200, **how)
    assert (result.verdict, result.error_code) == (dpaudit.Verdict.ERROR, "training-loss-nan")
    assert exit_codes.of_result(result) == 2


def setup(records: list[float]) -> None:
    """Stand for the user's function."""


def test_the_users_function_stands_for_the_mechanism() -> None:
    def mechanism(records: list[float]) -> float:
        return 0.0

    assert code_line(mechanism) != setup.__code__.co_firstlineno
    mechanism.traced_as = setup, ("click",)  # type: ignore[attr-defined]  # as training does
    assert code_line(mechanism) == setup.__code__.co_firstlineno
    followed = followed_for(mechanism, ())
    assert followed.home is not None
    assert followed.home[0] is setup.__code__
    assert followed.owns(click.__file__)
    assert not followed_for(setup, ()).owns(click.__file__)


@pytest.mark.parametrize(
    ("changed", "value"), [("gradient", np.zeros(2)), ("make_privatizer", (1, 2)), ("steps", 0)]
)
def test_a_step_of_jax_is_made_of_functions(changed: str, value: Any) -> None:
    given: dict[str, Any] = {"gradient": setup, "make_privatizer": setup, "params": np.zeros(2)}
    assert code(lambda: jax_mechanism(**{**given, changed: value})) == "option-invalid"


def code_line(mechanism: Any) -> int:
    source = source_of(CallableTarget(function=mechanism))
    assert source is not None
    return int(source.rpartition(":")[2])


def test_what_training_compares_is_no_state_of_the_mechanism() -> None:
    guard, counts = _Guard(), [0]

    def mechanism(records: list[float]) -> int:
        guard.states()
        counts[0] += 1
        return counts[0]

    assert kept_state(mechanism).keys() == {"counts", "the defaults of mechanism"}


def test_a_loss_that_is_nan_is_refused() -> None:
    check_loss(2.5, 1)
    assert code(check_loss, float("nan"), 3) == "training-loss-nan"


@pytest.mark.parametrize(
    ("text", "is_device"),
    [
        ("Torch not compiled with CUDA enabled", True),
        ("Found no NVIDIA driver on your system", True),
        ("Unknown backend: 'gpu' requested", True),
        ("mat1 and mat2 shapes cannot be multiplied", False),
    ],
)
def test_a_missing_device_is_told_from_other_errors(text: str, is_device: bool) -> None:
    found = without_gpu(RuntimeError(text))
    assert (found is not None and found.code == "training-needs-device") is is_device
