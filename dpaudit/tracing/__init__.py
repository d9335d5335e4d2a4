"""Find the lines of a mechanism that leak, from runs on two inputs with the same noise.

The package `runs` defines the words of this room.
"""
