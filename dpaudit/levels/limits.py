"""Limits of time, memory and arithmetic that several modules share. They do not choose between
rules."""

# Largest number of columns for scorers that relate columns to each other: more take seconds.
MOST_COLUMNS = 128
# Largest number of values of a column, and of its labels, that get a cell each.
MOST_CELLS = 4_096
# Number of first draws that show the form of outcomes, such as which columns depend on each other.
FIRST_DRAWS = 4_096
# Number of draws on which several fits are compared, before the best is fitted to all draws.
ENOUGH_TO_COMPARE = 10_000
# Number of floats that stay in the processor's cache together.
CACHED = 65_536
# Largest number of multiplications in one BLAS call. From 2^18 on OpenBLAS starts threads, which
# wait for each other.
ONE_THREAD = 200_000
# TINY: added to a number that may be 0 before a division or a logarithm.
# LEAST_WEIGHT: added to prior weights, so that no log-ratio has probability 0.
TINY, LEAST_WEIGHT = 1e-9, 1e-12
# Scores are clipped to this size, since a score may be infinite.
LARGEST_SCORE = 1e3
# Largest number of items that an event in words lists.
WORDS = 6
