"""How audits and traces treat mechanisms of dpaudit.training, without torch and JAX."""

from __future__ import annotations

from types import SimpleNamespace
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
from dpaudit.training.torch_steps import _Guard, _parts, check_loss, run_mechanism, without_gpu
from tests.raising import code, refusal


def diverges(records: list[float], rng: np.random.Generator) -> float:
    if rng.random() < 0.1:
        raise TrainingError("no loss", code="training-loss-nan")
    return float(len(records) + rng.laplace())


# The error of torch on a machine without a GPU.
NO_DRIVER = "Found no NVIDIA driver on your system. Please install one."


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
        (NO_DRIVER, True),
        ("PyTorch is not linked with support for mps devices", True),
        ("No CUDA GPUs are available", True),
        ("Unable to initialize backend 'cuda': not found", True),
        ("mat1 and mat2 shapes cannot be multiplied", False),
        ("CUDA out of memory. Tried to allocate 20.00 MiB", False),
        ("Expected all tensors to be on the same device, cuda:0 and cpu!", False),
    ],
)
def test_a_missing_device_is_told_from_other_errors(text: str, is_device: bool) -> None:
    found = without_gpu(RuntimeError(text))
    assert (found is not None and found.code == "training-needs-device") is is_device


def on_gpu(records: list[float], rng: np.random.Generator) -> float:
    raise RuntimeError(NO_DRIVER)


def on_gpu_for_some(records: list[float], rng: np.random.Generator) -> float:
    if records:
        raise RuntimeError(NO_DRIVER)
    return rng.normal()


@pytest.mark.parametrize("isolate", [False, True])
def test_own_code_whose_calls_all_miss_a_device_ends_with_its_remedy(isolate: bool) -> None:
    path: Any = f"{__name__}:on_gpu" if isolate else on_gpu
    how: Any = {"isolate": True} if isolate else {}
    result = dpaudit.audit(path, [1.0], [], dpaudit.PureDP(1.0), samples=200, **how)
    assert result.error_code == "training-needs-device"
    assert exit_codes.of_result(result) == 2


def test_a_device_that_only_one_input_misses_is_an_outcome() -> None:
    result = dpaudit.audit(on_gpu_for_some, [1.0], [], dpaudit.PureDP(1.0), samples=400)
    assert result.verdict is dpaudit.Verdict.VIOLATION


class UnsupportedModuleError(ValueError):
    """Stand for the exception of Opacus."""


def test_a_model_that_opacus_refuses_is_an_error_of_training() -> None:
    def refused(records: list[float]) -> Any:
        raise UnsupportedModuleError([ValueError("BatchNorm cannot. For this reason.")])

    trained: Any = run_mechanism(refused, max)
    found = refusal(trained.claim_source, [1.0])
    assert found.code == "training-model-unsupported"
    assert "BatchNorm cannot;" in str(found)


class Model:
    parameters: Any

    def __call__(self, inputs: Any) -> Any:
        return inputs


@pytest.mark.parametrize(
    "made",
    [
        (Model(), SimpleNamespace(zero_grad=None)),
        (SimpleNamespace(zero_grad=None), Model(), []),
        (Model(), SimpleNamespace(zero_grad=None), Model()),
        (Model(), SimpleNamespace(zero_grad=None), [], None, None),
    ],
    ids=["no-loader", "optimizer-first", "loader-is-no-loader", "five"],
)
def test_a_set_up_returns_model_optimizer_and_loader_in_this_order(made: Any) -> None:
    assert code(_parts, made) == "training-setup-invalid"


@pytest.mark.parametrize("given", [{"setup": ()}, {"loss": None}, {"loss": dict}, {"steps": 0}])
def test_set_up_and_loss_are_functions_and_there_is_a_step(given: dict[str, Any]) -> None:
    both: dict[str, Any] = {"setup": setup, "loss": max, **given}
    assert code(run_mechanism, **both) == "option-invalid"


def test_a_step_that_sets_the_same_seed_in_each_call_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guard, state = _Guard(), "first"
    monkeypatch.setattr(guard, "states", lambda: state)
    guard.check_end("a")
    guard.check_end("a")  # dpaudit repeats a call
    assert code(guard.check_end, "b") == "training-seed-constant"
    state = "second"
    guard.check_end("c")


@pytest.mark.parametrize(
    ("address", "is_trained", "is_refused"), [(7, True, True), (8, True, False), (7, False, False)]
)
def test_a_new_model_with_the_trained_weights_of_the_last_call_is_refused(
    address: int, is_trained: bool, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(guard: _Guard, before: str, address: int) -> None:
        monkeypatch.setattr(guard, "states", lambda: before)
        weight = SimpleNamespace(
            data_ptr=lambda: address, requires_grad=is_trained, numel=lambda: 1, detach=Model
        )
        model = Model()
        model.parameters = lambda: [weight]
        guard.check(before, model, None, None)

    guard = _Guard()
    check(guard, "a", 7)
    if is_refused:
        assert code(check, guard, "b", address) == "training-state-kept"
    else:
        check(guard, "b", address)
