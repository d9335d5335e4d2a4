"""Implement the command line, one file for each command, whose docstring is its help text."""
