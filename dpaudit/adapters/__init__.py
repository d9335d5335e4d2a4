"""Mechanisms that the sampler draws from: Python callables, processes, programs and compositions.

`loading.load_mechanism` returns the mechanism of a target (`dpaudit.targets`).

draw
    One output of the mechanism for one input.
batch
    Draws that one call makes together; a single draw is a call of its own.
outcome
    What a draw gives: an output, or the exception (`Raised`) or end of the process in its place.
child
    A process that makes draws for dpaudit and is replaced when it ends.
Python child
    A child that runs a Python mechanism.
program
    A child of the user that follows the protocol of docs/guides/protocol.md.
request
    A message to a child, which asks for one or more draws.
clock
    A function that returns the seconds left until a time limit.
watch
    Logs a warning if a call does not return for long.
law
    The probability of each output of a mechanism for one input.
`Ended`
    The exception for a child that has ended, or was killed at a time limit, during a request.
"""
