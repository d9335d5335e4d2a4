"""Check refutations by few draws, which may share the noise of a call (docs/method.md §11, *Few
draws*). If a mechanism makes many draws per call, few draws may come from only a few calls. Further
draws show whether the refutation depends on them."""

from __future__ import annotations

import math

from dpaudit.auditing.ledger import DOUBTING
from dpaudit.auditing.safeguards.protocol import CountedBlocks, PairSafeguard, remarked
from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.evidence import FEW_DRAWS
from dpaudit.draws import Tally, by_arm, pool
from dpaudit.sampling import homogeneity, independence
from dpaudit.sampling.chunks import ToLearn
from dpaudit.wording import counted

# If the e-value against draws that depend on the call that made them is at least this number, a
# refutation is checked with further draws. If draws are independent, this happens in about 1 of 100
# audits.
_SUSPECT_E_VALUE = 2.0
# Least usual number of draws of a block of further draws, if a call makes many draws.
_FURTHER_BLOCK = 250
# A refutation by at least this number of draws is not checked.
_ENOUGH_DRAWS = 100_000
# Number of blocks of further draws that check a refutation.
_FURTHER_BLOCKS = 32


class SharedNoise(PairSafeguard):
    def judge(self, certificate: Certificate, counts: CountedBlocks) -> Certificate:
        draws = sum(tally.draws for tally in counts.tallies)
        if not self._is_in_doubt(certificate) or self._spec.is_timed or draws >= _ENOUGH_DRAWS:
            return certificate
        log_e_value = homogeneity.doubt(counts.tallies, counts.guesses)
        if log_e_value < math.log(_SUSPECT_E_VALUE) and self._ledger.plan.limits.single_draws:
            return certificate
        size, rule = self._block_size(draws), counts.rule
        stream = (self._ledger.number, DOUBTING)
        numbers = range(min(self._further(draws), _FURTHER_BLOCKS))
        chunks = (ToLearn((*stream, number), size) for number in numbers)
        blocks = [learning.fresh.release() for learning in self._ledger.drawer(chunks)]
        tallies = [
            Tally(by_arm(rule(block.outcomes), rule.levels, block.is_d1)) for block in blocks
        ]
        warnings = homogeneity.check_further(
            pool(blocks), tallies, counts.guesses, self._level, log_e_value
        )
        further = counted(sum(block.size for block in blocks), "further draw")
        note = f"{further} after the refutation checked whether draws depend on their call"
        return remarked(
            certificate, last=warnings, last_notes=[note] if self._ledger.ends_by_bets else []
        )

    def _further(self, draws: int) -> int:
        """Return the number of further draws after a refutation by `draws` draws."""
        limits, size = self._ledger.plan.limits, FEW_DRAWS
        if not limits.single_draws:  # more further draws than the check can use are not made
            least = _FURTHER_BLOCKS * _FURTHER_BLOCK
            size = min(max(draws, least), independence.TESTED_DRAWS)
        size = min(size, limits.buffer_draws)
        # If bets ended the audit, draws are slow.
        return min(size, self._ledger.spent) if self._ledger.ends_by_bets else size

    def _block_size(self, draws: int) -> int:
        return max(1, self._further(draws) // _FURTHER_BLOCKS)
