"""Wishes about jobs."""
