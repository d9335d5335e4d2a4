"""Pairs of neighbours that are worth a look: edges, patterns, lattices, then random ones."""

from dpaudit.search.proposals.proposal import Proposal
from dpaudit.search.proposals.stream import proposals

__all__ = ["Proposal", "proposals"]
