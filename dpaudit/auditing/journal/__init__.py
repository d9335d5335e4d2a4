"""Journals: an audit that is cut short goes on where it was (docs/guides/journal.md)."""
