"""Comparisons of uniform numbers, which are coins: how likely they are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .pieces import first_of
from .values import SINGLE

if TYPE_CHECKING:
    from .events import Draw
    from .pieces import Pieces
    from .values import Noise

# What a comparison is with its sides exchanged.
MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def is_single(last: Draw, noise: Noise, threshold: Any) -> bool:
    """Return whether the number that was drawn last, from 0 on, is compared with a plain one."""
    return (
        last.first == noise.ids
        and last.law == "uniform"
        and not last.parameters
        and noise.operand is None
        and type(noise.factor) is float
        and noise.factor == 1.0
        and type(last.scale) is float
        and isinstance(threshold, SINGLE)
        and math.isfinite(threshold)
    )


def are_uniform(pieces: Pieces, noise: Noise) -> bool:
    """Return whether uniform numbers are compared, or integers as they were drawn."""
    law = pieces.law_of(noise)
    if law != "integers":
        return law == "uniform"
    draw = pieces.draw_of(first_of(noise.ids))
    assert draw is not None
    bounds = [draw.parameters.get(name) for name in ("low", "high")]
    return bool(np.all(np.equal(noise.factor, 1.0))) and all(
        isinstance(one, SINGLE) for one in bounds
    )


def share_below(pieces: Pieces, noise: Noise, name: str, threshold: Any) -> Any:
    """Return how much of the range of uniform numbers lies below a threshold. name: of the
    comparison."""
    low, width = _range(pieces, noise)
    if pieces.law_of(noise) == "integers":  # of which those below a threshold are counted
        is_over = name in ("le", "gt")
        threshold = np.floor(threshold) + 1 if is_over else np.ceil(threshold)
    if isinstance(threshold, SINGLE) and math.isfinite(threshold) and width > 0:
        return min(max((threshold - low) / width, 0.0), 1.0)
    with np.errstate(all="ignore"):
        return np.clip((threshold - low) / width, 0, 1)


def _range(pieces: Pieces, noise: Noise) -> tuple[Any, Any]:
    """Return where uniform numbers begin, and how wide their range is."""
    number, factor = first_of(noise.ids), first_of(noise.factor)
    draw, width = pieces.draw_of(number), pieces.scales[number] * factor
    assert draw is not None
    if draw.law == "integers":
        low, high = (float(draw.parameters[one]) for one in ("low", "high"))
        return low, high - low
    low = float(first_of(draw.parameters.get("low", 0.0))) * factor
    return (low, width) if width > 0 else (low + width, -width)
