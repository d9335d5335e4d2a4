"""Audits of recorded outputs, for the command `dpaudit bound` and the function `dpaudit.bound`.

`separate_samples` and `read_outcomes` read the outputs into a table with one row per draw, and
`audit_recorded` returns the result of a `RecordedAudit`. The rows are split at random: rules are
learned from the first third, and one exact test counts the rest (docs/method.md §12). There are no
bets, so the exact test has the whole error probability.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.learning import best_point, learn, relearn
from dpaudit.attacks.objective import Objective
from dpaudit.attacks.single_columns import thresholds
from dpaudit.auditing.counted_learning import MAX_KEPT_DRAWS, CountedLearning, may_end_learning
from dpaudit.auditing.exact_tests import (
    frozen_rules,
    not_counted,
    several_points,
    single_outputs,
    telling_witness,
)
from dpaudit.auditing.options import DEFAULTS, MIN_SAMPLES, BoundMethod, verify
from dpaudit.auditing.results import versions
from dpaudit.auditing.safeguards.outputs import integer_noise, unsearched
from dpaudit.auditing.safeguards.protocol import RecordedRows as RowsInOrder
from dpaudit.auditing.safeguards.row_order import RowOrder
from dpaudit.auditing.schedule import MIN_LEARNED, Plan, limits_for
from dpaudit.auditing.underpowered import kept_too_few, saw_nothing
from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.certify import certify
from dpaudit.certificates.evidence import Block, Evidence, Method, Recording
from dpaudit.certificates.result import AuditResult, Failed, Recorded
from dpaudit.certificates.rule_bounds import Setting, game_test, pair_test, suspect_counts
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.draws import FreshDraws, SelectionDraws, Tally, by_arm
from dpaudit.errors import MechanismError, UsageError
from dpaudit.float_errors import auditor_errstate
from dpaudit.levels.level_map import by_input
from dpaudit.levels.portfolio import Learned, Portfolio
from dpaudit.levels.rare_filter import RareFilter
from dpaudit.outcomes import Column, Outcomes, concatenate, from_raw, narrowed
from dpaudit.outcomes.representation import OF_TYPE
from dpaudit.outcomes.texts import how_read
from dpaudit.sampling.independence import WARNING_ALPHA, all_equal, constant
from dpaudit.sampling.sampler import atom_tally, failures_by_arm, rare, unseen
from dpaudit.stats.binomial import coin_flips
from dpaudit.stats.dependence import looks_like_fair_coins
from dpaudit.wording import counted

Rows = NDArray[np.intp]
Raw = Sequence[Any] | NDArray[Any]

# Share of the rows to learn from. Measured: 1/3 gives nearly the best bounds for 100 to 20,000
# draws. The share is larger than in an audit that draws (1/8), since a recording is small.
_LEARNING_SHARE = 1 / 3
# Seed of the random order of rows when d1 and d2 were recorded separately; an arbitrary number.
_SHUFFLING_SEED = 20_231
# There are two tests of recorded draws. The test of guesses discards the surplus draws of the more
# frequent input. A separate Clopper-Pearson bound for each input uses all draws, but is weaker for
# equal numbers of draws. This second test is considered only if one input has more than this many
# times the draws of the other.
_UNEVEN_FACTOR = 2.0

_FIXED_ARMS = "the sample sizes were fixed, not random: {how} (docs/method.md §12)"
_THINNED = "certified on a random part of the draws, whose inputs fair coins chose"
_PAIRED = "certified by a separate Clopper–Pearson bound for each input"
_NO_COINS = (
    "the inputs of the rows do not look like tosses of a fair coin ({d1} of d1, {d2} of d2, "
    "{changes} changes from one to the next), so the audit treats them as fixed"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedAudit:
    """The data and settings of an audit of outputs that were recorded elsewhere. Raise UsageError
    for a value outside its range, and for too few draws.

    name, source: name of the audit, and description of the recording.
    pair: description of d1 and d2.
    outcomes: one row per draw. The draws of each input are assumed to be independent and
        identically distributed.
    is_d1: (rows,), whether the input of each row was d1.
    positions: (rows,), position of each row in its recording; None: position i for row i.
    files: names of the files of d1 and of d2, for messages; None without files.
    coin_flipped: whether a separate fair coin picked the input of each row.
    scores_only: whether outputs are scores of an attack, for which only thresholds are tried.
    bound: method of the exact test. None: of the valid methods, the one with the largest predicted
        bound.
    seed: seed of the random split into rows to learn from and rows that certify.
    """

    name: str
    source: str
    pair: str
    outcomes: Outcomes
    is_d1: NDArray[np.bool_]
    claim: PrivacyClaim
    positions: Rows | None = None
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
                "None) as the outputs",
                code="options-conflict",
            )
        every = f"{', '.join(dict.fromkeys(self.files))}: " if self.files else ""
        name1, name2 = (f"{file}: " for file in self.files) if self.files else ("", "")
        d1, d2 = self.arms
        for where, draws, of, least, unit in (
            (every, d1 + d2, "", MIN_SAMPLES, "in all"),
            (name1, d1, " of d1", MIN_LEARNED, "of each"),
            (name2, d2, " of d2", MIN_LEARNED, "of each"),
        ):
            if draws < least:
                why = f"{counted(draws, 'draw')}{of} cannot certify anything"
                why = f"{where}{why}; give at least {least:,} {unit}"
                raise UsageError(why, code="recording-too-small")
        if all(map(_is_empty, self.outcomes.columns)):
            why = f"{every}every outcome is NaN; record what the mechanism returned"
            raise UsageError(why, code="nothing-computed")
        if self.scores_only and len(self.outcomes.columns) != 1:
            why = "scores must be single numbers, one for each draw"
            raise UsageError(why, code="recording-invalid")

    @property
    def arms(self) -> tuple[int, int]:
        """Numbers of draws of d1 and of d2."""
        d1 = int(self.is_d1.sum())
        return d1, len(self.is_d1) - d1


def _is_empty(column: Column) -> bool:
    """Return whether all entries of a column are NaN."""
    return column.codes is not None and column.labels == ("NaN",) and bool(column.codes.all())


def separate_samples(
    outcomes_d1: Raw, outcomes_d2: Raw, pair: str
) -> tuple[Outcomes, NDArray[np.bool_], Rows]:
    """Read two samples that were recorded separately. Return (outcomes, is_d1, positions) for a
    `RecordedAudit`. Raise UsageError for outputs that cannot be read, and for identical samples.

    pair: description of d1 and d2, for messages.
    """
    tables = _read_both(outcomes_d1, outcomes_d2)
    if _are_copies(*tables):
        raise UsageError(
            f"the recordings of d1 and d2 are identical ({pair}), which never happens "
            "with two separate recordings; give one recording of each input",
            code="draws-repeat",
        )
    is_d1 = np.repeat([True, False], [table.size for table in tables])
    # Two separate recordings have no order in common, so their rows are put into a random order.
    order = np.random.default_rng(_SHUFFLING_SEED).permutation(len(is_d1))
    return concatenate(tables).take(order), is_d1[order], order


def _are_copies(first: Outcomes, second: Outcomes) -> bool:
    """Return whether two samples with several distinct outputs are equal, row by row."""
    if first.size != second.size:
        return False
    keys = first.keys()
    return np.array_equal(keys, second.keys()) and len(np.unique(keys)) > 1


def _read_both(d1: Raw, d2: Raw) -> tuple[Outcomes, Outcomes]:
    """Return both samples as tables of outputs."""
    # Types of outputs, such as int or float, get a column only if they vary within each sample:
    # otherwise the recording may have converted all values of a sample to one type. The order of
    # text keys in a dict gets none: it may depend on the hash seed of the recording process.
    if not isinstance(d1, np.ndarray) and not isinstance(d2, np.ndarray):
        tables = read_outcomes(d1, "d1"), read_outcomes(d2, "d2")
        names = [[column.name for column in table.representations] for table in tables]
        if all(any(name.startswith(OF_TYPE) for name in columns) for columns in names):
            return tables
    return read_outcomes(d1, "d1", types=False), read_outcomes(d2, "d2", types=False)


def read_outcomes(raw: Raw, arm: str = "both", *, types: bool = True) -> Outcomes:
    """Return recorded outputs as a table. Raise UsageError for outputs that cannot be read.

    arm: the input that the outputs are of, for messages.
    types: whether to add a column with the types of outputs, if they vary.
    """
    try:
        return from_raw(raw, types=types, text_orders=False)
    except MechanismError as error:
        raise UsageError(f"the outcomes of {arm}: {error}", code="recording-invalid") from error


@auditor_errstate()
def audit_recorded(audit: RecordedAudit) -> AuditResult:
    """Return the result of an audit of recorded outputs. The verdict is ERROR if the rows cannot be
    independent, such as rows that repeat the row before them far too often."""
    start = time.perf_counter()
    ending: Recorded | Failed
    try:
        ending = Recorded((_RecordedRun(audit).certificate(),))
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
        underpowered=next(
            (kept_too_few(pair) or saw_nothing(pair) for pair in ending.certificates), None
        ),
    )


class _RecordedRun:
    """The evaluation of one `RecordedAudit`; call `certificate` once."""

    def __init__(self, audit: RecordedAudit) -> None:
        self._audit, self._alpha = audit, 1 - audit.confidence
        self._points = several_points(audit.claim)
        self._rng = np.random.default_rng(audit.seed)
        self._warnings: list[str] = []
        self._ignored: list[str] = []
        self._row_order = RowOrder()
        self._counted_learning: CountedLearning | None = None
        # One tally for each block of rows that rules are learned from: an array, (1, 2), with the
        # numbers of rows of d1 and of d2. Its only row counts all outputs.
        self._learning: list[Tally] = []
        self._is_tossed = audit.coin_flipped and self._looks_tossed()
        self._attacks = (thresholds,) if audit.scores_only else None
        self._limits = limits_for(len(audit.outcomes.columns), single_draws=False)

    def certificate(self) -> Certificate:
        """Return the certificate; raise MechanismError if the rows cannot be independent."""
        audit = self._audit
        self._warnings += self._row_order.observe(self._in_order(np.arange(len(audit.is_d1))))
        # A split depends only on the seed and on the inputs of the rows, never on outcomes. In a
        # table of more than 12 million values, the number of learning rows depends on the number of
        # columns, too; this does not depend on outcomes either, since all rows have the same
        # columns.
        split = (TossedSplit if self._is_tossed else FixedSplit)(audit.is_d1, self._rng)
        rows = min(self._limits.buffer_draws, round(_LEARNING_SHARE * split.size))
        selection = self._fresh(split.learn_from(rows)).release()
        self._learning.append(Tally(selection.arms[None]))
        self._warnings += filter(None, [narrowed(selection.outcomes)])
        if all_equal(audit.outcomes):
            self._warnings.append(constant(selection.outcomes.word(0), audit.arms, self._alpha))
        future_draws, point = split.left(), audit.claim.point()
        if self._points:
            point = best_point(selection, audit.claim, future_draws, self._attacks)
        is_distance = audit.claim.is_distance
        objective = Objective(point, future_draws, self._points, for_distance=is_distance)
        learned_rules = learn(selection, objective, self._attacks, with_rare=not audit.scores_only)
        learned_rules = self._learn_from_counts(selection, learned_rules, objective, split)
        evidence = self._evidence(learned_rules, point, selection, split)
        return replace(
            certify(evidence),
            pair=audit.pair,
            failures=failures_by_arm(audit.outcomes, audit.is_d1),
            warnings=tuple(self._warnings),
            notes=(
                *integer_noise(audit.claim, selection.outcomes),
                *how_read(selection.outcomes.contents),
            ),
            ignored=(*self._ignored, *unsearched(selection.outcomes, command="dpaudit run ")),
            attacks=learned_rules.tried,
            scores=learned_rules.scores,
        )

    def _looks_tossed(self) -> bool:
        is_d1 = self._audit.is_d1
        changes = int((is_d1[1:] != is_d1[:-1]).sum())
        d1, d2 = self._audit.arms
        if looks_like_fair_coins(d1, d2, changes, WARNING_ALPHA):
            return True
        self._warnings.append(_NO_COINS.format(d1=f"{d1:,}", d2=f"{d2:,}", changes=f"{changes:,}"))
        return False

    def _in_order(self, rows: Rows, rule: Portfolio | None = None) -> RowsInOrder:
        """Return `rows` in the order of the recording; `rule` is the portfolio that counts them."""
        audit = self._audit
        order = rows[np.argsort(rows if audit.positions is None else audit.positions[rows])]
        outcomes, is_d1 = audit.outcomes.take(order), audit.is_d1[order]
        return RowsInOrder(outcomes, is_d1, audit.positions is None, rule)

    def _learn_from_counts(
        self, selection: SelectionDraws, learned_rules: Learned, objective: Objective, split: Split
    ) -> Learned:
        """Return the rules to freeze, learned from counts if the buffer cannot hold all rows."""
        plan, spent = Plan(split.size, None, self._limits), selection.size
        if spent >= plan.freeze_at:
            return learned_rules
        self._counted_learning = counted_learning = CountedLearning(selection, learned_rules)
        while True:
            rows = split.learn_from(plan.next_freeze_check(spent) - spent)
            for start in range(0, len(rows), plan.limits.block):
                draws = self._fresh(rows[start : start + plan.limits.block]).release()
                outcomes, is_d1 = draws.outcomes, draws.is_d1
                counted_learning.add(
                    [
                        Tally(by_input(counter, outcomes, is_d1))
                        for counter in counted_learning.counters
                    ]
                )
                counted_learning.rare.add(
                    rare(counted_learning.rare.rare_filter, outcomes, is_d1, MAX_KEPT_DRAWS)
                )
                self._learning.append(Tally(draws.arms[None]))
            spent += len(rows)
            candidates, tables = counted_learning.candidates()
            objective = replace(objective, future_draws=split.left())
            if may_end_learning(candidates, spent, plan, objective):
                self._ignored += counted_learning.rare.dropped()
                return relearn(candidates, objective, tables)
            counted_learning.make_room(spent, plan.most_until_refit(spent, delta=0), objective)

    def _fresh(self, rows: Rows) -> FreshDraws:
        return FreshDraws(self._audit.outcomes.take(rows), self._audit.is_d1[rows])

    def _evidence(
        self,
        learned_rules: Learned,
        point: ProfilePoint,
        selection: SelectionDraws,
        split: Split,
    ) -> Evidence:
        """Count the remaining rows by the frozen rules, and return the evidence."""
        audit, rule = self._audit, learned_rules.portfolio
        singles = single_outputs(audit.claim, selection, point)
        self._warnings += not_counted(audit.claim, singles)
        game, pair = split.rest()
        use_pair = singles is None and self._prefers_pair(rule, point, selection, game, pair)
        rows, how = (pair, _PAIRED) if use_pair else (game, _THINNED)
        if not self._is_tossed:
            self._warnings.append(_FIXED_ARMS.format(how=how))
        self._warnings += self._row_order.observe(self._in_order(rows, rule))
        (tally,) = self._fresh(rows).looks(rule, rule.levels, len(rows))
        unseen_filter = RareFilter.seen(
            selection if self._counted_learning is None else self._counted_learning.kept()
        )
        outcomes, is_d1 = audit.outcomes.take(rows), audit.is_d1[rows]
        by_counts: Method = "clopper-pearson" if use_pair else "game"
        counts = None if singles is None else atom_tally(singles.keys, outcomes, is_d1)
        return Evidence(
            point=point,
            alpha=self._alpha,
            confidence=audit.confidence,
            blocks=(
                *(Block("learning", None, tally) for tally in self._learning),
                Block("recorded", None, tally),
            ),
            stage="recorded",
            method=by_counts if singles is None else "probabilistic",
            rules=frozen_rules(rule, is_one=singles is not None),
            accused=() if singles is None or counts is None else suspect_counts(singles, counts),
            divergences=tuple(audit.claim.divergences()),
            recording=Recording(*audit.arms, self._is_tossed),
            budget=len(audit.is_d1),
            witness=telling_witness(audit.claim, learned_rules, selection, len(rows), self._alpha),
            unseen=None if unseen_filter is None else unseen(unseen_filter, outcomes, is_d1),
            ranges=unseen_filter is not None and unseen_filter.has_ranges,
            new_texts=unseen_filter is not None and unseen_filter.new_texts,
            points=self._points,
        )

    def _prefers_pair(
        self,
        rule: Portfolio,
        point: ProfilePoint,
        selection: SelectionDraws,
        game: Rows,
        pair: Rows,
    ) -> bool:
        """Return whether Clopper-Pearson bounds are predicted to be better than the game."""
        # The prediction uses the learning rows only, so the choice is valid.
        if self._audit.bound is not None:
            return self._audit.bound == "clopper-pearson"
        d1, d2 = self._audit.arms
        if self._is_tossed or max(d1, d2) <= _UNEVEN_FACTOR * min(d1, d2):
            return False
        # The bounds of the game and of the pair are predicted from the learning rows. The rule fits
        # these rows better than other rows, which inflates both predictions alike and so favours
        # neither.
        counts = by_arm(rule(selection.outcomes), rule.levels, selection.is_d1)
        (main, *_) = frozen_rules(rule, is_one=False)
        from_d1 = int(self._audit.is_d1[pair].sum())
        pair_arms = from_d1, len(pair) - from_d1
        game_arms = (len(game) // 2,) * 2
        setting = Setting("recorded", point, self._alpha, self._audit.confidence)
        by_pair = pair_test(setting, _scaled(counts, pair_arms), main)
        by_game = game_test(setting, _scaled(counts, game_arms), main)
        better, usual = ((test.epsilon_lower, test.delta_lower) for test in (by_pair, by_game))
        return better > usual


def _scaled(counts: NDArray[np.int64], arms: tuple[int, int]) -> Tally:
    """Return the tally of `arms` draws with the frequencies of `counts`, rounded down."""
    shares = counts / np.maximum(1, counts.sum(axis=0))
    return Tally(np.floor(shares * arms).astype(np.int64))


# A split orders the rows of a recording at random: the first rows are learned from, the rest
# certify. The order depends on the seed and on the inputs of the rows, never on the outputs.
#
# The two classes of splits below have the same members:
# - `size`, the number of rows that can be learned from;
# - `learn_from(rows)` returns the indices of about `rows` further rows to learn from;
# - `left()` returns the number of rows that are left for the game (docs/method.md §2);
# - `rest()` returns two arrays of indices of certifying rows: the rows for the game, and the rows
#   for the pair of Clopper-Pearson bounds. It is called once, after the last call of `learn_from`.


class TossedSplit:
    """Splits a recording with coin-flipped inputs into learning and certifying rows."""

    def __init__(self, is_d1: NDArray[np.bool_], rng: np.random.Generator) -> None:
        self.size, self._taken = len(is_d1), 0
        self._order = rng.permutation(self.size)

    def learn_from(self, rows: int) -> Rows:
        start, self._taken = self._taken, self._taken + rows
        return np.asarray(self._order[start : self._taken])

    def left(self) -> int:
        return self.size - self._taken

    def rest(self) -> tuple[Rows, Rows]:
        rows = self._order[self._taken :]
        return rows, rows


class FixedSplit:
    """Splits a recording with fixed numbers of rows of d1 and d2 into learning and certifying rows.

    Among the learning rows there are as many of d1 as of d2, as predicted bounds assume. The game,
    one of the tests on the certifying rows, needs inputs that fair coins picked (docs/method.md
    §2). So coins are tossed to decide how many rows of each input it gets.
    """

    def __init__(self, is_d1: NDArray[np.bool_], rng: np.random.Generator) -> None:
        arms = [np.flatnonzero(is_d1 == arm) for arm in (True, False)]
        self._d1, self._d2 = (rng.permutation(rows) for rows in arms)
        self.size = 2 * min(len(self._d1), len(self._d2))
        self._rng, self._taken = rng, 0

    def learn_from(self, rows: int) -> Rows:
        # Take at least one row of each input, so that repeated calls for a single row make
        # progress.
        start, self._taken = self._taken, self._taken + max(1, rows // 2)
        some = slice(start, self._taken)
        return self._rng.permutation(np.concatenate([self._d1[some], self._d2[some]]))

    def left(self) -> int:
        return coin_flips(len(self._d1) - self._taken, len(self._d2) - self._taken)

    def rest(self) -> tuple[Rows, Rows]:
        d1, d2 = self._d1[self._taken :], self._d2[self._taken :]
        coins, heads = self.left(), -1
        # Repeat the coin tosses if they ask for more rows of one input than there are.
        while not (0 <= heads <= len(d1) and coins - heads <= len(d2)):
            heads = int(self._rng.binomial(coins, 0.5))
        return np.concatenate([d1[:heads], d2[: coins - heads]]), np.concatenate([d1, d2])


Split = TossedSplit | FixedSplit
