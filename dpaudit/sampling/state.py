"""Find the state of a mechanism. A counter, a cache, or noise that is drawn once makes draws depend
on each other, often without any visible effect on the outputs (docs/method.md §11, "State").

An audit takes a digest (16-byte hash) of each variable before and after the draws (`kept_state`),
and names the variables that changed (`changed`) in a warning or an error. `Written` collects the
paths of files that calls write. A mechanism that changes variables, or writes one file in every
call, is not moved to worker processes.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from ctypes import CDLL
from functools import partial
from itertools import count
from types import FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import numpy as np

from dpaudit.sampling.seeding import (
    code_names,
    comes_from,
    home_of,
    is_generator,
    is_home,
    slots_of,
)

# Limits that bound the cost of a digest. A change beyond a limit is not noticed.
# _MAX_OBJECTS: number of objects that are read inside one variable.
# _MAX_DEPTH: number of levels of lists, dicts and attributes that are read inside one variable.
# _MAX_BYTES: number of bytes that are read at the start of an array or buffer, 1 MiB.
_MAX_OBJECTS, _MAX_DEPTH, _MAX_BYTES = 2_000, 4, 1 << 20
# Largest number of functions and objects whose variables are read.
_MAX_FUNCTIONS = 500
# Types of values that contain no other values.
_PLAIN = (int, float, complex, str, bytes, bool, type(None), np.generic)

# Modules of the standard library whose variables calls change by a log message, a warning or a
# traceback.
_REGISTRIES = ("linecache", "logging", "warnings")


class StateDigests(dict[str, bytes]):
    """Maps the name of a variable, such as `Mechanism.count`, to the digest of its value. `modules`
    are the names of the modules that were imported when the digests were taken."""

    def __init__(self, digests: Mapping[str, bytes]) -> None:
        super().__init__(digests)
        self.modules = frozenset(sys.modules)

    def with_imports(self, later: StateDigests) -> StateDigests:
        """Return these digests, and those in `later` of variables of modules imported since."""
        new = {name: later[name] for name in _of_imports(self, later)}
        state = StateDigests({**self, **new})
        state.modules = later.modules
        return state


def kept_state(*parts: Any) -> StateDigests:
    """Return {name: digest} for the variables that the parts of a mechanism can reach.

    Variables are module globals, closure variables, context variables, caches of functools and
    arguments of functools.partial; attributes and slots of a method's object, of its class and of
    functions; and variables of other modules whose names occur in the code. Random generators are
    left out, since every draw changes their state.
    """
    state = dict[str, bytes]()
    home = set().union(*map(home_of, parts))
    # `visited` keeps objects alive, so that no new object can get the id of an object seen before.
    queue, visited = deque(parts), dict[int, Any]()
    while queue and len(visited) < _MAX_FUNCTIONS:
        value = queue.popleft()
        if value is None or id(value) in visited:
            continue
        visited[id(value)] = value
        for name, variable in _variables(value, home):
            if _is_code(variable):
                queue.append(variable)
            elif not (
                isinstance(variable, ModuleType) or is_generator(variable) or _is_left_out(variable)
            ):
                state[name] = _digest(variable)
        queue.extend(_behind(value))
    return StateDigests(state)


def _is_left_out(value: Any) -> bool:
    """Return whether a value is not counted as state of the mechanism, although calls change it."""
    if isinstance(value, logging.Filterer):
        return True
    if callable(getattr(value, "cache_info", None)):
        module = str(getattr(value, "__module__", ""))
        return module.partition(".")[0] in sys.stdlib_module_names
    return str(type(value).__module__).startswith("dpaudit.training.")


def changed(before: StateDigests, after: StateDigests) -> tuple[str, ...]:
    """Return the names of variables whose digests differ, in alphabetical order. A variable that
    only one of the two states has counts as changed. It does not if its module was imported in
    between: an import in the first call is no state."""
    every, imported = {**before, **after}, _of_imports(before, after)
    names = (name for name in every if name not in imported)
    return tuple(sorted(name for name in names if before.get(name) != after.get(name)))


def _of_imports(earlier: StateDigests, later: StateDigests) -> set[str]:
    """Return the names of variables of modules that were imported between two states."""
    imported = later.modules - earlier.modules
    return {name for name in later.keys() - earlier.keys() if name.rpartition(".")[0] in imported}


def _variables(value: Any, home: set[str]) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) for each variable of a function, class, partial or other object."""
    if isinstance(value, FunctionType):
        scope, names = value.__globals__, set(code_names(value.__code__))
        for name in sorted(names & scope.keys()):
            if not _is_code(scope[name]) or is_home(scope[name], home):
                yield name, scope[name]
        yield from _of_modules(names, scope, home)
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            with suppress(ValueError):  # a variable that has not been assigned yet
                yield name, cell.cell_contents
        yield from (
            (f"{value.__name__}.{name}", variable) for name, variable in vars(value).items()
        )
        yield f"the defaults of {value.__name__}", (value.__defaults__, value.__kwdefaults__)
    elif isinstance(value, type):
        yield from _of_class(value)
    elif isinstance(value, partial):
        name = getattr(value.func, "__name__", type(value.func).__name__)
        yield f"the arguments of partial({name})", (value.args, value.keywords)
    elif not isinstance(value, MethodType | ModuleType):
        owner = type(value)
        yield from (
            (f"{owner.__name__}.{name}", variable) for name, variable in _attributes(value).items()
        )
        if is_home(owner, home):
            yield from _of_class(owner)


def _of_modules(
    names: set[str], scope: Mapping[str, Any], home: set[str]
) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) for variables of the modules that a function's code uses."""
    # All variables of the user's modules; of libraries, those whose names occur in the code.
    for name in sorted(names):
        module = scope.get(name, sys.modules.get(name))
        if not isinstance(module, ModuleType) or vars(module) is scope:
            continue
        if module.__name__.partition(".")[0] in _REGISTRIES:
            continue
        there = vars(module)
        keys = there.keys() if comes_from(module.__name__, home) else names & there.keys()
        for key in sorted(key for key in keys if not key.startswith("__")):
            is_kept = not (_is_code(there[key]) or callable(there[key]))
            if is_kept and there[key] is not os.environ:  # `Sampler` compares os.environ
                yield f"{name}.{key}", there[key]


def _of_class(value: type) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) for variables of a class, except methods, properties and slots."""
    for name, variable in vars(value).items():
        if not (name.startswith("__") or hasattr(type(variable), "__get__") or _is_code(variable)):
            yield f"{value.__name__}.{name}", variable


def _behind(value: Any) -> Iterator[Any]:
    """Yield the functions and objects that a callable uses when it is called."""
    if isinstance(value, MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, partial):
        yield value.func
    elif isinstance(value, FunctionType):
        yield getattr(value, "__wrapped__", None)
    else:
        for member in vars(value if isinstance(value, type) else type(value)).values():
            function = getattr(member, "__func__", member)
            if isinstance(function, FunctionType):
                yield function


def _is_code(value: Any) -> bool:
    return isinstance(value, FunctionType | MethodType | partial | type)


def _attributes(value: Any) -> Mapping[str, Any]:
    """Return {name: value} for the attributes of an object, including attributes in slots."""
    attributes = getattr(value, "__dict__", None)
    held = {name: getattr(value, name) for name in slots_of(type(value)) if hasattr(value, name)}
    return {**held, **attributes} if isinstance(attributes, Mapping) else held


def _digest(value: Any) -> bytes:
    """Return the digest of a value; b"" if the user's code raises an exception."""
    try:
        return _digested(value)
    except Exception:  # noqa: BLE001  # the user's classes may raise any exception
        return b""


def _digested(value: Any) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    entries: deque[tuple[Any, int]] = deque([(value, 0)])
    visited = dict[int, Any]()
    while entries and len(visited) < _MAX_OBJECTS:
        entry, depth = entries.popleft()
        if not isinstance(entry, _PLAIN) and _is_left_out(entry):
            continue
        digest.update(_mark(entry))
        if depth < _MAX_DEPTH and id(entry) not in visited and not isinstance(entry, _PLAIN):
            visited[id(entry)] = entry
            entries.extend((part, depth + 1) for part in _parts(entry))
    return digest.digest()


def _mark(value: Any) -> bytes:
    """Return bytes that identify a value, apart from the objects inside it."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.ravel()[: _MAX_BYTES // max(1, value.itemsize)].tobytes()
    if isinstance(value, int) and not isinstance(value, bool):
        return f"int:{value:x};".encode()  # int -> str raises for long numbers; hex does not
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__}:{value!r};".encode(errors="backslashreplace")
    if callable(getattr(value, "cache_info", None)):  # functools.cache: hits, misses, size
        return f"{value.cache_info()};".encode()
    if isinstance(value, count):
        return f"{value!r};".encode()
    if isinstance(value, GeneratorType):  # its present instruction; -1 after its end
        return f"generator:{-1 if value.gi_frame is None else value.gi_frame.f_lasti};".encode()
    with suppress(TypeError):  # raised for values without a buffer (bytearray, array, mmap)
        return bytes(memoryview(value).cast("B")[:_MAX_BYTES])
    size = len(value) if isinstance(value, Sequence | Mapping | set | frozenset) else 0
    return f"{type(value).__name__}:{size};".encode()


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from (part for pair in list(value.items()) for part in pair)
    elif isinstance(value, list | tuple | deque):
        yield from value
    elif isinstance(value, ContextVar):
        yield value.get(None)
    elif isinstance(value, GeneratorType):
        yield from () if value.gi_frame is None else list(value.gi_frame.f_locals.values())
    # Libraries loaded with ctypes are left out of the digest of a variable, which shows whether
    # calls change the variable. The first use of a C function adds an attribute to its library:
    # this would change the digest, but not the outputs.
    elif not (isinstance(value, ModuleType | CDLL) or is_generator(value) or _is_code(value)):
        yield from _attributes(value).values()


_WRITES = os.O_WRONLY | os.O_RDWR
# Folder of devices. Several processes may write to a device without disturbing each other, so paths
# of devices are not collected.
_DEVICES = "/dev/"


class Written:
    """A context that collects the paths of files that Python code opens for writing, in any thread.
    Left out are devices, and files that are certainly new (opened with O_EXCL, as by mode "x")."""

    _listening: Written | None = None
    _is_hooked = False

    def __init__(self) -> None:
        self.files: set[str] = set()

    def __enter__(self) -> Written:
        if not Written._is_hooked:  # Python cannot remove a hook
            sys.addaudithook(_on_event)
            Written._is_hooked = True
        Written._listening = self
        return self

    def __exit__(self, *_: object) -> None:
        Written._listening = None


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    """Collect the path of a file that is opened for writing."""
    # An exception here would reach the code that opens the file, so none may be raised.
    listening = Written._listening
    if listening is None or event != "open" or len(arguments) != 3:
        return
    path, _, flags = arguments
    is_named = isinstance(path, (str, bytes)) and isinstance(flags, int)
    if not is_named or not flags & _WRITES or flags & os.O_EXCL:
        return
    name = os.fsdecode(path)
    # Python opens an unnamed temporary file by the path of its folder, so folders are skipped.
    is_folder = os.path.isdir(name)  # noqa: PTH112  # never raises, unlike Path.is_dir
    if not is_folder and not name.startswith(_DEVICES):
        listening.files.add(name)
