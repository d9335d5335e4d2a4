"""The search for neighbouring inputs on which a mechanism leaks most.

plain Python
    Numbers, texts, None, lists and mappings, without arrays or data frames.
space
    The set of the values that an input, a record or an entry may have.
edge
    A value at which mechanisms often have bugs: a bound, NaN, an empty list, or a value just
    outside the space.
relation
    Says which two inputs are neighbours.
pair
    Two neighbouring inputs, d1 and d2.
query answers
    Inputs that are vectors of numbers; other inputs are datasets of records.
pattern
    The entries in which a pair of query answers differ, such as "one above".
origin
    The method that proposed a pair: "edge", "pattern", "random" and so on.
catalogue
    All proposed pairs that are not random.
trial
    Draws for both inputs of a pair, and estimates of its leak from them.
round
    Trials of several pairs. The pairs with the best estimates get more draws in the next round.
contender
    A proposed pair with the estimates of its latest trial.
evidence
    Log-likelihood of the draws minus the largest log-likelihood that the claim allows, in nats.
form
    The data type in which a mechanism takes a dataset: `array` (or `numpy`) for a NumPy array,
    `pandas` or `polars` for a data frame, None for plain Python.
share
    The part of the draws of a search that a step may spend, from 0 to 1.
"""
