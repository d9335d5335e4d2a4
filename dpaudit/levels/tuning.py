"""The tuned constants of learning, in one table: they decide which rule is frozen.

None of them touches validity: whatever is chosen, draws that it has not seen certify it. Each
trades power on one kind of mechanism for power on another. `python -m benchmarks.tuning` audits
reference mechanisms with each constant halved and doubled; its table is in benchmarks/RESULTS.md.

They are read when they are used, as `tuning.NAME`, so that the benchmark can change them.
"""

# Penalties, in standard errors that a predicted bound is lowered by. Without a penalty the luckiest
# of many candidates wins; a large penalty misses small events (docs/method.md §5).
# Thresholds, intervals, sums of columns, and orders of few cells.
PENALTY = 3.5
# Orders of many cells, any of which may be luck.
PENALTY_ANY_ORDER = 4.5
# Added with δ = 0: there a larger event costs little, so that luck chooses among more events.
PENALTY_WITHOUT_DELTA = 1.0
# Counts smoothed over levels, which leave little room for luck.
PENALTY_SMOOTHED = 1.5
# Estimates from one fit to all levels or cells, where frequent outputs predict the rare ones.
PENALTY_POOLED = 0.5
# Cells whose log-ratios are shrunk towards each other.
PENALTY_COUNTED = 1.0
# Mass of single outputs (the probabilistic definition).
PENALTY_OF_MASS = 3.0

# Levels of certainty, in standard errors.
# A rule is predicted to refute; a label tells more than a number; a score tells more than a column
# that it adds up; expectations of rare cells are lowered.
DEVIATIONS = 2.0
# Beyond the luck of many tries: learning ends early; a coefficient differs from 0; a cell is not
# explained by its cluster. (At two, one in forty claims that are met exactly looks refuted.)
DEVIATIONS_BEYOND_LUCK = 4.0
# A column tells something by itself.
ERRORS_OF_COLUMN = 1.0

# Preferences between candidates that promise nearly the same.
# Cells, at most, whose orders are about as many as the places of a threshold.
FEW_CELLS = 16
# Factor on the promise of an order of many cells, which is harder to describe.
LESS_SIMPLE = 0.9
# Share of the best promise from which on the candidate with the largest likelihood wins.
ABOUT_AS_MUCH = 0.85
# Prior odds that a piece of a tail seen for one input alone is a leak, and not noise at its claim;
# of a value, a label or a key they are even (`python -m benchmarks.rare_leaks`).
ODDS_OF_TAIL = 0.05
# Share of the draws, at most, that the third rule of a portfolio may guess on: a rule that guesses
# more often competes with the main rule, whose levels are finer.
LARGEST_SIDE = 0.1

# Nats that a closer fit must gain.
# A ramp of a piecewise linear fit, out of thousands.
GAIN_OF_RAMP = 6.0
# A further choice: the ends of a ramp, or more features of a regression.
GAIN_OF_CHOICE = 2.0
# A parameter: a cluster of cells, or the fit of a column in place of a simpler one.
COST_OF_PARAMETER = 1.0
# An independent block, or an output type, that is scored by itself.
GAIN_OF_BLOCK = 3.0

# Smoothing of counts.
# Draws in each cell of a column of numbers, and the share of either tail that has finer cells.
DRAWS_PER_CELL = 24
SHARE_OF_TAILS = 0.02
# Draws of each input that are added to every cell of a sum over columns.
PRIOR_DRAWS = 4.0
# False discovery rate among the columns of a sum, and the largest factor on a column's scores.
NOISE_COLUMNS = 0.1
LARGEST_SCALE = 1.5
# Prior standard deviation of a difference between related log-ratios (two sides of a rule, cells of
# a cluster, places along a stretch), as a share of their size.
SPREAD_OF_DIFFERENCES = 0.5
