"""From selection draws to what is frozen: picks the attack, the cut-offs and the bettors' beliefs.

Everything here is judged on held-out folds, so that no selection draw is wasted and none flatters
the order that was fitted to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.additive import additive
from dpaudit.attacks.atoms import AtomCounts, atoms, count_atoms
from dpaudit.attacks.bits import bits
from dpaudit.attacks.linear.logistic import logistic
from dpaudit.attacks.linear.mean_differences import mean_differences
from dpaudit.attacks.one_dimensional import one_dimensional
from dpaudit.attacks.rare import NAME as RARE
from dpaudit.attacks.rare import rare
from dpaudit.attacks.repeated_runs import exchangeable
from dpaudit.attacks.sequential import innovations
from dpaudit.attacks.single_columns import single_columns
from dpaudit.attacks.timing import elapsed
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidate import Attack, Candidate, by_group, in_order, of_cells
from dpaudit.levels.distinguisher import (
    AccusedAtoms,
    Distinguisher,
    Learned,
    ScoreDistributions,
    Tried,
)
from dpaudit.levels.level_map import FloatArray, IntArray, LevelMap, log_ratio
from dpaudit.levels.rules import (
    RuleTable,
    evened,
    never_abstaining,
    predicted_delta,
    predicted_epsilon,
    predicted_growth,
)
from dpaudit.levels.scores import ScoreLevels
from dpaudit.levels.shrinkage import shrunk
from dpaudit.levels.sieve import Sieve
from dpaudit.outcomes import RAISED
from dpaudit.stats.betting import Beliefs

ATTACKS: tuple[Attack, ...] = (
    one_dimensional,
    single_columns,
    additive,
    innovations,
    logistic,
    mean_differences,
    atoms,
)

# Standard errors by which the bettors move log-ratios towards zero.
_SHRINKS = (0.0, 0.5, 1.0, 1.5)
# Groups of levels that the coarse bettors see: they win early, those with all levels late.
_COARSE = 8
# Beliefs are kept in results as short decimals, and bet on as they are kept.
_DECIMALS = 5
_MOST_ATOMS = 64
# Of more columns, trees take long.
_MOST_FOR_TREES = 256
_COLUMNS_KEPT = 64
# Orders that further draws are counted by.
_LEADING = 3
# What is rare among draws that are kept was seen less often than one of these.
_RARE = (10, 100)
# Times that further draws are imagined, to see whether they pay.
_IMAGINED = 10


@dataclass(frozen=True, slots=True)
class Aim:
    """What a rule is chosen for: the largest certified ε at the point's δ or, with `for_delta`, the
    largest δ at its ε, on `coming` draws.

    reserve: a stake is kept for late bets, on what only many draws show: for what is rare.
    """

    point: ProfilePoint
    coming: int
    for_delta: bool = False
    reserve: bool = False

    def chosen_by(self, candidate: Candidate) -> FloatArray:
        """Return what every rule of a candidate is predicted to certify, to choose one of them."""
        if candidate.is_smooth and not self.for_delta:
            fit = candidate.smoothed
            table = RuleTable.of_smooth(fit.draws, int(candidate.held_out.sum()))
            if fit.follows:
                return self.lowered(table, tuning.PENALTY_FOLLOWING)
            if self._is_pure:
                return self.lowered(table, tuning.PENALTY_RAMPED)
        return self.promised(candidate)

    def promised(self, candidate: Candidate) -> FloatArray:
        """Return what every rule is predicted to certify, to compare candidates by."""
        if candidate.shrunk is None:
            return self.predicted(candidate.table, candidate.penalty)
        if candidate.fine is not None:
            return self.lowered(candidate.table, tuning.PENALTY_COUNTED)
        bound = self.lowered(candidate.table, 0.0)
        if candidate.penalty == 0:
            return bound
        # What few cells of a few draws each say together is not sure enough.
        counted = RuleTable.evened(candidate.held_out)
        return np.minimum(bound, self.predicted(counted, candidate.penalty))

    def predicted(self, table: RuleTable, penalty: float) -> FloatArray:
        """Return what every rule is predicted to certify, lowered by a penalty."""
        return self.lowered(table, penalty + self._is_pure * tuning.PENALTY_WITHOUT_DELTA)

    def lowered(self, table: RuleTable, penalty: float) -> FloatArray:
        """Return what every rule is predicted to certify, lowered by so many standard errors."""
        if self.for_delta:
            return predicted_delta(table, self.point.epsilon, self.coming, penalty)
        return predicted_epsilon(table, self.point.delta, self.coming, penalty)

    @property
    def _is_pure(self) -> bool:
        return self.point.delta == 0 and not self.for_delta


def attacks_for(*, floating_point: bool, timing: bool, repeated: bool) -> tuple[Attack, ...]:
    """Return all attacks: those that are always on, and those that are asked for, or of use only
    where outputs are several runs."""
    asked = ((exchangeable, repeated), (bits, floating_point), (elapsed, timing))
    return (*ATTACKS, *(attack for attack, is_on in asked if is_on))


def learn(
    selection: SelectionDraws,
    aim: Aim,
    attacks: tuple[Attack, ...] = ATTACKS,
    *,
    users: tuple[Attack, ...] = (),
    thorough: bool = True,
    with_rare: bool = True,
) -> Learned:
    """Return the most promising rule and beliefs.

    users: attacks of unknown cost, left out while draws are few.  thorough: spare no attack that
    may find more, even if draws are few or enough is found for a refutation.  with_rare: look at
    what is rare, too, where nothing else is sure to refute the claim.
    """
    if thorough or selection.size >= tuning.DRAWS_FOR_USERS_ATTACKS:
        attacks = (*attacks, *users)
    candidates = [one for attack in attacks for one in attack(selection)]
    more, skipped = _trees(selection, aim, candidates, thorough=thorough)
    candidates += more
    best = _best(candidates, aim)
    # Without δ, what is rare shows as much as it can refute by, and needs no preference.
    wanted = thorough and with_rare and aim.point.delta > 0 and not aim.for_delta
    if wanted and not _is_sure(best, aim):
        # What is rare, and what is no more than one cell of some thousands.
        small = [of_cells(one.attack, one.fine) for one in candidates if one.fine is not None]
        small += [one for often in _RARE for one in _rare(selection, often)]
        best = _likely_to_refute(small, aim, tuning.LIKELY_OF_FEW) or best
        candidates += small
    return _frozen(best, candidates, aim, skipped, is_late=False)


def _rare(selection: SelectionDraws, often: int) -> list[Candidate]:
    """Return the order of what is rare among selection draws: was seen less often than this."""
    sieve = Sieve.of(selection, often)
    kept = selection.take(np.flatnonzero(sieve.strange(selection.outcomes)))
    arms = np.array([selection.is_d1.sum(), (~selection.is_d1).sum()], dtype=np.int64)
    return rare(sieve, kept, arms) if kept.size else []


def learn_again(candidates: list[Candidate], aim: Aim, *, to_bet: bool) -> Learned:
    """Return the most promising rule and beliefs of orders that further draws were counted by.

    to_bet: for bets to come alone, on the order that promises the fastest growth.
    """
    best = _best(candidates, aim)
    if aim.for_delta or _is_sure(best, aim):
        return _frozen(best, candidates, aim)
    likely = _likely_to_refute(candidates, aim, tuning.LIKELY)
    if likely is not None:
        return _frozen(likely, candidates, aim)
    if to_bet:
        best = max(
            candidates, key=lambda one: float(np.max(predicted_growth(one.table, aim.point)))
        )
    return _frozen(best, candidates, aim)


def _likely_to_refute(candidates: list[Candidate], aim: Aim, least: float) -> Candidate | None:
    """Return the order that may refute the claim, where nothing is sure to: it is worth more than
    one that shows more but cannot. least: nats of evidence against the claim's ε."""
    hopeful = [one.hopeful() for one in candidates if one.shrunk is not None]
    able = [one for one in hopeful if _promise(one, aim)[0] > aim.point.epsilon]
    found = max(able, key=lambda one: _evidence(one, aim), default=None)
    return None if found is None or _evidence(found, aim) <= least else found


def is_sure(candidates: list[Candidate], aim: Aim) -> bool:
    """Return whether some order is sure to refute the claim."""
    return not aim.for_delta and any(_is_sure(one, aim) for one in candidates)


def _is_sure(candidate: Candidate, aim: Aim) -> bool:
    if candidate.fine is None:
        return _promise(candidate, aim)[0] > aim.point.epsilon
    bound = aim.lowered(candidate.table, tuning.DEVIATIONS)
    return float(np.max(bound)) > aim.point.epsilon


def _evidence(candidate: Candidate, aim: Aim) -> float:
    """Return how much likelier, in logs, the draws are than what the claim's ε alone allows."""
    point = ProfilePoint(aim.point.epsilon, 0.0)
    return float(np.max(predicted_growth(candidate.table, point)))


def is_undecided(candidates: list[Candidate], aim: Aim, more: float) -> bool:
    """Return whether so many times the draws may show what these do not: a rare event that refutes
    the claim, where nothing else does."""
    if aim.for_delta or is_sure(candidates, aim):
        return False
    rare = [one for one in candidates if one.attack == RARE]
    later = [one.hopeful().foreseen(more) for one in rare]
    return any(_evidence(one, aim) > tuning.LIKELY for one in later)


def gains_by_more(candidates: list[Candidate], aim: Aim) -> bool:
    """Return whether to double what was counted, and certify on as many draws less, promises more:
    were everything as it is expected to be, and the cells put in order by what may be drawn."""
    best = _best(candidates, aim)
    if best.fine is None or best.shrunk is None:
        return False
    truth, draws = best.shrunk.expected, int(best.held_out.sum())
    later = replace(aim, coming=aim.coming - draws)
    rng = np.random.default_rng(draws)
    gain = 0.0
    for _ in range(_IMAGINED):
        counts, more = rng.poisson(truth), rng.poisson(truth)
        gain += _imagined(truth, counts + more, later) - _imagined(truth, counts, aim)
    return gain > 0


def _imagined(truth: FloatArray, counts: IntArray, aim: Aim) -> float:
    """Return the bound to expect of the rule that counts lead to. truth: (cells, 2), the draws to
    expect; counts: (cells, 2)."""
    level, expected = in_order(np.append(counts, [[0, 0]], axis=0))
    table = RuleTable.of_smooth(evened(expected, counts.sum(axis=0)), int(counts.sum()))
    chosen = int(np.argmax(aim.lowered(table, tuning.PENALTY_COUNTED)))
    real = evened(by_group(truth, level, len(expected)), truth.sum(axis=0))
    bounds = aim.lowered(RuleTable.of_smooth(real, int(truth.sum())), 0.0)
    return float(bounds.ravel()[chosen])


def _frozen(
    best: Candidate,
    candidates: list[Candidate],
    aim: Aim,
    skipped: Sequence[Tried] = (),
    *,
    is_late: bool = True,
) -> Learned:
    level = best.freeze()
    rule, bets = _rules(best, aim)
    if aim.reserve:
        bets = np.concatenate([bets, bets[:1] if is_late else np.zeros_like(bets[:1])])
    beliefs = Beliefs(_posteriors(best.held_out), bets)
    tried = [*(Tried(one.attack, _predicted(one, aim)) for one in candidates), *skipped]
    distinguisher = Distinguisher(best.attack, level, rule)
    order = sorted(candidates, key=lambda one: _promise(one, aim), reverse=True)
    others = [one for one in order if one is not best and one.attack != RARE]
    leading = _leading([*(one for one in [best] if one.attack != RARE), *others])
    scores = _distributions(best, level)
    return Learned(distinguisher, beliefs, tuple(tried), scores, _expected(best), leading)


def _leading(order: list[Candidate]) -> tuple[Candidate, ...]:
    """Return the first orders, and in place of the last of them the first one of cells if there is
    none before it: of cells further draws make more than of orders that stay as they are. Cells
    that were put in order twice are counted once."""
    fine = [one.fine for one in order]
    order = [one for n, one in enumerate(order) if one.fine is None or fine.index(one.fine) == n]
    first, rest = order[:_LEADING], order[_LEADING:]
    if not any(one.fine is not None for one in first):
        first[_LEADING - 1 :] = [one for one in rest if one.fine is not None][:1] or first[-1:]
    return tuple(first)


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

    def promise(point: ProfilePoint) -> float:
        every = [predicted_delta(one, point.epsilon, coming, tuning.PENALTY) for one in tables]
        delta = max(0.0, *map(np.max, every))
        own = claim.own_lower(point.epsilon, delta)
        return float(f"{delta / max(point.delta, 1e-12) if own is None else own[1]:.1e}")

    return max(claim.points(), key=promise)


def accuse(selection: SelectionDraws, point: ProfilePoint) -> AccusedAtoms:
    """Return the atoms to certify one by one: those that look violating, and the most unequal ones
    as far as they are needed to outweigh δ. Exceptions are no raw outputs and never among them."""
    found = count_atoms(selection)
    raw = _is_raw(found)
    counts = found.counts.sum(axis=0)
    arms = counts.sum(axis=0) + found.rest
    masks = np.zeros((2, len(counts)), dtype=bool)
    for mask, step in zip(masks, (1, -1), strict=True):
        mask[_accused(counts[:, ::step], arms[::step], raw, point)] = True
    chosen = np.flatnonzero(masks.any(axis=0))
    words = tuple(found.words[i] for i in chosen)
    return AccusedAtoms(found.keys[chosen], words, masks[0, chosen], masks[1, chosen])


def has_atoms(selection: SelectionDraws) -> bool:
    """Return whether outputs repeat, so that single outputs can be counted."""
    found = count_atoms(selection)
    return bool(found.counts[:, _is_raw(found)].sum() > selection.size / 10)


def _is_raw(found: AtomCounts) -> NDArray[np.bool_]:
    """Return which atoms are outputs, and no exceptions: (atoms,)."""
    return np.array([not word.startswith(RAISED) for word in found.words], dtype=bool)


def _accused(
    counts: IntArray, arms: IntArray, raw: NDArray[np.bool_], point: ProfilePoint
) -> IntArray:
    error = np.sqrt(1 / (counts[:, 0] + 0.5) + 1 / (counts[:, 1] + 0.5))
    ratio = log_ratio(counts, arms)
    order = np.argsort(-(ratio - error), kind="stable")
    order = order[raw[order] & (counts[order, 0] > 0)]
    mass = np.cumsum(counts[order, 0]) / max(1, arms[0])
    lower = mass - tuning.PENALTY_OF_MASS * np.sqrt(mass / max(1, arms[0]))
    needed = int(np.searchsorted(lower, point.delta, side="right")) + 1
    looks_violating = ratio[order] > point.epsilon
    keep = looks_violating | (np.arange(len(order)) < needed)
    return np.asarray(order[keep][:_MOST_ATOMS], dtype=np.int64)


def _trees(
    selection: SelectionDraws, aim: Aim, candidates: list[Candidate], *, thorough: bool
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
    return trees.trees(selection, scores), []


def _why_no_trees(
    selection: SelectionDraws, aim: Aim, candidates: list[Candidate], *, thorough: bool
) -> str | None:
    """Return why trees, which cost most, cannot win or are not needed; None when they may win."""
    from dpaudit.attacks.column_pairs import has_interplay
    from dpaudit.attacks.trees import is_installed

    columns = len(selection.outcomes.columns)
    if columns > _MOST_FOR_TREES:
        return f"{columns:,} columns are too many, more than {_MOST_FOR_TREES}"
    best = max(candidates, key=lambda one: _promise(one, aim))
    if _predicted(best, aim) >= tuning.NEARLY_ALL * _most_possible(selection, aim):
        return f"{best.attack} promises nearly as much as so many draws can show"
    growth = float(np.max(predicted_growth(best.table, aim.point)))
    if not thorough and growth > tuning.PLENTY:
        return f"{best.attack} is enough for a refutation"
    scored = [one for one in candidates if one.scored is not None]
    base = max(scored or [best], key=lambda one: _promise(one, aim))
    if not has_interplay(selection, base):
        return f"no two columns tell more together than {base.attack} makes of them"
    return None if is_installed() else "scikit-learn is not there: pip install 'dpaudit[learned]'"


def _most_possible(selection: SelectionDraws, aim: Aim) -> float:
    """Return the bound promised by a rule that is never wrong."""
    arms = np.array([selection.is_d1.sum(), (~selection.is_d1).sum()])
    perfect = np.array([[0, arms[1]], [arms[0], 0], [0, 0]], dtype=np.int64)
    return float(np.max(aim.predicted(RuleTable.of(perfect), tuning.PENALTY)))


def _predicted(candidate: Candidate, aim: Aim) -> float:
    """Return the best predicted bound."""
    return max(0.0, float(f"{np.max(aim.promised(candidate)):.4g}"))


def _expected(candidate: Candidate) -> FloatArray:
    """Return the draws to expect at every level, by a smooth fit where there is one; at the last
    one, of what was never seen, as many of either input."""
    if candidate.is_smooth:
        ordered = candidate.smoothed.draws
    else:
        counts = candidate.held_out
        share = shrunk(counts[:-1], counts.sum(axis=0)).share
        ordered = counts[:-1].sum(axis=1)[:, None] * np.stack([share, 1 - share], axis=1)
    return np.append(ordered, [[0.5, 0.5]], axis=0)


def _distributions(candidate: Candidate, level: LevelMap) -> ScoreDistributions | None:
    if candidate.scored is None or not isinstance(level, ScoreLevels):
        return None
    counts = tuple((int(d1), int(d2)) for d1, d2 in candidate.held_out)
    edges = tuple(candidate.scored.edges.tolist())
    return ScoreDistributions(edges, counts, level.score.columns[:_COLUMNS_KEPT])


def _best(candidates: list[Candidate], aim: Aim) -> Candidate:
    """Return the candidate that promises most; of those that promise about as much, and whose
    log-ratios go along with what they order by, the one that explains the draws best: that tells
    how good an order is, where the promise depends on the luck of a few rare outputs."""
    best = max(candidates, key=lambda one: _promise(one, aim))
    if aim.for_delta or not best.is_smooth or not best.smoothed.follows:
        return best
    enough = tuning.ABOUT_AS_MUCH * _promise(best, aim)[0]
    near = [one for one in candidates if one.is_smooth and _promise(one, aim)[0] >= enough]
    following = [one for one in near if one.smoothed.follows]
    return max(following, key=lambda one: one.smoothed.worth)


def _promise(candidate: Candidate, aim: Aim) -> tuple[float, float]:
    """Return the best predicted bound, then the best predicted growth against no privacy loss."""
    table = candidate.table
    bound = float(np.max(aim.promised(candidate)))
    growth = float(np.max(predicted_growth(table, ProfilePoint(0.0, aim.point.delta))))
    worth = bound if candidate.penalty <= tuning.PENALTY else tuning.LESS_SIMPLE * bound
    if candidate.scored is not None:
        worth *= max(0.0, 1 - tuning.LUCK / np.sqrt(table.draws))
    # Differences in the last places are noise, and let the simpler attack win.
    return (float(f"{max(worth, 0.0):.4g}"), growth)


def _rules(candidate: Candidate, aim: Aim) -> tuple[IntArray, IntArray]:
    """Return the rule of the exact bound, (levels,), and three to bet on, (3, levels): that one,
    the one for growth at the claim, and one that always guesses. Where a rule promises no growth,
    the bet is to abstain, lest it lose what has been won."""
    table, levels = candidate.table, len(candidate.held_out)
    bound = aim.chosen_by(candidate)
    growth = predicted_growth(table, aim.point)
    always = int(np.argmax(never_abstaining(table)))
    fastest = int(np.argmax(growth)) if np.max(growth) > 0 else always
    best = int(np.argmax(bound)) if np.max(bound) > 0 else fastest
    # With δ > 0 the bound is simple and sharper for a rule that guesses whatever comes: where no
    # outcome is of a kind without a level, which the table says nothing of.
    guesses_all = int(aim.point.delta > 0 and not candidate.held_out[-1].any())
    places = (best, fastest, always)
    rules = np.stack(
        [table.guesses(one, levels, guesses_all if one == always else 0) for one in places]
    )
    grows = growth.ravel()[list(places)] > 0
    return rules[0], np.where(grows[:, None], rules, 0)


def _posteriors(held_out: IntArray) -> FloatArray:
    """Return what the bettors believe, Pr[d1 | level]: (bettors, levels); ½ for unseen."""
    ordered = held_out[:-1]
    arms = held_out.sum(axis=0)
    rows = []
    for counts in (_grouped(ordered), ordered):
        ratio = log_ratio(counts, arms)
        error = np.sqrt((1 / (counts + 0.5)).sum(axis=1))
        for shrink in _SHRINKS:
            believed = np.sign(ratio) * np.maximum(np.abs(ratio) - shrink * error, 0.0)
            rows.append(np.append(1 / (1 + np.exp(-believed)), 0.5))
    least = 10.0**-_DECIMALS
    return np.asarray(np.clip(np.round(np.stack(rows), _DECIMALS), least, 1 - least))


def _grouped(ordered: IntArray) -> IntArray:
    """Return the counts of the group that a level belongs to, of neighbours with equal mass."""
    masses = ordered.sum(axis=1)
    middle = np.cumsum(masses) - masses / 2
    group = np.minimum((middle * _COARSE / max(1, masses.sum())).astype(int), _COARSE - 1)
    totals = np.zeros((_COARSE, 2), dtype=np.int64)
    np.add.at(totals, group, ordered)
    return np.asarray(totals[group])
