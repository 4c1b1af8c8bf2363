"""Rendering for Slurm (pure)."""
