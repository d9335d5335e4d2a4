"""Coupled runs: a mechanism runs on one input, then on another with the same noise.

In a run, the functions that draw noise are replaced (`patching`, `primitives`), so that a
`Recorder` sees each draw. The drawn numbers remember their noise (`values`) through sums, products
and comparisons. A second run repeats the noisy values (numbers plus noise) of the first run
(`replaying`). The noise of the second run thus differs from the noise of the first run by a
*shift*: the distance between the numbers to which the noise is added on the two inputs
(`comparing`).

Words used here:

* a *primitive* is a function that draws noise, and a *draw* is one call of it;
* a *piece* of noise is one drawn number;
* an *operand* is a number that noise hides;
* a *use* adds noise to an operand, or compares noise with an operand;
* a *coin* is a comparison of a uniform number with a threshold;
* a *choice* is a coin, or a draw with few outcomes;
* a *branch* is the code that runs after one combination of outcomes of choices;
* a *part* is one entry of the output, such as `output[1]`;
* a *spot* is an instruction of the user's code, and a *moment* is one execution of a spot.

This package needs Python 3.8, the standard library and NumPy, and no other module of dpaudit, since
it also runs under the Python of an isolated mechanism.
"""
