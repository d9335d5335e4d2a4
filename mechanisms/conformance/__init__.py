"""Test cases that Google publishes for implementations of its library, as audits.

`textproto` reads a file of test cases, and `cases` turns it into a file of audits. `revealing` is a
variant that must be refuted, and `budgets` computes how many draws refute variants. `python_dp` is
an implementation under test. docs/guides/conformance.md shows how to run them.
"""
