"""Audits of recorded outputs: split at random, learned from, certified by one exact test.

Nothing is bet, since nothing is sequential about draws that are all there: the exact test gets the
whole error probability. docs/method.md §12.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.continued_learning import learn_again
from dpaudit.attacks.learning import ATTACKS, learn, most_telling
from dpaudit.attacks.objective import Objective
from dpaudit.attacks.single_columns import thresholds
from dpaudit.auditing.counting import Counts, is_enough
from dpaudit.auditing.engine import versions
from dpaudit.auditing.options import DEFAULTS, MINIMUM_SAMPLES, BoundMethod, verify
from dpaudit.auditing.pair_audit import (
    frozen_rules,
    integer_noise,
    limited_divergence,
    low_bits,
    several_points,
    single_outputs,
)
from dpaudit.auditing.schedule import Plan, limits_for
from dpaudit.auditing.underpowered import kept_too_few
from dpaudit.certificates.certificate import Certificate, Method, Recording
from dpaudit.certificates.evidence import Evidence, certificate
from dpaudit.certificates.fixed_test import Accused, Setting, accused, game_test, pair_test
from dpaudit.certificates.replay import block_of
from dpaudit.certificates.result import AuditResult, Failed, Recorded
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.draws import FreshDraws, SelectionDraws, Tally, by_arm
from dpaudit.errors import MechanismError, UsageError
from dpaudit.float_errors import auditor_errstate
from dpaudit.levels.level_map import by_input
from dpaudit.levels.portfolio import Learned, Portfolio, SingleOutputs
from dpaudit.levels.rare_filter import RareFilter
from dpaudit.outcomes import Column, Outcomes, concatenate, from_raw, narrowed
from dpaudit.outcomes.representation import OF_TYPE
from dpaudit.sampling.chunks import MOST_RARE
from dpaudit.sampling.independence import all_equal, constant
from dpaudit.sampling.row_order import Sorted, check_guesses, check_rows, sorted_inputs
from dpaudit.sampling.sampler import atom_tally, failures_by_arm, rare, unseen
from dpaudit.stats.binomial import coin_flips
from dpaudit.stats.dependence import looks_like_fair_coins
from dpaudit.wording import counted

Rows = NDArray[np.intp]


class Split(ABC):
    """Rows in a random order, by the seed and their inputs alone, never by what is in them: from
    the first on they are learned from, and the rest certifies.

    size: rows to share out.
    """

    size: int
    _taken = 0

    @abstractmethod
    def learn_from(self, rows: int) -> Rows:
        """Return so many rows more to learn from."""

    @abstractmethod
    def left(self) -> int:
        """Return how many rows the game would have."""

    @abstractmethod
    def rest(self) -> tuple[Rows, Rows]:
        """Return the rows that the game may use, and those that the pair of bounds may; once."""


class TossedSplit(Split):
    """Of rows whose inputs were tossed for."""

    def __init__(self, is_d1: NDArray[np.bool_], rng: np.random.Generator) -> None:
        self.size = len(is_d1)
        self._order = rng.permutation(self.size)

    def learn_from(self, rows: int) -> Rows:
        start, self._taken = self._taken, self._taken + rows
        return np.asarray(self._order[start : self._taken])

    def left(self) -> int:
        return self.size - self._taken

    def rest(self) -> tuple[Rows, Rows]:
        rows = self._order[self._taken :]
        return rows, rows


class FixedSplit(Split):
    """Of fixed numbers of rows of each input: as many of each are learned from, as the predictions
    of learning take it, and the game has as many as fair coins would have picked."""

    def __init__(self, is_d1: NDArray[np.bool_], rng: np.random.Generator) -> None:
        arms = [np.flatnonzero(is_d1 == arm) for arm in (True, False)]
        self._d1, self._d2 = (rng.permutation(rows) for rows in arms)
        self.size = 2 * min(len(self._d1), len(self._d2))
        self._rng = rng

    def learn_from(self, rows: int) -> Rows:
        # At least one of each: else whoever asks for a single row would ask for ever.
        start, self._taken = self._taken, self._taken + max(1, rows // 2)
        some = slice(start, self._taken)
        return self._rng.permutation(np.concatenate([self._d1[some], self._d2[some]]))

    def left(self) -> int:
        return coin_flips(len(self._d1) - self._taken, len(self._d2) - self._taken)

    def rest(self) -> tuple[Rows, Rows]:
        d1, d2 = self._d1[self._taken :], self._d2[self._taken :]
        coins = self.left()
        heads = self._heads(coins, len(d1), len(d2))
        return np.concatenate([d1[:heads], d2[: coins - heads]]), np.concatenate([d1, d2])

    def _heads(self, coins: int, first: int, second: int) -> int:
        """Toss fair coins until they ask for no more draws than there are."""
        while True:
            heads = int(self._rng.binomial(coins, 0.5))
            if heads <= first and coins - heads <= second:
                return heads


Raw = Sequence[Any] | NDArray[Any]

# Draws of each input, at least.
_LEAST_OF_ONE = MINIMUM_SAMPLES // 4
# The share of the draws to learn from: more than where draws can be made at will, since the bound
# of few draws depends most on the event (a third is near the best from 100 to 20,000 draws).
_LEARNED = 1 / 3
_SHUFFLING = 20_231
# Coins that look less fair than so are not taken for coins.
_IMPLAUSIBLE = 1e-6
# From this ratio of the numbers of draws on, the textbook bound may gain more by using all draws of
# the more frequent input than it loses by being the weaker one.
_UNEVEN = 2.0
_FIXED_ARMS = "the sample sizes were fixed, not random: {how} (docs/method.md §12)"
_THINNED = "certified on a random part of the draws, with as many of each input as fair coins chose"
_PAIRED = "certified by a separate Clopper–Pearson bound for each input"
_ONLY_DRAWN = "dpaudit run --floating-point searches them"
_NO_COINS = (
    "the inputs of the rows do not look like tosses of a fair coin ({d1} of d1, {d2} of d2, "
    "{changes} changes from one to the next), so the audit treats them as fixed"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedAudit:
    """Is `claim` refuted by draws that were made elsewhere?

    outcomes: (rows,), one draw each; is_d1: (rows,), by which input. Draws of one input are taken
        to be independent, and alike in law.
    files: those of d1 and of d2, for messages; None without files.
    place: (rows,), where every row stood in its recording; None: they are in that order.
    coin_flipped: a fair coin of its own picked the input of every row.
    scores_only: outcomes are scores of an attack; only thresholds are tried.
    bound: how counts become a bound; None: the more powerful of those that are valid.
    source: where the draws come from, in words; pair: which inputs, in words.

    Raises UsageError for a value outside its range, and for too few draws.
    """

    name: str
    source: str
    pair: str
    outcomes: Outcomes
    is_d1: NDArray[np.bool_]
    claim: PrivacyClaim
    place: Rows | None = None
    files: tuple[str, str] | None = None
    coin_flipped: bool = False
    scores_only: bool = False
    bound: BoundMethod | None = None
    confidence: float = DEFAULTS["confidence"]
    seed: int = DEFAULTS["seed"]

    def __post_init__(self) -> None:
        verify(claim=self.claim, confidence=self.confidence, seed=self.seed)
        if self.bound is not None:
            verify(bound=self.bound)
        if self.claim.adversary is not None:
            raise UsageError(
                "recorded outputs are audited without an adversary; record its answers (1, 2 or "
                "None) as the outputs"
            )
        every = f"{', '.join(dict.fromkeys(self.files))}: " if self.files else ""
        if len(self.is_d1) < MINIMUM_SAMPLES:
            raise UsageError(
                f"{every}{counted(len(self.is_d1), 'draw')} cannot certify anything; "
                f"give at least {MINIMUM_SAMPLES:,} in all"
            )
        files = self.files or (None, None)
        for arm, draws, file in zip(("d1", "d2"), self.arms, files, strict=True):
            if draws < _LEAST_OF_ONE:
                where = "" if file is None else f"{file}: "
                raise UsageError(
                    f"{where}{counted(draws, 'draw')} of {arm} cannot certify anything; "
                    f"give at least {_LEAST_OF_ONE} of each"
                )
        if all(map(_is_empty, self.outcomes.columns)):
            raise UsageError(f"{every}every outcome is NaN; record what the mechanism returned")
        if self.scores_only and len(self.outcomes.columns) != 1:
            raise UsageError("scores must be single numbers, one for each draw")

    @property
    def arms(self) -> tuple[int, int]:
        """Draws of d1 and of d2."""
        d1 = int(self.is_d1.sum())
        return d1, len(self.is_d1) - d1


def _is_empty(column: Column) -> bool:
    """Whether a column holds nothing but NaN."""
    return column.codes is not None and column.labels == ("NaN",) and bool(column.codes.all())


def recorded_audit(outcomes_d1: Raw, outcomes_d2: Raw, **given: Any) -> RecordedAudit:
    """Return the audit of two samples; `given` are further fields of RecordedAudit.

    Raises UsageError for outcomes of a type that is not read, and for one sample given twice.
    """
    tables = _read_both(outcomes_d1, outcomes_d2)
    if _are_copies(*tables):
        raise UsageError(
            f"the recordings of d1 and d2 are identical ({given['pair']}), which never happens "
            "with two separate recordings; give one recording of each input"
        )
    is_d1 = np.repeat([True, False], [table.size for table in tables])
    # Two samples do not say in what order coins picked them: in any.
    order = np.random.default_rng(_SHUFFLING).permutation(len(is_d1))
    outcomes = concatenate(tables).take(order)
    return RecordedAudit(outcomes=outcomes, is_d1=is_d1[order], place=order, **given)


def _are_copies(one: Outcomes, other: Outcomes) -> bool:
    """Whether two samples are equal throughout. Where all outcomes are, they may well be."""
    if one.size != other.size:
        return False
    keys = one.keys()
    return np.array_equal(keys, other.keys()) and len(np.unique(keys)) > 1


def coin_flipped_audit(outcomes: Raw, is_d1: NDArray[np.bool_], **given: Any) -> RecordedAudit:
    """Return the audit of one sample whose inputs fair coins picked, row by row."""
    return RecordedAudit(outcomes=_read(outcomes, "both"), is_d1=is_d1, coin_flipped=True, **given)


def _read_both(d1: Raw, d2: Raw) -> tuple[Outcomes, Outcomes]:
    """Return both samples. Types count only where they vary within each of them: a whole file or
    array may have been converted when it was recorded. Orders of text keys do not: which orders a
    set has depends on the hash seed of the process that recorded it."""
    if not isinstance(d1, np.ndarray) and not isinstance(d2, np.ndarray):
        both = _read(d1, "d1"), _read(d2, "d2")
        if all(_has_types(table) for table in both):
            return both
    return _read(d1, "d1", types=False), _read(d2, "d2", types=False)


def _has_types(table: Outcomes) -> bool:
    """Return whether outcomes that are read alike have several types."""
    return any(one.name.startswith(OF_TYPE) for one in table.representations)


def _read(raw: Raw, arm: str, *, types: bool = True) -> Outcomes:
    try:
        return from_raw(raw, types=types, text_orders=False)
    except MechanismError as error:
        raise UsageError(f"the outcomes of {arm}: {error}") from error


@auditor_errstate()
def audit_recorded(audit: RecordedAudit) -> AuditResult:
    """Return what the draws show; the verdict is ERROR when they cannot be independent."""
    start = time.perf_counter()
    ending: Recorded | Failed
    try:
        ending = Recorded((_Recorded(audit).certificate(),))
    except MechanismError as failure:
        ending = Failed(str(failure), code=failure.code)
    return AuditResult(
        name=audit.name,
        claim=audit.claim,
        target=audit.source,
        confidence=audit.confidence,
        seed=audit.seed,
        ending=ending,
        seconds=time.perf_counter() - start,
        versions=versions(ending.certificates),
        underpowered=next(map(kept_too_few, ending.certificates), None),
    )


class _Recorded:
    """One audit of recorded draws; `certificate` once."""

    def __init__(self, audit: RecordedAudit) -> None:
        self._audit = audit
        self._rng = np.random.default_rng(audit.seed)
        self._warnings: list[str] = []
        self._ignored: list[str] = []
        self._counts: Counts | None = None
        self._learning: list[Tally] = []
        self._sorted: Sorted = {}
        self._is_tossed = audit.coin_flipped and self._looks_tossed()
        self._attacks = (thresholds,) if audit.scores_only else ATTACKS
        self._limits = limits_for(len(audit.outcomes.columns), single_draws=False)

    def certificate(self) -> Certificate:
        """Return the certificate. Raises MechanismError for rows that cannot be independent."""
        self._sorted = self._check_rows()
        # By the seed and by the inputs alone.
        kind = TossedSplit if self._is_tossed else FixedSplit
        split = kind(self._audit.is_d1, self._rng)
        selection = self._fresh(split.learn_from(self._kept(split.size))).release()
        self._warnings += filter(None, [narrowed(selection.outcomes)])
        if all_equal(self._audit.outcomes):
            word, level = selection.outcomes.word(0), 1 - self._audit.confidence
            self._warnings.append(constant(word, self._audit.arms, level))
        audit, coming = self._audit, split.left()
        point, several = audit.claim.point(), len(audit.claim.points()) > 1
        if several:
            point = most_telling(selection, audit.claim, coming, self._attacks)
        aim = Objective(point, coming, for_delta=several, points=several_points(audit.claim))
        learned = learn(selection, aim, self._attacks, with_rare=not audit.scores_only)
        learned = self._count_on(selection, learned, aim, split)
        evidence = self._evidence(learned, point, selection, split)
        return certificate(
            evidence,
            pair=audit.pair,
            budget=len(audit.is_d1),
            refuted_after=None,
            failures=failures_by_arm(audit.outcomes, audit.is_d1),
            reproducible=True,
            warnings=tuple(self._warnings),
            notes=integer_noise(audit.claim, selection.outcomes),
            recording=Recording(*audit.arms, self._is_tossed),
            ignored=(*self._ignored, *low_bits(selection.outcomes, _ONLY_DRAWN)),
            attacks=learned.tried,
            scores=learned.scores,
        )

    def _check_rows(self) -> Sorted:
        """Warn of rows that do not look independent; return what inputs are sorted, and by what."""
        audit = self._audit
        order = slice(None) if audit.place is None else np.argsort(audit.place)
        outcomes, is_d1 = audit.outcomes.take(order), audit.is_d1[order]
        found = sorted_inputs(outcomes, is_d1)
        # Two samples were recorded each by itself.
        in_turns = audit.place is None
        self._warnings += check_rows(outcomes, is_d1, found, in_turns=in_turns)
        return found

    def _check_guesses(self, rule: Portfolio, rows: Rows) -> None:
        """Warn of certifying rows that the frozen rule finds different along the recording."""
        place = self._audit.place
        rows = rows[np.argsort(rows if place is None else place[rows])]
        levels = rule(self._audit.outcomes.take(rows)).astype(np.int64)
        self._warnings += check_guesses(levels, self._audit.is_d1[rows], rule.guesses, self._sorted)

    def _kept(self, rows: int) -> int:
        """Return how many rows are kept to learn from."""
        return min(self._limits.learned, round(_LEARNED * rows))

    def _count_on(
        self, selection: SelectionDraws, learned: Learned, aim: Objective, split: Split
    ) -> Learned:
        """Learn from rows that are not kept but counted, where there are many."""
        plan, spent = Plan(split.size, None, self._limits), selection.size
        if spent >= plan.freeze_at:
            return learned
        self._counts = counts = Counts(selection, learned)
        while True:
            rows = split.learn_from(plan.next_freeze_check(spent) - spent)
            for start in range(0, len(rows), plan.limits.block):
                self._count(counts, self._fresh(rows[start : start + plan.limits.block]).release())
            spent += len(rows)
            (found, tables), aim = counts.candidates(), replace(aim, coming=split.left())
            if is_enough(found, spent, plan, aim):
                self._ignored += counts.rare.dropped()
                return learn_again(found, aim, tables, to_bet=False)
            counts.make_room(spent, plan.most_until_refit(spent, delta=0), aim)

    def _count(self, counts: Counts, draws: SelectionDraws) -> None:
        outcomes, is_d1 = draws.outcomes, draws.is_d1
        every = [Tally(by_input(one, outcomes, is_d1)) for one in counts.counters]
        made = _arms_only(draws)
        counts.add(every)
        counts.rare.add(rare(counts.rare.rare_filter, outcomes, is_d1, 2 * MOST_RARE))
        self._learning.append(made)

    def _looks_tossed(self) -> bool:
        is_d1 = self._audit.is_d1
        changes = int((is_d1[1:] != is_d1[:-1]).sum())
        d1, d2 = self._audit.arms
        if looks_like_fair_coins(d1, d2, changes, _IMPLAUSIBLE):
            return True
        self._warnings.append(_NO_COINS.format(d1=f"{d1:,}", d2=f"{d2:,}", changes=f"{changes:,}"))
        return False

    def _fresh(self, rows: Rows) -> FreshDraws:
        return FreshDraws(self._audit.outcomes.take(rows), self._audit.is_d1[rows])

    def _evidence(
        self, learned: Learned, point: ProfilePoint, selection: SelectionDraws, split: Split
    ) -> Evidence:
        """Count the rows kept for it; return what the certificate is to follow from."""
        rule = learned.portfolio
        atoms, warned = single_outputs(self._audit.claim, selection, point)
        self._warnings += warned
        game, pair = split.rest()
        use_pair = atoms is None and self._prefers_pair(rule, point, selection, game, pair)
        rows, how = (pair, _PAIRED) if use_pair else (game, _THINNED)
        if not self._is_tossed:
            self._warnings.append(_FIXED_ARMS.format(how=how))
        self._check_guesses(rule, rows)
        (tally,) = self._fresh(rows).looks(rule, rule.levels, len(rows))
        learning = [_arms_only(selection), *self._learning]
        seen = RareFilter.seen(selection if self._counts is None else self._counts.kept())
        by_counts: Method = "clopper-pearson" if use_pair else "game"
        return Evidence(
            point=point,
            alpha=1 - self._audit.confidence,
            confidence=self._audit.confidence,
            blocks=(
                *(block_of("learning", None, one) for one in learning),
                block_of("recorded", None, tally),
            ),
            stage="recorded",
            method=by_counts if atoms is None else "probabilistic",
            rules=frozen_rules(rule, is_one=atoms is not None),
            accused=() if atoms is None else self._accused(atoms, rows),
            thinned=not (self._is_tossed or use_pair),
            limited=limited_divergence(
                self._audit.claim, learned, selection, len(rows), 1 - self._audit.confidence
            ),
            unseen=None if seen is None else self._unseen(seen, rows),
            ranges=seen is not None and seen.has_ranges,
            points=several_points(self._audit.claim),
        )

    def _unseen(self, seen: RareFilter, rows: Rows) -> tuple[int, int]:
        return unseen(seen, self._audit.outcomes.take(rows), self._audit.is_d1[rows])

    def _accused(self, atoms: SingleOutputs, rows: Rows) -> Accused:
        """Return single outputs with how often they came up in these rows."""
        outcomes, is_d1 = self._audit.outcomes.take(rows), self._audit.is_d1[rows]
        return accused(atoms, atom_tally(atoms.keys, outcomes, is_d1))

    def _prefers_pair(
        self,
        rule: Portfolio,
        point: ProfilePoint,
        selection: SelectionDraws,
        game: Rows,
        pair: Rows,
    ) -> bool:
        """Whether to certify by a pair of bounds, decided by draws that certify nothing."""
        if self._audit.bound is not None:
            return self._audit.bound == "clopper-pearson"
        d1, d2 = self._audit.arms
        if self._is_tossed or max(d1, d2) <= _UNEVEN * min(d1, d2):
            return False
        # How the rule fares on the draws that it was learned from: fit for predictions only.
        seen = by_arm(rule(selection.outcomes), rule.levels, selection.is_d1)
        (main, *_) = frozen_rules(rule, is_one=False)
        from_d1 = int(self._audit.is_d1[pair].sum())
        pair_arms = from_d1, len(pair) - from_d1
        game_arms = (len(game) // 2,) * 2
        setting = Setting("recorded", point, 1 - self._audit.confidence, self._audit.confidence)
        by_pair = pair_test(setting, _scaled(seen, pair_arms), main)
        by_game = game_test(setting, _scaled(seen, game_arms), main)
        better, usual = ((one.epsilon_lower, one.delta_lower) for one in (by_pair, by_game))
        return better > usual


def _arms_only(draws: SelectionDraws) -> Tally:
    """Return how many draws of each input there are, at one level."""
    return Tally(by_arm(np.zeros(draws.size, dtype=np.intp), 1, draws.is_d1))


def _scaled(seen: NDArray[np.int64], arms: tuple[int, int]) -> Tally:
    """Return about what so many draws of each input would give."""
    shares = seen / np.maximum(1, seen.sum(axis=0))
    return Tally(np.floor(shares * arms).astype(np.int64))
