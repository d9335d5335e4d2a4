"""Sampling: random streams, chunks, the pools that draw them, and checks of independence."""
