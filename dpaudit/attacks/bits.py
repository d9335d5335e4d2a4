"""The attack on low-order bits: which floats come up says where they were computed.

Noise added in floating point leaves gaps that depend on the input (Mironov 2012, "On significance
of the least significant bits for differential privacy"); rounding to fewer decimals may, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.additive import additive
from dpaudit.attacks.one_dimensional import orders_of
from dpaudit.attacks.single_columns import ONE_COLUMN, single_columns
from dpaudit.draws import LevelArray, SelectionDraws
from dpaudit.levels.candidate import Candidate, by_score
from dpaudit.levels.level_map import FloatArray, IntArray, LevelMap, in_pieces
from dpaudit.levels.scores import Score, Scored
from dpaudit.outcomes import Column, NamedColumns, Outcomes
from dpaudit.outcomes.scalars import Entries
from dpaudit.outcomes.tables import View
from dpaudit.outcomes.units import ELAPSED, HIGHEST_BIT, LOWEST_BIT

_SPAN, _PLACES, _LAST = "span of bits of ", "decimal places of ", "last decimal of "
_LOW_BITS = "low-order bits"
# The bits of a float's significand, and the decimal digits that any float has room for.
_PRECISION, _DIGITS = 53, 15
_FULL = _DIGITS + 1
_AS_MANY = "as many as fit"
# All of so few columns get a closer look.
_FEW = 20

Codes = NDArray[np.int64]


def bits(selection: SelectionDraws) -> list[Candidate]:
    """Order outcomes by the bits and decimals of their numbers, singly and summed."""
    view = BitView(selection.outcomes)
    columns = view.columns
    if len(columns) == 0:
        return []
    seen = SelectionDraws(view, selection.is_d1)
    if len(columns) <= _FEW:
        found = [one for column in columns for one in orders_of(column, seen)]
    else:
        found = single_columns(seen)
    spans = BitView(selection.outcomes, (_SPAN,))
    found += additive(SelectionDraws(spans, selection.is_d1))
    return [_of_bits(one, selection) for one in found]


def has_fractions(outcomes: Outcomes) -> bool:
    """Return whether some numbers are no integers, so that they have low-order bits to look at."""
    return any(_is_fractional(column) for column in outcomes.columns)


@dataclass(frozen=True, slots=True, eq=False)
class BitLevels(LevelMap):
    """A level of the outcomes' bits."""

    level: LevelMap

    @property
    def levels(self) -> int:
        return self.level.levels

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        return self.level(BitView(outcomes))

    def counts(self, outcomes: Outcomes) -> IntArray:
        return in_pieces(lambda part: self.level.counts(BitView(part)), outcomes, self.levels)

    def words(self, chosen: NDArray[np.bool_]) -> str:
        return self.level.words(chosen)


@dataclass(frozen=True, slots=True, eq=False)
class BitScore:
    """A score of the outcomes' bits."""

    score: Score

    @property
    def columns(self) -> tuple[tuple[str, float], ...]:
        return self.score.columns

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        return self.score(BitView(outcomes))

    def words(self) -> str:
        return self.score.words()


@dataclass(frozen=True, slots=True, eq=False)
class BitView(View):
    """What outcomes look like to who sees the bits of their numbers only: for every column that
    has numbers one for each of `aspects`, made when it is asked for."""

    aspects: tuple[str, ...] = ()

    @property
    def columns(self) -> NamedColumns:
        names = [column.name for column in self.outcomes.columns if _has_numbers(column)]
        aspects = self.aspects or tuple(_ASPECTS)
        return NamedColumns(self, [f"{aspect}{name}" for name in names for aspect in aspects])

    def take(self, index: NDArray[Any] | slice) -> BitView:
        return BitView(self.outcomes.take(index), self.aspects)

    def _known(self) -> Callable[[str], Column]:
        known = self.outcomes._known()

        def find(name: str) -> Column:
            aspect = next((one for one in _ASPECTS if name.startswith(one)), None)
            return known(name) if aspect is None else _seen(known(name[len(aspect) :]), aspect)

        return find


def _of_bits(found: Candidate, selection: SelectionDraws) -> Candidate:
    """Return a candidate for the view as one for the outcomes themselves."""
    attack = f"{_LOW_BITS}: {found.attack.removeprefix(ONE_COLUMN)}"
    if found.scored is None:
        return replace(found, attack=attack, freeze=lambda: BitLevels(found.freeze()))
    scored = found.scored
    bits_scored = Scored(attack, scored.held_out, lambda: BitScore(scored.freeze()), scored.halves)
    return by_score(bits_scored, selection)


def _has_numbers(column: Column) -> bool:
    return column.name != ELAPSED and (column.codes is None or not column.codes.all())


def _is_fractional(column: Column) -> bool:
    finite = column.numbers[np.isfinite(column.numbers)]
    return bool((finite != np.rint(finite)).any())


def _seen(column: Column, name: str) -> Column:
    """Return one aspect of a column; what is no number, 0 or infinite keeps or gets a label."""
    numbers, labels = column.numbers, (*column.labels, "zero", "infinite")
    codes = np.zeros(len(numbers), dtype=np.int32)
    if column.codes is not None:
        codes[:] = column.codes
    codes[(codes == 0) & (numbers == 0)] = len(labels) - 1
    codes[(codes == 0) & np.isinf(numbers)] = len(labels)
    usual = np.flatnonzero(codes == 0)
    found = _ASPECTS[name](numbers[usual])
    values = np.full(len(numbers), np.nan)
    values[usual] = found.numbers
    if found.codes is not None:
        codes[usual] = np.where(found.codes > 0, found.codes + len(labels), 0)
    if not codes.any():
        return Column(f"{name}{column.name}", values)
    return Column(f"{name}{column.name}", values, codes, (*labels, *found.labels))


def _highest_bit(numbers: FloatArray) -> Entries:
    return Entries(np.frexp(numbers)[1] - 1.0)


def _lowest_bit(numbers: FloatArray) -> Entries:
    return Entries(_lowest(numbers).astype(np.float64))


def _lowest(numbers: FloatArray) -> Codes:
    fraction, exponent = np.frexp(numbers)
    integer = np.ldexp(np.abs(fraction), _PRECISION).astype(np.int64)
    lowest = np.frexp((integer & -integer).astype(np.float64))[1]
    return np.asarray(exponent.astype(np.int64) + lowest - (_PRECISION + 1), dtype=np.int64)


def _span(numbers: FloatArray) -> Entries:
    """Return the sign, the highest and the lowest bit together, as a label."""
    highest = np.frexp(numbers)[1].astype(np.int64) - 1
    length = highest - _lowest(numbers)
    # A length is at most 52, so that the three fit into one integer.
    spans = ((highest * 64 + length) << 1) | (numbers < 0)
    distinct, places = np.unique(spans, return_inverse=True)
    return _labels(places, map(_span_word, distinct.tolist()))


def _span_word(span: int) -> str:
    highest, length = divmod(span >> 1, 64)
    sign = "-" if span & 1 else ""
    return f"{sign}2^{highest} to 2^{highest - length}"


def _decimal_places(numbers: FloatArray) -> Entries:
    places, _ = _decimals(numbers)
    return Entries(places.astype(np.float64), (places == _FULL).astype(np.int32), (_AS_MANY,))


def _last_decimal(numbers: FloatArray) -> Entries:
    """Return the last digit that is not 0 with the place that it is at, 0.05 for 1.15."""
    places, digits = _decimals(numbers)
    distinct, found = np.unique(places * 10 + digits, return_inverse=True)
    return _labels(found, map(_decimal_word, distinct.tolist()))


def _decimal_word(decimal: int) -> str:
    place, digit = divmod(decimal, 10)
    return f"{Decimal(digit).scaleb(-place):f}" if digit else _AS_MANY


def _labels(places: Codes, labels: Iterable[str]) -> Entries:
    """Return labels by their place."""
    return Entries(np.full(len(places), np.nan), (places + 1).astype(np.int32), tuple(labels))


def _decimals(numbers: FloatArray) -> tuple[Codes, Codes]:
    """Return after how many decimals a number ends (negative: a multiple of a power of ten), and
    its last digit that is not 0; `_FULL` and 0 for numbers of more than 15 digits."""
    places = np.full(len(numbers), _FULL, dtype=np.int64)
    scaled = np.zeros(len(numbers), dtype=np.int64)
    rest = _short_ones(numbers)
    for place in range(_FULL):
        left = numbers[rest]
        ends = np.rint(left * 10.0**place) / 10.0**place == left
        ending = rest[ends]
        places[ending] = place
        scaled[ending] = np.rint(np.abs(numbers[ending]) * 10.0**place).astype(np.int64)
        rest = rest[~ends]
    tens = np.flatnonzero(places == 0)
    while len(tens):
        tens = tens[scaled[tens] % 10 == 0]
        scaled[tens] //= 10
        places[tens] -= 1
    return places, scaled % 10


def _short_ones(numbers: FloatArray) -> IntArray:
    """Return which numbers are decimals of at most 15 digits and 15 places."""
    digits = np.floor(np.log10(np.abs(numbers))) + 1
    powers = 10.0 ** np.clip(_DIGITS - digits, 0, _DIGITS)
    nearest = np.rint(numbers * powers)
    return np.flatnonzero((nearest / powers == numbers) & (np.abs(nearest) < 10.0**_DIGITS))


_ASPECTS: dict[str, Callable[[FloatArray], Entries]] = {
    LOWEST_BIT: _lowest_bit,
    HIGHEST_BIT: _highest_bit,
    _SPAN: _span,
    _PLACES: _decimal_places,
    _LAST: _last_decimal,
}
