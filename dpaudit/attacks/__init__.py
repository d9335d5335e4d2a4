"""Attacks: learn from selection draws what tells the two inputs apart."""
