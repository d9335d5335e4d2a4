"""Sampling: the same draws for the same seed, whoever makes them."""
