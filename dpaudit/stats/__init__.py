"""Statistics of audits: tests, bounds, p-values and e-values, computed from counts.

The functions read no files and draw no random numbers.
"""
