"""Audits as one HTML file with figures, which needs nothing else to be read."""
