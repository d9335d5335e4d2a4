"""Users' values and the contents of their files, as Python values."""
