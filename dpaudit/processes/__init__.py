"""Processes that dpaudit starts: their number, start, end, replacement, and exchange of data."""
