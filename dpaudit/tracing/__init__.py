"""Traces: two runs with the same noise, and the line that tells them apart."""
