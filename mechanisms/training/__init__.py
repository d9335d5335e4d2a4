"""DP-SGD in NumPy: correct training steps, and the bugs of training code; not installed."""
