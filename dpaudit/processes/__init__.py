"""Processes that draw: how they are started, spoken to, watched and replaced."""
