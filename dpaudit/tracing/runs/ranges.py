"""Whether the output shows uniform noise all over its range: it ends where the range does. Noise
that is added modulo something, or only picks one of several outcomes, hides all or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .releasing import are_released
from .running import run

if TYPE_CHECKING:
    from .differences import Comparison, Hidden
    from .places import Spot
    from .running import Run, Subject

# So far from either end of the range, in parts of it.
_NEAR = 1e-6


def by_range(
    subject: Subject,
    comparison: Comparison,
    first: Run,
    inputs: tuple[Any, Any],
    seed: int,
    strict: bool,
) -> Comparison:
    """Return a comparison in which uniform noise is released only if it is at both of its ends, for
    both inputs."""
    hidden = [
        one._replace(released=[False] * len(one.released))
        if _may_be_released(one) and not _is_at_its_ends(subject, one, first, inputs, seed, strict)
        else one
        for one in comparison.hidden
    ]
    return comparison._replace(hidden=hidden)


def _may_be_released(one: Hidden) -> bool:
    is_moved = any(map(all, zip(one.released, one.shifts)))
    return one.law == "uniform" and one.kind != "effect" and is_moved


def _is_at_its_ends(
    subject: Subject, one: Hidden, first: Run, inputs: tuple[Any, Any], seed: int, strict: bool
) -> bool:
    number = one.pieces[[*map(all, zip(one.released, one.shifts))].index(True)]
    draw = first.recorder.pieces.draw_of(number)
    if draw is None or draw.values is None:
        return False
    place, shape = number - draw.first, np.shape(draw.values)
    low, width = (
        float(np.ravel(np.broadcast_to(each, shape))[place])
        for each in (draw.parameters.get("low", 0.0), draw.scale)
    )
    for end in (low + _NEAR * width, low + (1 - _NEAR) * width):
        for dataset in inputs:
            overrides = {(draw.moment, place): end}
            other = run(
                subject, dataset, seed, overrides=overrides, has_lines=False, is_strict=strict
            )
            if _shown(other, number) != _shown(first, number):
                return False
    return True


def _shown(one: Run, number: int) -> set[Spot]:
    """Return where a noised value came to be that the output shows."""
    uses = [use for use in one.recorder.uses if number in np.ravel(use.ids)]
    return {
        use.moment[1] for use in uses if are_released(one, use)[np.ravel(use.ids) == number].any()
    }
