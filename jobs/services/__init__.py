"""Wishes about jobs; each module is one noun."""
