"""Sockets of clusters."""
