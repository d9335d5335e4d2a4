"""Replace primitives during a run by functions that record their draws, one module per library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..noisy_numbers import bare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..noise_log import Recorder


class Replacement(NamedTuple):
    """A new value for an attribute of a module or class during a run."""

    owner: Any
    name: str
    value: Any


class Replacements(NamedTuple):
    """New values, by name, for attributes of one module or class during a run."""

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
    """Return a replacement of the method `real`. It calls `real`, with arguments without noise, and
    does not record the draws inside. It returns `record(result, self, *arguments)`."""

    def call(self: Any, *args: Any, **named: Any) -> Any:
        args, named = bare(args), {key: bare(value) for key, value in named.items()}
        if recorder.is_inside:
            return real(self, *args, **named)
        return record(recorder.real(real, self, *args, **named), self, *args, **named)

    return call


def chosen(
    recorder: Recorder, label: str, outcomes: Sequence[Any], law: Sequence[float], result: Any
) -> Any:
    """Record that a mechanism of a library chose one of a few outcomes, and return the outcome. A
    second run gets the outcome of the first run. `label` names the mechanism in reports; `law` has
    the probabilities of the outcomes."""
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
    """Return (integer, probability) for each integer from `low` to `high` - 1, all equally likely.
    Return None if there are more than 64."""
    count = int(high) - int(low)
    return (
        [(int(low) + step, 1 / count) for step in range(count)]
        if 0 < count <= MAX_LISTED_OUTCOMES
        else None
    )


def as_coin(things: Any, law: Any) -> list[tuple[Any, float]] | None:
    """Return [(0, probability of False), (1, probability of True)] for a random pick from a list of
    Booleans, `things`. Return None for another list. `law` has the probability of each item."""
    if not len(things) or not all(isinstance(thing, (bool, np.bool_)) for thing in things):
        return None
    true = float(sum(p for thing, p in zip(things, law) if thing))
    return [(0, 1 - true), (1, true)]
