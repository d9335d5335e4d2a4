"""Specimens to audit: correct mechanisms next to broken ones, each with its exact truth in code."""
