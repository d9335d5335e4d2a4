"""Test which releases of a package have a leak: one event, tested in an environment per release."""
