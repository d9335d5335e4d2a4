"""What two runs with the same noised values show, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .places import Place, Spot


class Hidden(NamedTuple):
    """Noise, and what it hides: the operands of two runs that came to the same noised values.

    draw: where it was drawn.  added: where it was added, or compared.  kind: add or compare.
    primitive, law: of the noise.  operands: of both runs.  shifts: how far these are apart, an
    entry each.  scales: of the noise in both runs, likewise.  released: which of the noised values
    are part of the output.  pieces: the numbers of the pieces of noise.  parameters: of both draws.
    callers: the user's own lines that the call of the primitive, or the addition, came from, the
    innermost first.  cost: the log-ratio of the densities at this output, in nats, where the noise
    is known by its effect on the output alone.
    """

    draw: Place
    added: Place
    kind: str
    primitive: str
    law: str
    operands: tuple[str, str]
    shifts: list[float]
    scales: tuple[list[float], list[float]]
    released: list[bool]
    pieces: list[int]
    parameters: tuple[dict[str, Any], dict[str, Any]]
    cost: float | None = None
    callers: tuple[Place, ...] = ()


class Chosen(NamedTuple):
    """A coin, or another discrete choice, whose probabilities differ between the runs.

    place: where.  primitive: or the comparison.  probabilities: of the outcomes in both runs: for
    a coin of True, an entry each.  is_coin: whether it is one.  parameters: of both.
    callers: as of noise.
    """

    place: Place
    primitive: str
    probabilities: tuple[list[float], list[float]]
    is_coin: bool
    parameters: tuple[dict[str, Any], dict[str, Any]]
    callers: tuple[Place, ...]


class Parted(NamedTuple):
    """Where two runs take different ways. place: the last line in common.  ways: the next line of
    each; None at the end of a run."""

    place: Place
    ways: tuple[Place | None, Place | None]


class Comparison(NamedTuple):
    """What two runs show.

    hidden, chosen: noise with what it hides, and choices.  differing: the parts of the output that
    differ, with both values.  parted: where the ways part, if they do.  uneven: primitives that are
    called another number of times, or for another number of values, with both numbers.  twice:
    pieces of noise that hide two things which do not move alike: each two places.  moved: where a
    noised value meets data, so that it hides another change than before; empty once this has been
    looked at.  unused: draws
    of which nothing was used.  errors: of both runs.  ends: the last line of each.  picks: whether
    records may be picked at random.  ranges: whether a uniform number has another range.
    """

    hidden: list[Hidden]
    chosen: list[Chosen]
    differing: dict[str, tuple[str, str]]
    parted: Parted | None
    uneven: list[tuple[Place, str, int, int]]
    twice: list[tuple[Place, Place, Place]]
    moved: frozenset[Spot] | tuple[()]
    unused: list[tuple[Place, str]]
    errors: tuple[Any, Any]
    ends: tuple[Place | None, Place | None]
    picks: bool
    ranges: bool
