"""Sampling: random streams, chunks, pools of processes that draw chunks, and tests of the
independence of draws.

chunk
    A request for a number of draws of one pair, with random streams of its own.
key
    The numbers from which, with the seed of the audit, the streams of a chunk follow.
block
    The draws of one chunk.
sampler
    Makes the draws of chunks in one process.
pool
    Takes chunks, has them drawn by one or more processes, and yields their results in order.
worker
    A process, or a thread of an executor, that draws for the audit.
recipe
    The instructions from which a worker makes its sampler.
bundle
    A list of chunks that a worker gets as one task.
arms
    The number of draws of (d1, d2).
level
    A group of outcomes that the learned rules treat alike.
guess
    The input that a learned rule names at a level: 1 for d1, -1 for d2, 0 for none.
rare
    An output is rare if learning has seen one of its values rarely or never.
state
    What a mechanism keeps between calls: variables, and files that it writes.
"""
