"""The parts of the learner that an ablation removes, and a record of the parts that a run uses.

A removal replaces a scorer, a smoother, a special case or a tuned constant by nothing, or by the
simplest thing that works. `removed` runs without some parts. `noticing` returns the removals that
could change what runs inside: a removal that is not among them gives the same result, and need not
be measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from importlib import import_module
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks import scorers
from dpaudit.attacks.single_columns import one_dimensional
from dpaudit.levels import tuning
from dpaudit.levels.piecewise_logit import Smoothed

FloatArray = NDArray[np.float64]

# Where things are. A module that moves is changed here alone.
LEARNING = "dpaudit.attacks.learning"
OBJECTIVE = "dpaudit.attacks.objective"
RULES = "dpaudit.attacks.rules"
ADDITIVE = "dpaudit.attacks.additive"
COLUMNS = "dpaudit.attacks.single_columns"
OUTPUTS = "dpaudit.attacks.single_outputs"
BLOCKS = "dpaudit.attacks.blocks"
CANDIDATES = "dpaudit.levels.candidates"
TUNING = "dpaudit.levels.tuning"
LISTS_OF_SCORERS = (
    "dpaudit.attacks.scorers:SCORERS",
    "dpaudit.attacks.learning:_OF_ONE_COLUMN",
)
# Values that are no functions, and the one function that reads each.
READER = {f"{BLOCKS}:SCORING": f"{BLOCKS}:fits", f"{COLUMNS}:_WINDOW_WIDTHS": f"{COLUMNS}:_fits"}
# Cached functions that read a tuned constant.
UNCACHED = ("dpaudit.levels.cells:_quantiles",)


@dataclass(frozen=True, slots=True)
class Without:
    """Replaces a tuple of functions by one without those of these names."""

    names: tuple[str, ...]

    def __call__(self, functions: tuple[Callable[..., Any], ...]) -> tuple[Any, ...]:
        return tuple(one for one in functions if one.__name__ not in self.names)


@dataclass(frozen=True, slots=True)
class Constant:
    """Replaces whatever there was by a value."""

    value: Any

    def __call__(self, _: Any) -> Any:
        return self.value


# The parts: (place, what makes the replacement of what is there), by name of the removal.
Patches = tuple[tuple[str, Callable[[Any], Any]], ...]


def _scorer(*names: str) -> Patches:
    return tuple((place, Without(names)) for place in LISTS_OF_SCORERS)


def _set(place: str, value: Any) -> Patches:
    return ((place, Constant(value)),)


def _nothing(*_: Any, **__: Any) -> list[Any]:
    return []


def _none(*_: Any, **__: Any) -> None:
    return None


def _no(*_: Any, **__: Any) -> bool:
    return False


def _as_floats(counts: NDArray[np.integer]) -> FloatArray:
    return counts.astype(np.float64)


def _plain_share(counts: NDArray[np.integer], arms: NDArray[np.integer]) -> FloatArray:
    """Return the share of d1 in each cell, with one draw of prior weight for each input."""
    even = (arms[0] + 1) / (arms.sum() + 2)
    return np.asarray((counts[:, 0] + 2 * even) / (counts.sum(axis=1) + 2))


def _unsharpened(candidate: Any, *_: Any, **__: Any) -> Any:
    return candidate


def _raw_counts(counts: Any, *_: Any, **__: Any) -> Any:
    return Smoothed(
        np.asarray(counts, dtype=np.float64), follows_score=False, log_likelihood=-math.inf
    )


_SCORERS: tuple[Any, ...] = scorers.SCORERS
# Without `one_dimensional`, outcomes of one column would have no order but that of whole outputs.
SCORERS: dict[str, Patches] = {
    f"scorer {name}": _scorer(name)
    for name in (one.__name__ for one in _SCORERS if one is not one_dimensional)
} | {
    "scorer sequences, all": (
        *_scorer("prefixes", "banded"),
        (f"{BLOCKS}:SCORING", Without(("prefixes", "banded_sums"))),
    ),
}

SMOOTHERS: dict[str, Patches] = {
    "smoother isotonic, of thresholds": _set(f"{COLUMNS}:pooled_counts", _as_floats),
    "smoother isotonic, of columns in sums": _set(f"{ADDITIVE}:pooled_counts", _as_floats),
    "smoother piecewise fits of levels": _set(f"{CANDIDATES}:smoothed", _raw_counts),
    "smoother clusters of cells": _set(f"{CANDIDATES}:averaged", _plain_share),
    "smoother neighbours of cells": _set(f"{COLUMNS}:_WINDOW_WIDTHS", (0,)),
    "smoother predictions among sequences": _set(
        "dpaudit.attacks.sequences:sequence_predictor", _none
    ),
}

CASES: dict[str, Patches] = {
    "case few values": _set(f"{LEARNING}:_has_few_values", _no),
    "case both sides look alike": _set(f"{OBJECTIVE}:_look_alike", _no),
    "case cut-offs of piecewise fits": _set(f"{OBJECTIVE}:Objective._penalty_of_smoothed", _none),
    "case plainest rule": _set(f"{LEARNING}:plainest", _unsharpened),
    "case rare rule": _set(f"{RULES}:rare_rule", _none),
    "case rule of another kind": _set(f"{RULES}:_other_rule", _none),
    "case keeping half of the draws": _set("dpaudit.auditing.schedule:Plan.extend_buffer", _no),
}

# Tuned constants with a neutral value of each.
NEUTRAL: dict[str, float] = {
    "PENALTY": 0.0,
    "PENALTY_ANY_ORDER": 3.5,
    "PENALTY_WITHOUT_DELTA": 0.0,
    "PENALTY_SMOOTHED": 0.0,
    "PENALTY_ONE_FIT": 0.0,
    "PENALTY_SHRUNK": 0.5,  # that of one fit; the code divides by it
    "DEVIATIONS": 0.0,
    "DEVIATIONS_BEYOND_LUCK": 2.0,
    "MIN_COLUMN_DEVIATIONS": -math.inf,
    "FEW_CELLS": 0,
    "MANY_CELLS_FACTOR": 1.0,
    "NEARLY_EQUAL_SHARE": 1.0,
    "PRIOR_ODDS_OF_TAIL": 1.0,
    "MAX_OTHER_GUESSES": 1.0,
    "GAIN_OF_RAMP": 1.0,
    "GAIN_OF_CHOICE": 0.0,
    "COST_OF_PARAMETER": 0.0,
    "GAIN_OF_BLOCK": 0.0,
    "DRAWS_PER_CELL": 1,
    "SHARE_OF_TAILS": 0.0,
    "PRIOR_DRAWS": 0.0,
    "FALSE_DISCOVERY_RATE": 1.0,
    "MAX_COLUMN_SCALE": math.inf,
}


@cache
def removals() -> dict[str, Patches]:
    """Return all removals whose places exist: of a part that is gone there is none."""
    constants = {
        f"constant {name} = {value:g}": _set(f"{TUNING}:{name}", value)
        for name, value in NEUTRAL.items()
    }
    every = {**SCORERS, **SMOOTHERS, **CASES, **constants}
    return {
        name: patches
        for name, patches in every.items()
        if all(_exists(place) for place, _ in patches) and any(map(_changes, patches))
    }


def _resolved(place: str) -> tuple[Any, str]:
    module, _, path = place.partition(":")
    *parents, name = path.split(".")
    owner: Any = import_module(module)
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, name


def _exists(place: str) -> bool:
    try:
        owner, name = _resolved(place)
    except (ImportError, AttributeError):
        return False
    return hasattr(owner, name)


def _changes(patches: tuple[str, Callable[[Any], Any]]) -> bool:
    owner, name = _resolved(patches[0])
    old = getattr(owner, name)
    return bool(patches[1](old) != old)


@contextmanager
def removed(names: Sequence[str]) -> Iterator[None]:
    """Run without some parts."""
    every = removals()
    with ExitStack() as stack:
        for place in UNCACHED:
            owner, attribute = _resolved(place)
            plain = getattr(getattr(owner, attribute), "__wrapped__", getattr(owner, attribute))
            stack.enter_context(patch.object(owner, attribute, plain))
        for name in names:
            for place, made in every.get(name, ()):
                owner, attribute = _resolved(place)
                new = made(getattr(owner, attribute))
                stack.enter_context(patch.object(owner, attribute, new))
        yield


# What runs inside each `noticing`, the innermost last: names of removals that could change it.
_noticing: list[set[str]] = []


def notice(names: Iterable[str]) -> None:
    """Record that these removals could change what runs now."""
    for one in _noticing:
        one.update(names)


@contextmanager
def noticing() -> Iterator[set[str]]:
    """Return the set of removals that could change what runs inside, complete when it has run. The
    calls that are to be noticed are those inside `watched`."""
    used: set[str] = set(_unwatched())
    _noticing.append(used)
    try:
        yield used
    finally:
        _noticing.pop()


class _WatchedModule(ModuleType):
    """The table of tuned constants, which notices each constant that is read."""

    def __getattribute__(self, name: str) -> Any:
        if _noticing and name.isupper():
            notice(_by_place().get(f"{TUNING}:{name}", ()))
        return super().__getattribute__(name)


@contextmanager
def watched() -> Iterator[None]:
    """Let functions and constants that a removal replaces be noticed when they are used. Scorers
    are noticed by `notice_scorer`."""
    places = {READER.get(place, place) for place in _by_place()}
    with ExitStack() as stack:
        for place in sorted(places - set(LISTS_OF_SCORERS)):
            owner, name = _resolved(place)
            if owner is not tuning and callable(getattr(owner, name)):
                names = frozenset().union(
                    *(own for at, own in _by_place().items() if READER.get(at, at) == place)
                )
                stack.enter_context(
                    patch.object(owner, name, _recorder(getattr(owner, name), names))
                )
        tuning.__class__ = _WatchedModule
        stack.callback(setattr, tuning, "__class__", ModuleType)
        yield


def notice_scorer(name: str) -> None:
    """Record that a scorer of the list of scorers has returned candidates."""
    notice(
        removal
        for removal, patches in removals().items()
        for place, made in patches
        if place in LISTS_OF_SCORERS and isinstance(made, Without) and name in made.names
    )


def _recorder(function: Callable[..., Any], names: frozenset[str]) -> Callable[..., Any]:
    @wraps(function)
    def recorded(*args: Any, **options: Any) -> Any:
        notice(names)
        return function(*args, **options)

    return recorded


@cache
def _by_place() -> dict[str, frozenset[str]]:
    """Return the names of the removals that replace what is at each place."""
    places = {place for patches in removals().values() for place, _ in patches}
    return {
        place: frozenset(
            name for name, patches in removals().items() if place in {at for at, _ in patches}
        )
        for place in places
    }


@cache
def _unwatched() -> frozenset[str]:
    """Return the removals at places whose use is not noticed."""
    result: set[str] = set()
    for place, names in _by_place().items():
        owner, name = _resolved(READER.get(place, place))
        if (
            place not in LISTS_OF_SCORERS
            and owner is not tuning
            and not callable(getattr(owner, name))
        ):
            result |= names
    return frozenset(result)
