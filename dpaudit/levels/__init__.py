"""Levels: ordered groups of outcomes, usually at most 64, from evidence for d2 to evidence for
d1."""
