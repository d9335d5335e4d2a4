"""Levels: orders of outcomes from evidence for d2 to evidence for d1, and the rules made of them.

d1, d2
    The two inputs of the mechanism. P and Q are the laws of the outcomes on them.
selection draws
    The draws in memory, with their inputs. Learning draws are these, and draws that were only
    counted. Rules are learned from learning draws and certified by others.
counts
    Integers (cells, 2): draws by cell and input, d1 first. `arms`, (2,), are all draws by input.
cell
    A group of outcomes that is made without knowledge of their inputs, such as a value of a column.
level
    A step of an order of outcomes: a bin of a score, or cells with similar log-ratios. There are at
    most 64, except for single values and rare outputs. The last one is for unseen outcomes, of a
    kind that learning never saw.
log-ratio
    The logarithm of the frequency on d1 over the frequency on d2, in nats.
share
    The part of the draws of a cell or level that are of d1.
fit
    Estimates from some draws. The draws are divided into folds, 0 to 4. Arrays (fits, ...) have one
    fit for each fold, made from the other folds; then one to all draws; then one to each half.
held out
    Computed for a draw by a fit that did not see this draw.
score
    A number for every outcome, larger for more evidence for d1; NaN for an outcome without a score.
candidate
    An order of outcomes that a scorer of dpaudit.attacks proposes, with counts by level.
rule
    A guess at every level: d1 (1), d2 (-1) or none (0). Rule (l, u), with l ≤ u, guesses d2 below
    level l and d1 from level u on.
portfolio
    The rules that the exact test tests on fresh draws: a main rule and up to two side rules.
rare output
    An outcome with an entry that was seen rarely or never while learning. The rare rule guesses an
    input at rare outputs that only this input gave.
"""
