"""Find mechanisms whose output is the same in all draws of both inputs."""

from __future__ import annotations

from dpaudit.auditing.safeguards.protocol import CountedBlocks, PairSafeguard, remarked
from dpaudit.certificates.certificate import Certificate
from dpaudit.draws import Tally
from dpaudit.inputs.pairs import Side
from dpaudit.sampling import independence


class Constants(PairSafeguard):
    def judge(self, certificate: Certificate, counts: CountedBlocks) -> Certificate:
        selection = counts.learning_draws
        total = sum(counts.tallies, Tally.empty(counts.rule.levels))
        is_spread = int((total.counts.sum(axis=1) > 0).sum()) > 1
        is_new = any(certificate.evidence.unseen or ())
        if (
            is_spread
            or is_new
            or selection is None
            or not independence.all_equal(selection.outcomes)
        ):
            return certificate
        # An adversary may answer None for every output, and an input may lead A and B to None.
        if self._spec.claim.adversary is None and not isinstance(self._pair.d1, Side):
            independence.check_computed(selection.outcomes)
        arms = sum((block.tally.counts.sum(axis=0) for block in self._ledger.blocks), 0)
        draws = (int(arms[0]), int(arms[1]))
        word = selection.outcomes.word(0)
        return remarked(certificate, last=[independence.constant(word, draws, self._spec.alpha)])
