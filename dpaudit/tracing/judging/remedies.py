"""What would do: the ends of findings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from dpaudit.claims import PrivacyClaim
from dpaudit.tracing.costs import Piece, exceeds, sum_exceeds
from dpaudit.tracing.records import Changes
from dpaudit.tracing.wording import rounded_down, rounded_up

# Numbers that are closer, relatively, are equal.
_ROUNDING = 1e-9
# Of more noise in one line: where nothing else leaks, and where other lines do.
FOR_PAIR, FOR_LINE = "would do for this pair", "would do for this line"
GIVE_AN_OUTPUT = "give an output for every input, with noise, or treat the case without the data"
# What noise hides where that is all of a record.
WHOLE = ("the size of the record that differs", "the difference of the two records")


def is_whole_record(piece: Piece, changed: Changes) -> bool:
    """Return whether noise hides a number of the record that differs as a whole."""
    sizes = (math.isclose(piece.shift, one, rel_tol=_ROUNDING) for one in changed.sizes)
    return piece.cost is None and any(sizes)


def clipping(piece: Piece, claim: PrivacyClaim | None, changed: Changes) -> str:
    """Return the beginning of a remedy: the bound that this scale would do for."""
    times = None if claim is None else _enlargement([piece], claim)
    most = math.nan if times is None else piece.shift / times
    most = math.floor(most * (1 + _ROUNDING)) if piece.law == "discrete" else most
    if not most > 0:
        return ""
    bound = rounded_down(most)
    where = f"a range of width {bound}" if changed.is_replaced else f"[-{bound}, {bound}]"
    return f"clip each record to {where} before it is added up, or "


def enlarged(
    pieces: Sequence[Piece], claim: PrivacyClaim | None, beside: Sequence[Piece] = ()
) -> str:
    """Return the scale that would do, or the remedy where no scale does.

    beside: the noise of other lines, which costs its part of what is claimed.
    """
    if claim is None or any(one.cost is not None for one in pieces):
        return ""
    law, scale = pieces[0].law, max(pieces[0].scales)
    if law == "normal" and all(point.delta == 0 for point in claim.points()):
        return "Gaussian noise satisfies no pure ε: use Laplace noise, or claim a δ above 0"
    costly = [one for one in beside if one.value != 0]
    together, alone = _enlargement(pieces, claim, costly), _enlargement(pieces, claim)
    times = alone if together is None else together
    if times is None:
        return ""
    name = "standard deviation" if law == "normal" else "scale"
    enough = FOR_LINE if together is None else FOR_PAIR
    return f"a {name} of {rounded_up(times * scale)} {enough}"


def _enlargement(
    pieces: Sequence[Piece], claim: PrivacyClaim, beside: Sequence[Piece] = ()
) -> float | None:
    """Return how many times as large the scale has to be; None where no scale is known to do.
    beside: noise that stays as it is."""
    if beside and (
        len({one.unit for one in (*pieces, *beside)}) > 1
        or any(one.value is None for one in beside)
        or sum_exceeds(beside, claim)
    ):
        return None
    law, scale = pieces[0].law, max(pieces[0].scales)
    if law not in ("laplace", "normal", "discrete", "logistic") or not scale > 0:
        return None

    def would_do(times: float) -> bool:
        larger = [
            replace(one, scales=(times * one.scales[0], times * one.scales[1])) for one in pieces
        ]
        return not sum_exceeds([*larger, *beside], claim) and not any(
            exceeds(one, claim) for one in larger
        )

    low, high = 1.0, 2.0
    while not would_do(high):
        low, high = high, 2 * high
        if high > 1e9:
            return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if would_do(middle) else (middle, high)
    return high


def same_parts(claim: PrivacyClaim | None) -> str:
    """Return the remedy where it is released which parts there are."""
    below = "leave out noisy counts below a threshold"
    has_delta = claim is not None and all(point.delta for point in claim.points())
    more = f", or {below}" if has_delta else f"; or claim a δ above 0, and {below}"
    return f"release the same values for every input, from a fixed list of keys{more}"
