"""Mechanisms of all kinds of targets: callables, processes, programs and compositions."""
