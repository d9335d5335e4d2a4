"""Sampling: random streams, chunks (requests for draws), pools of processes that draw chunks, and
tests of the independence of draws.
"""
