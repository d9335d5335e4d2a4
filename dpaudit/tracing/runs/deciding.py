"""Noise that is compared, and decides a part of the output: in a few runs the part may seem to have
none, where a comparison nearly always comes out the same."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from .leaves import same
from .running import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .events import Entry
    from .recorder import Recorder
    from .running import Run, Subject

    Valued = Callable[[Run], Any]

# Pieces of noise that are tried.
_PIECES = 32
# What noise of scale 1 is below, or above, once in ten thousand draws.
_RARE = {
    "laplace": (-8.5, 8.5),
    "normal": (-3.7, 3.7),
    "logistic": (-9.2, 9.2),
    "gumbel": (-2.2, 9.2),
    "exponential": (0.0, 9.2),
    "geometric": (1.0, 10.2),
    "cauchy": (-3200.0, 3200.0),
}


def is_decided(
    subject: Subject,
    datasets: tuple[Any, Any],
    both: tuple[Sequence[Run], Sequence[Run]],
    seed: int,
    valued: Valued,
) -> bool:
    """Return whether either input gives what the other one gives, once noise that is compared is as
    large as it rarely is.

    both: the runs of either input, of which the first had this seed.  valued: what a run gives.
    """
    for which, dataset in enumerate(datasets):
        wanted = [valued(one) for one in both[1 - which]]

        def gives(overrides: dict[Entry, float], dataset: Any = dataset) -> Any:
            return valued(run(subject, dataset, seed, overrides=overrides, has_lines=False))

        tried = map(gives, _rare(both[which][0].recorder))
        if not any(_alike(one, other) for one in tried for other in wanted):
            return False
    return True


def _alike(one: Any, other: Any) -> bool:
    return type(one) is type(other) and same(one, other)


def _rare(recorder: Recorder) -> Iterator[dict[Entry, float]]:
    """Yield rare noise in place of what was compared: each piece alone, and all of them."""
    pieces = list(islice(_compared(recorder), _PIECES))
    for end in (0, 1):
        yield from ({entry: ends[end]} for entry, ends in pieces)
        if len(pieces) > 1:
            yield {entry: ends[end] for entry, ends in pieces}


def _compared(recorder: Recorder) -> Iterator[tuple[Entry, tuple[float, float]]]:
    """Yield the pieces of noise that were compared, with what they rarely exceed."""
    compared = {
        piece
        for use in recorder.uses
        if use.kind == "compare"
        for number in np.ravel(use.ids).tolist()
        for piece in recorder.pieces.parts_of(number)
    }
    for draw in recorder.draws:
        if draw.law not in _RARE or draw.scale is None:
            continue
        low, high = _RARE[draw.law]
        scales = np.ravel(np.broadcast_to(draw.scale, np.shape(draw.values))).tolist()
        for place, scale in enumerate(scales):
            if draw.first + place in compared:
                yield (draw.moment, place), (low * scale, high * scale)
