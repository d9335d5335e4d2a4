"""Describe the mechanism to audit. `parameters` reads which parameters a mechanism takes, and
`construction` makes the function with which `dpaudit.adapters` makes draws.

target
    A description of the mechanism to audit, as the user gave it. It imports nothing.
import path
    The text `package.module:attr` or `path/to/file.py:attr`.
composition
    Several mechanisms that run on the same input.
role
    What a parameter is for: the dataset, the random generator or the number of outputs.
post-processing
    A function that is applied to every output.
words
    The type and message of an exception, such as "ImportError: …".
"""
