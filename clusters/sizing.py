"""How many nodes a pool wants, and which go first (pure)."""
