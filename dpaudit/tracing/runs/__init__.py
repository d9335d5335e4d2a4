"""Runs of a mechanism whose noise is seen, and can be given again.

For Python 3.8, with the standard library and NumPy alone, and without the rest of dpaudit: it also
runs beside a mechanism under another Python.
"""
