"""The wealth of the bettors against the claim, over the draws."""

from __future__ import annotations

import math

from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.wealth import beliefs_of, course
from dpaudit.reports import numbers
from dpaudit.reports.html.canvas import Canvas, Scale
from dpaudit.reports.html.pictures.picture import Key, Picture

_MOST_LOOKS, _SMALLEST_WEALTH = 200, 1e-6


def wealth(one: Certificate) -> Picture | None:
    """Return the wealth of the bettors against the claim, after every look."""
    looks = course(one.betting_point, [beliefs_of(believed) for believed in one.rounds], one.blocks)
    if not looks or not one.alpha_betting:
        return None
    needed = 1 / one.alpha_betting
    every = [(draws, math.exp(min(max(log, -690.0), 690.0))) for draws, log in looks]
    largest, last = max(wealth for _, wealth in every), max(draws for draws, _ in every)
    smallest = max(_SMALLEST_WEALTH, min(1.0, *(wealth for _, wealth in every)))
    low, high = 10.0 ** math.floor(math.log10(smallest)), 3 * max(largest, needed)
    canvas = Canvas(Scale(0, last), Scale(low, high, is_log=True), "draws", "wealth")
    canvas.ticks()
    canvas.line("even", [(0.0, 1.0), (last, 1.0)])
    canvas.line("bound", [(0.0, needed), (last, needed)])
    canvas.word(0.02 * last, 1.2 * needed, f"violation at {numbers.about(needed)}", "start")
    canvas.line("wealth", [(0.0, 1.0), *_thinned(every)])
    told = numbers.at_least(largest)  # rounded as in the text
    notes = [
        "Bettors stake on what comes next before it is drawn; of a claim that holds, wealth hardly "
        "ever grows. The certificate counts the smallest of the wealths against the claimed ε and "
        "every smaller one."
    ]
    if any(wealth < low for _, wealth in every):
        notes.append(f"What is below {numbers.about(low)} is drawn at the edge.")
    rows = _thinned(every, 20)
    if len(rows) < len(every):
        notes.append(f"The table has {len(rows)} of {len(every):,} looks.")
    return Picture(
        "wealth",
        "Wealth of the bettors over the draws",
        canvas.markup(),
        (Key("wealth", "line", "wealth against the claim"),
         Key("bound", "line", "violation"), Key("even", "line", "where it began")),
        f"From 1, wealth reached at most {told} within {last:,} draws; betting alone refutes the "
        f"claim at {numbers.about(needed)}.",
        tuple(notes),
        ("draws", "wealth"),
        tuple((f"{draws:,}", numbers.at_least(wealth)) for draws, wealth in rows),
    )  # fmt: skip


def _thinned(looks: list[tuple[int, float]], most: int = _MOST_LOOKS) -> list[tuple[int, float]]:
    """Return at most so many looks, the largest wealth and the last one among them."""
    if len(looks) <= most:
        return looks
    step = math.ceil(len(looks) / (most - 2))
    kept = {*range(0, len(looks), step), len(looks) - 1}
    kept.add(max(range(len(looks)), key=lambda place: looks[place][1]))
    return [looks[place] for place in sorted(kept)]
