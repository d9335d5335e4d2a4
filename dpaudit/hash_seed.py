"""The hash seed of Python, which determines the order of texts in a set.

The command line sets the same hash seed in all processes that draw, so that the texts in a set have
the same order in all of these processes (docs/method.md §3).
"""

# Value of PYTHONHASHSEED unless the user has set another value. The order of two keys of a dict may
# be a leak, unless a set of the two keys can have this order. If the hashes of the keys collide in
# a set, both orders are possible, and the leak is missed. With this seed, common keys (a and b,
# count and total, min and max, true and false) do not collide in a set of two or three. With a
# random seed, 8 % of pairs collide.
USUAL = "102"
# Environment variable from which Python reads its hash seed.
VARIABLE = "PYTHONHASHSEED"
