"""What is drawn of an audit: the errors of its events, its bounds on the privacy profile, where its
outputs fell, its wealth, and what a belief may become; each with a sentence and its numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise

from dpaudit.certificates.certificate import Certificate, EventCount
from dpaudit.certificates.exact_certificate import ExactCertificate, ExactEvent
from dpaudit.certificates.one_run_certificate import OneRunCertificate
from dpaudit.certificates.replay import beliefs_of, course
from dpaudit.certificates.result import AuditResult
from dpaudit.claims import PrivacyClaim, posterior_bounds
from dpaudit.claims.curves import tradeoff
from dpaudit.reports import numbers
from dpaudit.reports.html.canvas import Canvas, Points, Scale
from dpaudit.wording import shortened

_STEPS = 48
_MOST_EVENTS, _MOST_BARS, _MOST_ROWS, _MOST_LOOKS = 8, 100, 40, 200
_SMALLEST_WEALTH = 1e-6
# Where all events are rarer only a corner of the square is shown.
_RARE = 0.3
# Below it a linear axis shows no difference.
_SMALL_DELTA = 0.02
# Beyond it a belief of 50 % becomes certainty to all digits.
_LARGEST_EPSILON = 50.0
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Key:
    """What stands for what. kind: the class. shape: `line`, `area`, or one of `canvas.SHAPES`."""

    kind: str
    shape: str
    words: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure and what it says. drawing: SVG. alt: what can be seen, in words. notes: how to read
    it. head, rows: its numbers as a table."""

    name: str
    title: str
    drawing: str
    keys: tuple[Key, ...]
    alt: str
    notes: tuple[str, ...]
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class _Event:
    """An event as a test: what it accuses, and its two errors with their intervals."""

    name: str
    guess: str
    alpha: tuple[float, float, float]
    beta: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class _Bar:
    """One kind of output: its share of the draws of d1 and of d2, and what event it is in."""

    words: str
    d1: float
    d2: float
    guess: str | None = None


def pictures(result: AuditResult) -> list[Picture]:
    """Return the figures that there are, of the pair that decides."""
    one = result.decisive
    if one is None:
        return []
    found: list[Picture | None] = []
    if isinstance(one, Certificate | ExactCertificate):
        found = [_region(result, one), _outputs(one)]
    found.insert(1, _profile(result))
    if isinstance(one, Certificate):
        found.append(_wealth(one))
    return [*(picture for picture in found if picture is not None), _belief(result)]


def left_out(result: AuditResult) -> str:
    """Return which figures there are not, and why; the empty text where there are all."""
    one = result.decisive
    if one is None:
        return "Nothing is drawn, since no pair of inputs was finished."
    if isinstance(one, ExactCertificate):
        return "Nothing was drawn at random, so that there is no wealth to show."
    if not isinstance(one, Certificate):
        return (
            "One run has guesses in place of events: there are no errors of events, no outputs and "
            "no wealth to show."
        )
    missing = [] if _events(one) else ["No event was tested, so that there are no errors to show."]
    if one.recording is not None:
        missing.append("Nothing is bet on recorded outputs, so that there is no wealth to show.")
    elif not any(block.round is not None for block in one.blocks):
        missing.append("Nothing was bet, so that there is no wealth to show.")
    return " ".join(missing)


def _region(result: AuditResult, one: Certificate | ExactCertificate) -> Picture | None:
    """Return the trade-off of the claim, and the errors of the events as tests of it."""
    every = _events(one)
    if not every:
        return None
    events = every[:_MOST_EVENTS]
    shown = _window(events)
    canvas = Canvas(Scale(0, shown), Scale(1 - shown, 1), "false alarms α", "misses β")
    canvas.ticks()
    curve, opposite = _tradeoff(result.claim, shown)
    canvas.area("region", [*curve, *opposite[::-1]])
    canvas.line("even", [(0.0, 1.0), (shown, 1 - shown)])
    canvas.line("claim", curve)
    for event in events:
        if event.alpha[1] < event.alpha[2]:
            canvas.box(f"box {event.guess}", event.alpha[1:], event.beta[1:])
        canvas.mark(event.guess, _SHAPE[event.guess], event.alpha[0], event.beta[0])
    for event, name in _labels(events, 0.06 * shown):
        right = event.alpha[2] < 0.85 * shown
        beside = event.alpha[2] + 0.03 * shown if right else event.alpha[1] - 0.03 * shown
        canvas.word(beside, event.beta[0] - 0.02 * shown, name, "start" if right else "end")
    is_exact = isinstance(one, ExactCertificate)
    boxes = () if is_exact else (Key("box", "area", f"{_level(result)} interval of both"),)
    guesses = sorted({event.guess for event in events})
    points = [Key(guess, _SHAPE[guess], f"event for {guess}") for guess in guesses]
    said = [
        f"{event.name}: α {numbers.share(event.alpha[0])}, β {numbers.share(event.beta[0])}"
        for event in events
    ]
    notes = [_OF_EVENTS]
    if not is_exact:
        notes.append(
            "Each interval holds by itself; the verdict follows from the exact test and the bets."
        )
    if shown < 1:
        notes.append("Shown is the corner in which the events are, since they are rare.")
    if len(every) > len(events):
        notes.append(f"{len(every) - len(events):,} more events are not drawn.")
    return Picture(
        "region",
        "Errors of a test between d1 and d2",
        canvas.markup(),
        (Key("claim", "line", "least miss rate of the claim"),
         Key("region", "area", "allowed by the claim"), *points, *boxes),
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


def _profile(result: AuditResult) -> Picture:
    """Return the δ that the claim allows at every ε, and the two bounds."""
    claim, point = result.claim, result.point
    epsilon, delta, last = result.epsilon_lower, result.delta_lower, max(1.0, 1.5 * point.epsilon)
    if math.isinf(epsilon):
        epsilon = last  # at the edge
    else:
        last = max(last, 1.15 * epsilon)
    values = [last * step / _STEPS for step in range(_STEPS + 1)] + [point.epsilon]
    curve = [(one, claim.profile(one)) for one in sorted(values)]
    is_log = 0 < point.delta < _SMALL_DELTA
    smallest = min(one for one in (point.delta, delta, 1.0) if one > 0) if is_log else 0.0
    low = 10.0 ** (math.floor(math.log10(max(smallest, 1e-300))) - 1) if is_log else 0.0
    most = 1.0 if is_log else max(0.1, 1.15 * max(delta, *(y for _, y in curve)))
    canvas = Canvas(Scale(0, last), Scale(low, min(1.0, most), is_log), "ε", "δ")
    canvas.ticks()
    canvas.area("region", [(0.0, low), *curve, (last, low)])
    canvas.line("claim", curve)
    exactly = not result.ending.by_chance
    bound, least_is = ("exact", "is") if exactly else ("certified", "is at least")
    sure = "" if exactly else f", with {_level(result)} confidence"
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
        ("A bound outside of the shaded area refutes the claim.",),
        ("at", "claimed", bound if exactly else f"{bound}, at least"),
        ((f"ε at δ = {at_delta}", at_epsilon, least), (f"δ at ε = {at_epsilon}", at_delta,
                                                       least_delta)),
    )  # fmt: skip


def _outputs(one: Certificate | ExactCertificate) -> Picture | None:
    """Return where the draws of the exact test fell, and what was chosen."""
    every, words = _bars(one)
    bars = [bar for bar in every if bar.d1 or bar.d2]
    if not bars:
        return None
    shown = _likeliest(bars)
    highest = max(max(bar.d1, bar.d2) for bar in shown)
    is_law = isinstance(one, ExactCertificate)
    across = "outcomes" if is_law else words
    canvas = Canvas(Scale(0, len(shown)), Scale(0, 1.18 * highest), across, "share of each input")
    for guess, group in groupby(enumerate(shown), key=lambda entry: entry[1].guess):
        places = [place for place, _ in group]
        if guess is not None:
            canvas.box(f"event {guess}", (places[0], places[-1] + 1), (0, 1.18 * highest))
            canvas.word((places[0] + places[-1] + 1) / 2, 1.09 * highest, f"for {guess}")
    canvas.steps("d1", [bar.d1 for bar in shown])
    canvas.steps("d2", [bar.d2 for bar in shown])
    chosen = [guess for guess in ("d1", "d2") if any(bar.guess == guess for bar in shown)]
    said = [
        f"what is evidence for {guess} has {_sum(every, guess, 'd1')} of d1 and "
        f"{_sum(every, guess, 'd2')} of d2"
        for guess in chosen
    ]
    notes = [_OF_LAW if is_law else _OF_DRAWS]
    if len(shown) < len(bars):
        notes.append(f"{len(bars) - len(shown):,} more, none of them likelier, are not drawn.")
    rows = shown[:_MOST_ROWS]
    if len(rows) < len(shown):
        notes.append(f"The table has the first {len(rows)}.")
    return Picture(
        "outputs",
        "Probabilities of the outcomes" if is_law else "Where the test draws fell",
        canvas.markup(),
        (Key("d1", "line", "d1"), Key("d2", "line", "d2"),
         *(Key(f"event {guess}", "area", f"chosen event for {guess}") for guess in chosen)),
        f"The shares of d1 and of d2, by {across}" + (f": {'; '.join(said)}." if said else "."),
        tuple(notes),
        ("outcome" if is_law else "level", "d1", "d2", "event"),
        tuple(
            (shortened(bar.words, _LONGEST), numbers.share(bar.d1), numbers.share(bar.d2),
             f"for {bar.guess}" if bar.guess else "")
            for bar in rows
        ),
    )  # fmt: skip


def _wealth(one: Certificate) -> Picture | None:
    """Return the wealth of the bettors against the claim, after every look."""
    looks = course(one.point, [beliefs_of(believed) for believed in one.rounds], one.blocks)
    if not looks or not one.alpha_betting:
        return None
    needed = 1 / one.alpha_betting
    every = [(draws, math.exp(min(max(wealth, -690.0), 690.0))) for draws, wealth in looks]
    largest, last = max(wealth for _, wealth in every), max(draws for draws, _ in every)
    smallest = max(_SMALLEST_WEALTH, min(1.0, *(wealth for _, wealth in every)))
    low, high = 10.0 ** math.floor(math.log10(smallest)), 3 * max(largest, needed)
    canvas = Canvas(Scale(0, last), Scale(low, high, is_log=True), "draws", "wealth")
    canvas.ticks()
    canvas.line("even", [(0.0, 1.0), (last, 1.0)])
    canvas.line("bound", [(0.0, needed), (last, needed)])
    canvas.word(0.02 * last, 1.2 * needed, f"violation at {numbers.about(needed)}", "start")
    canvas.line("wealth", [(0.0, 1.0), *_thinned(every)])
    told = numbers.about(largest)
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
        f"From 1, wealth reached at most {told} within {last:,} draws; it takes "
        f"{numbers.about(needed)} for a violation.",
        tuple(notes),
        ("draws", "wealth"),
        tuple((f"{draws:,}", numbers.about(wealth)) for draws, wealth in rows),
    )  # fmt: skip


def _belief(result: AuditResult) -> Picture:
    """Return what the belief in one input may become, by the claim and by what was shown."""
    claimed = min(result.point.epsilon, _LARGEST_EPSILON)
    shown = min(result.epsilon_lower, _LARGEST_EPSILON)
    subject = "a canary" if isinstance(result.decisive, OneRunCertificate) else "d1"
    across, up = f"belief in {subject} before", f"belief in {subject} after"
    canvas = Canvas(Scale(0, 1), Scale(0, 1), across, up)
    canvas.ticks()
    priors = [step / _STEPS for step in range(_STEPS + 1)]
    below, above = zip(*(posterior_bounds(claimed, one) for one in priors), strict=True)
    upper = list(zip(priors, above, strict=True))
    lower = list(zip(priors, below, strict=True))
    canvas.area("region", [*upper, *lower[::-1]])
    canvas.line("even", [(0.0, 0.0), (1.0, 1.0)])
    canvas.line("claim", upper)
    canvas.line("claim", lower)
    canvas.line("bound", [(one, posterior_bounds(shown, one)[1]) for one in priors])
    reached = posterior_bounds(shown, 0.5)[1]
    canvas.mark("bound", "diamond", 0.5, reached)
    exactly = not result.ending.by_chance
    kind = "exact" if exactly else "certified"
    rounding = numbers.NEAREST if exactly else numbers.DOWN
    notes = ["An output may move a belief within the shaded area, by the claimed ε."]
    if result.point.delta:
        notes.append(f"The claim's δ = {numbers.plain(result.point.delta)} excepts rare outputs.")
    if result.claim.limits_adversaries:
        notes.append("The claim speaks of adversaries of limited means.")
    rows = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99]
    allowed = numbers.sure(claimed, numbers.UP)
    return Picture(
        "belief",
        f"Belief in {subject} before and after an output",
        canvas.markup(),
        (Key("claim", "line", "the claim: most and least"), Key("bound", "line", f"{kind} ε"),
         Key("bound", "diamond", f"{kind}, from even odds")),
        f"From even odds the claimed ε allows {allowed} at most; the {kind} ε makes "
        f"{numbers.share(reached, rounding)} possible.",
        tuple(notes),
        ("before", "claim, at least", "claim, at most", f"{kind}, up to at least"),
        tuple(
            (numbers.share(one), numbers.share(least, numbers.DOWN),
             numbers.share(most, numbers.UP),
             numbers.share(posterior_bounds(shown, one)[1], rounding))
            for one in rows
            for least, most in [posterior_bounds(claimed, one)]
        ),
    )  # fmt: skip


_SHAPE = {"d1": "circle", "d2": "square"}
_OF_EVENTS = (
    "An event is a test of one input against the other. The claim allows no point below its curve."
)
_OF_LAW = "The probabilities are those that the mechanism's own pmf states."
_OF_DRAWS = (
    "Counts of draws that had no part in choosing the event. A level is a kind of outputs that the "
    "rule does not tell apart; levels stand in the order of the rule."
)


def _labels(events: Sequence[_Event], room: float) -> list[tuple[_Event, str]]:
    """Return events with their names; those that lie upon each other share a place."""
    found: list[tuple[_Event, str]] = []
    for event in events:
        for place, (other, name) in enumerate(found):
            if max(abs(event.alpha[0] - other.alpha[0]), abs(event.beta[0] - other.beta[0])) < room:
                found[place] = (other, f"{name}, {event.name}")
                break
        else:
            found.append((event, event.name))
    return found


def _window(events: Sequence[_Event]) -> float:
    """Return how much of both axes is shown: 1, or less where all events are rare."""
    furthest = max(max(event.alpha[2], 1 - event.beta[1]) for event in events)
    needed = 2.5 * furthest
    if not 0 < needed < _RARE:
        return 1.0
    # A round number.
    size = 10.0 ** math.floor(math.log10(needed))
    return size * math.ceil(needed / size - 1e-9)


@lru_cache(maxsize=64)
def _tradeoff(claim: PrivacyClaim, shown: float) -> tuple[Points, Points]:
    """Return the curve of a claim, with more points where it is steep, and the upper edge of what
    it allows: the same for whoever always guesses the other way round."""
    half = [0.5 * shown * (step / _STEPS) ** 2 for step in range(_STEPS + 1)]
    alphas = [*half, *(shown - one for one in half[-2::-1])]
    lower = [(alpha, tradeoff(claim, alpha)) for alpha in alphas]
    upper = [(alpha, 1 - tradeoff(claim, 1 - alpha)) for alpha in alphas]
    if shown == 1:
        return lower, upper
    # Cut off where the curve leaves what is shown.
    inside = [one for one in lower if one[1] >= 1 - shown]
    corner = [(shown, 1 - shown), (inside[-1][0], 1 - shown)]
    return inside, [*upper, *(corner if len(inside) < len(lower) else [])]


def _level(result: AuditResult) -> str:
    return numbers.level(result.confidence)


def _likeliest(bars: list[_Bar]) -> list[_Bar]:
    """Return as many bars as there is room for, in order; of those that are equally high, some from
    everywhere."""
    if len(bars) <= _MOST_BARS:
        return bars
    heights = [max(bar.d1, bar.d2) for bar in bars]
    least = sorted(heights, reverse=True)[_MOST_BARS - 1]
    kept = {place for place, height in enumerate(heights) if height > least}
    alike = [place for place, height in enumerate(heights) if height == least]
    room = _MOST_BARS - len(kept)
    kept |= {alike[place * len(alike) // room] for place in range(room)}
    return [bars[place] for place in sorted(kept)]


def _events(one: Certificate | ExactCertificate) -> list[_Event]:
    """Return the events that were tested, named as the rows of the certificate are."""
    if isinstance(one, ExactCertificate):
        return [] if one.event is None else [_tested("E", one.event)]
    events = one.fixed.events
    names = [f"E{place + 1}" for place in range(len(events))] if len(events) > 1 else ["E"]
    return [_tested(name, event) for name, event in zip(names, events, strict=False)]


def _tested(name: str, event: EventCount | ExactEvent) -> _Event:
    if isinstance(event, ExactEvent):
        d1, d2 = ((one, one, one) for one in (event.probability_d1, event.probability_d2))
    else:
        d1 = (_ratio(event.count_d1, event.draws_d1), *event.interval_d1)
        d2 = (_ratio(event.count_d2, event.draws_d2), *event.interval_d2)
    ahead, behind = (d1, d2) if event.guess == "d1" else (d2, d1)
    return _Event(name, event.guess, behind, (1 - ahead[0], 1 - ahead[2], 1 - ahead[1]))


def _ratio(count: int, draws: int) -> float:
    return count / draws if draws else 0.0


def _bars(one: Certificate | ExactCertificate) -> tuple[list[_Bar], str]:
    """Return every kind of output, in order, and what the kinds are."""
    if isinstance(one, ExactCertificate):
        return list(_law(one)), "outcomes"
    fixed = one.fixed
    if fixed.method == "probabilistic":
        d1, d2 = (fixed.events[0].draws_d1, fixed.events[0].draws_d2) if fixed.events else (0, 0)
        certified = {event.words for event in fixed.events}
        atoms = fixed.accused if fixed.events else ()
        return [
            _Bar(words, _ratio(p, d1), _ratio(q, d2), guess if words in certified else None)
            for words, guess, p, q in atoms
        ], "suspected outputs"
    counts = [(0, 0)] * len(one.guesses)
    for block in one.blocks:
        if block.stage == fixed.stage:
            counts = [(p + r, q + s) for (p, q), (r, s) in zip(counts, block.tally, strict=True)]
    all_d1, all_d2 = sum(p for p, _ in counts), sum(q for _, q in counts)
    names = {1: "d1", -1: "d2"} if fixed.events else {}
    words = _level_words(one)
    return [
        _Bar(word, _ratio(p, all_d1), _ratio(q, all_d2), names.get(guess))
        for word, (p, q), guess in zip(words, counts, one.guesses, strict=True)
    ], "levels of the score" if one.scores is not None else "levels"


def _level_words(one: Certificate) -> list[str]:
    """Return levels in words: the scores between their edges, where they have some."""
    if one.scores is None or len(one.guesses) != len(one.scores.edges) + 2:
        return [str(place + 1) for place in range(len(one.guesses))]
    written = [numbers.about(edge) for edge in one.scores.edges]
    between = [f"score {low} to {high}" for low, high in pairwise(written)]
    if not written:
        return ["any score", "no score"]
    return [f"score below {written[0]}", *between, f"score above {written[-1]}", "no score"]


def _law(one: ExactCertificate) -> Iterator[_Bar]:
    """Yield the outcomes, with the event where it is the one that the profile is attained by."""
    event, factor = one.event, math.exp(min(one.point.epsilon, 700.0))
    guesses: list[str | None] = [None] * len(one.law)
    if event is not None:
        ahead, other = (1, 2) if event.guess == "d1" else (2, 1)
        inside = [bool(row[ahead] > factor * row[other]) for row in one.law]  # type: ignore[operator]
        found = math.fsum(row[1] for row, is_in in zip(one.law, inside, strict=True) if is_in)
        if math.isclose(found, event.probability_d1, rel_tol=1e-9, abs_tol=1e-12):
            guesses = [event.guess if is_in else None for is_in in inside]
    for (words, p, q), guess in zip(one.law, guesses, strict=True):
        yield _Bar(words, p, q, guess)


def _sum(bars: Sequence[_Bar], guess: str, arm: str) -> str:
    return numbers.share(min(1.0, math.fsum(getattr(b, arm) for b in bars if b.guess == guess)))


def _thinned(looks: list[tuple[int, float]], most: int = _MOST_LOOKS) -> list[tuple[int, float]]:
    """Return at most so many looks, the largest wealth and the last one among them."""
    if len(looks) <= most:
        return looks
    step = math.ceil(len(looks) / (most - 2))
    kept = {*range(0, len(looks), step), len(looks) - 1}
    kept.add(max(range(len(looks)), key=lambda place: looks[place][1]))
    return [looks[place] for place in sorted(kept)]
