"""The tuned constants of learning: they decide which rule is frozen for the exact test.

None of these constants touches validity: the draws that certify a rule had no part in choosing it.
Each constant trades power on one kind of mechanism for power on another. Only constants that were
tuned against each other are here. Thresholds that matter to a single module, limits of time and the
expected loss of the exact test (`_LOSS_TO_COME` in `rules.py`) are in that module.

`python -m benchmarks.tuning` audits reference mechanisms with each constant halved and doubled; an
earlier table is in benchmarks/RESULTS.md. Other modules read a constant at each use, as
`tuning.NAME`, so that the benchmark can change it.
"""

# Penalties: the number of standard errors by which a predicted bound is lowered. Without a penalty
# the luckiest of many candidates wins; a large penalty misses small events (docs/method.md §5).

# Standard errors subtracted for thresholds, intervals, sums of columns, and orders of few cells.
PENALTY = 3.5
# Standard errors subtracted for orders of more than FEW_CELLS cells, where luck has more choices.
PENALTY_ANY_ORDER = 4.5
# Standard errors added to a penalty if δ = 0: there a larger event costs little, so that luck
# chooses among more events.
PENALTY_WITHOUT_DELTA = 1.0
# Standard errors subtracted where counts are smoothed over levels, which leaves luck little room.
PENALTY_SMOOTHED = 1.5
# Standard errors subtracted where all levels share one fit, whose frequent outputs predict the rare
# outputs.
PENALTY_POOLED = 0.5
# Standard errors subtracted where the log-ratios of cells are shrunk towards common values.
PENALTY_COUNTED = 1.0
# Standard errors subtracted from the total probability of single outputs (for the probabilistic
# definition of DP).
PENALTY_OF_MASS = 3.0

# Levels of certainty, in standard errors.

# Two standard errors are required or subtracted in four places:
# - a rule is predicted to refute the claim if its bound, lowered by this many, exceeds the claim;
# - a label is placed beyond all numbers unless some number is this far beyond the label;
# - the promise of a score is multiplied by 1 - DEVIATIONS / √draws, so that a score must beat the
#   columns that it adds up;
# - the expected right guesses of a rule over rare cells are lowered by this many.
DEVIATIONS = 2.0
# Four standard errors are required where luck has many tries: to end learning early, to keep a
# regression coefficient, and to trust the counts of a cell more than the cluster of the cell. (With
# two, one in forty claims that hold with equality looks refuted.)
DEVIATIONS_BEYOND_LUCK = 4.0
# A column is ordered by itself if the χ² statistic of its cells exceeds the mean by more than this
# many standard deviations.
ERRORS_OF_COLUMN = 1.0

# Preferences between candidates, and between a leak and noise.

# An order of at most this many cells gets PENALTY, an order of more cells PENALTY_ANY_ORDER.
FEW_CELLS = 16
# Factor on the promise of an order of many cells, which is harder to describe than a threshold.
LESS_SIMPLE = 0.9
# Candidates that promise at least this share of the best promise are compared by likelihood.
ABOUT_AS_MUCH = 0.85
# Prior odds that a piece of a tail in which only one input was seen is a leak, and not noise of a
# mechanism that meets its claim. The odds of a value, a label or a key are 1
# (`python -m benchmarks.rare_leaks`).
ODDS_OF_TAIL = 0.05
# Largest share of the draws on which the "other" rule of a portfolio may guess. A rule that guesses
# more often competes with the main rule, which has finer levels.
LARGEST_SIDE = 0.1

# Log-likelihood, in nats, that a more complex fit must gain.

# Gain of a ramp in a piecewise linear fit, which is chosen from thousands of ramps.
GAIN_OF_RAMP = 6.0
# Gain of a further choice: the ends of a ramp, or additional features of a regression.
GAIN_OF_CHOICE = 2.0
# Gain of a parameter: a cluster of cells, or the fit of a column in place of a simpler fit.
COST_OF_PARAMETER = 1.0
# Gain of a separate score for an independent block of columns, or for the outputs of one type.
GAIN_OF_BLOCK = 3.0

# Smoothing of counts.

# Average number of draws in a cell of a column of numbers, where the column has few draws.
DRAWS_PER_CELL = 24
# Share of the draws in either tail of a column of numbers, where cells are finer.
SHARE_OF_TAILS = 0.02
# Draws of each input that are added to the counts of every cell in a sum over columns.
PRIOR_DRAWS = 4.0
# False discovery rate when the columns of a sum are selected.
NOISE_COLUMNS = 0.1
# Largest factor by which the log-ratios of a column in a sum are multiplied.
LARGEST_SCALE = 1.5
# Prior standard deviation of the difference between related log-ratios, as a share of their size.
# Related are the two sides of a rule, the cells of a cluster, and neighbouring entries.
SPREAD_OF_DIFFERENCES = 0.5
