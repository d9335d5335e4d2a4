"""Replace primitives and random generators during a run, so that each draw is recorded."""

from __future__ import annotations

import builtins
import functools
import random
import sys
import threading
from contextlib import contextmanager, suppress
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from .noisy_numbers import TracedInteger, carried, plain, traced
from .primitives import (
    Replacement,
    Replacements,
    dp_libraries,
    grouped,
    jax,
    numpy_random,
    python_random,
    torch,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .noise_log import Recorder
    from .places import Followed

    Declared = Callable[[Recorder], Iterator[Replacement]]


_MISSING = object()
# Limits of the search for random generators in the user's objects: depth of attributes
# (`_MAX_DEPTH`), and number of objects (`_MAX_OBJECTS`).
_MAX_DEPTH, _MAX_OBJECTS = 4, 20_000
_PLAIN = (int, float, complex, str, bytes, type(None), type, np.ndarray, np.generic)
# Types whose values hold no random generator. Subclasses do not count, since they may hold one.
_INERT = frozenset((int, float, complex, str, bytes, bool, type(None), np.ndarray))
_GENERATORS = frozenset((np.random.Generator, np.random.RandomState))
# Types whose values may refer to random generators, so the search looks inside them. To look up
# `type(value)` in this set is faster than the `isinstance` checks that other types need.
_HOLDERS = frozenset((FunctionType, list, tuple, dict))


_LIBRARIES = (numpy_random, python_random, torch, jax, dp_libraries)


class Primitives:
    """Makes the replacements of primitives. Those of libraries are made once. Those that the user
    declared are made in each run, by the functions in `declared`, which map a recorder to
    replacements."""

    def __init__(self, declared: Sequence[Declared] = ()) -> None:
        self._declared = declared
        self._now: Any = _Now()
        # Number of modules in `sys.modules` when the replacements for libraries were computed. If
        # the number has changed, they are computed again.
        self._loaded = 0
        self._of_libraries: list[Replacements] = []

    def replacements(self, recorder: Recorder) -> list[Replacements]:
        """Return the replacements of all primitives, grouped by module or class: those of the
        loaded libraries in `_LIBRARIES`, and those that the user declared. They report their draws
        to `recorder`."""
        self._now.itself = recorder
        if len(sys.modules) != self._loaded:
            replacements = (
                replacement
                for library in _LIBRARIES
                for replacement in library.replacements(self._now)
            )
            self._of_libraries = grouped(replacements)
            self._loaded = len(sys.modules)
        if not self._declared:
            return self._of_libraries
        return [
            *self._of_libraries,
            *grouped(replacement for source in self._declared for replacement in source(recorder)),
        ]


class _Now:
    """A proxy for the recorder of the current run, to which replacements for all runs refer."""

    __slots__ = ("itself",)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.itself, name)


class _NumberMeta(type):
    """Metaclass of the replacements of `float` and `int` in the user's code. `isinstance` and
    `issubclass` give the same results as for `float` and `int`."""

    true: type[Any] = object
    traced: tuple[type[Any], ...] = ()

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, (cls.true, *cls.traced))

    def __subclasscheck__(cls, kind: Any) -> bool:
        return issubclass(kind, cls.true)

    def __eq__(cls, other: Any) -> bool:
        return other is cls or other is cls.true

    def __hash__(cls) -> int:
        return hash(cls.true)


class _Float(float, metaclass=_NumberMeta):
    """Replaces `float` in the user's code; the result remembers the noise of the argument."""

    true = float
    dtype = np.dtype(float)

    def __new__(cls, value: Any = 0.0) -> Any:
        # a tensor that remembers its noise has its numbers in this attribute
        value = getattr(value, "_numbers", value)
        carrier = carried(value)
        if carrier is not None and np.ndim(value) == 0:
            return traced(float(plain(value)), *carrier)
        return float(value)


class _Int(int, metaclass=_NumberMeta):
    """Replaces `int` in the user's code. An integer that remembers its noise stays the same."""

    true = int
    traced = (TracedInteger,)
    dtype = np.dtype(int)

    def __new__(cls, *value: Any) -> Any:
        is_traced = bool(value) and isinstance(value[0], TracedInteger)
        return value[0] if is_traced else int(*value)


_BUILTINS = {"float": _Float, "int": _Int}


_kept = threading.local()


@contextmanager
def generators_kept() -> Iterator[None]:
    """Restore the states of the global random generators at the end of the context. If contexts are
    nested, only the outermost restores: to do this after each run would take a quarter of the time
    of a trace."""
    if getattr(_kept, "is_so", False):
        yield
        return
    states = random.getstate(), np.random.get_state()
    torch = _torch()
    of_torch = None if torch is None else torch.get_rng_state()
    _kept.is_so = True
    try:
        yield
    finally:
        _kept.is_so = False
        random.setstate(states[0])
        np.random.set_state(states[1])
        if of_torch is not None:
            torch.set_rng_state(of_torch)


def _torch() -> Any:
    """Return the module torch if it is loaded, else None."""
    module = sys.modules.get("torch")
    return module if hasattr(module, "set_rng_state") else None


@contextmanager
def replaced(
    recorder: Recorder,
    followed: Followed,
    parts: Sequence[Any],
    seed: int,
    primitives: Primitives,
) -> Iterator[None]:
    """Inside the context, send each draw of noise in this thread to `recorder`. Give new seeds,
    derived from `seed`, to all random generators, also to those in the user's objects `parts`. Undo
    all changes at the end."""
    with generators_kept(), jax.eager():
        random.seed(seed)
        np.random.seed(seed % 2**32)
        if _torch() is not None:
            _torch().manual_seed(seed)
        undo = _Undo()
        try:
            last = _last_module()
            known, swapped = _replace(primitives.replacements(recorder), undo)
            undo.append(functools.partial(_take_back, _names(last), last, swapped))
            references = _References(recorder, followed, known, seed, undo)
            # The user's objects come first, so that the seeds of their generators do not depend on
            # which modules are loaded.
            for part in parts:
                references.look_at(part, 0)
            for module in followed.modules(parts):
                references.look_into(vars(module))
                for name, value in _BUILTINS.items():
                    if name not in vars(module):
                        undo.set_item(vars(module), name, value)
            yield
        finally:
            recorder.is_open = False
            undo.all()


class _Undo(list):  # type: ignore[type-arg]  # of functions without arguments
    """Functions that undo the changes of a run, in the order in which the changes were made."""

    def set_item(self, scope: dict[Any, Any], name: Any, value: Any) -> None:
        """Set an item of a mapping, and append a function that undoes the change."""
        old = scope.get(name, _MISSING)
        scope[name] = value
        restore: Any = (scope.pop, name) if old is _MISSING else (scope.__setitem__, name, old)
        self.append(functools.partial(*restore))

    def set_items(self, scope: dict[Any, Any], values: dict[Any, Any]) -> dict[Any, Any]:
        """Set items, append functions that undo this, and return the old values by name."""
        old_values = {name: scope[name] for name in values if name in scope}
        self.append(functools.partial(scope.update, old_values))
        if len(old_values) < len(values):
            self.extend(functools.partial(scope.pop, name) for name in values if name not in scope)
        scope.update(values)
        return old_values

    def set_attribute(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute, and append a function that undoes the change."""
        old = vars(owner).get(name, _MISSING)
        setattr(owner, name, value)
        restore: Any = (delattr, owner, name) if old is _MISSING else (setattr, owner, name, old)
        self.append(functools.partial(*restore))

    def all(self) -> None:
        """Undo all changes, the last one first. Continue if one cannot be undone."""
        while self:
            with suppress(Exception):
                while self:
                    self.pop()()


def _replace(
    every: Sequence[Replacements], undo: _Undo
) -> tuple[dict[int, Any], list[tuple[Any, Any]]]:
    """Set the attributes. Return {id of function: replacement}, and (originals, replacements)."""
    known: dict[int, Any] = {}
    swapped: list[tuple[Any, Any]] = []
    for owner, values in every:
        if isinstance(owner, ModuleType):
            scope = vars(owner)
            originals = undo.set_items(scope, values)
            known.update((id(old), values[name]) for name, old in originals.items())
            swapped.append((originals, values))
        else:
            for name, value in values.items():
                # Setting an attribute of a compiled class raises an exception. Such a class is
                # left unchanged.
                with suppress(AttributeError, TypeError):
                    undo.set_attribute(owner, name, value)
    return known, swapped


def _last_module() -> tuple[int, Any]:
    """Return (number of loaded modules, last module); both change when a module is imported."""
    return len(sys.modules), next(reversed(sys.modules.values()))


_named: tuple[tuple[int, Any] | None, frozenset[str]] = None, frozenset()


def _names(last: tuple[int, Any]) -> frozenset[str]:
    """Return the names of the loaded modules, cached as long as `last` does not change."""
    global _named
    cached, names = _named
    if cached != last:
        names = frozenset(sys.modules)
        _named = last, names
    return names


def _take_back(
    loaded: frozenset[str], last: tuple[int, Any], swapped: list[tuple[Any, Any]]
) -> None:
    """Put the originals back in modules that were imported during the run."""
    # They may have imported replacements by name (`from numpy.random import laplace`).
    if _last_module() == last:
        return
    true = {id(values[name]): old for olds, values in swapped for name, old in olds.items()}
    for name in set(sys.modules) - loaded:
        scope = getattr(sys.modules[name], "__dict__", {})
        for key, value in list(scope.items()):
            old = true.get(id(value), _MISSING)
            if old is not _MISSING:
                scope[key] = old


class _References:
    """Replaces primitives and random generators wherever the user's code refers to them."""

    def __init__(
        self,
        recorder: Recorder,
        followed: Followed,
        known: dict[int, Any],
        seed: int,
        undo: _Undo,
    ) -> None:
        self._recorder, self._followed, self._known = recorder, followed, known
        self._undo = undo
        # Maps the `id` of each object that was searched for functions that draw noise to the
        # object, so that no object is searched twice. It contains the namespace of `builtins` from
        # the start: every module refers to this namespace, and it is never searched.
        self._searched: dict[int, Any] = {id(vars(builtins)): builtins}
        # Objects that were searched are kept alive: the `id` of a deleted object could be given to
        # a new one, which would then not be searched.
        self._alive: list[Any] = []
        self._seed = seed
        self._streams: np.random.SeedSequence | None = None
        self._wrapped: dict[int, Any] = {}

    def look_into(self, scope: dict[str, Any]) -> None:
        """Replace the functions that draw noise, and the generators, to which a module refers."""
        for name, value in list(scope.items()):
            kind = type(value)
            if kind in _INERT:
                continue
            new = self._new(value)
            if new is not None:
                self._undo.set_item(scope, name, new)
            elif kind in _HOLDERS or not isinstance(value, (ModuleType, type)):
                self.look_at(value, 1)

    def look_at(self, value: Any, depth: int) -> None:
        """Replace the functions and generators to which an object refers."""
        # Generators of `random` and torch are not replaced, but get a new seed.
        kind = type(value)
        if (
            kind in _INERT
            or depth > _MAX_DEPTH
            or id(value) in self._searched
            or len(self._searched) > _MAX_OBJECTS
            or (kind not in _HOLDERS and isinstance(value, _PLAIN))
        ):
            return
        self._searched[id(value)] = value
        if kind is FunctionType:
            if value.__closure__ or value.__defaults__ or value.__kwdefaults__ or value.__dict__:
                self._look_at_function(value, depth)
        elif isinstance(value, (list, tuple)):
            self._look_at_items(value, depth)
        elif isinstance(value, dict):
            self._exchange(value)
        elif isinstance(value, random.Random) and not isinstance(value, random.SystemRandom):
            (word,) = self._stream().generate_state(1)
            try:
                state = value.getstate()
                value.setstate(state)
                random.Random.seed(value, int(word))
            except Exception:  # noqa: BLE001  # a subclass may have no state or no seed
                return
            self._undo.append(functools.partial(value.setstate, state))
        elif kind.__name__ == "Generator" and hasattr(value, "initial_seed"):  # torch.Generator
            (word,) = self._stream().generate_state(1)
            self._undo.append(functools.partial(value.set_state, value.get_state()))
            value.manual_seed(int(word))
        elif isinstance(value, MethodType):
            self.look_at(value.__self__, depth)
            self.look_at(value.__func__, depth)
        elif isinstance(value, functools.partial):
            for argument in (value.func, *value.args, *value.keywords.values()):
                self.look_at(argument, depth)
            self._exchange(value.keywords)
        else:
            scope = getattr(value, "__dict__", None)
            if isinstance(scope, dict) and self._is_own(type(value)):
                self._exchange(scope)
                for attribute in list(scope.values()):
                    self.look_at(attribute, depth + 1)
                for base in filter(self._is_own, type(value).__mro__):
                    for attribute in list(vars(base).values()):
                        self.look_at(getattr(attribute, "__func__", attribute), depth + 1)

    def _look_at_items(self, values: Sequence[Any], depth: int) -> None:
        for item in values[:100]:
            if type(item) not in _INERT:
                self.look_at(item, depth + 1)

    def _exchange(self, scope: dict[Any, Any]) -> None:
        for name, value in list(scope.items())[:1000]:
            if type(value) in _INERT:
                continue
            new = self._new(value)
            if new is not None:
                self._undo.set_item(scope, name, new)

    def _look_at_function(self, value: FunctionType, depth: int) -> None:
        if not self._followed.owns(value.__code__.co_filename):
            return
        for cell in value.__closure__ or ():
            try:
                inside = cell.cell_contents
            except ValueError:  # a variable that has not been assigned yet
                continue
            new = self._new(inside)
            if new is not None:
                cell.cell_contents = new
                self._undo.append(functools.partial(setattr, cell, "cell_contents", inside))
            else:
                self.look_at(inside, depth + 1)
        defaults = value.__defaults__
        if defaults and any(self._new(default) is not None for default in defaults):
            value.__defaults__ = tuple(
                default if self._new(default) is None else self._new(default)
                for default in defaults
            )
            self._undo.append(functools.partial(setattr, value, "__defaults__", defaults))
        if value.__kwdefaults__:
            self._exchange(value.__kwdefaults__)
        if value.__dict__:
            self.look_at(value.__dict__.get("__wrapped__"), depth)

    def _is_own(self, kind: type[Any]) -> bool:
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        return isinstance(file, str) and self._followed.owns(file)

    def _new(self, value: Any) -> Any:
        """Return the replacement of a function that draws noise or of a generator, else None."""
        known = self._known.get(id(value), _MISSING)
        if known is not _MISSING:
            return known
        if type(value) not in _GENERATORS:
            return None
        if id(value) not in self._wrapped:
            self._alive.append(value)
            stream = self._stream()
            if isinstance(value, np.random.Generator):
                fresh: Any = np.random.Generator(np.random.PCG64(stream))
            else:
                fresh = np.random.RandomState(np.random.MT19937(stream))
            self._wrapped[id(value)] = numpy_random.wrapped(fresh, self._recorder)
        return self._wrapped[id(value)]

    def _stream(self) -> np.random.SeedSequence:
        """Return the seed sequence for the next generator, derived from the seed of the run."""
        if self._streams is None:  # made on demand: most runs find no generator
            self._streams = np.random.SeedSequence([self._seed, 1])
        (stream,) = self._streams.spawn(1)
        return stream
