"""Levels: groups of outcomes, in an order from evidence for d2 to evidence for d1. An order usually
has at most 64 levels.
"""
