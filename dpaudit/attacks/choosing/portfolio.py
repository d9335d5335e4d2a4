"""The rules to freeze next to the main rule: the rare rule, and the best rule of another kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpaudit.attacks.choosing.aim import Aim, promise, surely_refutes, unlowered
from dpaudit.attacks.rare import NAME as RARE
from dpaudit.attacks.rare import RareTable
from dpaudit.levels import tuning
from dpaudit.levels.candidate import Candidate, of_cells
from dpaudit.levels.distinguisher import OTHER_SHARE, RARE_SHARE, Rule
from dpaudit.levels.level_map import FloatArray, IntArray
from dpaudit.levels.rules import evidence_of
from dpaudit.levels.sieve import Sieve


def rare_rule(tables: Sequence[RareTable], aim: Aim) -> tuple[Rule, Sieve] | None:
    """Return the rare rule with the most evidence against the claim that is expected of the draws
    to come, and the sieve of its table; None where no table has such a rule."""
    points = aim.points or (aim.point,)
    found = [(table.rule(points, aim.coming, RARE_SHARE), table) for table in tables]
    rules = [(rule, table) for rule, table in found if rule is not None]
    if not rules:
        return None
    rule, table = max(rules, key=lambda one: evidence(one[0], aim, int(one[1].arms.sum())))
    return replace(rule, point=None if rule.point == aim.point else rule.point), table.sieve


def other_rule(main: Candidate, candidates: Sequence[Candidate], aim: Aim) -> Rule | None:
    """Return the best rule of another kind than the main rule: of single cells where the main rule
    cuts a number or a score, and the reverse. None where no such rule may refute the claim, where
    the best one guesses often, or where the main rule is sure to refute."""
    if surely_refutes(main, aim):
        return None
    is_of_cells = _is_of_cells(main)
    others = [one for one in candidates if _is_of_cells(one) is not is_of_cells]
    if not is_of_cells:
        others = [of_cells(one.attack, one.fine) if one.fine else one for one in others]
    best = max(others, key=lambda one: promise(one, aim), default=None)
    if best is None:
        return None
    needed = aim.point.delta if aim.for_delta else aim.point.epsilon
    if promise(best, aim)[0] <= 0 or unlowered(best, aim) <= needed:
        return None
    low, high, _ = aim.best_rule(best)
    table, levels = best.table, len(best.held_out)
    guesses = table.guesses(low * table.correct.shape[1] + high, levels)
    expected = expected_of(best.held_out, guesses)
    if expected.sum() > tuning.LARGEST_SIDE * best.held_out.sum():
        return None
    return Rule("other", best.attack, best.freeze(), guesses, OTHER_SHARE, expected)


def _is_of_cells(candidate: Candidate) -> bool:
    return candidate.fine is not None or candidate.attack == RARE


def expected_of(draws: FloatArray | IntArray, guesses: IntArray) -> FloatArray:
    """Return the draws of d1 and of d2 where a rule guesses d1, then where it guesses d2: (2, 2).

    draws: (levels, 2), by level and input.
    """
    return np.array([draws[guesses == guess].sum(axis=0) for guess in (1, -1)], dtype=float)


def evidence(rule: Rule, aim: Aim, draws: int) -> float:
    """Return the evidence against the claim that a rule is expected to give on the draws to come,
    in nats.

    draws: the draws that it was learned from.
    """
    correct, wrong = (np.array(one) * aim.coming / draws for one in rule.right_and_wrong)
    h = 1.0 if len(set(rule.guesses.tolist()) - {0}) > 1 else 0.5
    return float(evidence_of(correct, wrong, rule.point or aim.point, aim.coming, h))
