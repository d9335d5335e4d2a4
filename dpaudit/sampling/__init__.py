"""Sampling: random streams, chunks of draws, pools that draw chunks, and tests of independence."""
