"""Levels: groups of outcomes in an order, usually at most 64 groups, from evidence for d2 to
evidence for d1.
"""
