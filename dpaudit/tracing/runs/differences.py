"""Define the types that describe how two runs of a mechanism on different inputs differ, if their
noisy values (sums of noise and a number) are the same."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .coins import Absorbed
    from .places import Place, Spot


class Hidden(NamedTuple):
    """Noise that is added to a number, or compared with a number, in both runs of a pair. This
    number is called the operand. For an array of noise, the lists have one entry for each number of
    the array.

    draw: The line that draws the noise.
    added: The line that adds the noise to the operand, or compares the noise with it.
    kind: `add`, `compare`, or `effect` for a uniform number whose noise the trace knows only by its
        effect on the output.
    primitive: The name of the function that draws the noise, or "" if it is unknown.
    law: The name of the distribution of the noise, such as `laplace`, or `unknown`.
    operands: The operand in the first run and the operand in the second run, as text.
    shifts: The distances between the operands of the two runs.
    scales: The scales of the noise in the first run and the scales in the second run: before the
        program multiplied the sum of noise and operand, or in the output if they differ.
    released: Whether the output contains the sum of noise and operand.
    pieces: The ids of the drawn numbers in the records of the first run.
    parameters: The arguments of the drawing function by name, in the first run and in the second
        run.
    cost: For `effect`: the absolute log-ratio, in nats, of the densities of the output on the two
        inputs; None for other noise, or if it is unknown.
    callers: The lines from which the draw was reached, then the lines from which the addition was
        reached, innermost first.
    joint: For values that share normal noise, the μ that each value adds to the μ of the values
        before it (see `correlated`); infinity if it is unknown, NaN for other values. None if all
        are NaN.
    made: The line that makes the value, which may contain several draws; None if it is unknown.
    drawn: The scale that the drawing function was given, before the program multiplied the noise,
        in the first run and in the second run; NaN if it is unknown, or if the value contains draws
        of several lines or scales.
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
    joint: list[float] | None = None
    made: Place | None = None
    drawn: tuple[float, float] = (math.nan, math.nan)


class Chosen(NamedTuple):
    """A discrete random choice that both runs of a pair make. It is a coin, an array of coins, or a
    draw from few outcomes.

    place: The line of the choice.
    primitive: The name of the function that makes the choice, or `coin`.
    probabilities: The probabilities of the outcomes in the first run, and in the second run. For an
        array of coins, the probability of True for each coin.
    is_coin: Whether it is a coin, or an array of coins.
    parameters: The arguments of the function by name, in the first run and in the second run; empty
        for coins.
    callers: The lines from which the choice was reached, innermost first.
    """

    place: Place
    primitive: str
    probabilities: tuple[list[float], list[float]]
    is_coin: bool
    parameters: tuple[dict[str, Any], dict[str, Any]]
    callers: tuple[Place, ...]


class ControlFlow(NamedTuple):
    """The point at which two runs take different paths through the code.

    place: The last line that both runs execute before their paths differ.
    next_lines: The line that the first run executes next, and the line that the second run executes
        next; None for a run that ends there.
    """

    place: Place
    next_lines: tuple[Place | None, Place | None]


class Comparison(NamedTuple):
    """The differences between two runs with the same noisy values.

    hidden: The noise of both runs, with the numbers to which it is added.
    chosen: The discrete random choices of both runs.
    differing: Maps the name of each entry of the output that differs, such as `output[1]`, to its
        values in the first and second run, as text.
    control_flow: The point at which the runs take different paths; None if they take the same path.
    uneven: (line, function, count in the first run, count in the second run) for each function that
        draws more numbers in one run than in the other.
    twice: (line of the draw, line of one use, line of another use) for noise that is added to, or
        compared with, two numbers, which change by different amounts from the first run to the
        second.
    moved: The instructions at which a noisy value is combined with data again; empty in the results
        of `couple`.
    unused: (line, function, whether it fills memory in place) for each draw whose numbers are never
        added to, or compared with, a number.
    errors: The exception of the first run and the exception of the second run, as (type, message,
        line); None for a run without an exception.
    ends: The last line that the first run, and the last line that the second run, executed in the
        function in which the run began; None if it is unknown.
    picks: Whether the mechanism may pick records at random: it makes some discrete random choice.
    picks_items: Whether a function that permutes or picks items is called; coins do not count.
    ranges: Whether some uniform number is drawn from different ranges in the two runs.
    alone: (line of the draw, line of the addition, name of an entry of the output) for noise that
        hides a change of a released value, and that the entry shows without this value.
    """

    hidden: list[Hidden]
    chosen: list[Chosen]
    differing: dict[str, tuple[str, str]]
    control_flow: ControlFlow | None
    uneven: list[tuple[Place, str, int, int]]
    twice: list[tuple[Place, Place, Place]]
    moved: frozenset[Spot] | tuple[()]
    unused: list[tuple[Place, str, bool]]
    errors: tuple[Any, Any]
    ends: tuple[Place | None, Place | None]
    picks: bool
    picks_items: bool
    ranges: bool
    alone: tuple[tuple[Place, Place, str], ...] = ()


class ThresholdLeak(NamedTuple):
    """An entry of the output that only one input can give, and only if noise exceeds a margin.

    draw: The line that draws the noise.
    compared: The line that compares the noisy value with the threshold.
    part: The name of the entry, such as `output['a']`, or a text in the output.
    law: The name of the distribution of the noise, such as `laplace`.
    scale: The scale of the noise.
    margin: The number that the noise must exceed for the entry to occur.
    callers: The lines from which the draw was reached, innermost first.
    """

    draw: Place
    compared: Place
    part: str
    law: str
    scale: float
    margin: float
    callers: tuple[Place, ...]


class Coupled(NamedTuple):
    """A pair of runs: a run on one input, then a run on the other input with the same noise.
    Entries of the output have names such as `output[1]`; the name "raises" stands for an exception
    in only one of the runs.

    forward: Whether the first run is on d1.
    seed: The seed of the noise.
    comparison: The differences between the two runs.
    absorbed: The random choice that explains the difference of the outputs: with another outcome of
        it in the second run, both outputs are equal. None if there is none, or if the outputs are
        equal.
    bare: The names of the differing entries of the output that contain no noise.
    noised: The names of the differing entries of the output that contain noise.
    threshold_leaks: The entries of the output that occur only on the input of the second run, and
        there only if noise exceeds a threshold.
    together: Maps the names of two entries, such as `output[0]` and `output[1]`, to their values in
        the first and second run, as text. Noise may select an entry that differs, and the other
        other entry may show what it selected.
    decided: Set if some function draws more often on one input than on the other, whatever the
        noise: (number of runs on one input whose output is impossible on the other input, since it
        is outside the range of the uniform number that is the output there; number of runs).
    """

    forward: bool
    seed: int
    comparison: Comparison
    absorbed: Absorbed | None
    bare: list[str]
    noised: list[str]
    threshold_leaks: list[ThresholdLeak]
    together: dict[tuple[str, ...], tuple[str, str]]
    decided: tuple[int, int] | None = None
