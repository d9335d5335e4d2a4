"""Statistics of audits: tests, bounds, p-values and e-values, computed from counts.

The functions read no files and draw no random numbers. Lower bounds are rounded down, and upper
bounds and p-values up, so that rounding never makes them invalid. Numbers such as (4.1) refer to
equations of docs/method.md.

d1, d2, P, Q
    The two inputs, and the laws of the output on them.
claim (ε, δ)
    P(E) ≤ e^ε Q(E) + δ for every event E, and the reverse; `epsilon` in nats, at least 0, and
    `delta` in [0, 1).
event
    A set of outputs that was fixed before the draws were counted.
alpha
    The error probability of a test or a bound, in (0, 1): a bound is valid, and a true claim is not
    refuted, with probability at least 1 - alpha.
p-value
    Of a claim: under the claim Pr[p ≤ u] ≤ u for every u.
e-value
    A number with expectation at most 1 under a hypothesis, so that Pr[E ≥ 1/α] ≤ α.
level
    A bin of outputs. Counts by level are (levels, 2), d1 first.
rule, c, w
    A rule guesses d1 (1), d2 (-1) or neither (0) from the output. c = Pr[right guess],
    w = Pr[wrong guess].
h, spared
    The claim implies c ≤ e^ε w + hδ (2.1), with h = 1 if the rule can guess both inputs, else ½.
    `spared` is hδ, the share of draws that δ excuses.
bettor, wealth
    A bettor multiplies its wealth at each draw by a factor that was fixed before and has
    expectation at most 1 under the claim.
witness
    A bounded function g of the level, fixed before the draws, with the stakes of two bets.
canary
    A record that a fair coin includes in the input of a run, or leaves out. `Guesses` counts
    guesses about canaries.
power
    The probability of a refutation, `POWER` = 0.9 unless given.
"""
