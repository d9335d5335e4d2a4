"""The kinds of spaces, one file each."""
