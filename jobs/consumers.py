"""Sockets of jobs."""
