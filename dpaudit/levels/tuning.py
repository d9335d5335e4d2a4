"""The tuned constants of learning, which influence which rules are learned.

They do not affect validity, since the draws that certify a rule had no part in choosing it. Each
constant trades power on one kind of mechanism for power on another. They were tuned together on
reference mechanisms: `python -m benchmarks.tuning` halves and doubles each and prints the change of
efficiency (benchmarks/RESULTS.md). Other modules read `tuning.NAME` at each use, so that the
benchmark can change it.
"""

from dpaudit.levels import limits

# Penalties: standard errors by which a predicted bound is lowered (docs/method.md §5). Without a
# penalty, the luckiest of many candidates wins; a large penalty misses events of small probability.

# Penalty, in standard errors, for held-out counts of thresholds, intervals, sums of columns, and
# orders of few cells. Halving it changes the efficiency of audits by -0.8 hundredths, doubling it
# by -23.5.
PENALTY = 3.5
# Added to PENALTY and PENALTY_ANY_ORDER if δ = 0, in standard errors: then rules that rarely guess
# can have a large bound, too, so that more rules can look good by luck. Halving it changes the
# efficiency of audits by -1.3 hundredths, doubling it by +0.3.
PENALTY_WITHOUT_DELTA = 1.0
# Penalty, in standard errors, for held-out counts of more than FEW_CELLS cells. Many cells have
# many orders that can look good by luck, which costs as much as the many rules for δ = 0. Halving
# it changes the efficiency of audits by -2.6 hundredths, doubling it by 0.
PENALTY_ANY_ORDER = PENALTY + PENALTY_WITHOUT_DELTA
# Standard errors by which a predicted bound for δ = 0 is lowered if it is computed from counts that
# are smoothed over levels. It is less than PENALTY, the number for counts that are not smoothed,
# since smoothing averages out random differences. Halving it changes the efficiency of audits by
# +0.6 hundredths, doubling it by +1.8.
PENALTY_SMOOTHED = 1.5
# Penalty, in standard errors, for candidates in which one fit gives the estimates of all levels, so
# that frequent outputs determine the estimates of rare outputs. Halving it changes the efficiency
# of audits by -1.7 hundredths, doubling it by -7.0.
PENALTY_ONE_FIT = 0.5
# Number of standard errors by which a predicted bound is lowered for candidates whose log-ratios of
# cells are shrunk towards common values. Halving or doubling it does not change the efficiency of
# audits.
PENALTY_SHRUNK = 1.0
# For the probabilistic definition of DP, outputs are chosen until their total probability exceeds
# δ. Number of standard errors by which the estimate of this total is lowered. Halving or doubling
# it does not change the efficiency of audits.
PENALTY_OF_MASS = 3.0

# Margins of decisions, in standard errors.

# Margin, in standard errors, of a single decision: two standard errors, which chance exceeds in
# about 2 % of cases. Halving or doubling it does not change the efficiency of audits. Four uses:
# 1. A rule is predicted to refute the claim if its bound exceeds it when lowered by this at least.
# 2. A label is ordered above all numbers if its log-ratio is this far above the log-ratio of some
#    number, and not this far below the log-ratio of any; in the reverse case, below all numbers.
# 3. The predicted bound of a score is multiplied by 1 - DEVIATIONS / √draws.
# 4. Expected right guesses are lowered, and expected wrong guesses raised, by this much, in the
#    order of rare cells.
DEVIATIONS = 2.0
# Margin, in standard errors, of decisions in which luck has many chances to mislead: to end
# learning early, to keep a regression coefficient, and to trust the counts of a cell more than its
# cluster. (With a margin of 2, learning would end early for one in forty claims that hold with
# equality, as if they were refuted.) Halving it changes the efficiency of audits by -2.9
# hundredths, doubling it by 0.
DEVIATIONS_BEYOND_LUCK = 4.0
# A column is ordered by itself only if its χ² statistic exceeds its mean by at least this number of
# standard deviations. Halving or doubling it does not change the efficiency of audits.
MIN_COLUMN_DEVIATIONS = 1.0

# The constants down to the next heading decide which candidate is chosen, and whether outputs that
# only one input gave count as a leak or as noise.

# A candidate that orders at most this number of cells gets PENALTY, a candidate that orders more
# cells the larger PENALTY_ANY_ORDER. Halving it changes the efficiency of audits by +0.8
# hundredths, doubling it by 0.
FEW_CELLS = 16
# Factor on the predicted bound of an order of many cells: simpler orders are preferred, since a
# reader can check their events. Halving or doubling it does not change the efficiency of audits.
MANY_CELLS_FACTOR = 0.9
# Candidates with at least this share of the largest predicted bound count as nearly equal, and
# their likelihoods decide. Halving it does not change the efficiency of audits (a share of the
# draws), doubling it lowers the efficiency by 3.5 hundredths.
NEARLY_EQUAL_SHARE = 0.85
# Prior odds that a cell in a tail of the numbers leaks, if all of its draws are of one input. They
# are low, since private noise has tails in which one input is drawn alone by luck. For other cells
# (values, labels and keys) the odds are 1. Source: `python -m benchmarks.rare_leaks`.
PRIOR_ODDS_OF_TAIL = 0.05
# The "other" rule, which joins the main rule and comes from another candidate, may guess on at most
# this share of the draws. A rule that guesses more often would compete with the main rule, whose
# levels are finer.
MAX_OTHER_GUESSES = 0.1

# Log-likelihood, in nats, that a more complex fit must gain over a simpler one.

# Log-likelihood, in nats, that a ramp must gain to enter a fit. A ramp is a term of the log-odds
# that is flat, then linear, then flat again. The threshold is large, since the ramp is chosen from
# thousands, and the best of them gains by luck. Halving it changes the efficiency of audits by -0.1
# hundredths, doubling it by 0.
GAIN_OF_RAMP = 6.0
# Log-likelihood, in nats, that a fit must gain for each choice it makes: the ends of a ramp, or a
# larger set of features of a regression. Halving or doubling it does not change the efficiency of
# audits.
GAIN_OF_CHOICE = 2.0
# Log-likelihood, in nats, that each further parameter must gain, such as one more cluster of cells:
# one nat, as in AIC. Halving it changes the efficiency of audits by -0.2 hundredths, doubling it by
# 0.
COST_OF_PARAMETER = 1.0
# Least gain in log-likelihood, in nats, for separate scores. An independent block of columns gets a
# score of its own if this score gains this much over the frequencies of the inputs alone. Each
# type of output gets a score of its own if together these scores gain this much over one score that
# sums over all columns. Such a score is one choice and one further parameter.
GAIN_OF_BLOCK = GAIN_OF_CHOICE + COST_OF_PARAMETER

# Constants that set how strongly counts are smoothed: the constants from here to the end.

# Average number of draws in an interval of a column, if the column has too few draws for the
# largest number of intervals. Halving it changes the efficiency of audits by +1.1 hundredths,
# doubling it by +1.3.
DRAWS_PER_CELL = 24
# Each tail of a column of numbers, where intervals are finer, holds this share of the draws.
# Halving or doubling it does not change the efficiency of audits.
SHARE_OF_TAILS = limits.SMALL_SHARE
# In a sum over columns, this number of draws of each input is added to the counts of every cell,
# which shrinks log-ratios towards zero. Halving it changes the efficiency of audits by 0
# hundredths, doubling it by +0.1.
PRIOR_DRAWS = 4.0
# Some scores sum over columns that a test selects. False discovery rate of this test: the expected
# share of columns without signal among the selected columns. Halving it changes the efficiency of
# audits by +0.3 hundredths, doubling it by -3.1.
FALSE_DISCOVERY_RATE = 0.1
# Largest factor by which the log-ratios of a column may be multiplied in a sum over columns.
# Halving it changes the efficiency of audits by -0.2 hundredths, doubling it by 0.
MAX_COLUMN_SCALE = 1.5
# Prior standard deviation of the difference between two related log-ratios, as a share of their
# size. Related are the log-ratios of a rule's guesses of d1 and of d2, those of the cells in one
# cluster, and those of neighbouring entries of a sequence.
SPREAD_OF_DIFFERENCES = 0.5
