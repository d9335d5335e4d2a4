"""Find the lines of a mechanism that leak, from runs on two inputs with the same noise."""
