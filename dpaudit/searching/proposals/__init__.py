"""Pairs of neighbours that are worth a look: edges, patterns, lattices, then random ones."""

from dpaudit.searching.proposals.proposal import Proposal
from dpaudit.searching.proposals.stream import proposals

__all__ = ["Proposal", "proposals"]
