"""Measurements of a real portal; each figure stands beside what it may be at most."""
