"""Record what a run does with noise: its draws, uses and coins."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from .noisy_numbers import OPERATIONS, SINGLE, Noise, carried, plain, traced
from .pieces import (
    CONTINUOUS,
    MIRRORED,
    WITH_SCALE,
    Pieces,
    are_uniform,
    first_of,
    is_single,
    multiplied,
    share_below,
    shifted,
)
from .places import callers, own_frame, place_of
from .replaying import OPAQUE, Draw, Toss, Use

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence
    from types import FrameType

    from .places import Followed, Lines, Place, Spot
    from .replaying import Moment, Replay


class Moments:
    """Gives each event of a run its moment, by which the event can be found in a second run.
    `check` is called at each event. It may raise TooLong to end the run."""

    def __init__(self, followed: Followed, check: Callable[[], None]) -> None:
        self._followed, self._check = followed, check
        self._counts: dict[tuple[str, Spot], int] = {}
        self._frame: FrameType | None = None
        self._known_callers: dict[tuple[Any, ...], tuple[Spot, ...]] = {}
        # The lines that the run has executed, and their number at each event; None if lines are
        # not recorded.
        self.lines: Lines | None = None
        self.positions: dict[Moment, int] = {}

    def spot(self) -> Spot:
        """Return the spot that now draws or uses noise. If no code of the user is running, return
        `Followed.home`. Only methods of the recorder may call this, since it skips two frames of
        the call stack."""
        self._check()
        frame = own_frame(sys._getframe(2), self._followed)
        self._frame = frame
        return self._followed.home if frame is None else self._followed.spot(frame)

    def callers(self, spot: Spot) -> tuple[Spot, ...]:
        """Return the callers of the function that contains `spot`, which is the spot of the latest
        event. The result is cached by spot and caller."""
        caller = None if self._frame is None else self._frame.f_back
        key = (spot,) if caller is None else (spot, id(caller.f_code), caller.f_lasti)
        known = self._known_callers.get(key)
        if known is None:
            known = self._known_callers[key] = callers(self._frame, self._followed)
        return known

    def next(self, kind: str, spot: Spot) -> Moment:
        """Count a new event, such as a draw, and return its moment."""
        key = kind, spot
        number = self._counts.get(key, 0)
        self._counts[key] = number + 1
        if self.lines is not None:
            self.positions[kind, spot, number] = len(self.lines)
        return kind, spot, number


class Recorder:
    """Records the noise of one run. The replacements of primitives call its methods, and so do the
    numbers that remember their noise.

    repetition: The values of another run that this run repeats; None for a run with new noise.
    check: Called at each event; raises TooLong to end the run.
    severed: The spots at which a noisy value becomes an ordinary number, so that its noise hides no
        further data.
    scaled: The spots whose result counts as noise that is added to 0.
    """

    def __init__(
        self,
        followed: Followed,
        repetition: Replay | None,
        check: Callable[[], None],
        severed: Container[Spot],
        scaled: Container[Spot] = (),
    ) -> None:
        self.is_open = True
        self.draws: list[Draw] = []
        self.pieces = Pieces(self.draws)
        self.uses: list[Use] = []
        self.choices: list[Toss] = []
        # Indexes, in `uses`, of the additions of noise whose result the run later compares with
        # another noisy value. None is in the set if a drawn number was compared with a noisy value
        # before the number was added to anything.
        self.compared: set[int | None] = set()
        # Indexes, in `uses`, of the additions whose result the run adds to another noisy value with
        # some of the same noise, as a momentum and a weight. Such results are states of the
        # mechanism: only their sum counts, unless they are in the output.
        self.joined: set[int] = set()
        self.seeds: list[tuple[Spot, str, Any]] = []
        self.not_understood: list[tuple[Spot, str]] = []
        # The user may declare functions that add noise. Maps the name of each of them to the number
        # of its calls.
        self.calls: dict[str, int] = {}
        self.by_moment: dict[Moment, Any] = {}
        # Noise that is not added to a number, after it was drawn or multiplied, by its moment.
        self.bare_noise: dict[Moment, Use] = {}
        self._severed, self._scaled_at = severed, scaled
        self._moments = Moments(followed, check)
        self._repetition = repetition
        self._depth, self._thread = 0, threading.get_ident()

    @property
    def itself(self) -> Recorder:
        """The recorder itself. Functions that have only a proxy for it get it by this property."""
        return self

    @property
    def is_inside(self) -> bool:
        """Whether a draw that is made now is not recorded. This is so within a call that is
        recorded as a whole, after the end of the run, and in another thread."""
        return self._depth > 0 or not self.is_open or threading.get_ident() != self._thread

    def real(self, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Call a function without recording its draws, and return its result."""
        self._depth += 1
        try:
            return function(*args, **named)
        finally:
            self._depth -= 1

    def follow(self, lines: Lines) -> None:
        """From now on, note at each event how many lines the run has executed."""
        self._moments.lines = lines

    @property
    def positions(self) -> dict[Moment, int]:
        """The number of lines that the run had executed at each event, by its moment."""
        return self._moments.positions

    def place(self, moment: Moment) -> Place:
        return place_of(moment[1])

    # During a run, other functions replace random functions such as `numpy.random.laplace`. They
    # call the following methods.

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
        is_fill: bool = False,
    ) -> Any:
        """Record a draw, and return its numbers, which remember that they come from it.

        primitive: The name of the primitive in reports.
        values: The drawn numbers, after the location was added.
        scale: A number or an array; None if it is unknown.
        location: The number, or array, that the primitive adds to the noise; None for 0.
        parameters: The arguments of the primitive, by name.
        outcomes: (value, probability) for each outcome of a discrete distribution.
        is_fill: Whether the primitive fills memory of the program in place.
        """
        spot = self._moments.spot()
        moment = self._moments.next("draw", spot)
        if location is None and outcomes is None and type(values) is float and not is_fill:
            return self._drawn(moment, primitive, law, values, scale, parameters)
        location = plain(location)
        base = values if location is None else np.subtract(values, location)
        base = base[()] if isinstance(base, np.ndarray) and not base.ndim else base
        first = len(self.pieces.laws)
        if self._repetition is not None:
            base = self._repetition.noise(moment, base, first)
        shape = () if isinstance(base, SINGLE) else np.shape(base)
        size = int(np.prod(shape)) if shape else 1
        copied = np.array(base) if isinstance(base, np.ndarray) else base
        self._add(moment, primitive, law, scale, size, parameters, copied, outcomes, is_fill)
        noise = Noise(np.arange(first, first + size).reshape(shape) if shape else first, 1.0)
        if location is None:
            return self._bare(spot, noise, base)
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
        """Record the draw of a single float, quickly, since a run may draw very many."""
        first = len(self.pieces.laws)
        if self._repetition is not None:
            value = self._repetition.noise(moment, value, first)
        self._add(moment, primitive, law, scale, 1, parameters, value)
        return self._bare(moment[1], Noise(first, 1.0), value)

    def picked(
        self,
        primitive: str,
        law: str,
        index: Any,
        *,
        parameters: Mapping[str, Any] | None = None,
        outcomes: Sequence[tuple[Any, float]] | None = None,
    ) -> Any:
        """Record a draw that picks items, and return the indexes of the items as ordinary numbers:
        `index` or, if this run repeats the choices of a first run, the indexes in that run.
        `outcomes` has (index, probability) for each item, if known. The other arguments are those
        of `drawn`."""
        spot = self._moments.spot()
        moment = self._moments.next("draw", spot)
        if self._repetition is not None:
            index = self._repetition.outcome(moment, index)
        self._add(moment, primitive, law, None, int(np.size(index)), parameters, index, outcomes)
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
        """Record the output of a library function that itself adds noise to its argument `operand`.
        Return the output as an ordinary number. The other arguments are those of `drawn`."""
        spot = self._moments.spot()
        moment = self._moments.next("draw", spot)
        first, size = len(self.pieces.laws), max(1, int(np.size(operand)))
        self._add(moment, primitive, law, scale, size, parameters, None)
        ids: Any = np.arange(first, first + size).reshape(np.shape(operand))
        noise = Noise(ids if np.ndim(operand) else first, 1.0, plain(operand))
        return plain(self._used(spot, noise, value, "add"))

    def opaque(self, primitive: str, value: Any, *, is_whole: bool = False) -> Any:
        """Record and return the output of a library function whose draws cannot be recorded, such
        as compiled code. A second run gets the output of the first run if this is a plain value,
        such as a number or a list of texts, or if `is_whole` is set."""
        spot = self._moments.spot()
        moment = self._moments.next("draw", spot)
        if self._repetition is not None:
            value = self._repetition.opaque(moment, value, is_whole=is_whole)
        size = int(np.size(value)) if isinstance(value, np.ndarray) else 1
        self._add(moment, primitive, OPAQUE, None, size, None, value)
        self.not_understood.append((spot, primitive))
        return value

    def seeded(self, primitive: str, seed: Any) -> None:
        """Record that the user's code gave a seed to the random generator called `primitive`."""
        self.seeds.append((self._moments.spot(), primitive, seed))

    # Numbers that remember their noise call the following methods, such as for a sum.

    def arithmetic(self, name: str, left: Any, right: Any) -> Any:
        """Return the result of `add`, `sub`, `mul` or `truediv` for two numbers, at least one of
        which remembers its noise. The result remembers its noise, too, if the law of the noise is
        known."""
        natural = OPERATIONS[name](plain(left), plain(right))
        if not isinstance(natural, (int, float, np.number, np.ndarray)):
            return natural
        a, b = carried(left), carried(right)
        if name in ("mul", "truediv"):
            return self._scaled(name, left, right, natural)
        spot = self._moments.spot()
        if self._severed and spot in self._severed:
            a, b = (side if side is not None and side[1].use is None else None for side in (a, b))
            if a is None and b is None:
                return natural
        if a is not None and b is not None:
            noise = self.pieces.sum_of(a[1], b[1], -1 if name == "sub" else 1, np.shape(natural))
            if noise is None:
                return natural
            if noise.operand is None:
                return traced(natural, self, noise)
            if self.pieces.share_numbers(a[1], b[1]):
                self.joined.update(term.use for _, term in (a, b) if term.use is not None)
        elif a is not None:
            operand = plain(right)
            noise = shifted(a[1], -operand if name == "sub" else operand)
        else:
            assert b is not None
            term, operand = b[1], plain(left)
            noise = (
                shifted(multiplied(term, -1), operand) if name == "sub" else shifted(term, operand)
            )
        return self._used(spot, noise, natural, "add")

    def _scaled(self, name: str, left: Any, right: Any, natural: Any) -> Any:
        a, b = carried(left), carried(right)
        # The product or quotient of two noisy numbers, and a constant divided by noise, have no
        # distribution that is known here.
        if (a is not None and b is not None) or (a is None and name == "truediv"):
            return natural
        carrier, operand = (a, plain(right)) if a is not None else (b, plain(left))
        assert carrier is not None
        with np.errstate(all="ignore"):
            times = operand if name == "mul" else 1 / np.asarray(operand, dtype=float)[()]
        if not np.all(np.isfinite(times)) or not np.all(times):
            return natural
        is_integer = self.pieces.law_of(carrier[1]) == "integers"
        if is_integer and np.any(times != np.round(times)):
            return natural  # a random choice, as of a sign, and not noise
        noise = multiplied(carrier[1], times)
        if noise.operand is None:
            shaped = np.broadcast_to(noise.ids, np.shape(natural))
            ids = shaped if np.ndim(natural) else noise.ids
            return self._bare(self._moments.spot(), noise._replace(ids=ids), natural)
        spot = self._moments.spot()
        if spot in self._severed:
            return natural
        return self._used(spot, noise, natural, "add")

    def compare(self, name: str, left: Any, right: Any) -> Any:
        """Record and return the result of `lt`, `le`, `gt` or `ge` for two numbers, at least one of
        which remembers its noise. The comparison of a uniform number with an ordinary one is a
        coin."""
        a, b = carried(left), carried(right)
        left_value, right_value = plain(left), plain(right)
        natural = OPERATIONS[name](left_value, right_value)
        if a is not None and b is not None:
            self.compared.update((a[1].use, b[1].use))
            return natural
        carrier = a or b
        assert carrier is not None
        spot = self._moments.spot()
        if self._severed and spot in self._severed and carrier[1].use is not None:
            return natural
        noise, threshold = carrier[1], right_value if a is not None else left_value
        last = self.draws[-1] if self.draws else None
        if last is not None and type(noise.ids) is int and is_single(last, noise, threshold):
            below = min(max(threshold / last.scale, 0.0), 1.0)
            way = name if a is not None else MIRRORED[name]
            return self._tossed(spot, way, noise.ids, below, natural, is_turned=False)
        if are_uniform(self.pieces, noise):
            way = name if a is not None else MIRRORED[name]
            if noise.operand is not None:
                noise, threshold = noise._replace(operand=None), threshold - noise.operand
            below = share_below(self.pieces, noise, way, threshold)
            is_turned = first_of(noise.factor) < 0
            return self._tossed(spot, way, noise.ids, below, natural, is_turned=is_turned)
        value = left_value if a is not None else right_value
        if not np.all(np.isfinite(threshold)):
            return natural
        difference = self._used(spot, shifted(noise, -threshold), value - threshold, "compare")
        zero = plain(difference) * 0
        pair = (plain(difference), zero) if a is not None else (zero, plain(difference))
        return OPERATIONS[name](*pair)

    # The following methods append to the records of the run.

    def _add(
        self,
        moment: Moment,
        primitive: str,
        law: str,
        scale: Any,
        size: int,
        parameters: Mapping[str, Any] | None,
        values: Any,
        outcomes: Sequence[tuple[Any, float]] | None = None,
        is_fill: bool = False,
    ) -> None:
        """Record a draw of `size` numbers; `values` are the numbers minus the location."""
        callers, first = self._moments.callers(moment[1]), len(self.pieces.laws)
        arguments = dict(parameters or {})
        draw = Draw(
            moment, primitive, law, scale, arguments, values, first, outcomes, callers, is_fill
        )
        self.draws.append(draw)
        self.by_moment[moment] = draw
        if np.ndim(scale) and values is not None:
            scale = np.broadcast_to(scale, np.shape(values))
        self.pieces.add(law, scale, size)
        if law in CONTINUOUS and values is not None and scale is not None:
            self.pieces.note_repeated(first, values, scale)

    def _tossed(
        self, spot: Spot, name: str, ids: Any, below: Any, natural: Any, *, is_turned: bool
    ) -> Any:
        """Record coins, and return their outcomes. A second run gets the outcomes of the first."""
        # `below` is the share of the uniform number's range below the threshold; `is_turned` says
        # that the number was multiplied by a negative factor before.
        if isinstance(natural, np.ndarray):  # a number may be compared with an array
            ids, below = (np.broadcast_to(array, natural.shape) for array in (ids, below))
        is_less = name in ("lt", "le")
        probability = below if is_less else 1 - below
        moment = self._moments.next("choice", spot)
        values = natural
        if self._repetition is not None:
            values = self._repetition.outcome(moment, natural, ids, probability)
        cut = 1 - below if is_turned else below
        callers = self._moments.callers(spot)
        choice = Toss(moment, probability, values, ids, cut, is_less != is_turned, callers)
        self.choices.append(choice)
        self.by_moment[moment] = choice
        return values

    def _bare(self, spot: Spot, noise: Noise, natural: Any) -> Any:
        """Record noise that is not added to a number, and return it."""
        if self.pieces.law_of(noise) not in WITH_SCALE:
            return traced(natural, self, noise)
        if spot in self._scaled_at:
            return self._used(spot, noise._replace(operand=natural * 0), natural, "add")
        moment = self._moments.next("bare", spot)
        use = Use(moment, "bare", natural, (), noise.ids, noise.factor, natural * 0)
        self.bare_noise[moment] = use
        return traced(natural, self, noise)

    def _used(self, spot: Spot, noise: Noise, natural: Any, kind: str) -> Any:
        """Record an addition or comparison of noise, and return the noisy value."""
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
        # Store a copy of an array, since the user's code may change the array in place.
        stored = np.array(value) if shape else plain(value)
        use = Use(moment, kind, stored, self._moments.callers(spot), *noise)
        self.uses.append(use)
        self.by_moment[moment] = use
        return traced(value, self, noise._replace(use=len(self.uses) - 1))
