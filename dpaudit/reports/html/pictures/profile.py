"""The privacy profile of a claim, and the bounds on that of the mechanism."""

from __future__ import annotations

import math

from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.reports import numbers
from dpaudit.reports.html.canvas import Canvas, Scale
from dpaudit.reports.html.pictures.picture import STEPS, Key, Picture, level

# Below it a linear axis shows no difference.
_SMALL_DELTA = 0.02
_REFUTES = "A bound to the right of the claimed ε, or above the claimed δ, refutes the claim."
_FALL_SHORT = "Neither bound does so here: the p-value refutes the claim."


def profile(result: AuditResult) -> Picture:
    """Return the δ that the claim allows at every ε, and the two bounds."""
    claim, point = result.claim, result.point
    epsilon, delta, last = result.epsilon_lower, result.delta_lower, max(1.0, 1.5 * point.epsilon)
    if math.isinf(epsilon):
        epsilon = last  # at the edge
    else:
        last = max(last, 1.15 * epsilon)
    values = [last * step / STEPS for step in range(STEPS + 1)] + [point.epsilon]
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
    sure = "" if exactly else f", with {level(result)} confidence"
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
    """Return whether a claim is refuted that no bound exceeds: such as by Holm's procedure, at more
    than the audit's share."""
    point = result.point
    exceeds = result.epsilon_lower > point.epsilon or result.delta_lower > point.delta
    return result.verdict is Verdict.VIOLATION and result.ending.by_chance and not exceeds
