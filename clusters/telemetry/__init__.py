"""Samples of nodes."""
