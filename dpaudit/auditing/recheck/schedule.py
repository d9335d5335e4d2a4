"""Whether recorded blocks are those that the schedule asks for: none left out, none too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from dpaudit.auditing.options import MINIMUM_SAMPLES
from dpaudit.auditing.schedule import (
    Limits,
    Plan,
    confirmation_size,
    look_stride,
    settles_at,
    wants_refit,
)
from dpaudit.certificates.certificate import Block, Certificate, Schedule
from dpaudit.certificates.replay import first_refuted
from dpaudit.claims import PrivacyClaim
from dpaudit.stats.betting import Beliefs

Finding = tuple[str, Any, Any]


def follow_schedule(
    claim: PrivacyClaim, one: Certificate, schedule: Schedule, rounds: Sequence[Beliefs]
) -> Iterator[Finding]:
    """Yield what was recorded and what the schedule asks for.

    Where the clock planned the budget, how much was learned from depends on it, and is taken as it
    was.
    """
    plan = Plan(one.budget, None, Limits(schedule.learned, schedule.block))
    learning, certifying, confirming = (
        [block.draws for block in one.blocks if block.stage == stage]
        for stage in ("learning", "certification", "confirmation")
    )
    learned, spent = sum(learning), sum(learning) + sum(certifying)
    if not schedule.by_clock:
        stopped = bool(confirming) and not certifying
        yield "blocks to learn from", learning, _learning(plan, learning, stopped=stopped)
        yield "rounds of the blocks", *_rounds(claim, one.blocks, plan.freeze_at)
    wanted = [] if confirming and not certifying else list(plan.certifying_sizes(learned))
    yield (
        "blocks of the certification",
        certifying,
        wanted[: len(certifying)] if confirming else wanted,
    )
    refuted = first_refuted(one.point, one.alpha_betting, rounds, one.blocks)
    yield "draws to the refutation", one.refuted_after, refuted
    if confirming:
        size = confirmation_size(spent, one.budget)
        yield "blocks of the confirmation", confirming, list(plan.confirming_sizes(size))
        yield "draws before the confirmation", spent, refuted
        yield "room for a confirmation", True, _has_room(one, schedule, spent)
    else:
        yield "draws at the planned end", one.draws, one.budget
        stops = refuted is not None and _has_room(one, schedule, refuted)
        yield "draws after a refutation that ends the run", False, stops


def _has_room(one: Certificate, schedule: Schedule, spent: int) -> bool:
    """Whether a refutation after so many draws ends the run."""
    return not schedule.full and one.budget - spent >= MINIMUM_SAMPLES


def _learning(plan: Plan, recorded: Sequence[int], *, stopped: bool) -> list[int]:
    """Return the blocks to learn from; the last one is cut at a look when that refuted."""
    wanted = list(plan.learning_sizes())
    if not stopped:
        return wanted
    wanted = wanted[: len(recorded)]
    if wanted and recorded[-1] < wanted[-1] and recorded[-1] % look_stride(wanted[-1]) == 0:
        wanted[-1] = recorded[-1]
    return wanted


def _rounds(
    claim: PrivacyClaim, blocks: Sequence[Block], freeze_at: int
) -> tuple[list[int | None], list[int | None]]:
    """Return the round that each block to learn from was bet on in, as recorded and as wanted."""
    learning = [block for block in blocks if block.stage == "learning"]
    least = 0 if len(claim.points()) == 1 else settles_at(freeze_at)
    wanted: list[int | None] = []
    round_, learned_from = None, 0
    for _, spent in zip(learning, accumulate(one.draws for one in learning), strict=True):
        wanted.append(round_)
        if spent < freeze_at and spent >= least and wants_refit(learned_from, spent, freeze_at):
            round_, learned_from = 0 if round_ is None else round_ + 1, spent
    return [block.round for block in learning], wanted
