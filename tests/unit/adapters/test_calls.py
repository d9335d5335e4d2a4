from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.adapters.calls import Mechanism, bind
from dpaudit.adapters.loading import load_mechanism
from dpaudit.errors import MechanismError, TargetError
from dpaudit.outcomes import Raised
from dpaudit.targets.target import CallableTarget, ImportedTarget

SPECIMENS = """
import functools
import numpy as np

def plain(x): return x + 1
def with_rng(x, rng): return x + rng.random()
def with_params(x, epsilon, shift=0.0): return (x, epsilon, shift)
def batch(x, size, rng): return rng.normal(x, size=size)
def renamed(x, count): return [x] * count
def wrong_count(x, size): return [x] * (size + 1)
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
def only_keywords(*, x): return x
def double(y): return 2 * y
def kind(y): return type(y).__name__
def two_arguments(y, z): return y
NUMBER = 3

class Noise:
    def __init__(self, epsilon, sensitivity=1.0):
        if epsilon <= 0: raise ValueError("epsilon must be positive")
        self.scale = sensitivity / epsilon
    def add_noise(self, x): return (x, self.scale)
    def other(self, x): return x

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


@pytest.fixture
def refused(load: Callable[..., Mechanism]) -> Callable[..., str]:
    def message(name: str, code: str = "", **options: Any) -> str:
        with pytest.raises(TargetError) as caught:
            load(name, **options)
        assert "\n" not in str(caught.value)
        assert code in ("", caught.value.code)
        return str(caught.value)

    return message


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def test_function_of_the_dataset(load: Any) -> None:
    mechanism = load("plain")
    assert mechanism.interleaved
    assert mechanism.sample(1, 3, rng()) == [2, 2, 2]
    assert mechanism.sample_each([1, 5], rng()) == [2, 6]


def test_the_generator_is_passed(load: Any) -> None:
    mechanism = load("with_rng")
    generator = rng()
    expected = [generator.random() for _ in range(3)]
    assert mechanism.sample(0, 3, rng()) == expected


def test_rng_given_as_a_parameter_is_the_users_own(load: Any) -> None:
    mechanism = load("with_rng", params={"rng": np.random.default_rng(7)})
    assert mechanism.sample(0, 1, rng()) == [np.random.default_rng(7).random()]


def test_params_are_keyword_arguments(load: Any) -> None:
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
    drawn = mechanism.sample(0.0, 4, rng())
    assert drawn == rng().normal(0.0, size=4).tolist()
    assert np.ndim(drawn[0]) == 0


def test_an_exception_of_a_batch_of_one_is_an_outcome(load: Any) -> None:
    mechanism = load("batch", batch_arg="none")
    (drawn,) = mechanism.sample("no number", 1, rng())
    assert isinstance(drawn, Raised)


def test_renamed_batch_parameter(load: Any) -> None:
    assert load("renamed", batch_arg="count").sample(5, 3, rng()) == [5, 5, 5]


def test_batch_switched_off_takes_size_as_a_parameter(load: Any) -> None:
    mechanism = load("renamed", batch_arg="none", params={"count": 2})
    assert mechanism.interleaved
    assert mechanism.sample(5, 2, rng()) == [[5, 5], [5, 5]]
    assert load("not_a_batch", params={"size": 3}).sample(2, 1, rng()) == [6]


@pytest.mark.parametrize(("init", "scale"), [([0.5], 2.0), ({"epsilon": 4, "sensitivity": 2}, 0.5)])
def test_class_with_init_and_call(load: Any, init: Any, scale: float) -> None:
    assert load("Noise", init=init, call="add_noise").sample(1, 1, rng()) == [(1, scale)]


def test_callable_object_class_and_ready_object(load: Any) -> None:
    assert load("Callable_").sample(1, 2, rng()) == [2, 2]
    assert load("ready", call="add_noise").sample(1, 1, rng()) == [(1, 2.0)]
    assert load("bound").sample(1, 1, rng()) == [(1, 2.0, 0.0)]


def test_factory_of_a_function_and_of_an_object(load: Any) -> None:
    assert load("make_function", factory=True, init=[3]).sample(2, 1, rng()) == [6]
    made = load("make_object", factory=True, init={"epsilon": 1}, call="add_noise")
    assert made.sample(2, 1, rng()) == [(2, 1.0)]


def test_compiled_callables_without_signature() -> None:
    mechanism = load_mechanism(CallableTarget(function=max))
    assert mechanism.sample([1, 3], 2, rng()) == [3, 3]
    drawn = load_mechanism(
        CallableTarget(function=rng().normal, params={"scale": 0.0}, batch_arg="size")
    )
    assert list(drawn.sample(2.0, 3, rng())) == [2.0, 2.0, 2.0]


def test_exceptions_of_single_draws_are_outcomes(load: Any) -> None:
    outcomes = load("failing").sample_each([0, 1, 0], rng())
    assert outcomes == [0, Raised("KeyError", "'negative'"), 0]
    assert load("leaving").sample(0, 1, rng()) == [Raised("SystemExit", "3")]


def test_interrupts_are_not_outcomes(load: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        load("stopping").sample(0, 1, rng())


def test_exception_with_a_broken_message() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def fail(_: Any) -> None:
        raise Odd

    mechanism = load_mechanism(CallableTarget(function=fail))
    assert mechanism.sample(0, 1, rng()) == [Raised("Odd", "")]


def test_exception_in_a_batch_names_the_remedy(load: Any) -> None:
    with pytest.raises(MechanismError, match=r"ValueError: no such batch.*batch_arg='none'") as e:
        load("failing_batch").sample(0, 3, rng())
    assert isinstance(e.value.__cause__, ValueError)


@pytest.mark.parametrize(
    ("name", "got"),
    [("wrong_count", "4 outputs"), ("not_a_batch", "int"), ("text_batch", "str")],
)
def test_batch_of_the_wrong_size(load: Any, name: str, got: str) -> None:
    with pytest.raises(MechanismError, match=f"returned {got} for size=3"):
        load(name).sample(2, 3, rng())


@pytest.mark.parametrize("make", [tuple, np.array, list, lambda x: np.array(x).reshape(3, 1)])
def test_batches_may_be_any_sequence(make: Any) -> None:
    mechanism = load_mechanism(CallableTarget(function=lambda x, size: make([x] * size)))
    assert len(mechanism.sample(1, 3, rng())) == 3


def test_batch_as_a_pandas_series() -> None:
    pandas: Any = importlib.import_module("pandas")
    mechanism = load_mechanism(CallableTarget(function=lambda x, size: pandas.Series([x] * size)))
    assert list(mechanism.sample(1.5, 2, rng())) == [1.5, 1.5]


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
        assert [one.kind for one in outcomes] == ["ZeroDivisionError"] * 2
    assert load("failing", post_process="double").sample(1, 1, rng())[0].kind == "KeyError"


def test_unknown_parameter_gets_a_suggestion(refused: Any) -> None:
    text = refused("with_params", params={"epsilom": 1})
    assert "no parameter 'epsilom'. Did you mean 'epsilon'?" in text
    assert "takes: epsilon, shift" in text
    refused("plain", params={"epsilon": 1}, code="parameter-unknown")


def test_dataset_is_not_a_parameter(refused: Any) -> None:
    assert "'x' is the dataset" in refused("with_params", params={"x": 1, "epsilon": 1})


def test_missing_parameter_names_the_remedy(refused: Any) -> None:
    text = refused("with_params")
    assert "needs 'epsilon'" in text
    assert "give it with params" in text


def test_wrong_batch_parameter(refused: Any) -> None:
    assert "Did you mean 'count'?" in refused("renamed", batch_arg="cuont")


@pytest.mark.parametrize(
    ("name", "code", "named"),
    [
        ("asynchronous", "not-callable", "async"),
        ("generator", "not-callable", "generator"),
        ("NUMBER", "not-callable", "type int"),
        ("nothing", "parameter-missing", "data_arg"),
        ("only_keywords", "parameter-missing", "data_arg"),
    ],
)
def test_values_that_cannot_be_called_are_refused(
    refused: Any, name: str, code: str, named: str
) -> None:
    assert named in refused(name, code=code)


def test_class_without_call_lists_its_methods(refused: Any) -> None:
    text = refused("Noise", init=[1])
    assert "class without __call__" in text
    assert "add_noise, other" in text
    assert "Did you mean 'add_noise'?" in refused("Noise", init=[1], call="add_nois")


def test_constructor_that_fails_shows_its_message(refused: Any) -> None:
    text = refused("Noise", init=[-1], call="add_noise")
    assert "init=[-1]: ValueError: epsilon must be positive" in text
    assert "TypeError" in refused("Noise", call="add_noise", code="mechanism-not-made")


def test_init_of_a_function_is_refused(refused: Any) -> None:
    assert "init has no use" in refused("plain", init=[1], code="options-conflict")


def test_post_process_is_checked_before_any_draw(refused: Any) -> None:
    assert "Did you mean 'double'?" in refused("plain", post_process="doubel")
    refused("plain", post_process="two_arguments", code="not-callable")
    refused("plain", post_process="NUMBER", code="not-callable")


def test_callable_target_refuses_classes_and_values() -> None:
    values: list[Any] = [Path, 3]
    for value in values:
        with pytest.raises(TargetError, match=re.escape(getattr(value, "__name__", "=3"))) as error:
            load_mechanism(CallableTarget(function=value))
        assert error.value.code == "not-callable"


def test_parameters_with_odd_names_still_arrive() -> None:
    def collect(x: Any, **options: Any) -> Mapping[str, Any]:
        return options

    assert bind(collect, {"class": 1})(0) == {"class": 1}
    assert bind(collect, {"epsilon": 1})(0) == {"epsilon": 1}
    assert bind(math.sqrt, {}) is math.sqrt
