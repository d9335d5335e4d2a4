"""From what a mechanism returned to a table of columns."""
