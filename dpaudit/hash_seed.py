"""The hash seed of Python, which determines the order of texts in a set."""

# Value of PYTHONHASHSEED unless the user sets another. With this seed, common names of keys (a and
# b, count and total, min and max, true and false) do not collide in a set of two or three, so that
# an order of keys that no set has is noticed. With a random seed, 8 % of pairs collide.
USUAL = "102"
VARIABLE = "PYTHONHASHSEED"
