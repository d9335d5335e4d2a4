"""Define the records that a run keeps of its noise, and repeat recorded values in a second run."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .noisy_numbers import SINGLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .noisy_numbers import Noise
    from .places import Spot

    # Identifies an event in a run: (kind of event, instruction of the user's code, number of
    # earlier events of this kind at this instruction). The kind is "draw", "add", "compare" or
    # "choice".
    Moment = tuple[str, Spot, int]
    # Identifies one number that a run draws, adds or compares: (moment, index in the flattened
    # array). The moment identifies the operation, which may be on a whole array of numbers.
    Entry = tuple[Moment, int]

# Name that stands for an unknown distribution of noise.
UNKNOWN = "unknown"
# Name that stands for a distribution of noise that cannot be recorded, since a library draws and
# adds the noise in compiled code.
OPAQUE = "opaque"
# Name that stands for the distribution of a random seed. A seed is no noise; what a generator draws
# with it is.
SEED = "seed"


class TooLong(BaseException):
    """Raised to end a run that takes too long, or that draws too many numbers."""


class Draw(NamedTuple):
    """The record of one draw.

    primitive: The name of the primitive, for the user.
    scale: A number or an array; None if it is unknown.
    parameters: The arguments of the primitive, by name.
    values: The drawn numbers minus the location; None if they are unknown.
    first: The id of the first drawn number; the others have the following ids.
    outcomes: (value, probability) for each outcome of a discrete distribution; None for another
        distribution, or if there are too many outcomes.
    is_fill: Whether the draw fills memory of the program in place, such as first weights of a
        model.
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
    is_fill: bool = False

    @property
    def size(self) -> int:
        return int(np.size(self.values)) if isinstance(self.values, np.ndarray) else 1


class Use(NamedTuple):
    """The record of one use. A comparison is recorded as a comparison of a noisy value with 0.

    kind: "add" or "compare".
    value: The noisy value factor × noise + operand.
    ids: The id of the piece of noise; for an array, an array with the id of each entry.
    previous: The index of the previous use of this noise among the recorded uses, if any.
    """

    moment: Moment
    kind: str
    value: Any
    callers: tuple[Spot, ...]
    ids: Any
    factor: Any
    operand: Any
    previous: int | None = None


class Toss(NamedTuple):
    """The record of a coin. If arrays are compared, the fields are arrays with one entry for each
    comparison.

    probability: The probability that the comparison is True.
    values: The result of the comparison.
    ids: The id of the uniform number.
    cut: The share of the range of the uniform number that lies below the threshold, from 0 to 1.
    is_below: Whether the result is True for uniform numbers below the threshold.
    """

    moment: Moment
    probability: Any
    values: Any
    ids: Any
    cut: Any
    is_below: bool
    callers: tuple[Spot, ...] = ()


_MISSING = object()


class Replay:
    """Gives a run the values of an earlier run at the same moments.

    events: The records of the earlier run, by moment.
    overrides: Values that the caller forces, by (moment, index in the array).
    alignment: As `alignment_of` returns it.
    """

    def __init__(
        self,
        events: Mapping[Moment, Any],
        overrides: Mapping[Entry, Any] | None = None,
        alignment: Mapping[tuple[str, Spot], Sequence[int | None]] | None = None,
    ) -> None:
        self._events, self._overrides = events, overrides or {}
        self._alignment = alignment or {}
        # Ids of the drawn numbers of this run that have a forced value (`overrides`). A sum that
        # contains such a number keeps its new value; it is not replaced by the value of the earlier
        # run.
        self._freed: set[int] = set()
        # The drawn numbers to which the caller gives a forced value, by their ids in the records of
        # the earlier run. `_freed` has their ids in the records of this run.
        self._replaced: set[int] = set()

    def noise(self, moment: Moment, values: Any, first: int) -> Any:
        """Return the values of a draw for this run. These are the values that the caller forces; if
        there are none, those of the earlier run; if there are none, `values`. `first` is the id of
        the first."""
        values = self._again(moment, values)
        if self._overrides:
            values = self._overridden(moment, values)
            for index in (0,) if isinstance(values, SINGLE) else range(int(np.size(values))):
                if (moment, index) in self._overrides:
                    self._freed.add(first + index)
                    counterpart = self._counterpart(moment)
                    if isinstance(counterpart, Draw):
                        self._replaced.add(counterpart.first + index)
        return values

    def outcome(self, moment: Moment, values: Any, ids: Any = (), probability: Any = None) -> Any:
        """Return the outcome of a choice for this run. It is the one that the caller forces; if
        there is none, that of the earlier run; if there is none, `values`, the outcome in this run.

        ids: The ids of the drawn numbers that decide the outcome.
        probability: The probability of True, for a coin. An outcome that is certain in both runs is
            no choice, and is not repeated.
        """
        counterpart = self._counterpart(moment)
        if not self._is_free(counterpart, ids):
            again = self._again(moment, values)
            fixed = are_certain(getattr(counterpart, "probability", None), probability)
            is_any = np.any(fixed) and np.shape(again) == np.shape(fixed)
            values = _like(np.where(fixed, values, again)[()], values) if is_any else again
        return self._overridden(moment, values) if self._overrides else values

    def noised(self, moment: Moment, noise: Noise, natural: Any) -> Any:
        """Return the noisy value with which this run continues: that of the earlier run at the same
        moment. If the earlier run has none, or if the caller forces another value of the noise,
        return `natural`, which this run computed."""
        kind, spot, _ = moment
        counterpart = self._counterpart(moment)
        if not isinstance(counterpart, Use):
            return natural
        # Without an alignment of the two runs for this instruction, its n-th execution in one run
        # is the counterpart of its n-th execution in the other run.
        is_aligned = (kind, spot) in self._alignment
        if self._is_free(None if is_aligned else counterpart, noise.ids):
            return natural
        if np.shape(counterpart.value) == np.shape(natural):
            return _like(counterpart.value, natural)
        if np.ndim(counterpart.value) == np.ndim(natural) == 1:
            values = np.array(natural, copy=True)
            matches = aligned(
                np.ravel(counterpart.operand).tolist(), np.ravel(noise.operand).tolist()
            )
            for index, match in enumerate(matches):
                if match is not None:
                    values[index] = counterpart.value[match]
            return values
        return natural

    def _counterpart(self, moment: Moment) -> Any:
        """Return the counterpart of an event in the earlier run, if there is one."""
        kind, spot, number = moment
        matches = self._alignment.get((kind, spot))
        if matches is not None:
            match = matches[number] if number < len(matches) else None
            return None if match is None else self._events.get((kind, spot, match))
        return self._events.get(moment)

    def _is_free(self, counterpart: Any, ids: Any) -> bool:
        """Return whether an event depends, in either run, on a number that is overridden."""
        if not self._freed:
            return False
        known = np.ravel(getattr(counterpart, "ids", ())).tolist()
        is_other = not self._freed.isdisjoint(np.ravel(ids).tolist())
        return is_other or not self._replaced.isdisjoint(known)

    def opaque(self, moment: Moment, value: Any, *, is_whole: bool) -> Any:
        """Return the output, for this run, of a library function whose draws cannot be recorded. It
        is the output of the earlier run if both are plain values, or if `is_whole` is set; else it
        is `value`."""
        counterpart = self._counterpart(moment)
        if isinstance(counterpart, Draw) and counterpart.law == OPAQUE:
            if is_whole:
                return counterpart.values
            if _is_plain(value) and _is_plain(counterpart.values):
                return copy.deepcopy(counterpart.values)
        return value

    def _again(self, moment: Moment, values: Any) -> Any:
        """Return the earlier values at `moment`, cut or extended to the number of `values`."""
        counterpart = self._counterpart(moment)
        if not isinstance(counterpart, (Draw, Toss)) or counterpart.values is None:
            return values
        # fast path: a run may have very many draws of single floats
        if type(values) is type(counterpart.values) is float:
            return counterpart.values
        if isinstance(values, SINGLE) and isinstance(counterpart.values, SINGLE):
            return _like(counterpart.values, values)
        if np.shape(counterpart.values) == np.shape(values):
            return _like(counterpart.values, values)
        if np.ndim(counterpart.values) == np.ndim(values) == 1:
            count = min(len(counterpart.values), len(values))
            return np.concatenate([counterpart.values[:count], values[count:]])
        return values

    def _overridden(self, moment: Moment, values: Any) -> Any:
        if isinstance(values, SINGLE):
            value = self._overrides.get((moment, 0), _MISSING)
            return values if value is _MISSING else _like(value, values)
        for index in range(int(np.size(values))):
            if (moment, index) in self._overrides:
                value = self._overrides[moment, index]
                if np.ndim(values) == 0:
                    return _like(value, values)
                values = np.array(values, copy=True)
                values.flat[index] = value
        return values


def are_certain(first: Any, second: Any) -> Any:
    """Return, for each pair of probabilities, whether both are 0 or both are 1."""
    if first is None or second is None or np.shape(first) != np.shape(second):
        return False
    return np.isin(first, (0.0, 1.0)) & np.isin(second, (0.0, 1.0))


def _like(value: Any, natural: Any) -> Any:
    """Return a value converted to the type of `natural`; a float stays for an integer type."""
    if isinstance(natural, np.ndarray):
        return np.array(value, copy=True)
    if isinstance(natural, (np.generic, bool, int, float)):
        is_float = isinstance(value, (float, np.floating)) and not float(value).is_integer()
        is_cut = is_float and isinstance(natural, (int, np.integer))
        return value if is_cut else type(natural)(value)
    return value


def _is_plain(value: Any) -> bool:
    """Return whether a value holds no object of the user, so that another run may get a copy."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, np.ndarray):
        return not value.dtype.hasobject
    return value is None or isinstance(value, (bool, int, float, str, bytes, np.generic))


def aligned(first: Sequence[Any], second: Sequence[Any]) -> list[int | None]:
    """Return, for each entry of the second list, the index of its counterpart in the first list, or
    None. Equal entries are matched first, in order, then the remaining entries between two matches.
    For example, `aligned("abd", "abcd")` is [0, 1, None, 2]."""
    import difflib

    matches: list[int | None] = [None] * len(second)
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    for kind, a, a_end, b, b_end in matcher.get_opcodes():
        if kind in ("equal", "replace"):
            for step in range(min(a_end - a, b_end - b)):
                matches[b + step] = a + step
    return matches
