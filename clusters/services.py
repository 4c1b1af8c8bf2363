"""Wishes about clusters."""
