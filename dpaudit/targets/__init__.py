"""Targets: descriptions of the mechanism to audit.

`target` has the kinds of targets, `parameters` reads which parameters a mechanism takes, and
`construction` makes the callable of a target. `dpaudit.adapters` draws from the result.
"""
