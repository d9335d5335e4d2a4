"""Define certificates and results of audits, and compute their numbers from counts.

d1, d2
    The two inputs. P and Q are the distributions of the output on d1 and on d2.
draw
    One output together with its input. `arms` are the numbers of all draws of d1 and of d2.
event
    A set of outputs, such as the outputs for which a rule guesses d1.
level
    A bin of outputs (docs/method.md §3).
rule
    A guess of the input for each level: d1 (1), d2 (-1), or none (0).
tally
    Numbers of draws by level and input.
point
    The inequality P(E) ≤ e^ε Q(E) + δ of a claim, for one (ε, δ).
witness
    A function of the level that bounds a Rényi divergence from below (docs/method.md §6).
exact test
    The test of frozen rules on draws that were not used to choose them.
bets, beliefs
    Bettors stake wealth on the input of each draw, by their beliefs Pr[d1 | level]. Large wealth
    refutes the claim. A confirmation is the exact test that follows on fresh draws.
look
    The end of a block of draws, at which the wealth is recorded.
new output
    An output with a value, a label or an entry that no learning draw had (`Unseen`).
canary
    A record that a fair coin included in a training run or left out.
family
    Audits that share one error probability.
site, cost
    Of a trace: a line that draws noise, and the privacy loss of the value that the noise hides.
"""
