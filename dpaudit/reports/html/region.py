"""The figure of events as tests of one input against the other, under the claim's trade-off curve.

Names beside marks that lie close together are moved, so that none covers another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dpaudit.certificates.certificate import Certificate, EventCount, ExactCertificate, ExactEvent
from dpaudit.certificates.result import AuditResult
from dpaudit.claims import PrivacyClaim
from dpaudit.claims.tradeoff import tradeoff
from dpaudit.reports import numbers
from dpaudit.reports.html.canvas import STEPS, Canvas, Key, Picture, Points, Scale, ratio

_MOST_EVENTS = 8
# Where all events are rarer only a corner of the square is shown.
_RARE = 0.3
# How large the mark of an estimate is: what counts is its box.
_ESTIMATE = 0.75
# A name that stands further above or below its mark has a line to it, in shares of the height.
_FAR = 0.07
_SHAPE = {"d1": "circle", "d2": "diamond"}
_OF_EVENTS = "An event is a test of one input against the other."
_OF_LAW = "The claim allows no point below its curve."
_OF_ESTIMATES = (
    "Markers are estimates from the draws; the errors themselves may be anywhere in the box. A "
    "marker below the curve refutes nothing: only an event whose whole box lies below the curve is "
    "evidence against the claim. Each interval holds by itself; the verdict follows from the exact "
    "test and the bets."
)
# In shares of the width and the height of a drawing.
_LETTER, _LINE = 0.025, 0.08
_GAP, _MARK = 0.03, (0.022, 0.036)
# How far up and down a name may move, in lines.
_MOVES = (0, 1, -1, 2, -2, 3, -3, 4, -4)


@dataclass(frozen=True, slots=True)
class Tested:
    """An event as a test: what it accuses, and its two errors with their intervals."""

    name: str
    guess: str
    alpha: tuple[float, float, float]
    beta: tuple[float, float, float]


def region(result: AuditResult, one: Certificate | ExactCertificate) -> Picture | None:
    """Return the trade-off of the claim, and the errors of the events as tests of it."""
    every = tested_events(one)
    if not every:
        return None
    events = every[:_MOST_EVENTS]
    shown = _window(events, result.claim)
    is_exact = isinstance(one, ExactCertificate)
    boxes = (
        ()
        if is_exact
        else (Key("box", "area", f"{numbers.level(result.confidence)} interval of both"),)
    )
    guesses = sorted({event.guess for event in events})
    points = [Key(guess, _SHAPE[guess], f"event for {guess}") for guess in guesses]
    said = [
        f"{event.name}: α {numbers.share(event.alpha[0])}, β {numbers.share(event.beta[0])}"
        for event in events
    ]
    notes = [_OF_EVENTS, _OF_LAW if is_exact else _OF_ESTIMATES]
    if shown < 1:
        notes.append("Shown is the corner in which the events are, since they are rare.")
    if len(every) > len(events):
        notes.append(f"{len(every) - len(events):,} more events are not drawn.")
    return Picture(
        "region",
        "Errors of a test between d1 and d2",
        _drawn(events, result.claim, shown),
        (Key("claim", "line", "least miss rate of the claim"),
         Key("region", "area", "allowed by the claim"),
         Key("even", "line", "blind guesses"), *points, *boxes),
        f"The curve of the claim, and the events. {'; '.join(said)}.",
        tuple(notes),
        ("event", "error", "share", "at least", "at most"),
        tuple(
            (event.name, sign, numbers.share(of[0]), numbers.share(of[1], numbers.DOWN),
             numbers.share(of[2], numbers.UP))
            for event in events
            for sign, of in (("α", event.alpha), ("β", event.beta))
        ),
    )  # fmt: skip


def _drawn(events: Sequence[Tested], claim: PrivacyClaim, shown: float) -> str:
    canvas = Canvas(Scale(0, shown), Scale(1 - shown, 1), "false alarms α", "misses β")
    canvas.ticks()
    curve, opposite = _tradeoff(claim, shown)
    canvas.area("region", [*curve, *opposite[::-1]])
    canvas.line("even", [(0.0, 1.0), (shown, 1 - shown)])
    canvas.line("claim", curve)
    for event in events:
        is_estimate = event.alpha[1] < event.alpha[2]
        size = _ESTIMATE if is_estimate else 1.0
        canvas.mark(event.guess, _SHAPE[event.guess], event.alpha[0], event.beta[0], size)
        if is_estimate:  # over the marker, which would hide a small one
            canvas.box(f"box {event.guess}", event.alpha[1:], event.beta[1:])
    marks = [(one.alpha[0] / shown, 1 - (1 - one.beta[0]) / shown) for one in events]
    spots = [_spot(one, name, shown) for one, name in _labels(events, 0.06 * shown)]
    for one, (x, y, name, anchor) in zip(spots, _placed(spots, marks), strict=True):
        place = x * shown, 1 - (1 - y) * shown
        if abs(y - one.y) > _FAR:
            canvas.line("leader", [(one.x * shown, 1 - (1 - one.y) * shown), place])
        canvas.word(*place, name, anchor)
    return canvas.markup()


def tested_events(one: Certificate | ExactCertificate) -> list[Tested]:
    """Return the events that were tested, named as the rows of the certificate are."""
    if isinstance(one, ExactCertificate):
        return [] if one.event is None else [_tested("E", one.event)]
    events = one.fixed.events
    names = [f"E{place + 1}" for place in range(len(events))] if len(events) > 1 else ["E"]
    return [_tested(name, event) for name, event in zip(names, events, strict=False)]


def _tested(name: str, event: EventCount | ExactEvent) -> Tested:
    if isinstance(event, ExactEvent):
        d1, d2 = ((one, one, one) for one in (event.probability_d1, event.probability_d2))
    else:
        d1 = (ratio(event.count_d1, event.draws_d1), *event.interval_d1)
        d2 = (ratio(event.count_d2, event.draws_d2), *event.interval_d2)
    ahead, behind = (d1, d2) if event.guess == "d1" else (d2, d1)
    return Tested(name, event.guess, behind, (1 - ahead[0], 1 - ahead[2], 1 - ahead[1]))


def _labels(events: Sequence[Tested], room: float) -> list[tuple[Tested, str]]:
    """Return events with their names; those that lie upon each other share a place."""
    found: list[tuple[Tested, str]] = []
    for event in events:
        for place, (other, name) in enumerate(found):
            if max(abs(event.alpha[0] - other.alpha[0]), abs(event.beta[0] - other.beta[0])) < room:
                found[place] = (other, f"{name}, {event.name}")
                break
        else:
            found.append((event, event.name))
    return found


def _spot(event: Tested, name: str, shown: float) -> _Spot:
    """Return what a name stands beside, in shares of what is shown."""
    left, right = (event.alpha[end] / shown for end in (1, 2))
    below, above = (1 - (1 - event.beta[end]) / shown for end in (1, 2))
    return _Spot(
        name, event.alpha[0] / shown, 1 - (1 - event.beta[0]) / shown, left, right, below, above
    )


def _window(events: Sequence[Tested], claim: PrivacyClaim) -> float:
    """Return how much of both axes is shown: 1, or less where all events are rare, and the curve of
    the claim begins among them."""
    furthest = max(max(event.alpha[2], 1 - event.beta[1]) for event in events)
    needed = 2.5 * max(furthest, 1 - tradeoff(claim, 0.0))
    if not 0 < needed < _RARE:
        return 1.0
    # A round number.
    size = 10.0 ** math.floor(math.log10(needed))
    return size * math.ceil(needed / size - 1e-9)


@lru_cache(maxsize=64)
def _tradeoff(claim: PrivacyClaim, shown: float) -> tuple[Points, Points]:
    """Return the curve of a claim, with more points where it is steep, and the upper edge of what
    it allows: the same for whoever always guesses the other way round."""
    half = [0.5 * shown * (step / STEPS) ** 2 for step in range(STEPS + 1)]
    alphas = [*half, *(shown - one for one in half[-2::-1])]
    lower = [(alpha, tradeoff(claim, alpha)) for alpha in alphas]
    upper = [(alpha, 1 - tradeoff(claim, 1 - alpha)) for alpha in alphas]
    if shown == 1:
        return lower, upper
    # Cut off where the curve leaves what is shown.
    floor = 1 - shown
    inside = [one for one in lower if one[1] >= floor]
    if len(inside) == len(lower):
        return lower, upper
    (left, above), (right, below) = lower[len(inside) - 1], lower[len(inside)]
    edge = left + (right - left) * (above - floor) / (above - below)
    return [*inside, (edge, floor)], [*upper, (shown, floor)]


@dataclass(frozen=True, slots=True)
class _Spot:
    """A mark with a name. left, right, below, above: the box around the mark."""

    name: str
    x: float
    y: float
    left: float
    right: float
    below: float
    above: float


_Box = tuple[float, float, float, float]
_Place = tuple[float, float, str, str]


def _placed(spots: Sequence[_Spot], marks: Sequence[tuple[float, float]]) -> list[_Place]:
    """Return for each name its place, and which end of the name stands there: beside its box, or
    moved where it would cover a mark or another name."""
    wide, high = _MARK
    taken: list[_Box] = [(x - wide, x + wide, y - high, y + high) for x, y in marks]
    found = []
    for one in spots:
        best = min(_places(one), key=lambda place: _covered(_box(place), taken))
        taken.append(_box(best))
        found.append(best)
    return found


def _places(one: _Spot) -> Iterator[_Place]:
    """Yield the places that a name may have, those first that are read most easily."""
    for move in _MOVES:
        y = one.y - 0.02 + move * _LINE
        yield one.right + _GAP, y, one.name, "start"
        yield one.left - _GAP, y, one.name, "end"
    yield one.x, one.above + _GAP, one.name, "middle"
    yield one.x, one.below - _LINE, one.name, "middle"


def _box(place: _Place) -> _Box:
    x, y, name, anchor = place
    wide = _LETTER * len(name)
    left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
    return left, left + wide, y - 0.01, y + _LINE - 0.01


def _covered(box: _Box, taken: Sequence[_Box]) -> float:
    """Return how much of a box is taken, or lies outside of the drawing."""
    left, right, below, above = box
    outside = max(0.0, -left) + max(0.0, right - 1) + max(0.0, -below) + max(0.0, above - 1.05)
    shared = sum(
        max(0.0, min(right, other[1]) - max(left, other[0]))
        * max(0.0, min(above, other[3]) - max(below, other[2]))
        for other in taken
    )
    return round(outside + shared, 9)
