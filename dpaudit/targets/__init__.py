"""Describe the mechanism to audit: a description is called a target.

`target` has the kinds of targets, `parameters` reads which parameters a mechanism takes, and
`construction` makes the function of a target. `dpaudit.adapters` makes draws with this function.
"""
