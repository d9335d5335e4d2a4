"""Which release of a package has a leak: one frozen event, tested in an environment per release."""
