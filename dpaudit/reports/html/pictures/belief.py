"""What the belief in one input may become after an output."""

from __future__ import annotations

import math

from dpaudit.certificates.certificate import OneRunCertificate
from dpaudit.certificates.result import AuditResult
from dpaudit.claims import posterior_bounds
from dpaudit.reports import numbers
from dpaudit.reports.html.canvas import Canvas, Scale
from dpaudit.reports.html.pictures.picture import STEPS, Key, Picture

# Beyond it a belief of 50 % becomes certainty to all digits.
_LARGEST_EPSILON = 50.0
# Below it there would be too many zeros.
_TINY = 1e-10


def belief(result: AuditResult) -> Picture:
    """Return what the belief in one input may become, by the claim and by what was shown."""
    claimed = min(result.point.epsilon, _LARGEST_EPSILON)
    shown = min(result.epsilon_lower, _LARGEST_EPSILON)
    subject = "a canary" if isinstance(result.decisive, OneRunCertificate) else "d1"
    across, up = f"belief in {subject} before", f"belief in {subject} after"
    canvas = Canvas(Scale(0, 1), Scale(0, 1), across, up)
    canvas.ticks()
    priors = [step / STEPS for step in range(STEPS + 1)]
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
    allowed = numbers.sure(claimed, numbers.NEAREST)
    # Only what reveals an input makes a belief certain.
    is_certain = math.isinf(result.epsilon_lower)
    found = numbers.share(1.0) if is_certain else numbers.sure(result.epsilon_lower, rounding)
    shown_exactly = math.inf if is_certain else result.epsilon_lower
    return Picture(
        "belief",
        f"Belief in {subject} before and after an output",
        canvas.markup(),
        (Key("claim", "line", "the claim: most and least"), Key("bound", "line", f"{kind} ε"),
         Key("even", "line", "nothing learned"),
         Key("bound", "diamond", f"{kind}, from even odds")),
        f"From even odds the claimed ε allows {allowed} at most; the {kind} ε makes {found} "
        "possible.",
        tuple(notes),
        ("before", "claim, at least", "claim, at most", f"{kind}, up to at least"),
        tuple(
            (numbers.share(one), _least(claimed, one), _most(claimed, one, numbers.NEAREST),
             _most(shown_exactly, one, rounding))
            for one in rows
        ),
    )  # fmt: skip


def _least(epsilon: float, prior: float) -> str:
    """Return the smallest belief that an output may leave."""
    least = posterior_bounds(epsilon, prior)[0]
    if 0 < least < _TINY:
        return f"nearly {numbers.share(0.0)}"
    return numbers.share(least)


def _most(epsilon: float, prior: float, rounding: str) -> str:
    """Return the largest belief that an output may leave; certainty for an infinite ε alone."""
    if math.isinf(epsilon):
        return numbers.share(1.0)
    most = posterior_bounds(min(epsilon, _LARGEST_EPSILON), prior)[1]
    if most <= 0.5:
        return numbers.share(most, rounding)
    # As in the text: even odds under an ε that is larger by the log-odds of the prior.
    return numbers.sure(epsilon + math.log(prior / (1 - prior)), rounding)
