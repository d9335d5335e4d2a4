"""Random neighbours by Hypothesis, guided towards a large score, and shrunk by it where one is
found: it knows which choices made them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dpaudit.errors import DpauditError
from dpaudit.searching.climbing import Ended
from dpaudit.searching.drawing import same_for_a_seed
from dpaudit.searching.proposals.random import pair_strategy
from dpaudit.wording import install_command, on_one_line

if TYPE_CHECKING:
    from dpaudit.inputs.adjacency import Adjacency
    from dpaudit.searching.space import Space

MISSING = (
    f"random pairs were left out, since Hypothesis is not installed: {install_command('search')}"
)


class _Found(Exception):
    """What is shrunk: a pair that exceeds."""


def look_at_random(
    space: Space,
    adjacency: Adjacency,
    look: Callable[[Any, Any], float],
    exceeds: Callable[[float], bool],
    *,
    seed: int,
    examples: int,
) -> str:
    """Look at random pairs until one exceeds, which Hypothesis shrinks; return a note where it is
    not installed. look: the finite score of a pair, which may raise to end the search."""
    try:
        import hypothesis.errors
    except ImportError:
        return MISSING
    pairs, stopped = pair_strategy(space, adjacency), list[Exception]()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        verbosity=hypothesis.Verbosity.quiet,
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate, hypothesis.Phase.target, hypothesis.Phase.shrink],
    )
    @hypothesis.given(pairs)
    def search(pair: tuple[Any, Any] | None) -> None:
        if pair is None or stopped:
            return
        try:
            score = look(*pair)
        except (Ended, DpauditError) as error:  # nothing that can be shrunk
            stopped.append(error)
            return
        hypothesis.target(score)
        if exceeds(score):
            raise _Found

    try:
        with same_for_a_seed():
            search()
    except _Found:
        pass
    except hypothesis.errors.HypothesisException as error:  # such as a filter that lets nothing in
        return f"random pairs were left out: {on_one_line(str(error))}"
    if stopped:
        raise stopped[0]
    return ""
