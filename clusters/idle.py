"""Is this node idle, and by what evidence? (pure)."""
