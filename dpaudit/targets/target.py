"""What to call: a mechanism named by import path, a callable at hand, a program, or several.

Each has a `name`, as messages call it, and a `describe()`: what is audited, as a reader would write
it.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from dpaudit.errors import Name, TargetError
from dpaudit.outcomes.reading.lengths import MOST as MOST_RUNS
from dpaudit.wording import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTarget:
    """A mechanism named by `package.module:attr` or `path/to/file.py:attr`.

    init: constructor arguments of a class (a list or a mapping); call: the method that draws.
    factory: the attribute is called (with init) and returns what draws.
    params: keyword arguments of every call.  batch_arg: the parameter that takes the number of
    outputs wanted (None: `size` if there is one; "none": never).  data_arg: the one that takes the
    dataset (None: the first).  rng_arg: the one that takes a generator (None: `rng`; "none": none).
    post_process: import path of a function applied to every output.
    """

    path: str
    init: Sequence[Any] | Mapping[str, Any] | None = None
    call: str | None = None
    factory: bool = False
    params: Mapping[str, Any] = field(default_factory=dict)
    batch_arg: str | None = None
    data_arg: str | None = None
    rng_arg: str | None = None
    post_process: str | None = None

    @property
    def name(self) -> str:
        return self.path

    def describe(self) -> str:
        made = self.path if self.init is None else f"{self.path}({_arguments(self.init)})"
        called = f"{made}.{self.call}" if self.call else made
        return _described(called, self.post_process, self.params)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallableTarget:
    """A callable at hand, as given to `dpaudit.audit` (lambdas and closures run in-process)."""

    function: Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    batch_arg: str | None = None
    data_arg: str | None = None
    rng_arg: str | None = None
    post_process: Callable[[Any], Any] | None = None

    @property
    def name(self) -> str:
        return name_of(self.function)

    def describe(self) -> str:
        return _described(self.name, self.post_process, self.params)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedTarget:
    """Several mechanisms released on the same input as one output, a tuple with an entry for each.
    post_process: as in ImportedTarget."""

    parts: tuple[SingleTarget, ...]
    post_process: str | None = None

    @property
    def name(self) -> str:
        return " + ".join(part.name for part in self.parts)

    def describe(self) -> str:
        together = " + ".join(f"({part.describe()})" for part in self.parts)
        return _described(together, self.post_process)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a draw in a process of its own may take, in seconds, and the process in bytes of address
    space (None: no limit); what comes of more is an outcome. Raises TargetError."""

    timeout: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        if self.timeout is not None and not 0 < self.timeout < math.inf:
            why = f"={self.timeout!r} must be above 0 seconds, and finite"
            raise TargetError(Name("timeout"), why)
        if self.memory is not None and self.memory <= 0:
            raise TargetError(Name("memory_limit"), f"={self.memory!r} must be above 0 bytes")

    def doubts(self) -> str:
        """Return what to think of when a process does not start: of its memory, or of nothing."""
        if self.memory is None:
            return ""
        return f" (memory_limit={self.memory:,} bytes may be too small to start in)"


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedTarget:
    """A mechanism that draws in a process of its own. python: None for the one that runs this."""

    target: PythonTarget
    python: str | None = None
    limits: Limits = Limits()

    @property
    def name(self) -> str:
        return self.target.name

    def describe(self) -> str:
        where = "in a separate process" if self.python is None else f"run by {self.python}"
        return f"{self.target.describe()}, {where}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTarget:
    """A program that speaks the protocol of docs/guides/protocol.md. is_batch: whether it is asked
    for many outcomes at once; None: as it says itself.  post_process: as in ImportedTarget."""

    words: tuple[str, ...]
    is_batch: bool | None = None
    post_process: str | None = None
    limits: Limits = Limits()

    @property
    def name(self) -> str:
        return shlex.join(self.words)

    def describe(self) -> str:
        return _described(self.name, self.post_process)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedTarget:
    """Independent runs of one mechanism, from 2 to 100,000, on the same input, released as one
    output, a tuple. Raises TargetError for another number."""

    target: SingleTarget | ComposedTarget
    times: int

    def __post_init__(self) -> None:
        if not _is_whole(self.times) or self.times < 2:
            why = f"={self.times!r} must be a whole number of runs, at least 1"
            raise TargetError(Name("repeat"), why)
        if self.times > MOST_RUNS:
            raise TargetError(
                Name("repeat"),
                f"={self.times:,} is too many: each run is one entry of an output, and an output "
                f"has at most {MOST_RUNS:,}; give at most {MOST_RUNS:,}",
            )

    @property
    def name(self) -> str:
        return self.target.name

    def describe(self) -> str:
        return f"{self.target.describe()}; {self.times} independent runs are one output"


def repeated(target: SingleTarget | ComposedTarget, times: int) -> AnyTarget:
    """Return so many runs of a mechanism as one; itself for a single one. Raises TargetError."""
    return target if times == 1 and _is_whole(times) else RepeatedTarget(target=target, times=times)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def name_of(function: Callable[..., Any] | str) -> str:
    """Return how messages call a function that is at hand, or named by its import path."""
    if isinstance(function, str):
        return function
    return getattr(function, "__qualname__", repr(function))


def _described(
    called: str,
    post_process: Callable[[Any], Any] | str | None,
    params: Mapping[str, Any] | None = None,
) -> str:
    given = f"{called}, {_arguments(params)}" if params else called
    return f"{given}, then {name_of(post_process)}" if post_process else given


def _arguments(values: Sequence[Any] | Mapping[str, Any]) -> str:
    if isinstance(values, Mapping):
        return ", ".join(f"{name}={shown(value, 40)}" for name, value in values.items())
    return ", ".join(shown(value, 40) for value in values)


PythonTarget = ImportedTarget | CallableTarget
SingleTarget = PythonTarget | IsolatedTarget | CommandTarget
AnyTarget = SingleTarget | ComposedTarget | RepeatedTarget


def single_targets(target: AnyTarget) -> tuple[SingleTarget, ...]:
    """Return the mechanisms that are called: the parts of a composition, also a repeated one."""
    if isinstance(target, RepeatedTarget):
        return single_targets(target.target)
    return target.parts if isinstance(target, ComposedTarget) else (target,)


def starts_a_program(target: AnyTarget) -> bool:
    """Return whether a part of a target is a program that its author names, Python or not."""
    return any(
        isinstance(one, CommandTarget)
        or (isinstance(one, IsolatedTarget) and one.python is not None)
        for one in single_targets(target)
    )


def runs_in_another_process(target: AnyTarget) -> bool:
    """Return whether a mechanism, or a part of it, draws in a process of its own."""
    return any(isinstance(one, IsolatedTarget | CommandTarget) for one in single_targets(target))


# Exceptions whose cause is in the code, whatever the mechanism is given.
_OF_CODE = ("NameError", "NotImplementedError", "SyntaxError", "UnboundLocalError")


def what_to_check(target: AnyTarget, kind: str) -> str:
    """Return what to check where every call raises an exception of this type: the code alone, or
    the inputs, the arguments that the user gave and the code."""
    if kind in _OF_CODE:
        return "check the code of the mechanism"
    given = ["d1 and d2"]
    for one in single_targets(target):
        one = one.target if isinstance(one, IsolatedTarget) else one
        for name in ("params", "init"):
            if values := getattr(one, name, None):
                given.append(f"{name} ({_arguments(values)})")
    return f"check {', '.join(given)} and the code of the mechanism"
