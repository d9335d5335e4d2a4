"""Any callable as a `Mechanism` in this process: one call a draw, or a batch at a time."""

from __future__ import annotations

import inspect
import keyword
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat, takewhile
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import Given, MechanismError
from dpaudit.float_errors import user_errstate
from dpaudit.outcomes import Raised
from dpaudit.processes.origin import FAILURES, end_if_forked, message_of, origin, post_processed
from dpaudit.targets.construction import not_found
from dpaudit.targets.parameters import NONE, Calling
from dpaudit.torch_use import is_tensor, readable
from dpaudit.watching import Watch
from dpaudit.wording import counted

ONE_BY_ONE = Given(f"batch_arg={NONE!r}", f"--batch-arg {NONE} (YAML: batch_arg: {NONE})")

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class _Calls:
    """A callable, and how it is called."""

    name: str
    function: Function
    how: Calling
    params: Mapping[str, Any]
    post_process: Function | None = None
    watch: Watch = field(default_factory=Watch, repr=False, compare=False)

    @property
    def text_orders(self) -> bool:
        return True

    @property
    def parts(self) -> tuple[Any, ...]:
        return (self.function, self.post_process, self.params)

    def close(self) -> None:
        """Nothing was started."""

    def _arguments(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return self.params if self.how.rng is None else {**self.params, self.how.rng: rng}


@dataclass(frozen=True, slots=True)
class SingleDraws(_Calls):
    """One call a draw; an exception that a call raises is the outcome of that draw."""

    interleaved = types_by_draw = True

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
        return self.sample_each(repeat(dataset, size), rng)

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> list[Any]:
        inputs = datasets if isinstance(datasets, list) else list(datasets)
        draws = calls(self._each(), self._arguments(rng), inputs, self.how.data)
        if self.post_process is not None:
            draws = map(_composed(self.post_process, self.bound(rng)), inputs)
        return collect_outputs(draws, len(inputs), partial(self.watch.calls, self.name))

    def bound(self, rng: np.random.Generator) -> Function:
        """Return the function of the dataset alone."""
        return bind(self._each(), self._arguments(rng), self.how.data)

    def _each(self) -> Function:
        """Return the function of one output."""
        alone = self.how.alone
        return self.function if alone is None else partial(_only, self.name, self.function, alone)


@dataclass(frozen=True, slots=True)
class Batches(_Calls):
    """One call for many draws."""

    interleaved = False

    @property
    def types_by_draw(self) -> bool:
        return False  # one number among others may set the type of a whole batch

    @property
    def batch(self) -> str:
        return str(self.how.batch)

    @property
    def doubt(self) -> str | None:
        """A warning where the parameter that is taken for the number of outputs may be another."""
        if self.how.usual in (None, 1):
            return None
        batch = self.batch
        return (
            f"{batch}={self.how.usual} of {self.name} is taken for how many outputs one call "
            f"returns; give batch_arg: {batch} (--batch-arg {batch}) if it is, {NONE} if it is not"
        )

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        outputs = _as_batch(self._called(dataset, size, rng), self.name, self.batch, size)
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
                return self.function(*by_position, **arguments)
        except ImportError as error:
            raise not_found(as_outcome(error).words, self.name) from error
        except FAILURES as error:
            end_if_forked(owner, error)
            what = f"raised {as_outcome(error).words}"
            raise batch_failed(self.name, self.batch, size, what) from error


def _only(name: str, function: Function, batch: str, *dataset: Any, **arguments: Any) -> Any:
    """Return the output of a call for one."""
    outputs = function(*dataset, **arguments, **{batch: 1})
    return _as_batch(outputs, name, batch, 1)[0]


def calls(
    function: Function, arguments: Mapping[str, Any], inputs: Iterable[Any], data: str | None
) -> Iterator[Any]:
    """Return an iterator over the outputs for `inputs`, as `bind` does: by position where arguments
    come first in the signature, which spares a draw some 40 ns more."""
    names = names_after_dataset(function)[: len(arguments)] if arguments else []
    if data is None and set(names) == set(arguments):
        return map(function, inputs, *(repeat(arguments[name]) for name in names))
    return map(bind(function, arguments, data), inputs)


def names_after_dataset(function: Function) -> list[str]:
    """Return the parameters that may be given by position, in order, without the first one."""
    try:
        parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):
        return []
    by_position = takewhile(lambda one: one.kind is one.POSITIONAL_OR_KEYWORD, parameters)
    return [one.name for one in by_position][1:]


def bind(function: Function, arguments: Mapping[str, Any], data: str | None = None) -> Function:
    """Return `function` of the dataset alone, with the keyword `arguments` filled in.

    As a lambda written out for these names, it costs a draw some 30 ns, where functools.partial
    and `**arguments` cost 100 to 130.
    data: the parameter that takes the dataset; None: the first one.
    """
    if not arguments and data is None:
        return function
    if not all(map(_is_name, [*arguments, *filter(None, [data])])):
        filled = partial(function, **arguments)
        return filled if data is None else lambda dataset: filled(**{data: dataset})
    scope = {f"_{place}": value for place, value in enumerate(arguments.values())}
    given = ["dataset" if data is None else f"{data}=dataset"]
    given += [f"{name}=_{place}" for place, name in enumerate(arguments)]
    # The names are identifiers, so that nothing of the user's is evaluated.
    words = f"lambda dataset: _function({', '.join(given)})"
    return eval(words, {"_function": function, **scope})  # type: ignore[no-any-return]  # noqa: S307


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def apply_post_process(
    function: Function | None, outputs: list[Any], watch: Watch | None = None
) -> list[Any]:
    """Return what post-processing makes of outputs; an exception stays what it is."""
    if function is None:
        return outputs
    watched = nullcontext if watch is None else partial(watch.calls, "post_process")
    return collect_outputs(map(partial(_processed, function), outputs), len(outputs), watched)


def _processed(function: Function, output: Any) -> Any:
    return output if isinstance(output, Raised) else post_processed(function, output)


def _composed(outer: Function, inner: Function) -> Function:
    return lambda dataset: post_processed(outer, inner(dataset))


def _as_batch(outputs: Any, name: str, batch: str, size: int) -> Outputs:
    """Return a batch as a list, or as an array what is one or knows how to be one (pandas)."""
    count: int | None = None
    if not isinstance(outputs, str | bytes | Mapping | set | frozenset):
        with suppress(TypeError):  # it has no length
            count = len(outputs)
    if count == size and isinstance(outputs, np.ndarray):
        return outputs
    if count == size:
        outputs = readable(outputs) if is_tensor(type(outputs)) else outputs
        is_array = hasattr(outputs, "__array__") and not isinstance(outputs, list | tuple)
        return np.asarray(outputs) if is_array else list(outputs)
    got = type(outputs).__name__ if count is None else counted(count, "output")
    raise batch_wrong(name, batch, size, got)


def batch_failed(name: str, batch: str, size: int, what: str) -> MechanismError:
    """Return the error of a batch that failed as a whole. what: it did, a verb first."""
    return MechanismError(
        f"{name} {what} for a batch of {batch}={size}, which hides the outcome of each draw; with ",
        *(ONE_BY_ONE, ", dpaudit calls it once for each draw, and this counts as an outcome"),
    )


def batch_wrong(name: str, batch: str, size: int, got: str) -> MechanismError:
    """Return the error of a batch of another size."""
    wanted = counted(size, "output")
    if got == type(None).__name__:
        return MechanismError(
            f"{name} returned None for {batch}={size} and was asked for {wanted}; did the function "
            "forget to return?"
        )
    return MechanismError(
        f"{name} returned {got} for {batch}={size} and was asked for {wanted}; return that many, "
        "or give ",
        *(ONE_BY_ONE, f" if {batch!r} means something else"),
    )


def as_python(outputs: Outputs) -> Iterable[Any]:
    """Return outputs as Python's own scalars, as single draws give them; vectors stay arrays."""
    return outputs.tolist() if isinstance(outputs, np.ndarray) and outputs.ndim == 1 else outputs


# The outputs of some draws, in order.
Outputs = list[Any] | NDArray[Any]


class Mechanism(Protocol):
    """What the sampler draws from.

    name: how messages call it.
    interleaved: one call a draw, so that the arms can take turns: use `sample_each`.
    types_by_draw: whether the types of numbers in a list of outputs are those of each output by
        itself. They are not where outputs were entries of an array: one float makes floats of all.
    text_orders: whether text keys of outputs are hashed with the hash seed of this process, or each
        order comes with whether a set has it, so that orders may count.
    parts: the user's own objects, where generators may hide (`carried_generators`).
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
        """Return `size` outputs for `dataset`, an exception among them as `Raised`."""
        ...

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> Outputs:
        """Return one output for each dataset, in order."""
        ...

    def close(self) -> None:
        """End what was started to draw; another draw starts it again."""
        ...


@dataclass(frozen=True, slots=True)
class Wrapping:
    """What a mechanism that changes the outputs of another one has from that one."""

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


# So many exceptions of a batch of draws that differ are looked up in the code.
_MOST_PLACES = 64


def collect_outputs(
    draws: Iterator[Any],
    size: int,
    watched: Callable[[list[Any]], AbstractContextManager[Any]] = nullcontext,
) -> list[Any]:
    """Return `size` outputs, exceptions as `Raised`; the loop that every draw goes through.

    watched: the context in which it runs, given the outputs, which grow draw by draw.
    """
    outputs: list[Any] = []
    seen: dict[tuple[str, str], Raised] = {}
    owner = os.getpid()
    with watched(outputs), user_errstate():
        while len(outputs) < size:
            try:
                outputs.extend(draws)  # keeps what came before an exception, and can go on after it
                # A mechanism that raises StopIteration only seems to have come to the end.
                if len(outputs) < size:
                    outputs.append(as_outcome(StopIteration()))
            except FAILURES as error:
                end_if_forked(owner, error)
                outputs.append(_seen(error, seen))
    end_if_forked(owner)
    return outputs


def as_outcome(error: BaseException) -> Raised:
    """Return an exception as an outcome."""
    return Raised(type(error).__name__, message_of(error), origin(error))


def _seen(error: BaseException, seen: dict[tuple[str, str], Raised]) -> Raised:
    """Return `raised`, looking for the line only of the first exceptions that differ: it takes a
    microsecond, and is shown for the first of a kind."""
    named = type(error).__name__, message_of(error)
    if named not in seen:
        if len(seen) == _MOST_PLACES:
            return Raised(*named)
        seen[named] = Raised(*named, origin(error))
    return seen[named]
