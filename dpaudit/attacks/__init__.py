"""The attacks, which order outcomes by the evidence for one input, and the learner that chooses
between them. `scorers.py` lists the attacks, `learning.py` tells the learner from top to bottom.
dpaudit.levels defines level, cell, fit, held out, score, candidate and rule.

scorer
    A function from selection draws to candidates; the list is empty if it cannot handle these.
columns
    Outcomes are rows of a table. The attribute `columns` of a score has the pairs (name, share) of
    the columns that it depends on most, the largest first; the shares add up to at most 1.
feature
    A function from a column of outcomes to floats, for regressions and trees.
type
    Of an output, such as "list of numbers", None or "raised ValueError".
whitened coordinate
    A number of a vector minus its prediction from the numbers before it.
band
    One of at most five intervals that take the place of numbers in a sequence.
symbol
    The index of the value of an entry of a sequence; the last one stands for all unknown values.
state
    A summary of the earlier entries of a sequence: the count of each value, the last value, or
    both. Tables have the index state * symbols + symbol.
exact test
    The test of the frozen rules on fresh draws. Its bound is the certified lower bound on ε at the
    tested δ or, if the claim is a curve, on δ at the tested ε.
event
    The set of outcomes at which a rule makes one guess. The cut-offs are l and u of the rule.
bettor
    Stakes wealth against the claim on the draws of a block, with rules of earlier blocks. Its
    beliefs are estimates of Pr[d1 | level]. With the share s of α, wealth above 1/(s α) refutes.
penalty
    The number of standard errors by which a predicted bound is lowered, since the best of many
    candidates is best partly by luck.
future_draws
    The number of draws to come, on which a rule is tested.
"""
