"""Test cases that Google publishes for implementations of its library, as audits.

`textproto` reads a file of test cases, `cases` turns it into a file of audits, and `python_dp` is
an implementation under test. docs/guides/conformance.md shows how to run them.
"""
