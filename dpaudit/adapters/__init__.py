"""Mechanisms that the sampler draws from: Python callables, processes, programs and compositions.

`loading.load_mechanism` returns the mechanism of a target (`dpaudit.targets`).
"""
