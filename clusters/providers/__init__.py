"""Providers of nodes, each a folder of its own."""
