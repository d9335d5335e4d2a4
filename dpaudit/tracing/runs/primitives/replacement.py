"""What stands in for a primitive while a run is watched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..recording import Recorder


class Replacement(NamedTuple):
    """An attribute that is another one during a run.

    owner: a module or a class.  name: of the attribute.  value: what it is during a run.
    """

    owner: Any
    name: str
    value: Any


class Replacements(NamedTuple):
    """Attributes of one owner, by their names."""

    owner: Any
    values: dict[str, Any]


def grouped(every: Iterable[Replacement]) -> list[Replacements]:
    """Return replacements by their owners. One that is of the same attribute as another comes after
    it."""
    found: list[Replacements] = []
    latest: dict[int, Replacements] = {}
    for owner, name, value in every:
        group = latest.get(id(owner))
        if group is None or name in group.values:
            group = latest[id(owner)] = Replacements(owner, {})
            found.append(group)
        group.values[name] = value
    return found


def chosen(
    recorder: Recorder, label: str, outcomes: Sequence[Any], law: Sequence[float], result: Any
) -> Any:
    """Return what a mechanism with few outcomes gives: in a second run the same as in the first.

    law: their probabilities.  result: what it has drawn.
    """
    place = next((place for place, one in enumerate(outcomes) if one is result or one == result), 0)
    place = recorder.picked(
        label,
        "choice",
        place,
        parameters={"n": len(law), "p": list(law)},
        outcomes=list(enumerate(law)),
    )
    return outcomes[min(int(place), len(outcomes) - 1)]


def as_coin(things: Any, law: Any) -> list[tuple[Any, float]] | None:
    """Return the probabilities of False and True where things to pick from are nothing else: which
    of several equal ones is picked tells nothing. None for other things.

    law: the probability of each thing.
    """
    if not len(things) or not all(isinstance(one, (bool, np.bool_)) for one in things):
        return None
    true = float(sum(p for one, p in zip(things, law) if one))
    return [(0, 1 - true), (1, true)]
