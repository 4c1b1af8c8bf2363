"""Values of jobs that cross rooms (pure)."""
