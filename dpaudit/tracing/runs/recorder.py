"""What one run did with its noise: each piece as it was drawn, and each number it was added to.

A second run, on another input, is given the same noised values: what it would have had to draw for
them differs by the shift of what the noise hides.
"""

from __future__ import annotations

import copy
import math
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from .aligning import aligned
from .events import OPAQUE, UNKNOWN, Choice, Draw, TooLong, Use
from .places import callers, own_frame, place_of
from .values import OPERATIONS, Noise, carried, plain, traced

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence
    from types import FrameType

    from .events import Entry, Moment
    from .places import Followed, Place, Spot

# Laws of a difference, or of a sum, of two independent pieces of noise; both of one scale.
_DIFFERENCES = {("exponential", "exponential"): "laplace", ("geometric", "geometric"): "discrete"}
# More entries of one piece of noise are no noise that a trace can show.
_MOST = 200_000
# Numbers that are no arrays, of which there may be very many.
_NUMBERS = (int, float)
_MISSING = object()
# So many pieces of one array are looked at for laws that differ.
_VARIOUS = 1_000


class Recorder:
    """Hands out noise to one run, and writes down what becomes of it.

    followed: whose code is the user's own.  reference: of the run whose noise, and noised values,
    are given again.  overrides: other outcomes of some of its coins.  alignment: which use of the
    reference a use of this run is, by kind and spot.  check: is called now and then, and may raise.
    is_strict: whether integers are to be Python's own.  severed: spots at which a noised value is a
    plain number, with no noise that could hide anything more.
    """

    def __init__(
        self,
        followed: Followed,
        reference: Recorder | None = None,
        overrides: Mapping[Entry, Any] | None = None,
        alignment: Mapping[tuple[str, Spot], Sequence[int | None]] | None = None,
        check: Callable[[], None] | None = None,
        *,
        is_strict: bool = False,
        severed: Container[Spot] = (),
    ) -> None:
        self.is_open = True
        self.draws: list[Draw] = []
        self.uses: list[Use] = []
        self.choices: list[Choice] = []
        # The uses whose noised values were compared with one another.
        self.compared: set[int | None] = set()
        self.seeds: list[tuple[Spot, str, Any]] = []
        self.not_understood: list[tuple[Spot, str]] = []
        # How often primitives are called that the user has named.
        self.calls: dict[str, int] = {}
        self.laws: list[str] = []
        self.scales: list[float] = []
        self._scales = np.zeros(0)
        # Of every piece of noise, the pieces that it is made of.
        self.parts: dict[int, tuple[int, ...]] = {}
        self._merged: dict[tuple[int, int, float], int] = {}
        self.followed, self._check, self.is_strict = followed, check, is_strict
        self._severed = severed
        self._reference, self._overrides = reference, overrides or {}
        self._alignment = alignment or {}
        self._counts: dict[tuple[str, Spot], int] = {}
        # Pieces of noise that are not those of the reference: what they are added to goes its own
        # way.
        self._freed: set[int] = set()
        self._frame: FrameType | None = None
        self._known_callers: dict[Spot, tuple[Spot, ...]] = {}
        self._depth, self._thread = 0, threading.get_ident()
        self.by_moment: dict[Moment, Any] = {}

    @property
    def itself(self) -> Recorder:
        """The recorder, also where it is asked for by way of that of the present run."""
        return self

    @property
    def is_inside(self) -> bool:
        """Whether a primitive is at work, whose own draws are none of the user's."""
        return self._depth > 0 or not self.is_open or threading.get_ident() != self._thread

    def real(self, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Call the true primitive."""
        self._depth += 1
        try:
            return function(*given, **named)
        finally:
            self._depth -= 1

    def spot(self) -> Spot | None:
        """Return where in the user's own code this happens."""
        if self._check is not None:
            self._check()
        frame = own_frame(sys._getframe(2), self.followed)
        self._frame = frame
        return None if frame is None else self.followed.spot(frame)

    def _callers(self, spot: Spot) -> tuple[Spot, ...]:
        """Return where the frame of the latest spot was called from, once for each spot: it is the
        same for all turns of a loop, nearly always."""
        known = self._known_callers.get(spot)
        if known is None:
            known = self._known_callers[spot] = callers(self._frame, self.followed)
        return known

    def _moment(self, kind: str, spot: Spot) -> Moment:
        place = kind, spot
        number = self._counts.get(place, 0)
        self._counts[place] = number + 1
        return kind, spot, number

    def place(self, moment: Moment) -> Place:
        return place_of(moment[1])

    # What primitives call.

    def drawn(
        self,
        primitive: str,
        law: str,
        values: Any,
        *,
        scale: Any = None,
        location: Any = None,
        parameters: Mapping[str, Any] | None = None,
        outcomes: Sequence[tuple[Any, float]] | None = None,
    ) -> Any:
        """Return what a primitive has drawn, as numbers that carry their noise.

        law: of the noise, such as laplace.  values: the numbers, around `location` where that is
        given.  scale: a number, or one for each.  outcomes: of a discrete law, all that may come.
        """
        spot = self.spot()
        if spot is None:
            return values
        moment = self._moment("draw", spot)
        if location is None and type(values) is float:
            return self._drawn(moment, primitive, law, values, scale, parameters)
        location = plain(location)
        base = values if location is None else np.subtract(values, location)
        base = base[()] if isinstance(base, np.ndarray) and not base.ndim else base
        base = self._again(moment, base)
        base = self._overridden(moment, base)
        shape = () if isinstance(base, _NUMBERS) else np.shape(base)
        first, size = len(self.laws), int(np.prod(shape)) if shape else 1
        if self._overrides:
            self._freed.update(
                first + place for place in range(size) if (moment, place) in self._overrides
            )
        own = np.array(base) if isinstance(base, np.ndarray) else base
        draw = Draw(moment, primitive, law, scale, dict(parameters or {}), own, first, outcomes)
        self._add(draw)
        scales = scale if scale is None or not shape else np.broadcast_to(scale, shape)
        self._register(law, scales, size)
        noise = Noise(np.arange(first, first + size).reshape(shape) if shape else first, 1.0)
        if location is None:
            return traced(base, self, noise)
        natural = base + location
        return self._used(spot, noise._replace(operand=location), natural, "add")

    def _drawn(
        self,
        moment: Moment,
        primitive: str,
        law: str,
        value: float,
        scale: Any,
        parameters: Mapping[str, Any] | None,
    ) -> Any:
        """Return a single number: there may be very many of them."""
        if self._reference is not None:
            value = self._again(moment, value)
        first = len(self.laws)
        if self._overrides:
            value = self._overridden(moment, value)
            if (moment, 0) in self._overrides:
                self._freed.add(first)
        self._add(Draw(moment, primitive, law, scale, dict(parameters or {}), value, first, None))
        self._register(law, scale, 1)
        return traced(value, self, Noise(first, 1.0))

    def picked(
        self,
        primitive: str,
        law: str,
        index: Any,
        *,
        parameters: Mapping[str, Any] | None = None,
        outcomes: Sequence[tuple[Any, float]] | None = None,
    ) -> Any:
        """Return which of several things a primitive has picked, plain numbers."""
        spot = self.spot()
        if spot is None:
            return index
        moment = self._moment("draw", spot)
        index = self._overridden(moment, self._again(moment, index))
        first, size = len(self.laws), int(np.size(index))
        self._add(
            Draw(moment, primitive, law, None, dict(parameters or {}), index, first, outcomes)
        )
        self._register(law, None, size)
        return index

    def released(
        self,
        primitive: str,
        value: Any,
        operand: Any,
        *,
        law: str,
        scale: Any = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return what a mechanism of a library has made of an operand, its argument."""
        spot = self.spot()
        if spot is None:
            return value
        moment = self._moment("draw", spot)
        first, size = len(self.laws), max(1, int(np.size(operand)))
        self._add(Draw(moment, primitive, law, scale, dict(parameters or {}), None, first, None))
        self._register(law, scale, size)
        ids: Any = np.arange(first, first + size).reshape(np.shape(operand))
        noise = Noise(ids if np.ndim(operand) else first, 1.0, plain(operand))
        return plain(self._used(spot, noise, value, "add"))

    def opaque(self, primitive: str, value: Any, *, is_whole: bool = False) -> Any:
        """Return what a mechanism of a library has made of data that are not seen: a second run is
        given the same plain values. is_whole: and any other, since it keeps no state."""
        spot = self.spot()
        if spot is None:
            return value
        moment = self._moment("draw", spot)
        before = None if self._reference is None else self._reference.by_moment.get(moment)
        if isinstance(before, Draw) and before.law == OPAQUE:
            if is_whole:
                value = before.values
            elif _is_plain(value) and _is_plain(before.values):
                value = copy.deepcopy(before.values)
        draw = Draw(moment, primitive, OPAQUE, None, {}, value, len(self.laws), None)
        self._add(draw)
        self._register(OPAQUE, None, draw.size)
        self.not_understood.append((spot, primitive))
        return value

    def seeded(self, primitive: str, seed: Any) -> None:
        """Note that a generator is made, or set, with a seed."""
        spot = self.spot()
        if spot is not None:
            self.seeds.append((spot, primitive, seed))

    def misunderstood(self, what: str) -> None:
        spot = self.spot()
        if spot is not None:
            self.not_understood.append((spot, what))

    # What numbers that carry noise call.

    def arithmetic(self, name: str, left: Any, right: Any) -> Any:
        """Return a sum, a difference, a product or a quotient."""
        natural = OPERATIONS[name](plain(left), plain(right))
        if not isinstance(natural, (int, float, np.number, np.ndarray)):
            return natural
        a, b = carried(left), carried(right)
        if name in ("mul", "truediv"):
            return self._scaled(name, left, right, natural)
        spot = self.spot()
        if spot is None:
            return natural
        if self._severed and spot in self._severed:
            a, b = (one if one is not None and one[1].use is None else None for one in (a, b))
            if a is None and b is None:
                return natural
        if a is not None and b is not None:
            noise = self._sum(a[1], b[1], -1 if name == "sub" else 1, np.shape(natural))
            if noise is None:
                return natural
            if noise.operand is None:
                return traced(natural, self, noise)
        elif a is not None:
            other = plain(right)
            noise = _with(a[1], -other if name == "sub" else other)
        else:
            assert b is not None
            own, other = b[1], plain(left)
            noise = _with(_times(own, -1), other) if name == "sub" else _with(own, other)
        return self._used(spot, noise, natural, "add")

    def compare(self, name: str, left: Any, right: Any) -> Any:
        """Return a comparison: of a uniform number a coin, else of what the noise hides."""
        a, b = carried(left), carried(right)
        one, two = plain(left), plain(right)
        natural = OPERATIONS[name](one, two)
        if a is not None and b is not None:
            self.compared.update((a[1].use, b[1].use))
            return natural
        found = a or b
        spot = self.spot()
        if found is None or spot is None:
            return natural
        if self._severed and spot in self._severed and found[1].use is not None:
            return natural
        noise, other = found[1], two if a is not None else one
        last = self.draws[-1] if self.draws else None
        if last is not None and type(noise.ids) is int and _is_coin(last, noise, other):
            below = min(max(other / last.scale, 0.0), 1.0)
            way = name if a is not None else _MIRRORED[name]
            return self._tossed(spot, way, noise.ids, below, natural, is_turned=False)
        if noise.operand is None and self._are_uniform(noise):
            return self._coin(
                spot, name if a is not None else _MIRRORED[name], noise, other, natural
            )
        value = one if a is not None else two
        if not np.all(np.isfinite(other)):
            return natural
        difference = self._used(spot, _with(noise, -other), value - other, "compare")
        zero = plain(difference) * 0
        pair = (plain(difference), zero) if a is not None else (zero, plain(difference))
        return OPERATIONS[name](*pair)

    def _coin(self, spot: Spot, name: str, noise: Noise, threshold: Any, natural: Any) -> Any:
        """Return whether uniform numbers lie below a threshold, or above it."""
        low, width = self._range(noise)
        if self._law(noise) == "integers":  # of which those below a threshold are counted
            is_over = name in ("le", "gt")
            threshold = np.floor(threshold) + 1 if is_over else np.ceil(threshold)
        if isinstance(threshold, _NUMBERS) and math.isfinite(threshold) and width > 0:
            below: Any = min(max((threshold - low) / width, 0.0), 1.0)
        else:
            with np.errstate(all="ignore"):
                below = np.clip((threshold - low) / width, 0, 1)
        return self._tossed(spot, name, noise.ids, below, natural, _first(noise.factor) < 0)

    def _tossed(
        self, spot: Spot, name: str, ids: Any, below: Any, natural: Any, is_turned: bool
    ) -> Any:
        """Return what a coin, or an array of them, has come to. below: how much of the range lies
        below the threshold.  is_turned: whether large numbers come of small ones."""
        is_less = name in ("lt", "le")
        probability = below if is_less else 1 - below
        moment = self._moment("choice", spot)
        values = natural
        if self._reference is not None or self._overrides:
            values = self._overridden(moment, self._again(moment, natural))
        cut = 1 - below if is_turned else below
        choice = Choice(moment, probability, values, ids, cut, is_less != is_turned)
        choice.callers = self._callers(spot)
        self.choices.append(choice)
        self.by_moment[moment] = choice
        return values

    def _range(self, noise: Noise) -> tuple[Any, Any]:
        """Return where uniform numbers begin, and how wide their range is."""
        place, factor = _first(noise.ids), _first(noise.factor)
        draw = self.draws[-1]
        if draw.first > place:
            draw = next(one for one in reversed(self.draws) if one.first <= place)
        width = self.scales[place] * factor
        if draw.law == "integers":
            low, high = (float(draw.parameters[one]) for one in ("low", "high"))
            return low, high - low
        low = float(_first(draw.parameters.get("low", 0.0))) * factor
        return (low, width) if width > 0 else (low + width, -width)

    def _law(self, noise: Noise) -> str:
        ids = noise.ids
        if type(ids) is int:
            return self.laws[ids]
        return self.laws[_first(ids)] if np.size(ids) else UNKNOWN

    def _are_uniform(self, noise: Noise) -> bool:
        """Return whether uniform numbers are compared, or integers as they were drawn."""
        law = self._law(noise)
        if law != "integers":
            return law == "uniform"
        place = int(np.ravel(noise.ids)[0])
        draw = next(one for one in reversed(self.draws) if one.first <= place)
        bounds = [draw.parameters.get(name) for name in ("low", "high")]
        return bool(np.all(np.equal(noise.factor, 1.0))) and all(
            isinstance(one, (int, float)) for one in bounds
        )

    # How it is kept.

    def _add(self, draw: Draw) -> None:
        draw.callers = self._callers(draw.moment[1])
        self.draws.append(draw)
        self.by_moment[draw.moment] = draw

    def _register(self, law: str, scale: Any, size: int) -> None:
        if len(self.laws) + size > _MOST:
            raise TooLong(f"more than {_MOST:,} pieces of noise")
        if size == 1:
            self.laws.append(law)
            self.scales.append(math.nan if scale is None else float(_first(scale)))
            return
        scales = np.broadcast_to(np.nan if scale is None else np.ravel(scale), (size,))
        self.laws.extend([law] * size)
        self.scales.extend(scales.tolist())

    def _scaled(self, name: str, left: Any, right: Any, natural: Any) -> Any:
        a, b = carried(left), carried(right)
        # A product of two, or a constant over noise, is no noise of a known law.
        if (a is not None and b is not None) or (a is None and name == "truediv"):
            return natural
        found, other = (a, plain(right)) if a is not None else (b, plain(left))
        assert found is not None
        with np.errstate(all="ignore"):
            times = other if name == "mul" else 1 / np.asarray(other, dtype=float)[()]
        if not np.all(np.isfinite(times)) or not np.all(times):
            return natural
        noise = _times(found[1], times)
        if noise.operand is None:
            shaped = np.broadcast_to(noise.ids, np.shape(natural))
            ids = shaped if np.ndim(natural) else noise.ids
            return traced(natural, self, noise._replace(ids=ids))
        spot = self.spot()
        if spot is None or spot in self._severed:
            return natural
        return self._used(spot, noise, natural, "add")

    def _sum(self, a: Noise, b: Noise, sign: int, shape: tuple[int, ...]) -> Noise | None:
        """Return the noise of a sum of two; None where they cancel out."""
        ids_a, ids_b = np.broadcast_to(a.ids, shape), np.broadcast_to(b.ids, shape)
        factor_a = np.broadcast_to(a.factor, shape)
        factor_b = np.broadcast_to(np.multiply(b.factor, sign), shape)
        if np.array_equal(ids_a, ids_b):
            factor = factor_a + factor_b
            if not np.all(factor):
                return None
            ids = ids_a
        else:
            pairs = zip(*map(np.ravel, (ids_a, factor_a, ids_b, factor_b)))
            ids = np.array([self._pair(*one) for one in pairs]).reshape(shape)
            factor = np.ones(shape)
        operands = [one for one in (a.operand, _signed(b.operand, sign)) if one is not None]
        operand = sum(operands[1:], operands[0]) if operands else None
        latest = [one for one in (a.use, b.use) if one is not None]
        use = max(latest) if latest else None
        if shape:
            return Noise(ids, factor, operand, use)
        return Noise(int(ids[()]), float(factor[()]), operand, use)

    def _pair(self, a: int, factor_a: float, b: int, factor_b: float) -> int:
        """Return the number of a piece of noise that is the sum of two."""
        scale_a, scale_b = abs(factor_a) * self.scales[a], abs(factor_b) * self.scales[b]
        laws, scale, law = (self.laws[a], self.laws[b]), float("nan"), UNKNOWN
        if laws == ("normal", "normal"):
            law, scale = "normal", float(np.hypot(scale_a, scale_b))
        elif laws in _DIFFERENCES and factor_a * factor_b < 0 and abs(scale_a - scale_b) < 1e-12:
            law, scale = _DIFFERENCES[laws], scale_a
        self.laws.append(law)
        self.scales.append(scale)
        number = len(self.laws) - 1
        self.parts[number] = (*self.pieces(int(a)), *self.pieces(int(b)))
        return number

    @property
    def all_scales(self) -> Any:
        """The scales of all pieces of noise."""
        if len(self._scales) != len(self.scales):
            self._scales = np.array(self.scales, dtype=float)
        return self._scales

    def laws_of(self, ids: Any) -> set[str]:
        """Return the laws of some pieces of noise."""
        return {self.laws[int(number)] for number in np.unique(ids)[:_VARIOUS]}

    def pieces(self, number: int) -> tuple[int, ...]:
        """Return the pieces of noise that one is made of, each as it was drawn."""
        return self.parts.get(number, (number,))

    def _used(self, spot: Spot, noise: Noise, natural: Any, kind: str) -> Any:
        """Write down a use, and return what comes of it: in a second run, of the same noised value
        as in the first."""
        moment = self._moment(kind, spot)
        shape = np.shape(natural)
        if shape:
            noise = noise._replace(
                ids=np.broadcast_to(noise.ids, shape),
                factor=np.broadcast_to(noise.factor, shape),
                operand=np.array(np.broadcast_to(noise.operand, shape)),
            )
        value = self._as_before(moment, noise, natural)
        # Arrays may be changed in place.
        kept = np.array(value) if shape else plain(value)
        self.uses.append(Use(moment, noise, kept, kind))
        self.uses[-1].callers = self._callers(spot)
        self.by_moment[moment] = self.uses[-1]
        return traced(value, self, noise._replace(use=len(self.uses) - 1))

    def _as_before(self, moment: Moment, noise: Noise, natural: Any) -> Any:
        if self._reference is None:
            return natural
        kind, spot, number = moment
        if (kind, spot) in self._alignment:
            places = self._alignment[kind, spot]
            other = places[number] if number < len(places) else None
            if other is None:
                return natural
            moment = kind, spot, other
        before = self._reference.by_moment.get(moment)
        if not isinstance(before, Use):
            return natural
        if self._freed and not self._freed.isdisjoint(np.ravel(noise.ids).tolist()):
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

    def _again(self, moment: Moment, values: Any) -> Any:
        """Return the values of the first run in place of those of the second, as far as they go."""
        before = None if self._reference is None else self._reference.by_moment.get(moment)
        if not isinstance(before, (Draw, Choice)) or before.values is None:
            return values
        if isinstance(values, _NUMBERS) and isinstance(before.values, _NUMBERS):
            return _like(before.values, values)
        if np.shape(before.values) == np.shape(values):
            return _like(before.values, values)
        if np.ndim(before.values) == np.ndim(values) == 1:
            many = min(len(before.values), len(values))
            return np.concatenate([before.values[:many], values[many:]])
        return values

    def _overridden(self, moment: Moment, values: Any) -> Any:
        if not self._overrides:
            return values
        if isinstance(values, _NUMBERS):
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


def _is_coin(last: Draw, noise: Noise, threshold: Any) -> bool:
    """Return whether the number that was drawn last, from 0 on, is compared with a plain one."""
    return (
        last.first == noise.ids
        and last.law == "uniform"
        and not last.parameters
        and noise.operand is None
        and type(noise.factor) is float
        and noise.factor == 1.0
        and type(last.scale) is float
        and isinstance(threshold, _NUMBERS)
        and math.isfinite(threshold)
    )


def _first(values: Any) -> Any:
    """Return a number, or the first one of an array."""
    return values if isinstance(values, _NUMBERS) else np.ravel(values)[0].item()


_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _like(value: Any, natural: Any) -> Any:
    """Return a value of the kind that another one has."""
    if isinstance(natural, np.ndarray):
        return np.array(value, copy=True)
    if isinstance(natural, (np.generic, bool, int, float)):
        is_float = isinstance(value, (float, np.floating)) and not float(value).is_integer()
        is_cut = is_float and isinstance(natural, (int, np.integer))
        return value if is_cut else type(natural)(value)
    return value


def _is_plain(value: Any) -> bool:
    """Return whether a value is a number, a text, or a collection of such: it stands for itself,
    and keeps nothing of the data that it was made of."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, np.ndarray):
        return not value.dtype.hasobject
    return value is None or isinstance(value, (bool, int, float, str, bytes, np.generic))


def _signed(value: Any, sign: int) -> Any:
    return None if value is None else value * sign


def _with(noise: Noise, more: Any) -> Noise:
    return noise._replace(operand=more if noise.operand is None else noise.operand + more)


def _times(noise: Noise, factor: Any) -> Noise:
    operand = None if noise.operand is None else noise.operand * factor
    return noise._replace(factor=noise.factor * factor, operand=operand)
