"""Processes that draw: start, exchange, end, replacement, and their number."""
