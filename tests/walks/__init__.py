"""Walks through several rooms at once."""
