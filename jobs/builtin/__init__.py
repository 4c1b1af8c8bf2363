"""Definitions that every site has; data for jobs.services.builtin, which makes rows of them."""
