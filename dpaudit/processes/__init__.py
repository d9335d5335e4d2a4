"""Manage the processes that dpaudit starts: their number, start, end and replacement, and the data
exchanged with them."""
