"""Sequences of few values: their way from entry to entry, and what each entry tells."""
