"""Certificates and results: their classes, and the computation of their numbers from counts."""
