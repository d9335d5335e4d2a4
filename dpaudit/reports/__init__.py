"""Turn results of audits into the text of reports. These modules print and write nothing.

A format is a module with `entry` and `document`. `dpaudit list reports` prints the first paragraph
of its docstring.

entry
    The data about one audit for a report, made when the audit has ended.
document
    The text of a report, made from the entries of all audits.
planned
    The number of audits of a complete run.
not_run
    The names of audits that were left out because the run stopped early.
unexpected
    A result is unexpected if it fails: by another verdict than expected, too little power, or a
    warning of a strict audit.
event
    A set of outputs. It points to the input, its guess, that is expected to give it more often.
point
    A pair (ε, δ) of the claim.
deciding pair
    The pair of inputs, or its certificate, on which the verdict of the audit is based.
leak that the audit may miss
    A leak that is too small for 9 of 10 such runs to refute, such as `ε < 1.02`.
every
    Whether to show the bounds for ε and δ, too, if the claim has another parameter.
witness
    The simplest pair of inputs that refutes the claim.
row
    A label and a text of a report; an item is a row or a line.
"""
