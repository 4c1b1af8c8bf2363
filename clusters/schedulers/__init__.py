"""Schedulers of jobs, each a folder of its own."""
