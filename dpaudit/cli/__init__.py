"""Implement the command line: one file for each command. No other package prints or exits."""
