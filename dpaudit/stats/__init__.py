"""Numbers in, numbers out: bounds, tests and e-values, without I/O or randomness."""
