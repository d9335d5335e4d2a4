"""The findings of a trace: the errors of a mechanism, with a line, a cost and a remedy each.

A *case* has the noise and the choices of all pairs of runs, with their costs. A *detector* takes a
`Case` and yields findings. A *note* is a finding that is no cause of a leak. `KINDS` lists the
kinds of findings, the most severe first, with their detectors. A new kind needs a detector, a line
in `KINDS`, its name in `FindingKind` and an example in `mechanisms/causes`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from dpaudit.certificates.traced import GIVE_AN_OUTPUT, Finding, FindingKind, SourceLine
from dpaudit.claims import PrivacyClaim
from dpaudit.tracing.costs import (
    Floats,
    Piece,
    discrete_delta,
    enlargement,
    exceeds,
    sum_exceeds,
    tail,
)
from dpaudit.tracing.findings.noise_sites import (
    MIN_OCCURRENCES,
    VALUE,
    Call,
    Case,
    case_of,
    changed_bounds,
    changed_parameters,
    choice_cost,
    choice_site,
    choices_as_noise,
    cost_together,
    costliness,
    number,
    reported,
    shown,
    unexplained,
)
from dpaudit.tracing.runs.coins import Laws, epsilon
from dpaudit.tracing.runs.coupling import Runs
from dpaudit.tracing.runs.differences import Chosen, ControlFlow, Coupled, Hidden
from dpaudit.tracing.runs.one_sided import AND
from dpaudit.tracing.runs.places import Place, loops_of

# Two scales are equal if their relative difference is at most this number.
_ROUNDING_SHARE = 1e-9
# Largest rounding error of a computed δ.
_ROUNDING_ERROR = 1e-9
# Without a claim: an outcome with a probability above this number on one input, and 0 on the other,
# is a leak. A smaller probability may be a rounding error.
_MIN_PROBABILITY = 1e-12
# Error probability of the bound on how often an output is impossible on the other input.
_BRANCH_LEVEL = 1e-5
# A value that occurs in fewer runs on one input, and in none on the other, may be hidden by noise
# that the trace does not know: the other input may give it, too, but more rarely.
_MIN_OCCURRENCES = 100
# Largest number of lines that are reported because they draw more often for one input.
_MAX_UNEVEN_LINES = 3

# With such a scale, the whole mechanism satisfies the claim on this pair of inputs.
FOR_PAIR = "would do for this pair"
# With such a scale, the line satisfies the claim; other lines cost privacy, too, or leak.
FOR_LINE = "would do for this line"
_SAME_WAY = "decide on noised values alone, or go the same way for all data"
_ADD_NOISE = "add noise to it, or do not release it"
_NOT_SEEN = "what hides this was not seen"


def judge(runs: Runs, claim: PrivacyClaim | None) -> Case:
    """Return the case of some pairs of runs, with its findings; causes of a leak come first.
    Without a claim, a finding counts as a cause only if its cost is infinite."""
    case = case_of(runs, claim)
    if runs.keeps_state:
        return replace(case, found=list(_of_lengths(case)), sites=[], total=None, exceeds=False)
    if runs.laws is not None:
        return _by_laws(case, runs.laws)
    for detector in dict.fromkeys(chain.from_iterable(KINDS.values())):
        case.found.extend(detector(case))
    if all(finding.kind == "unused-noise" for finding in case.found):
        case.found.extend(_of_unexplained(case))
    return replace(case, found=_ordered(case.found))


def _by_laws(case: Case, laws: Laws) -> Case:
    """Return the case with the findings that follow from the exact probability of each output."""
    cost_words = excess(np.asarray(laws.first), np.asarray(laws.second), case.claim)
    findings = list(_constant_seeds(case))
    if cost_words is not None:
        findings += _of_outputs(case)
        more = len(laws.others)
        besides = "" if not more else f" and {more} more line{'s' if more > 1 else ''} with coins"
        decide = "decide" if more else "decides"
        words = f"`{laws.place.code}`{besides} {decide} between the inputs: {cost_words}"
        lines = tuple(map(shown, (*laws.callers, *laws.others)))
        line = shown(laws.place)
        findings.append(Finding("too-little-noise", True, line, words, "", lines, laws.epsilon))
    site = choice_site(laws.place, laws.primitive, laws.callers, laws.epsilon, varies=False)
    total = f"ε = {number(laws.epsilon)}"
    exceeds_claim = cost_words is not None
    return replace(case, found=_ordered(findings), sites=[site], total=total, exceeds=exceeds_claim)


def _ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings, causes first; of each kind, only one for each line or for each call."""
    unique: dict[tuple[str, str, int, str], Finding] = {}
    for finding in sorted(findings, key=lambda finding: not finding.is_cause):
        is_of_call = finding.kind in ("too-little-noise", "data-dependent-scale")
        code = finding.line.code if is_of_call else ""
        unique.setdefault((finding.kind, finding.line.file, finding.line.line, code), finding)
    ordered = sorted(unique.values(), key=_rank)
    if sum(finding.is_cause for finding in ordered) < 2:
        return ordered
    # More noise on one of several lines that leak repairs this line only.
    return [
        replace(finding, remedy=finding.remedy.replace(FOR_PAIR, FOR_LINE)) for finding in ordered
    ]


def _rank(finding: Finding) -> tuple[bool, bool, int, float]:
    cost = 0.0 if finding.cost is None else finding.cost
    return not finding.is_cause, cost != math.inf, [*KINDS].index(finding.kind), -cost


# Noise that is too small, or whose parameters depend on the data.


def _of_noise(case: Case) -> Iterator[Finding]:
    choices = choices_as_noise(case.runs)
    for call in case.calls:
        # Other findings name bounds that depend on the data.
        if not any(changed_bounds(hidden) for pair in call.hidden for hidden in pair):
            other_noise = [
                piece
                for other_call in case.calls
                if other_call is not call
                for piece in other_call.worst
            ]
            yield from _of_call(call, case, [*other_noise, *choices])


def _of_call(call: Call, case: Case, other_noise: Sequence[Piece]) -> Iterator[Finding]:
    """Yield a finding if a call draws too little noise, even together with noise of other calls."""
    runs, claim = case.runs, case.claim
    noise_by_pair = [pieces for pieces in call.runs if pieces]
    costly_by_pair = [
        [piece for piece in pieces if exceeds(piece, claim)] for pieces in noise_by_pair
    ]
    # Usually one pair of runs with a cost above the claim makes the finding a cause. A mechanism
    # that picks records at random may pick the record that differs with a small probability, which
    # lowers the cost, so that all pairs of runs must show it.
    is_sampled = any(pair.comparison.picks for pair in runs.coupled)
    is_cause = all(costly_by_pair) if is_sampled else any(costly_by_pair)
    is_mixed = _has_random_scale(noise_by_pair) or bool(runs.filled)
    if is_mixed and not any(piece.has_two_scales for pieces in costly_by_pair for piece in pieces):
        is_cause = False
    if call.law == "uniform":
        # Some outputs are then possible on one input only, unless other noise, or a remainder
        # modulo 1, hides the change.
        lines = {hidden.draw for pair in runs.coupled for hidden in pair.comparison.hidden}
        is_cause = all(costly_by_pair) and not is_sampled and len(lines) == 1
    if any(costly_by_pair):
        costly = [piece for pieces in costly_by_pair for piece in pieces]
        piece = max(costly, key=lambda piece: (math.isinf(piece.shift), costliness(piece)))
        yield _too_little(call, piece, claim, other_noise, is_cause=is_cause)
        return
    # Values whose joint cost is unknown are left out, so that the sum is a lower bound.
    released = [
        [piece for piece in pieces if piece.released and piece.joint != math.inf]
        for pieces in noise_by_pair
    ]
    worst = max(released, key=cost_together, default=[])
    if sum(_sum_is_above(pieces, claim) for pieces in released) > 1 and _sum_is_above(worst, claim):
        moved = sum(piece.count for piece in worst if piece.shift)
        if moved > 1:
            change = f"{moved} values that change, all of which are released: together"
        elif worst[0].cost is not None and len(worst) == 1:
            change = f"a change of {number(worst[0].shift)}:"
        else:
            change = "a value that changes and is released, with other values that share its noise:"
        total = cost_together(worst)
        words = f"`{call.line.code}` hides {change} {worst[0].unit} = {number(total)}"
        is_split = all(map(math.isfinite, worst[0].scales))
        remedy = _enlarged(worst, claim, other_noise, call.source(worst[0])) if is_split else ""
        is_cause = not (is_sampled or is_mixed)
        lines_besides = _besides(call)
        yield Finding("too-little-noise", is_cause, call.line, words, remedy, lines_besides, total)


def _too_little(
    call: Call,
    piece: Piece,
    claim: PrivacyClaim | None,
    other_noise: Sequence[Piece],
    *,
    is_cause: bool,
) -> Finding:
    source, line, code, besides = call.source(piece), call.line, call.line.code, _besides(call)
    if math.isinf(piece.shift):
        first, second = source.operands
        words = (
            f"`{code}` is added to {first} for d1 and to {second} for d2: noise does not hide "
            "values that are not finite"
        )
        remedy = "replace or refuse such values for every input alike, before the noise is added"
        return Finding("no-noise", is_cause, line, words, remedy, besides, math.inf)
    if piece.has_two_scales:
        words = f"`{code}` {_two_scales(piece, source)}: the scale itself tells them apart"
        remedy = "derive the scale from bounds, not from the data"
        return Finding("data-dependent-scale", is_cause, line, words, remedy, besides, piece.value)
    value, scale = piece.value, max(piece.scales)
    cost = "" if value is None else f": {piece.unit} = {number(value)}"
    size = f"scale {number(scale)}" if math.isfinite(scale) and piece.cost is None else ""
    change = f"a change of {number(piece.shift)}" if piece.cost is None else "the change"
    words = f"`{code}`{size and f' with {size}'} hides {change}{cost}"
    if size and source.made is not None and not math.isclose(scale, source.drawn[0]):
        words = f"`{code}` has {size} in `{source.made.code}` and hides {change}{cost}"
    released = [p for p in call.worst if p.released and p.joint != math.inf]
    pieces = sorted(released, key=lambda p: p != piece) if piece in released else [piece]
    remedy = _enlarged(pieces, claim, other_noise, source)
    return Finding("too-little-noise", is_cause, line, words, remedy, besides, value)


def _two_scales(piece: Piece, source: Hidden) -> str:
    """Return words for the scale that a line draws, and for the scales in the output."""
    first, second = map(number, piece.scales)
    scales = f"{first} for one input and {second} for the other"
    drawn_scales = [number(scale) for scale in source.drawn if math.isfinite(scale)]
    if len(drawn_scales) < 2 or drawn_scales == [first, second]:
        return f"has scale {scales}"
    line = (
        drawn_scales[0]
        if drawn_scales[0] == drawn_scales[1]
        else f"{drawn_scales[0]} or {drawn_scales[1]}"
    )
    where = "where the output shows it" if piece.released else "where the program uses it"
    return f"draws noise of scale {line}, which is {scales} {where}"


def _has_random_scale(runs: Sequence[Sequence[Piece]]) -> bool:
    """Return whether the scale on d1 differs between pairs of runs, as a random scale does."""
    # Such noise is a mixture, whose ε may be smaller than the ε of each of its parts.
    largest = [max(piece.scales[0] for piece in pieces) for pieces in runs]
    known = [scale for scale in largest if math.isfinite(scale)]
    return bool(known) and max(known) - min(known) > _ROUNDING_SHARE * max(known)


def _sum_is_above(pieces: Sequence[Piece], claim: PrivacyClaim | None) -> bool:
    return len({piece.unit for piece in pieces}) == 1 and sum_exceeds(pieces, claim)


def _besides(call: Call) -> tuple[SourceLine, ...]:
    """Return the lines from which a call was reached, and the line at which its noise is added."""
    lines = {(line.file, line.line): line for line in (*call.callers, call.added)}
    lines.pop((call.line.file, call.line.line), None)
    return tuple(lines.values())


def _of_parameters(case: Case) -> Iterator[Finding]:
    """Yield a finding for a mechanism of a library whose parameters differ between inputs."""
    # Of noise with a known distribution, only the bounds of the output are compared.
    for call in case.calls:
        comparisons = [hidden for pair in call.hidden for hidden in pair]
        bounds = next((hidden for hidden in comparisons if changed_bounds(hidden)), None)
        unknown = (
            hidden
            for hidden in comparisons
            if hidden.law == "unknown" and changed_parameters(hidden)
        )
        changed = bounds or next(unknown, None)
        if changed is None:
            continue
        first, second = changed.parameters
        names = changed_bounds(changed) or changed_parameters(changed)
        values = " and ".join(
            f"{name} {number(first[name])} for one input and {number(second[name])} for the other"
            for name in names
        )
        words, besides = f"`{call.line.code}` has {values}", _besides(call)
        if bounds is None:
            remedy = "set the parameters without the data"
            yield Finding("data-dependent-parameter", False, call.line, words, remedy, besides)
            continue
        words += ": where the outputs end tells the inputs apart"
        remedy = "take the bounds from what is known of all data, not from the data"
        allowed = _least_delta(case.claim)
        chances = [_chance_at_the_end(changed, name) for name in names]
        is_cause = not allowed or any(chance > allowed for chance in chances)
        yield Finding(
            "data-dependent-parameter", is_cause, call.line, words, remedy, besides, math.inf
        )


def _chance_at_the_end(hidden: Hidden, name: str) -> float:
    """Return the larger probability that noise passes the stricter of two bounds; 0 if unknown."""
    side = 1 if name == "upper" else -1
    end = min(side * parameters[name] for parameters in hidden.parameters)
    chances = [
        tail(hidden.law, scales[0], end - side * parameters[VALUE])
        for scales, parameters in zip(hidden.scales, hidden.parameters, strict=True)
    ]
    return max((chance for chance in chances if chance is not None), default=0.0)


def _least_delta(claim: PrivacyClaim | None, default: float = 0.0) -> float:
    points = () if claim is None else claim.points()
    return min((point.delta for point in points), default=default)


def _constant_seeds(case: Case) -> Iterator[Finding]:
    for seed_line, name, seed in case.runs.constant_seeds:
        words = f"`{name}` gets the seed {seed} in every run: the noise is known, and hides nothing"
        remedy = "take the generator as a parameter, or make it without a seed"
        yield Finding("constant-seed", True, shown(seed_line), words, remedy, cost=math.inf)


def _noise_used_twice(case: Case) -> Iterator[Finding]:
    """Yield a finding for noise that cancels in the difference of two parts of the output."""
    for pair in case.runs.coupled:
        for draw, first, second in pair.comparison.twice:
            words = (
                f"`{draw.code}` hides two values that do not move alike, on lines {first.line} and "
                f"{second.line}: their difference is released without noise"
                if first.line != second.line
                else f"one value of `{draw.code}` hides several values that do not move alike: "
                "their difference is released without noise"
            )
            remedy = "draw fresh noise for each value, with a seed or key of its own"
            lines = shown(first), shown(second)
            yield Finding("noise-used-twice", True, shown(draw), words, remedy, lines, math.inf)
        for draw, added, name in pair.comparison.alone:
            words = (
                f"`{draw.code}` hides a value that changes, and {name} depends on the same noise "
                "in another way: both together show the value without noise"
            )
            remedy = f"draw fresh noise for {name}, or do not release it"
            where = (shown(added),)
            yield Finding("noise-used-twice", True, shown(draw), words, remedy, where, math.inf)


def _unused_noise(case: Case) -> Iterator[Finding]:
    """Yield a note for each line whose noise is added to no value, if it has no other finding."""
    findings = [finding for finding in case.found if finding.kind != "drawn-for-one-input"]
    named = {(finding.line.file, finding.line.line) for finding in findings}
    comparisons = [hidden for pair in case.runs.coupled for hidden in pair.comparison.hidden]
    effects = {(hidden.draw.file, hidden.draw.line) for hidden in comparisons}
    for pair in case.runs.coupled[:1]:
        for draw, _, is_fill in pair.comparison.unused:
            line = shown(draw)
            if is_fill or (draw.file, draw.line) in effects or (line.file, line.line) in named:
                continue
            words = f"the noise of `{draw.code}` is added to nothing that the trace could see"
            yield Finding("unused-noise", False, line, words, "")


def _drawn_for_one_input(case: Case) -> Iterator[Finding]:
    """Yield a note for each line that draws more often on one input, if nothing else is found."""
    if any(finding.is_cause or finding.kind == "control-flow" for finding in case.found):
        return
    pairs = [pair for pair in case.runs.coupled if pair.forward]
    uneven = {draws for pair in pairs for draws in pair.comparison.uneven}
    for draw, _, first, second in sorted(uneven)[:_MAX_UNEVEN_LINES]:
        words = (
            f"`{draw.code}` draws {times(first)} for d1 and {times(second)} for d2: what one "
            "input alone draws has a cost that is not known; look there"
        )
        yield Finding("drawn-for-one-input", False, shown(draw), words, "")


def _sum_of_lines(case: Case) -> Iterator[Finding]:
    """Yield a note if the costs of all lines exceed the claim and there is no other cause."""
    # It is no cause: a proof may show that the mechanism costs less than their sum.
    if not case.exceeds or case.claim is None or any(finding.is_cause for finding in case.found):
        return
    first, *other_sites = case.sites
    words = (
        f"all lines that draw noise cost {case.total} together, more than {case.claim.describe()} "
        f"allows if each is released; the costliest is `{first.line.code}`"
    )
    lines = (*first.callers, *(site.line for site in other_sites))
    yield Finding("sum", False, first.line, words, "", lines)


# Random choices, and outputs that differ between the inputs.


def _of_choices(case: Case) -> Iterator[Finding]:
    """Yield a finding for each random choice whose probabilities differ too much."""
    # Different probabilities are a leak only if an outcome means the same on both inputs. It may
    # not: outcome 3 may be the interval after the third record. The meanings count as the same if,
    # with the same noise, neither the outputs nor the ranges of uniform numbers ever differ.
    comparisons = [pair.comparison for pair in case.runs.coupled]
    means_the_same = not any(
        comparison.differing or comparison.ranges for comparison in comparisons
    )
    for comparison in comparisons:
        for choice in comparison.chosen:
            if not any(excess(*law, case.claim) for law in _laws(choice)):
                continue
            cost = choice_cost(choice)
            words = (
                f"`{choice.place.code}` chooses with probabilities that depend on the data: "
                f"ε = {number(cost)}"
            )
            # One of equally probable records is no leak, though an input has a record more. Nor is
            # a coin for an item that is picked at random, as in permute-and-flip.
            is_picked = any("n" in names and "p" not in names for names in choice.parameters) or (
                choice.is_coin and comparison.picks_items
            )
            line, callers = shown(choice.place), tuple(map(shown, choice.callers))
            is_cause = means_the_same and not is_picked
            yield Finding("data-dependent-choice", is_cause, line, words, "", callers, cost)


def _laws(choice: Chosen) -> list[tuple[Floats, Floats]]:
    """Return the probabilities of the outcomes on each input, for each coin or for the choice."""
    first, second = map(np.asarray, choice.probabilities)
    if first.shape != second.shape or np.array_equal(first, second):
        return []
    if not choice.is_coin:
        return [(first, second)]
    coins = zip(first.tolist(), second.tolist(), strict=True)
    return [(np.array([p, 1 - p]), np.array([q, 1 - q])) for p, q in coins]


def excess(first: Floats, second: Floats, claim: PrivacyClaim | None) -> str | None:
    """Return the cost of two discrete distributions in words, if it exceeds the claim, else None.
    Without a claim, it exceeds if an outcome is impossible under only one distribution. The
    arguments are the probabilities of the same outcomes."""
    if claim is None:
        orders = (first, second), (second, first)
        alone = max(float(np.max(p[q == 0], initial=0.0)) for p, q in orders)
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
    return None


def _of_outputs(case: Case) -> Iterator[Finding]:
    """Yield a finding for each difference without noise, and for each coin above the claim."""
    # The lowest cost of a coin in all pairs of runs counts, since several combinations of coins may
    # lead to the same output, as in rejection sampling.
    costs: dict[Place, float] = {}
    for pair in case.runs.coupled:
        if pair.absorbed is not None:
            coin, cost = pair.absorbed.place, pair.absorbed.cost or 0.0
            costs[coin] = min(cost, costs.get(coin, math.inf))
    for pair in case.runs.coupled:
        if pair.absorbed is not None and case.runs.laws is None:
            coin, cost = pair.absorbed.place, costs[pair.absorbed.place]
            piece = Piece("unknown", (math.nan, math.nan), 0.0, released=True, cost=cost)
            points = () if case.claim is None else case.claim.points()
            pure = [point.epsilon for point in points if point.delta == 0]
            if exceeds(piece, case.claim) or any(cost > bound * (1 + 1e-9) for bound in pure):
                words = f"`{coin.code}` decides between the inputs: ε = {number(cost)}"
                callers = tuple(map(shown, pair.absorbed.callers))
                yield Finding("too-little-noise", True, shown(coin), words, "", callers, cost)
        flow = pair.comparison.control_flow
        if "raises" in pair.bare:
            yield _raises(pair)
        elif pair.bare:
            yield _bare(pair, case.claim)
        elif pair.decided is not None and flow is not None and _is_branch(flow):
            yield _decided(pair, flow, pair.decided, case.claim)


def _of_lengths(case: Case) -> Iterator[Finding]:
    """Yield a finding for a length that differs without noise, if other parts contain noise."""
    # Noise that is not seen does not hide a length.
    for pair in case.runs.coupled[:1]:
        lengths = [name for name in pair.bare if name.startswith("len(") or name.endswith(".shape")]
        if lengths and pair.noised:
            yield _bare(pair._replace(bare=lengths), case.claim)


def _of_thresholds(case: Case) -> Iterator[Finding]:
    """Yield a finding for each part that only one input releases, with probability above δ."""
    allowed = _least_delta(case.claim, default=1.0)
    for pair in case.runs.coupled:
        for leak in pair.threshold_leaks:
            chance = tail(leak.law, leak.scale, leak.margin)
            if chance is None or chance <= allowed * (1 + 1e-6) + 1e-12:
                continue
            which = "d2" if pair.forward else "d1"
            words = (
                f"`{leak.compared.code}` releases {leak.part}, which {which} alone can have, with "
                f"probability {number(chance)}; δ = {number(allowed)} is claimed"
            )
            remedy = "claim a δ above 0, or release the same parts for every input"
            if allowed:
                remedy = "raise the threshold, or add more noise"
            lines = (shown(leak.draw), *map(shown, leak.callers))
            yield Finding("too-little-noise", True, shown(leak.compared), words, remedy, lines)


def _raises(pair: Coupled) -> Finding:
    comparison = pair.comparison
    kind, message, origin = next(error for error in comparison.errors if error is not None)
    which = "d1" if (comparison.errors[0] is not None) == pair.forward else "d2"
    words = f"{kind} is raised for {which} alone, whatever the noise{message and f': {message}'}"
    end = next((line for line in comparison.ends if line is not None), None)
    lines = () if comparison.control_flow is None else (shown(comparison.control_flow.place),)
    return Finding("exception", True, _line(origin or end), words, GIVE_AN_OUTPUT, lines, math.inf)


def _is_branch(flow: ControlFlow) -> bool:
    """Return whether runs continue at two other lines after a line, and not only repeat a loop."""
    lines = {(line.file, line.line) for line in (flow.place, *flow.next_lines) if line is not None}
    is_loop = any(start == flow.place.line for start, _ in loops_of(flow.place.file))
    return None not in flow.next_lines and len(lines) == 3 and not is_loop


def _decided(
    pair: Coupled, flow: ControlFlow, outside: tuple[int, int], claim: PrivacyClaim | None
) -> Finding:
    """Return the finding for a branch that the data decide, and in which only one input draws."""
    # It is a cause if outputs of one input are outside the range of the outputs of the other.
    from dpaudit.stats.binomial import clopper_pearson_lower

    words = f"`{flow.place.code}` decides on data without noise: {_uneven(pair)}"
    is_cause = clopper_pearson_lower(*outside, _BRANCH_LEVEL) > _least_delta(claim)
    lines = tuple(shown(line) for line in flow.next_lines if line is not None)
    remedy, cost = (_SAME_WAY, math.inf) if is_cause else ("", None)
    return Finding("control-flow", is_cause, shown(flow.place), words, remedy, lines, cost)


def _uneven(pair: Coupled) -> str:
    draw, _, *counts = pair.comparison.uneven[0]
    first, second = counts if pair.forward else counts[::-1]
    return f"`{draw.code}` draws {times(first)} for d1 and {times(second)} for d2"


def _bare(pair: Coupled, claim: PrivacyClaim | None) -> Finding:
    """Return the finding for the entries of the output that differ and contain no noise."""
    comparison = pair.comparison
    names = [name for name in pair.bare if not name.startswith("len(")] or pair.bare
    name = names[0]
    values = comparison.differing[name]
    first, second = values if pair.forward else values[::-1]
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    difference = (
        f"{name}{more} is {first} for d1 and {second} for d2, and no noise hides the difference"
    )
    flow, (end, other_end) = comparison.control_flow, comparison.ends
    end_lines = None if end is None or other_end is None else (end[:2], other_end[:2])
    if flow is not None and end_lines is not None and end_lines[0] != end_lines[1]:
        words = f"`{flow.place.code}` decides on data without noise: {difference}"
        following = tuple(shown(line) for line in flow.next_lines if line is not None)
        branch = shown(flow.place)
        return Finding("control-flow", True, branch, words, _SAME_WAY, following, math.inf)
    is_lone = "nothing" in values
    if comparison.uneven and is_lone:
        draw = shown(comparison.uneven[0][0])
        words = f"{_uneven(pair)}: how many values there are, or which, is released without noise"
        lines = () if end is None else (shown(end),)
        return Finding("no-noise", True, draw, words, same_parts(claim), lines, math.inf)
    if is_lone:
        absent = values.index("nothing")
        lone_entries = [
            entry for entry in names if comparison.differing[entry][absent] == "nothing"
        ]
        more = f" (and {len(lone_entries) - 1} more)" if len(lone_entries) > 1 else ""
        which = "d1" if second == "nothing" else "d2"
        difference = f"{name}{more} is there for {which} alone, whatever the noise"
    is_of_keys = is_lone or name.endswith((".index", ".shape"))
    related_lines = [shown(line) for line, *_ in comparison.uneven]
    related_lines += [] if flow is None else [shown(flow.place)]
    remedy = same_parts(claim) if is_of_keys else _ADD_NOISE
    return Finding("no-noise", True, _line(end), difference, remedy, tuple(related_lines), math.inf)


def _of_selected(case: Case) -> Iterator[Finding]:
    """Yield a finding for each value that occurred on one input only."""
    # It is a cause only if the counts of the runs refute the claim: the other input may give the
    # value, but too rarely to be seen.
    for value, is_cause in reported(case.runs, case.claim):
        which, other_input = (f"d{index}" for index in (value.which + 1, 2 - value.which))
        often = f"in {value.often} of {value.runs} runs"
        if value.error is not None:
            kind, message, origin = value.error
            words = f"{kind} is raised for {which} alone, {often} and never for {other_input}"
            words += f": {message}" if message else ""
            line = _line(origin or value.place)
            yield Finding("exception", is_cause, line, words, GIVE_AN_OUTPUT, cost=math.inf)
            continue
        verb = "is" if len(value.part) == 1 else "are"
        statement = f"{AND.join(value.part)} {verb} {value.value} for {which}"
        line, noised = _line(value.place), "with the same noised values"
        if value.often < MIN_OCCURRENCES:
            words = f"{statement} and {value.other} for {other_input} {noised}: {_NOT_SEEN}"
            yield Finding("no-noise", False, line, words, "")
            continue
        is_telling = is_cause or value.often >= _MIN_OCCURRENCES
        end = "noise selects it, and does not hide it" if is_telling else _NOT_SEEN
        words = (
            f"{statement} {often} and never for {other_input}, which has {value.other} {noised}: "
            f"{end}"
        )
        remedy, cost = (_ADD_NOISE, math.inf) if is_telling else ("", None)
        yield Finding("no-noise", is_cause, line, words, remedy, cost=cost)


def _line(origin: Place | None) -> SourceLine:
    return shown(origin or Place("?", 0, "", ""))


def _of_unexplained(case: Case) -> Iterator[Finding]:
    """Yield a note for an entry that differs although each value with noise is equal."""
    ends = (pair.comparison.ends[0] for pair in case.runs.coupled if pair.noised)
    for name in unexplained(case.runs)[:1]:
        words = f"{name} differs with the same noised values: {_NOT_SEEN}"
        yield Finding("no-noise", False, _line(next(ends, None)), words, "")


def _of_rare_branches(case: Case) -> Iterator[Finding]:
    """Yield a note for each value that only one input gives, and only on a rare branch."""
    # It is no cause: the other input may give the value after a choice that was not run.
    allowed = _least_delta(case.claim)
    for value in case.runs.rare:
        if value.chance <= allowed:
            continue
        has, has_not = (f"d{which}" for which in (value.which + 1, 2 - value.which))
        way = f"where `{value.coin.code}` {value.falls}, with probability {number(value.chance)}"
        kind: FindingKind = "no-noise"
        words = (
            f"{value.part} is {value.value} for {has} {way}, and in no run for {has_not}: no noise "
            "hides it"
        )
        coin, origin = shown(value.coin), value.place
        if value.error is not None:
            error, message, raised = value.error
            kind, origin = "exception", raised or origin
            words = f"{error} is raised for {has} {way}, and in no run for {has_not}"
            words += f": {message}" if message else ""
        line = coin if origin is None else shown(origin)
        lines = () if str(line) == str(coin) else (coin,)
        yield Finding(kind, False, line, words, "", lines)


Detector = Callable[[Case], Iterator[Finding]]

KINDS: dict[FindingKind, tuple[Detector, ...]] = {
    "constant-seed": (_constant_seeds,),
    "no-noise": (_of_outputs, _of_selected, _of_rare_branches, _of_noise),
    "control-flow": (_of_outputs,),
    "exception": (_of_outputs, _of_selected, _of_rare_branches),
    "noise-used-twice": (_noise_used_twice,),
    "data-dependent-scale": (_of_noise,),
    "data-dependent-parameter": (_of_parameters,),
    "too-little-noise": (_of_outputs, _of_noise, _of_thresholds),
    "data-dependent-choice": (_of_choices,),
    "drawn-for-one-input": (_drawn_for_one_input,),
    "unused-noise": (_unused_noise,),
    "sum": (_sum_of_lines,),
}


# Words of numbers, and remedies.


def times(count: int) -> str:
    """Return a count in words: "once", "twice" or "3 times"."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def rounded_up(value: float) -> str:
    """Return a number as text, rounded up to four significant digits."""
    if not math.isfinite(value) or value <= 0:
        return number(value)
    unit = 10.0 ** (math.floor(math.log10(value)) - 3)
    return number(math.ceil(value / unit * (1 - _ROUNDING_SHARE)) * unit)


def _enlarged(
    pieces: Sequence[Piece],
    claim: PrivacyClaim | None,
    other_noise: Sequence[Piece],
    source: Hidden,
) -> str:
    """Return in words the scale that satisfies the claim together with other noise; "" if none."""
    if claim is None or any(piece.cost is not None for piece in pieces):
        return ""
    law, scale = pieces[0].law, max(pieces[0].scales)
    if law == "normal" and all(point.delta == 0 for point in claim.points()):
        return "Gaussian noise satisfies no pure ε: use Laplace noise, or claim a δ above 0"
    costly = [piece for piece in other_noise if piece.value != 0]
    factor, enough = enlargement(pieces, claim, costly), FOR_PAIR
    if factor is None:
        factor, enough = enlargement(pieces, claim), FOR_LINE
    if factor is None:
        return ""
    name = "standard deviation" if law == "normal" else "scale"
    return f"a {name} of {rounded_up(factor * scale)}{_in_call(factor, scale, source)} {enough}"


def _in_call(factor: float, scale: float, source: Hidden) -> str:
    """Return in words the scale that a call needs, if the program then multiplies the noise."""
    parameters, drawn_scale = source.parameters[0], source.drawn[0]
    if math.isclose(scale, drawn_scale):
        return ""
    scales = (name for name in ("scale", "sigma", "std") if name in parameters)
    name = next((name for name in scales if np.array_equal(parameters[name], drawn_scale)), None)
    return "" if name is None else f" ({name}={rounded_up(factor * drawn_scale)} in the call)"


def same_parts(claim: PrivacyClaim | None) -> str:
    """Return the remedy for an output whose keys or number of values depend on the data."""
    below = "leave out noisy counts below a threshold"
    has_delta = claim is not None and all(point.delta for point in claim.points())
    more = f", or {below}" if has_delta else f"; or claim a δ above 0, and {below}"
    return f"release the same values for every input, from a fixed list of keys{more}"
