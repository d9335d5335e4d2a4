"""Detect outputs that differ between the inputs: random choices whose probabilities depend on the
data, entries of the output without noise, and values that noise selects but does not hide, such as
a record that is released without noise if its noisy score is the largest."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dpaudit.certificates.traced import GIVE_AN_OUTPUT, Finding, FindingKind, SourceLine
from dpaudit.claims import PrivacyClaim
from dpaudit.tracing.costs import Floats, Piece, discrete_delta, exceeds, tail
from dpaudit.tracing.findings.sites import MIN_OCCURRENCES, Case, choice_cost, reported, unexplained
from dpaudit.tracing.findings.words import number, same_parts, shown, times
from dpaudit.tracing.runs.coins import Laws, epsilon
from dpaudit.tracing.runs.coupling import Runs
from dpaudit.tracing.runs.differences import ControlFlow, Coupled
from dpaudit.tracing.runs.one_sided import AND
from dpaudit.tracing.runs.places import Place, loops_of


def of_choices(case: Case) -> Iterator[Finding]:
    """Yield a finding for each discrete random choice whose probabilities on the two inputs differ
    by more than the claim allows."""
    runs, claim = case.runs, case.claim
    for pair in runs.coupled:
        for one in pair.comparison.chosen:
            first, second = map(np.asarray, one.probabilities)
            if first.shape != second.shape or np.array_equal(first, second):
                continue
            if one.is_coin:
                each = zip(first.tolist(), second.tolist(), strict=True)
                laws = [(np.array([p, 1 - p]), np.array([q, 1 - q])) for p, q in each]
            else:
                laws = [(first, second)]
            if any(excess(*law, claim) for law in laws):
                cost = choice_cost(one)
                words = (
                    f"`{one.place.code}` chooses with probabilities that depend on the data: "
                    f"ε = {number(cost)}"
                )
                # Different probabilities of an outcome are a leak only if the outcome means the
                # same on both inputs. It may not: outcome 3 of a choice may be the interval after
                # the third record. The meanings are taken to be the same if, with the same noise,
                # the outputs of the two runs and the ranges of uniform numbers never differ.
                means_the_same = not any(
                    each.comparison.differing or each.comparison.ranges for each in runs.coupled
                )
                # The mechanism permute-and-flip picks an item at random, then tosses a coin for
                # this item. On the two inputs the items may differ, so a difference between the
                # probabilities of the coins need not be a leak.
                is_picked = any(map(_is_picked_from_data, one.parameters)) or (
                    one.is_coin and pair.comparison.picks_items
                )
                is_cause = means_the_same and not is_picked
                callers = tuple(map(shown, one.callers))
                line = shown(one.place)
                yield Finding("data-dependent-choice", is_cause, line, words, "", callers, cost)


def _is_picked_from_data(parameters: dict[str, object]) -> bool:
    """Return whether a random choice picks from equally probable items. The items may be records:
    if one input has a record more, the probabilities differ, but this is no leak by itself.

    parameters: The arguments of the function that makes the choice, by name.
    """
    return "n" in parameters and "p" not in parameters


# Largest rounding error of a computed δ.
_ROUNDING_ERROR = 1e-9
# Without a claim: an outcome with a probability above this number on one input, and 0 on the other,
# is a leak. A smaller probability may be a rounding error.
_MIN_PROBABILITY = 1e-12


def of_laws(laws: Laws, claim: PrivacyClaim | None) -> Iterator[Finding]:
    """Yield a finding if the exact probabilities of the outputs on both inputs violate a claim.
    Without a claim (None), yield a finding if some output is possible on only one input."""
    said = excess(np.asarray(laws.first), np.asarray(laws.second), claim)
    if said is None:
        return
    more = len(laws.others)
    besides = "" if not more else f" and {more} more line{'s' if more > 1 else ''} with coins"
    words = f"`{laws.place.code}`{besides} decide{'' if more else 's'} between the inputs: {said}"
    others = tuple(map(shown, (*laws.callers, *laws.others)))
    yield Finding("too-little-noise", True, shown(laws.place), words, "", others, laws.epsilon)


def excess(first: Floats, second: Floats, claim: PrivacyClaim | None) -> str | None:
    """Return the privacy cost of two discrete distributions in words, such as "ε = 1.5", if it
    exceeds the claim; else None. Without a claim (None), only ε = ∞ is too high: an outcome is
    possible under one distribution and impossible under the other.

    first, second: The probabilities of the same outcomes on either input.
    """
    orders = (first, second), (second, first)
    if claim is None:
        alone = max(float(np.max(one[other == 0], initial=0.0)) for one, other in orders)
        return "ε = ∞" if alone > _MIN_PROBABILITY else None
    for point in claim.points():
        delta = discrete_delta(first, second, point.epsilon)
        if delta > point.delta * (1 + 1e-6) + _ROUNDING_ERROR:
            if point.delta == 0:
                return f"ε = {number(epsilon(first, second))}"
            return (
                f"δ = {number(delta)} at ε = {number(point.epsilon)}, where "
                f"{number(point.delta)} is claimed"
            )
    for order, most in claim.divergences():
        found = max(_divergence(order, one, other) for one, other in orders)
        if found > most * (1 + 1e-6) + _ROUNDING_ERROR:
            return f"D_{order:g} = {number(found)}, where {number(most)} is claimed"
    return None


def _divergence(order: float, one: Floats, other: Floats) -> float:
    """Return the Rényi divergence of two discrete distributions, in nats.

    order: The order of the divergence, above 1.
    one, other: The probabilities of the same outcomes under each distribution.
    """
    if np.any((one > 0) & (other == 0)):
        return math.inf
    both = (one > 0) & (other > 0)
    terms = order * np.log(one[both]) - (order - 1) * np.log(other[both])
    return float(np.logaddexp.reduce(terms)) / (order - 1)


_SAME_WAY = "decide on noised values alone, or go the same way for all data"
# Error probability of the bound on how often an output is impossible on the other input.
_BRANCH_LEVEL = 1e-5


def of_outputs(case: Case) -> Iterator[Finding]:
    """Yield a finding for each pair of runs whose outputs have a difference that no noise hides.
    Also yield a finding for each coin (a comparison of a uniform number with a threshold) that
    explains why the outputs differ, if it costs more than the claim allows."""
    runs, claim = case.runs, case.claim
    if runs.laws is not None:
        yield from of_laws(runs.laws, claim)
    # Maps each line with a coin (a comparison of a uniform number with a threshold) to its cost:
    # the largest log-ratio of the probabilities of an output on the two inputs, in nats; 0 if it is
    # unknown. The lowest cost in all pairs of runs counts, since several combinations of coins may
    # lead to the same output, as in rejection sampling.
    costs: dict[Place, float] = {}
    for pair in runs.coupled:
        if pair.absorbed is not None:
            place, cost = pair.absorbed.place, pair.absorbed.cost
            costs[place] = min(0.0 if cost is None else cost, costs.get(place, math.inf))
    for pair in runs.coupled:
        if pair.absorbed is not None and runs.laws is None:
            place = pair.absorbed.place
            cost = costs[place]
            piece = Piece("unknown", (math.nan, math.nan), 0.0, released=True, cost=cost)
            points = () if claim is None else claim.points()
            pure = [point for point in points if point.delta == 0]
            if exceeds(piece, claim) or any(cost > one.epsilon * (1 + 1e-9) for one in pure):
                words = f"`{place.code}` decides between the inputs: ε = {number(cost)}"
                callers = tuple(map(shown, pair.absorbed.callers))
                yield Finding("too-little-noise", True, shown(place), words, "", callers, cost)
        if "raises" in pair.bare:
            yield _raises(pair)
        elif pair.bare:
            yield _bare(pair, runs, claim)
        elif pair.decided is not None and _is_branch(pair.comparison.control_flow):
            assert pair.comparison.control_flow is not None
            yield _decided(pair, pair.comparison.control_flow, pair.decided, claim)


def of_lengths(case: Case) -> Iterator[Finding]:
    """Yield a finding if a length differs between the inputs in every run, although entries of the
    output vary between equal runs: noise that is not seen does not hide a length."""
    for pair in case.runs.coupled[:1]:
        lengths = [name for name in pair.bare if name.startswith("len(") or name.endswith(".shape")]
        if lengths and pair.noised:
            yield _bare(pair._replace(bare=lengths), case.runs, case.claim)


def of_thresholds(case: Case) -> Iterator[Finding]:
    """Yield a finding for each entry of the output, such as a key, that only one input can give,
    and that is released only if noise passes a threshold. An entry gets no finding if the
    probability of its release is at most the claimed δ."""
    claim = case.claim
    for pair in case.runs.coupled:
        for one in pair.threshold_leaks:
            chance = tail(one.law, one.scale, one.margin)
            points = () if claim is None else claim.points()
            allowed = min((point.delta for point in points), default=1.0)
            if chance is None or chance <= allowed * (1 + 1e-6) + 1e-12:
                continue
            which = "d2" if pair.forward else "d1"
            words = (
                f"`{one.compared.code}` releases {one.part}, which {which} alone can have, with "
                f"probability {number(chance)}; δ = {number(allowed)} is claimed"
            )
            remedy = (
                "raise the threshold, or add more noise"
                if allowed
                else ("claim a δ above 0, or release the same parts for every input")
            )
            others = (shown(one.draw), *map(shown, one.callers))
            yield Finding("too-little-noise", True, shown(one.compared), words, remedy, others)


def _raises(pair: Coupled) -> Finding:
    errors = pair.comparison.errors
    kind, message, place = next(one for one in errors if one is not None)
    which = "d1" if (errors[0] is not None) == pair.forward else "d2"
    said = f": {message}" if message else ""
    words = f"{kind} is raised for {which} alone, whatever the noise{said}"
    end = next((one for one in pair.comparison.ends if one is not None), None)
    line = _line(place or end)
    others = (
        () if pair.comparison.control_flow is None else (shown(pair.comparison.control_flow.place),)
    )
    return Finding("exception", True, line, words, GIVE_AN_OUTPUT, others, math.inf)


def _is_branch(flow: ControlFlow | None) -> bool:
    """Return whether runs turn at a line to two other lines, and not only repeat a loop."""
    if flow is None or None in flow.next_lines:
        return False
    lines = {(one.file, one.line) for one in (flow.place, *flow.next_lines) if one is not None}
    is_loop = any(start == flow.place.line for start, _ in loops_of(flow.place.file))
    return len(lines) == 3 and not is_loop


def _decided(
    pair: Coupled, flow: ControlFlow, outside: tuple[int, int], claim: PrivacyClaim | None
) -> Finding:
    """Return the finding for a branch that data decide, and in which one input alone draws. It is a
    cause if the outputs of one input are outside the range of the outputs of the other."""
    from dpaudit.stats.binomial import clopper_pearson_lower

    place, _, many, fewer = pair.comparison.uneven[0]
    many, fewer = (many, fewer) if pair.forward else (fewer, many)
    words = (
        f"`{flow.place.code}` decides on data without noise: `{place.code}` draws {times(many)} "
        f"for d1 and {times(fewer)} for d2"
    )
    allowed = min((point.delta for point in claim.points()), default=0.0) if claim else 0.0
    is_cause = clopper_pearson_lower(*outside, _BRANCH_LEVEL) > allowed
    remedy = _SAME_WAY if is_cause else ""
    others = tuple(shown(one) for one in flow.next_lines if one is not None)
    cost = math.inf if is_cause else None
    return Finding("control-flow", is_cause, shown(flow.place), words, remedy, others, cost)


def _bare(pair: Coupled, runs: Runs, claim: PrivacyClaim | None) -> Finding:
    """Return the finding for the entries of the output that differ in a pair of runs and contain no
    noise.

    pair: The pair of runs.
    runs: All pairs of runs.
    claim: The privacy claim for one run; None if nothing is claimed.
    """
    comparison = pair.comparison
    names = [one for one in pair.bare if not one.startswith("len(")] or pair.bare
    name = names[0]
    first, second = comparison.differing[name]
    one, other = (first, second) if pair.forward else (second, first)
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    alone = _of_one_alone(name, runs)
    said = f"{name}{more}{alone}"
    if not alone:
        said += f" is {one} for d1 and {other} for d2, whatever the noise"
    flow, ends = comparison.control_flow, comparison.ends
    if flow is not None and ends[0] is not None and ends[1] is not None:
        following = [one for one in flow.next_lines if one is not None]
        if (ends[0].file, ends[0].line) != (ends[1].file, ends[1].line):
            words = f"`{flow.place.code}` decides on data without noise: {said}"
            remedy = _SAME_WAY
            line, others = shown(flow.place), list(map(shown, following))
            return Finding("control-flow", True, line, words, remedy, tuple(others), math.inf)
    others = [shown(place) for place, *_ in comparison.uneven]
    if comparison.uneven and "nothing" in (first, second):
        place, _, many, fewer = comparison.uneven[0]
        many, fewer = (many, fewer) if pair.forward else (fewer, many)
        words = (
            f"`{place.code}` draws {times(many)} for d1 and {times(fewer)} for d2: how many "
            "values there are, or which, is released without noise"
        )
        remedy = same_parts(claim)
        end = () if ends[0] is None else (shown(ends[0]),)
        return Finding("no-noise", True, shown(place), words, remedy, end, math.inf)
    line = _line(ends[0])
    if flow is not None:
        others.append(shown(flow.place))
    remedy = "add noise to it, or do not release it"
    if "nothing" in (first, second) or name.endswith((".index", ".shape")):
        which = 1 if first == "nothing" else 0
        if "nothing" in (first, second):
            alike = [each for each in names if comparison.differing[each][1 - which] == "nothing"]
            more = f" (and {len(alike) - 1} more)" if len(alike) > 1 else ""
            has = f"d{1 + which}" if pair.forward else f"d{2 - which}"
            said = f"{name}{more} is there for {has} alone, whatever the noise"
        remedy = same_parts(claim)
    return Finding("no-noise", True, line, said, remedy, tuple(others), math.inf)


def _of_one_alone(name: str, runs: Runs) -> str:
    """Return a phrase about an entry of the output, such as " is always 0 for d1, and never for
    d2". The phrase is based on the pairs of runs in which the entry differs. It says that one input
    always gave the same value in them, while the other input gave several values. Return "" if this
    is not so.

    name: The name of the entry, such as `output[1]`.
    runs: All pairs of runs on d1 and d2.
    """
    seen: tuple[set[str], set[str]] = (set(), set())
    for each in runs.coupled:
        values = each.comparison.differing.get(name)
        if values is not None:
            for which, value in enumerate(values if each.forward else values[::-1]):
                seen[which].add(value)
    if len(seen[0]) == len(seen[1]) or min(map(len, seen)) != 1:
        return ""
    which = 0 if len(seen[0]) == 1 else 1
    return f" is always {next(iter(seen[which]))} for d{which + 1}, and never for d{2 - which}"


# A value that occurs in fewer runs on one input, and in none on the other, may be hidden by noise
# that the trace does not know: the other input may give it, too, but more rarely.
_MIN_OCCURRENCES = 100
_NOT_SEEN = "what hides this was not seen"


def of_selected(case: Case) -> Iterator[Finding]:
    """Yield a finding for each value of the output that occurred in runs on one input, and in no
    run on the other input. If the counts of the runs refute the claim, the finding is a cause of a
    leak. If they do not, the other input may give the value, but too rarely to be seen."""
    for one, is_cause in reported(case.runs, case.claim):
        part = AND.join(one.part)
        which, other = (f"d{number}" for number in (one.which + 1, 2 - one.which))
        often = f"in {one.often} of {one.runs} runs"
        if one.error is not None:
            kind, message, place = one.error
            said = f": {message}" if message else ""
            words = f"{kind} is raised for {which} alone, {often} and never for {other}{said}"
            line = _line(place or one.place)
            yield Finding("exception", is_cause, line, words, GIVE_AN_OUTPUT, cost=math.inf)
            continue
        verb = "is" if len(one.part) == 1 else "are"
        said, noised = f"{part} {verb} {one.value} for {which}", "with the same noised values"
        if one.often < MIN_OCCURRENCES:
            words = f"{said} and {one.other} for {other} {noised}: {_NOT_SEEN}"
            yield Finding("no-noise", False, _line(one.place), words, "")
            continue
        is_telling = is_cause or one.often >= _MIN_OCCURRENCES
        end = "noise selects it, and does not hide it" if is_telling else _NOT_SEEN
        words = f"{said} {often} and never for {other}, which has {one.other} {noised}: {end}"
        remedy = "add noise to it, or do not release it" if is_telling else ""
        cost = math.inf if is_telling else None
        yield Finding("no-noise", is_cause, _line(one.place), words, remedy, cost=cost)


def _line(place: Place | None) -> SourceLine:
    return shown(place or Place("?", 0, "", ""))


def of_unexplained(case: Case) -> Iterator[Finding]:
    """Yield a note for an entry of the output that differs in a pair of runs although each value to
    which noise was added is equal. A note is a finding that is not counted as a cause of a leak."""
    ends = (pair.comparison.ends[0] for pair in case.runs.coupled if pair.noised)
    for name in unexplained(case.runs)[:1]:
        words = f"{name} differs with the same noised values: {_NOT_SEEN}"
        yield Finding("no-noise", False, _line(next(ends, None)), words, "")


def of_rare_branches(case: Case) -> Iterator[Finding]:
    """Yield a note for each value that only one input gives, and only after an unlikely random
    choice whose probability is above the claimed δ. A note is a finding that is not counted as a
    cause of a leak: the other input may give the value after a choice that was not run."""
    points = () if case.claim is None else case.claim.points()
    allowed = min((point.delta for point in points), default=0.0)
    for one in case.runs.rare:
        if one.chance <= allowed:
            continue
        has, has_not = (f"d{which}" for which in (one.which + 1, 2 - one.which))
        way = f"where `{one.coin.code}` {one.falls}, with probability {number(one.chance)}"
        coin, place = shown(one.coin), one.place
        if one.error is not None:
            kind, message, raised = one.error
            said = f": {message}" if message else ""
            words = f"{kind} is raised for {has} {way}, and in no run for {has_not}{said}"
            place = raised or place
        else:
            words = (
                f"{one.part} is {one.value} for {has} {way}, and in no run for {has_not}: no noise "
                "hides it"
            )
        line = coin if place is None else shown(place)
        others = () if str(line) == str(coin) else (coin,)
        what: FindingKind = "no-noise" if one.error is None else "exception"
        yield Finding(what, False, line, words, "", others)
