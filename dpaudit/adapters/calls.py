"""The `Mechanism` interface, and mechanisms that are Python callables in this process:
`SingleDraws` makes one call per draw, `Batches` one for many draws."""

from __future__ import annotations

import inspect
import keyword
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat, takewhile
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import Given, MechanismError, TrainingError
from dpaudit.float_errors import user_errstate
from dpaudit.outcomes import Raised
from dpaudit.processes.origin import FAILURES, end_if_forked, message_of, origin, post_processed
from dpaudit.targets.construction import not_found
from dpaudit.targets.parameters import NONE, Calling
from dpaudit.torch_use import UnreadableError, is_tensor, readable
from dpaudit.watching import Watch
from dpaudit.wording import counted

# How messages write the option that makes dpaudit call the mechanism once for each draw.
ONE_BY_ONE = Given(f"batch_arg={NONE!r}", f"--batch-arg {NONE} (YAML: batch_arg: {NONE})")

Function = Callable[..., Any]

# If a mechanism is compiled again for each number of draws per call, only these numbers are used:
# nine powers of 4, from 1 to 65,536.
BATCH_SIZES = tuple(4**power for power in range(9))
# The size of every call must be in `BATCH_SIZES`, so the last call of a request may make more draws
# than needed. The surplus is dropped. It is at most an eighth (`_MAX_DROPPED_SHARE`) of the
# requested draws, or 4 (`_MAX_DROPPED_FEW`) if that is more.
_MAX_DROPPED_SHARE, _MAX_DROPPED_FEW = 1 / 8, 4


@dataclass(frozen=True, slots=True)
class _Calls:
    """Base of `SingleDraws` and `Batches`: a callable of the user, and its arguments.

    how: names of the parameters for the dataset, the random generator and the number of outputs.
    params: keyword arguments of every call.
    """

    name: str
    function: Function
    how: Calling
    params: Mapping[str, Any]
    post_process: Function | None = None
    watch: Watch = field(default_factory=Watch, repr=False, compare=False)

    text_orders = True

    @property
    def parts(self) -> tuple[Any, ...]:
        return (self.function, self.post_process, self.params)

    def close(self) -> None:
        """Nothing to do: no process was started."""

    def _arguments(self, rng: np.random.Generator) -> Mapping[str, Any]:
        """Return the arguments that all calls share."""
        if self.how.rng is None or self.how.by_seed:
            return self.params
        return {**self.params, self.how.rng: rng}

    def _seeding(self, function: Function, rng: np.random.Generator) -> Function:
        """Return a function that gets a new seed in each call, if the mechanism takes seeds."""
        name = self.how.rng
        return partial(_seeded, function, name, rng) if name and self.how.by_seed else function


@dataclass(frozen=True, slots=True)
class SingleDraws(_Calls):
    """A mechanism that is a Python callable, called once for each draw."""

    interleaved = types_by_draw = True

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
        return self.sample_each(repeat(dataset, size), rng)

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> list[Any]:
        inputs = datasets if isinstance(datasets, list) else list(datasets)
        draws = calls(self._single(rng), self._arguments(rng), inputs, self.how.data)
        if self.post_process is not None:
            draws = map(_composed(self.post_process, self.bound(rng)), inputs)
        return collect_outputs(draws, inputs, partial(self.watch.calls, self.name))

    def bound(self, rng: np.random.Generator) -> Function:
        """Return the user's callable as a function of the dataset alone, with the user's parameters
        and, if it takes a random generator or a seed, `rng` or seeds from it."""
        return bind(self._single(rng), self._arguments(rng), self.how.data)

    def _single(self, rng: np.random.Generator) -> Function:
        """Return the user's callable, which returns one output and gets a new seed in each call."""
        function, alone = self.function, self.how.alone
        if alone is not None:
            function = partial(_only, self.name, function, alone)
        return self._seeding(function, rng)


@dataclass(frozen=True, slots=True)
class Batches(_Calls):
    """A mechanism that is a Python callable, called once for many draws. `compiled` has the sizes
    of the calls so far if the callable is compiled again for each size; else it is empty."""

    compiled: set[int] = field(default_factory=set, init=False, repr=False, compare=False)
    interleaved = False
    types_by_draw = False  # one float among the outputs may turn a whole array into floats

    @property
    def batch(self) -> str:
        return str(self.how.batch)

    @property
    def doubt(self) -> str | None:
        """Return a warning if the parameter that seems to take the number of outputs may mean
        something else. It may if the user did not name it, and its default is an integer other than
        1."""
        if self.how.usual in (None, 1):
            return None
        batch = self.batch
        return (
            f"{batch}={self.how.usual} of {self.name} is taken for how many outputs one call "
            f"returns; give batch_arg: {batch} (--batch-arg {batch}) if it is, {NONE} if it is not"
        )

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        def draw(size: int) -> Outputs:
            return _as_batch(self._called(dataset, size, rng), self.name, self.batch, size)

        if self.how.few_sizes:
            self.compiled.update(batch_sizes(size))
        outputs = draw_in_few_sizes(draw, size) if self.how.few_sizes else draw(size)
        if self.post_process is None:
            return outputs
        return apply_post_process(self.post_process, list(as_python(outputs)), self.watch)

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> list[Any]:
        return [self.sample(dataset, 1, rng)[0] for dataset in datasets]

    def _called(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        arguments = {**self._arguments(rng), self.batch: size}
        by_position = (dataset,) if self.how.data is None else ()
        if self.how.data is not None:
            arguments[self.how.data] = dataset
        owner = os.getpid()
        try:
            with self.watch.batch(self.name, size), user_errstate():
                outputs = self._seeding(self.function, rng)(*by_position, **arguments)
        except ImportError as error:
            raise not_found(as_outcome(error).words, self.name) from error
        except FAILURES as error:
            end_if_forked(owner, error)
            what = f"raised {as_outcome(error).words}"
            raise batch_failed(self.name, self.batch, size, what) from error
        end_if_forked(owner)
        return outputs


def _seeded(
    function: Function, name: str, rng: np.random.Generator, /, *dataset: Any, **arguments: Any
) -> Any:
    return function(*dataset, **arguments, **{name: int(rng.integers(2**32))})


def _only(name: str, function: Function, batch: str, /, *dataset: Any, **arguments: Any) -> Any:
    """Call a function that makes many outputs per call for one output, and return this output."""
    outputs = function(*dataset, **arguments, **{batch: 1})
    return _as_batch(outputs, name, batch, 1)[0]


def calls(
    function: Function, arguments: Mapping[str, Any], inputs: Iterable[Any], data: str | None
) -> Iterator[Any]:
    """Yield the output of one call of `function` for each dataset of `inputs`. Arguments are passed
    by keyword or, if the dataset is the first parameter and `arguments` are exactly the next ones,
    by position, which saves about 40 ns per draw. `data` names the parameter for the dataset, if it
    must be passed by keyword."""
    names = names_after_dataset(function)[: len(arguments)] if arguments else []
    if data is None and set(names) == set(arguments):
        return map(function, inputs, *(repeat(arguments[name]) for name in names))
    return map(bind(function, arguments, data), inputs)


def names_after_dataset(function: Function) -> list[str]:
    """Return the names of the parameters after the dataset that can be given by position, in order.
    The list is empty if the signature is unknown."""
    try:
        parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):
        return []
    by_position = takewhile(
        lambda parameter: parameter.kind is parameter.POSITIONAL_OR_KEYWORD, parameters
    )
    return [parameter.name for parameter in by_position][1:]


def bind(function: Function, arguments: Mapping[str, Any], data: str | None = None) -> Function:
    """Return `function` as a function of the dataset alone, with the keyword `arguments` filled in.
    The result is a lambda, compiled from source that contains the names of the arguments: it adds
    only about 30 ns per draw, where functools.partial and `**arguments` add 100 to 130 ns."""
    if not arguments and data is None:
        return function
    if not all(map(_is_name, [*arguments, *filter(None, [data])])):
        filled = partial(function, **arguments)
        return filled if data is None else lambda dataset: filled(**{data: dataset})
    scope = {f"_{index}": value for index, value in enumerate(arguments.values())}
    texts = ["dataset" if data is None else f"{data}=dataset"]
    texts += [f"{name}=_{index}" for index, name in enumerate(arguments)]
    # `eval` is safe here: the text contains only identifiers, and no expression of the user.
    words = f"lambda dataset: _function({', '.join(texts)})"
    return eval(words, {"_function": function, **scope})  # type: ignore[no-any-return]  # noqa: S307


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def apply_post_process(
    function: Function | None, outputs: list[Any], watch: Watch | None = None
) -> list[Any]:
    """Return the results of `function` for all `outputs`, in order. Exceptions of the mechanism
    (`Raised`) stay as they are. Without a function, `outputs` are returned."""
    if function is None:
        return outputs
    watched = nullcontext if watch is None else partial(watch.calls, "post_process")
    return collect_outputs(map(partial(_processed, function), outputs), outputs, watched)


def _processed(function: Function, output: Any) -> Any:
    return output if isinstance(output, Raised) else post_processed(function, output)


def _composed(outer: Function, inner: Function) -> Function:
    return lambda dataset: post_processed(outer, inner(dataset))


def _as_batch(outputs: Any, name: str, batch: str, size: int) -> Outputs:
    """Return the result of a call as an array or list of `size` outputs. Raises MechanismError."""
    count: int | None = None
    if not isinstance(outputs, str | bytes | Mapping | set | frozenset):
        with suppress(TypeError):  # raised by values without a length
            count = len(outputs)
    if count == size and isinstance(outputs, np.ndarray):
        return outputs
    if count == size:
        try:
            outputs = readable(outputs) if is_tensor(type(outputs)) else outputs
        except UnreadableError as error:
            raise MechanismError(f"{name} returns {error}", code="output-unsupported") from None
        is_array = hasattr(outputs, "__array__") and not isinstance(outputs, list | tuple)
        return np.asarray(outputs) if is_array else list(outputs)
    got = type(outputs).__name__ if count is None else counted(count, "output")
    raise batch_wrong(name, batch, size, got)


def draw_in_few_sizes(draw: Callable[[int], Outputs], size: int) -> Outputs:
    """Return `size` outputs from calls of `draw`, each for a number of draws in `BATCH_SIZES`.
    Outputs beyond `size` are dropped."""
    parts = [draw(count) for count in batch_sizes(size)]
    if len(parts) == 1:
        return parts[0][:size]
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if len(arrays) == len(parts) and len({(array.dtype, array.shape[1:]) for array in arrays}) == 1:
        return np.concatenate(arrays)[:size]
    return list(chain.from_iterable(map(as_python, parts)))[:size]


def batch_sizes(size: int) -> list[int]:
    """Return sizes, all in `BATCH_SIZES`, of calls that together make at least `size` draws."""
    sizes, left = list[int](), size
    while left > 0:
        above = min((count for count in BATCH_SIZES if count >= left), default=None)
        if above is not None and above - left <= max(_MAX_DROPPED_SHARE * size, _MAX_DROPPED_FEW):
            return [*sizes, above]
        sizes.append(max(count for count in BATCH_SIZES if count <= left))
        left -= sizes[-1]
    return sizes


def batch_failed(name: str, batch: str, size: int, what: str) -> MechanismError:
    """Return the error to raise if a call for a batch has failed.

    batch, size: name and value of the parameter for the number of outputs.
    what: description of the failure, such as "raised ValueError: …".
    """
    return MechanismError(
        f"{name} {what} for a batch of {batch}={size}, which hides the outcome of each draw; with ",
        *(ONE_BY_ONE, ", dpaudit calls it once for each draw, and this counts as an outcome"),
        code="batch-failed",
    )


def batch_wrong(name: str, batch: str, size: int, got: str) -> MechanismError:
    """Return the error to raise if a call has returned another number of outputs than requested.

    batch, size: name and value of the parameter for the number of outputs.
    got: the number returned, such as "2 outputs", or the type of the result.
    """
    wanted = counted(size, "output")
    return MechanismError(
        f"{name} returned {got} for {batch}={size} and was asked for {wanted}; return that many, "
        "or give ",
        *(ONE_BY_ONE, f" if {batch!r} means something else"),
        code="wrong-number-of-outputs",
    )


def as_python(outputs: Outputs) -> Iterable[Any]:
    """Return a one-dimensional array as a list of Python values. Return other outputs unchanged."""
    return outputs.tolist() if isinstance(outputs, np.ndarray) and outputs.ndim == 1 else outputs


# Outputs of consecutive draws: a list, or an array in which each row is the output of a draw.
Outputs = list[Any] | NDArray[Any]


class Mechanism(Protocol):
    """The interface from which the sampler draws.

    name: name of the mechanism in messages.
    interleaved: whether each draw is a call of its own, so that draws of both inputs can alternate
        (`sample_each`).
    types_by_draw: whether the type of an output, such as int or float, depends on its own draw
        alone. False if outputs may be entries of one array, in which a single float turns all
        integers into floats.
    text_orders: whether dpaudit can find out if the text keys of a dict are in the order in which a
        set has these texts. This order depends on the hash seed and reveals nothing. True if the
        process that draws compares the orders, or has the hash seed of this process; False for
        programs in other languages.
    parts: objects of the user, in which dpaudit finds and seeds random generators.
    """

    @property
    def name(self) -> str: ...
    @property
    def interleaved(self) -> bool: ...
    @property
    def types_by_draw(self) -> bool: ...
    @property
    def text_orders(self) -> bool: ...
    @property
    def parts(self) -> tuple[Any, ...]: ...

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        """Return `size` outputs for `dataset`. An exception counts as an output (`Raised`)."""
        ...

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> Outputs:
        """Return one output for each of `datasets`, in their order."""
        ...

    def close(self) -> None:
        """End the processes that were started to make draws. The next draw starts them again."""
        ...


@dataclass(frozen=True, slots=True)
class Wrapping:
    """Base of mechanisms that draw from another mechanism, `mechanism`, and change its outputs."""

    mechanism: Mechanism

    @property
    def name(self) -> str:
        return self.mechanism.name

    @property
    def interleaved(self) -> bool:
        return self.mechanism.interleaved

    @property
    def types_by_draw(self) -> bool:
        return self.mechanism.types_by_draw

    @property
    def text_orders(self) -> bool:
        return self.mechanism.text_orders

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.mechanism.parts

    def close(self) -> None:
        self.mechanism.close()


# In a block of draws, source lines are looked up for at most this number of distinct exceptions,
# since each look-up takes a microsecond. Further exceptions are outcomes without a source line.
_MAX_PLACES = 64


def collect_outputs(
    draws: Iterator[Any],
    inputs: list[Any],
    watched: Callable[[list[Any]], AbstractContextManager[Any]] = nullcontext,
) -> list[Any]:
    """Return the outcomes of the draws that an iterator makes. If the mechanism forks the process
    during a draw, the forked process ends when this draw returns.

    draws: makes a draw for each item of `inputs`, and can continue after an exception.
    inputs: the inputs that `draws` reads.
    watched: takes the list of outputs, which grows with each draw, and returns the context in which
        to make the draws.
    """
    outputs: list[Any] = []
    known: dict[tuple[str, str], Raised] = {}
    owner, size, key = os.getpid(), len(inputs), object()
    _inputs_read[key] = inputs
    try:
        with watched(outputs), user_errstate():
            while len(outputs) < size:
                try:
                    # If the iterator raises an exception, `extend` keeps the outputs that came
                    # before the exception.
                    outputs.extend(draws)
                    end_if_forked(owner)
                    # If there are too few outputs, the mechanism has raised StopIteration, which
                    # `extend` takes for the end of the iterator. This exception counts as an
                    # outcome, as other exceptions do.
                    if len(outputs) < size:
                        outputs.append(as_outcome(StopIteration()))
                except TrainingError as error:
                    end_if_forked(owner, error)
                    raise
                except FAILURES as error:
                    end_if_forked(owner, error)
                    outputs.append(_located(error, known))
    finally:
        del _inputs_read[key]
    return outputs


# One entry for each running call of `collect_outputs`: the inputs that its iterator still reads.
_inputs_read: dict[object, list[Any]] = {}


def _stop_reading() -> None:
    """Empty the lists of inputs, so that a process that a mechanism has forked draws no more."""
    # Without inputs, the fork makes no further draws, which could fork again and again.
    for inputs in _inputs_read.values():
        inputs.clear()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_stop_reading)


def as_outcome(error: BaseException) -> Raised:
    """Return an exception as an outcome, with its type, message and source line."""
    return Raised(type(error).__name__, message_of(error), origin(error))


def _located(error: BaseException, known: dict[tuple[str, str], Raised]) -> Raised:
    """Return an exception as an outcome, with the source line for the first `_MAX_PLACES` kinds."""
    key = type(error).__name__, message_of(error)
    if key not in known:
        if len(known) == _MAX_PLACES:
            return Raised(*key)
        known[key] = Raised(*key, origin(error))
    return known[key]
