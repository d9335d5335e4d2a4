"""Primitives: the functions that draw noise. During a run, functions that call the `Recorder`
replace them. The generator `replacements` of each module yields these replacements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..values import bare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..recording import Recorder


class Replacement(NamedTuple):
    """A new value that an attribute of a module or class (`owner`) has during a run."""

    owner: Any
    name: str
    value: Any


class Replacements(NamedTuple):
    """New values that attributes of one module or class (`owner`) have during a run. values: new
    value by name of the attribute."""

    owner: Any
    values: dict[str, Any]


def grouped(every: Iterable[Replacement]) -> list[Replacements]:
    """Return the new values of attributes, grouped by module or class. If an attribute has a second
    new value, it is put into a later group of the same owner."""
    found: list[Replacements] = []
    latest: dict[int, Replacements] = {}
    for owner, name, value in every:
        group = latest.get(id(owner))
        if group is None or name in group.values:
            group = latest[id(owner)] = Replacements(owner, {})
            found.append(group)
        group.values[name] = value
    return found


def recorded(recorder: Recorder, real: Callable[..., Any], record: Callable[..., Any]) -> Any:
    """Return a method that replaces the method `real`, which draws noise. It calls `real` with
    plain numbers while the recording of draws pauses, and returns `record(result, *arguments)`."""

    def call(self: Any, *args: Any, **named: Any) -> Any:
        args, named = bare(args), {key: bare(one) for key, one in named.items()}
        if recorder.is_inside:
            return real(self, *args, **named)
        return record(recorder.real(real, self, *args, **named), self, *args, **named)

    return call


def chosen(
    recorder: Recorder, label: str, outcomes: Sequence[Any], law: Sequence[float], result: Any
) -> Any:
    """Record the result of a mechanism with few outcomes, and return it. In a second run, return
    the result of the first run.

    label: name of the mechanism in reports.
    outcomes: possible results.
    law: probability of each outcome.
    """
    place = next((place for place, one in enumerate(outcomes) if one is result or one == result), 0)
    parameters, few = {"n": len(law), "p": list(law)}, list(enumerate(law))
    place = recorder.picked(label, "choice", place, parameters=parameters, outcomes=few)
    return outcomes[min(int(place), len(outcomes) - 1)]


def as_coin(things: Any, law: Any) -> list[tuple[Any, float]] | None:
    """Return [(0, probability of False), (1, probability of True)] for a random pick from items, if
    all items are Booleans; else None. law: probability of each item."""
    if not len(things) or not all(isinstance(one, (bool, np.bool_)) for one in things):
        return None
    true = float(sum(p for one, p in zip(things, law) if one))
    return [(0, 1 - true), (1, true)]
