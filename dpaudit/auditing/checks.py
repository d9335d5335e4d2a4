"""Checks of the draws of a pair (docs/method.md §11), for pair_audit.py and engine.py.

`DrawChecks` checks that the draws are independent and vary, and that they are not all exceptions. A
check returns texts for the report, or raises MechanismError if the audit would be invalid.

A block is a group of consecutive draws. A level is a bin of outputs. A tally is the (levels, 2)
array of counts of draws by level and input. A rule guesses the input from the level of an output
and is frozen before the draws that it counts. Its guesses are an array with one entry per level: 1
guesses d1, -1 guesses d2, 0 abstains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.ledger import DOUBTING, Ledger
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.evidence import FEW_DRAWS, Block
from dpaudit.draws import SelectionDraws, Tally, by_arm, pool
from dpaudit.errors import Given, MechanismError, UsageError, needs_device
from dpaudit.inputs.pairs import NeighbouringPair, describe_pair, differ_in_type, with_type
from dpaudit.levels.portfolio import Portfolio
from dpaudit.sampling import homogeneity, independence
from dpaudit.sampling.chunks import Measure, ToLearn
from dpaudit.targets.construction import arguments_of
from dpaudit.targets.target import what_to_check
from dpaudit.torch_use import misses_device
from dpaudit.wording import counted

# If the e-value against draws that depend on the call that made them is at least this number, a
# refutation is checked with further draws. If draws are independent, this happens in about 1 of 100
# audits.
_SUSPECT_E_VALUE = 2.0
# Least usual number of draws of a block of further draws, if a call makes many draws.
_FURTHER_BLOCK = 250
# A refutation by fewer draws than this number may be checked with further draws: such draws come
# from few calls of the mechanism, too few to show noise that is shared by all draws of a call
# (docs/method.md §11, "Few draws").
_ENOUGH_DRAWS = 100_000
# Number of blocks of further draws that check a refutation.
_FURTHER_BLOCKS = 32
# Each rule that an audit learns from counted draws is checked
# (`DrawChecks.check_counted_learning`). An audit usually learns at most this number of rules, so
# each check gets 1/64 of the probability of a false warning.
_MAX_RULES = 64


# Parameters of claims that a mechanism may have under the same name.
_SHARED_NAMES = frozenset(("epsilon", "delta", "mu", "sigma", "rho"))


def other_values(spec: AuditSpec) -> tuple[list[str], list[str]]:
    """Return (warnings, notes) for parameters of the mechanism that have the name of a parameter of
    the claim, and another value: a warning if it is a default. Claims of a library follow from its
    mechanism."""
    claim = spec.claim if spec.grouped is None else spec.grouped.claim
    stated = (spec.origin.request or {}).get("settings", {}).get("claim", claim.parameters())
    arguments = {} if spec.claimed_by is not None else arguments_of(spec.target)
    defaults: list[str] = []
    notes: list[str] = []
    for name in arguments.keys() & stated.keys() & _SHARED_NAMES:
        claimed, (value, is_given, option) = stated[name], arguments[name]
        if not _is_number(claimed) or not _is_number(value) or math.isclose(claimed, value):
            continue
        claimed, value = (str(number).removesuffix(".0") for number in (claimed, value))
        keyword = f"{option}={{{name!r}: {claimed}}}"
        flag = (
            f"--init '{{{name}: {claimed}}}'" if option == "init" else f"--param {name}={claimed}"
        )
        usual = "" if is_given else "its default "
        ran = f"the mechanism ran with {usual}{name} = {value}; the claim is {claimed} ("
        text = spec.origin.message(UsageError(ran, Given(keyword, flag), ")"))
        (notes if is_given else defaults).append(text)
    return sorted(defaults), sorted(notes)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class DrawChecks:
    """Checks the draws of one pair of inputs. The argument `ledger` records these draws.

    Most methods return a list of warnings. Methods raise MechanismError for counts that independent
    draws cannot have. If outputs depend on elapsed times, calls are not compared with each other,
    nor are blocks of draws: elapsed times differ between blocks without any fault of the mechanism.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._spec = ledger, ledger.spec
        self._is_timed = ledger.spec.is_timed
        # Probability of a false warning, for one check of this pair of inputs.
        self._level = 1 / len(ledger.spec.pairs) * independence.WARNING_ALPHA / independence.CHECKS
        # Number of draws that `check_with_further_draws` has made.
        self._further = 0

    def check_not_all_failed(self) -> None:
        """After enough draws, raise MechanismError if all draws are exceptions, which shows nothing
        about privacy. Before this, `check_input_types` checks whether d1 or d2 alone seems to have
        the wrong type.
        """
        ledger, failures = self._ledger, self._ledger.failures
        is_enough = ledger.spent >= min(FEW_DRAWS, ledger.plan.freeze_at)
        if is_enough or ledger.may_stop:
            self.check_input_types()
        if is_enough and failures.total == ledger.spent:
            first = next(iter(failures.first.values()))
            if misses_device(first.message):
                raise needs_device(first.message)
            raise MechanismError(
                f"all {ledger.spent} draws of both inputs raised an exception, the first one "
                f"{first.words}; an audit needs outputs: "
                f"{what_to_check(self._spec.target, first.kind)}",
                code="always-raises",
            )

    def check_input_types(self) -> None:
        """Raise MechanismError if d1 or d2 alone seems to have the wrong type.

        The inputs must differ in type, and all draws of one input, but not of the other, must raise
        the same TypeError or AttributeError. This is more often a mistake of the user than a leak
        by data that the mechanism has to accept. Inputs that a search made are not checked: they
        have the type that the user asked for.
        """
        spec, failures = self._spec, self._ledger.failures
        if spec.sampling.on_error != "auto" or spec.search is not None or not failures.total:
            return
        pair, draws = spec.pairs[self._ledger.number], _arms(self._ledger.blocks)
        sides = ("d1", pair.d1), ("d2", pair.d2)
        for arm, (name, dataset) in enumerate(sides):
            kind = next(
                (
                    kind
                    for kind, count in failures.counts.items()
                    if 0 < draws[arm] == count[arm] and count != draws and _is_of_types(kind)
                ),
                None,
            )
            if kind is not None and differ_in_type(pair.d1, pair.d2):
                other, another = sides[1 - arm]
                raise MechanismError(
                    f"{name} always raises {failures.first[kind].words}; {name} is "
                    f"{with_type(dataset)}, and {other} is {with_type(another)}. Fix {name}; if "
                    "users can send such data, the exception itself is the leak: give ",
                    Given("on_error='outcome'", "--on-error outcome (YAML: on_error: outcome)"),
                    code="always-raises",
                )

    def check_buffer(self, draws: SelectionDraws) -> list[str]:
        """Return warnings about the independence of the draws in the sample buffer."""
        sizes = [block.draws for block in self._ledger.blocks]
        warnings = independence.check_independence(draws, sizes, self._ledger.point, self._level)
        if not self._is_timed:
            warnings += homogeneity.check_calls(draws, sizes, self._level)
        return warnings

    def check_counted_learning(self, tallies: Sequence[Tally], rule: Portfolio) -> list[str]:
        """Compare blocks of learning draws that were counted but not kept in memory. Return a
        warning if the draws seem to depend on their block; else an empty list.

        tallies: for each block, the counts of its draws by the levels (bins) of `rule`.
        rule: rule that was learned from earlier draws.
        """
        level = self._level / _MAX_RULES
        return [] if self._is_timed else homogeneity.check_blocks(tallies, rule.guesses, level)

    def check_exact_test(self, selection: SelectionDraws, rule: Portfolio) -> list[str]:
        """Return warnings if the draws that were counted with the frozen rule seem to depend on
        their block. Raises DependentDrawsError if they repeat learning draws or each other.

        selection: the learning draws in the sample buffer.
        rule: the frozen rule.
        """
        independence.check_heads(selection, self._ledger.heads)
        if self._is_timed:
            return []
        tallies = certifying_tallies(self._ledger)
        return homogeneity.check_blocks(tallies, rule.guesses, self._level)

    def check_not_constant(
        self, kept: SelectionDraws, rule: Portfolio, unseen: tuple[int, int] | None
    ) -> list[str]:
        """Return a warning if all draws of both inputs gave the same output, else an empty list.

        kept: draws in the sample buffer, and later draws with rare outputs.
        rule: the frozen rules that counted draws.
        unseen: numbers of certifying draws of d1 and of d2 whose outputs are not in `kept`; None if
            outputs were not compared with `kept`, as after a refutation.
        """
        later = sum(certifying_tallies(self._ledger), Tally.empty(rule.levels))
        is_spread = int((later.counts.sum(axis=1) > 0).sum()) > 1
        if is_spread or any(unseen or ()) or not independence.all_equal(kept.outcomes):
            return []
        if self._spec.claim.adversary is None:  # an adversary may answer None for every output
            independence.check_computed(kept.outcomes)
        arms = _arms(self._ledger.blocks)
        return [independence.constant(kept.outcomes.word(0), arms, self._spec.alpha)]

    def further_words(self) -> list[str]:
        """Return a note with the number of draws that `check_with_further_draws` has made. Return
        an empty list if there are none, or if bets alone do not end the run.
        """
        if not (self._further and self._ledger.ends_by_bets):
            return []
        draws = counted(self._further, "further draw")
        return [f"{draws} after the refutation checked whether draws depend on their call"]

    def check_with_further_draws(
        self, measure: Measure, guesses: NDArray[np.int64], tallies: Sequence[Tally]
    ) -> list[str]:
        """Check a refutation by fewer than 100,000 draws; return a warning if its draws seem to
        depend on their call, else an empty list. Such a refutation rests on few calls: if the draws
        of a call share noise, a few calls may not show it (docs/method.md §11, "Few draws").

        Further draws are made for this check if the draws so far seem to depend on their call, or
        if the mechanism makes many draws per call.

        measure: the frozen rules that count draws.
        guesses: (levels,), the guesses of the rule that refutes the claim.
        tallies: counts of the draws that the rule has counted, one tally for each block.
        """
        ledger, limits = self._ledger, self._ledger.plan.limits
        draws = sum(tally.draws for tally in tallies)
        if self._is_timed or draws >= _ENOUGH_DRAWS:
            return []
        before = homogeneity.doubt(tallies, guesses)
        if before < math.log(_SUSPECT_E_VALUE) and limits.single_draws:
            return []
        size = FEW_DRAWS
        if not limits.single_draws:  # more further draws than the check can use are not made
            most = independence.TESTED_DRAWS
            size = min(max(draws, _FURTHER_BLOCKS * _FURTHER_BLOCK), most)
        size = min(size, limits.buffer_draws)
        if ledger.ends_by_bets:  # draws are slow: use no more
            size = min(size, ledger.spent)
        sizes = [max(1, size // _FURTHER_BLOCKS)] * min(size, _FURTHER_BLOCKS)
        self._further = sum(sizes)
        chunks = (
            ToLearn((ledger.number, DOUBTING, place), each) for place, each in enumerate(sizes)
        )
        further = [drawn.fresh.release() for drawn in ledger.drawer(chunks)]
        rule = measure.portfolio
        tallies = [Tally(by_arm(rule(part.outcomes), rule.levels, part.is_d1)) for part in further]
        return homogeneity.check_further(pool(further), tallies, guesses, self._level, before)


def certifying_tallies(ledger: Ledger) -> list[Tally]:
    """Return the tally of each block that was not used for learning."""
    return [block.tally for block in ledger.blocks if block.stage != "learning"]


def _arms(blocks: Sequence[Block]) -> tuple[int, int]:
    d1, d2 = sum(block.tally.counts.sum(axis=0) for block in blocks)
    return int(d1), int(d2)


def _is_of_types(kind: str) -> bool:
    # `kind` is the name of a class. NumPy raises subclasses of TypeError with other names, such as
    # UFuncTypeError and _UFuncNoLoopError.
    return kind in ("TypeError", "AttributeError") or kind.lstrip("_").startswith("UFunc")


def doubtful_inputs(pair: NeighbouringPair, certificate: Certificate) -> list[str]:
    """Return a warning for each input whose draws are all exceptions.

    An exception that only one input raises may be a large leak; more often the input has a wrong
    type.
    """
    drawn, counts = _arms(certificate.evidence.blocks), certificate.failures.values()
    return [
        f"{name} always raises ({drawn[arm]:,} draws): {describe_pair(pair.d1, pair.d2)}. Fix "
        f"{name}; if users can send such data, the exception itself is the leak"
        for arm, name in enumerate(("d1", "d2"))
        if 0 < drawn[arm] == sum(count[arm] for count in counts)
    ]
