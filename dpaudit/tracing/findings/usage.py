"""How noise is drawn and used: constant seeds, one draw for two values, draws without use, draws
for one input alone, and the sum over all lines."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpaudit.certificates.traced import Finding
from dpaudit.tracing.findings.sites import Case
from dpaudit.tracing.source import shown, times

# Lines named, at most, on which one input draws more often than the other.
_FEW_UNEVEN = 3


def constant_seeds(case: Case) -> Iterator[Finding]:
    """Yield the generators that get the same seed in every run."""
    for place, name, seed in case.runs.constant_seeds:
        words = f"`{name}` gets the seed {seed} in every run: the noise is known, and hides nothing"
        remedy = "take the generator as a parameter, or make it without a seed"
        yield Finding("constant-seed", True, shown(place), words, remedy, cost=math.inf)


def noise_used_twice(case: Case) -> Iterator[Finding]:
    """Yield draws that hide two values whose difference is released."""
    for pair in case.runs.coupled:
        for draw, first, second in pair.comparison.twice:
            words = (
                f"`{draw.code}` hides two values that do not move alike, on lines {first.line} and "
                f"{second.line}: their difference is released without noise"
                if first.line != second.line
                else f"one value of `{draw.code}` hides several values that do not move alike: "
                "their difference is released without noise"
            )
            remedy, lines = "draw fresh noise for each value", (shown(first), shown(second))
            yield Finding("noise-used-twice", True, shown(draw), words, remedy, lines, math.inf)


def unused_noise(case: Case) -> Iterator[Finding]:
    """Yield draws that are added to nothing, on lines without another finding: a note."""
    others = [one for one in case.found if one.kind != "drawn-for-one-input"]
    named = {(one.line.file, one.line.line) for one in others}
    for pair in case.runs.coupled[:1]:
        effects = {(one.draw.file, one.draw.line) for one in pair.comparison.hidden}
        for place, _ in pair.comparison.unused:
            line = shown(place)
            if (place.file, place.line) in effects or (line.file, line.line) in named:
                continue
            words = f"the noise of `{place.code}` is added to nothing that the trace could see"
            yield Finding("unused-noise", False, line, words, "")


def drawn_for_one_input(case: Case) -> Iterator[Finding]:
    """Yield lines on which one input draws more often than the other, so that their cost is not
    known; a note, and only if there is no cause."""
    if any(one.is_cause for one in case.found):
        return
    pairs = [pair for pair in case.runs.coupled if pair.forward]
    uneven = {one for pair in pairs for one in pair.comparison.uneven}
    for place, _, one, other in sorted(uneven)[:_FEW_UNEVEN]:
        words = (
            f"`{place.code}` draws {times(one)} for d1 and {times(other)} for d2: what one input "
            "alone draws has a cost that is not known; look there"
        )
        yield Finding("drawn-for-one-input", False, shown(place), words, "")


def sum_of_lines(case: Case) -> Iterator[Finding]:
    """Yield the sum over all lines if it exceeds the claim and no line alone does: a note, since
    the proof of a correct mechanism may be finer than composition."""
    if not case.exceeds or case.claim is None or any(one.is_cause for one in case.found):
        return
    first, *rest = case.sites
    words = (
        f"all lines that draw noise cost {case.total} together, more than {case.claim.describe()} "
        f"allows if each is released; the costliest is `{first.line.code}`"
    )
    others = (*first.callers, *(one.line for one in rest))
    yield Finding("sum", False, first.line, words, "", others)
