"""The differences between two runs with the same noised values, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .coins import Absorbed
    from .places import Place, Spot


class Hidden(NamedTuple):
    """Noise, and the operands that it hides in two runs. An operand is the number, or array, to
    which noise is added or with which noise is compared. A piece of noise is one drawn number.
    Lists have one entry for each piece.

    draw: The line that draws the noise.
    added: The line that adds the noise to the operand, or compares the noise with it.
    kind: `add`, `compare`, or `effect` if the noise is known only by its effect on the output.
    primitive: The name of the function that draws the noise, or "" if it is unknown.
    law: The name of the distribution of the noise, such as `laplace`, or `unknown`.
    operands: The operand in the first run and the operand in the second run, as text.
    shifts: The distances between the operands of the two runs.
    scales: The scales of the noise in the first run and the scales in the second run.
    released: Whether the output shows each noised value.
    pieces: The number of each piece in the records of the run.
    parameters: The arguments of the primitive, by name, in the first run and in the second run.
    cost: The absolute log-ratio, in nats, of the densities of the output in the two runs, for
        uniform noise of kind `effect`; else None.
    callers: The lines from which the draw, then the addition, was called, innermost first.
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
    """A coin (a comparison of a uniform number with a threshold), an array of coins, or another
    discrete choice, in two runs.

    place: The line of the coin or choice.
    primitive: The name of the function that makes the choice, or `coin`.
    probabilities: The probabilities of the outcomes in the first run, and in the second run. For an
        array of coins, the probability of True for each coin.
    is_coin: Whether it is a coin, or an array of coins.
    parameters: The arguments of the primitive, by name, in the first run and in the second run;
        empty for coins.
    callers: The lines from which the coin or choice was called, innermost first.
    """

    place: Place
    primitive: str
    probabilities: tuple[list[float], list[float]]
    is_coin: bool
    parameters: tuple[dict[str, Any], dict[str, Any]]
    callers: tuple[Place, ...]


class ControlFlow(NamedTuple):
    """The point at which the control flow of two runs differs.

    place: The last line that both runs execute before the difference.
    next_lines: The line that the first run executes next, and the line that the second run executes
        next; None for a run that executes no further line.
    """

    place: Place
    next_lines: tuple[Place | None, Place | None]


class Comparison(NamedTuple):
    """The differences between two runs with the same noised values.

    hidden: The noise of both runs, with the operands that it hides.
    chosen: The coins and other discrete choices of both runs.
    differing: The name of each part of the output that differs, with both values as text.
    control_flow: The point at which the control flow differs; None if it does not differ.
    uneven: (line, primitive, number in the first run, number in the second run) for each primitive
        that draws different numbers of values in the two runs.
    twice: (line of the draw, line of one use, line of another use) for noise that is added to, or
        compared with, two values that change by different amounts between the runs.
    moved: The spots (instructions) at which a noised value is combined with data again; empty in
        the results of `couple`.
    unused: (line, primitive) for each draw whose numbers are never added or compared.
    errors: The exception of the first run and the exception of the second run: its type, message
        and line; None for a run that does not raise.
    ends: The last line of the first run and the last line of the second run, in the function in
        which the run began; None if it is unknown.
    picks: Whether records may be picked at random: a coin or a random choice occurred.
    picks_items: Whether a draw may pick records at random, such as a permutation; coins do not
        count.
    ranges: Whether a uniform number has different ranges in the two runs.
    """

    hidden: list[Hidden]
    chosen: list[Chosen]
    differing: dict[str, tuple[str, str]]
    control_flow: ControlFlow | None
    uneven: list[tuple[Place, str, int, int]]
    twice: list[tuple[Place, Place, Place]]
    moved: frozenset[Spot] | tuple[()]
    unused: list[tuple[Place, str]]
    errors: tuple[Any, Any]
    ends: tuple[Place | None, Place | None]
    picks: bool
    picks_items: bool
    ranges: bool


class ThresholdLeak(NamedTuple):
    """A part (entry) of the output that occurs on only one input, and only if noise exceeds a
    margin.

    draw: The line that draws the noise.
    compared: The line that compares the noised value with the threshold.
    part: The name of the part, or a text in the output.
    law: The name of the distribution of the noise, such as `laplace`.
    scale: The scale of the noise.
    margin: The number that the noise must exceed.
    callers: The lines from which the draw was called, innermost first.
    """

    draw: Place
    compared: Place
    part: str
    law: str
    scale: float
    margin: float
    callers: tuple[Place, ...]


class Coupled(NamedTuple):
    """A pair of coupled runs: a run on one input, then a run on the other input with the same
    noise. A part is one entry of the output, such as `output[1]`, or "raises" for an exception.

    forward: Whether the first run is on d1.
    seed: The seed of the noise.
    comparison: The differences between the two runs.
    absorbed: The coin that makes both outputs equal when it is flipped; None if there is none, or
        if the outputs are equal.
    bare: The names of the differing parts of the output that have no noise.
    noised: The names of the differing parts of the output that have noise.
    threshold_leaks: The parts of the output that occur only on the second input, and only if noise
        exceeds a threshold.
    """

    forward: bool
    seed: int
    comparison: Comparison
    absorbed: Absorbed | None
    bare: list[str]
    noised: list[str]
    threshold_leaks: list[ThresholdLeak]
