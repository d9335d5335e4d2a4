"""Mechanisms that leak on few pairs of inputs only, each beside its correct counterpart: what a
search for the worst pair has to find. `planted.py` lists them."""
