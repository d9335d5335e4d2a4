"""Define the kinds of targets. A target is made from command-line options, a configuration file or
Python arguments, and checks the values of simple options. `dpaudit.adapters.loading` turns it into
a mechanism. Each target has a `name` for messages, and a method `describe()` for reports."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from dpaudit.errors import Name, TargetError
from dpaudit.outcomes.reader import MAX_ENTRIES as MAX_RUNS
from dpaudit.torch_use import misses_device
from dpaudit.wording import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTarget:
    """A Python mechanism that is given by its import path.

    init: arguments of the class or factory, as a list (by position) or a mapping (by name).
    call: name of the method that draws; None if the object itself is called.
    factory: whether the object at `path` is a function that must be called, with `init`, to get the
        mechanism.
    params: keyword arguments of every call of the mechanism.
    batch_arg: parameter for the number of outputs; "none" for one draw a call. None stands for
        `size`, if the mechanism has this parameter.
    data_arg: parameter for the dataset. None stands for the first parameter.
    rng_arg: parameter for the random generator; "none" to pass no generator. None stands for `rng`,
        or another usual name (parameters.py), if the mechanism has this parameter.
    post_process: import path of the post-processing function, if any.
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
        mechanism = self.path if self.init is None else f"{self.path}({_arguments(self.init)})"
        called = f"{mechanism}.{self.call}" if self.call else mechanism
        return _described(called, self.post_process, self.params)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallableTarget:
    """A Python mechanism that is given as a function, with the other fields of `ImportedTarget`."""

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
    """A composition. One output is the tuple of the outputs of its parts. The function at the
    import path `post_process`, if any, is applied to this tuple."""

    parts: tuple[SingleTarget, ...]
    post_process: str | None = None

    @property
    def name(self) -> str:
        return " + ".join(part.name for part in self.parts)

    def describe(self) -> str:
        together = " + ".join(f"({part.describe()})" for part in self.parts)
        return _described(together, self.post_process)


# Smaller limits of memory, in bytes, are mistakes in the unit.
_MIN_MEMORY = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a separate process: seconds for each draw, above 0, and bytes of address space, at
    least 1 MB; None for no limit. If a draw exceeds one, its outcome is the failure, such as
    `timeout`. Raises TargetError for other numbers."""

    timeout: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        if self.timeout is not None and not 0 < self.timeout < math.inf:
            why = f"={self.timeout!r} must be above 0 seconds, and finite"
            raise TargetError(Name("timeout"), why, code="option-invalid")
        if self.memory is not None and self.memory < _MIN_MEMORY:
            why = f"={self.memory!r} must be at least {_MIN_MEMORY:,} bytes, such as 500MB"
            raise TargetError(Name("memory_limit"), why, code="option-invalid")

    def doubts(self) -> str:
        """Return words that the memory limit, if any, may be too small for the process to start."""
        if self.memory is None:
            return ""
        return f" (the memory limit of {self.memory:,} bytes may be too small to start in)"


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedTarget:
    """A Python mechanism in a separate process. The process runs the interpreter `python`; None
    stands for this interpreter."""

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
    """A program, with its command line, that draws by the protocol of docs/guides/protocol.md.

    is_batch: whether a request asks for many outcomes. None: the first line that the program writes
        decides this.
    post_process: import path of the post-processing function, if any.
    """

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
    """Several independent runs of a mechanism on the same input. The outputs of all runs together
    are one output, a tuple. Raises TargetError unless there are 2 to 100,000 runs."""

    target: SingleTarget | ComposedTarget
    times: int

    def __post_init__(self) -> None:
        if not _is_whole(self.times) or self.times < 2:
            why = f"={self.times!r} must be a whole number of runs, at least 1"
            raise TargetError(Name("repeat"), why, code="option-invalid")
        if self.times > MAX_RUNS:
            raise TargetError(
                Name("repeat"),
                f"={self.times:,} is too many: each run is one entry of an output, and an output "
                f"has at most {MAX_RUNS:,}; give at most {MAX_RUNS:,}",
                code="option-invalid",
            )

    @property
    def name(self) -> str:
        return self.target.name

    def describe(self) -> str:
        return f"{self.target.describe()}; {self.times:,} independent runs are one output"


# How the description of two mechanisms begins; a program of this name would stand in quotes.
_OF_TWO = "A: "


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoTargets:
    """Two mechanisms, A and B, that are compared on one input. Each draw is of the mechanism that
    its input, a `Side`, names."""

    a: SingleTarget
    b: SingleTarget

    @property
    def name(self) -> str:
        return f"{self.a.name} and {self.b.name}"

    def describe(self) -> str:
        return f"{_OF_TWO}{self.a.describe()}; B: {self.b.describe()}"


def is_of_two(description: str) -> bool:
    """Return whether the description of a target is that of `TwoTargets`."""
    return description.startswith(_OF_TWO)


def repeated(target: SingleTarget | ComposedTarget, times: int) -> AnyTarget:
    """Return a target whose output consists of `times` independent runs; the target itself for 1
    run. Raises TargetError if `times` is not a whole number from 1 to 100,000."""
    return target if times == 1 and _is_whole(times) else RepeatedTarget(target=target, times=times)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def name_of(function: Callable[..., Any] | str) -> str:
    """Return the name of a function, or an import path, for use in messages."""
    if isinstance(function, str):
        return function
    return getattr(function, "__qualname__", repr(function))


def _described(
    called: str,
    post_process: Callable[[Any], Any] | str | None,
    params: Mapping[str, Any] | None = None,
) -> str:
    text = f"{called}, {_arguments(params)}" if params else called
    return f"{text}, then {name_of(post_process)}" if post_process else text


def _arguments(values: Sequence[Any] | Mapping[str, Any]) -> str:
    if isinstance(values, Mapping):
        return ", ".join(f"{name}={shown(value, 40)}" for name, value in values.items())
    return ", ".join(shown(value, 40) for value in values)


PythonTarget = ImportedTarget | CallableTarget
SingleTarget = PythonTarget | IsolatedTarget | CommandTarget
AnyTarget = SingleTarget | ComposedTarget | RepeatedTarget | TwoTargets


def single_targets(target: AnyTarget) -> tuple[SingleTarget, ...]:
    """Return the mechanisms of a composition, repetition or comparison, or else the target."""
    if isinstance(target, RepeatedTarget):
        return single_targets(target.target)
    if isinstance(target, TwoTargets):
        return target.a, target.b
    return target.parts if isinstance(target, ComposedTarget) else (target,)


def starts_a_program(target: AnyTarget) -> bool:
    """Return whether a part of a target is a program, or runs under another interpreter of the
    user."""
    return any(
        isinstance(part, CommandTarget)
        or (isinstance(part, IsolatedTarget) and part.python is not None)
        for part in single_targets(target)
    )


def runs_in_another_process(target: AnyTarget) -> bool:
    """Return whether a target, or a part of it, draws in a separate process."""
    return any(isinstance(part, IsolatedTarget | CommandTarget) for part in single_targets(target))


# Types of exceptions that show a mistake in the code of the mechanism, whatever the arguments are.
_OF_CODE = ("NameError", "NotImplementedError", "SyntaxError", "UnboundLocalError")


def tuple_notation(message: str, arguments: Sequence[Any] | Mapping[str, Any] | None) -> str:
    """Return how to write the first list of `arguments` as a tuple, if `message` asks for one."""
    values = arguments.values() if isinstance(arguments, Mapping) else arguments or ()
    wrong = next((shown(value, 40) for value in values if isinstance(value, list)), None)
    if wrong is None or "tuple" not in message.lower():
        return ""
    return f"; {wrong} is a list: write {{tuple: {wrong}}} for a tuple"


def what_to_check(target: AnyTarget, kind: str, message: str = "") -> str:
    """Return advice, such as "check d1 and d2 and …", for a mechanism that raises an exception in
    every call. `kind` and `message` are the type and the message of the exception."""
    if misses_device(message):
        return "make the device a parameter of your code, and use the CPU"
    if kind in _OF_CODE:
        return "check the code of the mechanism"
    suspects, notation = ["d1 and d2"], ""
    for part in single_targets(target):
        part = part.target if isinstance(part, IsolatedTarget) else part
        for name in ("params", "init"):
            if values := getattr(part, name, None):
                suspects.append(f"{name} ({_arguments(values)})")
                if isinstance(part, ImportedTarget):  # Python has tuples of its own
                    notation = notation or tuple_notation(message, values)
    return f"check {', '.join(suspects)} and the code of the mechanism{notation}"
