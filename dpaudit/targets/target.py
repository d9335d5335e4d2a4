"""What to call: a mechanism named by import path, or a callable at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTarget:
    """A mechanism named by `package.module:attr` or `path/to/file.py:attr`.

    init: constructor arguments of a class (a list or a mapping); call: the method that draws.
    factory: the attribute is called (with init) and returns what draws.
    params: keyword arguments of every call.  batch_arg: the parameter that takes the number of
    outputs wanted (None: `size` if there is one; "none": never).
    post_process: import path of a function applied to every output.
    """

    path: str
    init: Sequence[Any] | Mapping[str, Any] | None = None
    call: str | None = None
    factory: bool = False
    params: Mapping[str, Any] = field(default_factory=dict)
    batch_arg: str | None = None
    post_process: str | None = None

    @property
    def name(self) -> str:
        """How messages call it."""
        return self.path

    def describe(self) -> str:
        """Return what is audited, as a reader would write it: its arguments and what follows."""
        made = self.path if self.init is None else f"{self.path}({_arguments(self.init)})"
        called = f"{made}.{self.call}" if self.call else made
        given = f"{called}, {_arguments(self.params)}" if self.params else called
        return f"{given}, then {self.post_process}" if self.post_process else given


@dataclass(frozen=True, slots=True, kw_only=True)
class CallableTarget:
    """A callable at hand, as given to `dpaudit.audit` (lambdas and closures run in-process)."""

    function: Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    batch_arg: str | None = None
    post_process: Callable[[Any], Any] | None = None

    @property
    def name(self) -> str:
        """The callable's own name."""
        return _name(self.function)

    def describe(self) -> str:
        """Return what is audited, as a reader would write it."""
        given = f"{self.name}, {_arguments(self.params)}" if self.params else self.name
        return f"{given}, then {_name(self.post_process)}" if self.post_process else given


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedTarget:
    """Several mechanisms released on the same input as one output, a tuple with an entry for each.

    parts: at least one.  post_process: import path of a function applied to every such tuple.
    """

    parts: tuple[ImportedTarget | CallableTarget, ...]
    post_process: str | None = None

    @property
    def name(self) -> str:
        """The names of the parts."""
        return " + ".join(part.name for part in self.parts)

    def describe(self) -> str:
        """Return what is audited, as a reader would write it."""
        together = " + ".join(f"({part.describe()})" for part in self.parts)
        return f"{together}, then {self.post_process}" if self.post_process else together


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))


def _arguments(values: Sequence[Any] | Mapping[str, Any]) -> str:
    if isinstance(values, Mapping):
        return ", ".join(f"{name}={_short(value)}" for name, value in values.items())
    return ", ".join(map(_short, values))


def _short(value: Any, width: int = 40) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= width else f"{text[: width - 1]}…"


AnyTarget = ImportedTarget | CallableTarget | ComposedTarget
