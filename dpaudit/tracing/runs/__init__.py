"""Coupled runs: a mechanism runs on one input, then on another with the same noise.

In a run, the functions that draw noise are replaced (`patching`, `primitives`), so that a
`Recorder` sees each draw. The drawn numbers remember their noise (`values`) through sums, products
and comparisons. A second run repeats the noisy values of the first run (`replaying`), so its noise
differs by the distance between the operands on the two inputs, the *shift* (`comparing`).

primitive
    A function that draws noise, such as `numpy.random.laplace`. A draw is one call of it.
piece
    One drawn number of noise, or a sum of drawn numbers. The pieces of a run have ids from 0.
law
    The name of the distribution of noise, such as `laplace`, or `unknown`.
operand
    The number to which noise is added, or with which noise is compared.
noisy value
    The sum operand + factor × noise.
use
    An operation that makes or compares a noisy value. Its counterpart is the same operation in the
    other run of the pair.
coin
    A comparison of a uniform number with a threshold.
choice
    A coin, or a draw from few outcomes. A branch is one combination of outcomes of choices.
part
    An entry of the output, such as `output[1]`; "raises" stands for an exception.
place
    A line of the user's code.
spot
    An instruction of the user's code.
moment
    An event of a run: (kind of the event, spot, number of earlier events of this kind there).
callers
    The places or spots from which an event was reached, innermost first.
alignment
    Says which events of two runs are counterparts, where counting does not show it.
which
    The index of an input: 0 for d1, 1 for d2.

This package needs Python 3.8, the standard library and NumPy, and no other module of dpaudit, since
it also runs under the Python of an isolated mechanism.
"""
