"""Draw the figures of two error rates: of each event, and of guesses from the scores of canaries.

An event is a test of one input against the other: it has a false-alarm rate and a miss rate, which
the trade-off curve of the claim bounds. The names of close marks are moved so that they do not
overlap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dpaudit.certificates.canary_certificate import CanaryScores, OneRunCertificate
from dpaudit.certificates.certificate import Certificate, EventCount, ExactCertificate, ExactEvent
from dpaudit.certificates.result import AuditResult
from dpaudit.claims import PrivacyClaim
from dpaudit.claims.tradeoff import at_bound, tradeoff
from dpaudit.reports import numbers
from dpaudit.reports.html.canvas import STEPS, Canvas, Key, Picture, Points, Scale, ratio

_MAX_EVENTS = 8
# Rare events lie near the corner of the figure with false-alarm rate 0 and miss rate 1. If all
# events and the beginning of the claim's curve lie there, only this corner is shown. It may
# take at most this share of each axis; otherwise the whole figure is shown.
_MAX_CORNER = 0.3
# Size of an estimate's mark, relative to the mark of an exact value. It is smaller because the box
# around it, with the confidence intervals, matters more.
_ESTIMATE_SIZE = 0.75
# A name in the figure is written near its mark. If their vertical distance, as a share of the
# height of the figure, is larger than this, a line connects the two.
_MAX_NAME_DISTANCE = 0.07
_SHAPE = {"d1": "circle", "d2": "diamond"}
_OF_EVENTS = "An event is a test of one input against the other."
_OF_LAW = "The claim allows no point below its curve."
_OF_ESTIMATES = (
    "Markers are estimates from the draws; the errors themselves may be anywhere in the box. A "
    "marker below the curve refutes nothing: only an event whose whole box lies below the curve is "
    "evidence against the claim. Each interval holds by itself; the verdict follows from the exact "
    "test and the bets."
)
# Width of a letter, as a share of the drawing's width.
_LETTER_WIDTH = 0.025
# Height of a line of text, as a share of the drawing's height.
_LINE_HEIGHT = 0.08
_GAP, _MARK = 0.03, (0.022, 0.036)
# Vertical shifts of a name that are tried, in lines of text, to find a place where it overlaps
# least.
_MOVES = (0, 1, -1, 2, -2, 3, -3, 4, -4)
_NO_BOUND = (
    "The curve of the scores is an estimate, and proves nothing by itself: if the canaries leak "
    "together, it may lie below the claim by chance. The verdict follows from the guesses."
)


@dataclass(frozen=True, slots=True)
class Tested:
    """An event as a test of one input against the other. It has a name, such as `E1`, a false-alarm
    rate and a miss rate, each as (estimate, lower bound, upper bound)."""

    name: str
    guess: str
    alpha: tuple[float, float, float]
    beta: tuple[float, float, float]


def region(result: AuditResult, certificate: Certificate | ExactCertificate) -> Picture | None:
    """Return a figure of the claim's trade-off curve and all events' error rates, or None."""
    every = tested_events(certificate)
    if not every:
        return None
    events = every[:_MAX_EVENTS]
    shown = _window(events, result.claim)
    is_exact = isinstance(certificate, ExactCertificate)
    boxes = (
        ()
        if is_exact
        else (Key("box", "area", f"{numbers.level(result.confidence)} interval of both"),)
    )
    guesses = sorted({event.guess for event in events})
    points = [Key(guess, _SHAPE[guess], f"event for {guess}") for guess in guesses]
    sentences = [
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
        _drawing(events, result.claim, shown),
        (Key("claim", "line", "least miss rate of the claim"),
         Key("region", "area", "allowed by the claim"),
         Key("even", "line", "blind guesses"), *points, *boxes),
        f"The curve of the claim, and the events. {'; '.join(sentences)}.",
        tuple(notes),
        ("event", "error", "share", "at least", "at most"),
        tuple(
            (event.name, sign, numbers.share(of[0]), numbers.share(of[1], numbers.DOWN),
             numbers.share(of[2], numbers.UP))
            for event in events
            for sign, of in (("α", event.alpha), ("β", event.beta))
        ),
    )  # fmt: skip


def _drawing(events: Sequence[Tested], claim: PrivacyClaim, shown: float) -> str:
    canvas = Canvas(Scale(0, shown), Scale(1 - shown, 1), "false alarms α", "misses β")
    canvas.ticks()
    curve, opposite = _tradeoff(claim, shown)
    canvas.area("region", [*curve, *opposite[::-1]])
    canvas.line("even", [(0.0, 1.0), (shown, 1 - shown)])
    canvas.line("claim", curve)
    for event in events:
        is_estimate = event.alpha[1] < event.alpha[2]
        size = _ESTIMATE_SIZE if is_estimate else 1.0
        canvas.mark(event.guess, _SHAPE[event.guess], event.alpha[0], event.beta[0], size)
        if is_estimate:  # drawn after the mark, which would hide a small box
            canvas.box(f"box {event.guess}", event.alpha[1:], event.beta[1:])
    marks = [(event.alpha[0] / shown, 1 - (1 - event.beta[0]) / shown) for event in events]
    spots = [_spot(event, name, shown) for event, name in _labels(events, 0.06 * shown)]
    for spot, (x, y, name, anchor) in zip(spots, _placed(spots, marks), strict=True):
        position = x * shown, 1 - (1 - y) * shown
        if abs(y - spot.y) > _MAX_NAME_DISTANCE:
            canvas.line("leader", [(spot.x * shown, 1 - (1 - spot.y) * shown), position])
        canvas.word(*position, name, anchor)
    return canvas.markup()


def tested_events(certificate: Certificate | ExactCertificate) -> list[Tested]:
    """Return the tested events. They have the same names as in the text report."""
    if isinstance(certificate, ExactCertificate):
        return [] if certificate.event is None else [_tested("E", certificate.event)]
    events = certificate.fixed.events
    names = [f"E{index + 1}" for index in range(len(events))] if len(events) > 1 else ["E"]
    return [_tested(name, event) for name, event in zip(names, events, strict=False)]


def _tested(name: str, event: EventCount | ExactEvent) -> Tested:
    if isinstance(event, ExactEvent):
        d1, d2 = ((p, p, p) for p in (event.probability_d1, event.probability_d2))
    else:
        d1 = (ratio(event.count_d1, event.draws_d1), *event.interval_d1)
        d2 = (ratio(event.count_d2, event.draws_d2), *event.interval_d2)
    likely, unlikely = (d1, d2) if event.guess == "d1" else (d2, d1)
    return Tested(name, event.guess, unlikely, (1 - likely[0], 1 - likely[2], 1 - likely[1]))


def _labels(events: Sequence[Tested], room: float) -> list[tuple[Tested, str]]:
    """Return (event, label) pairs; marks less than `room` apart share a label, such as `E1, E2`."""
    labels: list[tuple[Tested, str]] = []
    for event in events:
        for index, (mark, name) in enumerate(labels):
            if max(abs(event.alpha[0] - mark.alpha[0]), abs(event.beta[0] - mark.beta[0])) < room:
                labels[index] = (mark, f"{name}, {event.name}")
                break
        else:
            labels.append((event, event.name))
    return labels


def _spot(event: Tested, name: str, shown: float) -> _Mark:
    """Return the mark of an event and the box around it, in shares of the drawing."""
    left, right = (event.alpha[end] / shown for end in (1, 2))
    below, above = (1 - (1 - event.beta[end]) / shown for end in (1, 2))
    return _Mark(
        name, event.alpha[0] / shown, 1 - (1 - event.beta[0]) / shown, left, right, below, above
    )


def _window(events: Sequence[Tested], claim: PrivacyClaim) -> float:
    """Return the visible share of each axis. It is 1 unless events are rare and the curve near."""
    furthest = max(max(event.alpha[2], 1 - event.beta[1]) for event in events)
    needed = 2.5 * max(furthest, 1 - tradeoff(claim, 0.0))
    if not 0 < needed < _MAX_CORNER:
        return 1.0
    # Round the visible part of each axis up to one significant digit, such as 0.034 to 0.04.
    size = 10.0 ** math.floor(math.log10(needed))
    return size * math.ceil(needed / size - 1e-9)


@lru_cache(maxsize=64)
def _tradeoff(claim: PrivacyClaim, shown: float) -> tuple[Points, Points]:
    """Return the lower and the upper edge of the region of error rates that a claim allows."""
    # The upper edge belongs to a test that always guesses the opposite.
    half = [0.5 * shown * (step / STEPS) ** 2 for step in range(STEPS + 1)]
    alphas = [*half, *(shown - alpha for alpha in half[-2::-1])]
    lower = [(alpha, tradeoff(claim, alpha)) for alpha in alphas]
    upper = [(alpha, 1 - tradeoff(claim, 1 - alpha)) for alpha in alphas]
    if shown == 1:
        return lower, upper
    # The visible corner contains the second error rates (β) from `floor` to 1. The curve ends where
    # β falls below `floor`; this point is found by interpolation.
    floor = 1 - shown
    inside = [point for point in lower if point[1] >= floor]
    if len(inside) == len(lower):
        return lower, upper
    (left, above), (right, below) = lower[len(inside) - 1], lower[len(inside)]
    edge = left + (right - left) * (above - floor) / (above - below)
    return [*inside, (edge, floor)], [*upper, (shown, floor)]


@dataclass(frozen=True, slots=True)
class _Mark:
    """A mark at (x, y) with a name, and the box around it."""

    name: str
    x: float
    y: float
    left: float
    right: float
    below: float
    above: float


_Box = tuple[float, float, float, float]
# (x, y, name, part of the name at (x, y): start, middle or end).
_Position = tuple[float, float, str, str]


def _placed(spots: Sequence[_Mark], marks: Sequence[tuple[float, float]]) -> list[_Position]:
    """Return for each name the position at which it overlaps least with marks and other names."""
    wide, high = _MARK
    taken: list[_Box] = [(x - wide, x + wide, y - high, y + high) for x, y in marks]
    positions = []
    for spot in spots:
        best = min(_positions(spot), key=lambda position: _covered(_box(position), taken))
        taken.append(_box(best))
        positions.append(best)
    return positions


def _positions(spot: _Mark) -> Iterator[_Position]:
    """Yield possible positions for the name of a mark, the most readable first."""
    for move in _MOVES:
        y = spot.y - 0.02 + move * _LINE_HEIGHT
        yield spot.right + _GAP, y, spot.name, "start"
        yield spot.left - _GAP, y, spot.name, "end"
    yield spot.x, spot.above + _GAP, spot.name, "middle"
    yield spot.x, spot.below - _LINE_HEIGHT, spot.name, "middle"


def _box(position: _Position) -> _Box:
    x, y, name, anchor = position
    wide = _LETTER_WIDTH * len(name)
    left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
    return left, left + wide, y - 0.01, y + _LINE_HEIGHT - 0.01


def _covered(box: _Box, taken: Sequence[_Box]) -> float:
    """Return by how much `box` overlaps the `taken` boxes, plus the lengths outside the drawing."""
    left, right, below, above = box
    outside = max(0.0, -left) + max(0.0, right - 1) + max(0.0, -below) + max(0.0, above - 1.05)
    shared = sum(
        max(0.0, min(right, obstacle[1]) - max(left, obstacle[0]))
        * max(0.0, min(above, obstacle[3]) - max(below, obstacle[2]))
        for obstacle in taken
    )
    return round(outside + shared, 9)


def score_pictures(result: AuditResult, run: OneRunCertificate) -> list[Picture]:
    """Return the figures about the scores, or [] if the user gave guesses without scores."""
    if run.scores is None:
        return []
    return [_errors(result, run, run.scores), _histogram(run.scores)]


def _errors(result: AuditResult, run: OneRunCertificate, scores: CanaryScores) -> Picture:
    """Return the trade-off curves of the claim, of the certified bound, and of the scores."""
    canvas = Canvas(Scale(0, 1), Scale(0, 1), "false positives", "misses")
    canvas.ticks()
    alphas = [(step / (2 * STEPS)) ** 2 for step in range(2 * STEPS + 1)]
    curve = [(alpha, tradeoff(result.claim, alpha)) for alpha in alphas]
    canvas.area("region", [*curve, (1.0, 1.0)])
    canvas.line("even", [(0.0, 1.0), (1.0, 0.0)])
    canvas.line("claim", curve)
    mu = None if run.mu_lower is None else float(numbers.at_least(run.mu_lower))
    certified = at_bound(float(numbers.at_least(run.epsilon_lower)), run.point.delta, mu)
    if certified is not None:
        canvas.line("bound", [(alpha, tradeoff(certified, alpha)) for alpha in alphas])
    canvas.line("d1", [(wrong, 1 - right) for wrong, right in scores.roc])
    at_least = certified.describe() if certified is not None else "nothing"
    bound = f"certified: no guarantee below {at_least} holds"
    return Picture(
        "roc",
        "Errors of guesses from the scores",
        canvas.markup(),
        (Key("claim", "line", "fewest misses under the claim"),
         Key("region", "area", "allowed by the claim"), Key("d1", "line", "the scores"),
         *((Key("bound", "line", bound),) if certified is not None else ()),
         Key("even", "line", "blind guesses")),
        f"The curve of the claim, and that of the scores, with an AUROC of "
        f"{numbers.about(scores.auroc)}. Certified is {at_least}.",
        (_NO_BOUND,),
        ("false positives, at most", "true positives", "at least", "at most"),
        tuple(
            (numbers.share(rate.false_positives), numbers.share(rate.above / scores.included),
             numbers.share(rate.lower, numbers.DOWN), numbers.share(rate.upper, numbers.UP))
            for rate in scores.rates
        ),
    )  # fmt: skip


def _histogram(scores: CanaryScores) -> Picture:
    inside = [count / scores.included for count, _ in scores.histogram]
    outside = [count / scores.excluded for _, count in scores.histogram]
    bins = len(inside)
    canvas = Canvas(Scale(0, bins), Scale(0, 1.1 * max(*inside, *outside)), "score", "share")
    for edge in range(0, bins + 1, bins // 4):
        canvas.tick(edge, f"{scores.edges[edge]:.3g}")
    canvas.steps("d1", inside)
    canvas.steps("d2", outside)
    return Picture(
        "scores",
        "Scores of the canaries",
        canvas.markup(),
        (Key("d1", "line", f"in ({scores.included:,})"),
         Key("d2", "line", f"out ({scores.excluded:,})")),
        "The shares of the canaries that were in, and of those that were out, by score.",
        (),
        ("score from", "to", "in", "out"),
        tuple(
            (f"{low:.4g}", f"{high:.4g}", f"{included:,}", f"{excluded:,}")
            for low, high, (included, excluded) in zip(
                scores.edges, scores.edges[1:], scores.histogram, strict=False
            )
        ),
    )  # fmt: skip
