"""Limits of time, memory and arithmetic that several modules share. They do not choose between
rules."""

# Limits on columns and on values of outcomes.

# Largest number of columns for scorers that relate columns to each other, and of columns that get
# slow fits: more take seconds.
MOST_COLUMNS = 128
# Largest number of columns for trees and for the filter of rare outputs, whose work grows less.
MANY_COLUMNS = 256
# Largest number of values of a column, of its labels, and of whole outputs, that get a cell each.
MOST_CELLS = 4_096
# Largest number of intervals of a column whose log-ratios are compared or added up over columns,
# and of its labels that become features.
CELLS = 32
# Largest number that counts as few: of the different values of outcomes or of a column, of labels
# among numbers, of blocks of dependent columns, and of rare values of a column with their own cell.
FEW = 8
# Average number of draws of each of few values, and least number of draws of a state of a sequence.
DRAWS_PER_VALUE = 50
# Number of draws with a value from which on the value counts as repeating.
REPEATS = 2
# Largest share that counts as small: share of draws with a rare entry, or with any entry but the
# most frequent one (if more entries are rare, further draws bring ever more new values); and share
# of the likelihood, or of the bound, that trees may add.
SMALL_SHARE = 0.02

# Limits on numbers of draws.

# First draws that show the form of outcomes, such as which columns depend on each other.
FIRST_DRAWS = 4_096
# Least number of draws for a fit with a few parameters for each column.
FEWEST_DRAWS = 300
# Least number of draws for slow scorers, and for scorers that need frequencies of combinations.
LEAST_DRAWS = 1_000
# Least number of draws for trees, and for ranks of scores, or of columns by kind, that luck changes
# little.
DRAWS_TO_RANK = 2_000
# Number of draws from which on orders are cut finer than levels, independent blocks are searched
# for, and, with twice as many, several fits are compared on some of the draws.
MANY_DRAWS = 10_000
# Largest number of draws that a slow learner is fitted to; that show the scale, the labels and the
# informativeness of a column; and on which sets of features are compared.
MOST_ROWS = 20_000

# Limits on time and memory.

# Number of floats that stay in the processor's cache together.
CACHED = 65_536
# Largest number of floats in an array of a fit.
MOST_FLOATS = 5_000_000
# Largest number of multiplications in one BLAS call. From 2^18 on OpenBLAS starts threads, which
# wait for each other.
ONE_THREAD = 200_000

# Limits on arithmetic.

# TINY: added to a number that may be 0 before a division or a logarithm; also a relative difference
#     that counts as rounding.
# LEAST_WEIGHT: added to prior weights, so that no log-ratio has probability 0.
TINY, LEAST_WEIGHT = 1e-9, 1e-12
# Newton's method: largest number of steps, and of halvings of a step; longest step of a log-ratio;
# and a step of log-odds after which the error is negligible, since it is about the square of the
# step.
NEWTON_STEPS, LONGEST_STEP, CLOSE = 12, 1.0, 1e-4
# Scores are clipped to this size, since a score may be infinite.
LARGEST_SCORE = 1e3
# Log-likelihood, in nats, that leaves no doubt: odds of three million.
BEYOND_DOUBT = 15.0

# Least number of expected draws of a cell that counts in a χ² test.
LEAST_EXPECTED = 4.0
# Probability that some pair of columns looks dependent, or informative, by chance, over all pairs
# together.
LUCK = 0.001

# Limits on groups and on words.

# Number of groups of neighbouring values, or of neighbouring levels (groups of outcomes), with
# about equal numbers of draws.
GROUPS = 8
# Number of neighbours of the best cut-off, on either side, that are looked at closely.
NEAR = 6
# Number of the best columns, scorers, and refitted scores that are used further.
BEST = 2
# Largest number of items that an event in words lists.
WORDS = 6
# Largest number of columns that an event in words names.
COLUMNS_NAMED = 4
