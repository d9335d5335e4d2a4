"""The records of a run: draws, uses of noise, coins; and the exception that ends a long run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .places import Spot
    from .values import Noise

    # What happens, its spot, and how often it happened there before.
    Moment = tuple[str, Spot, int]
    # A moment, and the entry of an array.
    Entry = tuple[Moment, int]

# Laws of noise that is not understood, and of noise that a library draws and adds out of sight.
UNKNOWN, OPAQUE = "unknown", "opaque"


class TooLong(BaseException):
    """Ends a run that draws too much noise, or that takes too long."""


class Draw:
    """One call of a primitive.

    primitive: its name for a reader.  law, scale: of the noise; scale may be None.  parameters:
    arguments by name.  values: what was drawn, less the location.  first: the number of its first
    piece.  outcomes: of a discrete law, with their probabilities.  callers: spots, innermost first.
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
    """Noise that is added to an operand, or compared with it: factor × noise + operand.

    ids: numbers of the pieces.  operand: what they hide.  value: the result.  previous: the number
    of an earlier use of the same value.  callers: as of a draw.
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
    """A coin, or an array of coins: uniform numbers that are compared with thresholds.

    probability: of True.  values: the outcomes.  cut: the share of the range below the threshold.
    is_below: whether the outcome is True for numbers below the threshold.
    """

    __slots__ = ("callers", "cut", "ids", "is_below", "moment", "probability", "values")

    def __init__(
        self, moment: Moment, probability: Any, values: Any, ids: Any, cut: Any, is_below: bool
    ) -> None:
        self.moment, self.probability, self.values, self.ids = moment, probability, values, ids
        self.cut, self.is_below = cut, is_below
        self.callers: tuple[Spot, ...] = ()
