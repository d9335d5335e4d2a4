"""Targets: how a mechanism is named, imported, made and called."""
