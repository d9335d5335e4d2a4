"""Objects of libraries whose constructors need other objects, for `make watch`."""
