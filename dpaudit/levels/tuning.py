"""The tuned constants of learning, in one table: they decide which rule is frozen.

None of these constants touches validity: the draws that certify a rule had no part in choosing it.
Each constant trades power on one kind of mechanism for power on another. Only constants that were
tuned against each other are here. Thresholds that matter to a single module, limits of time and the
expected loss of the exact test (`_LOSS_TO_COME` in `rules.py`) are in that module.

Before each constant stands its unit and effect, then the source of its value. "-0.8, -23.5" is the
change of the mean efficiency over reference mechanisms, in hundredths, if the constant is halved,
and if it is doubled, at 10,000 draws (`python -m benchmarks.tuning`, benchmarks/RESULTS.md). Other
modules read a constant at each use, as `tuning.NAME`, so that the benchmark can change it.
"""

# Penalties: standard errors by which a predicted bound is lowered (docs/method.md §5). Without them
# the luckiest of many candidates wins; large penalties miss small events.

# For held-out counts of thresholds, intervals, sums of columns, and few cells. -0.8, -23.5.
PENALTY = 3.5
# For held-out counts of more than FEW_CELLS cells, where luck has more choices. -2.6, 0.
PENALTY_ANY_ORDER = 4.5
# Added to both if δ = 0: a larger event costs little then, so luck has more events. -1.3, +0.3.
PENALTY_WITHOUT_DELTA = 1.0
# For counts smoothed over levels, which leaves luck little room. +0.6, +1.8.
PENALTY_SMOOTHED = 1.5
# Where all levels share one fit, whose frequent outputs predict the rare outputs. -1.7, -7.0.
PENALTY_POOLED = 0.5
# Where the log-ratios of cells are shrunk towards common values. 0, 0.
PENALTY_COUNTED = 1.0
# For the total probability of single outputs (probabilistic definition of DP). 0, 0.
PENALTY_OF_MASS = 3.0

# Levels of certainty, in standard errors.

# For a single decision, about 98 %: a rule refutes the claim if its bound, lowered by this much,
# exceeds the claim; a label is placed beyond all numbers unless a number is this far beyond it; the
# promise of a score is multiplied by 1 - DEVIATIONS / √draws; right guesses over rare cells are
# lowered by this much. 0, 0.
DEVIATIONS = 2.0
# Where luck has many tries (with two, one in forty claims that hold with equality looks refuted):
# to end learning early, to keep a regression coefficient, and to trust the counts of a cell more
# than its cluster. -2.9, 0.
DEVIATIONS_BEYOND_LUCK = 4.0
# Least excess of the χ² statistic of a column over its mean, in standard deviations, for the column
# to be ordered by itself. 0, 0.
ERRORS_OF_COLUMN = 1.0

# Preferences between candidates, and between a leak and noise.

# Largest number of cells of an order that gets PENALTY in place of PENALTY_ANY_ORDER. +0.8, 0.
FEW_CELLS = 16
# Factor on the predicted bound of an order of many cells, since a reader can hardly check an event
# of many cells. 0, 0.
LESS_SIMPLE = 0.9
# Share of the best promise from which on candidates are compared by likelihood. 0, -3.5.
ABOUT_AS_MUCH = 0.85
# Prior odds that a piece of a tail which only one input gave is a leak; 1 for values, labels and
# keys. From `python -m benchmarks.rare_leaks`: tails of private noise are common.
ODDS_OF_TAIL = 0.05
# Largest share of the draws on which the "other" rule guesses: a rule that guesses more often
# competes with the main rule, which has finer levels.
LARGEST_SIDE = 0.1

# Log-likelihood, in nats, that a more complex fit must gain.

# For a ramp, which is chosen from thousands. -0.1, 0.
GAIN_OF_RAMP = 6.0
# For a further choice: the ends of a ramp, additional features of a regression. 0, 0.
GAIN_OF_CHOICE = 2.0
# For a parameter: a cluster of cells, a less simple fit of a column. One nat, as in AIC. -0.2, 0.
COST_OF_PARAMETER = 1.0
# For a score of an independent block of columns, or of the outputs of one type, of its own.
GAIN_OF_BLOCK = 3.0

# Smoothing of counts.

# Average number of draws in a cell of a column of numbers with few draws. +1.1, +1.3.
DRAWS_PER_CELL = 24
# Share of the draws in either tail of a column of numbers, where cells are finer. 0, 0.
SHARE_OF_TAILS = 0.02
# Draws of each input that are added to the counts of every cell in a sum over columns. 0, +0.1.
PRIOR_DRAWS = 4.0
# False discovery rate when the columns of a sum are selected. +0.3, -3.1.
NOISE_COLUMNS = 0.1
# Largest factor on the log-ratios of a column in a sum. -0.2, 0.
LARGEST_SCALE = 1.5
# Prior standard deviation of the difference between related log-ratios (the two sides of a rule,
# the cells of a cluster, neighbouring entries), as a share of their size.
SPREAD_OF_DIFFERENCES = 0.5
