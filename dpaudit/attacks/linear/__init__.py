"""Attacks by weighted sums of columns."""
