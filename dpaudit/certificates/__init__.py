"""Define certificates and results of audits, and compute their numbers from counts."""
