"""What is checked of an audit's draws: that they are independent, and that they say something
(docs/method.md §11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.certificate import Block, Certificate
from dpaudit.certificates.replay import tally as replay_tally
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.inputs.pairs import NeighbouringPair, short
from dpaudit.levels.distinguisher import Distinguisher
from dpaudit.sampling.chunks import Head, Measure, ToCount
from dpaudit.sampling.executors import Draws
from dpaudit.sampling.homogeneity import PROCESSES, check_blocks, check_calls
from dpaudit.sampling.independence import CHECKS, WARNED, check_heads, check_independence
from dpaudit.sampling.sameness import check_computed, check_varied
from dpaudit.tally import Tally

# Chunks that are drawn afresh after a refutation: a share of the draws that were made, within
# limits, each.
_AFRESH, _SHARE = 8, 32
_FEWEST, _MOST = 16, 250
# Rules that count to learn from, more than there may be: each may warn so much less often.
_PHASES = 32


class DrawChecks:
    """The checks of one pair. Each returns warnings, and raises MechanismError for what
    independent draws cannot do."""

    def __init__(self, spec: AuditSpec, afresh: Callable[[], Draws | None]) -> None:
        """afresh: returns what draws in processes that have drawn nothing else; None where only
        this process has drawn."""
        self._spec, self._afresh = spec, afresh
        # How likely a warning of one check may be.
        self._level = 1 / len(spec.pairs) * WARNED / CHECKS

    def learned(
        self, draws: SelectionDraws, blocks: Sequence[Block], point: ProfilePoint
    ) -> list[str]:
        """Check learning draws, which were made in these blocks."""
        sizes = [block.draws for block in blocks]
        warnings = check_varied(draws, self._spec.alpha)
        warnings += check_independence(draws, sizes, point, self._level)
        return warnings + ([] if self._is_timed else check_calls(draws, sizes, self._level))

    def counted(
        self,
        selection: SelectionDraws,
        blocks: Sequence[Block],
        heads: Sequence[Head],
        rule: Distinguisher,
    ) -> list[str]:
        """Check draws that one rule has counted, beside those that it was learned from."""
        counted = _counted(blocks)
        if self._spec.claim.adversary is None:  # who may answer None to everything
            check_computed(selection, sum(counted, Tally.empty(rule.levels)))
        check_heads(selection, heads)
        return [] if self._is_timed else check_blocks(counted, rule.guesses, self._level)

    def learned_again(self, counted: Sequence[Tally], rule: Distinguisher) -> list[str]:
        """Check draws that a rule has counted to learn from, which it had not learned from."""
        level = self._level / _PHASES
        return [] if self._is_timed else check_blocks(counted, rule.guesses, level)

    def refuted(
        self, stream: tuple[int, int], blocks: Sequence[Block], measure: Measure
    ) -> list[str]:
        """Check, after a refutation, that new processes of the mechanism draw as the first did.

        What a process keeps for as long as it lives is alike in all draws that it made.
        stream: pair and stage that name the random streams.
        """
        afresh = None if self._is_timed else self._afresh()
        if afresh is None:
            return []
        size = min(max(_FEWEST, sum(block.draws for block in blocks) // _SHARE), _MOST)
        chunks = (ToCount((*stream, number), size, measure) for number in range(_AFRESH))
        rule = measure.distinguisher
        before = sum(_counted(blocks), Tally.empty(rule.levels))
        tallies = [before, *(drawn.tally for drawn in afresh(chunks))]
        return check_blocks(tallies, rule.guesses, self._level, PROCESSES)

    @property
    def _is_timed(self) -> bool:
        """Whether outcomes depend on how busy the machine is, which changes from block to block."""
        limits = getattr(self._spec.target, "limits", None)
        return self._spec.timing or getattr(limits, "timeout", None) is not None


def doubtful_inputs(pair: NeighbouringPair, certificate: Certificate) -> list[str]:
    """Return a warning of an input for which every draw was an exception.

    It may be meant, and then is the worst of leaks; more often the input is of a wrong type.
    """
    counts = certificate.failures.values()
    drawn = sum(replay_tally(block).counts.sum(axis=0) for block in certificate.blocks)
    return [
        f"every draw of {name} ({drawn[arm]:,}) raised an exception: is {short(dataset)}, of "
        f"type {type(dataset).__name__}, the right input?"
        for arm, (name, dataset) in enumerate((("d1", pair.d1), ("d2", pair.d2)))
        if 0 < drawn[arm] == sum(count[arm] for count in counts)
    ]


def _counted(blocks: Sequence[Block]) -> list[Tally]:
    """Return the tallies of the blocks that one rule has counted."""
    return [replay_tally(one) for one in blocks if one.stage != "learning"]
