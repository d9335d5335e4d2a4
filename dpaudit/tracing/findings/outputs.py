"""Detectors of differences of the outputs that no noise hides."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpaudit.certificates.traced import Finding
from dpaudit.claims import PrivacyClaim
from dpaudit.tracing.costs import Piece, exceeds, tail
from dpaudit.tracing.findings.choices import of_laws
from dpaudit.tracing.findings.remedies import GIVE_AN_OUTPUT, same_parts
from dpaudit.tracing.findings.sites import Case
from dpaudit.tracing.runs.comparing import Coupled
from dpaudit.tracing.runs.coupling import Runs
from dpaudit.tracing.runs.places import Place
from dpaudit.tracing.source import number, shown, times

# Ends of the process of an isolated mechanism, reported like exceptions.
_ENDS = ("crash", "timeout")


def of_outputs(case: Case) -> Iterator[Finding]:
    """Yield differences of the outputs that no noise hides, and coins that decide the output."""
    runs, claim = case.runs, case.claim
    if runs.laws is not None:
        yield from of_laws(runs.laws, claim)
    # Several branches may lead to an output, as in rejection sampling: the cheapest counts.
    costs: dict[Place, float] = {}
    for pair in runs.coupled:
        if pair.absorbed is not None:
            place, cost = pair.absorbed.places[0], pair.absorbed.cost
            costs[place] = min(0.0 if cost is None else cost, costs.get(place, math.inf))
    for pair in runs.coupled:
        if pair.absorbed is not None and not (runs.laws is not None and runs.laws.is_exact):
            place = pair.absorbed.places[0]
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


def of_thresholds(case: Case) -> Iterator[Finding]:
    """Yield parts of the output that only one input has, with a probability above the claimed δ."""
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
    happens = f"a {kind} ends" if kind in _ENDS else f"{kind} is raised for"
    words = f"{happens} {which} alone, whatever the noise{said}"
    end = next((one for one in pair.comparison.ends if one is not None), None)
    line = shown(place or end or Place("?", 0, "", ""))
    others = (
        () if pair.comparison.control_flow is None else (shown(pair.comparison.control_flow.place),)
    )
    return Finding("exception", True, line, words, GIVE_AN_OUTPUT, others, math.inf)


def _bare(pair: Coupled, runs: Runs, claim: PrivacyClaim | None) -> Finding:
    """Return the finding of a part of the output without noise."""
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
            remedy = "decide on noised values alone, or go the same way for all data"
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
    line = shown(ends[0] or Place("?", 0, "", ""))
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
    """Return a phrase if a part of the output is constant for one input and noisy for the other;
    else an empty string."""
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
