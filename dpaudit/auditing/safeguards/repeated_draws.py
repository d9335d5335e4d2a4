"""Find draws that repeat earlier draws, or depend on the draws or calls before them."""

from __future__ import annotations

from dpaudit.auditing.safeguards.protocol import (
    CountedBlocks,
    KeptDraws,
    PairSafeguard,
    RecordedRows,
)
from dpaudit.draws import SelectionDraws
from dpaudit.sampling import homogeneity, independence

# Each rule that is learned from counted draws is checked. An audit usually learns at most this
# number of rules, so each check gets 1/64 of the probability of a false warning.
_MAX_RULES = 64


class RepeatedDraws(PairSafeguard):
    """Finds draws that repeat earlier draws, and draws that differ between calls or between blocks.
    Outputs that depend on elapsed times are not compared between calls and blocks, since they
    differ without any fault of the mechanism."""

    _buffer: SelectionDraws

    def observe(self, draws: KeptDraws | CountedBlocks | RecordedRows) -> list[str]:
        match draws:
            case KeptDraws(is_complete=True):
                self._buffer = draws.draws
                return self._check_buffer()
            case CountedBlocks(stage="learning"):
                return self._check_blocks(draws, self._level / _MAX_RULES)
            case CountedBlocks():
                independence.check_heads(self._buffer, self._ledger.heads)
                return self._check_blocks(draws, self._level)
        return []

    def _check_buffer(self) -> list[str]:
        sizes = [block.draws for block in self._ledger.blocks]
        point, buffer = self._ledger.point, self._buffer
        warnings = independence.check_independence(buffer, sizes, point, self._level)
        if not self._spec.is_timed:
            warnings += homogeneity.check_calls(buffer, sizes, self._level)
        return warnings

    def _check_blocks(self, counts: CountedBlocks, level: float) -> list[str]:
        if self._spec.is_timed:
            return []
        return homogeneity.check_blocks(counts.tallies, counts.guesses, level)
