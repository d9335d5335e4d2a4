"""Run audits: turn an `AuditSpec`, or recorded outputs, into an `AuditResult`.

engine.py draws from a mechanism; recorded_outputs.py takes outputs that were recorded elsewhere;
exact_pmf.py computes with the probabilities that a mechanism states; single_run.py evaluates
guesses about the canaries of one training run. recheck.py recomputes a result from its recorded
counts.
dpaudit.levels defines level, candidate, rule, portfolio and rare output.

draw
    One output of the mechanism, on d1 or d2 as a fair coin decides. `spent` counts the draws of a
    pair so far, `future_draws` those to come.
sample buffer
    The learning draws in memory. Learning may go on with draws that are only counted.
leading candidates
    The best candidates so far, for which further draws are counted. A refit makes new rules of
    them.
freeze
    The end of learning: the rules are fixed, and later draws certify them by the exact test.
exact test
    The test of the frozen rules, at a share of the error probability α of the pair.
bets
    Bettors stake wealth against the claim on the guesses of rules learned before. Large wealth
    refutes the claim.
confirmation
    The exact test of the strongest rule on fresh draws, after a refutation by bets.
witness
    A bounded function of the level, whose means on d1 and d2 bound a Rényi divergence from below.
tally
    Counts of draws by level and input: (levels, 2), d1 first.
block, stage
    Draws that are made and counted together, and what for: "learning", "certification" or
    "confirmation".
point
    A point (ε, δ) of the claim's privacy profile. Tests and bets refute the claim at a point.
journal
    The file in which an audit records its draws, so that an interrupted run can continue.
canary, coin
    A record that a fair coin included in a training run or left out.
power
    The probability that an audit refutes the claim if a leak of a stated size exists.
family
    Audits that share one false-alarm probability.
"""
