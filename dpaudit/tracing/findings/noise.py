"""Detect wrong noise: noise that is too small, noise whose scale depends on the data, a generator
with the same seed in every run, noise that is added to two values and cancels out in their
difference, noise that is added to no value, and lines that draw more often for one input."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dpaudit.certificates.traced import Finding, SourceLine
from dpaudit.claims import PrivacyClaim
from dpaudit.tracing.costs import Piece, exceeds, sum_exceeds, tail
from dpaudit.tracing.findings.sites import (
    VALUE,
    Call,
    Case,
    changed_bounds,
    changed_parameters,
    coins_as_noise,
    cost_together,
    costliness,
)
from dpaudit.tracing.findings.words import (
    WHOLE,
    clipping,
    enlarged,
    enlargement,
    is_bounded_sum,
    is_whole_record,
    number,
    rounded_down,
    shown,
    times,
)
from dpaudit.tracing.runs.differences import Hidden

# Two scales are equal if their relative difference is at most this number.
_ROUNDING_SHARE = 1e-9


def of_noise(case: Case) -> Iterator[Finding]:
    """Yield a finding for each call that draws too little noise, or noise whose scale depends on
    the data."""
    coins = coins_as_noise(case.runs)
    for call in case.calls:
        others = [piece for other in case.calls if other is not call for piece in other.worst]
        yield from _of_call(call, case, [*others, *coins])


def _of_call(one: Call, case: Case, others: Sequence[Piece]) -> Iterator[Finding]:
    """Yield a finding if a call draws too little noise, or noise whose scale depends on the data.

    one: The call.
    case: The pairs of runs, and the claim.
    others: The noise of all other calls. If the call draws too little noise, the finding suggests
        a scale for it at which all calls together satisfy the claim, if such a scale exists.
    """
    runs, claim = case.runs, case.claim
    if any(changed_bounds(each) for hidden in one.hidden for each in hidden):
        return  # no finding here: `of_parameters` yields it
    seen = [pieces for pieces in one.runs if pieces]
    over = [[piece for piece in pieces if exceeds(piece, claim)] for pieces in seen]
    # A finding is either a cause (it alone breaks the claim) or a hint. Usually one pair of runs
    # with a privacy cost above the claim makes it a cause. But a mechanism that picks records at
    # random may pick the record that differs with a small probability, which lowers the cost.
    # Then the finding is a cause only if all pairs of runs show a cost above the claim.
    is_sampled = any(pair.comparison.picks for pair in runs.coupled)
    is_cause = all(over) if is_sampled else any(over)
    is_mixed = _has_random_scale(seen) or bool(runs.filled)
    if is_mixed and not any(piece.has_two_scales for each in over for piece in each):
        is_cause = False
    if one.law == "uniform":
        # Uniform noise alone cannot hide a change of a value: some outputs are then possible on one
        # input only. Together with other noise, or after a remainder modulo 1, uniform noise can
        # hide the change. So the finding counts as a cause only if no other line draws noise, no
        # records are picked at random, and every pair of runs shows a cost above the claim.
        lines = {each.draw for pair in runs.coupled for each in pair.comparison.hidden}
        is_cause = all(over) and not is_sampled and len(lines) == 1
    if any(over):
        every = [piece for pieces in over for piece in pieces]
        piece = max(every, key=lambda one: (math.isinf(one.shift), costliness(one)))
        yield _too_little(one, piece, case, others, is_cause=is_cause)
        return
    # Values whose joint cost is unknown are left out, so that the sum is a lower bound.
    released = [
        [piece for piece in pieces if piece.released and piece.joint != math.inf] for pieces in seen
    ]
    worst = max(released, key=cost_together, default=[])
    several = [each for each in released if _sum_is_above(each, claim)]
    if len(several) > 1 and _sum_is_above(worst, claim):
        total = cost_together(worst)
        unit = worst[0].unit
        moved = sum(piece.count for piece in worst if piece.shift)
        if moved > 1:
            change = f"{moved} values that change, all of which are released: together"
        elif worst[0].cost is not None and len(worst) == 1:
            change = f"a change of {number(worst[0].shift)}:"
        else:
            change = "a value that changes and is released, with other values that share its noise:"
        words = f"`{one.line.code}` hides {change} {unit} = {number(total)}"
        is_split = all(map(math.isfinite, worst[0].scales))
        larger = enlarged(worst, claim, others, one.source(worst[0])) if is_split else ""
        is_cause = not (is_sampled or is_mixed)
        words, remedy = _clipping_each(one, worst, case, (words, larger))
        yield Finding("too-little-noise", is_cause, one.line, words, remedy, _other(one), total)
    elif one.law == "normal":
        yield from _of_another_pair(one, case)


def _of_another_pair(one: Call, case: Case) -> Iterator[Finding]:
    """Yield a finding that is no cause if a sum is clipped as a whole, and a record that turned it
    to its opposite would cost more than the claim allows."""
    norm, change, mu = _clipped_sum(one, case) or (0.0, 0.0, 0.0)
    piece = Piece("normal", (1.0, 1.0), mu, released=True)
    if math.isfinite(mu) and exceeds(piece, case.claim):
        words = f"`{one.line.code}` hides a value that a record of another pair may change by "
        words += f"{number(2 * norm)}: μ = {number(mu)}"
        words, remedy = _clipping_each(one, [piece], case, (words, ""), 2 * norm / change)
        yield Finding("too-little-noise", False, one.line, words, remedy, _other(one))


def _clipped_sum(one: Call, case: Case) -> tuple[float, float, float] | None:
    """Return `Call.clipped_sum`; None if the data explain a value that keeps its norm."""
    return None if case.changed is not None and case.changed.keeps_norm else one.clipped_sum


def _clipping_each(
    one: Call, pieces: Sequence[Piece], case: Case, texts: tuple[str, str], factor: float = 1.0
) -> tuple[str, str]:
    """Return the words and the remedy of a finding. If the noise hides a sum that is clipped as a
    whole, the words say so, and the remedy says to clip what each record adds to it.

    pieces: The noise.
    texts: The words and the remedy for noise that is too small.
    factor: Size of the change that the noise must hide, divided by the change on this pair.
    """
    clipped = _clipped_sum(one, case)
    if clipped is None:
        return texts
    norm, change, _ = clipped
    words, remedy = texts
    words += f"; the norm is {number(norm)} for both inputs: the whole is clipped, not each record"
    times = None if case.claim is None else enlargement(pieces, case.claim)
    if times is None:
        return words, remedy
    most = math.nan if case.changed is None else change / times / (1 + case.changed.is_replaced)
    bound = (
        f" to a norm of {rounded_down(factor * most)}" if one.law == "normal" and most > 0 else ""
    )
    clip = f"clip what each record adds to the value{bound}, not the whole"
    return words, ", or ".join(filter(None, (clip, remedy)))


def of_parameters(case: Case) -> Iterator[Finding]:
    for call in case.calls:
        yield from _of_parameters(call, case.claim)


def _of_parameters(one: Call, claim: PrivacyClaim | None) -> Iterator[Finding]:
    """Yield a finding if a call uses a mechanism of a library, and gives it different parameters on
    the two inputs. Bounds of the mechanism's output are always compared. Other parameters are
    compared only if the distribution of the noise is unknown; if it is known, other functions
    compare the noise itself.

    one: The call.
    claim: The privacy claim for one run; None if nothing is claimed.
    """
    every = [each for hidden in one.hidden for each in hidden]
    bounds = next((each for each in every if changed_bounds(each)), None)
    unknown = [each for each in every if each.law == "unknown"]
    changed = bounds or next((each for each in unknown if changed_parameters(each)), None)
    if changed is None:
        return
    names = changed_bounds(changed) or changed_parameters(changed)
    first, second = changed.parameters
    said = " and ".join(
        f"{name} {number(first[name])} for one input and {number(second[name])} for the other"
        for name in names
    )
    words = f"`{one.line.code}` has {said}"
    if bounds is None:
        remedy = "set the parameters without the data"
        yield Finding("data-dependent-parameter", False, one.line, words, remedy, _other(one))
        return
    words += ": where the outputs end tells the inputs apart"
    remedy = "take the bounds from what is known of all data, not from the data"
    allowed = min((point.delta for point in claim.points()), default=0.0) if claim else 0.0
    chances = [_chance_at_the_end(changed, name) for name in names]
    is_cause = not allowed or any(each is not None and each > allowed for each in chances)
    yield Finding(
        "data-dependent-parameter", is_cause, one.line, words, remedy, _other(one), math.inf
    )


def _chance_at_the_end(one: Hidden, name: str) -> float | None:
    """Return the probability that noise takes the output of a library's mechanism beyond a bound
    that depends on the data. It is computed for the stricter of the bounds on the two inputs. The
    larger of the probabilities on the two inputs is returned; None if the distribution of the noise
    is unknown.

    name: The name of the bound, "lower" or "upper".
    """
    side = 1 if name == "upper" else -1
    end = min(side * each[name] for each in one.parameters)
    chances = [
        tail(one.law, scales[0], end - side * parameters[VALUE])
        for scales, parameters in zip(one.scales, one.parameters, strict=True)
    ]
    return max((each for each in chances if each is not None), default=None)


def _too_little(
    one: Call, piece: Piece, case: Case, others: Sequence[Piece], *, is_cause: bool
) -> Finding:
    claim, changed = case.claim, case.changed
    source = one.source(piece)
    if math.isinf(piece.shift):
        first, second = source.operands
        words = (
            f"`{one.line.code}` is added to {first} for d1 and to {second} for d2: noise does not "
            "hide values that are not finite"
        )
        remedy = "replace or refuse such values for every input alike, before the noise is added"
        return Finding("no-noise", is_cause, one.line, words, remedy, _other(one), math.inf)
    if piece.has_two_scales:
        words = f"`{one.line.code}` {_two_scales(piece, source)}: the scale itself tells them apart"
        remedy = "derive the scale from bounds, not from the data"
        return Finding(
            "data-dependent-scale", is_cause, one.line, words, remedy, _other(one), piece.value
        )
    value, scale = piece.value, max(piece.scales)
    cost = "" if value is None else f": {piece.unit} = {number(value)}"
    size = f"scale {number(scale)}" if math.isfinite(scale) and piece.cost is None else ""
    change = f"a change of {number(piece.shift)}" if piece.cost is None else "the change"
    whole = changed if changed is not None and is_whole_record(piece, changed) else None
    if whole is not None:
        change += f", {WHOLE[whole.is_replaced]}"
    words = f"`{one.line.code}`{size and f' with {size}'} hides {change}{cost}"
    if size and source.made is not None and not math.isclose(scale, source.drawn[0]):
        has = "adds up to" if source.many > 1 else "has"
        words = f"`{one.line.code}` {has} {size} in `{source.made.code}` and hides {change}{cost}"
    released = [each for each in one.worst if each.released and each.joint != math.inf]
    pieces = sorted(released, key=lambda each: each != piece) if piece in released else [piece]
    remedy = enlarged(pieces, claim, others, source)
    if changed is not None and (whole or is_bounded_sum(piece, source.norms, changed)):
        remedy = ", or ".join(filter(None, (clipping(piece, claim, changed), remedy)))
    words, remedy = _clipping_each(one, pieces, case, (words, remedy))
    return Finding("too-little-noise", is_cause, one.line, words, remedy, _other(one), value)


def _two_scales(piece: Piece, source: Hidden) -> str:
    """Return words for the scale that a line draws, and for the scales in the output."""
    first, second = map(number, piece.scales)
    scales = f"{first} for one input and {second} for the other"
    drawn = [number(scale) for scale in source.drawn if math.isfinite(scale)]
    if len(drawn) < 2 or drawn == [first, second]:
        return f"has scale {scales}"
    line = drawn[0] if drawn[0] == drawn[1] else f"{drawn[0]} or {drawn[1]}"
    where = "where the output shows it" if piece.released else "where the program uses it"
    return f"draws noise of scale {line}, which is {scales} {where}"


def _has_random_scale(runs: Sequence[Sequence[Piece]]) -> bool:
    """Return whether the scale of the noise on d1 differs between pairs of runs, as for normal
    noise with a random variance. Such noise is a mixture of distributions. Its ε may be smaller
    than the ε of each of them, so the noise of a single run does not prove a violation.

    runs: The noise in each pair of runs.
    """
    largest = [max(piece.scales[0] for piece in pieces) for pieces in runs]
    known = [one for one in largest if math.isfinite(one)]
    return bool(known) and max(known) - min(known) > _ROUNDING_SHARE * max(known)


def _sum_is_above(pieces: Sequence[Piece], claim: PrivacyClaim | None) -> bool:
    return len({piece.unit for piece in pieces}) == 1 and sum_exceeds(pieces, claim)


def _other(one: Call) -> tuple[SourceLine, ...]:
    """Return the additional lines of a finding about a call that draws noise: the lines from which
    the call was reached, and the line that adds the noise. The line that draws is left out."""
    lines = {(each.file, each.line): each for each in (*one.callers, one.added)}
    return tuple(each for key, each in lines.items() if key != (one.line.file, one.line.line))


# If lines draw more often for one input than for the other, at most this number of them is
# reported.
_MAX_UNEVEN_LINES = 3


def constant_seeds(case: Case) -> Iterator[Finding]:
    """Yield a finding for each random generator to which the mechanism gives the same seed in every
    run."""
    for place, name, seed in case.runs.constant_seeds:
        words = f"`{name}` gets the seed {seed} in every run: the noise is known, and hides nothing"
        remedy = "take the generator as a parameter, or make it without a seed"
        yield Finding("constant-seed", True, shown(place), words, remedy, cost=math.inf)


def noise_used_twice(case: Case) -> Iterator[Finding]:
    """Yield a finding for each draw of noise that is added to two values which change by different
    amounts between the inputs, or that the output also shows by itself. The noise cancels out in
    the difference of the two."""
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


def unused_noise(case: Case) -> Iterator[Finding]:
    """Yield a note for each line whose noise is added to no value, if the line has no other
    finding. A note is a finding that is not counted as a cause of a leak."""
    others = [one for one in case.found if one.kind != "drawn-for-one-input"]
    named = {(one.line.file, one.line.line) for one in others}
    every = [one for pair in case.runs.coupled for one in pair.comparison.hidden]
    effects = {(one.draw.file, one.draw.line) for one in every}
    for pair in case.runs.coupled[:1]:
        for place, _, is_fill in pair.comparison.unused:
            line = shown(place)
            if is_fill or (place.file, place.line) in effects or (line.file, line.line) in named:
                continue
            words = f"the noise of `{place.code}` is added to nothing that the trace could see"
            yield Finding("unused-noise", False, line, words, "")


def drawn_for_one_input(case: Case) -> Iterator[Finding]:
    """Yield a note for each line that draws more often on one input than on the other, since the
    cost of such a line is unknown. A note is a finding that is not counted as a cause of a leak.
    Yield nothing if another finding is a cause, or names the branch."""
    if any(one.is_cause or one.kind == "control-flow" for one in case.found):
        return
    pairs = [pair for pair in case.runs.coupled if pair.forward]
    uneven = {one for pair in pairs for one in pair.comparison.uneven}
    for place, _, one, other in sorted(uneven)[:_MAX_UNEVEN_LINES]:
        words = (
            f"`{place.code}` draws {times(one)} for d1 and {times(other)} for d2: what one input "
            "alone draws has a cost that is not known; look there"
        )
        yield Finding("drawn-for-one-input", False, shown(place), words, "")


def sum_of_lines(case: Case) -> Iterator[Finding]:
    """Yield a note (a finding that is not counted as a cause of a leak) if the costs of all lines
    together exceed the claim. Yield nothing if another finding is a cause. It is only a note, since
    a proof may show that the mechanism costs less than this sum."""
    if not case.exceeds or case.claim is None or any(one.is_cause for one in case.found):
        return
    first, *rest = case.sites
    words = (
        f"all lines that draw noise cost {case.total} together, more than {case.claim.describe()} "
        f"allows if each is released; the costliest is `{first.line.code}`"
    )
    others = (*first.callers, *(one.line for one in rest))
    yield Finding("sum", False, first.line, words, "", others)
