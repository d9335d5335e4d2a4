"""Limits of time, memory and arithmetic that several modules share. They choose nothing."""

# Columns, at most, that scorers of related columns look at: more take seconds.
MOST_COLUMNS = 128
# First draws that show what outcomes are like.
FIRST_DRAWS = 4_096
# Draws that show which of several fits is worth fitting to all.
ENOUGH_TO_COMPARE = 10_000
# Numbers that stay in the processor's cache together.
CACHED = 65_536
# Multiplications in one call; OpenBLAS starts threads, which wait for each other, from 2^18 on.
ONE_THREAD = 200_000
# Added to what may be 0 before a division or a logarithm; prior weight that rules nothing out.
TINY, LEAST_WEIGHT = 1e-9, 1e-12
# Scores are clipped here, since they may be infinite.
LARGEST_SCORE = 1e3
# Items that the words of an event list.
WORDS = 6
