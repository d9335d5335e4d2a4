from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.adapters.calls import Mechanism
from dpaudit.adapters.loading import load_mechanism
from dpaudit.errors import MechanismError
from dpaudit.outcomes import Raised
from dpaudit.targets.target import CallableTarget, ImportedTarget
from tests.raising import code

SPECIMENS = """
import functools
import numpy as np

def plain(x): return x + 1
def with_rng(x, rng): return x + rng.random()
def with_params(x, epsilon, shift=0.0): return (x, epsilon, shift)
def batch(x, size, rng): return rng.normal(x, size=size)
def renamed(x, count): return [x] * count
def wrong_count(x, size): return [x] * (size + 1)
def wrong_array(x, size, rng): return rng.normal(size=size + 1)
def not_a_batch(x, size): return x * size
def text_batch(x, size): return "a" * size
def failing_batch(x, size): raise ValueError("no such batch")
def failing(x):
    if x: raise KeyError("negative")
    return x
def leaving(x): raise SystemExit(3)
def stopping(x): raise KeyboardInterrupt
async def asynchronous(x): return x
def generator(x): yield x
def nothing(): return 1
def double(y): return 2 * y
def kind(y): return type(y).__name__
def two_arguments(y, z): return y
NUMBER = 3

class Noise:
    def __init__(self, epsilon, sensitivity=1.0):
        if epsilon <= 0: raise ValueError("epsilon must be positive")
        self.scale = sensitivity / epsilon
    def add_noise(self, x): return (x, self.scale)

class Callable_:
    def __call__(self, x, rng): return x + rng.integers(1, 2)

def make_function(scale): return lambda x: x * scale
def make_object(epsilon): return Noise(epsilon)
ready = Noise(0.5)
bound = functools.partial(with_params, epsilon=2.0)
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("specimens") / "specimens.py"
    path.write_text(SPECIMENS)
    return path


@pytest.fixture
def load(file: Path) -> Callable[..., Mechanism]:
    def loaded(name: str, **options: Any) -> Mechanism:
        if "post_process" in options:
            options["post_process"] = f"{file}:{options['post_process']}"
        return load_mechanism(ImportedTarget(path=f"{file}:{name}", **options))

    return loaded


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def test_the_dataset_the_generator_and_params_are_passed(load: Any) -> None:
    mechanism = load("with_rng")
    assert mechanism.interleaved
    generator = rng()
    expected = [generator.random() for _ in range(3)]
    assert mechanism.sample(0, 3, rng()) == expected
    assert mechanism.sample_each([0, 5], rng()) == [expected[0], 5 + expected[1]]
    mechanism = load("with_rng", params={"rng": np.random.default_rng(7)})
    assert mechanism.sample(0, 1, rng()) == [np.random.default_rng(7).random()]
    mechanism = load("with_params", params={"shift": 2, "epsilon": 1})
    assert mechanism.sample(0, 2, rng()) == [(0, 1, 2)] * 2


def test_batch_parameter(load: Any) -> None:
    mechanism = load("batch")
    assert not mechanism.interleaved
    np.testing.assert_array_equal(mechanism.sample(0.0, 4, rng()), rng().normal(0.0, size=4))
    assert len(mechanism.sample_each([0.0, 1.0], rng())) == 2


def test_a_batch_that_is_switched_off_is_called_for_one_output(load: Any) -> None:
    """`size` has no default there, so it has to be given."""
    mechanism = load("batch", batch_arg="none")
    assert mechanism.interleaved
    outputs = mechanism.sample(0.0, 4, rng())
    assert outputs == rng().normal(0.0, size=4).tolist()
    assert np.ndim(outputs[0]) == 0
    assert isinstance(mechanism.sample("no number", 1, rng())[0], Raised)


def test_batch_switched_off_takes_size_as_a_parameter(load: Any) -> None:
    mechanism = load("renamed", batch_arg="none", params={"count": 2})
    assert mechanism.interleaved
    assert mechanism.sample(5, 2, rng()) == [[5, 5], [5, 5]]
    assert load("not_a_batch", params={"size": 3}).sample(2, 1, rng()) == [6]


@pytest.mark.parametrize(
    ("name", "options", "output"),
    [
        ("Noise", {"init": [0.5], "call": "add_noise"}, (1, 2.0)),
        ("Noise", {"init": {"epsilon": 4, "sensitivity": 2}, "call": "add_noise"}, (1, 0.5)),
        ("Callable_", {}, 2),
        ("ready", {"call": "add_noise"}, (1, 2.0)),
        ("bound", {}, (1, 2.0, 0.0)),
        ("make_function", {"factory": True, "init": [3]}, 3),
        ("make_object", {"factory": True, "init": {"epsilon": 1}, "call": "add_noise"}, (1, 1.0)),
    ],
)
def test_objects_classes_and_factories(
    load: Any, name: str, options: dict[str, Any], output: Any
) -> None:
    assert load(name, **options).sample(1, 1, rng()) == [output]


def test_exceptions_of_single_draws_are_outcomes(load: Any) -> None:
    outcomes = load("failing").sample_each([0, 1, 0], rng())
    assert outcomes == [0, Raised("KeyError", "'negative'"), 0]
    assert load("leaving").sample(0, 1, rng()) == [Raised("SystemExit", "3")]


def test_interrupts_are_not_outcomes(load: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        load("stopping").sample(0, 1, rng())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("failing_batch", "ValueError: no such batch"),
        ("wrong_count", "4 outputs"),
        ("wrong_array", "4 outputs"),
        ("not_a_batch", "int"),
        ("text_batch", "str"),
    ],
)
def test_a_batch_that_fails_or_has_the_wrong_size_is_refused(
    load: Any, name: str, words: str
) -> None:
    with pytest.raises(MechanismError, match=words):
        load(name).sample(2, 3, rng())


def test_post_process_is_applied_to_every_output(load: Any) -> None:
    assert load("plain", post_process="double").sample(1, 2, rng()) == [4, 4]
    # An output of a batch arrives as the same type as one of a single draw.
    assert load("batch", post_process="kind").sample(1.0, 2, rng()) == ["float", "float"]


def test_post_process_that_raises_is_an_outcome_and_spares_exceptions(load: Any) -> None:
    def invert(y: float) -> float:
        return 1 / y

    single = CallableTarget(function=lambda x: x, post_process=invert)
    batch = CallableTarget(function=lambda x, size: [x] * size, post_process=invert)
    for target in (single, batch):
        outcomes = load_mechanism(target).sample(0, 2, rng())
        assert [outcome.kind for outcome in outcomes] == ["ZeroDivisionError"] * 2
    assert load("failing", post_process="double").sample(1, 1, rng())[0].kind == "KeyError"


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("asynchronous", {}, "not-callable"),
        ("generator", {}, "not-callable"),
        ("NUMBER", {}, "not-callable"),
        ("nothing", {}, "parameter-missing"),
        ("plain", {"params": {"epsilon": 1}}, "parameter-unknown"),
        ("plain", {"init": [1]}, "options-conflict"),
        ("plain", {"post_process": "two_arguments"}, "not-callable"),
        ("Noise", {"init": [1]}, "not-callable"),
        ("Noise", {"init": [-1], "call": "add_noise"}, "mechanism-not-made"),
    ],
)
def test_what_cannot_be_called_is_refused_before_any_draw(
    load: Any, name: str, options: dict[str, Any], expected: str
) -> None:
    assert code(lambda: load(name, **options)) == expected
