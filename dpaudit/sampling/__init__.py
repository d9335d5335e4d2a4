"""Draws: streams, chunks, who draws them, and whether they look independent."""
