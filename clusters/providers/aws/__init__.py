"""Nodes of AWS."""
