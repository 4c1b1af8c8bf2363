"""May this job start, and if not, what would fit? (pure)."""
