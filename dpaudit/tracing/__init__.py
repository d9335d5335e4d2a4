"""Traces: coupled runs of a mechanism on two inputs, and the lines that leak."""
