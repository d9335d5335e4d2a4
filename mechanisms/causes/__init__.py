"""Mechanisms of which one line leaks, each beside its correct counterpart, for traces."""
