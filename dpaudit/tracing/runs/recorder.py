"""What one run does with its noise: each piece as it is drawn, and each number it is added to.

A second run, on another input, is given the same noised values: what it would have had to draw for
them differs by the shift of what the noise hides.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from .coins import MIRRORED, are_uniform, is_single, share_below
from .events import OPAQUE, Choice, Draw, Use
from .moments import Moments
from .pieces import Pieces, first_of, multiplied, shifted
from .places import place_of
from .values import OPERATIONS, SINGLE, Noise, carried, plain, traced

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from .events import Moment
    from .places import Followed, Place, Spot
    from .repeating import Repetition


class Recorder:
    """Hands out noise to one run, and writes down what becomes of it.

    followed: whose code is the user's own.  repetition: what is given again of another run; None
    where all is the run's own.  check: is called now and then, and may raise.  is_strict: whether
    integers are to be Python's own.  severed: spots at which a noised value is a plain number, with
    no noise that could hide anything more.
    """

    def __init__(
        self,
        followed: Followed,
        repetition: Repetition | None = None,
        check: Callable[[], None] | None = None,
        *,
        is_strict: bool = False,
        severed: Container[Spot] = (),
    ) -> None:
        self.is_open = True
        self.draws: list[Draw] = []
        self.pieces = Pieces(self.draws)
        self.uses: list[Use] = []
        self.choices: list[Choice] = []
        # The uses whose noised values were compared with one another.
        self.compared: set[int | None] = set()
        self.seeds: list[tuple[Spot, str, Any]] = []
        self.not_understood: list[tuple[Spot, str]] = []
        # How often primitives are called that the user has named.
        self.calls: dict[str, int] = {}
        self.by_moment: dict[Moment, Any] = {}
        self.is_strict, self._severed = is_strict, severed
        self._moments = Moments(followed, check)
        self._repetition = repetition
        self._depth, self._thread = 0, threading.get_ident()

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
        spot = self._moments.spot()
        if spot is None:
            return values
        moment = self._moments.next("draw", spot)
        if location is None and outcomes is None and type(values) is float:
            return self._drawn(moment, primitive, law, values, scale, parameters)
        location = plain(location)
        base = values if location is None else np.subtract(values, location)
        base = base[()] if isinstance(base, np.ndarray) and not base.ndim else base
        first = len(self.pieces.laws)
        if self._repetition is not None:
            base = self._repetition.noise(moment, base, first)
        shape = () if isinstance(base, SINGLE) else np.shape(base)
        size = int(np.prod(shape)) if shape else 1
        own = np.array(base) if isinstance(base, np.ndarray) else base
        draw = Draw(moment, primitive, law, scale, dict(parameters or {}), own, first, outcomes)
        scales = scale if scale is None or not shape else np.broadcast_to(scale, shape)
        self._add(draw, scales, size)
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
        first = len(self.pieces.laws)
        if self._repetition is not None:
            value = self._repetition.noise(moment, value, first)
        draw = Draw(moment, primitive, law, scale, dict(parameters or {}), value, first, None)
        self._add(draw, scale, 1)
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
        spot = self._moments.spot()
        if spot is None:
            return index
        moment = self._moments.next("draw", spot)
        if self._repetition is not None:
            index = self._repetition.outcome(moment, index)
        first, size = len(self.pieces.laws), int(np.size(index))
        draw = Draw(moment, primitive, law, None, dict(parameters or {}), index, first, outcomes)
        self._add(draw, None, size)
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
        spot = self._moments.spot()
        if spot is None:
            return value
        moment = self._moments.next("draw", spot)
        first, size = len(self.pieces.laws), max(1, int(np.size(operand)))
        draw = Draw(moment, primitive, law, scale, dict(parameters or {}), None, first, None)
        self._add(draw, scale, size)
        ids: Any = np.arange(first, first + size).reshape(np.shape(operand))
        noise = Noise(ids if np.ndim(operand) else first, 1.0, plain(operand))
        return plain(self._used(spot, noise, value, "add"))

    def opaque(self, primitive: str, value: Any, *, is_whole: bool = False) -> Any:
        """Return what a mechanism of a library has made of data that are not seen: a second run is
        given the same plain values. is_whole: and any other, since it keeps no state."""
        spot = self._moments.spot()
        if spot is None:
            return value
        moment = self._moments.next("draw", spot)
        if self._repetition is not None:
            value = self._repetition.opaque(moment, value, is_whole=is_whole)
        draw = Draw(moment, primitive, OPAQUE, None, {}, value, len(self.pieces.laws), None)
        self._add(draw, None, draw.size)
        self.not_understood.append((spot, primitive))
        return value

    def seeded(self, primitive: str, seed: Any) -> None:
        """Note that a generator is made, or set, with a seed."""
        spot = self._moments.spot()
        if spot is not None:
            self.seeds.append((spot, primitive, seed))

    def misunderstood(self, what: str) -> None:
        spot = self._moments.spot()
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
        spot = self._moments.spot()
        if spot is None:
            return natural
        if self._severed and spot in self._severed:
            a, b = (one if one is not None and one[1].use is None else None for one in (a, b))
            if a is None and b is None:
                return natural
        if a is not None and b is not None:
            noise = self.pieces.sum_of(a[1], b[1], -1 if name == "sub" else 1, np.shape(natural))
            if noise is None:
                return natural
            if noise.operand is None:
                return traced(natural, self, noise)
        elif a is not None:
            other = plain(right)
            noise = shifted(a[1], -other if name == "sub" else other)
        else:
            assert b is not None
            own, other = b[1], plain(left)
            noise = shifted(multiplied(own, -1), other) if name == "sub" else shifted(own, other)
        return self._used(spot, noise, natural, "add")

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
        noise = multiplied(found[1], times)
        if noise.operand is None:
            shaped = np.broadcast_to(noise.ids, np.shape(natural))
            ids = shaped if np.ndim(natural) else noise.ids
            return traced(natural, self, noise._replace(ids=ids))
        spot = self._moments.spot()
        if spot is None or spot in self._severed:
            return natural
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
        spot = self._moments.spot()
        if found is None or spot is None:
            return natural
        if self._severed and spot in self._severed and found[1].use is not None:
            return natural
        noise, other = found[1], two if a is not None else one
        last = self.draws[-1] if self.draws else None
        if last is not None and type(noise.ids) is int and is_single(last, noise, other):
            below = min(max(other / last.scale, 0.0), 1.0)
            way = name if a is not None else MIRRORED[name]
            return self._tossed(spot, way, noise.ids, below, natural, is_turned=False)
        if noise.operand is None and are_uniform(self.pieces, noise):
            way = name if a is not None else MIRRORED[name]
            below = share_below(self.pieces, noise, way, other)
            is_turned = first_of(noise.factor) < 0
            return self._tossed(spot, way, noise.ids, below, natural, is_turned=is_turned)
        value = one if a is not None else two
        if not np.all(np.isfinite(other)):
            return natural
        difference = self._used(spot, shifted(noise, -other), value - other, "compare")
        zero = plain(difference) * 0
        pair = (plain(difference), zero) if a is not None else (zero, plain(difference))
        return OPERATIONS[name](*pair)

    # How it is written down.

    def _add(self, draw: Draw, scale: Any, size: int) -> None:
        """Write down a draw of so many pieces. scale: of one, or of each."""
        draw.callers = self._moments.callers(draw.moment[1])
        self.draws.append(draw)
        self.by_moment[draw.moment] = draw
        self.pieces.add(draw.law, scale, size)

    def _tossed(
        self, spot: Spot, name: str, ids: Any, below: Any, natural: Any, *, is_turned: bool
    ) -> Any:
        """Return what a coin, or an array of them, has come to. below: how much of the range lies
        below the threshold.  is_turned: whether large numbers come of small ones."""
        is_less = name in ("lt", "le")
        probability = below if is_less else 1 - below
        moment = self._moments.next("choice", spot)
        values = natural
        if self._repetition is not None:
            values = self._repetition.outcome(moment, natural, ids)
        cut = 1 - below if is_turned else below
        choice = Choice(moment, probability, values, ids, cut, is_less != is_turned)
        choice.callers = self._moments.callers(spot)
        self.choices.append(choice)
        self.by_moment[moment] = choice
        return values

    def _used(self, spot: Spot, noise: Noise, natural: Any, kind: str) -> Any:
        """Write down a use, and return what comes of it: in a second run, of the same noised value
        as in the first."""
        moment = self._moments.next(kind, spot)
        shape = np.shape(natural)
        if shape:
            noise = noise._replace(
                ids=np.broadcast_to(noise.ids, shape),
                factor=np.broadcast_to(noise.factor, shape),
                operand=np.array(np.broadcast_to(noise.operand, shape)),
            )
        value = natural
        if self._repetition is not None:
            value = self._repetition.noised(moment, noise, natural)
        # Arrays may be changed in place.
        kept = np.array(value) if shape else plain(value)
        self.uses.append(Use(moment, noise, kept, kind))
        self.uses[-1].callers = self._moments.callers(spot)
        self.by_moment[moment] = self.uses[-1]
        return traced(value, self, noise._replace(use=len(self.uses) - 1))
