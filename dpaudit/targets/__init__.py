"""What to call: named, imported, built, and by which parameters."""
