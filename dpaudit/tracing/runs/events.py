"""What a run does with its noise, as it is written down; and what ends a run that does too much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .places import Spot
    from .values import Noise

    # What happens, where, and how often it has happened there before.
    Moment = tuple[str, Spot, int]
    # A moment, and the entry of an array.
    Entry = tuple[Moment, int]

# Laws of noise that is not understood, and of what is drawn inside a library, with the data that it
# hides.
UNKNOWN, OPAQUE = "unknown", "opaque"


class TooLong(BaseException):
    """The run does more than a trace can follow, or takes longer than it may."""


class Draw:
    """One call of a primitive.

    primitive: how a reader calls it.  law: of its noise.  scale: of the law, or None.  parameters:
    what it was asked for, by name.  values: without what they were asked to lie around.  first:
    the number of its first piece of noise.  outcomes: of one that has few, each with its
    probability.  callers: the spots that it was called from, the next one first.
    """

    __slots__ = (
        "callers",
        "first",
        "law",
        "moment",
        "outcomes",
        "parameters",
        "primitive",
        "scale",
        "values",
    )  # fmt: skip

    def __init__(
        self,
        moment: Moment,
        primitive: str,
        law: str,
        scale: Any,
        parameters: Mapping[str, Any],
        values: Any,
        first: int,
        outcomes: Sequence[tuple[Any, float]] | None,
    ) -> None:
        self.moment, self.primitive, self.law, self.scale = moment, primitive, law, scale
        self.parameters, self.values, self.first = parameters, values, first
        self.outcomes = outcomes
        self.callers: tuple[Spot, ...] = ()

    @property
    def size(self) -> int:
        return int(np.size(self.values)) if isinstance(self.values, np.ndarray) else 1


class Use:
    """Noise that is added to something, or compared with it.

    ids: of the pieces of noise.  factor: what they were multiplied by.  operand: what they hide.
    value: what came of it.  previous: the use that this one goes on with.  callers: as of a draw.
    """

    __slots__ = ("callers", "factor", "ids", "kind", "moment", "operand", "previous", "value")

    def __init__(self, moment: Moment, noise: Noise, value: Any, kind: str) -> None:
        self.moment, self.ids, self.factor = moment, noise.ids, noise.factor
        self.callers: tuple[Spot, ...] = ()
        self.operand, self.previous, self.value, self.kind = (
            noise.operand,
            noise.use,
            value,
            kind,
        )


class Choice:
    """A uniform number that is compared with a probability: a coin, or an array of them.

    probability: of True.  values: what came of it.  cut: which part of the range lies below what
    the number is compared with.  is_below: whether the number lies there where it is True.
    """

    __slots__ = ("callers", "cut", "ids", "is_below", "moment", "probability", "values")

    def __init__(
        self, moment: Moment, probability: Any, values: Any, ids: Any, cut: Any, is_below: bool
    ) -> None:
        self.moment, self.probability, self.values, self.ids = moment, probability, values, ids
        self.cut, self.is_below = cut, is_below
        self.callers: tuple[Spot, ...] = ()
