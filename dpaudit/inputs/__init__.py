"""Convert values in the notation of users, and the contents of their files, to Python values."""
