"""Parsing of samples (pure)."""
