"""Random generators: find all generators that a mechanism may use, and seed each for every chunk
(docs/method.md §11).

Before the draws of a chunk, `chunk_streams` also re-seeds generators that are not passed to the
mechanism: the global generators of `random`, `numpy.random` and torch, and those in attributes,
closures and module globals. Otherwise copies of a mechanism in several processes would draw equal
noise. `preserved` restores these generators after the draws.
"""

from __future__ import annotations

import random
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import torch_use

# Random generators of NumPy and of `random`. Generators of torch are accepted, too. They are not
# named here, since torch would have to be imported.
RandomSource = np.random.Generator | np.random.RandomState | random.Random


def is_generator(value: Any) -> bool:
    return isinstance(value, (RandomSource, *torch_use.generator_types()))


@dataclass(frozen=True, slots=True)
class ChunkStreams:
    """Random streams of one chunk: one for the coins that choose d1 or d2 for each draw, and one
    for the mechanism's parameter `rng`, if it has one."""

    coins: np.random.Generator
    mechanism: np.random.Generator


def chunk_streams(seed: int, key: Sequence[int], carried: Sequence[RandomSource]) -> ChunkStreams:
    """Return the random streams of a chunk. Re-seed the global generators and those in `carried`,
    each with another seed.

    seed: seed of the audit.
    carried: generators that the mechanism holds, from `carried_generators`.
    """
    coins, mechanism, for_globals = (
        np.random.SeedSequence(seed, spawn_key=(*key, purpose)) for purpose in range(3)
    )
    reseed_globals(for_globals)
    if carried:
        reseed(carried, np.random.SeedSequence(seed, spawn_key=(*key, 3)))
    return ChunkStreams(np.random.default_rng(coins), np.random.default_rng(mechanism))


def reseed(generators: Sequence[RandomSource], seeds: np.random.SeedSequence) -> None:
    """Re-seed each generator in place. Each gets a different child of `seeds`."""
    for generator, child in zip(generators, seeds.spawn(len(generators)), strict=True):
        if isinstance(generator, np.random.Generator):
            bits = generator.bit_generator
            bits.state = type(bits)(child).state
        elif isinstance(generator, np.random.RandomState):
            generator.seed(child.generate_state(8))
        elif isinstance(generator, random.Random):
            generator.seed(_integer(child.generate_state(8)))
        else:
            torch_use.seed(generator, _integer(child.generate_state(8)))


def reseed_globals(seeds: np.random.SeedSequence) -> None:
    """Re-seed the global generators of `random`, of `numpy.random` and, if loaded, of torch."""
    words = seeds.generate_state(24)
    random.seed(_integer(words[:8]))
    np.random.seed(words[8:16])
    torch_use.seed_globally(_integer(words[16:]))


@contextmanager
def preserved(generators: Sequence[RandomSource] = ()) -> Iterator[None]:
    """Restore the state of the global generators and of `generators` after the context."""
    with ExitStack() as stack:
        stack.callback(random.setstate, random.getstate())
        stack.callback(np.random.set_state, np.random.get_state())
        stack.callback(torch_use.global_restorer())
        for generator in generators:
            stack.callback(restorer(generator))
        yield


def restorer(generator: RandomSource) -> Callable[[], None]:
    """Return a function that resets a generator to its present state."""
    if isinstance(generator, np.random.Generator):
        bits = generator.bit_generator
        return partial(setattr, bits, "state", bits.state)
    if isinstance(generator, np.random.RandomState):
        return partial(generator.set_state, generator.get_state(legacy=False))
    if isinstance(generator, random.Random):
        return partial(generator.setstate, generator.getstate())
    return partial(generator.set_state, generator.get_state())


def _integer(words: NDArray[np.unsignedinteger]) -> int:
    return int.from_bytes(words.tobytes(), "little")


# Limits of the search for generators that a mechanism holds.
# DEPTH: largest number of levels of attributes, list entries and dict values that are searched.
# LIMIT: largest number of objects that are searched, those near the mechanism first. Without it,
#     the search could go through most of a large library.
DEPTH, LIMIT = 4, 20_000


def carried_generators(*parts: Any) -> tuple[RandomSource, ...]:
    """Return the random generators to which the parts of a mechanism refer, each generator once.

    The search covers attributes of a method's object (up to `DEPTH` levels deep), closures, default
    arguments, arguments of functools.partial, and module globals that the code uses. Functions of
    the user's own package are searched, too, if the code calls them. Left out are global
    generators, and sources that cannot be seeded, such as `random.SystemRandom`. The order of the
    result is the same in every process, except for generators in sets.
    """
    home = set().union(*map(home_of, parts))
    # Ids of the global generators. The result leaves them out, since `reseed_globals` seeds them.
    shared = {id(getattr(random.seed, "__self__", None)), id(np.random.mtrand._rand)}
    shared.add(id(getattr(sys.modules.get("torch"), "default_generator", None)))
    carried: list[RandomSource] = []
    queue = deque((part, 0) for part in parts)
    # Maps the id of an object to the object. This keeps the object alive, so that no later object
    # gets its id.
    visited = dict[int, Any]()
    while queue and len(visited) < LIMIT:
        value, depth = queue.popleft()
        if depth > DEPTH or id(value) in visited or isinstance(value, _LEAVES):
            continue
        visited[id(value)] = value
        if id(value) in shared:
            continue
        if is_generator(value) and _takes_seeds(value):
            carried.append(value)
            continue
        # `DEPTH` limits only how deeply attributes and containers are nested. So the functions that
        # the code of `value` calls get depth 0 again.
        queue.extend((part, 0) for part in _code(value, home))
        queue.extend((part, depth + 1) for part in _data(value))
        if isinstance(value, MethodType | BuiltinFunctionType):
            queue.append((value.__self__, depth))
    return tuple(carried)


def _takes_seeds(generator: RandomSource) -> bool:
    """Return whether a generator can be seeded and reset. Its state does not change."""
    try:
        restore = restorer(generator)
        reseed([generator], np.random.SeedSequence(0))
        restore()
    except Exception:  # noqa: BLE001  # a subclass may raise any exception
        return False
    return True


def _code(value: Any, home: set[str]) -> Iterator[Any]:
    """Yield the functions and objects that a value may call or use when it draws."""
    if isinstance(value, FunctionType):
        yield from _held(value)
        yield from _named(value, home)
    elif isinstance(value, MethodType):
        yield value.__func__
    elif isinstance(value, partial):
        yield value.func
    elif not isinstance(value, ModuleType):
        # A method may draw by calling another method, so all methods and class attributes are
        # yielded.
        for base in (value if isinstance(value, type) else type(value)).__mro__:
            if is_home(base, home):
                for member in list(vars(base).values()):
                    yield getattr(member, "__func__", member)


def _named(function: FunctionType, home: set[str]) -> Iterator[Any]:
    """Yield the values of the user's global variables whose names occur in a function's code."""
    names = set(code_names(function.__code__))
    scopes = [function.__globals__]
    for name in sorted(names & function.__globals__.keys()):
        value = function.__globals__[name]
        if isinstance(value, ModuleType) and comes_from(value.__name__, home):
            scopes.append(vars(value))
    for scope in scopes:
        for value in (scope[name] for name in sorted(names & scope.keys())):
            is_code = isinstance(value, FunctionType | type)
            if is_home(value, home) if is_code else not isinstance(value, ModuleType):
                yield value


_CODE = (ModuleType, FunctionType, MethodType, BuiltinFunctionType, type)
# Entries of `__slots__` that hold no data. They are skipped: reading `__weakref__` raises TypeError
# for arrays of JAX.
_NO_DATA = ("__weakref__", "__dict__")
_LEAVES = (int, float, complex, str, bytes, bool, type(None), np.ndarray, np.generic, CodeType)


def home_of(start: Any) -> set[str]:
    """Return the user's own code: the top-level packages and the folders in which a callable is
    defined. All other code counts as a library."""
    while isinstance(start, partial):
        start = start.func
    owner = getattr(start, "__self__", start)
    modules = {_module_of(value) for value in (start, type(owner))}
    packages = {module.partition(".")[0] for module in modules}
    return (packages | {_folder(module) for module in modules}) - {"", "builtins", "numpy"}


def is_home(value: Any, home: set[str]) -> bool:
    """Return whether a value is defined in the user's own code, `home`, the result of `home_of`."""
    return comes_from(_module_of(value), home)


def _module_of(value: Any) -> str:
    """Return the name of the module that defines a value; "" if it has none."""
    # `__module__` may be something other than a text: classes of numba have a slot of this name.
    name = getattr(value, "__module__", None)
    return name if isinstance(name, str) else ""


def comes_from(module: str, home: set[str]) -> bool:
    """Return whether a module belongs to the user's own code, `home`, the result of `home_of`."""
    return module.partition(".")[0] in home or _folder(module) in home


def _folder(module: str) -> str:
    file = getattr(sys.modules.get(module), "__file__", None)
    return str(Path(file).parent) if file else ""


def code_names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_names(constant)


def _held(function: FunctionType) -> Iterator[Any]:
    """Yield a function's default arguments, closure variables and wrapped function."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # a variable that has not been assigned yet
            yield cell.cell_contents
    yield getattr(function, "__wrapped__", None)


def _data(value: Any) -> Iterator[Any]:
    if isinstance(value, partial):
        yield from (*value.args, *value.keywords.values())
    elif isinstance(value, Mapping):
        yield from list(value.values())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    elif not isinstance(value, _CODE):
        attributes = getattr(value, "__dict__", None)
        # `__dict__` is read only if it is a mapping: a proxy object, such as llvmlite's, may return
        # another proxy for any attribute, even for `__dict__`.
        yield from list(attributes.values()) if isinstance(attributes, Mapping) else ()
        yield from (getattr(value, name, None) for name in slots_of(type(value)))


def slots_of(kind: type) -> Iterator[str]:
    """Yield the attribute names in `__slots__` of a class and of its base classes."""
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name in _NO_DATA:
                continue
            # Python stores the private slot `__x` of a class C as the attribute `_C__x`.
            is_private = name.startswith("__") and not name.endswith("__")
            yield f"_{base.__name__.lstrip('_')}{name}" if is_private else name
