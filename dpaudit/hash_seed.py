"""The seed of the hashes of texts, which decides the order of a set."""

# PYTHONHASHSEED where a user sets none. Under this seed the hashes of common names of keys do not
# collide in a set of two or three (a and b, count and total, min and max, true and false), so that
# an order that no set has shows. Under a random seed, 8 % of pairs collide.
USUAL = "102"
VARIABLE = "PYTHONHASHSEED"
