"""The errors of a mechanism, from pairs of runs on two neighbouring inputs with the same noise."""
