"""Journals: an audit that is cut short, by whatever, goes on where it was (docs/journal.md)."""
