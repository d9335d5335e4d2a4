"""Whether noise that hides several things would have to move alike in all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .releasing import are_released

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .events import Use
    from .places import Place, Spot
    from .recorder import Recorder
    from .running import Run

# Noise that two uses would have to have moved by is the same up to this, in its own units.
_CLOSE = 1e-9


def twice(run: Run, pairs: list[tuple[Use, Use]]) -> list[tuple[Place, Place, Place]]:
    """Return noise that hides two things which do not move alike: where it was drawn, and both
    places where it was added."""
    first = run.recorder
    compared = {id(first.uses[one]) for one in first.compared if one is not None}
    many = len(first.pieces.laws)
    steps, owners = np.full(many, np.nan), np.full(many, -1)
    units = np.nan_to_num(first.pieces.all_scales)
    found: dict[tuple[Any, Any], tuple[Place, Place, Place]] = {}
    for place, (one, other) in enumerate(pairs):
        moved = _steps(one, other)
        if moved is None:
            continue
        moved, ids = np.ravel(moved), np.ravel(one.ids)
        fresh = np.isnan(steps[ids])
        steps[ids[fresh]], owners[ids[fresh]] = moved[fresh], place
        size = np.maximum(np.maximum(1.0, np.abs(moved)), units[ids])
        wrong = ids[np.abs(steps[ids] - moved) > _CLOSE * size]
        for owner in np.unique(owners[wrong]).tolist():
            before, number = pairs[owner][0], int(wrong[owners[wrong] == owner][0])
            is_shared = before is one and id(one) not in compared
            is_uniform = first.pieces.laws[number] == "uniform"
            if (is_shared or is_uniform) and not _shows_both(run, before, one):
                # A sum of entries that share their noise shows no difference of two; uniform
                # numbers are compared, one after the other, with sums of probabilities.
                continue
            draw = first.pieces.draw_of(number)
            drawn = first.place(one.moment if draw is None else draw.moment)
            added = first.place(before.moment), first.place(one.moment)
            found.setdefault((before.moment[1], one.moment[1]), (drawn, *added))
    return list(found.values())


def _shows_both(run: Run, before: Use, one: Use) -> bool:
    """Return whether the output shows two values that have some noise in common."""
    if before is one:
        numbers = np.ravel(one.ids)[are_released(run, one)]
        return len(np.unique(numbers)) < len(numbers)
    return all(each.kind == "add" and np.any(are_released(run, each)) for each in (before, one))


def moved_at(first: Recorder, second: Recorder, pairs: list[tuple[Use, Use]]) -> Iterator[Spot]:
    """Yield where a noised value is combined with something that differs between the runs, so that
    its noise would have to move otherwise than it has before."""
    for one, other in pairs:
        if one.previous is None or other.previous is None:
            continue
        before = first.uses[one.previous], second.uses[other.previous]
        if not any(np.any(each.operand) for each in before):
            continue  # noise alone, drawn around zero
        steps = [_steps(one, other), _steps(*before)]
        if np.array_equal(one.factor, other.factor) and all(each is not None for each in steps):
            try:
                if np.allclose(steps[0], steps[1], rtol=_CLOSE, atol=_CLOSE):
                    continue
            except ValueError:  # of other shapes
                pass
        yield one.moment[1]


def _steps(one: Use, other: Use) -> Any:
    """Return by how much the noise of two uses has moved, in its own units; None for uses of
    different shapes."""
    if np.shape(one.operand) != np.shape(other.operand):
        return None
    with np.errstate(all="ignore"):
        operands = (np.asarray(each.operand, dtype=float) for each in (one, other))
        moved = np.subtract(*operands) / one.factor
    return np.where(np.isfinite(moved), moved, 0.0)
