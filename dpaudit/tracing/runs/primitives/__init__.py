"""Replace the functions that draw noise. In each module, `replacements` yields the functions that
replace them during a run and record their draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..values import bare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..recording import Recorder


class Replacement(NamedTuple):
    """A new value for an attribute of a module or class during a run.

    owner: The module or class.
    name: The name of the attribute.
    value: The new value.
    """

    owner: Any
    name: str
    value: Any


class Replacements(NamedTuple):
    """New values for several attributes of one module or class during a run.

    owner: The module or class.
    values: Maps the name of each attribute to its new value.
    """

    owner: Any
    values: dict[str, Any]


def grouped(every: Iterable[Replacement]) -> list[Replacements]:
    """Return the new values of attributes, grouped by module or class. If an attribute occurs
    twice, its second value is in a later group, so that it is set later."""
    groups: list[Replacements] = []
    latest: dict[int, Replacements] = {}
    for owner, name, value in every:
        group = latest.get(id(owner))
        if group is None or name in group.values:
            group = latest[id(owner)] = Replacements(owner, {})
            groups.append(group)
        group.values[name] = value
    return groups


def recorded(recorder: Recorder, real: Callable[..., Any], record: Callable[..., Any]) -> Any:
    """Return a method that replaces the method `real`, which draws noise. The new method calls
    `real`, whose single draws are not recorded, and returns `record(result, self, *arguments)`. Any
    argument that remembers the noise in it is first replaced by an ordinary number."""

    def call(self: Any, *args: Any, **named: Any) -> Any:
        args, named = bare(args), {key: bare(value) for key, value in named.items()}
        if recorder.is_inside:
            return real(self, *args, **named)
        return record(recorder.real(real, self, *args, **named), self, *args, **named)

    return call


def chosen(
    recorder: Recorder, label: str, outcomes: Sequence[Any], law: Sequence[float], result: Any
) -> Any:
    """Record that a mechanism of a library chose one of a few outcomes, and return the outcome. In
    a second run, return the outcome of the first run.

    recorder: The recorder of the run.
    label: The name of the mechanism in reports.
    outcomes: The possible outcomes.
    law: The probability of each outcome.
    result: The outcome in this run.
    """
    index = next(
        (index for index, outcome in enumerate(outcomes) if outcome is result or outcome == result),
        0,
    )
    parameters, few = {"n": len(law), "p": list(law)}, list(enumerate(law))
    index = recorder.picked(label, "choice", index, parameters=parameters, outcomes=few)
    return outcomes[min(int(index), len(outcomes) - 1)]


# If a discrete distribution has at most this number of outcomes, a trace records the list of all
# outcomes with their probabilities. For a larger distribution, it records no such list.
MAX_LISTED_OUTCOMES = 64


def integers(low: Any, high: Any) -> list[tuple[int, float]] | None:
    """Return (integer, probability) for each of the equally likely integers from `low` to
    `high` - 1; None if there are more than 64."""
    count = int(high) - int(low)
    return (
        [(int(low) + step, 1 / count) for step in range(count)]
        if 0 < count <= MAX_LISTED_OUTCOMES
        else None
    )


def as_coin(things: Any, law: Any) -> list[tuple[Any, float]] | None:
    """Return [(0, probability of False), (1, probability of True)] for a random pick from a list of
    Booleans; None if the list has other items.

    things: The list.
    law: The probability of each item of the list.
    """
    if not len(things) or not all(isinstance(thing, (bool, np.bool_)) for thing in things):
        return None
    true = float(sum(p for thing, p in zip(things, law) if thing))
    return [(0, 1 - true), (1, true)]
