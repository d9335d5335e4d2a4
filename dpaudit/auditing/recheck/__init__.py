"""A result, recomputed from what it records."""
