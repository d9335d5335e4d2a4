"""The command line: the only rooms that print or exit, one file for each command."""
