"""Parsing of Slurm's answers (pure)."""
