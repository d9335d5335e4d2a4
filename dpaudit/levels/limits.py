"""Limits on time, memory and numbers that several modules share."""

# Limits on columns and on values of outcomes: the constants down to the next heading.

# Largest number of columns for scorers that relate columns to each other, and for slow fits. With
# more columns, such a scorer or fit takes seconds.
MAX_COLUMNS = 128
# Largest number of columns for boosted trees and for the filter of rare outputs. Their time grows
# slowly with the number of columns.
MAX_TREE_COLUMNS = 256
# Largest number of cells that are made for the distinct values of a column, for its labels, or for
# whole outputs. The most frequent values get a cell each; all other values share one.
MAX_CELLS = 4_096
# Largest number of intervals of a column in scorers that add log-ratios of columns or compare
# columns. Also the largest number of labels of a column that become features.
MAX_SUM_CELLS = 32
# The largest number that counts as few. It limits the distinct values of outcomes or of a column,
# the labels among numbers, the blocks of dependent columns, and the rare values of a column that
# get a cell each.
FEW_VALUES = 8
# Outcomes count as having few distinct values (at most `FEW_VALUES`) only if there are this many
# draws per value on average. A state of a sequence also needs this number of draws; rarer states
# are merged into one.
DRAWS_PER_VALUE = 50
# A value repeats if at least this number of draws have it.
MIN_REPEATS = 2
# The largest share that counts as small. It is compared with the share of draws that have a rare
# entry (if there are more, further draws bring ever more new values); with the share of draws
# outside the most frequent entry of a column, or outside the outputs that are counted; and with the
# share of a log-likelihood or bound that decision trees can add.
SMALL_SHARE = 0.02
# Largest number of levels of an order. Orders of single values and of rare outputs may have more.
MAX_LEVELS = 64

# Limits on numbers of draws: the constants down to the next heading.

# Number of first draws that are examined for the form of outcomes, such as which columns depend on
# each other.
EXAMINED_DRAWS = 4_096
# Least number of draws for scorers that fit a few parameters for each column. With fewer draws,
# these scorers propose nothing.
MIN_DRAWS = 300
# Least number of draws with which scorers are used that are slow, or that need the frequencies of
# combinations of values.
MIN_DRAWS_SLOW = 1_000
# Least number of draws for three uses: boosted trees; ranks of scores, by which the scores of
# different fits get the same scale; and separate ranks of columns that hold entries and of columns
# that hold types. With fewer draws, ranks are mostly chance.
MIN_DRAWS_TO_RANK = 2_000
# With at least this number of draws, scores of sequences are refitted to counts, and independent
# blocks of columns are searched for; with more, the tails of an order have more levels. With more
# than twice this number, several fits are compared on this number of draws only.
MANY_DRAWS = 10_000
# Largest number of draws for slow work: to fit a slow learner, to find the scale, the labels and
# the informativeness of a column, and to compare sets of features.
MAX_DRAWS_SLOW = 20_000

# Limits on time and memory: the constants down to the next heading.

# Number of floats in an array that stays in the processor's cache (0.5 MB). Large arrays are
# processed in pieces of about this size, which is faster.
CACHE_FLOATS = 65_536
# Largest number of floats in an array that a fit makes, to limit memory.
MAX_FLOATS = 5_000_000
# Largest number of multiplications in one BLAS call. From 2^18 on, OpenBLAS starts threads, which
# wait for each other when cores are busy.
MAX_BLAS_PRODUCTS = 200_000

# Limits on arithmetic: the constants down to the next heading.

# TINY: added to a number that may be 0 before it is used as a divisor or as the argument of a
# logarithm. Also a relative difference: two numbers that differ by less count as equal up to
# rounding.
# MIN_WEIGHT: added to prior weights, so that no log-ratio has probability 0.
TINY, MIN_WEIGHT = 1e-9, 1e-12
# For Newton's method. NEWTON_STEPS: largest number of steps, and of halvings of a step.
# MAX_STEP: largest change of a log-ratio in a step. STEP_TOLERANCE: a step of log-odds that is
# shorter ends the search, since the remaining error is about its square.
NEWTON_STEPS, MAX_STEP, STEP_TOLERANCE = 12, 1.0, 1e-4
# Scores are clipped to plus or minus this number, since a score may be infinite.
MAX_SCORE = 1e3
# Difference of two log-likelihoods, in nats, that leaves no doubt which of two hypotheses is right:
# e^15, odds of three million to one.
DECISIVE_NATS = 15.0

# A cell counts in a χ² test only if at least this number of draws is expected in it.
MIN_EXPECTED_DRAWS = 4.0
# False-alarm probability of each of two tests that are made for all pairs of columns: whether two
# columns depend on each other, and whether two columns together show a difference of d1 and d2. The
# pairs share it equally.
PAIR_TEST_ALPHA = 0.001

# From here to the end of the file, the constants are numbers of groups, of best choices, and of the
# items that the description of an event lists.

# Number of groups into which the ordered values of a column, or the ordered levels, are joined.
# Each group contains neighbours, and about the same number of draws.
VALUE_GROUPS = 8
# Columns, scorers and refitted scores are ranked; this number of the best of each kind is kept for
# further use.
KEPT_BEST = 2
# Largest number of items (values, labels or intervals) that the description of an event lists.
MAX_LISTED_ITEMS = 6
# Largest number of columns that the description of an event names.
MAX_NAMED_COLUMNS = 4
