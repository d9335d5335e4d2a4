"""Evidence that adds up over nights (docs/method.md §15).

A *night* is one run of an audit whose learning draws have the seed of the audit and whose *fresh*
draws, which certify, have a seed of their own. `detector.py` has the mathematics, from counts of
fresh draws to an alarm; `record.py` the file that keeps these counts, and the likely first night of
a leak.
"""
