"""Describe how two runs of a mechanism with the same noisy values differ."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .coins import Absorbed
    from .places import Place, Spot


class Hidden(NamedTuple):
    """A use of noise in both runs of a pair. For an array of noise, the lists have one entry for
    each number of the array. Pairs are (first run, second run).

    draw, added: The line that draws the noise, and the line that uses it.
    kind: `add`, `compare`, or `effect` for a uniform number whose noise the trace knows only by its
        effect on the output.
    primitive: The name of the primitive, or "" if it is unknown.
    operands: The operands as text.
    shifts: The distances between the operands of the two runs.
    scales: The scales of the noise, before the program multiplied the noisy value. If these differ
        between the runs, the scales in the output.
    released: Whether the output contains the noisy value.
    pieces: The ids of the pieces in the first run.
    parameters: The arguments of the primitive by name.
    cost: For `effect`: the absolute log-ratio, in nats, of the densities of the output on the two
        inputs; None for other noise, or if it is unknown.
    callers: The callers of the draw, then those of the addition.
    joint: For values that share normal noise, the μ that each value adds to the μ of the values
        before it (see `correlated`); infinity if it is unknown, NaN for other values. None if all
        are NaN.
    made: The line that makes the value, which may contain several draws; None if it is unknown.
    drawn: The scale that the primitive was given, before the program multiplied the noise; NaN if
        it is unknown, or if the value contains draws of several lines or scales.
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
    """A choice, or an array of coins, that both runs of a pair make. Pairs are (first run, second
    run).

    primitive: The name of the function that makes the choice, or `coin`.
    probabilities: The probabilities of the outcomes. For an array of coins, the probability of True
        for each coin.
    parameters: The arguments of the function by name; empty for coins.
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
    next_lines: The lines that the first and the second run execute next; None for a run that ends
        at `place`.
    """

    place: Place
    next_lines: tuple[Place | None, Place | None]


class RunDifferences(NamedTuple):
    """The differences between two runs with the same noisy values.

    hidden: The noise of both runs, with its operands.
    differing: Maps each part that differs to its values in the first and second run, as text.
    control_flow: None if the runs take the same path.
    uneven: (line, function, count in the first run, count in the second run) for each function that
        draws more numbers in one run than in the other.
    twice: (line of the draw, line of one use, line of another use) for noise with two uses whose
        operands change by different amounts.
    moved: The spots at which a noisy value is combined with data again; empty in the results of
        `couple`.
    unused: (line, function, whether it fills memory in place) for each draw without a use.
    errors: The exceptions of the two runs as (type, message, line), or None.
    ends: The last line that each run executed in the function in which it began; None if unknown.
    picks: Whether the mechanism makes some choice, so that it may pick records at random.
    picks_items: Whether a function that permutes or picks items is called; coins do not count.
    ranges: Whether some uniform number is drawn from different ranges in the two runs.
    alone: (line of the draw, line of the addition, part) for noise that hides a change of a
        released value, although the part shows this noise without the value.
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
    """A part that only one input can give, and only if noise exceeds a margin.

    compared: The line that compares the noisy value with the threshold.
    part: The name of the part, such as `output['a']`, or a text in the output.
    margin: The number that the noise must exceed for the part to occur.
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

    forward: Whether the first run is on d1.
    absorbed: The choice that explains the difference of the outputs; None if there is none.
    bare, noised: The parts that differ and contain no noise, and those that contain noise.
    threshold_leaks: The parts that occur only on the input of the second run, and there only if
        noise exceeds a threshold.
    together: Maps two parts to their values in the first and second run, as text. Noise may select
        a part that differs, and the other part may show what it selected.
    decided: Set if some function draws more often on one input than on the other, whatever the
        noise: (number of runs on one input whose output is impossible on the other input, number of
        runs). An output is impossible if it is outside the range of the uniform number that is the
        output there.
    """

    forward: bool
    seed: int
    comparison: RunDifferences
    absorbed: Absorbed | None
    bare: list[str]
    noised: list[str]
    threshold_leaks: list[ThresholdLeak]
    together: dict[tuple[str, ...], tuple[str, str]]
    decided: tuple[int, int] | None = None
