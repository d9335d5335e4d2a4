"""Wealth, recomputed from what a certificate records: for the bound, and to check a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from dpaudit.certificates.certificate import Block, Round, Stage
from dpaudit.certificates.wealth import Wealth
from dpaudit.claims import ProfilePoint
from dpaudit.draws import Tally
from dpaudit.stats.betting import Beliefs


def replay(
    point: ProfilePoint, alpha: float, rounds: Sequence[Beliefs], blocks: Sequence[Block]
) -> Wealth:
    """Return the wealth after all blocks that were bet on, each with the beliefs of its round.

    Values of ε above the claimed one are followed only as far as the bound reaches, and so only
    when the claim was refuted.
    """
    wealth = _replayed(Wealth(point, alpha), rounds, blocks)
    while (further := wealth.beyond()) is not None:
        wealth.extend(_replayed(further, rounds, blocks))
    return wealth


def first_refuted(
    point: ProfilePoint, alpha: float, rounds: Sequence[Beliefs], blocks: Sequence[Block]
) -> int | None:
    """Return after how many draws, at the end of a block, betting had refuted the claim."""
    wealth = Wealth(point, alpha)
    return next((spent for spent in _bets(wealth, rounds, blocks) if wealth.refuted), None)


def course(
    point: ProfilePoint, rounds: Sequence[Beliefs], blocks: Sequence[Block]
) -> list[tuple[int, float]]:
    """Return the log of the wealth against the claim itself as it stood after every block that was
    bet on, with the draws made by then."""
    wealth = Wealth(point, alpha=0.5)  # which decides nothing here
    return [(spent, wealth.log_now) for spent in _bets(wealth, rounds, blocks)]


def round_of(beliefs: Beliefs) -> Round:
    """Return beliefs as a certificate records them."""
    tables = beliefs.posteriors.tolist(), beliefs.rules.tolist()
    return Round(*(tuple(map(tuple, table)) for table in tables))


def beliefs_of(recorded: Round) -> Beliefs:
    """Return recorded beliefs. Raises ValueError for what no bettor may believe."""
    beliefs = Beliefs(
        np.array(recorded.posteriors, dtype=np.float64), np.array(recorded.rules, dtype=np.int64)
    )
    if not ((beliefs.posteriors > 0) & (beliefs.posteriors < 1)).all():
        raise ValueError("a believed probability is not in (0, 1)")
    if not ((beliefs.rules >= -1) & (beliefs.rules <= 1)).all():
        raise ValueError("a guess is none of -1, 0, 1")
    return beliefs


def tally(block: Block) -> Tally:
    """Return a block's tally as an array."""
    return Tally(np.array(block.tally, dtype=np.int64))


def block_of(stage: Stage, place: int | None, counts: Tally) -> Block:
    """Return a tally as a certificate records it. place: of the round that bet on it."""
    return Block(stage, place, counts.draws, tuple(map(tuple, counts.counts.tolist())))


def _replayed(wealth: Wealth, rounds: Sequence[Beliefs], blocks: Sequence[Block]) -> Wealth:
    bets = [block for block in blocks if block.round is not None]
    for place, group in groupby(bets, key=lambda block: block.round):
        if place is not None:
            wealth.believe(rounds[place])
            wealth.record([tally(block) for block in group])
    return wealth


def _bets(wealth: Wealth, rounds: Sequence[Beliefs], blocks: Sequence[Block]) -> Iterator[int]:
    """Bet block by block, each with the beliefs of its round; yield the draws made by then."""
    believed, spent = None, 0
    for block in blocks:
        spent += block.draws
        if block.round is None:
            continue
        if block.round != believed:
            believed = block.round
            wealth.believe(rounds[believed])
        wealth.record([tally(block)])
        yield spent
