"""From selection draws to what is frozen: picks the attack, the cut-offs and the bettors' beliefs.

Everything here is judged on held-out folds, so that no selection draw is wasted and none flatters
the order that was fitted to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dpaudit.attacks.additive import additive, exchangeable
from dpaudit.attacks.banded import banded
from dpaudit.attacks.bits import bits
from dpaudit.attacks.by_output_type import kinds
from dpaudit.attacks.freezing import Stage, frozen
from dpaudit.attacks.independent_blocks import parts
from dpaudit.attacks.objective import Objective, best_of, best_predicted, promise
from dpaudit.attacks.prefixes import prefixes
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.attacks.single_columns import elapsed, one_dimensional, represented, single_columns
from dpaudit.attacks.single_outputs import atoms
from dpaudit.attacks.weighted_sums import logistic, mean_differences
from dpaudit.attacks.whitened import innovations
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Attack, Candidate
from dpaudit.levels.portfolio import Learned, Tried
from dpaudit.levels.rules import RuleTable, predicted_delta, predicted_growth
from dpaudit.wording import install_command

ATTACKS: tuple[Attack, ...] = (
    one_dimensional,
    single_columns,
    additive,
    innovations,
    prefixes,
    banded,
    logistic,
    mean_differences,
    parts,
    kinds,
    represented,
    atoms,
)

# Attacks on several columns whose events are scores, which a reader cannot check by hand.
_SCORES = (
    additive, innovations, prefixes, banded, logistic, mean_differences, parts, kinds
)  # fmt: skip
# Outcomes of several columns with at most this many values, each seen this often on average, are
# listed one by one: no score tells more.
_FEW_VALUES, _DRAWS_OF_EACH = 8, 50
_FIRST_LOOK = 2_000

# Of more columns, trees take long.
_MOST_FOR_TREES = 256
# An output is rare among draws that are kept if it was seen in fewer of them than one of these.
_RARE = (10, 100)


def attacks_for(*, floating_point: bool, timing: bool, repeated: bool) -> tuple[Attack, ...]:
    """Return all attacks: those that are always on, and those that are asked for, or of use only
    where outputs are several runs."""
    asked = ((exchangeable, repeated), (bits, floating_point), (elapsed, timing))
    return (*ATTACKS, *(attack for attack, is_on in asked if is_on))


def learn(
    selection: SelectionDraws,
    aim: Objective,
    attacks: tuple[Attack, ...] = ATTACKS,
    *,
    users: tuple[Attack, ...] = (),
    thorough: bool = True,
    with_rare: bool = True,
) -> Learned:
    """Return the most promising rule and beliefs.

    users: attacks of unknown cost, left out while draws are few.  thorough: spare no attack that
    may find more, even if draws are few or enough is found for a refutation.  with_rare: look for
    rare outputs, too.
    """
    if thorough or selection.size >= tuning.DRAWS_FOR_USERS_ATTACKS:
        attacks = (*attacks, *users)
    has_few = has_few_values(selection)
    attacks = tuple(one for one in attacks if not (has_few and one in _SCORES))
    candidates = [one for attack in attacks for one in attack(selection)]
    skipped: list[Tried] = []
    if not has_few:
        more, skipped = _trees(selection, aim, candidates, thorough=thorough)
        candidates += more
    tables: list[RareTable] = []
    if thorough and with_rare:
        tables = [RareTable.of(selection, often) for often in _RARE]
        candidates += [one for table in tables for one in table.order()]
        tables.append(RareTable.frequent(selection, tables[0].rare_filter))
    best = best_of(candidates, aim, boldly=thorough)
    stage: Stage = "kept" if thorough else "first"
    return frozen(best, candidates, aim, skipped, tables, stage=stage)


def has_few_values(selection: SelectionDraws) -> bool:
    """Return whether outcomes have several columns and few values, each of which is frequent."""
    if len(selection.outcomes.columns) < 2:
        return False
    some = selection.outcomes.take(slice(_FIRST_LOOK))
    if len(np.unique(some.keys())) > _FEW_VALUES:
        return False
    values = len(np.unique(selection.outcomes.keys()))
    return values <= _FEW_VALUES and selection.size >= values * _DRAWS_OF_EACH


def most_telling(
    selection: SelectionDraws,
    claim: PrivacyClaim,
    coming: int,
    attacks: tuple[Attack, ...] = ATTACKS,
) -> ProfilePoint:
    """Return the point of a claim's profile to test on `coming` draws: the one that promises the
    largest bound for the definition's own parameter or, without one, for δ as a multiple of what is
    claimed. Of nearly equal ones, the first."""
    tables = [RuleTable.evened(one.held_out) for attack in attacks for one in attack(selection)]

    def multiple(point: ProfilePoint) -> float:
        every = [predicted_delta(one, point.epsilon, coming, tuning.PENALTY) for one in tables]
        delta = max(0.0, *map(np.max, every))
        own = claim.own_lower(point.epsilon, delta)
        return float(f"{delta / max(point.delta, 1e-12) if own is None else own[1]:.1e}")

    return max(claim.points(), key=multiple)


def _trees(
    selection: SelectionDraws, aim: Objective, candidates: list[Candidate], *, thorough: bool
) -> tuple[list[Candidate], list[Tried]]:
    """Return what trees make of the draws, or why they are left out; nothing of either where they
    do not apply."""
    if len(selection.outcomes.columns) < 2 or selection.size < tuning.DRAWS_FOR_TREES:
        return [], []
    # Imported here, since most audits do without.
    from dpaudit.attacks import trees

    reason = _why_no_trees(selection, aim, candidates, thorough=thorough)
    if reason is not None:
        return [], [Tried(trees.NAME, None, reason)]
    scores = [one.scored for one in candidates if one.scored is not None]
    found = trees.trees(selection, scores)
    best, base = max(promise(one, aim) for one in candidates), _base(candidates, aim)
    worth = _wanted(base, selection.size)
    if any(promise(one, aim) > best or one.smoothed.worth > worth for one in found):
        return found, []
    return [], [Tried(trees.NAME, None, f"they tell no more than {base.attack}")]


def _base(candidates: list[Candidate], aim: Objective) -> Candidate:
    """Return the order that explains the draws best, of scores and of what promises most: what it
    leaves is what trees may find."""
    best = max(candidates, key=lambda one: promise(one, aim))
    known = [one for one in candidates if one.is_smooth and (one is best or one.scored)]
    return max(known, key=lambda one: one.smoothed.worth, default=best)


def _explaining(
    candidates: list[Candidate], aim: Objective, best: Candidate
) -> Iterator[Candidate]:
    """Yield the order that promises most, if it says what it explains, then the one that explains
    most, which takes longer to find."""
    if best.is_smooth:
        yield best
    base = _base(candidates, aim)
    if base is not best or not best.is_smooth:
        yield base


def _wanted(base: Candidate, size: int) -> float:
    """Return the log-likelihood from which on another order of so many draws tells more, by as much
    as is worth that it takes long."""
    if not base.is_smooth:
        return -math.inf
    known = base.smoothed.worth + size * math.log(2)
    return base.smoothed.worth + tuning.SHARE_OF_PAIR * max(0.0, known)


def _why_no_trees(
    selection: SelectionDraws, aim: Objective, candidates: list[Candidate], *, thorough: bool
) -> str | None:
    """Return why trees, which cost most, cannot win or are not needed; None when they may win."""
    from dpaudit.attacks.trees import has_interplay, is_installed

    columns = len(selection.outcomes.columns)
    if columns > _MOST_FOR_TREES:
        return f"{columns:,} columns are too many, more than {_MOST_FOR_TREES}"
    best = max(candidates, key=lambda one: promise(one, aim))
    if best_predicted(best, aim) >= tuning.NEARLY_ALL * _most_possible(selection, aim):
        return f"{best.attack} promises nearly as much as so many draws can show"
    growth = float(np.max(predicted_growth(best.table, aim.point)))
    if not thorough and growth > tuning.PLENTY:
        return f"{best.attack} is enough for a refutation"
    for base in _explaining(candidates, aim, best):
        if not has_interplay(selection, base):
            return f"no two columns tell more together than {base.attack} makes of them"
    return None if is_installed() else f"scikit-learn is not there: {install_command('learned')}"


def _most_possible(selection: SelectionDraws, aim: Objective) -> float:
    """Return the bound promised by a rule that is never wrong."""
    arms = np.array([selection.is_d1.sum(), (~selection.is_d1).sum()])
    perfect = np.array([[0, arms[1]], [arms[0], 0], [0, 0]], dtype=np.int64)
    return float(np.max(aim.predicted(RuleTable.of(perfect), tuning.PENALTY)))
