"""The tuned constants of learning, in one table: they decide which rule is frozen.

None of these constants touches validity: the draws that certify a rule had no part in choosing it.
Each constant trades power on one kind of mechanism for power on another. Only constants that were
tuned against each other are here. Limits that several modules share are in `limits.py`; a threshold
that matters to a single module, and the expected loss of the exact test (`_LOSS_TO_COME` in
`rule_tables.py`), are in that module.

Before each constant stands its unit and effect, then the source of its value: the change of the
mean efficiency over reference mechanisms, in hundredths, if the constant is halved or doubled, at
10,000 draws (`python -m benchmarks.tuning`, benchmarks/RESULTS.md). Other modules read a constant
at each use, as `tuning.NAME`, so that the benchmark can change it.
"""

# Penalties: standard errors by which a predicted bound is lowered (docs/method.md §5). Without them
# the luckiest of many candidates wins; large penalties miss small events.

# For held-out counts of thresholds, intervals, sums of columns, and few cells.
# Halved -0.8, doubled -23.5.
PENALTY = 3.5
# Penalty for held-out counts of more than FEW_CELLS cells (groups of outcomes), where luck has more
# choices. Change of efficiency, in hundredths: halved -2.6, doubled 0.
PENALTY_ANY_ORDER = 4.5
# Added to both penalties above if δ = 0: then rules that rarely guess can have a large bound, too,
# so that more rules can look good by luck. Change of efficiency, in hundredths: halved -1.3,
# doubled +0.3.
PENALTY_WITHOUT_DELTA = 1.0
# Penalty for counts smoothed over levels (groups of outcomes), which luck changes little. Change of
# efficiency, in hundredths: halved +0.6, doubled +1.8.
PENALTY_SMOOTHED = 1.5
# Penalty for candidates (orders of outcomes) in which one fit gives the estimates of all levels, so
# that frequent outputs determine the estimates of rare outputs. Change of efficiency, in
# hundredths: halved -1.7, doubled -7.0.
PENALTY_ONE_FIT = 0.5
# Penalty for candidates (orders of outcomes) whose log-ratios of cells are shrunk towards common
# values. Change of efficiency, in hundredths: halved 0, doubled 0.
PENALTY_SHRUNK = 1.0
# For the total probability of single outputs (probabilistic definition of DP).
# Halved 0, doubled 0.
PENALTY_OF_MASS = 3.0

# Constants that say how certain a decision has to be, in standard errors.

# For a single decision, about 98 %. Four uses:
# - a rule is predicted to refute the claim if its bound, lowered by this much, exceeds the claim;
# - a label is placed beyond all numbers unless a number is this far beyond it;
# - the predicted bound of a score is multiplied by 1 - DEVIATIONS / √draws;
# - right guesses over rare cells are lowered by this much.
# Halved 0, doubled 0.
DEVIATIONS = 2.0
# Where luck has many tries (with two, one in forty claims that hold with equality looks refuted):
# to end learning early, to keep a regression coefficient, and to trust the counts of a cell more
# than its cluster.
# Halved -2.9, doubled 0.
DEVIATIONS_BEYOND_LUCK = 4.0
# Least excess of the χ² statistic of a column over its mean, in standard deviations, for the column
# to be ordered by itself.
# Halved 0, doubled 0.
ERRORS_OF_COLUMN = 1.0

# Constants that decide between candidates (orders of outcomes), and between a leak and noise.

# Largest number of cells of an order of outcomes that gets PENALTY in place of PENALTY_ANY_ORDER.
# Change of efficiency, in hundredths: halved +0.8, doubled 0.
FEW_CELLS = 16
# Factor on the predicted bound of an order of many cells, since a reader can hardly check an event
# of many cells. Change of efficiency, in hundredths: halved 0, doubled 0.
LESS_SIMPLE = 0.9
# Candidates (orders of outcomes) whose predicted bound is at least this share of the largest
# predicted bound are compared by likelihood. Change of efficiency, in hundredths: halved 0, doubled
# -3.5.
ABOUT_AS_MUCH = 0.85
# Prior odds that a piece of a tail which only one input gave is a leak; 1 for values, labels and
# keys. From `python -m benchmarks.rare_leaks`: tails of private noise are common.
ODDS_OF_TAIL = 0.05
# Largest share of the draws on which the "other" rule guesses: a rule that guesses more often
# competes with the main rule, which has finer levels.
LARGEST_SIDE = 0.1

# Constants for fits: log-likelihood, in nats, that a more complex fit must gain.

# Log-likelihood, in nats, that a ramp must gain; it is chosen from thousands of ramps. Change of
# efficiency, in hundredths: halved -0.1, doubled 0.
GAIN_OF_RAMP = 6.0
# Log-likelihood, in nats, that a further choice must gain: the ends of a ramp, additional features
# of a regression. Change of efficiency, in hundredths: halved 0, doubled 0.
GAIN_OF_CHOICE = 2.0
# Log-likelihood, in nats, that a further parameter must gain: a cluster of cells, a less simple fit
# of a column. One nat, as in AIC. Change of efficiency, in hundredths: halved -0.2, doubled 0.
COST_OF_PARAMETER = 1.0
# Log-likelihood, in nats, that a separate score must gain: of an independent block of columns, or
# of the outputs of one type.
GAIN_OF_BLOCK = 3.0

# Constants for the smoothing of counts.

# Average number of draws in a cell of a column of numbers with few draws. Change of efficiency, in
# hundredths: halved +1.1, doubled +1.3.
DRAWS_PER_CELL = 24
# Share of the draws in either tail of a column of numbers, where cells are finer.
# Halved 0, doubled 0.
SHARE_OF_TAILS = 0.02
# Draws of each input that are added to the counts of every cell (interval or label) in a sum over
# columns. Change of efficiency, in hundredths: halved 0, doubled +0.1.
PRIOR_DRAWS = 4.0
# False discovery rate when the columns of a sum are selected. Change of efficiency, in hundredths:
# halved +0.3, doubled -3.1.
NOISE_COLUMNS = 0.1
# Largest factor on the log-ratios of a column in a sum. Change of efficiency, in hundredths: halved
# -0.2, doubled 0.
LARGEST_SCALE = 1.5
# Prior standard deviation of the difference between related log-ratios (the two sides of a rule,
# the cells of a cluster, neighbouring entries), as a share of their size.
SPREAD_OF_DIFFERENCES = 0.5
