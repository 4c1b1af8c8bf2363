"""Questions about jobs."""
