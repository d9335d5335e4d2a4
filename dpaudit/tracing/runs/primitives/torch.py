"""Replace the functions and methods of PyTorch that draw noise, and its distributions. A drawn
tensor is an instance of a subclass, which remembers its noise through sums, differences, scaling
and comparisons."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..noisy_numbers import carried, operate, plain
from ..places import unwatched
from ..primitives import MAX_LISTED_OUTCOMES, Replacement, integers
from ..replaying import SEED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..noise_log import Recorder


# Maps the name of a function of PyTorch to (distribution, names of the first parameters, scale).
# The scale is a number, or the name of the parameter that is the scale; None if it must be computed
# from the arguments.
_FUNCTIONS: dict[str, tuple[str, tuple[str, ...], Any]] = {
    "randn": ("normal", (), 1.0),
    "randn_like": ("normal", ("input",), 1.0),
    "rand": ("uniform", (), 1.0),
    "rand_like": ("uniform", ("input",), 1.0),
    "normal": ("normal", ("mean", "std"), "std"),
    "randint": ("integers", ("low", "high"), None),
    "bernoulli": ("binomial", ("p",), None),
    "poisson": ("poisson", ("input",), None),
}
_PICKS = ("randperm", "multinomial")
_METHODS: dict[str, tuple[str, tuple[str, ...], Any]] = {
    "normal_": ("normal", ("mean", "std"), "std"),
    "uniform_": ("uniform", ("from", "to"), None),
    "exponential_": ("exponential", ("lambd",), None),
    "cauchy_": ("cauchy", ("median", "sigma"), "sigma"),
    "geometric_": ("geometric", ("p",), None),
    "log_normal_": ("unknown", ("mean", "std"), None),
    "bernoulli_": ("binomial", ("p",), None),
    "random_": ("unknown", ("from", "to"), None),
}
_DEFAULTS = {
    **dict.fromkeys(("mean", "from", "median"), 0.0),
    **dict.fromkeys(("std", "to", "lambd", "sigma"), 1.0),
}
_LOCATIONS = ("mean", "median")
# Maps a class of torch.distributions to (distribution, name of the attribute that is the location,
# name of the attribute that is the scale). None stands for no such attribute.
_DISTRIBUTIONS = {
    "Laplace": ("laplace", "loc", "scale"),
    "Normal": ("normal", "loc", "scale"),
    "Gumbel": ("gumbel", "loc", "scale"),
    "Cauchy": ("cauchy", "loc", "scale"),
    "Exponential": ("exponential", None, "rate"),
    "Uniform": ("uniform", None, None),
}
# Maps the name of an operation of PyTorch on two operands (a tensor, then a tensor or number) to
# the name of the same operation on NumPy numbers that remember their noise.
_OPERATIONS = {
    **{name: name for name in ("add", "sub", "mul", "lt", "le", "gt", "ge")},
    "div": "truediv",
    "true_divide": "truediv",
}
_REFLECTED = {"__rsub__": "sub", "__rdiv__": "truediv", "__rtruediv__": "truediv"}
# Maps methods that only rearrange or select the numbers of a tensor to the same operations on a
# NumPy array.
_FORMS: dict[str, Callable[..., Any]] = {
    "clone": lambda array, *_, **__: array,
    "contiguous": lambda array, *_, **__: array,
    "cpu": lambda array, *_, **__: array,
    "detach": lambda array, *_, **__: array,
    "flatten": lambda array, *_, **__: array.reshape(-1),
    "ravel": lambda array, *_, **__: array.reshape(-1),
    "reshape": lambda array, *shape, **__: array.reshape(*shape),
    "squeeze": lambda array, *axes, **__: array.squeeze(*axes),
    "unsqueeze": lambda array, axis, **__: array.reshape(_unsqueezed(array.shape, axis)),
    "view": lambda array, *shape, **__: array.reshape(*shape),
    "view_as": lambda array, like: array.reshape(like.shape),
    "__getitem__": lambda array, key: array[key],
}
# Methods that change only the type or device of the numbers.
_CASTS = ("double", "float", "to")


# Methods that convert a tensor to Python or NumPy objects, and would lose the record of its noise.
# Each is mapped to the same operation on a NumPy copy of the tensor, whose numbers remember their
# noise.
_READ: dict[str, Callable[[Any], Any]] = {
    "item": lambda numbers: numbers.item(),
    "numpy": lambda numbers: numbers if np.ndim(numbers) else np.asarray(plain(numbers)),
    "tolist": lambda numbers: numbers.tolist(),
}


def _unsqueezed(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    axis = axis % (len(shape) + 1)
    return (*shape[:axis], 1, *shape[axis:])


def replacements(recorder: Recorder) -> Iterator[Replacement]:
    torch: Any = sys.modules.get("torch")
    if not hasattr(torch, "set_rng_state"):
        return
    for name in (*_FUNCTIONS, *_PICKS):
        yield Replacement(torch, name, _function(recorder, name, getattr(torch, name)))
    for name, spec in _METHODS.items():
        real = getattr(torch.Tensor, name)
        yield Replacement(torch.Tensor, name, _method(recorder, name, real, spec))
    for name, (law, located, scaled) in _DISTRIBUTIONS.items():
        kind = getattr(torch.distributions, name)
        for method in ("sample", "rsample"):
            function = _of_distribution(recorder, name, getattr(kind, method), law, located, scaled)
            yield Replacement(kind, method, function)
    set_seed = torch.manual_seed

    def manual_seed(seed: Any) -> Any:
        recorder.seeded("torch.manual_seed", seed)
        return set_seed(seed)

    yield Replacement(torch, "manual_seed", manual_seed)


def _function(recorder: Recorder, name: str, real: Any) -> Any:
    @unwatched
    def draw(*args: Any, **named: Any) -> Any:
        args, named = _bare(args), _bare(named)
        if recorder.is_inside:
            return real(*args, **named)
        tensor = recorder.real(real, *args, **named)
        if name in _PICKS:
            return _picked(recorder, name, tensor, args, named)
        return _drawn(recorder, f"torch.{name}", tensor, name, _FUNCTIONS[name], args, named)

    return draw


def _method(recorder: Recorder, name: str, real: Any, spec: Any) -> Any:
    @unwatched
    def draw(self: Any, *args: Any, **named: Any) -> Any:
        args, named = _bare(args), _bare(named)
        if recorder.is_inside:
            return real(self, *args, **named)
        recorder.real(real, self, *args, **named)
        torch: Any = sys.modules["torch"]
        tensor = self.detach().as_subclass(torch.Tensor)
        if name == "random_" and tensor.dtype == torch.int64 and not args and "to" not in named:
            if named.get("generator") is not None:
                recorder.seeded("torch.Generator", named["generator"].initial_seed())
            tensor.copy_(torch.as_tensor(recorder.picked("Tensor.random_", SEED, _array(tensor))))
            return self
        result = _drawn(recorder, f"Tensor.{name}", tensor, name, spec, args, named)
        if not isinstance(result, _tensor_type()):
            return self
        # If this run repeats the noise of an earlier run, `result` holds the noise of the earlier
        # run, but PyTorch's method has just filled the user's `tensor` with new noise. So the
        # numbers of `result` are copied into `tensor`; `no_grad` keeps the copy out of gradients.
        with torch.no_grad():
            tensor.copy_(result.as_subclass(torch.Tensor))
        if type(self) in (torch.Tensor, _tensor_type()):
            self.__class__ = _tensor_type()
            self._numbers = result._numbers
        return self

    return draw


def _drawn(
    recorder: Recorder, label: str, tensor: Any, name: str, spec: Any, args: Any, named: Any
) -> Any:
    """Record a draw of PyTorch, and return the numbers as a tensor that remembers its noise."""
    law, names, scale_of = spec
    if name == "randint" and (len(args) == 2 or ("low" not in named and len(args) < 2)):
        names = ("high",)
    arguments = {**_DEFAULTS, "low": 0, **dict(zip(names, args)), **named}
    if law == "binomial":
        arguments.setdefault("p", arguments.get("input", 0.5))
    if arguments.get("generator") is not None:
        recorder.seeded("torch.Generator", arguments["generator"].initial_seed())
    parameters = {
        key: _array(arguments[key]) for key in names if key != "input" and key in arguments
    }
    location = next((parameters.pop(key) for key in _LOCATIONS if key in parameters), None)
    is_fill = name in _METHODS
    if is_fill and not np.any(location):
        location = None
    scale: Any = parameters.get(scale_of) if isinstance(scale_of, str) else scale_of
    if name == "uniform_":
        parameters = {"low": parameters["from"], "high": parameters["to"]}
        scale = np.subtract(parameters["high"], parameters["low"])
    elif name == "exponential_":
        scale = 1 / parameters["lambd"]
    elif name == "geometric_":
        scale = -1 / np.log1p(-np.asarray(parameters["p"], dtype=float))[()]
    elif name == "randint":
        parameters = {"low": int(arguments["low"]), "high": int(arguments["high"])}
    values = recorder.drawn(
        label,
        law,
        _array(tensor),
        scale=scale,
        location=location,
        parameters=parameters,
        outcomes=_outcomes(law, parameters),
        is_fill=is_fill,
    )
    return _tensor(values, tensor)


def _outcomes(law: str, parameters: Mapping[str, Any]) -> list[tuple[Any, float]] | None:
    """Return (outcome, probability) for random integers or Booleans; None if there are many."""
    if law == "integers":
        return integers(parameters["low"], parameters["high"])
    chances = np.unique(parameters.get("p", ()))
    if law == "binomial" and len(chances) == 1:
        return [(0, 1 - float(chances[0])), (1, float(chances[0]))]
    return None


def _picked(recorder: Recorder, name: str, tensor: Any, args: Any, named: Any) -> Any:
    """Record the indexes of items picked at random, and return them as a plain tensor."""
    torch: Any = sys.modules["torch"]
    index = _array(tensor)
    if name == "randperm":
        order = recorder.picked(
            "torch.randperm", "permutation", index, parameters={"n": len(index)}
        )
        is_order = sorted(order.tolist()) == list(range(len(index)))
        return torch.as_tensor(np.array(order if is_order else index), dtype=tensor.dtype)
    arguments = {**dict(zip(("input", "num_samples", "replacement"), args)), **named}
    weights = _array(arguments["input"])
    count, law = np.shape(weights)[-1], np.asarray(weights, dtype=float)
    is_again = bool(arguments.get("replacement")) or arguments["num_samples"] == 1
    outcomes = None
    if law.ndim == 1 and is_again and count <= MAX_LISTED_OUTCOMES:
        outcomes = list(enumerate((law / law.sum()).tolist()))
    parameters = {"n": count, "p": law / law.sum(axis=-1, keepdims=True)}
    kind = "choice" if is_again else "sample"
    index = recorder.picked(
        "torch.multinomial", kind, index, parameters=parameters, outcomes=outcomes
    )
    return torch.as_tensor(np.minimum(index, count - 1), dtype=tensor.dtype)


def _of_distribution(
    recorder: Recorder, name: str, real: Any, law: str, located: str | None, scaled: str | None
) -> Any:
    @unwatched
    def sample(self: Any, *args: Any, **named: Any) -> Any:
        if recorder.is_inside:
            return real(self, *args, **named)
        tensor = recorder.real(real, self, *args, **named)
        parameters: Mapping[str, Any] = {}
        location = None if located is None else _array(getattr(self, located))
        if law == "uniform":
            parameters = {"low": _array(self.low), "high": _array(self.high)}
            scale = np.subtract(parameters["high"], parameters["low"])
        else:
            scale = _array(getattr(self, scaled or ""))
            scale = 1 / scale if scaled == "rate" else scale
        values = recorder.drawn(
            f"{name}.sample",
            law,
            _array(tensor),
            scale=scale,
            location=location,
            parameters=parameters,
        )
        return _tensor(values, tensor)

    return sample


def _bare(value: Any) -> Any:
    """Return arguments in which ordinary numbers and tensors replace those that remember noise."""
    if isinstance(value, dict):
        return {name: _bare(item) for name, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(map(_bare, value))
    if isinstance(value, _tensor_type()):
        return value.as_subclass(sys.modules["torch"].Tensor)
    return plain(value)


def _array(value: Any) -> Any:
    """Return a tensor as an array, or as a number if it has no dimensions."""
    torch: Any = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        value = value.as_subclass(torch.Tensor).detach().cpu()
        value = value.float() if value.dtype == torch.bfloat16 else value
        value = value.numpy()
        return value if value.ndim else value.item()
    return value


def _tensor(values: Any, like: Any) -> Any:
    """Return numbers that remember their noise as a tensor like another one."""
    torch: Any = sys.modules["torch"]
    bare = torch.as_tensor(np.array(plain(values)), dtype=like.dtype, device=like.device)
    if carried(values) is None:
        return bare
    tensor = bare.reshape(np.shape(values)).as_subclass(_tensor_type())
    tensor._numbers = values
    return tensor


@lru_cache(maxsize=1)
def _tensor_type() -> Any:
    """Return the class of tensors that remember noise. It is made when PyTorch is loaded."""
    torch: Any = sys.modules["torch"]

    class Tensor(torch.Tensor):  # type: ignore[misc]  # PyTorch may not be installed
        """A tensor that remembers its noise. `_numbers` has the same numbers as a NumPy array, or
        as a number, with the record of their noise; None if a change in place has lost the
        record."""

        _numbers: Any = None

        @classmethod
        def __torch_function__(
            cls, function: Any, types: Any, args: Any = (), named: Any = None
        ) -> Any:
            named, name = named or {}, getattr(function, "__name__", "")
            result = _operated(name, args, named) if args else NotImplemented
            if result is not NotImplemented:
                return result
            if name.endswith("_") and not name.endswith("__") and isinstance(args[0], cls):
                args[0]._numbers = None  # this change in place is not followed: the noise is lost
            with torch._C.DisableTorchFunctionSubclass():
                return function(*_bare(args), **_bare(named))

    return Tensor


def _operated(name: str, args: Any, named: Any) -> Any:
    """Return the result of an operation, with its noise; NotImplemented if the noise is unknown."""
    numbers = getattr(args[0], "_numbers", None)
    if name in _READ and not named and len(args) == 1 and numbers is not None:
        return _READ[name](numbers)
    is_in_place = name.endswith("_") and not name.endswith("__")
    operation = _REFLECTED.get(name) or _OPERATIONS.get(name.rstrip("_") if is_in_place else name)
    # `alpha` is a factor of the second operand: torch.add(x, y, alpha=a) returns x + a · y.
    # Optimizers pass their step size as `alpha`.
    alpha = named.get("alpha")
    if operation is not None and len(args) == 2 and named.keys() <= {"alpha"}:
        operands = [_numbers(operand) for operand in (args[::-1] if name in _REFLECTED else args)]
        if any(operand is None for operand in operands):
            return NotImplemented
        if is_in_place:  # a plain array shares its memory with a tensor, which changes below
            operands = [
                operand.copy() if type(operand) is np.ndarray else operand for operand in operands
            ]
        if alpha is not None:
            operands[1] = operate("mul", operands[1], alpha)
            args = (args[0], args[1] * alpha)
        return _result(operate(operation, *operands), name, args, is_in_place)
    if name == "neg" and numbers is not None:
        return _result(operate("mul", numbers, -1), name, args, is_in_place)
    if numbers is None:
        return NotImplemented
    if name in _FORMS and np.ndim(numbers):
        return _tensor(_FORMS[name](numbers, *_bare(args[1:])), _natural(name, args, named))
    if name in _CASTS or name in _FORMS:
        like = _natural(name, args, named)
        is_alike = like.shape == args[0].shape and like.dtype.is_floating_point
        return _tensor(numbers, like) if is_alike else NotImplemented
    return NotImplemented


def _result(numbers: Any, name: str, args: Any, is_in_place: bool) -> Any:
    """Return the result as a tensor with noise; operations in place change the first argument."""
    if not is_in_place:
        return _tensor(numbers, _natural(name, args, {}))
    torch: Any = sys.modules["torch"]
    target, result = args[0], _tensor(numbers, args[0])
    _bare(target).detach().copy_(_bare(result))
    if carried(numbers) is None:
        target._numbers = None  # the record of the noise that it held before
        return target
    if type(target) in (torch.Tensor, _tensor_type()):
        target.__class__ = _tensor_type()
        target._numbers = numbers
    elif isinstance(target, torch.nn.Parameter):  # it must keep its class
        target._numbers = numbers
    return target


def _of_parameter(value: Any, array: Any) -> Any:
    """Return the numbers of a parameter, with the noise that was set in this run."""
    numbers = getattr(value, "_numbers", None)
    noise = carried(numbers)
    is_known = noise is not None and noise[0].is_open
    # An operation on plain tensors may have changed the parameter later.
    is_current = is_known and np.array_equal(
        np.asarray(plain(numbers), array.dtype), array, equal_nan=True
    )
    return numbers if is_current else array


def _natural(name: str, args: Any, named: Any) -> Any:
    """Return the result without noise: the caller needs only its type and shape."""
    return getattr(sys.modules["torch"].Tensor, name)(*_bare(args), **_bare(named))


def _numbers(value: Any) -> Any:
    """Return a number, or the numbers of a tensor with their noise; None for any other value."""
    torch: Any = sys.modules["torch"]
    if isinstance(value, _tensor_type()) and value._numbers is not None:
        return value._numbers
    if isinstance(value, torch.Tensor):
        array = _array(value)
        return _of_parameter(value, array) if isinstance(value, torch.nn.Parameter) else array
    return value if isinstance(value, (int, float, np.number, np.ndarray)) else None
