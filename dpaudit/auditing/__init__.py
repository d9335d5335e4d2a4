"""Runs audits: of mechanisms, of recorded draws, of stated laws, of canaries."""
