"""Outcomes in ordered levels: how they are cut, and the frozen rule on them."""
