"""Levels: at most 64 groups of outcomes, in order of the evidence for d1."""
