"""The phases of a job and the edges between them (pure)."""
