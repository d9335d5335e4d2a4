"""What users write and files hold, as Python values."""
