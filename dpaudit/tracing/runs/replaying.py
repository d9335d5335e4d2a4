"""The records of a run (draws, uses of noise, coins), and their repetition in a second run."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .values import SINGLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .places import Spot
    from .values import Noise

    # The kind of event, its spot (instruction of the user's code), and the number of earlier events
    # of this kind there.
    Moment = tuple[str, Spot, int]
    # A moment, and the index in the array of values that is drawn or compared at this moment.
    Entry = tuple[Moment, int]

# Names of two laws: for noise whose distribution is unknown, and for noise that a library draws and
# adds in code that a trace cannot see.
UNKNOWN, OPAQUE = "unknown", "opaque"


class TooLong(BaseException):
    """Raised to end a run that draws too much noise, or that takes too long."""


class Draw(NamedTuple):
    """One call of a primitive (a function that draws noise).

    moment: The kind `draw`, the spot (instruction) of the call, and the number of earlier draws
        there.
    primitive: The name of the primitive, for the user.
    law: The name of the distribution of the noise, such as `laplace`.
    scale: The scale of the noise: a number or an array; None if it is unknown.
    parameters: The arguments of the primitive, by name.
    values: The drawn numbers minus the location; None if they cannot be seen.
    first: The number of the first piece of noise (drawn number) of this draw.
    outcomes: (value, probability) for each outcome of a discrete law; else None.
    callers: The spots from which the draw was called, innermost first.
    """

    moment: Moment
    primitive: str
    law: str
    scale: Any
    parameters: dict[str, Any]
    values: Any
    first: int
    outcomes: Sequence[tuple[Any, float]] | None
    callers: tuple[Spot, ...] = ()

    @property
    def size(self) -> int:
        return int(np.size(self.values)) if isinstance(self.values, np.ndarray) else 1


class Use(NamedTuple):
    """An addition of noise to an operand, or a comparison of noise with it. The noised value is
    factor × noise + operand.

    moment: The kind, the spot (instruction) of the operation, and the number of earlier operations
        of this kind there.
    kind: `add` or `compare`.
    value: The noised value.
    callers: The spots from which the operation was called, innermost first.
    ids: The number of the piece of noise (drawn number), or an array of such numbers.
    factor: The factor of the noise.
    operand: The number, or array, that the noise hides.
    previous: The index of the previous use of the same noised value; None for the first use.
    """

    moment: Moment
    kind: str
    value: Any
    callers: tuple[Spot, ...]
    ids: Any
    factor: Any
    operand: Any
    previous: int | None = None


class Choice(NamedTuple):
    """A coin, or an array of coins: a comparison of uniform numbers with thresholds.

    moment: The kind `choice`, the spot (instruction) of the comparison, and the number of earlier
        coins there.
    probability: The probability of True, for each coin.
    values: The outcome of each coin.
    ids: The number of the piece of noise (drawn number) that each coin compares.
    cut: The share of the range of the uniform number that lies below the threshold.
    is_below: Whether the outcome is True for numbers below the threshold.
    callers: The spots from which the comparison was called, innermost first.
    """

    moment: Moment
    probability: Any
    values: Any
    ids: Any
    cut: Any
    is_below: bool
    callers: tuple[Spot, ...] = ()


_MISSING = object()


class Repetition:
    """Replaces values of a run by the values of an earlier run, called the reference.

    before: The records of the reference, by moment.
    overrides: Values that replace single draws or coins, by (moment, index in the array).
    alignment: For a (kind, spot) at which the runs differ in their number of uses (additions or
        comparisons of noise): a list with the index of the counterpart in the reference for each
        use of this run; None for a use without a counterpart.
    """

    def __init__(
        self,
        before: Mapping[Moment, Any],
        overrides: Mapping[Entry, Any] | None = None,
        alignment: Mapping[tuple[str, Spot], Sequence[int | None]] | None = None,
    ) -> None:
        self._before, self._overrides = before, overrides or {}
        self._alignment = alignment or {}
        # Pieces of noise (drawn numbers) of this run with an override. Noised values that contain
        # them are not repeated.
        self._freed: set[int] = set()
        # The numbers of the same pieces in the reference.
        self._replaced: set[int] = set()

    def noise(self, moment: Moment, values: Any, first: int) -> Any:
        """Return the values that a draw gets: overrides, else the values in the reference run, else
        the drawn values.

        moment: The moment of the draw.
        first: The number of the first piece of noise of the draw.
        """
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
        """Return the outcome of a coin or choice: an override, else the outcome in the reference
        run, else the outcome in this run.

        moment: The moment of the coin or choice.
        values: The outcome in this run.
        ids: The numbers of the pieces of noise that decide the outcome.
        """
        if not self._is_free(self._before.get(moment), ids):
            values = self._again(moment, values)
        return self._overridden(moment, values) if self._overrides else values

    def noised(self, moment: Moment, noise: Noise, natural: Any) -> Any:
        """Return the noised value (operand + noise) that the reference run has at a moment, or the
        noised value of this run if the reference has none.

        noise: The noise in this run.
        natural: The noised value of this run.
        """
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
        # Without an alignment, equal moments of both runs are counterparts.
        is_aligned = (kind, spot) in self._alignment
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
        """Return whether an override replaces some of the noise of a noised value, so that the
        value of the reference run must not be repeated.

        before: The record of the value in the reference; None if there is none.
        ids: The numbers of the pieces of noise (drawn numbers) in this run.
        """
        if not self._freed:
            return False
        known = np.ravel(getattr(before, "ids", ())).tolist()
        is_other = not self._freed.isdisjoint(np.ravel(ids).tolist())
        return is_other or not self._replaced.isdisjoint(known)

    def opaque(self, moment: Moment, value: Any, *, is_whole: bool) -> Any:
        """Return the output that a library function, whose noise cannot be seen, gets in this run.
        It is the output in the reference run if both outputs are plain values, such as numbers or
        lists of texts, and in any case if `is_whole`; else `value`, the output in this run."""
        before = self._before.get(moment)
        if isinstance(before, Draw) and before.law == OPAQUE:
            if is_whole:
                return before.values
            if _is_plain(value) and _is_plain(before.values):
                return copy.deepcopy(before.values)
        return value

    def _again(self, moment: Moment, values: Any) -> Any:
        """Return the values that the reference run has at a moment, or `values`, the values of this
        run, if it has none. If the reference has fewer values, the values of this run follow."""
        before = self._before.get(moment)
        if not isinstance(before, (Draw, Choice)) or before.values is None:
            return values
        # fast path: a run may have very many draws of single floats
        if type(values) is type(before.values) is float:
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
    """Return a value converted to the type of `natural`. A float that is no integer stays a float
    if `natural` is an integer."""
    if isinstance(natural, np.ndarray):
        return np.array(value, copy=True)
    if isinstance(natural, (np.generic, bool, int, float)):
        is_float = isinstance(value, (float, np.floating)) and not float(value).is_integer()
        is_cut = is_float and isinstance(natural, (int, np.integer))
        return value if is_cut else type(natural)(value)
    return value


def _is_plain(value: Any) -> bool:
    """Return whether a value is None, a number, a text, or a list, tuple, mapping or array of such
    values, so that it holds no reference to the user's data."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, np.ndarray):
        return not value.dtype.hasobject
    return value is None or isinstance(value, (bool, int, float, str, bytes, np.generic))


def aligned(first: Sequence[Any], second: Sequence[Any]) -> list[int | None]:
    """Return a list with one item for each entry of the second list: the index of its counterpart
    in the first list, or None without a counterpart. Equal entries are matched first, then the
    entries between them in order."""
    import difflib

    found: list[int | None] = [None] * len(second)
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    for kind, a, a_end, b, b_end in matcher.get_opcodes():
        if kind in ("equal", "replace"):
            for step in range(min(a_end - a, b_end - b)):
                found[b + step] = a + step
    return found
