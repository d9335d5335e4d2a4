"""The command line: the only package that prints or exits, with one file for each command."""
