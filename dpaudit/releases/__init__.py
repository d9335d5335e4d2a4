"""Find the releases of a package that have a leak: test one event on each release, in its own
environment."""
