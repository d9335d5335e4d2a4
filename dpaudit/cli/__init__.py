"""Implement the command line. Each command has a file; the docstring of its function is its help
text."""
