"""The numbers that tune which order of outcomes is chosen, in one table.

None of them touches validity: whatever is chosen, draws that it has not seen certify it. Each
trades power on one kind of mechanism for power on another. `python -m benchmarks.tuning` audits
reference mechanisms with each number halved and doubled; its table is in benchmarks/RESULTS.md.

They are read when they are used, as `tuning.NAME`, so that the benchmark can change them.
"""

# Penalties: standard errors that a prediction from selection draws is lowered by. The raw estimate
# overfits, since the luckiest of many orders promises most; a large penalty misses small events
# (docs/method.md §5).
# Of a threshold, an interval, a sum of columns, or of few cells.
PENALTY = 3.5
# Of an order that may be any.
PENALTY_ANY_ORDER = 4.5
# With δ = 0 by so many more: a larger event costs little then, and of all those that differ in
# nothing but their draws the luckiest promises most.
PENALTY_WITHOUT_DELTA = 1.0
# By so many alone where counts were smoothed by ramps, which leaves little room for luck.
PENALTY_SMOOTHED = 1.5
# By less where the log-ratio goes along with a number or a score: two heights, known from all
# draws, then foretell the rare outputs on which the bound depends.
PENALTY_FOLLOWING = 0.5
# Standard deviations of what is expected of rare cells, in place of a penalty; and standard errors
# by which an order of cells must exceed a claim to be sure to refute it.
DEVIATIONS = 2.0
# Of an order of cells that were counted, whose log-ratios are shrunk for their luck.
PENALTY_COUNTED = 1.0
# Of such an order whose cells foretell each other: the luck of one is that of all of them.
PENALTY_POOLED = 0.5
# Of the mass of single outputs (the probabilistic definition).
PENALTY_OF_MASS = 3.0
# One-sided 99 %: about what the bound on the draws to come will lose.
PENALTY_TO_COME = 2.4
# So few cells have hardly more orders than a threshold has places.
FEW_CELLS = 16

# Preferences between orders that promise nearly the same.
# An order that may be any counts for so much of what it promises, beside a threshold or a sum.
LESS_SIMPLE = 0.9
# An order that is simpler to describe may promise so much of the best.
ABOUT_AS_MUCH = 0.85
# Standard errors that a score of several columns must promise more by than one column that is read
# off (of 10,000 draws, 2 %).
LUCK = 2.0

# What is rare (`python -m benchmarks.rare_leaks`).
# Standard errors by which an order of cells must refute a claim, to end learning early: of a claim
# that is met exactly, one order in some forty looks sure by luck at two.
DEVIATIONS_BEYOND_LUCK = 4.0
# Beforehand, the odds that a piece of a tail that one input alone gave is a leak, and not the noise
# of a mechanism at its claim; of a value, a label or a key they are even.
ODDS_OF_TAIL = 0.05
# The largest share of the draws that the third rule of a portfolio may guess on: one that guesses
# more often is a competitor of the main rule, whose levels are finer than its guesses.
LARGEST_SIDE = 0.1

# When costly attacks are tried.
# Draws: of fewer, trees and users' attacks find little.
DRAWS_FOR_TREES = 2_000
DRAWS_FOR_USERS_ATTACKS = 1_000
# The share of what a rule that is never wrong would promise, which is as good as reached.
NEARLY_ALL = 0.98
# So much log wealth in as many draws as were learned from refutes a claim at any usual level.
PLENTY = 15.0
# Cells of a pair of columns with less information than this are left out. What a pair tells beyond
# the best order is not worth a search below this share of what that order tells.
INFORMATION_OF_CELL = 3.0
SHARE_OF_PAIR = 0.02

# What a closer fit must gain on draws that it has not seen.
# Nats by which a ramp must explain the draws better than without it, there are thousands to choose
# from; and by which it must do so more if its ends are chosen.
GAIN_OF_RAMP = 6.0
GAIN_OF_ENDS = 2.0
# Nats by which additive scores must predict the input better than a simpler fit, and by which
# features must help logistic regression.
GAIN_OF_FIT = 1.0
GAIN_OF_FEATURES = 2.0
# Standard errors: a column that tells less by itself had better be added up; a coefficient nearer
# to 0 is taken for 0.
ERRORS_OF_COLUMN = 1.0
ERRORS_OF_COEFFICIENT = 4.0

# How counts are smoothed.
# Cells of numbers: draws in each, and the share of either tail that has finer ones.
DRAWS_PER_CELL = 24
SHARE_OF_TAILS = 0.02
# Additive scores: log-ratios of cells move towards 0 as if each had so many more draws of either
# input; of the columns that weigh something, the share that may be noise; the largest factor that a
# column's scores are multiplied by.
PRIOR_DRAWS = 4.0
# Nats by which a cluster of cells with one log-ratio must explain their counts better than the next
# one does, to be likelier than not.
COST_OF_CLUSTER = 1.0
NOISE_COLUMNS = 0.1
LARGEST_SCALE = 1.5
# Logistic regression: the weight of squared coefficients.
RIDGE = 1.0
