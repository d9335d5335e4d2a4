"""Whether a mechanism is used up by its calls: after some of them, all further ones raise.

An object with a privacy budget is. Its exceptions say how often it was called, nothing about d1 and
d2, and other checks blame what they see of that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dpaudit.adapters.calls import names_after_dataset
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.outcomes import Raised
from dpaudit.sampling.sampler import Sampler
from dpaudit.sampling.state import changed, kept_state
from dpaudit.targets.construction import is_made
from dpaudit.targets.parameters import Calling
from dpaudit.targets.target import AnyTarget, ImportedTarget, IsolatedTarget
from dpaudit.wording import counted, shown

# Calls after the first exception that must raise, too; seconds that all calls may take.
_MORE, _SECONDS = 100, 2.0
# Calls of each input that are made at a time, at most.
_AT_ONCE = 2_048
# Variables that are named.
_NAMED = 3


def exhausted(
    make: Callable[[], Sampler], target: AnyTarget, pair: NeighbouringPair, most: int
) -> str | None:
    """Return how a new mechanism is used up, and what to do about it; None if it is not.

    most: calls after which an exception is not looked for any more.
    """
    deadline = time.monotonic() + _SECONDS
    # Twice, by two seeds: exceptions of chance do not begin after the same call.
    found = [_used_up(make, pair, most, deadline, seed) for seed in range(2)]
    one, other = found
    if one is None or other is None or one.calls != other.calls:
        return None
    listed = ", ".join(one.names[:_NAMED]) + (", …" if len(one.names) > _NAMED else "")
    kept = f"calls change {listed}, so" if listed else "it keeps state, so"
    return (
        f"the mechanism is used up: after {counted(one.calls, 'call')} of a new one, every further "
        f"call raises {one.words}; {kept} that draws are not independent; audit a function that "
        f"makes a new object for each draw{_example(target, one.how, one.function)}"
    )


class _UsedUp(NamedTuple):
    """calls: that raised nothing, before all others do.  words: the first exception.  names: of
    variables that calls change.  how, function: of the mechanism, where it has them."""

    calls: int
    words: str
    names: tuple[str, ...]
    how: Calling | None
    function: Any


def _used_up(
    make: Callable[[], Sampler], pair: NeighbouringPair, most: int, deadline: float, seed: int
) -> _UsedUp | None:
    sampler, rng = make(), np.random.default_rng(seed)
    raised: list[Raised | None] = []
    try:
        before = kept_state(*sampler.mechanism.parts)
        while time.monotonic() < deadline and len(raised) < most + _MORE:
            # Twice as many each time, so that slow calls do not go on far beyond the deadline.
            inputs = [pair.d1, pair.d2] * min(max(1, len(raised) // 2), _AT_ONCE)
            outputs = sampler.mechanism.sample_each(inputs, rng)
            raised += [one if isinstance(one, Raised) else None for one in outputs]
            calls = next((place for place, one in enumerate(raised) if one is not None), most)
            if calls + _MORE <= len(raised):
                break
        else:
            return None
        first = raised[calls]
        if first is None or calls == 0 or not all(raised[calls : calls + _MORE]):
            return None
        names = changed(before, kept_state(*sampler.mechanism.parts))
        how, function = (getattr(sampler.mechanism, name, None) for name in ("how", "function"))
        return _UsedUp(calls, first.words, names, how, function)
    finally:
        sampler.close()


def _example(target: AnyTarget, how: Calling | None, function: Any) -> str:
    """Return such a function for an object that is made from arguments.

    how: to call the method; None if unknown.  function: the method, if it is in this process.
    """
    is_here = isinstance(target, ImportedTarget)
    if isinstance(target, IsolatedTarget):
        target = target.target
    if not isinstance(target, ImportedTarget) or how is None:
        return ""
    if not (target.init is not None or target.factory or (is_here and is_made(target))):
        return ""
    init = target.init or ()
    if isinstance(init, dict):
        made_from = ", ".join(f"{key}={shown(value, 40)}" for key, value in init.items())
    else:
        made_from = ", ".join(shown(value, 40) for value in init)
    called = f"{target.path.rpartition(':')[2]}({made_from}){f'.{target.call}' * bool(target.call)}"
    data = how.data or "data"
    names = [*target.params, *filter(None, [how.rng])]
    after = [] if function is None else names_after_dataset(function)[: len(names)]
    is_by_position = how.data is None and set(after) == set(names)
    given = after if is_by_position else [f"{name}={name}" for name in names]
    given = [data if how.data is None else f"{data}={data}", *given]
    if how.alone is not None:
        given.append(f"{how.alone}=1")
    returned = f"{called}({', '.join(given)}){'' if how.alone is None else '[0]'}"
    parameters = ", ".join([data, *(after if is_by_position else names)])
    return f": def {target.call or 'draw'}({parameters}): return {returned}"
