"""Nodes that somebody else provides."""
