"""Coupled runs: a mechanism runs on one input, then on another with the same noise.

In a run, the functions that draw noise are replaced (`patching`, `primitives`), so that a
`Recorder` sees each draw. The numbers that they return carry their noise (`values`) through sums,
products and comparisons. A second run repeats the noised values of the first (`replaying`); its
noise absorbs the difference of the inputs, which is then known as a *shift* (`comparing`).

Words used here: a *piece* of noise is one drawn number; a *use* adds noise to an operand or
compares it with one; a *coin* is a comparison of a uniform number with a threshold; a *part* is one
entry of the output, such as `output[1]`; a *spot* is an instruction of the user's code, and a
*moment* one execution of it.

This package needs Python 3.8, the standard library and NumPy, and no other module of dpaudit, since
it also runs under the Python of an isolated mechanism.
"""
