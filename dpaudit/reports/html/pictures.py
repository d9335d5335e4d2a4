"""Draw the figures of an audit: its outputs by level, its privacy profile and its betting wealth.
`region.py` draws the figures of error rates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from dpaudit.certificates.canary_certificate import OneRunCertificate
from dpaudit.certificates.certificate import Certificate, ExactCertificate
from dpaudit.certificates.result import AuditResult
from dpaudit.certificates.wealth import course
from dpaudit.reports import numbers
from dpaudit.reports.html.canvas import STEPS, Canvas, Key, Picture, Scale, ratio
from dpaudit.reports.html.region import region, score_pictures, tested_events
from dpaudit.wording import shortened

_MAX_BARS, _MAX_ROWS, _MAX_CHARACTERS = 100, 40, 60
_OF_LAW = "The probabilities are those that the mechanism's own pmf states."
_OF_DRAWS = "Counts of draws that had no part in choosing the event."
_OF_LEVELS = "A level is a set of outputs that the rule treats alike."
_IN_ORDER = "Levels that point to d2 stand on the left, levels that point to d1 on the right."
_BY_RULE = "Levels stand in the order of the rule."
_OF_TICKS = {
    True: "Below the axis are the scores at which an event begins or ends.",
    False: "Below the axis are the numbers of the first level, of the last one, and of those with "
    "which an event begins or ends.",
}
# Smallest distance between two labels below the axis, as a share of the axis. A closer label is
# left out.
_MIN_LABEL_DISTANCE = 0.14
# Claimed δ below which the axis of δ is logarithmic: a linear axis would show only 0.
_SMALL_DELTA = 0.02
_REFUTES = "A bound to the right of the claimed ε, or above the claimed δ, refutes the claim."
_FALL_SHORT = "Neither bound does so here: the p-value refutes the claim."
_MAX_LOOKS, _MIN_WEALTH = 200, 1e-6


def pictures(result: AuditResult) -> list[Picture]:
    """Return the figures of the pair of inputs that decides the verdict."""
    certificate = result.decisive
    if certificate is None:
        return []
    figures: list[Picture | None] = []
    if isinstance(certificate, Certificate | ExactCertificate):
        figures = [region(result, certificate), outputs(certificate)]
    if isinstance(certificate, OneRunCertificate):
        figures = [*score_pictures(result, certificate)]
    figures.insert(1, profile(result))
    if isinstance(certificate, Certificate):
        figures.append(wealth(certificate))
    return [picture for picture in figures if picture is not None]


def left_out(result: AuditResult) -> str:
    """Return sentences on figures that are missing, and why; "" if no figure is missing."""
    certificate = result.decisive
    if certificate is None:
        return "Nothing is drawn, since no pair of inputs was finished."
    if isinstance(certificate, ExactCertificate):
        return "Nothing was drawn at random, so that there is no wealth to show."
    if isinstance(certificate, OneRunCertificate) and certificate.scores is not None:
        return ""
    if not isinstance(certificate, Certificate):
        return (
            "One run has guesses in place of events: there are no errors of events, no outputs and "
            "no wealth to show."
        )
    missing = (
        []
        if tested_events(certificate)
        else ["No event was tested, so that there are no errors to show."]
    )
    if certificate.evidence.recording is not None:
        missing.append("Nothing is bet on recorded outputs, so that there is no wealth to show.")
    elif not any(block.round is not None for block in certificate.evidence.blocks):
        missing.append("Nothing was bet, so that there is no wealth to show.")
    return " ".join(missing)


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar in the figure of outputs, for a level or for a single output, with the shares of the
    draws of d1 and d2.

    guess: if the bar belongs to an event, its guess; else None.
    tick: text below the left edge of the bar. It contains no text from a user.
    """

    words: str
    d1: float
    d2: float
    guess: str | None = None
    tick: str = ""


def outputs(certificate: Certificate | ExactCertificate) -> Picture | None:
    """Return a figure of each input's share of draws in every level, or at every single output.
    Events are shaded. Return None if there are no draws."""
    every, words = bars_of(certificate)
    bars = [bar for bar in every if bar.d1 or bar.d2]
    if not bars:
        return None
    shown = likeliest(bars)
    highest = max(max(bar.d1, bar.d2) for bar in shown)
    is_law = isinstance(certificate, ExactCertificate)
    across = "outcomes" if is_law else words
    canvas = Canvas(Scale(0, len(shown)), Scale(0, 1.18 * highest), across, "share of each input")
    _shade(canvas, shown, highest)
    is_marked = _mark_ends(canvas, shown, by_score=words.endswith("score"))
    canvas.steps("d1", [bar.d1 for bar in shown])
    canvas.steps("d2", [bar.d2 for bar in shown])
    chosen = [guess for guess in ("d1", "d2") if any(bar.guess == guess for bar in shown)]
    sums = [
        f"the event for {guess} has {_sum(every, guess, 'd1')} of d1 and "
        f"{_sum(every, guess, 'd2')} of d2"
        for guess in chosen
    ]
    notes = [_OF_LAW] if is_law else [_OF_DRAWS]
    if words.startswith("levels"):
        notes += [_OF_LEVELS, _IN_ORDER if _is_sorted(every) else _BY_RULE]
    notes += [_OF_TICKS[words.endswith("score")]] if is_marked else []
    if len(shown) < len(bars):
        notes.append(f"{len(bars) - len(shown):,} more, none of them likelier, are not drawn.")
    rows = shown[:_MAX_ROWS]
    if len(rows) < len(shown):
        notes.append(f"The table has the first {len(rows):,}.")
    return Picture(
        "outputs",
        "Probabilities of the outcomes" if is_law else "Where the test draws fell",
        canvas.markup(),
        (Key("d1", "line", "d1"), Key("d2", "line", "d2"),
         *(Key(f"event {guess}", "area", f"chosen event for {guess}{_words_of(certificate, guess)}")
           for guess in chosen)),
        f"The shares of d1 and of d2, by {across}" + (f": {'; '.join(sums)}." if sums else "."),
        tuple(notes),
        ("outcome" if is_law else "level", "d1", "d2", "event"),
        tuple(
            (shortened(bar.words, _MAX_CHARACTERS), numbers.share(bar.d1), numbers.share(bar.d2),
             f"for {bar.guess}" if bar.guess else "")
            for bar in rows
        ),
    )  # fmt: skip


def _words_of(certificate: Certificate | ExactCertificate, guess: str) -> str:
    """Return the description of the event for `guess`; "" if there is none, or more than one."""
    every = (
        [certificate.event]
        if isinstance(certificate, ExactCertificate)
        else certificate.fixed.events
    )
    words = [event.words for event in every if event is not None and event.guess == guess]
    return f": {shortened(words[0], _MAX_CHARACTERS)}" if len(words) == 1 else ""


def _shade(canvas: Canvas, shown: list[Bar], highest: float) -> None:
    """Shade the bars of the events, and write each event's input above its widest piece."""
    pieces: dict[str, list[tuple[int, int]]] = {}
    for guess, group in groupby(enumerate(shown), key=lambda entry: entry[1].guess):
        indexes = [index for index, _ in group]
        if guess is not None:
            pieces.setdefault(guess, []).append((indexes[0], indexes[-1] + 1))
    middles: list[float] = []
    for guess in sorted(pieces):
        for piece in pieces[guess]:
            canvas.box(f"event {guess}", piece, (0, 1.18 * highest))
        first, last = max(pieces[guess], key=lambda piece: piece[1] - piece[0])
        middle = (first + last) / 2
        is_near = any(abs(middle - neighbour) < 0.2 * len(shown) for neighbour in middles)
        canvas.word(middle, (0.98 if is_near else 1.09) * highest, f"for {guess}")
        middles.append(middle)


def _mark_ends(canvas: Canvas, shown: list[Bar], *, by_score: bool) -> bool:
    """Label the ends of events or, if bars are no intervals, the bars next to these ends."""
    last = len(shown) - 1
    ends = [index for index in range(1, last + 1) if shown[index].guess != shown[index - 1].guess]
    # Indices of the bars to label. They are labelled in this order, and a label without room is
    # left out. So the first and the last bar come before the ends of events.
    wanted = ends if by_score else [0, last, *ends, *(index - 1 for index in ends)]
    taken: list[float] = []
    for index in dict.fromkeys(wanted):
        at = index + (0.0 if by_score else 0.5)
        is_free = all(abs(at - tick) >= _MIN_LABEL_DISTANCE * len(shown) for tick in taken)
        if shown[index].tick and is_free:
            canvas.tick(at, shown[index].tick)
            taken.append(at)
    return bool(taken)


def _is_sorted(bars: Sequence[Bar]) -> bool:
    """Return whether all bars of the event for d2 are to the left of those of the event for d1."""
    # Bars that belong to neither event may lie between the bars of the two events. If the last bar
    # belongs to neither, it is ignored: it may stand for new outputs, or for outputs without a
    # score, which have no place in the order.
    ranks = [{"d2": 0, None: 1, "d1": 2}[bar.guess] for bar in bars]
    ordered = ranks if ranks[-1] != 1 else ranks[:-1]
    return set(ranks) != {1} and ordered == sorted(ordered)


def likeliest(bars: list[Bar]) -> list[Bar]:
    """Return the highest `_MAX_BARS` bars, in order. Of equal bars, some may be left out."""
    if len(bars) <= _MAX_BARS:
        return bars
    heights = [max(bar.d1, bar.d2) for bar in bars]
    least = sorted(heights, reverse=True)[_MAX_BARS - 1]
    indexes = {index for index, height in enumerate(heights) if height > least}
    alike = [index for index, height in enumerate(heights) if height == least]
    room = _MAX_BARS - len(indexes)
    indexes |= {alike[index * len(alike) // room] for index in range(room)}
    return [bars[index] for index in sorted(indexes)]


def bars_of(certificate: Certificate | ExactCertificate) -> tuple[list[Bar], str]:
    """Return one bar for each outcome or level, and the noun that names a bar."""
    if isinstance(certificate, ExactCertificate):
        return list(_law(certificate)), "outcomes"
    fixed = certificate.fixed
    if fixed.method == "probabilistic":
        d1, d2 = (fixed.events[0].draws_d1, fixed.events[0].draws_d2) if fixed.events else (0, 0)
        certified = {(event.words, event.guess) for event in fixed.events}
        atoms = certificate.evidence.accused if fixed.events else ()
        return [
            Bar(words, ratio(p, d1), ratio(q, d2), guess if is_certified else None)
            for words, guess, p, q in atoms
            for is_certified in [(f"output is {words}", guess) in certified]
        ], "suspected outputs"
    counts = [(p, q) for p, q in certificate.evidence.total.counts.tolist()]
    if certificate.ended_by_bets and fixed.events:
        indexes = {"d1": 0, "d2": 1}
        for event in fixed.events:
            counts[indexes[event.guess]] = (event.count_d1, event.count_d2)
        totals = [sum(pair[arm] for pair in counts) for arm in (0, 1)]
        event = fixed.events[0]
        counts[-1] = (event.draws_d1 - totals[0], event.draws_d2 - totals[1])
    all_d1, all_d2 = sum(p for p, _ in counts), sum(q for _, q in counts)
    names = {1: "d1", -1: "d2"} if fixed.events else {}
    return [
        Bar(word, ratio(p, all_d1), ratio(q, all_d2), names.get(guess), tick)
        for (word, tick), (p, q), guess in zip(
            _levels(certificate), counts, certificate.fixed.rule.guesses, strict=True
        )
    ], "levels of the score" if _has_edges(certificate) else "levels"


def _has_edges(certificate: Certificate) -> bool:
    """Return whether the certificate's levels are intervals of a score."""
    # Behind the intervals are the level without a score and the levels of side rules.
    if certificate.scores is None:
        return False
    added = len(certificate.fixed.rule.guesses) - len(certificate.scores.edges) - 2
    return added >= 0 if certificate.others else added == 0


def _levels(certificate: Certificate) -> list[tuple[str, str]]:
    """Return (description, label below the axis) for each level."""
    if certificate.scores is None or not _has_edges(certificate):
        return [
            (str(level + 1), str(level + 1)) for level in range(len(certificate.fixed.rule.guesses))
        ]
    written = [numbers.about(edge) for edge in certificate.scores.edges]
    between = [f"score {low} to {high}" for low, high in pairwise(written)]
    words = ["any score", "no score"]
    if written:
        words = [f"score below {written[0]}", *between, f"score above {written[-1]}", "no score"]
    levels = list(zip(words, ["", *written, "no score"], strict=True))
    return levels + [
        _added(certificate, level)
        for level in range(len(levels), len(certificate.fixed.rule.guesses))
    ]


def _added(certificate: Certificate, level: int) -> tuple[str, str]:
    """Return (description, label) for a level that a side rule added to those of the main rule."""
    names = {1: "d1", -1: "d2"}
    guessed = [
        f"{rule.rule.kind} rule: {names[rule.rule.guesses[level]]}"
        for rule in certificate.rules
        if rule.rule.kind != "main" and rule.rule.guesses[level]
    ]
    kind = "rare outputs" if any(text.startswith("rare") for text in guessed) else "other outputs"
    return f"{kind} ({', '.join(guessed)})", kind


def _law(certificate: ExactCertificate) -> Iterator[Bar]:
    """Yield a bar for each outcome of an exact mechanism. Bars of the event have its guess."""
    # The event consists of the outcomes with p > e^ε q; none is marked if its recorded
    # probability differs from theirs.
    event, factor = certificate.event, math.exp(min(certificate.point.epsilon, 700.0))
    guesses: list[str | None] = [None] * len(certificate.law)
    if event is not None:
        pairs = [(p, q) if event.guess == "d1" else (q, p) for _, p, q in certificate.law]
        inside = [p > factor * q for p, q in pairs]
        probability = math.fsum(
            row[1] for row, is_in in zip(certificate.law, inside, strict=True) if is_in
        )
        if math.isclose(probability, event.probability_d1, rel_tol=1e-9, abs_tol=1e-12):
            guesses = [event.guess if is_in else None for is_in in inside]
    for (words, p, q), guess in zip(certificate.law, guesses, strict=True):
        yield Bar(words, p, q, guess)


def _sum(bars: Sequence[Bar], guess: str, arm: str) -> str:
    return numbers.share(min(1.0, math.fsum(getattr(b, arm) for b in bars if b.guess == guess)))


def profile(result: AuditResult) -> Picture:
    """Return a figure of the claim's privacy profile δ(ε), the lower bound for ε at the tested δ,
    and the lower bound for δ at the tested ε."""
    claim, point = result.claim, result.point
    epsilon, delta, last = result.epsilon_lower, result.delta_lower, max(1.0, 1.5 * point.epsilon)
    if math.isinf(epsilon):
        epsilon = last  # an infinite bound is drawn at the edge
    else:
        last = max(last, 1.15 * epsilon)
    values = [last * step / STEPS for step in range(STEPS + 1)] + [point.epsilon]
    curve = [(value, claim.profile(value)) for value in sorted(values)]
    is_log = 0 < point.delta < _SMALL_DELTA
    smallest = min(value for value in (point.delta, delta, 1.0) if value > 0) if is_log else 0.0
    low = 10.0 ** (math.floor(math.log10(max(smallest, 1e-300))) - 1) if is_log else 0.0
    height = 1.0 if is_log else max(0.1, 1.15 * max(delta, *(y for _, y in curve)))
    canvas = Canvas(Scale(0, last), Scale(low, min(1.0, height), is_log), "ε", "δ")
    canvas.ticks()
    canvas.area("region", [(0.0, low), *curve, (last, low)])
    canvas.line("claim", curve)
    exactly = not result.ending.by_chance
    bound, least_is = ("exact", "is") if exactly else ("certified", "is at least")
    sure = "" if exactly else f", with {numbers.level(result.confidence)} confidence"
    canvas.line("bound", [(0.0, point.delta), (epsilon, point.delta)])
    canvas.mark("bound", "right", epsilon, point.delta)
    if delta > 0:
        canvas.line("bound", [(0.0, delta), (point.epsilon, delta)])
        canvas.mark("bound", "up", point.epsilon, delta)
    at_delta, at_epsilon = numbers.plain(point.delta), numbers.plain(point.epsilon)
    least = numbers.at_least(result.epsilon_lower, above=point.epsilon)
    least_delta = numbers.at_least(delta, above=point.delta)
    return Picture(
        "profile",
        "Privacy profile δ(ε)",
        canvas.markup(),
        (Key("claim", "line", "the claim"), Key("region", "area", "allowed by the claim"),
         Key("bound", "right", f"{bound}: ε {least_is} this"),
         *((Key("bound", "up", f"{bound}: δ {least_is} this"),) if delta > 0 else ())),
        f"The curve of the claim. At δ = {at_delta}, ε {least_is} {least}; at ε = {at_epsilon}, δ "
        f"{least_is} {least_delta}{sure}.",
        (_REFUTES, *([_FALL_SHORT] if _falls_short(result) else [])),
        ("at", "claimed", bound if exactly else f"{bound}, at least"),
        ((f"ε at δ = {at_delta}", at_epsilon, least), (f"δ at ε = {at_epsilon}", at_delta,
                                                       least_delta)),
    )  # fmt: skip


def _falls_short(result: AuditResult) -> bool:
    """Return whether the claim is refuted although no bound exceeds the value that it claims."""
    # Holm's procedure may refute at a larger error probability than that of the bounds.
    point = result.point
    exceeds = result.epsilon_lower > point.epsilon or result.delta_lower > point.delta
    return result.is_refuted_tonight and result.ending.by_chance and not exceeds


def wealth(certificate: Certificate) -> Picture | None:
    """Return a figure of the betting wealth after each block of draws; None without bets."""
    looks = course(
        certificate.betting_point, certificate.evidence.rounds, certificate.evidence.blocks
    )
    if not looks or not certificate.alpha_betting:
        return None
    needed = 1 / certificate.alpha_betting
    every = [(draws, math.exp(min(max(log, -690.0), 690.0))) for draws, log in looks]
    largest, last = max(wealth for _, wealth in every), max(draws for draws, _ in every)
    smallest = max(_MIN_WEALTH, min(1.0, *(wealth for _, wealth in every)))
    low, high = 10.0 ** math.floor(math.log10(smallest)), 3 * max(largest, needed)
    canvas = Canvas(Scale(0, last), Scale(low, high, is_log=True), "draws", "wealth")
    canvas.ticks()
    canvas.line("even", [(0.0, 1.0), (last, 1.0)])
    canvas.line("bound", [(0.0, needed), (last, needed)])
    canvas.word(0.02 * last, 1.2 * needed, f"violation at {numbers.about(needed)}", "start")
    canvas.line("wealth", [(0.0, 1.0), *_thinned(every)])
    reached = numbers.at_least(largest)  # rounded as in the text
    notes = [
        "Bettors stake before each block is drawn. If the claim holds, wealth ever reaches w with "
        "probability at most 1/w. The certificate uses the smallest wealth against the claimed ε "
        "and all smaller values."
    ]
    if any(wealth < low for _, wealth in every):
        notes.append(f"What is below {numbers.about(low)} is drawn at the edge.")
    rows = _thinned(every, 20)
    if len(rows) < len(every):
        notes.append(f"The table has {len(rows):,} of {len(every):,} looks.")
    return Picture(
        "wealth",
        "Wealth of the bettors over the draws",
        canvas.markup(),
        (Key("wealth", "line", "wealth against the claim"),
         Key("bound", "line", "violation"), Key("even", "line", "where it began")),
        f"From 1, wealth reached at most {reached} within {last:,} draws; betting alone refutes "
        f"the claim at {numbers.about(needed)}.",
        tuple(notes),
        ("draws", "wealth"),
        tuple((f"{draws:,}", numbers.at_least(wealth)) for draws, wealth in rows),
    )  # fmt: skip


def _thinned(looks: list[tuple[int, float]], limit: int = _MAX_LOOKS) -> list[tuple[int, float]]:
    """Return at most `limit` of the looks, among them that of largest wealth and the last."""
    if len(looks) <= limit:
        return looks
    step = math.ceil(len(looks) / (limit - 2))
    indexes = {*range(0, len(looks), step), len(looks) - 1}
    indexes.add(max(range(len(looks)), key=lambda index: looks[index][1]))
    return [looks[index] for index in sorted(indexes)]
