"""The records of a run (draws, uses of noise, coins), and how a second run repeats them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from .values import SINGLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .places import Spot
    from .values import Noise

    # What happens, its spot, and how often it happened there before.
    Moment = tuple[str, Spot, int]
    # A moment, and the entry of an array.
    Entry = tuple[Moment, int]

    from .places import Spot

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


_MISSING = object()


class Repetition:
    """Replaces values of a run by those of a first run, its reference.

    before: the records of the reference, by moment.  overrides: outcomes of single draws, by moment
    and entry.  alignment: as in a `Coupler`.
    """

    def __init__(
        self,
        before: Mapping[Moment, Any],
        overrides: Mapping[Entry, Any] | None = None,
        alignment: Mapping[tuple[str, Spot], Sequence[int | None]] | None = None,
    ) -> None:
        self._before, self._overrides = before, overrides or {}
        self._alignment = alignment or {}
        # Pieces of noise that differ from the reference: values with them are not repeated.
        self._freed: set[int] = set()
        # The same pieces in the reference.
        self._replaced: set[int] = set()

    def noise(self, moment: Moment, values: Any, first: int) -> Any:
        """Return the noise to use instead of drawn values. first: the number of its first piece."""
        values = self._again(moment, values)
        if self._overrides:
            values = self._overridden(moment, values)
            for place in (0,) if isinstance(values, SINGLE) else range(int(np.size(values))):
                if (moment, place) in self._overrides:
                    self._freed.add(first + place)
                    before = self._before.get(moment)
                    if isinstance(before, Draw):
                        self._replaced.add(before.first + place)
        return values

    def outcome(self, moment: Moment, values: Any, ids: Any = ()) -> Any:
        """Return the outcome of a coin or choice: an override, else the outcome in the reference,
        else its own. ids: pieces of noise that decide it."""
        if not self._is_free(self._before.get(moment), ids):
            values = self._again(moment, values)
        return self._overridden(moment, values) if self._overrides else values

    def noised(self, moment: Moment, noise: Noise, natural: Any) -> Any:
        """Return a noised value: that of the reference, or its own (`natural`) if there is none."""
        kind, spot, number = moment
        if (kind, spot) in self._alignment:
            places = self._alignment[kind, spot]
            other = places[number] if number < len(places) else None
            if other is None:
                return natural
            moment = kind, spot, other
        before = self._before.get(moment)
        if not isinstance(before, Use):
            return natural
        is_aligned = (kind, spot) in self._alignment  # else the turns of both runs are alike
        if self._is_free(None if is_aligned else before, noise.ids):
            return natural
        if np.shape(before.value) == np.shape(natural):
            return _like(before.value, natural)
        if np.ndim(before.value) == np.ndim(natural) == 1:
            values = np.array(natural, copy=True)
            places = aligned(np.ravel(before.operand).tolist(), np.ravel(noise.operand).tolist())
            for place, other in enumerate(places):
                if other is not None:
                    values[place] = before.value[other]
            return values
        return natural

    def _is_free(self, before: Any, ids: Any) -> bool:
        """Return whether some noise differs from the reference. before: the record of the reference
        at this moment, or None."""
        if not self._freed:
            return False
        known = np.ravel(getattr(before, "ids", ())).tolist()
        is_other = not self._freed.isdisjoint(np.ravel(ids).tolist())
        return is_other or not self._replaced.isdisjoint(known)

    def opaque(self, moment: Moment, value: Any, *, is_whole: bool) -> Any:
        """Return the output of a library function that hides its data: that of the reference, if it
        is a plain value, or of any kind (`is_whole`)."""
        before = self._before.get(moment)
        if isinstance(before, Draw) and before.law == OPAQUE:
            if is_whole:
                return before.values
            if _is_plain(value) and _is_plain(before.values):
                return copy.deepcopy(before.values)
        return value

    def _again(self, moment: Moment, values: Any) -> Any:
        """Return the values of the reference, and own values where it has fewer."""
        before = self._before.get(moment)
        if not isinstance(before, (Draw, Choice)) or before.values is None:
            return values
        if type(values) is type(before.values) is float:  # there may be very many
            return before.values
        if isinstance(values, SINGLE) and isinstance(before.values, SINGLE):
            return _like(before.values, values)
        if np.shape(before.values) == np.shape(values):
            return _like(before.values, values)
        if np.ndim(before.values) == np.ndim(values) == 1:
            many = min(len(before.values), len(values))
            return np.concatenate([before.values[:many], values[many:]])
        return values

    def _overridden(self, moment: Moment, values: Any) -> Any:
        if isinstance(values, SINGLE):
            value = self._overrides.get((moment, 0), _MISSING)
            return values if value is _MISSING else _like(value, values)
        for place in range(int(np.size(values))):
            if (moment, place) in self._overrides:
                value = self._overrides[moment, place]
                if np.ndim(values) == 0:
                    return _like(value, values)
                values = np.array(values, copy=True)
                values.flat[place] = value
        return values


def _like(value: Any, natural: Any) -> Any:
    """Return a value converted to the type of another one."""
    if isinstance(natural, np.ndarray):
        return np.array(value, copy=True)
    if isinstance(natural, (np.generic, bool, int, float)):
        is_float = isinstance(value, (float, np.floating)) and not float(value).is_integer()
        is_cut = is_float and isinstance(natural, (int, np.integer))
        return value if is_cut else type(natural)(value)
    return value


def _is_plain(value: Any) -> bool:
    """Return whether a value is a number, a text, or a collection of these, so that it holds no
    reference to data."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, np.ndarray):
        return not value.dtype.hasobject
    return value is None or isinstance(value, (bool, int, float, str, bytes, np.generic))


def aligned(first: Sequence[Any], second: Sequence[Any]) -> list[int | None]:
    """Return for each entry of the second list the place of its counterpart in the first, or None.
    Equal entries are matched first, then the entries between them in order."""
    import difflib

    found: list[int | None] = [None] * len(second)
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    for kind, a, a_end, b, b_end in matcher.get_opcodes():
        if kind in ("equal", "replace"):
            for step in range(min(a_end - a, b_end - b)):
                found[b + step] = a + step
    return found
